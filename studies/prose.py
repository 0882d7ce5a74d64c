"""Single figures that sentences of docs/erasure.md say, from what was recorded of the audits."""

from typing import TypeVar

from studies.record_format import Measured
from studies.summary import Records, difference, differences, matching, surely, worst_case
from studies.tables import bare, tar_of
from unface import UnfaceError

Found = TypeVar("Found")


def tar(records: Records, audit: str, space: str, far: str) -> str:
    """Worst-case TAR in percent."""
    point = _point(records, audit, space, far)
    return bare(_there(point.tar, audit, space, far).value)


def tar_interval(records: Records, audit: str, space: str, far: str) -> str:
    """The same with its interval."""
    point = _point(records, audit, space, far)
    return tar_of(_there(point.tar, audit, space, far))


def times(records: Records, audit: str, space: str, far: str) -> str:
    """As a multiple of chance."""
    point = _point(records, audit, space, far)
    return f"{_there(point.tar, audit, space, far).times_chance:,.0f}"


def adjusted(records: Records, audit: str, space: str, far: str) -> str:
    """For context, in percent."""
    point = _point(records, audit, space, far)
    return bare(_there(point.adjusted, audit, space, far).value)


def lead(records: Records, audit: str, eraser: str, other: str, far: str) -> str:
    """By how many points an eraser leaves less than another space, with the paired interval."""
    found = _there(difference(_there(records.get(audit), audit), eraser, other, float(far)), audit, eraser, other, far)
    value, high, low = (_signed(-end) for end in found.points)
    return f"{value} [{low}, {high}]"


def compared(records: Records, eraser: str, other: str, far: str, *audits: str) -> str:
    """How many paired differences there are, in audits whose names match."""
    return str(len(differences(matching(records, *audits), eraser, other, float(far))))


def below(records: Records, eraser: str, other: str, far: str, *audits: str) -> str:
    """How many of them are surely below zero."""
    return str(sum(surely(one)[0] for one in differences(matching(records, *audits), eraser, other, float(far))))


def above(records: Records, eraser: str, other: str, far: str, *audits: str) -> str:
    """How many are surely above."""
    return str(sum(surely(one)[1] for one in differences(matching(records, *audits), eraser, other, float(far))))


def speaks(records: Records, far: str, *probes: str) -> str:
    """In how many worst cases, raw and after ISP and LEACE, one of these probes has the most on calibrate; or all."""
    points = [worst_case(record, space, float(far)) for record in records.values() for space in ("raw", "isp", "leace")]
    return str(sum(point is not None and (not probes or point.probe in probes) for point in points))


def kept(records: Records, measure: str, space: str, *audits: str) -> str:
    """The least and the most of a measure, in percent, that is kept in audits whose names match."""
    found = [
        100 * one.kept.value
        for record in matching(records, *audits).values()
        for one in record.space(space).utility
        if one.measure == measure
    ]
    least, most = (f"{end:.0f}" for end in (min(_there(found, measure, *audits)), max(found)))
    return least if least == most else f"{least} to {most}"


def identities(records: Records, audit: str, role: str) -> str:
    """In one role; ``fit`` is who erasers were fitted on, wherever they came from."""
    record = _there(records.get(audit), audit)
    return f"{record.spaces[1].fit_identities if role == 'fit' else record.identities[role]:,}"


def rank(records: Records, audit: str) -> str:
    """How many dimensions were removed."""
    return str(_there(records.get(audit), audit).spaces[1].rank)


def directions(records: Records, audits: str) -> str:
    """Principal components of the people fitted on that have 1 % of the first singular value or more."""
    found = [_there(one.space("pca").telling, name) for name, one in matching(records, audits).items()]
    least, most = min(_there(found, audits)), max(found)
    return f"{least}" if least == most else f"{least} to {most}"


def last_direction(records: Records, audit: str, space: str) -> str:
    """Singular value of the last direction removed, in percent of the first."""
    record = _there(records.get(audit), audit)
    return bare(_there(record.space(space).last_direction, audit, space))


def shuffled(records: Records) -> str:
    """Measurements with identities shuffled, over all audits."""
    return str(sum(record.shuffled for record in records.values()))


def at_chance(records: Records) -> str:
    """How many of them were at chance."""
    return str(sum(record.shuffled_at_chance for record in records.values()))


def _point(records: Records, audit: str, space: str, far: str) -> Measured:
    return _there(worst_case(_there(records.get(audit), audit), space, float(far)), audit, space, far)


def _signed(share: float) -> str:
    return f"−{bare(-share)}" if share < 0 else bare(share)


def _there(found: Found | None, *words: str) -> Found:
    if not found:
        raise UnfaceError(f"docs/measured/erasure: nothing of {' '.join(words)}; is the audit recorded?")
    return found
