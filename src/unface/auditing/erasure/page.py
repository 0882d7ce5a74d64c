"""Erasure on the page: each eraser against the controls it must beat, then what it removed and what was certified."""

from dataclasses import dataclass

import altair as alt

from unface.page.charts import GREY, Figure, Look, Rows, data, draw, landmarks, looks, thinned
from unface.page.tables import Cell, Table, bounded, difference, table
from unface.page.templates import render
from unface.result.audit import AuditResult, Change, Erasure, SpaceResult
from unface.result.numbers import Estimate, Rate
from unface.result.parts import Section
from unface.result.verdict import CONTROL_NAMES
from unface.result.words import percent, rate


def sections(result: AuditResult) -> list[Section | str]:
    """Comparisons, then what was removed; nothing for an audit of raw vectors alone."""
    erasers = _eraser_table(result)
    if erasers is None:
        return [
            "what an eraser leaves",
            "whether an eraser beats controls of equal rank",
            "a certificate of what is left to linear access",
        ]
    changes, covered = _change_table(result), _covered(result)
    compared = render("unface.auditing.erasure:compared.jinja", compared=comparisons(result), changes=changes)
    removed = render(
        "unface.auditing.erasure:removed.jinja", erasers=erasers, covered=covered, spectra=_spectrum_figures(result)
    )
    found: list[Section | str] = [
        Section("compared", "Erasers against controls", compared, order=1),
        Section("erasers", "What was removed", removed),
    ]
    gates = _gate_table(result)
    if gates is not None:
        sources = () if result.gate_source is None else (("Gate set", result.gate_source),)
        found.append(Section("gate", "Face gate", render("tables.jinja", tables=[gates]), sources=sources))
    if changes is None:
        found.append("whether an eraser beats controls of equal rank")
    if not covered:
        found.append("a certificate of what is left to linear access")
    return found


@dataclass(frozen=True)
class _Comparison:
    """One sentence, and whether it supports the eraser."""

    text: str
    won: bool


def comparisons(result: AuditResult) -> list[_Comparison]:
    """One sentence for each eraser and each space it was put against, at the rate and k of the headline."""
    head = result.headline
    sentences: list[_Comparison] = []
    pairs: set[tuple[str, str]] = set()
    for space in result.erased:
        at = space.changes if head is None else head.changes(space)
        # Of two erasers the second would only say again, with the sign turned, what the first has sentences.
        new = [change for change in at or space.changes[:1] if (change.against, space.name) not in pairs]
        pairs |= {(space.name, change.against) for change in new}
        sentences += [_sentence(result, space, change) for change in new]
        missing = [name for name in _yardsticks(result) if name not in {change.against for change in space.changes}]
        for name in missing:
            text = f"{space.name} was not compared with {_named(result, space, name)}."
            sentences.append(_Comparison(text, False))
        if not any(other.erasure and other.erasure.control for other in result.spaces):
            text = f"{space.name} was not put against a control of equal rank: whether it removes identity or only"
            sentences.append(_Comparison(f"{text} dimensions is not known.", False))
    return sentences


def _change_table(result: AuditResult) -> Table | None:
    """Every paired change, at every k and rate."""
    rows = [
        (
            Cell(f"{space.name} − {change.against}", f"{change.probe} − {change.against_probe}"),
            f"{change.k}",
            rate(change.far),
            ("~" if result.is_coarse(space, change) else "") + difference(change.value, change.low, change.high),
            _outcome(change),
            _at_same_rate(change),
        )
        for space in result.spaces
        for change in space.changes
    ]
    if not rows:
        return None
    columns = ["difference", "k", "FAR", "worst-case TAR, percentage points", "distinguishable"]
    caption = "Paired changes: the same pairs and the same draws of identities on both sides"
    if not any(row[-1] for row in rows):
        return table(caption, columns, [row[:-1] for row in rows])
    columns.append("TAR with thresholds of the test people")
    caption += ". The last column stands where the calibrated thresholds accept unlike shares of strangers on test"
    return table(caption, columns, rows)


def _at_same_rate(change: Change) -> str:
    same = change.same_rate
    return "" if same is None else f"{percent(same.against_tar.value)} → {percent(same.tar.value)}"


def _yardsticks(result: AuditResult) -> list[str]:
    return [space.name for space in result.spaces if not space.by_eraser]


def _sentence(result: AuditResult, space: SpaceResult, change: Change) -> _Comparison:
    other = _named(result, space, change.against)
    apart = ("~" if result.is_coarse(space, change) else "") + difference(change.value, change.low, change.high)
    size = f"{apart} percentage points at k = {change.k}, FAR {rate(change.far)}"
    if change.high < 0:
        verb = "leaves less than" if change.against == result.raw.name else "beats"
        return _Comparison(f"{space.name} {verb} {other}: {size}.", True)
    if change.low > 0:
        return _Comparison(f"{space.name} leaves more than {other}: {size}.", False)
    return _Comparison(f"{space.name} shows no measurable difference from {other}: {size}.", False)


def _named(result: AuditResult, space: SpaceResult, name: str) -> str:
    other = result.space(name)
    if other is None or other.erasure is None:
        return "the raw vectors" if name == result.raw.name else name
    called = CONTROL_NAMES.get(other.erasure.method, name)
    return f"{called} of {_rank(other.erasure, space.erasure)}"


