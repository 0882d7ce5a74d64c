"""What was done to a collection, and what reading it back showed: nothing removed is left, and lengths are right."""

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from unface._version import __version__
from unface.data.embeddings import OnBadRows
from unface.erase import Projection
from unface.errors import UnfaceError, without_user_info
from unface.output.write import write_file
from unface.result.words import count

# What rounding to the stored type leaves of a vector of length one, with room for the sum over dimensions.
_ROUNDING = {"float16": 4e-3, "float32": 4e-6, "float64": 4e-6}

# Stores of other packages name themselves and word their own notes.
_Printed = Annotated[str, AfterValidator(without_user_info)]


class Verified(BaseModel):
    """What reading everything back showed; see Check."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    rows: int
    largest_left: float
    worst_length: float
    allowed: float

    @classmethod
    def by(cls, check: "Check") -> "Verified":
        return cls(
            rows=check.rows,
            largest_left=check.largest_left,
            worst_length=check.worst_length,
            allowed=check.allowed,
        )


class Receipt(BaseModel):
    """One run, for whoever must show later that it was done."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    schema_: Literal["unface.receipt/1"] = Field("unface.receipt/1", alias="schema")
    unface: str = __version__
    finished: datetime
    where: _Printed
    """The collection, without a password."""
    projection_sha256: str
    kind: str
    rank: int
    dim: int
    released_dim: int | None = None
    """Of the vectors that are there now, if that is less than before."""
    rows: int
    degenerate: int
    """Vectors of which nothing was left; they are zero."""
    not_faces: int | None = None
    """Vectors that a face gate left as they are; null without a gate."""
    named_space: bool
    """Whether the source names the encoder it is from, so that this could be checked."""
    arrived: int = 0
    """Rows that others wrote with raw vectors during the swap or the purge; these were erased as well."""
    raw_purged: bool
    """Whether raw vectors were removed from its own files; copies and backups elsewhere are not touched."""
    verified: Verified | None
    recall_before: float | None = None
    """Of the ten nearest of 100 stored vectors, the share that the store's own index found; null if not measured."""
    recall_after: float | None = None
    files: int | None = None
    bad_rows: int | None = None
    """Rows whose vector was null, NaN or Inf; null where the first such row would have been refused."""
    on_bad_rows: OnBadRows = "fail"
    """What became of them: left out ("drop"), or written without a vector ("null")."""
    notes: list[_Printed] = []
    """What was not reached: archives, replicas, …"""

    @classmethod
    def of(cls, projection: Projection, where: str, **outcome: object) -> "Receipt":
        """Stamped with the projection and the time."""
        return cls.model_validate(
            {
                "finished": datetime.now(UTC).replace(microsecond=0),
                "where": where,
                "projection_sha256": projection.sha256,
                "kind": projection.kind,
                "rank": projection.rank,
                "dim": projection.dim,
                "released_dim": projection.released_dim if projection.released_dim != projection.dim else None,
                **outcome,
            }
        )

    def save(self, path: Path) -> None:
        """As JSON; replaces what is there."""
        write_file(path, self.content())

    def content(self) -> bytes:
        """The file."""
        return (self.model_dump_json(by_alias=True, indent=2) + "\n").encode()

    def sentence(self) -> str:
        """For the terminal."""
        done = f"{self.where}: {count(self.rows, 'vector')}, {self.rank} of {self.dim} dimensions removed ({self.kind})"
        if self.not_faces is not None:
            done += f"; {self.not_faces:,} are not faces and stay as they are"
        if self.released_dim is not None:
            done += f", released in {self.released_dim} dimensions"
        if self.degenerate:
            done += f"; {self.degenerate:,} have nothing left and are zero"
        if self.bad_rows:
            became = "left out" if self.on_bad_rows == "drop" else "written with a null in its place"
            done += f"; {count(self.bad_rows, 'row')} with a null, NaN or Inf vector {became}"
        if self.verified is not None and self.released_dim is None:
            done += f"; read back: at most {self.verified.largest_left:.1g} left along what was removed"
        if self.recall_before is not None and self.recall_after is not None:
            done += f"; recall@10 of its index {self.recall_before:.3f} before, {self.recall_after:.3f} after"
        if not self.named_space:
            done += "; the source does not say which encoder it is from, so this could not be checked"
        return done


