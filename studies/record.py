"""What pages show of an audit, small enough to be kept with them: no curves, no hyper-parameters, no thresholds.

    python -m studies.record AUDITS

writes ``docs/measured/erasure/<audit>.json`` for every folder of AUDITS that holds an audit.json, beside those that are
there. Of the controls only the worst case is kept. Rows of numbers are lists whose columns the file names.
"""

import sys
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from studies import measured
from studies.measured import Part, first_error, json_lines
from unface import UnfaceError
from unface.auditing.sweeps import Sweep, Sweeps
from unface.result.audit import AUDIT_FILE, AuditResult, Change, ContextAdjusted, Point, SpaceResult
from unface.result.numbers import Estimate, Share

HOME = measured.HOME / "erasure"
SCHEMA = "unface.erasure-record/2"
SHOWN_K = 4
MARKS = {"resolved": "", "coarse": "~", "refused": "refused"}
DIGITS = 6  # of shares, of which pages show three at most; multiples of chance are shown in full


class Tar(NamedTuple):
    """Accepted mated pairs of all, the interval, and the multiple of chance as the audit gave it.

    Chance is the target FAR, in audits of before 0.2.0 the achieved one; pages divide by the target.
    """

    accepted: int
    mated: int
    low: float
    high: float
    times_chance: float

    @property
    def value(self) -> float:
        return self.accepted / self.mated


class ValueAndEnds(NamedTuple):
    """A value and the ends of its interval; the level is the record's."""

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
    adjusted: ValueAndEnds | None


class LeftOut(NamedTuple):
    """The worst case at one k and rate without mated pairs of like surroundings; the most left out first."""

    k: int
    far: float
    accepted: int
    mated: int


class Difference(NamedTuple):
    """Worst-case TAR less that of another space, paired, at the k that pages show."""

    against: str
    far: float
    points: ValueAndEnds


class Retained(NamedTuple):
    """One measure of utility: its raw value, and the share that is kept."""

    measure: str
    queries: int
    raw: float
    kept: ValueAndEnds


class Swept(NamedTuple):
    """One rank, or one number of fit identities."""

    method: str
    rank: int
    fit_identities: int
    probe: str
    tar: Tar
    kept: dict[str, float]


ROWS: dict[str, type[tuple[object, ...]]] = {
    "points": Measured,
    "left_out": LeftOut,
    "changes": Difference,
    "utility": Retained,
    "sweep": Swept,
    "tar": Tar,
    "kept": ValueAndEnds,
}
COLUMNS = {name: list(row.__annotations__) for name, row in ROWS.items()}


class RecordedSpace(Part):
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

    def worst(self, k: int, far: float) -> Measured | None:
        """The worst case."""
        return next((point for point in self.points if point.worst and (point.k, point.far) == (k, far)), None)

    def point(self, probe: str, k: int, far: float) -> Measured | None:
        """Of one probe."""
        return next((point for point in self.points if (point.probe, point.k, point.far) == (probe, k, far)), None)

    def fewer_pairs(self, k: int, far: float) -> list[LeftOut]:
        """The worst case with ever more mated pairs left out."""
        return [left for left in self.left_out[::-1] if (left.k, left.far) == (k, far)]


class RecordedSweep(Part):
    """Over ranks or over numbers of fit identities."""

    over: str
    k: int
    far: float
    resolution: str
    seeds: int
    points: list[Swept]


class Record(Part):
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
        """The one of several that pages show."""
        return shown_k(self.ks)

    @property
    def rank(self) -> int:
        """That erasers and controls have in common."""
        return self.spaces[1].rank

    def space(self, name: str) -> RecordedSpace:
        """By its name."""
        return next(space for space in self.spaces if space.name == name)

    def worst(self, space: str, far: float) -> Measured | None:
        """At the k that pages show."""
        return self.space(space).worst(self.k, far)


def main() -> None:
    """Record every audit of a folder."""
    HOME.mkdir(parents=True, exist_ok=True)
    audits = sorted(Path(sys.argv[1]).glob(f"*/{AUDIT_FILE}"))
    if not audits:
        raise SystemExit(f"{sys.argv[1]}: no folder in it holds an {AUDIT_FILE}; give what studies.erasure wrote")
    for path in audits:
        record = record_of(path.parent.name, AuditResult.load(path))
        (HOME / f"{record.audit}.json").write_text(record_json(record), encoding="utf-8")
    print(f"{len(audits)} audits recorded, {len(list(HOME.glob('*.json')))} there")


