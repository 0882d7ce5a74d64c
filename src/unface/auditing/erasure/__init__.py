"""Erasure: what erasers and controls of equal rank leave the attacker, on the same pairs as before."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from unface.result.audit import AuditResult, Change, Erasure, FitOverlap, SameRate, SpaceResult
from unface.result.face_gate import gate_words
from unface.result.file import Finding, note, warning
from unface.result.parts import Option, Part, Section
from unface.result.verdict import CONTROL_NAMES
from unface.result.words import count, percent, rate, signed_points

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

_SOME_MISSED = 3
_LEAST_SIZE = 0.01  # of the largest singular value


class ErasurePart(Part):
    """Always there; its numbers are the erasure and the changes of each space."""

    name = "erasure"

    @classmethod
    def findings(cls, result: AuditResult) -> list[Finding]:
        return _findings(result)

    @classmethod
    def not_measured(cls, result: AuditResult) -> list[str]:
        return ["what an eraser leaves: this is the space as it is"] if len(result.spaces) == 1 else []

    @classmethod
    def terminal(cls, result: AuditResult) -> Iterator[Table]:
        from rich.text import Text

        from unface.page.tables import terminal_table

        if len(result.spaces) == 1:
            return
        head = result.headline
        k = result.protocol.k[-1] if head is None else head.k
        table = terminal_table(f"worst case at k = {result.k_words(k)} (? no clear change from raw)")
        # Rates below each other: side by side they would not fit into 80 columns.
        table.add_column("space", overflow="fold")
        for column in ("removed", "TAR %", "× chance", "from raw"):
            table.add_column(column, justify="left" if column == "TAR %" else "right", no_wrap=True)
        for number, far in enumerate(result.protocol.far):
            if number:
                table.add_row()
            table.add_row(f"FAR {rate(far)}", style="dim")
            for space in result.spaces:
                name = f"{space.name} (control)" if space.is_control else space.name
                removed = "–" if space.erasure is None else f"{space.erasure.rank} of {space.erasure.dim}"
                cells = _cells(result, space, k, far)
                table.add_row(Text(name), Text(removed), *cells, style="dim" if space.is_control else "")
        yield table

    @classmethod
    def page(cls, result: AuditResult) -> list[Section | str]:
        from unface.auditing.erasure.page import sections

        return sections(result)

    @classmethod
    def repeat(cls, result: AuditResult) -> list[Option]:
        """What was fitted for this audit; a ready projection is a file that only its owner has."""
        erasures = [space.erasure for space in result.erased if space.erasure]
        fitted = [erasure for erasure in erasures if erasure.fit_identities is not None]
        methods = list(dict.fromkeys(erasure.method for erasure in fitted))
        options = [Option("--eraser", (",".join(methods) or "none",), keyword="eraser", value=repr(methods))]
        if len({erasure.rank for erasure in fitted}) == 1:
            rank = fitted[0].rank
            options.append(Option("--rank", (str(rank),), keyword="rank", value=str(rank)))
        for keeper in (one for one in fitted if one.mu is not None):
            options.append(Option("--mu", (f"{keeper.mu:g}",), keyword="mu", value=repr(keeper.mu)))
            if not any(option.flag == "--rank" for option in options):
                options.append(Option("--keep", (str(keeper.kept),), keyword="keep", value=str(keeper.kept)))
        if result.copy_source is not None:
            name = result.copy_source.name
            options.append(Option("--copies", (name,), keyword="copies", value=repr(name)))
        if result.gate_source is not None:
            name = result.gate_source.name
            options.append(Option("--gate", (name,), keyword="gate", value=repr(name)))
            asked = {erasure.gate.certificate.asked for erasure in fitted if erasure.gate} - {1e-3}
            options += [Option("--miss", (rate(miss),), keyword="miss", value=repr(miss)) for miss in asked]
        if result.fit_source is not None:
            name = result.fit_source.name
            options.append(Option("--fit-on", (name,), keyword="fit_on", value=repr(name)))
        return options


PART = ErasurePart


def _cells(result: AuditResult, space: SpaceResult, k: int, far: float) -> tuple[Text, Text, Text]:
    from rich.text import Text

    from unface.page.tables import tar_cells

    point = space.worst_at(k, far)
    change = next((c for c in space.changes if (c.against, c.k, c.far) == (result.raw.name, k, far)), None)
    changed = ""
    if point is not None and change is not None:
        certain = change.high < 0 or change.low > 0
        coarse = "~" if result.is_coarse(space, change) else ""
        changed = f"{coarse}{signed_points(change.value)}{'  ' if certain else ' ?'}"
    return *tar_cells(point), Text(changed)


def _findings(result: AuditResult) -> list[Finding]:
    """Erasers that do no better than a control, or than nothing."""
    findings = [*_released(result), *_gates(result)]
    head = result.headline
    for space in result.spaces:
        erasure = space.erasure
        if erasure is None:
            continue
        if erasure.degenerate:
            gone = count(erasure.degenerate, "vector")
            text = f"nothing is left of {gone} after erasure; what becomes zero matches nobody"
            findings.append(warning(space.name, text))
        if erasure.fit_identities is None:
            findings += _fit_overlap(space.name, erasure.overlap)
        if erasure.control or head is None:
            continue
        for change in head.changes(space):
            other = result.space(change.against)
            if change.same_rate is not None and other is result.raw:
                findings.append(_unlike_thresholds(space.name, change, change.same_rate))
            if change.high >= 0 and other is not None and not other.by_eraser:
                findings.append(_no_better(space.name, change, other))
        findings += [*_capped(space.name, erasure), *_exhausted(space.name, erasure)]
    return findings


def _unlike_thresholds(name: str, change: Change, found: SameRate) -> Finding:
    more, less = name, change.against
    if found.achieved_far.value < found.against_achieved_far.value:
        more, less = less, more
    often = f"{found.factor:.1f} times as many pairs of different test people in {more} as in {less}"
    if math.isinf(found.factor):
        often = f"pairs of different test people in {more}, and none in {less}"
    text = f"at FAR {rate(change.far)}, k = {change.k} the thresholds accept {often}; with thresholds that test people "
    text += f"themselves set at this rate TAR is {percent(found.against_tar.value)} in {change.against} and "
    return note("thresholds", f"{text}{percent(found.tar.value)} in {name}")


def _released(result: AuditResult) -> list[Finding]:
    """Where the audited vectors themselves are released ones."""
    return [] if result.erased_by is None else _fit_overlap(result.erased_by.name, result.erased_by.overlap)


def _fit_overlap(name: str, overlap: FitOverlap | None) -> list[Finding]:
    if overlap is None:
        text = "this projection does not record who it was fitted on; if those people are in this set, the results "
        return [warning(name, f"{text}are optimistic")]
    by_chance = (
        f"{overlap.matches:,} of {overlap.compared:,} match its record, {overlap.chance * overlap.compared:.1f} "
    )
    by_chance += "would by chance"
    if not overlap.overlap:
        text = f"fitted on {count(overlap.people, 'person', 'people')}, who are not found among the calibrate and test "
        return [note(name, f"{text}identities ({by_chance})")]
    text = f"about {overlap.estimate:,} of the {overlap.compared:,} calibrate and test identities are people this "
    text += f"projection was fitted on ({by_chance}), so its results are too good; audit other people, or "
    text += "fit a new projection by `unface fit --from` an audit of this set"
    return [Finding(severity="invalid", about=name, text=text)]


def _gates(result: AuditResult) -> list[Finding]:
    """What the certificate of each face gate says, and whether it holds on this audit's own test identities."""
    findings = []
    uses = {space.erasure.gate: None for space in result.spaces if space.erasure and space.erasure.gate}
    for use in uses:
        source = "the gate set" if result.gate_source is None else result.gate_source.name
        said, *warnings = gate_words(use.certificate, source)
        here = use.missed_here
        said += f"; of {here.denominator:,} pictures of test identities it misses {here.numerator:,}"
        findings += [note("face gate", said.removeprefix("face gate: ")), *(warning("face gate", w) for w in warnings)]
        if here.numerator >= _SOME_MISSED and here.value > max(use.certificate.bound, use.certificate.asked):
            text = (
                f"{percent(here.value)} of the pictures of test identities pass the gate unerased, more than its bound "
            )
            text += f"of {percent(use.certificate.bound)}: these faces differ from those it was fitted on"
            findings.append(warning("face gate", text))
    return findings


