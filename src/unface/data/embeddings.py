"""EmbeddingSet: vectors, whose they are, and which space they live in; what every other room takes."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unface.data.identities import as_text, codes_of, row_numbers, without_unused
from unface.data.raw import Columns, RawRows
from unface.data.space import Space
from unface.data.validate import validated
from unface.errors import UnfaceError

_Scalar = TypeVar("_Scalar", bound=np.generic)


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
        skip_bad_rows: bool = False,
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
        return cls.from_raw(raw, skip_bad_rows=skip_bad_rows)

    @classmethod
    def from_raw(cls, raw: RawRows, *, skip_bad_rows: bool) -> "EmbeddingSet":
        """A checked set from what a reader found."""
        rows = validated(raw, skip_bad_rows=skip_bad_rows)
        vectors = rows.vectors.astype(np.float32, copy=False)
        codes, names = codes_of(rows.identities)
        space = rows.space or Space(encoder=None, weights_sha256=None, dim=vectors.shape[1], normalised=False)
        return cls(
            _frozen(vectors), _frozen(codes), names, _frozen(rows.ids), rows.labels, space, rows.notes, rows.source
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