def read_records(folder: Path = HOME) -> dict[str, Record]:
    """By the audit's name; audits that are not recorded are read as if they were."""
    records = [record_of(path.parent.name, AuditResult.load(path)) for path in folder.glob(f"*/{AUDIT_FILE}")]
    records += [read_record(path) for path in folder.glob("*.json")]
    return {record.audit: record for record in sorted(records, key=lambda record: record.audit)}


def read_record(path: Path) -> Record:
    """One file, refused if its columns are not those of this version."""
    try:
        record = Record.model_validate_json(path.read_text(encoding="utf-8"))
    except ValidationError as error:
        raise UnfaceError(f"{path.name}: {first_error(error)}; record the audit again") from None
    if (record.record, record.columns) != (SCHEMA, COLUMNS):
        raise UnfaceError(f"{path.name}: its columns are not those of {SCHEMA}; record the audit again")
    return record


def record_json(record: Record) -> str:
    """As a file, a row of numbers to a line."""
    return f"{json_lines(record.model_dump())}\n"


def record_of(name: str, result: AuditResult) -> Record:
    """Of an audit at hand."""
    roles, protocol, shuffled = result.roles, result.protocol, result.controls.shuffled_identities
    return Record(
        audit=name,
        unface=result.run.unface,
        measured=result.run.started[:10],
        vectors_sha256=result.source.sha256,
        dim=result.source.dim,
        verdict=result.verdict,
        valid=result.valid,
        variant=protocol.variant,
        fars=protocol.far,
        ks=protocol.k,
        probes=protocol.probe,
        seeds=protocol.seeds,
        bootstraps=protocol.bootstraps,
        level=protocol.level,
        identities={"fit": roles.fit, "train": roles.train, "calibrate": roles.calibrate, "test": roles.test},
        images=result.curated.images,
        shuffled=len(shuffled),
        shuffled_at_chance=sum(point.passed for point in shuffled),
        spaces=[_space(space, shown_k(protocol.k)) for space in result.spaces],
        sweeps=[_sweep(sweep) for sweep in Sweeps.of(result)],
    )


def shown_k(ks: list[int]) -> int:
    """The k that pages show of several."""
    return SHOWN_K if SHOWN_K in ks else ks[0]


def _space(space: SpaceResult, k: int) -> RecordedSpace:
    erasure = space.erasure
    control = erasure is not None and erasure.control
    sizes = erasure.spectrum if erasure is not None else []
    changes = [] if control else [change for change in space.changes if change.k == k]
    return RecordedSpace(
        name=space.name,
        control=control,
        rank=0 if erasure is None else erasure.rank,
        fit_identities=None if erasure is None else erasure.fit_identities,
        telling=sum(size >= 0.01 * sizes[0] for size in sizes) if sizes else None,
        last_direction=_short(sizes[erasure.rank - 1] / sizes[0]) if erasure is not None and sizes else None,
        points=[_point(point) for point in space.points if point.worst or not control],
        left_out=[
            LeftOut(point.k, point.far, left.tar.numerator, left.tar.denominator)
            for point in space.points
            if point.worst and not control and point.context_adjusted is not None
            for left in point.context_adjusted.without_suspects
        ],
        changes=[Difference(change.against, change.far, _ends(change)) for change in changes],
        utility=[
            Retained(kept.measure, kept.queries, _short(kept.raw.value), _ends(kept.retained)) for kept in space.utility
        ],
    )


def _point(point: Point) -> Measured:
    tar, adjusted = None, None
    if point.tar is not None and point.times_chance is not None:
        tar = _tar(point.tar, point.times_chance)
    if point.context_adjusted is not None and point.context_adjusted.value is not None:
        adjusted = _ends(point.context_adjusted)
    return Measured(point.probe, point.k, point.far, MARKS[point.resolution], point.worst, tar, adjusted)


def _sweep(sweep: Sweep) -> RecordedSweep:
    points = []
    for point in sweep.points:
        kept = {kept.measure: _short(kept.retained.value) for kept in point.utility}
        tar = _tar(point.tar, point.times_chance)
        points.append(Swept(point.method, point.rank, point.fit_identities, point.probe, tar, kept))
    return RecordedSweep(
        over=sweep.over, k=sweep.k, far=sweep.far, resolution=sweep.resolution, seeds=sweep.seeds, points=points
    )


def _tar(tar: Share, times_chance: float) -> Tar:
    return Tar(tar.numerator, tar.denominator, _short(tar.low), _short(tar.high), round(times_chance, 3))


def _ends(estimate: Estimate | Change | ContextAdjusted) -> ValueAndEnds:
    assert estimate.value is not None
    return ValueAndEnds(_short(estimate.value), _short(estimate.low), _short(estimate.high))


def _short(number: float) -> float:
    """To more digits than any page shows."""
    return float(f"{number:.{DIGITS}g}")


if __name__ == "__main__":
    main()
