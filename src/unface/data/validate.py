"""The one place where rows are judged: what is bad is named by its row, or dropped and counted if asked."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from unface.data.raw import RawRows
from unface.errors import UnfaceError

_BLOCK_BYTES = 1 << 24


def validated(raw: RawRows, *, skip_bad_rows: bool) -> RawRows:
    """The same rows with float32 C-order vectors, every one usable; raises UnfaceError otherwise."""
    _require_shape(raw)
    raw = _as_float32(raw)
    faults = _faults(raw)
    bad = np.logical_or.reduce([mask for _, mask in faults])
    if bad.any():
        if not skip_bad_rows:
            _refuse_first(raw, bad, faults)
        raw = _without(raw, bad, faults)
    _require_unique_ids(raw)
    _require_two_identities(raw)
    return raw


def _require_shape(raw: RawRows) -> None:
    shape, where = raw.vectors.shape, f"{raw.source}: {raw.columns.vector!r}"
    if raw.vectors.ndim != 2:
        raise UnfaceError(f"{where} has shape {shape}; expected (rows, dimensions)")
    if shape[0] == 0:
        raise UnfaceError(f"{raw.source}: no rows; at least two identities are needed")
    if raw.vectors.dtype.kind not in "fiu":
        raise UnfaceError(f"{where} holds {raw.vectors.dtype}; expected real numbers")
    named = [(raw.columns.identity, raw.identities), (raw.columns.id, raw.ids), *raw.labels.items()]
    for name, column in named:
        if column.shape[:1] != shape[:1]:
            found = len(column) if column.ndim else "no"
            both = f"{name!r} has {found} rows, {raw.columns.vector!r} has {shape[0]}"
            raise UnfaceError(f"{raw.source}: {both}; give one for each vector")
    if shape[1] == 0 and (raw.nulls is None or not raw.nulls.all()):
        raise UnfaceError(f"{where} has no dimensions; expected at least one number in each row")
    if raw.space is not None and raw.space.dim != shape[1]:
        raise UnfaceError(f"{raw.source}: the space has {raw.space.dim} dimensions, {raw.columns.vector!r} {shape[1]}")


def _as_float32(raw: RawRows) -> RawRows:
    found = raw.vectors.dtype
    if found == np.float32:
        return replace(raw, vectors=np.ascontiguousarray(raw.vectors))
    with np.errstate(over="ignore", invalid="ignore"):  # what does not fit becomes Inf and is named as such
        vectors = raw.vectors.astype(np.float32, order="C")
    return replace(raw, vectors=vectors, notes=(*raw.notes, f"vectors converted from {found} to float32"))


def _faults(raw: RawRows) -> list[tuple[str, NDArray[np.bool_]]]:
    """Every way a row can be bad, with the rows that are; a row counts under the first that fits."""
    count, vector = len(raw.vectors), raw.columns.vector
    null = np.zeros(count, dtype=bool) if raw.nulls is None else raw.nulls
    nan, inf, zero = (np.zeros(count, dtype=bool) for _ in range(3))
    step = max(1, _BLOCK_BYTES // max(1, 4 * raw.vectors.shape[1]))
    for start in range(0, count, step):
        rows = slice(start, start + step)
        block = raw.vectors[rows]
        zero[rows] = ~block.any(axis=1)
        if not np.isfinite(block).all():
            nan[rows] = np.isnan(block).any(axis=1)
            inf[rows] = np.isinf(block).any(axis=1)
    nameless = np.array([not identity for identity in raw.identities], dtype=bool)
    idless = np.array([not row_id for row_id in raw.ids], dtype=bool)
    found = [
        (f"null in {vector!r}", null),
        (f"NaN in {vector!r}", nan),
        (f"Inf in {vector!r}", inf),
        (f"only zeros in {vector!r}", zero),
        (f"no identity in {raw.columns.identity!r}", nameless),
        (f"no id in {raw.columns.id!r}", idless),
    ]
    seen = np.zeros(count, dtype=bool)
    first: list[tuple[str, NDArray[np.bool_]]] = []
    for fault, mask in found:
        first.append((fault, mask & ~seen))
        seen |= mask
    return first


def _refuse_first(raw: RawRows, bad: NDArray[np.bool_], faults: list[tuple[str, NDArray[np.bool_]]]) -> None:
    row = int(np.flatnonzero(bad)[0])
    fault = next(fault for fault, mask in faults if mask[row])
    called = f" (id {raw.ids[row]!r})" if raw.ids[row] else ""
    raise UnfaceError(f"{raw.source}: row {row}{called} has {fault}; drop it or pass --skip-bad-rows")


def _without(raw: RawRows, bad: NDArray[np.bool_], faults: list[tuple[str, NDArray[np.bool_]]]) -> RawRows:
    counts = ", ".join(f"{int(mask.sum())} with {fault}" for fault, mask in faults if mask.any())
    dropped = int(bad.sum())
    note = f"skipped {dropped} of {len(bad)} rows: {counts}"
    if dropped == len(bad):
        raise UnfaceError(f"{raw.source}: no usable rows; {note}")
    keep = ~bad
    return replace(
        raw,
        vectors=raw.vectors[keep],
        identities=raw.identities[keep],
        ids=raw.ids[keep],
        labels={name: column[keep] for name, column in raw.labels.items()},
        nulls=None,
        notes=(*raw.notes, note),
    )


def _require_unique_ids(raw: RawRows) -> None:
    first_row: dict[str, int] = {}
    for row, row_id in enumerate(raw.ids):
        if first_row.setdefault(row_id, row) != row:
            raise UnfaceError(
                f"{raw.source}: id {row_id!r} occurs more than once in {raw.columns.id!r}; make ids unique"
            )


def _require_two_identities(raw: RawRows) -> None:
    if len(set(raw.identities)) < 2:
        raise UnfaceError(
            f"{raw.source}: every row has identity {raw.identities[0]!r} in {raw.columns.identity!r};"
            " at least two identities are needed"
        )
