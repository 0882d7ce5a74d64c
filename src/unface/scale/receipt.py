"""The receipt: what was sanitised, with which projection, when, and what was seen when it was read back."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from unface._version import __version__
from unface.data.files import written_whole
from unface.erase import Projection
from unface.scale.check import Check


class Verified(BaseModel):
    """What reading everything back showed; see Check."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    rows: int
    largest_left: float
    worst_length: float
    allowed: float

    @classmethod
    def by(cls, check: Check) -> "Verified":
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
    where: str
    """The collection, without a password."""
    projection_sha256: str
    kind: str
    rank: int
    dim: int
    rows: int
    degenerate: int
    """Vectors of which nothing was left; they are zero."""
    named_space: bool
    """Whether the collection said which encoder it is from, so that this could be checked."""
    raw_purged: bool
    """Whether raw vectors were removed from its own files; copies and backups elsewhere are not touched."""
    verified: Verified | None
    files: int | None = None
    notes: list[str] = []
    """What was not reached: archives, replicas, …"""

    @classmethod
    def of(cls, projection: Projection, where: str, **seen: object) -> "Receipt":
        """Stamped with the projection and the time."""
        return cls.model_validate(
            {
                "finished": datetime.now(UTC).replace(microsecond=0),
                "where": where,
                "projection_sha256": projection.sha256,
                "kind": projection.kind,
                "rank": projection.rank,
                "dim": projection.dim,
                **seen,
            }
        )

    def save(self, path: Path) -> None:
        """As JSON, by a rename once all is written."""
        with written_whole(path) as unfinished:
            unfinished.write_text(self.model_dump_json(by_alias=True, indent=2) + "\n", encoding="utf-8")

    def sentence(self) -> str:
        """For the terminal."""
        done = f"{self.where}: {self.rows:,} vectors, {self.rank} of {self.dim} dimensions removed ({self.kind})"
        if self.degenerate:
            done += f"; {self.degenerate:,} have nothing left and are zero"
        if self.verified is not None:
            done += f"; read back: at most {self.verified.largest_left:.1g} left along what was removed"
        if not self.named_space:
            done += "; it does not say which encoder it is from, so this could not be checked"
        return done
