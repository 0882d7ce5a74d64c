"""What a run came to: counts by reason, for ``synth.json`` and for people."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from unface._version import __version__

SCHEMA = "unface.synth/1"


@dataclass(frozen=True)
class Synthesised:
    """A folder of pictures of people who do not exist."""

    out: Path
    plan: Mapping[str, object]
    identities: Mapping[str, int]
    """By name of the folder: the number of the candidate, which with the seed is the person."""
    images: int
    refused: Mapping[str, int]
    """Candidates that were not taken, by reason."""
    tries: int
    rejected: Mapping[str, int]
    """Pictures that were not taken, by reason; the first that applied."""

    @property
    def accepted(self) -> int:
        return len(self.identities) * self.images

    def sentences(self) -> tuple[str, ...]:
        """What a person wants to know, in lines."""
        people, refused = len(self.identities), sum(self.refused.values())
        return (
            f"{self.out}: {people} people who do not exist, {self.images} pictures each",
            f"people: {people} of {people + refused} candidates taken{_reasons(self.refused)}",
            f"pictures: {self.accepted} of {self.tries} tries accepted "
            f"({self.accepted / self.tries:.0%}){_reasons(self.rejected)}",
        )

    def as_json(self) -> dict[str, object]:
        """``synth.json``; nothing in it depends on when or how often a run was cut off."""
        return {
            "schema": SCHEMA,
            "unface": __version__,
            "plan": dict(self.plan),
            "candidates": {"taken": len(self.identities), "refused": dict(self.refused)},
            "pictures": {"tries": self.tries, "accepted": self.accepted, "rejected": dict(self.rejected)},
            "identities": dict(self.identities),
        }


def sorted_counts(counts: Counter[str]) -> dict[str, int]:
    """Most frequent first, then by name: an order of their own, not of the run's."""
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _reasons(counts: Mapping[str, int]) -> str:
    return "; " + ", ".join(f"{count} {reason}" for reason, count in counts.items()) if counts else ""