@dataclass
class Check:
    """Adds up over batches; ``require`` then refuses what is not erased."""

    projection: Projection
    rows: int = 0
    degenerate: int = 0
    largest_left: float = 0.0
    """Largest |coordinate along a removed direction|, in units in which vectors have length one."""
    worst_length: float = 0.0
    """Largest |length − 1| of vectors that are not zero."""
    allowed: float = 0.0
    not_faces: int = 0
    """Vectors with something left that the projection's face gate does not take for faces."""

    def add(self, vectors: NDArray[np.generic]) -> None:
        """A batch (n, d) as it is stored."""
        allowed = _ROUNDING[vectors.dtype.name]
        lengths, left = self._measured(vectors, allowed)
        there = lengths != 0  # of NaN too: it must not pass for a vector of nothing
        self.rows += len(lengths)
        self.degenerate += int(np.count_nonzero(~there))
        self.allowed = max(self.allowed, allowed)
        if not there.any():
            return
        if self.projection.gate is not None:
            spared = left > allowed
            spared[spared] = self._is_no_face(vectors[spared].astype(np.float64), lengths[spared], allowed)
            self.not_faces += int(np.count_nonzero(spared))
            left[spared] = 0.0
        # NaN must not pass for small.
        self.largest_left = float(np.max([self.largest_left, left[there].max()]))
        self.worst_length = float(np.max([self.worst_length, np.abs(lengths[there] - 1).max()]))

    def require(self, rows: int, where: str) -> None:
        """Refuse too few rows, too many, and vectors from which something was not removed."""
        if self.rows != rows:
            raise UnfaceError(f"{where}: {self.rows:,} erased vectors, {rows:,} expected; run it again")
        if not self.largest_left <= self.allowed:
            raise UnfaceError(
                f"{where}: {self.largest_left:.2g} is left along a removed direction, at most {self.allowed:.2g}"
                " would be rounding; these vectors are not erased"
            )
        if self.projection.normalise and not self.worst_length <= self.allowed:
            raise UnfaceError(
                f"{where}: lengths differ from one by {self.worst_length:.2g}, at most {self.allowed:.2g} would be"
                " rounding; does the store scale vectors?"
            )

    def is_erased(self, vectors: NDArray[np.generic]) -> NDArray[np.bool_]:
        """(n,): which vectors of a batch (n, d) ``require`` would accept; adds nothing up."""
        allowed = _ROUNDING[vectors.dtype.name]
        lengths, left = self._measured(vectors, allowed)
        erased: NDArray[np.bool_] = left <= allowed
        if self.projection.gate is not None:
            erased[~erased] = self._is_no_face(vectors[~erased].astype(np.float64), lengths[~erased], allowed)
        if self.projection.normalise:
            erased &= np.abs(lengths - 1) <= allowed
        erased |= lengths == 0
        return erased

    def _measured(
        self, vectors: NDArray[np.generic], allowed: float
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(n,) lengths, and (n,) the largest part left along a removed direction, relative to them.

        Single precision is enough for what is clearly rounding, in a third of the time; all else is looked at exactly.
        """
        if vectors.dtype == np.float64:
            return self._exactly(vectors.astype(np.float64, copy=False))
        single = vectors.astype(np.float32, copy=False)
        with np.errstate(all="ignore"):  # what is not finite, or overflows here, is looked at again
            lengths = np.sqrt(np.vecdot(single, single).astype(np.float64))
            left = np.abs(self._left(single)).max(axis=1, initial=0.0) / lengths
        clear = (lengths > 0) & (left <= allowed / 2)
        if self.projection.normalise:
            clear &= np.abs(lengths - 1) <= allowed / 2
        again = ~clear
        lengths[again], left[again] = self._exactly(vectors[again].astype(np.float64))
        return lengths, left

    def _exactly(self, exact: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        lengths = np.sqrt(np.einsum("ij,ij->i", exact, exact))
        left = np.zeros(len(exact))
        there = lengths != 0
        left[there] = np.abs(self._left(exact[there])).max(axis=1, initial=0.0) / lengths[there]
        return lengths, left

    def readers(self) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
        """(d, r) directions that read what was removed, and (r,) what they read of the mean, if one was taken off.

        A vector of fewer dimensions has no part that was removed: there are no directions to read it with.
        """
        projection = self.projection
        if projection.released_dim != projection.dim:
            return np.zeros((projection.released_dim, 0)), None
        readers = projection.directions if projection.readers is None else projection.readers
        # Readers of an oblique projection are not of length one, and only their span matters.
        basis = readers if projection.readers is None else np.linalg.qr(readers)[0]
        return basis, None if projection.mean is None else basis.T @ projection.mean

    def _is_no_face(
        self, exact: NDArray[np.float64], lengths: NDArray[np.float64], allowed: float
    ) -> NDArray[np.bool_]:
        """(n,): which vectors the gate leaves as they are, whichever way they were rounded."""
        gate = self.projection.gate
        assert gate is not None
        no_face: NDArray[np.bool_] = exact @ gate.weights + gate.offset * lengths <= allowed * lengths
        return no_face

    @cached_property
    def _reading(self) -> dict[str, tuple[NDArray[np.floating], NDArray[np.floating] | None]]:
        """``readers`` by the precision that vectors are looked at in."""
        basis, mean = self.readers()
        return {
            kind: (basis.astype(kind), None if mean is None else mean.astype(kind)) for kind in ("float32", "float64")
        }

    def _left(self, vectors: NDArray[np.floating]) -> NDArray[np.floating]:
        basis, mean = self._reading[vectors.dtype.name]
        read: NDArray[np.floating] = vectors @ basis
        if mean is None:
            return read
        if not self.projection.normalise:
            return read - mean
        # Every vector has the mean's own part there, scaled with the vector: how much of it identifies nobody, but it
        # never points the other way.
        length = float(np.linalg.norm(mean))
        if length > 0:
            mean = mean / length
            read -= np.outer(np.maximum(read @ mean, 0), mean)
        return read