def _no_better(name: str, change: Change, other: SpaceResult) -> Finding:
    """Than the raw space or a control of equal rank."""
    apart = f"{signed_points(change.value)} [{signed_points(change.low)}, {signed_points(change.high)}] points of TAR"
    if other.erasure is None:
        text = "raises TAR" if change.low > 0 else "has no measurable effect on TAR"
        return warning(name, f"{text}: {apart}")
    control = CONTROL_NAMES[other.erasure.method]
    if change.low > 0:
        return warning(name, f"leaves more than {control} of equal rank ({apart})")
    text = f"no measurable difference from {control} of equal rank ({apart})"
    if other.erasure.method == "random":
        return warning(name, f"{text}: removing random dimensions works as well")
    return warning(name, f"{text}: identity labels gave no measurable benefit over PCA")


def _capped(name: str, erasure: Erasure) -> list[Finding]:
    people = erasure.fit_identities
    if people is None or erasure.rank < people - 1 or erasure.kept is not None:
        return []
    text = f"rank is capped at {erasure.rank} because only {people} people were available to fit on; add people to "
    return [note(name, f"{text}remove more")]


def _exhausted(name: str, erasure: Erasure) -> list[Finding]:
    """Some encoders write more numbers than they have directions; past those, only rounding is left to measure."""
    if erasure.kept is not None:  # its spectrum is of what stays
        return []
    sizes = erasure.spectrum[: erasure.rank]
    used = sum(size >= _LEAST_SIZE * sizes[0] for size in sizes) if sizes else 0
    if used == len(sizes):
        return []
    text = f"only {used} of the {erasure.rank} removed directions reach 1 % of the largest singular value: the vectors "
    text += "span few dimensions, and what is left may be a tiny remainder that attackers still read at unit length; "
    return [warning(name, f"{text}ask for a lower rank")]
