"""Leakage: how many photo pairs of one person each attacker links in each space, and what could void that."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from unface.result.audit import AuditResult, Controls, Point
from unface.result.file import Finding, note, warning
from unface.result.numbers import wilson_ends
from unface.result.parts import Option, Part, Section
from unface.result.readings import AS_GIVEN, Reading
from unface.result.words import count, interval, percent, rate

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

SUSPECTS_FILE = "suspects.csv"
# The probes that an audit has unless others are named.
_USUAL_PROBES = ("cosine", "ridge", "lda", "plda")
# Of many numbers some lie above chance by luck; one that stands for all of them must be this certain.
_CERTAIN_Z = 3.2905267314918945  # of 99.9 %, two-sided
# Duplicates are a warning where they make up this share of the mated pairs.
_MANY_DUPLICATES = 0.001


class Leakage(Part):
    """Always measured; its numbers are the points and curves of each space, and the controls."""

    name = "leakage"
    listings = (SUSPECTS_FILE,)

    @classmethod
    def findings(cls, result: AuditResult) -> list[Finding]:
        points, head = result.raw.points, None if result.headline is None else result.headline.raw
        return [
            *_control(result.controls),
            *_labels(points, head, erased=result.erased_by is not None),
            *_duplicates(result.controls),
            *_context(head),
            *_rates(points),
        ]

    @classmethod
    def not_measured(cls, result: AuditResult) -> list[str]:
        missing = []
        if not any(point.context_adjusted for point in result.raw.points):
            missing.append(
                "same-shoot pairs: bare vectors cannot separate the same person elsewhere from the same photo shoot; "
                "name a --group column of shoots, or a --context column"
            )
        usual = (*_USUAL_PROBES, "mlp") if result.protocol.variant == "paper" else _USUAL_PROBES
        left_out = [name for name in usual if name not in result.protocol.probe]
        if left_out:
            missing.append(f"probes left out: {', '.join(left_out)}")
        return missing

    @classmethod
    def readings(cls, result: AuditResult) -> list[Reading]:
        head, found = result.headline, []
        for space in result.spaces:
            where = AS_GIVEN if space is result.raw else space.name
            if head is not None and not space.is_control:
                quoted, at = head.of(space), f"worst k, FAR {rate(head.far)}"
                tar = quoted.tar if quoted else None
                found.append(Reading("TAR", where, at, tar, headline=True, listed=space.name))
            for point in _worst_or_refused([] if space.is_control else space.points):
                k = "all" if "all" in result.k_words(point.k) else point.k
                found.append(Reading("TAR", where, f"k = {k}, FAR {rate(point.far)}", point.tar))
        return found

    @classmethod
    def terminal(cls, result: AuditResult) -> Iterator[Table]:
        from unface.page.tables import terminal_table

        protocol = result.protocol
        title: str | None = f"{result.raw.name}, probe by probe".replace("raw,", "raw space,")
        if len(result.spaces) == 1:
            title = None
        for first in range(0, len(protocol.far), 2):  # three side by side would not fit into 80 columns
            fars = protocol.far[first : first + 2]
            table = terminal_table(title if not first else None)
            table.add_column("probe")
            for far in fars:
                table.add_column(f"TAR % at FAR {rate(far)}", no_wrap=True)
                table.add_column("× chance", justify="right", no_wrap=True)
            for k in protocol.k:
                at_k = [point for point in result.raw.points if point.k == k]
                of = (cell for far in fars for cell in _denominators(at_k, far))
                table.add_row(f"k = {result.k_words(k)}", *of, style="dim")
                for probe in protocol.probe:
                    row = [point for point in at_k if point.probe == probe]
                    table.add_row(probe, *(cell for far in fars for cell in _cells(row, far)))
                table.add_row()
            yield table

    @classmethod
    def repeat(cls, result: AuditResult) -> list[Option]:
        if result.attacker_source is None:
            return []
        name = result.attacker_source.name
        return [Option("--attacker-data", (name,), keyword="attacker_data", value=repr(name))]

    @classmethod
    def page(cls, result: AuditResult) -> list[Section | str]:
        from unface.auditing.leakage.page import sections

        return sections(result)


PART = Leakage


def _worst_or_refused(points: list[Point]) -> Iterator[Point]:
    """One point for each k and rate: the worst case, or one that says that the rate was refused."""
    at = {(point.k, point.far): point for point in points if point.worst or point.tar is None}
    at |= {(point.k, point.far): point for point in points if point.worst}
    yield from at.values()


def _denominators(at_k: list[Point], far: float) -> tuple[str, str]:
    """What the rows below are shares of, in each draw."""
    point = next((point for point in at_k if point.far == far and point.tar), None)
    return f"of {point.pairs:,} pairs" if point else "", ""


def _cells(row: list[Point], far: float) -> tuple[Text, Text]:
    from rich.text import Text

    from unface.page.tables import tar_cells

    point = next((point for point in row if point.far == far), None)
    if point is None:  # a file that was changed by hand
        return Text("–"), Text("–")
    tar, times = tar_cells(point, "bold" if point.worst else "")
    return (tar + Text(" ◂", style="bold") if point.worst else tar), times


def _control(controls: Controls) -> list[Finding]:
    failed = [point for point in controls.shuffled_identities if not point.passed]
    if not failed:
        return []
    first = failed[0]
    return [
        Finding(
            severity="invalid",
            about="shuffled identities",
            text=(
                f"with identities shuffled among images {first.probe} still links {percent(first.tar.value)} "
                f"{interval(first.tar.low, first.tar.high)} of pairs where chance is {percent(first.chance)}; "
                "a probe or the pipeline is at fault, so no number here can be trusted"
            ),
        )
    ]


def _labels(points: list[Point], head: Point | None, *, erased: bool) -> list[Finding]:
    if head is None or head.above_chance or any(_certainly_above_chance(point) for point in points):
        return []
    text = (
        "no probe does better than chance at any rate: either these vectors hold no identity that the panel can "
        "read, or the identity column is wrong (shuffled, or not about people); check it before calling this safe"
    )
    # After erasure that is what was hoped for, and the raw vectors tell which of the two it is.
    text += ": an audit of the raw vectors must link the same identities" if erased else ""
    return [warning("labels", text)]


def _certainly_above_chance(point: Point) -> bool:
    """Also beside the other numbers, and also if the achieved FAR, itself a count, came out low by luck."""
    if point.tar is None:
        return False
    assert point.tar.effective_n is not None
    low, _ = wilson_ends(point.tar.value, point.tar.effective_n, _CERTAIN_Z)
    return low > point.baseline


def _duplicates(controls: Controls) -> list[Finding]:
    findings = []
    duplicates = controls.near_duplicates
    if duplicates.across_identities:
        pairs = count(duplicates.across_identities, "pair")
        text = f"{pairs} of nearly the same vector (cosine ≥ {duplicates.cosine}) under different identities"
        findings.append(warning("near-duplicates", f"{text}: one picture under two names raises every threshold"))
    if controls.lookalike_identities:
        pairs = count(controls.lookalike_identities, "pair")
        text = f"{pairs} of identities resemble each other as much as themselves: one person under two names?"
        findings.append(warning("identities", f"{text} Such pairs count as impostors and hide leakage"))
    if controls.stray_pictures:
        some = count(controls.stray_pictures, "picture")
        text = f"{some} under one identity, but like another's own: under the wrong name?"
        findings.append(warning("identities", f"{text} A few such pictures set the threshold"))
    if duplicates.within_identities:
        text = f"{count(duplicates.within_identities, 'pair')} of nearly the same vector within one identity"
        if duplicates.within_identities >= _MANY_DUPLICATES * duplicates.mated:
            share = percent(duplicates.within_identities / duplicates.mated)
            text += (
                f", {share} of the mated pairs: the same picture twice is not leakage, and TAR is too high by as much"
            )
            findings.append(warning("near-duplicates", text))
        else:
            findings.append(note("near-duplicates", f"{text}: they raise the TAR"))
    return findings


def _context(head: Point | None) -> list[Finding]:
    if head is None or head.context_adjusted is None or head.tar is None:
        return []
    adjusted, findings = head.context_adjusted, []
    if adjusted.unknown:
        text = f"'{adjusted.context}' is not known for both pictures of {percent(adjusted.unknown)} of the mated pairs"
        findings.append(note("same shoot", f"{text}; they are left out of the adjusted TAR"))
    if not adjusted.separable:
        text = f"'{adjusted.context}' separates mated from impostor pairs almost wholly (overlap"
        text += f" {percent(adjusted.overlap)}); identity and photo shoot cannot be separated"
        findings.append(warning("same shoot", text))
    elif adjusted.value is not None and adjusted.high < head.tar.value and adjusted.suspects is not None:
        text = f"{percent(adjusted.suspects.value)} of the accepted pairs share their '{adjusted.context}'; with"
        text += f" surroundings as alike as those of strangers {percent(adjusted.value)}"
        text += f" {interval(adjusted.low, adjusted.high)} are linked, not {percent(head.tar.value)}"
        findings.append(warning("same shoot", text))
    return findings


def _rates(points: list[Point]) -> list[Finding]:
    ks = {point.k for point in points}
    findings = []
    refused = [point for point in points if point.resolution == "refused"]
    for needed in sorted({(point.far, point.identities_needed or 0) for point in refused}):
        at = {(point.far, point.k) for point in refused if (point.far, point.identities_needed or 0) == needed}
        text = f"FAR {_listed(at, ks)} is refused: fewer than 3 false accepts expected; {needed[1]} calibrate"
        findings.append(note("resolution", f"{text} identities would be needed"))
    coarse = {(point.far, point.k) for point in points if point.worst and point.resolution == "coarse"}
    if coarse:
        text = "coarse (fewer than 30 false accepts expected on calibrate, or fewer than 20 people behind them): "
        text += f"FAR {_listed(coarse, ks)}"
        findings.append(note("resolution", text))
    shifted = {
        (point.far, point.k)
        for point in points
        if point.worst and point.achieved_far and point.achieved_far.value > 3 * point.far
    }
    if shifted:
        text = "on test identities more than three times the target FAR was accepted, so thresholds do not carry over"
        findings.append(warning("thresholds", f"{text}: {_listed(shifted, ks)}"))
    return findings


def _listed(at: set[tuple[float, int]], ks: set[int]) -> str:
    """1e-3, 1e-4 at k = 4: rates in rising order, and the k where it is not every one."""
    words = []
    for far in sorted({far for far, _ in at}):
        here = {k for one, k in at if one == far}
        words += [rate(far)] if here == ks else [f"{rate(far)} at k = {k}" for k in sorted(here)]
    return ", ".join(words)
