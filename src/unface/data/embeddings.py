"""EmbeddingSet: vectors, whose they are and which space they live in; rows of any source are checked here."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Literal, TypeVar, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unface.errors import UnfaceError

METADATA_KEY = b"unface.space"
ERASED_KEY = b"unface.erased"
_BLOCK_BYTES = 1 << 24
_Scalar = TypeVar("_Scalar", bound=np.generic)

OnBadRows = Literal["fail", "drop", "null"]
"""What to do with a row whose vector is null, NaN, Inf or all zeros, or that has no identity.

Refuse it, leave it out, or count it as a row without a vector. Where rows are only read, the last two are the same.
"""

_LONGEST_NAME = 1 << 16
"""Characters of an identity or id."""


def on_bad_rows(word: str) -> OnBadRows:
    """One of the three words."""
    for known in get_args(OnBadRows):
        if word == known:
            return known  # type: ignore[no-any-return]
    raise UnfaceError(f"--bad-rows {word}: is not known; use fail, drop or null")


@dataclass(frozen=True)
class Space:
    """An encoder's output space; numbers of two encoders look alike and must never be compared.

    ``None`` where the source does not say; ``normalised`` is False unless it does.
    """

    encoder: str | None
    weights_sha256: str | None
    dim: int
    normalised: bool

    def __str__(self) -> str:
        encoder = "unknown encoder" if self.encoder is None else repr(self.encoder)
        weights = "" if self.weights_sha256 is None else f" (weights {self.weights_sha256[:12]!r})"
        return f"{encoder}{weights}, {self.dim} dimensions, {'' if self.normalised else 'not '}normalised"

    def to_json(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)


@dataclass(frozen=True)
class Columns:
    """Column names in the source, so that errors use the user's names."""

    vector: str = "vector"
    identity: str | None = "identity"
    """None: nobody asks whose the vectors are, and each row stands for itself."""
    id: str = "id"
    context: str | None = None
    """A second column of vectors, kept as a label: the surroundings of the face."""


@dataclass(frozen=True)
class BadRows:
    """Rows that were left out because they cannot be measured."""

    rows: int
    of: int
    """Rows that were read, these included."""
    faults: Mapping[str, int]
    """Rows by what is wrong with them; each counts once."""
    of_person: Mapping[str, int]
    """By identity, of those that have one."""

    def __str__(self) -> str:
        counts = ", ".join(f"{number} with {fault}" for fault, number in self.faults.items())
        return f"skipped {self.rows} of {self.of} rows: {counts}"


@dataclass(frozen=True, eq=False)
class RawRows:
    """What a reader read, before any check: rows of any numeric type, possibly bad."""

    source: str
    columns: Columns
    vectors: NDArray[np.generic]  # (n, d)
    identities: NDArray[np.object_]  # (n,) of str, or None where missing
    ids: NDArray[np.object_]  # (n,) of str, or None where missing
    labels: Mapping[str, NDArray[np.generic]]
    nulls: NDArray[np.bool_] | None = None  # (n,) rows whose vector is null or holds one
    space: Space | None = None
    notes: tuple[str, ...] = ()
    erased: str | None = None
    bad_rows: BadRows | None = None
    sample: int | None = None


