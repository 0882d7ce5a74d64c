"""The record of an audit as a file: rows of numbers, whose columns it names."""

import json
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from unface import UnfaceError

SCHEMA = "unface.erasure-record/2"
K = 4


class Tar(NamedTuple):
    """Mated pairs accepted of all, the interval, and how often the TAR of an attacker that knows nothing."""

    accepted: int
    mated: int
    low: float
    high: float
    times_chance: float

    @property
    def value(self) -> float:
        return self.accepted / self.mated


class Interval(NamedTuple):
    """A value and its ends."""

    value: float
    low: float
    high: float


class Measured(NamedTuple):
    """One probe at one k and rate, marked ~ if coarse or refused; null where refused or context was not measured."""

    probe: str
    k: int
    far: float
    mark: str
    worst: bool
    tar: Tar | None
    adjusted: Interval | None


class LeftOut(NamedTuple):
    """The worst case at one k and rate without mated pairs of like surroundings; the most left out first."""

    k: int
    far: float
    accepted: int
    mated: int


class Difference(NamedTuple):
    """Worst-case TAR less that of another space, paired, at the k that speaks for the audit."""

    against: str
    far: float
    points: Interval


class Retained(NamedTuple):
    """One measure of utility: what it was raw, and the share that is kept."""

    measure: str
    queries: int
    raw: float
    kept: Interval


class Swept(NamedTuple):
    """One rank, or one number of fit identities."""

    method: str
    rank: int
    fit_identities: int
    probe: str
    tar: Tar
    kept: dict[str, float]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class RecordedSpace(_Part):
    """The raw space (rank 0), an eraser's or a control's; ``telling`` directions have 1 % of the first or more."""

    name: str
    control: bool
    rank: int
    fit_identities: int | None
    telling: int | None
    last_direction: float | None
    """Of those removed, as a share of the first."""
    points: list[Measured]
    left_out: list[LeftOut]
    changes: list[Difference]
    utility: list[Retained]


class RecordedSweep(_Part):
    """Over ranks or over numbers of fit identities."""

    over: str
    k: int
    far: float
    resolution: str
    seeds: int
    points: list[Swept]


ROWS = {
    "points": Measured,
    "left_out": LeftOut,
    "changes": Difference,
    "utility": Retained,
    "sweep": Swept,
    "tar": Tar,
    "kept": Interval,
}
COLUMNS = {name: list(row.__annotations__) for name, row in ROWS.items()}


class Record(_Part):
    """One audit; ``audit`` is <encoder>_<set>_<way of fitting>, ``measured`` a day."""

    record: str = SCHEMA
    audit: str
    unface: str
    measured: str
    vectors_sha256: str
    dim: int
    verdict: str
    valid: bool
    variant: str
    fars: list[float]
    ks: list[int]
    probes: list[str]
    seeds: int
    bootstraps: int
    level: float
    identities: dict[str, int]
    images: int
    shuffled: int
    shuffled_at_chance: int
    columns: dict[str, list[str]] = COLUMNS
    spaces: list[RecordedSpace]
    sweeps: list[RecordedSweep]

    @property
    def k(self) -> int:
        """That speaks for the audit."""
        return shown_k(self.ks)

    def space(self, name: str) -> RecordedSpace:
        """By its name."""
        return next(space for space in self.spaces if space.name == name)


def shown_k(ks: list[int]) -> int:
    """The k that pages show of several."""
    return K if K in ks else ks[0]


def read_record(path: Path) -> Record:
    """One file, refused if its columns are not those of this version."""
    try:
        record = Record.model_validate_json(path.read_text(encoding="utf-8"))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise UnfaceError(f"{path.name}: {where}: {first['msg'].lower()}; record the audit again") from None
    if (record.record, record.columns) != (SCHEMA, COLUMNS):
        raise UnfaceError(f"{path.name}: its columns are not those of {SCHEMA}; record the audit again")
    return record


def written(record: Record) -> str:
    """As JSON, a row of numbers to a line."""
    return f"{spread(record.model_dump())}\n"


def spread(value: object, margin: str = "") -> str:
    """JSON with one line for each entry of a dictionary and for each row of a table; rows are not set in."""
    inner = f"{margin} "
    if isinstance(value, dict) and value:
        lines = [f"{inner}{json.dumps(key, ensure_ascii=False)}: {spread(one, inner)}" for key, one in value.items()]
        return "\n".join(["{", ",\n".join(lines), f"{margin}}}"])
    if isinstance(value, list) and value and isinstance(value[0], list | tuple | dict):
        rows = (
            f"{inner}{spread(one, inner)}" if isinstance(one, dict) else json.dumps(one, ensure_ascii=False)
            for one in value
        )
        return "\n".join(["[", ",\n".join(rows), f"{margin}]"])
    return json.dumps(value, ensure_ascii=False)
