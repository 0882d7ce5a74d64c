"""Reads the files that commands wrote as nested content: numbers by name, without times, paths and hashes of floats.

A vector is described by a few numbers, so that a file stays small and a changed row is still named. A projection is
described by what it does to fixed vectors: signs and order of its directions are free.
"""

import csv
import json
import re
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from tests.golden.store_contents import fingerprint
from unface import Projection, read_embeddings
from unface.errors import UnfaceError


def read(folder: Path, leave_out: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the content of each file in a folder under its name, without those that are only looked at."""
    for file in sorted(folder.rglob("*")):
        parts = file.relative_to(folder).parts
        if file.is_file() and parts[0] != leave_out and file.suffix in _READERS:
            yield parts, _READERS[file.suffix](file)


def _json(file: Path) -> Any:
    return json.loads(portless(file.read_text(encoding="utf-8")))


def portless(text: str) -> str:
    """Leave out the port of a service on this machine, which is another one each time."""
    return re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1", text)


def _json_lines(file: Path) -> Any:
    lines = portless(file.read_text(encoding="utf-8")).splitlines()
    return {f"line {number}": json.loads(line) for number, line in enumerate(lines, 1)}


def _csv(file: Path) -> Any:
    with file.open(encoding="utf-8", newline="") as lines:
        return {f"line {number}": row for number, row in enumerate(csv.reader(lines), 1)}


def _safetensors(file: Path) -> Any:
    try:
        projection = Projection.load(file)
    except UnfaceError:
        from safetensors.numpy import load_file

        return {name: _tensor(tensor) for name, tensor in load_file(file).items()}
    certificate = projection.certificate
    return {
        "kind": projection.kind,
        "rank": projection.rank,
        "dim": projection.dim,
        "released_dim": projection.released_dim,
        "normalise": projection.normalise,
        "gated": projection.gate is not None,
        "spectrum": [float(value) for value in projection.spectrum],
        "applied": {str(n): fingerprint(row) for n, row in enumerate(projection.apply_linear(_fixed(projection.dim)))},
        "certificate": None if certificate is None else asdict(certificate),
    }


def _tensor(tensor: NDArray[Any]) -> dict[str, Any]:
    """Length, and length once a fixed direction is added: neither is a small difference of large numbers."""
    flat = tensor.astype(np.float64).ravel()
    length = float(np.linalg.norm(flat))
    fixed = np.cos(np.arange(1, flat.size + 1) ** 1.5)
    leaning = float(np.linalg.norm(flat / max(length, 1e-300) + fixed / max(np.linalg.norm(fixed), 1e-300)))
    return {"shape": list(tensor.shape), "length": length, "leaning": leaning}


def _picture(file: Path) -> dict[str, Any]:
    """Size and mean colours of the quarters, in grey levels."""
    from PIL import Image

    pixels = np.asarray(Image.open(file).convert("RGB"), np.float64)
    middle = pixels.shape[0] // 2, pixels.shape[1] // 2
    quarters = {
        f"{rows} {columns}": pixels[down, across].mean(axis=(0, 1)).tolist()
        for rows, down in (("upper", slice(middle[0])), ("lower", slice(middle[0], None)))
        for columns, across in (("left", slice(middle[1])), ("right", slice(middle[1], None)))
    }
    return {"size": list(pixels.shape[:2]), **quarters}


def _fixed(dim: int) -> NDArray[np.float64]:
    """Four vectors that are the same on every machine."""
    fixed: NDArray[np.float64] = np.sin(np.outer(np.arange(1, 5), np.arange(1, dim + 1)) ** 1.3)
    return fixed


def _faces(file: Path) -> dict[str, list[float]]:
    """The side and the score of the face that a detector found in each picture."""
    columns = ("id", "face_px", "face_score")
    if not set(columns) <= set(pq.read_schema(file).names):
        return {}
    ids, *numbers = (column.to_pylist() for column in pq.read_table(file, columns=list(columns)).columns)
    return {str(name): [float(f"{value:.6g}") for value in row] for name, *row in zip(ids, *numbers, strict=True)}


def _vectors(file: Path) -> Any:
    read = read_embeddings(file)
    named = range(len(read)) if read.ids is None else read.ids
    seen = _faces(file) if file.suffix == ".parquet" else {}
    return {
        **({"faces": seen} if seen else {}),
        "encoder": read.space.encoder,
        "dim": read.space.dim,
        "normalised": read.space.normalised,
        "vectors": {str(name): fingerprint(row) for name, row in zip(named, read.vectors, strict=True)},
    }


_READERS = {
    ".json": _json,
    ".jsonl": _json_lines,
    ".csv": _csv,
    ".safetensors": _safetensors,
    ".parquet": _vectors,
    ".npz": _vectors,
    ".jpg": _picture,
    ".png": _picture,
}
