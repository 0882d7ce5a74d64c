"""Albums: the same attack with several pictures of each person on both sides, one template each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from unface.errors import UnfaceError
from unface.result.audit import AuditResult, Tar
from unface.result.file import Finding, Frozen, note
from unface.result.numbers import Rate
from unface.result.parts import Option, Part, Section
from unface.result.readings import AS_GIVEN, Reading
from unface.result.verdict import best_eraser, eraser_title
from unface.result.words import in_percent, interval, percent, rate

if TYPE_CHECKING:
    from rich.table import Table

    from unface.auditing.bench import Bench
    from unface.probe.albums import AlbumSize

_FEWEST = 5  # people with enough pictures
_MOST_COLUMNS = 3  # of the terminal, with intervals


class AlbumPoint(Frozen):
    """One probe on albums of one size, in one space, at one false-accept rate."""

    space: str
    probe: str
    first: int = Field(description="pictures of a person on one side")
    second: int = Field(description="pictures of a person on the other side")
    far: float = Field(description="target false-accept rate (false match rate, FMR, of albums)")
    resolution: Literal["resolved", "coarse", "refused"]
    worst: bool = Field(description="the panel's best on calibrate at this size and FAR")
    tar: Tar | None = Field(description="of mated albums, counted once for each deal (1 − FNMR); null when refused")
    tar_over_people: float | None = Field(
        default=None, description="mean over people of each one's own share of accepted albums; tar counts albums"
    )
    achieved_far: Rate | None
    chance: float | None
    times_chance: float | None
    threshold: float | None
    calibrate_tar: float | None
    identities_needed: int | None = Field(default=None, description="calibrate identities that would resolve the rate")

    @property
    def words(self) -> str:
        """2 against 3."""
        return f"{self.first} against {self.second}"


class AlbumChange(Frozen):
    """Worst-case TAR of albums in one space less that in another, on the same albums; the interval is paired."""

    space: str
    against: str
    first: int
    second: int
    far: float
    value: float
    low: float
    high: float
    level: float


class AlbumControl(Frozen):
    """A probe on albums of shuffled identities; chance is all it may reach."""

    probe: str
    first: int
    second: int
    far: float
    tar: Tar
    chance: float
    passed: bool


class AlbumResults(Frozen):
    """Albums at the headline's k, by space, size and rate; 1 against 1 are the pairs of the audit itself."""

    k: int
    images: int = Field(description="pictures of an identity that albums are made of, at most")
    deals: int = Field(description="times that pictures were dealt into albums; all disjoint albums are compared")
    points: list[AlbumPoint]
    changes: list[AlbumChange]
    shuffled_identities: list[AlbumControl]

    def worst(self, space: str, far: float) -> list[AlbumPoint]:
        """The worst case at each size, rising."""
        at = [point for point in self.points if point.worst and (point.space, point.far) == (space, far)]
        return sorted(at, key=lambda point: (point.first, point.second))

    def largest(self, space: str, far: float) -> AlbumPoint | None:
        """The worst case of the largest albums at the rate; None where only single pictures show it."""
        found = [point for point in self.worst(space, far) if point.second > 1 and point.tar is not None]
        return found[-1] if found else None


