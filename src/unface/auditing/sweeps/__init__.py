"""Sweeps: the same attack over ranks, or over numbers of identities to fit on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from unface.result.audit import AuditResult, Tar
from unface.result.file import Frozen
from unface.result.numbers import Kept
from unface.result.parts import Option, Part, Section

if TYPE_CHECKING:
    from unface.auditing.bench import Bench


class SweepPoint(Frozen):
    """One rank, or one number of fit identities."""

    method: str
    control: bool
    rank: int
    fit_identities: int
    probe: str = Field(description="worst case, chosen on calibrate")
    calibrate_tar: float
    tar: Tar
    chance: float
    times_chance: float
    utility: list[Kept] = []


class Sweep(Frozen):
    """The same measurement over ranks or over numbers of fit identities, at one k and one rate."""

    over: Literal["rank", "identities"]
    k: int
    far: float
    resolution: Literal["resolved", "coarse"]
    seeds: int
    probes: list[str] = Field(description="those in closed form: many points, so the slow attacker is left out")
    points: list[SweepPoint]


class SweepResults(Frozen):
    """All sweeps of an audit."""

    sweeps: list[Sweep]


class Sweeps(Part):
    """At the headline's k and rate: over ranks, and over ``fit_counts`` identities to fit on."""

    name = "sweeps"
    schema = SweepResults

    def __init__(self, *, ranks: bool = True, fit_counts: Sequence[int] = ()) -> None:
        self.ranks, self.fit_counts = ranks, tuple(fit_counts)

    def before(self, bench: Bench) -> None:
        """Refuse numbers of identities that nothing can be fitted on."""
        from unface.auditing.sweeps.run import require_fitting

        if self.fit_counts:
            require_fitting(bench, self.fit_counts)

    def run(self, bench: Bench, ready: None) -> SweepResults | None:
        from unface.auditing.sweeps.run import identity_sweep, rank_sweep

        head, fitted = bench.headline, bench.fitted
        if head is None or not fitted:
            return None
        swept = [rank_sweep(bench, head)] if self.ranks else []
        if self.fit_counts:
            swept += [identity_sweep(bench, head, defence, self.fit_counts) for defence in fitted]
        measured = [sweep for sweep in swept if sweep is not None]
        return SweepResults(sweeps=measured) if measured else None

    @classmethod
    def of(cls, result: AuditResult) -> list[Sweep]:
        """The sweeps of an audit."""
        section = result.parts.get(cls.name)
        return section.sweeps if isinstance(section, SweepResults) else []

    @classmethod
    def page(cls, result: AuditResult) -> list[Section | str]:
        from unface.auditing.sweeps.page import sections

        return sections(result, cls.of(result))

    @classmethod
    def repeat(cls, result: AuditResult) -> list[Option]:
        over = {sweep.over: sweep for sweep in cls.of(result)}
        counts = sorted({point.fit_identities for point in over["identities"].points}) if "identities" in over else []
        options = [] if "rank" in over else [Option("--no-sweep")]
        if counts:
            options.append(Option("--fit-counts", (",".join(map(str, counts)),)))
        if "rank" not in over and not counts:
            return options
        given = [] if "rank" in over else ["ranks=False"]
        given += [f"fit_counts={counts!r}"] if counts else []
        return [*options, Option("", value=f"unface.auditing.Sweeps({', '.join(given)})")]


PART = Sweeps
