"""Two results of one kind compared number by number: what became worse, by more than chance explains.

Where both results list the same people beside them, a difference is paired person by person. Elsewhere its interval is
the sum of both intervals' widths, which holds however the two results depend on each other. All intervals of one
comparison hold together at 95 %: half of the error is shared by the numbers that a result is quoted by, half by all
others.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from statistics import NormalDist

from unface.errors import UnfaceError
from unface.result.numbers import Estimate
from unface.result.readings import Counts, Readable
from unface.result.words import count

SCHEMA = "unface.diff/1"
LEVEL = 0.95
# A spread of fewer people than this is not known well enough to pair by.
_LEAST_PEOPLE = 10
# A number that may be worse by so much of its old value, and by so many points, is not known to be no worse.
_VAGUE_SHARE, _VAGUE_LEAST = 0.5, 0.01
# Of the smaller of both lists of people, to be in the other one too.
_LEAST_SHARED = 0.5
_NORMAL = NormalDist()


class Trend(StrEnum):
    """What a difference shows."""

    WORSE = "worse"
    BETTER = "better"
    SAME = "no clear change"
    WIDE = "may be worse"
    """Not clearly worse, but its interval reaches beyond the margin that was given."""
    VAGUE = "too wide to tell"
    """Not clearly worse, but its interval reaches half of the old value beyond it, or more, without a margin given."""
    MISSING = "not compared"


@dataclass(frozen=True)
class Difference:
    """One number in both results; ``difference`` is new less old."""

    what: str
    where: str
    at: str
    better: str
    headline: bool
    old: Estimate | None
    new: Estimate | None
    difference: Estimate | None
    people: int | None
    """That are in both results and were compared one by one; None where intervals were added up."""
    trend: Trend
    why: str = ""
    """Why it was not compared."""

    @property
    def name(self) -> str:
        """In one line."""
        return f"{self.where}: {self.what}, {self.at}" if self.where else f"{self.what}, {self.at}"


@dataclass(frozen=True)
class Diff:
    """All numbers of two results, and whether the new one is worse."""

    old: str
    new: str
    notes: tuple[str, ...]
    blocked: tuple[str, ...]
    """Why not even equal numbers would mean that nothing became worse."""
    rows: tuple[Difference, ...]
    added: int
    """Numbers that only the new result has."""
    margin: float | None

    @property
    def exit_code(self) -> int:
        """3 worse, 4 inconclusive, 0 no regression."""
        if self.count(Trend.WORSE):
            return 3
        unknown = self.blocked or self.count(Trend.MISSING) or self.count(Trend.WIDE)
        return 4 if unknown or not self.rows else 0

    @property
    def verdict(self) -> str:
        """Worse, inconclusive, no regression; too wide to tell, with the exit code of no regression."""
        fine = Trend.VAGUE.value if self.count(Trend.VAGUE) else "no regression"
        return {0: fine, 3: "worse", 4: "inconclusive"}[self.exit_code]

    @property
    def summary(self) -> str:
        """The verdict in one sentence, with the exit code."""
        total = count(len(self.rows), "number")
        worse, missing, wide = (self.count(trend) for trend in (Trend.WORSE, Trend.MISSING, Trend.WIDE))
        reasons = [*self.blocked]
        reasons += [f"{missing} of {total} could not be compared"] if missing else []
        reasons += [f"{wide} of {total} may be worse by more than the margin"] if wide else []
        reasons += ["there is nothing to compare"] if not self.rows else []
        vague = self.count(Trend.VAGUE)
        doubt = f", but {vague} may be worse by half of the old value or more; --margin sets a limit" if vague else ""
        text = {
            0: f"none of {total} is clearly worse{doubt}",
            3: f"{worse} of {total} {'is' if worse == 1 else 'are'} clearly worse",
            4: "; ".join(reasons),
        }[self.exit_code]
        return f"{self.verdict.capitalize()}: {text} (exit {self.exit_code})."

    def count(self, trend: Trend) -> int:
        """How many numbers show this."""
        return sum(row.trend is trend for row in self.rows)

    def as_dict(self) -> dict[str, object]:
        """The comparison as JSON has it."""
        head = {"schema": SCHEMA, "verdict": self.verdict, "exit_code": self.exit_code, "summary": self.summary}
        return {**head, "level": LEVEL, **asdict(self)}


def compare(
    old: Readable,
    new: Readable,
    old_people: Mapping[str, Counts] | None = None,
    new_people: Mapping[str, Counts] | None = None,
    *,
    margin: float | None = None,
) -> Diff:
    """``…_people`` are counts of each person by space; see ``unface.result.readings.counts_beside``.

    With a ``margin``, a number that results are quoted by is inconclusive where its interval reaches further than that
    towards worse.
    """
    if old.schema_ != new.schema_:
        raise UnfaceError(f"the first file is {old.schema_}, the second {new.schema_}; give two results of one kind")
    before, after = ({one.key: one for one in result.readings()} for result in (old, new))
    pairs = [(one, after.get(key)) for key, one in before.items()]
    ready = [(one, two) for one, two in pairs if two is not None and one.found is not None and two.found is not None]
    quoted = sum(one.headline or two.headline for one, two in ready)
    others = len(ready) - quoted
    rows = []
    for one, two in pairs:
        headline = one.headline or (two is not None and two.headline)
        row = Difference(
            *one.key, one.better, headline, one.found, two.found if two else None, None, None, Trend.MISSING
        )
        if two is None:
            rows.append(replace(row, why="the new result does not have it"))
        elif one.found is None or two.found is None:
            which = "the old result" if one.found is None else "the new result"
            rows.append(replace(row, why=f"{which} could not measure it"))
        else:
            share = (1 if not quoted or not others else 2) * (quoted if headline else others)
            z = _NORMAL.inv_cdf(1 - (1 - LEVEL) / share / 2)
            before_of, after_of = (old_people or {}).get(one.listed, {}), (new_people or {}).get(two.listed, {})
            both = _in_both(one.found, two.found, before_of, after_of)
            if both:
                found = _paired(_side(one.found, before_of, both), _side(two.found, after_of, both), z)
            else:
                found = _added(one.found, two.found, z)
            trend = _trend(found, one.better, margin if headline else None)
            if headline and margin is None and trend is Trend.SAME and _reach(found, one.better) > _vague(one.found):
                trend = Trend.VAGUE
            rows.append(replace(row, difference=found, people=len(both) or None, trend=trend))
    rows.sort(key=lambda row: not row.headline)
    blocked = [
        f"the {which} result is invalid; its findings say why"
        for which, one in (("old", old), ("new", new))
        if not one.valid
    ]
    settings = old.conditions(), new.conditions()
    blocked += [
        f"{name} differ (old: {settings[0][name]}; new: {settings[1].get(name, 'none')})"
        for name in settings[0]
        if settings[0][name] != settings[1].get(name)
    ]
    return Diff(old.subject, new.subject, _notes(rows), tuple(blocked), tuple(rows), len(after.keys() - before), margin)


def _notes(rows: list[Difference]) -> tuple[str, ...]:
    compared = [row for row in rows if row.difference is not None]
    paired = [row for row in compared if row.people is not None]
    notes = []
    if paired:
        people = {row.people for row in paired if row.people is not None}
        notes.append(f"* paired: {max(people):,} people are in both results and were compared one by one.")
    if len(paired) < len(compared):
        which = "The other intervals" if paired else "Intervals"
        notes.append(
            f"{which} are unpaired: the widths of both results' intervals are added, which holds "
            "however the two depend on each other."
        )
    if any(row.trend is Trend.VAGUE for row in compared):
        notes.append(
            "Intervals are wider than those of an audit's own changes, whose two sides share people and thresholds: "
            f"here the noise of both thresholds is added, and those of all {len(compared):,} numbers hold together."
        )
    return tuple(notes)


def _reach(found: Estimate, better: str) -> float:
    """How much worse it may be."""
    return found.high if better == "lower" else -found.low


def _vague(old: Estimate) -> float:
    """What a comparison has to exclude to say anything."""
    return max(_VAGUE_SHARE * old.value, _VAGUE_LEAST)


def _trend(found: Estimate, better: str, margin: float | None) -> Trend:
    sign = 1 if better == "lower" else -1
    toward_worse = sorted((sign * found.low, sign * found.high))
    if toward_worse[0] > 0:
        return Trend.WORSE
    if toward_worse[1] < 0:
        return Trend.BETTER
    return Trend.WIDE if margin is not None and toward_worse[1] > margin else Trend.SAME


def _added(old: Estimate, new: Estimate, z: float) -> Estimate:
    """The sum of both widths on each side, at another number of standard errors than the files have."""
    old_scale, new_scale = (z / _z(one.level) for one in (old, new))
    value = new.value - old.value
    down = new_scale * max(new.value - new.low, 0) + old_scale * max(old.high - old.value, 0)
    up = new_scale * max(new.high - new.value, 0) + old_scale * max(old.value - old.low, 0)
    return Estimate(value, value - down, value + up, LEVEL)


def _in_both(old: Estimate, new: Estimate, old_of: Counts, new_of: Counts) -> list[str]:
    """People in both listings, if these belong to the numbers; empty where pairing is not possible."""
    for counts, found in ((old_of, old), (new_of, new)):
        accepted, pairs = (sum(one[at] for one in counts.values()) for at in (0, 1))
        if not pairs or not math.isclose(accepted / pairs, found.value, rel_tol=1e-9, abs_tol=1e-12):
            return []
    both = sorted(name for name in old_of.keys() & new_of.keys() if old_of[name][1] and new_of[name][1])
    return both if len(both) >= max(_LEAST_PEOPLE, _LEAST_SHARED * min(len(old_of), len(new_of))) else []


@dataclass(frozen=True)
class _Side:
    """A rate over the people in both results: what each adds to its error, and the error that people do not explain."""

    rate: float
    parts: list[float]
    rest: float


def _side(found: Estimate, counts: Counts, both: list[str]) -> _Side:
    """A file's interval also holds how thresholds vary with the people they were set on: that is the rest."""
    width = (found.high - found.low) / 2 / _z(found.level)
    _, everybody = _parts(list(counts.values()))
    rate, parts = _parts([counts[name] for name in both])
    return _Side(rate, parts, math.sqrt(max(width**2 - _variance(everybody), 0)))


def _parts(counts: list[tuple[int, int]]) -> tuple[float, list[float]]:
    total = sum(pairs for _, pairs in counts)
    rate = sum(accepted for accepted, _ in counts) / total
    return rate, [(accepted - rate * pairs) / total for accepted, pairs in counts]


def _paired(old: _Side, new: _Side, z: float) -> Estimate:
    """The spread of each person's own difference; the rests are added as if they were one, which is the most."""
    apart = [after - before for before, after in zip(old.parts, new.parts, strict=True)]
    error = math.sqrt(_variance(apart) + (old.rest + new.rest) ** 2)
    value = new.rate - old.rate
    return Estimate(value, max(value - z * error, -1.0), min(value + z * error, 1.0), LEVEL)


def _variance(parts: list[float]) -> float:
    """Of their sum; each part belongs to one person."""
    return len(parts) / (len(parts) - 1) * math.fsum(part**2 for part in parts)


def _z(level: float) -> float:
    return _NORMAL.inv_cdf((1 + level) / 2)