class Albums(Part):
    """``sizes``: pictures a side, as 2, or "half"; None: 1, 2, 4, 8 … as far as the set allows, and half of them."""

    name = "albums"
    schema = AlbumResults

    def __init__(self, sizes: Sequence[int | str] | None = None) -> None:
        self.sizes = None if sizes is None else tuple(sizes)

    def before(self, bench: Bench) -> list[AlbumSize]:
        """Refuse albums that the pictures do not suffice for."""
        from unface.probe.albums import album_sizes

        if bench.attack.plan.hold_out:
            if self.sizes is not None:
                raise UnfaceError("--album: the paper variant compares single pictures; leave one of the two out")
            return []
        sizes, roles = album_sizes(self.sizes, bench.prepared.curation.images), bench.attack.roles
        few = {size: min(len(size.able(role)) for role in (roles.calibrate, roles.test)) for size in sizes}
        short = next((size for size in sizes if few[size] < _FEWEST), None)
        if short is not None and self.sizes is not None:
            raise UnfaceError(
                f"--album {short.first}: of calibrate or test identities {few[short]} have "
                f"{short.first + short.second} pictures, and {_FEWEST} are needed; ask for less, or leave --album out"
            )
        return [size for size in sizes if few[size] >= _FEWEST]

    def run(self, bench: Bench, ready: list[AlbumSize]) -> AlbumResults | None:
        from unface.auditing.albums.run import measure_albums

        head = bench.headline
        return None if head is None or not ready else measure_albums(bench, head, ready)

    @classmethod
    def of(cls, result: AuditResult) -> AlbumResults | None:
        """The albums of an audit."""
        section = result.parts.get(cls.name)
        return section if isinstance(section, AlbumResults) else None

    @classmethod
    def readings(cls, result: AuditResult) -> list[Reading]:
        found, controls = cls.of(result), {space.name for space in result.spaces if space.is_control}
        if found is None:
            return []
        # 1 against 1 are the pairs of the audit itself.
        first = result.raw.name
        return [
            Reading(
                "album TAR",
                AS_GIVEN if one.space == first else one.space,
                f"{one.first} v {one.second}, FAR {rate(one.far)}",
                one.tar,
            )
            for one in found.points
            if one.worst and one.second > 1 and one.space not in controls
        ]

    @classmethod
    def findings(cls, result: AuditResult) -> list[Finding]:
        found = cls.of(result)
        if found is None:
            return []
        failed = [one for one in found.shuffled_identities if not one.passed]
        findings = []
        if failed:
            one = failed[0]
            text = f"with identities shuffled {one.probe} still links {percent(one.tar.value)} of albums "
            text += f"({one.first} against {one.second}) where chance is {percent(one.chance)}; album numbers here "
            findings.append(Finding(severity="invalid", about="albums", text=f"{text}cannot be trusted"))
        coarse = _sizes(found, "coarse")
        refused = _sizes(found, "refused")
        if coarse or refused:
            text = "albums are fewer than pictures, so rates are coarser:"
            text += "".join(f" FAR {far} is coarse for {sizes};" for far, sizes in coarse.items())
            text += "".join(f" FAR {far} is refused for {sizes};" for far, sizes in refused.items())
            findings.append(note("albums", text.rstrip(";")))
        return findings

    @classmethod
    def verdict(cls, result: AuditResult) -> str:
        """What single pictures hide: 2.5 % for one pair is 8.5 % for 2 or 3 pictures on each side."""
        found, head = cls.of(result), result.headline
        if found is None or head is None or head.raw.tar is None:
            return ""
        rates = sorted({point.far for point in found.points if point.tar and point.second > 1})
        if not rates:
            return ""
        far = head.far if head.far in rates else min(rates, key=lambda other: abs(other - head.far))
        most = found.largest(result.raw.name, far)
        if most is None or most.tar is None:
            return ""
        side = f"{most.first}" if most.first == most.second else f"{most.first} or {most.second}"
        at = "" if far == head.far else f" at FAR {rate(far)}"
        best = best_eraser(result, head)
        spaces = [result.raw] if best is None else [result.raw, best]
        said = [
            f"{'' if space is result.raw else f'after {eraser_title(space)} '}{percent(point.tar.value)} "
            f"{interval(point.tar.low, point.tar.high)}"
            for space in spaces
            if (point := found.largest(space.name, far)) is not None and point.tar is not None
        ]
        rough = " (coarse)" if most.resolution == "coarse" else ""
        return f"With {side} pictures per person on each side{at}: {', '.join(said)}{rough}."

    @classmethod
    def not_measured(cls, result: AuditResult) -> list[str]:
        if cls.of(result) is not None:
            return []
        return ["attackers with several pictures of each person to compare: --album 2,half"]

    @classmethod
    def terminal(cls, result: AuditResult) -> Iterator[Table]:
        from unface.page.tables import space_table

        found, head = cls.of(result), result.headline
        if found is None or head is None:
            return
        for far in result.protocol.far:
            raw = found.worst(result.raw.name, far)
            if far != head.far or not raw:
                continue
            shown = raw if len(raw) <= _MOST_COLUMNS else [*raw[: _MOST_COLUMNS - 1], raw[-1]]
            rows = []
            for space in result.spaces:
                at = {point.words: point for point in found.worst(space.name, far)}
                rows.append((space.name, [_cell(at.get(point.words)) for point in shown]))
            title = f"albums, pictures per side: worst-case TAR % at FAR {rate(far)}"
            yield space_table(title, [point.words for point in shown], rows, result.control_names)

    @classmethod
    def page(cls, result: AuditResult) -> list[Section | str]:
        from unface.auditing.albums.page import section

        found = cls.of(result)
        return ["several pictures per person on each side"] if found is None else [section(result, found)]

    @classmethod
    def repeat(cls, result: AuditResult) -> list[Option]:
        found = cls.of(result)
        if found is None:
            return [Option("--album", ("none",))]
        sizes = dict.fromkeys((point.first, point.second) for point in found.points)
        asked: list[int | str] = [first if first == second else "half" for first, second in sizes]
        return [Option("--album", (",".join(map(str, asked)),), value=f"unface.auditing.Albums({asked!r})")]


PART = Albums


def _cell(point: AlbumPoint | None) -> str:
    """TAR in percent, whose sign is in the heading."""
    if point is None or point.tar is None:
        return "not resolved"
    coarse = "~" if point.resolution == "coarse" else ""
    return f"{coarse}{in_percent(point.tar.value)} {interval(point.tar.low, point.tar.high)}"


def _sizes(found: AlbumResults, resolution: str) -> dict[str, str]:
    """By rate, the sizes that are so resolved."""
    rates: dict[str, list[str]] = {}
    for point in found.points:
        if point.resolution == resolution and point.second > 1:
            words = rates.setdefault(rate(point.far), [])
            if point.words not in words:
                words.append(point.words)
    return {far: ", ".join(words) for far, words in rates.items()}
