"""A Projection on disk: one .safetensors file, the same bytes each time, refused unless whole and unchanged."""

import hashlib
import json
import stat
from dataclasses import asdict
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from safetensors import SafetensorError
from safetensors.numpy import load as parse_tensors
from safetensors.numpy import save as tensor_bytes

from unface.data import Space
from unface.data.files import unopened
from unface.erase.fitted_on import FittedOn
from unface.erase.gate import Gate
from unface.erase.projection import Projection, complement
from unface.errors import UnfaceError, reason, short_name
from unface.output.write import write_file
from unface.result.face_gate import GateCertificate
from unface.result.numbers import Certificate

KEY = "unface.projection"
SCHEMA = "unface.projection/1"

_LARGEST = 1 << 32  # bytes; 20,000 dimensions of which half are removed by an oblique projection


class GateHeader(BaseModel):
    """A face gate, but for its weights."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    offset: float
    certificate: GateCertificate


class FittedOnHeader(BaseModel):
    """Who it was fitted on, without the bits."""

    model_config = ConfigDict(extra="forbid")

    people: int
    salt: str = Field(max_length=64)


class Header(BaseModel):
    """The metadata: everything but the arrays, and a hash over both."""

    model_config = ConfigDict(extra="forbid")

    schema_: Literal["unface.projection/1"] = Field(alias="schema")
    kind: str = Field(max_length=64)
    rank: int
    dim: int
    normalise: bool
    space: Space
    certificate: Certificate | None
    gate: GateHeader | None = None
    fitted_on: FittedOnHeader | None = None
    keep_dimension: bool = False
    content_sha256: str


def save_projection(projection: Projection, path: Path) -> None:
    """Replace what is there."""
    write_file(path, to_bytes(projection))


def load_projection(path: Path) -> Projection:
    """Read a file whole and check all of it."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise UnfaceError(f"{short_name(path)}: not a file; give the .safetensors that a projection was saved to")
        if status.st_size > _LARGEST:
            raise UnfaceError(f"{short_name(path)}: {status.st_size} bytes are too many for a projection")
        return from_bytes(path.read_bytes(), short_name(path))
    except (OSError, ValueError) as error:
        raise unopened(path, error) from None


def to_bytes(projection: Projection) -> bytes:
    """The file's content. One metadata key only: safetensors writes several in no particular order."""
    arrays = _arrays(projection)
    fields = {
        "schema": SCHEMA,
        "kind": projection.kind,
        "rank": projection.rank,
        "dim": projection.dim,
        "normalise": projection.normalise,
        "space": asdict(projection.space),
        "certificate": None if projection.certificate is None else asdict(projection.certificate),
    }
    if projection.gate is not None:
        # Readers of before the gate refuse a field they do not know, and so never erase everything instead.
        fields["gate"] = {"offset": projection.gate.offset, "certificate": asdict(projection.gate.certificate)}
    if projection.keep_dimension:
        fields["keep_dimension"] = True
    if projection.fitted_on is not None:
        fields["fitted_on"] = {"people": projection.fitted_on.people, "salt": projection.fitted_on.salt}
    fields["content_sha256"] = _content_hash(fields, arrays)
    return tensor_bytes(arrays, {KEY: json.dumps(fields, sort_keys=True)})


def from_bytes(data: bytes, source: str) -> Projection:
    """The projection that these bytes hold; ``source`` begins the error."""
    try:
        arrays = parse_tensors(data)
        metadata = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")]).get("__metadata__") or {}
        fields = json.loads(metadata[KEY])
        header = Header.model_validate_json(metadata[KEY], strict=True)
    except (SafetensorError, UnicodeDecodeError, TypeError) as error:
        message = f"{source}: not a whole .safetensors file ({reason(error)}); give one that 'unface fit' saved"
        raise UnfaceError(message) from None
    except KeyError as error:
        lacking = f"no metadata {KEY!r}" if error.args == (KEY,) else f"numbers of kind {error.args[0]}"
        raise UnfaceError(f"{source}: {lacking}; expected a projection that unface saved") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or KEY
        raise UnfaceError(f"{source}: metadata {where}: {first['msg'].lower()}; was the file changed?") from None
    except (ValueError, RecursionError):
        raise UnfaceError(f"{source}: metadata {KEY!r} is not JSON; was the file changed?") from None
    fields.pop("content_sha256")
    if _content_hash(fields, arrays) != header.content_sha256:
        raise UnfaceError(f"{source}: content and its hash disagree; the file was damaged or changed, save it again")
    return _projection(header, arrays, source)


def _projection(header: Header, arrays: dict[str, NDArray[np.float64]], source: str) -> Projection:
    if ("gate" in arrays) != (header.gate is not None):
        raise UnfaceError(
            f"{source}: its metadata and its arrays disagree on whether there is a face gate; save it again"
        )
    if ("people" in arrays) != (header.fitted_on is not None):
        raise UnfaceError(f"{source}: its metadata and its arrays disagree on who it was fitted on; save it again")
    weights, people = arrays.pop("gate", None), arrays.pop("people", None)
    needed, allowed = {"directions", "spectrum"}, {"directions", "spectrum", "readers", "mean"}
    if not needed <= arrays.keys() <= allowed and arrays.keys() != {"kept", "spectrum"}:
        names = ", ".join(sorted(arrays))[:120]
        raise UnfaceError(
            f"{source}: holds {names}; expected directions, spectrum and perhaps readers and mean, or kept and spectrum"
        )
    name, columns = ("kept", header.dim - header.rank) if "kept" in arrays else ("directions", header.rank)
    if arrays[name].shape != (header.dim, columns):
        shape = (header.dim, columns)
        raise UnfaceError(f"{source}: {name} have shape {arrays[name].shape}, its metadata says {shape}")
    if name == "kept":
        if arrays["kept"].dtype != np.float64 or not np.isfinite(arrays["kept"]).all():
            raise UnfaceError(f"{source}: kept has NaN, Inf or numbers that are not float64; fit it again")
        arrays = {**arrays, "directions": complement(arrays["kept"])}
    try:
        return Projection(
            kind=header.kind,
            normalise=header.normalise,
            space=header.space,
            certificate=header.certificate,
            fitted_on=_fitted_on(header.fitted_on, people),
            gate=None if header.gate is None or weights is None else Gate(np.array(weights), **dict(header.gate)),
            keep_dimension=header.keep_dimension,
            **{name: np.array(array) for name, array in arrays.items()},
        )
    except UnfaceError as error:
        raise UnfaceError(f"{source}: {error}") from None


def _fitted_on(header: FittedOnHeader | None, bits: NDArray[np.generic] | None) -> FittedOn | None:
    if header is None or bits is None:
        return None
    return FittedOn(header.people, header.salt, np.array(bits))


def _arrays(projection: Projection) -> dict[str, NDArray[np.float64]]:
    # What is kept says what is removed, in fewer numbers.
    names = ("directions", "readers", "mean", "spectrum") if projection.kept is None else ("kept", "spectrum")
    arrays = {name: getattr(projection, name) for name in names}
    arrays["gate"] = None if projection.gate is None else projection.gate.weights
    arrays["people"] = None if projection.fitted_on is None else projection.fitted_on.bits
    return {name: np.ascontiguousarray(array) for name, array in arrays.items() if array is not None}


def _content_hash(fields: dict[str, object], arrays: dict[str, NDArray[np.float64]]) -> str:
    digest = hashlib.sha256(json.dumps(fields, sort_keys=True).encode())
    for name, array in sorted(arrays.items()):
        digest.update(json.dumps([name, array.dtype.name, array.shape]).encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