@dataclass(frozen=True, eq=False, repr=False)
class EmbeddingSet:
    """n embeddings of known identities. Arrays are read-only; make one with ``from_arrays`` or a reader.

    ``names`` are sorted, so that an identity's code does not depend on the order of rows.
    """

    vectors: NDArray[np.float32]  # (n, d), C-order
    identities: NDArray[np.int64]  # (n,), codes into names
    names: tuple[str, ...]
    ids: NDArray[np.object_]  # (n,), of str
    labels: Mapping[str, NDArray[np.generic]]  # other columns, each (n, ...)
    space: Space
    notes: tuple[str, ...] = ()  # what reading changed
    source: str = "arrays"  # a short name, never a path
    erased: str | None = None  # what the file says of the projection that erased it, as JSON
    bad_rows: BadRows | None = None  # what reading left out; None if nothing
    columns: Columns = Columns()  # what they are called in the source
    sample: int | None = None  # how many people were asked for, where only a sample was read

    @classmethod
    def from_arrays(
        cls,
        vectors: ArrayLike,
        identities: ArrayLike,
        *,
        ids: ArrayLike | None = None,
        labels: Mapping[str, ArrayLike] | None = None,
        space: Space | None = None,
        source: str = "arrays",
        bad_rows: str = "fail",
        columns: Columns | None = None,
    ) -> "EmbeddingSet":
        """A checked set from (n, d) vectors and n identities (text or integers); ids default to row numbers.

        ``columns`` are the names errors use. float32 C-order vectors are shared, not copied.
        """
        columns = columns or Columns()
        try:
            array = np.asarray(vectors)
        except (ValueError, TypeError):
            raise UnfaceError(f"{source}: {columns.vector!r} is not one array; are its rows of one length?") from None
        count = len(array) if array.ndim else 0
        raw = RawRows(
            source=source,
            columns=columns,
            vectors=array,
            identities=as_text(identities, f"{source}: {columns.identity!r}"),
            ids=row_numbers(count) if ids is None else as_text(ids, f"{source}: {columns.id!r}"),
            labels={name: np.asarray(column) for name, column in (labels or {}).items()},
            space=space,
        )
        return cls.from_raw(raw, bad_rows=bad_rows)

    @classmethod
    def from_raw(cls, raw: RawRows, *, bad_rows: str) -> "EmbeddingSet":
        """A checked set from what a reader read."""
        rows = validated(raw, bad_rows=on_bad_rows(bad_rows))
        vectors = rows.vectors.astype(np.float32, copy=False)
        codes, names = codes_of(rows.identities)
        space = rows.space or Space(encoder=None, weights_sha256=None, dim=vectors.shape[1], normalised=False)
        return cls(
            _frozen(vectors),
            _frozen(codes),
            names,
            _frozen(rows.ids),
            rows.labels,
            space,
            rows.notes,
            rows.source,
            rows.erased,
            rows.bad_rows,
            rows.columns,
            rows.sample,
        )

    def __len__(self) -> int:
        return len(self.vectors)

    def __repr__(self) -> str:
        # No names: a repr ends up in logs.
        rows, dim = self.vectors.shape
        return f"EmbeddingSet({self.source!r}: {rows} × {dim}, {len(self.names)} identities)"

    def take(self, rows: NDArray[np.int64] | NDArray[np.bool_]) -> "EmbeddingSet":
        """These rows in this order; names that no row has any more are dropped, so codes may change."""
        codes, names = without_unused(self.identities[rows], self.names)
        return replace(
            self,
            vectors=_frozen(self.vectors[rows]),
            identities=_frozen(codes),
            names=names,
            ids=_frozen(self.ids[rows]),
            labels={name: column[rows] for name, column in self.labels.items()},
        )

    def unit(self) -> "EmbeddingSet":
        """Rows scaled to length one: computed in float64, stored in float32."""
        norms = np.sqrt(np.einsum("ij,ij->i", self.vectors, self.vectors, dtype=np.float64))
        vectors = np.empty_like(self.vectors)
        np.divide(self.vectors, norms[:, None], out=vectors, dtype=np.float64, casting="same_kind")
        return replace(self, vectors=_frozen(vectors), space=replace(self.space, normalised=True))

    def sha256(self) -> str:
        """A hash of the content: vectors, the identity of each row, ids; not of labels, notes or source."""
        digest = hashlib.sha256(json.dumps(self.vectors.shape).encode())
        # Names are sorted and all in use, so names and codes together say each row's name and nothing else.
        for array in (self.vectors.astype("<f4", copy=False), self.identities.astype("<i8", copy=False)):
            digest.update(array.reshape(-1).view(np.uint8).data)
        digest.update(json.dumps([self.names, self.ids.tolist()]).encode())
        return digest.hexdigest()


def _frozen(array: NDArray[_Scalar]) -> NDArray[_Scalar]:
    """A read-only view: the caller's own array stays as it was."""
    view = array.view()
    view.flags.writeable = False
    return view


