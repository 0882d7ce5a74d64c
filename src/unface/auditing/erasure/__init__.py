"""Erasure: what erasers and controls of equal rank leave the attacker, on the same pairs as before."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from unface.result.audit import AuditResult, Change, Erasure, SpaceResult
from unface.result.file import Finding, Frozen
from unface.result.parts import Option, Part, Section
from unface.result.verdict import CONTROL_NAMES
from unface.result.words import rate, signed_points

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

_TELLING = 0.01  # of the largest singular value


class Nothing(Frozen):
    """No section of its own: the numbers stand with each space."""


class ErasurePart(Part):
    """Always there; its numbers are the erasure and the changes of each space."""

    name = "erasure"
    schema = Nothing

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
        table = terminal_table(f"worst case at k = {k} (? no sure change from raw)")
        table.add_column("space")
        table.add_column("removed", justify="right")
        for far in result.protocol.far:
            table.add_column(f"TAR % at FAR {rate(far)}")
            table.add_column("× chance", justify="right")
            table.add_column("from raw", justify="right")
        for space in result.spaces:
            name = f"{space.name} (control)" if space.is_control else space.name
            removed = "–" if space.erasure is None else f"{space.erasure.rank} of {space.erasure.dim}"
            cells = [cell for far in result.protocol.far for cell in _cells(space, k, far)]
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
        if result.fit_source is not None:
            name = result.fit_source.name
            options.append(Option("--fit-on", (name,), keyword="fit_on", value=repr(name)))
        return options


PART = ErasurePart


def _cells(space: SpaceResult, k: int, far: float) -> tuple[Text, Text, Text]:
    from rich.text import Text

    from unface.page.tables import tar_cells

    point = space.worst_at(k, far)
    change = next((c for c in space.changes if (c.against, c.k, c.far) == ("raw", k, far)), None)
    changed = ""
    if point is not None and change is not None:
        certain = change.high < 0 or change.low > 0
        changed = f"{signed_points(change.value)}{'  ' if certain else ' ?'}"
    return *tar_cells(point), Text(changed)


def _findings(result: AuditResult) -> list[Finding]:
    """Erasers that do no better than a control, or than nothing."""
    findings = []
    head = result.headline
    for space in result.spaces:
        erasure = space.erasure
        if erasure is None:
            continue
        if erasure.degenerate:
            text = f"{erasure.degenerate:,} vectors have nothing left after it; they become zero and match nobody"
            findings.append(Finding(severity="warning", about=space.name, text=text))
        if erasure.fit_identities is None:
            text = "nobody knows here whom this projection was fitted on; if on people of this set, it leaves more of "
            text += "others than these numbers say"
            findings.append(Finding(severity="warning", about=space.name, text=text))
        if erasure.control or head is None:
            continue
        findings += [
            _beaten_by(space.name, change, result)
            for change in head.changes(space)
            if change.high >= 0 and _is_base(change, result)
        ]
        findings += [*_limited(space.name, erasure), *_exhausted(space.name, erasure)]
    return findings


def _beaten_by(name: str, change: Change, result: AuditResult) -> Finding:
    apart = f"{signed_points(change.value)} [{signed_points(change.low)}, {signed_points(change.high)}] points of TAR"
    certainly = change.low > 0
    if change.against == "raw":
        text = "raises what the attacker gets" if certainly else "does not surely lower what the attacker gets"
        return Finding(severity="warning", about=name, text=f"{text}: {apart}")
    control = next(space.erasure for space in result.spaces if space.name == change.against)
    assert control is not None
    other = CONTROL_NAMES[control.method]
    if certainly:
        text = f"leaves the attacker more than {other} of equal rank does ({apart})"
        return Finding(severity="warning", about=name, text=text)
    text = f"cannot be told from {other} of equal rank ({apart})"
    why = "any dimensions would do" if control.method == "random" else "more than variance is not found to matter"
    return Finding(severity="warning", about=name, text=f"{text}: here {why}")


def _is_base(change: Change, result: AuditResult) -> bool:
    other = result.space(change.against)
    return other is not None and not other.by_eraser


def _limited(name: str, erasure: Erasure) -> list[Finding]:
    if erasure.fit_identities is None or erasure.rank < erasure.fit_identities - 1:
        return []
    text = f"all {erasure.rank} directions of {erasure.fit_identities} fit identities go; more need more identities"
    return [Finding(severity="note", about=name, text=text)]


def _exhausted(name: str, erasure: Erasure) -> list[Finding]:
    """Some encoders write more numbers than they have directions; past those, only a remainder is left to measure."""
    sizes = erasure.spectrum[: erasure.rank]
    telling = sum(size >= _TELLING * sizes[0] for size in sizes) if sizes else 0
    if telling == len(sizes):
        return []
    text = f"only {telling} of the {erasure.rank} directions removed carry 1 % of the first or more: what is left may "
    text += "be a remainder too small to matter in raw vectors, which attackers still read at unit length; ask for a "
    text += "lower rank"
    return [Finding(severity="warning", about=name, text=text)]
