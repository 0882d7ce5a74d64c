"""Encoded pictures as a table: what a part and the finished file hold."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from unface.data import ImageRef, ImageSet, Space
from unface.data.embeddings import METADATA_KEY
from unface.encode.ports import Encoder
from unface.encode.prepare import Prepared
from unface.errors import UnfaceError
from unface.faces import CONTEXT_DIM, Detector

_SKIPPED = b"unface.skipped"
_ENCODED = b"unface.encoded"


def part_schema(dim: int, space: Space | None = None, encoded: str | None = None) -> pa.Schema:
    """The columns; with the space and a count of pictures for a finished file."""
    metadata = {} if space is None else {METADATA_KEY: space.to_json()}
    if encoded is not None:
        metadata[_ENCODED] = encoded
    return pa.schema(
        [
            ("id", pa.string()),
            ("identity", pa.string()),
            ("vector", pa.list_(pa.float32(), dim)),
            ("context", pa.list_(pa.float32(), CONTEXT_DIM)),
            ("phash", pa.uint64()),
            ("faces", pa.int32()),
            ("face_score", pa.float32()),
            ("face_px", pa.float32()),
        ],
        metadata=metadata or None,
    )


@dataclass(frozen=True)
class Made:
    """How a finished file says it was made; empty where it does not say."""

    plan: Mapping[str, object]

    def fits(self, images: ImageSet, encoder: Encoder, detector: Detector | None) -> bool:
        """Whether these pictures, this encoder and this detector would make the same file."""
        wanted = {
            "pictures": images.sha256(),
            "weights": encoder.card.sha256,
            "detector": None if detector is None else detector.name,
        }
        return all(name in self.plan and self.plan[name] == value for name, value in wanted.items())

    @property
    def notes(self) -> tuple[str, ...]:
        """What was left out, for whoever uses the vectors."""
        skipped = self.plan.get("skipped")
        counts = skipped.items() if isinstance(skipped, dict) else ()
        return tuple(f"pictures left out, {reason}: {number}" for reason, number in counts)


def made_of(path: Path) -> Made:
    """Read the metadata of a file that ``encode_images`` finished."""
    try:
        said = (pq.read_schema(path).metadata or {}).get(_ENCODED)
        found = json.loads(said) if said else {}
    except (pa.ArrowException, OSError, ValueError):
        raise UnfaceError(f"{path}: not a readable Parquet file; remove it, or pass --force") from None
    return Made(found if isinstance(found, dict) else {})


def part_table(
    rows: Sequence[tuple[ImageRef, Prepared]],
    vectors: Sequence[NDArray[np.float32]],
    skipped: Sequence[tuple[str, str]],
    dim: int,
) -> pa.Table:
    """One part; rows whose vector says nothing (not finite, all zeros) join the skipped."""
    matrix = np.concatenate(vectors) if vectors else np.empty((0, dim), dtype=np.float32)
    if matrix.shape != (len(rows), dim):
        raise UnfaceError(f"the encoder gave vectors of shape {matrix.shape}; expected {(len(rows), dim)}")
    good: NDArray[np.bool_] = np.logical_and(np.isfinite(matrix).all(axis=1), matrix.any(axis=1))
    left_out = [
        *skipped,
        *((ref.id, "no usable vector") for (ref, _), fine in zip(rows, good, strict=True) if not fine),
    ]
    kept = [row for row, fine in zip(rows, good, strict=True) if fine]
    seen = [picture for _, picture in kept]
    context = np.stack([picture.context for picture in seen]) if seen else np.empty((0, CONTEXT_DIM), dtype=np.float32)
    columns = [
        pa.array([ref.id for ref, _ in kept], pa.string()),
        pa.array([ref.identity for ref, _ in kept], pa.string()),
        pa.FixedSizeListArray.from_arrays(pa.array(matrix[good].reshape(-1), pa.float32()), dim),
        pa.FixedSizeListArray.from_arrays(pa.array(context.reshape(-1), pa.float32()), CONTEXT_DIM),
        pa.array([picture.phash for picture in seen], pa.uint64()),
        pa.array([picture.faces for picture in seen], pa.int32()),
        pa.array([picture.face_score for picture in seen], pa.float32()),
        pa.array([picture.face_px for picture in seen], pa.float32()),
    ]
    schema = part_schema(dim).with_metadata({_SKIPPED: json.dumps(left_out)})
    return pa.Table.from_arrays(columns, schema=schema)


def skipped_of(table: pa.Table) -> list[tuple[str, str]]:
    """(id, reason) of the pictures that a part had to leave out."""
    return [(str(picture), str(reason)) for picture, reason in json.loads(table.schema.metadata[_SKIPPED])]