def validated(raw: RawRows, *, bad_rows: OnBadRows) -> RawRows:
    """The same rows with float32 C-order vectors, every one usable.

    The first bad row is refused by its number, or with another choice of ``bad_rows`` all are left out and counted.
    """
    _require_shape(raw)
    raw = _as_float32(raw)
    faults = _faults(raw)
    bad = np.logical_or.reduce([mask for _, mask in faults])
    if bad.any():
        if bad_rows == "fail":
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
        if raw.columns.identity is None:
            raise UnfaceError(f"{raw.source}: no rows; give some vectors")
        raise TooFewIdentities(f"{raw.source}: no rows; at least two identities are needed")
    if raw.vectors.dtype.kind not in "fiu":
        raise UnfaceError(f"{where} holds {raw.vectors.dtype}; expected real numbers")
    named = [(raw.columns.identity or "row", raw.identities), (raw.columns.id, raw.ids), *raw.labels.items()]
    for name, column in named:
        if column.shape[:1] != shape[:1]:
            rows = len(column) if column.ndim else "no"
            both = f"{name!r} has {rows} rows, {raw.columns.vector!r} has {shape[0]}"
            raise UnfaceError(f"{raw.source}: {both}; give one for each vector")
    if shape[1] == 0 and (raw.nulls is None or not raw.nulls.all()):
        raise UnfaceError(f"{where} has no dimensions; expected at least one number in each row")
    if raw.space is not None and raw.space.dim != shape[1]:
        raise UnfaceError(f"{raw.source}: the space has {raw.space.dim} dimensions, {raw.columns.vector!r} {shape[1]}")


def _as_float32(raw: RawRows) -> RawRows:
    given = raw.vectors.dtype
    if given == np.float32:
        return replace(raw, vectors=np.ascontiguousarray(raw.vectors))
    with np.errstate(over="ignore", invalid="ignore"):  # what does not fit becomes Inf and is refused as such
        vectors = raw.vectors.astype(np.float32, order="C")
    return replace(raw, vectors=vectors, notes=(*raw.notes, f"vectors converted from {given} to float32"))


def _faults(raw: RawRows) -> list[tuple[str, NDArray[np.bool_]]]:
    """Each fault a row can have, with the rows that have it; a row counts under its first fault."""
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
    faults = [
        (f"null in {vector!r}", null),
        (f"NaN in {vector!r}", nan),
        (f"Inf in {vector!r}", inf),
        (f"only zeros in {vector!r}", zero),
        (f"no identity in {raw.columns.identity!r}", nameless),
        (f"no id in {raw.columns.id!r}", idless),
    ]
    seen = np.zeros(count, dtype=bool)
    first: list[tuple[str, NDArray[np.bool_]]] = []
    for fault, mask in faults:
        first.append((fault, mask & ~seen))
        seen |= mask
    return first


def _refuse_first(raw: RawRows, bad: NDArray[np.bool_], faults: list[tuple[str, NDArray[np.bool_]]]) -> None:
    row = int(np.flatnonzero(bad)[0])
    fault = next(fault for fault, mask in faults if mask[row])
    called = f" (id {raw.ids[row]!r})" if raw.ids[row] else ""
    raise UnfaceError(f"{raw.source}: row {row}{called} has {fault}; drop it or pass --bad-rows drop")


def rows_taken(raw: RawRows, keep: NDArray[np.bool_]) -> RawRows:
    """Some of the rows."""
    return replace(
        raw,
        vectors=raw.vectors[keep],
        identities=raw.identities[keep],
        ids=raw.ids[keep],
        labels={name: column[keep] for name, column in raw.labels.items()},
        nulls=None if raw.nulls is None else raw.nulls[keep],
    )


def _without(raw: RawRows, bad: NDArray[np.bool_], faults: list[tuple[str, NDArray[np.bool_]]]) -> RawRows:
    found = BadRows(
        rows=int(bad.sum()),
        of=len(bad),
        faults={fault: int(mask.sum()) for fault, mask in faults if mask.any()},
        of_person=Counter(name for name in raw.identities[bad] if name),
    )
    if found.rows == found.of:
        raise UnfaceError(f"{raw.source}: no usable rows; {found}")
    return replace(rows_taken(raw, ~bad), nulls=None, notes=(*raw.notes, str(found)), bad_rows=found)


def _require_unique_ids(raw: RawRows) -> None:
    first_row: dict[str, int] = {}
    for row, row_id in enumerate(raw.ids):
        if first_row.setdefault(row_id, row) != row:
            raise UnfaceError(
                f"{raw.source}: id {row_id!r} occurs more than once in {raw.columns.id!r}; make ids unique"
            )


