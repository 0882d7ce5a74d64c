"""What was audited, how, and what a reader must know of it."""

from typing import Literal

from pydantic import Field

from unface.auditing.schema.numbers import Frozen
from unface.result.file import Run


class Finding(Frozen):
    """Something the reader must know before using the numbers."""

    severity: Literal["invalid", "warning", "note"]
    about: str
    text: str


class Given(Frozen):
    """What was audited. No path and no identity name."""

    name: str
    sha256: str
    rows: int
    identities: int
    dim: int
    encoder: str | None
    weights_sha256: str | None
    licence: str | None = Field(default=None, description="of the encoder's weights, where unface has a card for them")
    notes: list[str]


class Curated(Frozen):
    """The balanced part that was used."""

    images: int
    identities: int
    identities_dropped: int
    rows: int


class RoleCounts(Frozen):
    """Identities in each role; no identity has two."""

    fit: int
    train: int
    calibrate: int
    test: int
    seed: int | None
    sha256: str


class Protocol(Frozen):
    """How it was measured."""

    variant: Literal["unface", "paper"]
    fars: list[float] = Field(min_length=1)
    ks: list[int] = Field(min_length=1)
    seeds: int
    seed: int
    probes: list[str]
    score: str
    bootstrap: str
    bootstraps: int
    level: float
    impostor_quota: int | None


__all__ = ["Curated", "Finding", "Given", "Protocol", "RoleCounts", "Run"]
