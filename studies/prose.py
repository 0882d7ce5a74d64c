"""Single figures that sentences of docs/erasure.md say, from what was recorded of the audits."""

from collections.abc import Iterator
from typing import TypeVar

from studies.record_format import Measured, Record
from studies.summary import Records, difference, differences, matching, surely, worst_case
from studies.tables import bare, find, tar_of
from unface import UnfaceError
from unface.probe import PROBES

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


def taken(records: Records, audit: str, space: str, far: str) -> str:
    """The share of the raw TAR that is gone, in percent."""
    return _gone(*(_there(_point(records, audit, one, far).tar, audit, one, far).value for one in ("raw", space)))


def taken_adjusted(records: Records, audit: str, space: str, far: str) -> str:
    """The same of the TAR adjusted for context."""
    points = (_point(records, audit, one, far) for one in ("raw", space))
    return _gone(*(_there(point.adjusted, audit, space, far).value for point in points))


def of_the_shoot(records: Records, audit: str, space: str, far: str) -> str:
    """The share of TAR that is gone when it is adjusted for context, in percent."""
    point = _point(records, audit, space, far)
    whole, rest = _there(point.tar, audit, space, far), _there(point.adjusted, audit, space, far)
    return _gone(whole.value, rest.value)


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
    """In how many worst cases of the whole panel, raw, after ISP and after LEACE, one of these probes is chosen."""
    points = [worst_case(record, space, float(far)) for record, space in _cases(records)]
    return str(sum(point is not None and (not probes or point.probe in probes) for point in points))


def behind(records: Records, far: str, probe: str, other: str) -> str:
    """In how many of these cases a probe accepts less than another, at the same k."""
    found = 0
    for record, space in _cases(records):
        one, two = (find(record.space(space), name, record.k, float(far)) for name in (probe, other))
        if one is not None and two is not None and one.tar is not None and two.tar is not None:
            found += one.tar.value < two.tar.value
    return str(found)


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


def _cases(records: Records) -> Iterator[tuple[Record, str]]:
    """Spaces that every probe attacked; audits that differ in whom erasers were fitted on share a raw one."""
    for name, record in records.items():
        if set(PROBES) <= set(record.probes) and not name.endswith("_beyond"):
            yield from ((record, space) for space in ("raw", "isp", "leace") if space != "raw" or "_on-" not in name)


def _gone(whole: float, rest: float) -> str:
    return f"{100 * (1 - rest / whole):.0f}"


def _signed(share: float) -> str:
    return f"−{bare(-share)}" if share < 0 else bare(share)


def _there(found: Found | None, *words: str) -> Found:
    if not found:
        raise UnfaceError(f"docs/measured/erasure: nothing of {' '.join(words)}; is the audit recorded?")
    return found