def _rank(other: Erasure, own: Erasure | None) -> str:
    return "the same rank" if own is not None and own.rank == other.rank else f"rank {other.rank}"


def _outcome(change: Change) -> str:
    if change.high < 0:
        return "less"
    return "more" if change.low > 0 else "no"


def _spectrum_figures(result: AuditResult) -> list[Figure]:
    """Singular values with the rank marked; a keeper's are of what stays, and random ones have no order."""
    styles = looks(result)
    return [
        _spectrum(space.erasure, styles[space.name])
        for space in result.spaces
        if space.erasure
        and space.erasure.kept is None
        and len(space.erasure.spectrum) > 1
        and space.erasure.spectrum[0] > space.erasure.spectrum[-1]
    ]


def _eraser_table(result: AuditResult) -> Table | None:
    """What each eraser is, and what its certificate says."""
    rows = [_row(space.name, space.erasure) for space in result.spaces if space.erasure]
    columns = ("eraser", "rank", "fitted on", "identity energy left", "Fisher ratio, at least", "vectors left empty")
    caption = "Erasers and controls; certificates are measured on test identities, which no fit of this audit saw"
    return table(caption, columns, rows) if rows else None


def _gate_table(result: AuditResult) -> Table | None:
    """Each face gate once, however many spaces stand behind it."""
    uses = {space.erasure.gate: space.name for space in reversed(result.spaces) if space.erasure and space.erasure.gate}
    rows = [
        (
            Cell(name, f"at most {percent(use.certificate.asked)} was asked for"),
            _counted(
                use.certificate.missed,
                f"at most {percent(max(use.certificate.bound, use.certificate.people_bound))}, counting people",
            ),
            _counted(use.certificate.people, f"at most {percent(use.certificate.people_bound)}"),
            _counted(use.missed_here, "of test identities"),
            _counted(use.certificate.taken, "erased like faces"),
        )
        for use, name in uses.items()
    ]
    columns = (
        "gate of",
        "faces missed",
        "people with a missed picture",
        "missed in this audit",
        "gate set taken for faces",
    )
    caption = "Face gate: what it does not take for a face is released as it is; bounds are exact, one-sided, at 95 %"
    return table(caption, columns, rows) if rows else None


def _counted(share: Rate, note: str) -> Cell:
    return Cell(f"{percent(share.value)} ({share.numerator:,} of {share.denominator:,})", note)


def _covered(result: AuditResult) -> list[str]:
    """What the certificates cover, each said once."""
    certificates = [space.erasure.certificate for space in result.spaces if space.erasure]
    return list(dict.fromkeys(found.covers for found in certificates if found))


def _row(name: str, erasure: Erasure) -> tuple[Cell | str, ...]:
    fit = f"{erasure.fit_identities:,} identities" if erasure.fit_identities is not None else "not said"
    head = (
        Cell(name, ("control" if erasure.control else erasure.method) + (", faces only" if erasure.gate else "")),
        Cell(f"{erasure.rank} of {erasure.dim}", erasure.rank_rule),
        Cell(fit, erasure.fitted_on),
    )
    found = erasure.certificate
    if found is None:
        return (*head, "no certificate", "no certificate", f"{erasure.degenerate:,}")
    energy = Cell(bounded(found.energy_left), f"{found.identities:,} identities, {found.images:,} images")
    fisher = Cell(_plain(found.fisher_left), f"{_plain(found.fisher_before)} before")
    return (*head, energy, fisher, f"{erasure.degenerate:,}")


def _plain(bounds: Estimate) -> str:
    return f"{bounds.value:.2f} [{bounds.low:.2f}, {bounds.high:.2f}]"


def _spectrum(erasure: Erasure, look: Look) -> Figure:
    first = erasure.spectrum[0]
    rows: Rows = [{"x": x, "y": value / first} for x, value in thinned(erasure.spectrum)]
    x = alt.X("x:Q", title="direction", axis=alt.Axis(grid=False, format="d"))
    y = alt.Y("y:Q", title="singular value, first = 1", scale=alt.Scale(domain=[0, 1]))
    mark = data([{"x": erasure.rank}]).mark_rule(color=GREY, strokeDash=[6, 3]).encode(x=x)
    last = erasure.spectrum[min(erasure.rank, len(erasure.spectrum)) - 1]
    note = f"Rank {erasure.rank} of {erasure.dim}: the last direction removed has {percent(last / first)} of the"
    note += " first one's value."
    svg = draw(
        [mark, data(rows).mark_line(color=look.colour, strokeWidth=1.8).encode(x=x, y=y)],
        f"Spectrum of {look.name}, falling. {note}",
    )
    keys = (Look(look.name, look.colour, (1, 0), look.shape), Look(f"rank {erasure.rank}", GREY, (6, 3), "circle"))
    shown = [(f"{at}", f"{value:.4g}") for at, value in landmarks(erasure.spectrum, erasure.rank)]
    numbers = table(f"Singular values of {look.name}", ("direction", "singular value"), shown)
    return Figure(f"Spectrum of {look.name}", svg, keys, numbers, note)