class TooFewIdentities(UnfaceError):
    """Fewer than two: there is no pair of strangers."""

    code = "too-few-identities"


def _require_two_identities(raw: RawRows) -> None:
    if raw.columns.identity is not None and len(set(raw.identities)) < 2:
        raise TooFewIdentities(
            f"{raw.source}: every row has identity {raw.identities[0]!r} in {raw.columns.identity!r};"
            " at least two identities are needed"
        )


def require_same_space(a: Space, b: Space) -> None:
    """Refuse two different spaces; the error names both."""
    if a != b:
        raise UnfaceError(f"two embedding spaces never mix: {a}; and {b}")


def space_from_json(text: bytes, source: str) -> Space:
    """The ``unface.space`` metadata of a file; refused unless every field is there with its type."""
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        raise UnfaceError(f"{source}: metadata unface.space is not JSON; write the file again") from None
    if not isinstance(fields, dict):
        raise UnfaceError(f"{source}: metadata unface.space is not a JSON object; write the file again")
    for name, expected in _EXPECTED.items():
        if name not in fields:
            raise UnfaceError(f"{source}: metadata unface.space lacks {name!r}; write the file again")
        # bool is an int to isinstance, and `"dim": true` is not a dimension.
        if type(fields[name]) not in expected:
            value = json.dumps(fields[name])[:40]
            raise UnfaceError(f"{source}: metadata unface.space has {name} = {value}; write the file again")
    return Space(fields["encoder"], fields["weights_sha256"], fields["dim"], fields["normalised"])


_EXPECTED: dict[str, tuple[type, ...]] = {
    "encoder": (str, type(None)),
    "weights_sha256": (str, type(None)),
    "dim": (int,),
    "normalised": (bool,),
}


def codes_of(identities: Iterable[str]) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Each row's identity as a number into the sorted names."""
    rows = list(identities)
    names = tuple(sorted(set(rows)))
    code = {name: number for number, name in enumerate(names)}
    return np.fromiter((code[name] for name in rows), dtype=np.int64, count=len(rows)), names


def without_unused(codes: NDArray[np.int64], names: tuple[str, ...]) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Drop names that no row has; the others stay sorted."""
    used = np.unique(codes)
    return np.searchsorted(used, codes), tuple(names[code] for code in used)


def as_text(values: ArrayLike, what: str) -> NDArray[np.object_]:
    """(n,) names or ids as str; None where missing. ``what`` begins the error: "faces.npz: 'identities'"."""
    # A list goes in as objects: numpy would make ["ann", nan] a text array with somebody called "nan".
    array = np.asarray(values, dtype=None if hasattr(values, "dtype") else object)
    if array.ndim != 1:
        raise UnfaceError(f"{what} has shape {array.shape}; expected one value for each row")
    if array.dtype.kind not in "UTSiuO":
        raise UnfaceError(f"{what} holds {array.dtype}; expected text or integers")
    try:
        if array.dtype.kind == "S":
            array = np.char.decode(array, "utf-8")
        texts = [_one_text(value, what) for value in array.tolist()]
        for text in {text for text in texts if text is not None and not text.isascii()}:
            text.encode()
    except ValueError:  # undecodable bytes, code points beyond Unicode, lone surrogates
        raise UnfaceError(f"{what} holds text that is not valid Unicode; save it again as UTF-8") from None
    return object_array(texts)


def object_array(values: list[str | None]) -> NDArray[np.object_]:
    """An object array of exactly these values; ``np.array`` alone would make an empty list float."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def row_numbers(count: int) -> NDArray[np.object_]:
    """Ids for rows that have none."""
    return object_array([str(row) for row in range(count)])


def _one_text(value: object, what: str) -> str | None:
    if isinstance(value, str):
        if len(value) > _LONGEST_NAME:
            raise UnfaceError(f"{what} holds a text of {len(value):,} characters; a name has {_LONGEST_NAME:,} at most")
        return str(value)
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return str(value)
    # NaN is how data frames say "missing" in a column of objects.
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return None
    raise UnfaceError(f"{what} holds a value of type {type(value).__name__}; expected text or integers")
