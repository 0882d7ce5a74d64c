"""What pages say of an audit, small enough to be kept with them: no curves, no hyper-parameters, no thresholds.

    python -m studies.record AUDITS

writes ``docs/measured/erasure/<audit>.json`` for every folder of AUDITS that holds an audit.json, beside those that are
there. Of the controls only the worst case is kept.
"""

import sys
from pathlib import Path

from studies.record_format import (
    Difference,
    Interval,
    LeftOut,
    Measured,
    Record,
    RecordedSpace,
    RecordedSweep,
    Retained,
    Swept,
    Tar,
    read_record,
    shown_k,
    written,
)
from unface.auditing import AUDIT_FILE, AuditResult, load_audit
from unface.auditing.schema import Change, ContextAdjusted, Estimate, Point, SpaceResult, Sweep
from unface.result import numbers

HOME = Path(__file__).resolve().parents[1] / "docs" / "measured" / "erasure"
MARKS = {"resolved": "", "coarse": "~", "refused": "refused"}
DIGITS = 6  # of shares, of which pages show three at most; multiples of chance are shown in full


def main() -> None:
    """Record every audit of a folder."""
    HOME.mkdir(parents=True, exist_ok=True)
    found = sorted(Path(sys.argv[1]).glob(f"*/{AUDIT_FILE}"))
    if not found:
        raise SystemExit(f"{sys.argv[1]}: no folder in it holds an {AUDIT_FILE}; give what studies.erasure wrote")
    for path in found:
        (HOME / f"{path.parent.name}.json").write_text(written(recorded(path)), encoding="utf-8")
    print(f"{len(found)} audits recorded, {len(list(HOME.glob('*.json')))} there")


def read_records(folder: Path = HOME) -> dict[str, Record]:
    """By the audit's name; audits that are not recorded are read as if they were."""
    records = [recorded(path) for path in folder.glob(f"*/{AUDIT_FILE}")]
    records += [read_record(path) for path in folder.glob("*.json")]
    return {record.audit: record for record in sorted(records, key=lambda record: record.audit)}


def recorded(path: Path) -> Record:
    """Of an audit.json, named by its folder."""
    return record_of(path.parent.name, load_audit(path))


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
        fars=protocol.fars,
        ks=protocol.ks,
        probes=protocol.probes,
        seeds=protocol.seeds,
        bootstraps=protocol.bootstraps,
        level=protocol.level,
        identities={"fit": roles.fit, "train": roles.train, "calibrate": roles.calibrate, "test": roles.test},
        images=result.curated.images,
        shuffled=len(shuffled),
        shuffled_at_chance=sum(point.passed for point in shuffled),
        spaces=[_space(space, shown_k(protocol.ks)) for space in result.spaces],
        sweeps=[_sweep(sweep) for sweep in result.sweeps],
    )


def _space(space: SpaceResult, k: int) -> RecordedSpace:
    erasure = space.erasure
    control = erasure is not None and erasure.control
    sizes = erasure.spectrum if erasure is not None else []
    return RecordedSpace(
        name=space.name,
        control=control,
        rank=0 if erasure is None else erasure.rank,
        fit_identities=None if erasure is None else erasure.fit_identities,
        telling=sum(size >= 0.01 * sizes[0] for size in sizes) if sizes else None,
        last_direction=_short(sizes[erasure.rank - 1] / sizes[0]) if erasure is not None and sizes else None,
        points=[_point(point) for point in space.points if point.worst or not control],
        left_out=[one for point in space.points if point.worst and not control for one in _left_out(point)],
        changes=[
            Difference(one.against, one.far, _interval(one)) for one in space.changes if one.k == k and not control
        ],
        utility=[
            Retained(one.measure, one.queries, _short(one.raw.value), _interval(one.retained)) for one in space.utility
        ],
    )


def _point(point: Point) -> Measured:
    tar, adjusted = None, None
    if point.tar is not None and point.times_chance is not None:
        tar = _tar(point.tar, point.times_chance)
    if point.context_adjusted is not None and point.context_adjusted.value is not None:
        adjusted = _interval(point.context_adjusted)
    return Measured(point.probe, point.k, point.far, MARKS[point.resolution], point.worst, tar, adjusted)


def _left_out(point: Point) -> list[LeftOut]:
    adjusted = point.context_adjusted
    return [
        LeftOut(point.k, point.far, left.tar.numerator, left.tar.denominator)
        for left in (adjusted.without_suspects if adjusted is not None else [])
    ]


def _sweep(sweep: Sweep) -> RecordedSweep:
    points = []
    for one in sweep.points:
        kept = {kept.measure: _short(kept.retained.value) for kept in one.utility}
        tar = _tar(one.tar, one.times_chance)
        points.append(Swept(one.method, one.rank, one.fit_identities, one.probe, tar, kept))
    return RecordedSweep(
        over=sweep.over, k=sweep.k, far=sweep.far, resolution=sweep.resolution, seeds=sweep.seeds, points=points
    )


def _tar(tar: Estimate, times_chance: float) -> Tar:
    return Tar(tar.numerator, tar.denominator, _short(tar.low), _short(tar.high), round(times_chance, 3))


def _interval(found: numbers.Estimate | Change | ContextAdjusted) -> Interval:
    assert found.value is not None
    return Interval(_short(found.value), _short(found.low), _short(found.high))


def _short(number: float) -> float:
    """To more digits than any page shows."""
    return float(f"{number:.{DIGITS}g}")


if __name__ == "__main__":
    main()
