"""release.html and the same on the terminal: drawn from release.json alone, and from pictures only if asked for."""

import base64
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import altair as alt
from rich.console import Console
from rich.table import Table as TerminalTable
from rich.text import Text

from unface.gate import GateResult
from unface.output.write import write_file, write_files
from unface.page.charts import ERASERS, GREY, SHAPES, Figure, Look, Rows, colour, dash, data, draw, shape
from unface.page.tables import (
    NOT_MEASURED,
    Cell,
    Table,
    bounded,
    difference,
    print_safely,
    remarks,
    table,
    terminal_table,
)
from unface.page.templates import render_page
from unface.report.opening import release_opening
from unface.report.trend import trend_section
from unface.result.history import PastResult
from unface.result.release import (
    EXPOSED_FILE,
    ExposureResult,
    PaperResult,
    PermutationTest,
    ReleaseResult,
    RiskResult,
    ViewResult,
)
from unface.result.words import count, in_percent, interval, percent, rate

_LIMITS = "set exposed_max and copies_max in a policy"
_KINDS = {"same": "the same picture", "other": "another picture", "any": "a picture"}


@dataclass(frozen=True)
class FacePair:
    """A risky synthetic picture and the training picture nearest to it, as JPEG; for those who asked to see faces."""

    id: str
    synthetic: bytes
    training: bytes

    @property
    def uris(self) -> tuple[str, str]:
        """Both as they stand in a page."""
        one, other = (
            f"data:image/jpeg;base64,{base64.b64encode(jpeg).decode()}" for jpeg in (self.synthetic, self.training)
        )
        return one, other


def write_release(
    result: ReleaseResult,
    path: str | os.PathLike[str],
    faces: Sequence[FacePair] = (),
    history: Sequence[PastResult] = (),
    decision: GateResult | None = None,
) -> Path:
    """Write the page, whole or not at all; replaces what is there. A page with faces is readable by its owner alone."""
    text, page = render_release(result, faces, history, decision), Path(path)
    if faces:
        write_files(page.parent, {}, {page.name: text})
    else:
        write_file(page, text.encode(), option="--out")
    return page


def render_release(
    result: ReleaseResult,
    faces: Sequence[FacePair] = (),
    history: Sequence[PastResult] = (),
    decision: GateResult | None = None,
) -> str:
    """The page; the same bytes for the same file and ``decision``, a policy's. With a history it has a trend."""
    steps = advice(result, decided=decision is not None)
    opening = release_opening(result, decision, steps)
    return render_page(
        "unface.report:release.html.jinja",
        result=result,
        headline=_headline(result),
        views=_views_table(result),
        copies=[_copies_table(view) for view in result.views if view.copies],
        riskiest=_riskiest_table(result.main) if result.main.riskiest else None,
        risks=_risk_figures(result.retrieval),
        risk_table=_risk_table(result.retrieval) if result.retrieval else None,
        paper=_paper_table(result.paper) if result.paper else None,
        faces=faces,
        opening=opening,
        advice=[step for step in steps if step not in opening.steps],
        exposed_file=EXPOSED_FILE,
        trend=trend_section(history, result),
    )


def print_release(result: ReleaseResult, console: Console) -> None:
    """The verdict, views, copies, retrieval, the riskiest pictures, findings; eighty columns are enough."""
    print_safely(console, Text(result.verdict, style="bold"))
    print_safely(console, Text(_about(result), style="dim"))
    console.print()
    print_safely(console, _terminal_views(result))
    if result.overall is not None:
        print_safely(console, Text(f"all measurements together: p = {_p(result.overall)}", style="dim"))
    chance = percent(result.main.membership.null)
    print_safely(console, Text(f"links: TAR of real pictures at FAR 1e-2; by chance {chance} in training", style="dim"))
    for name, (number, chance) in _nearest_people(result).items():
        line = f"{name}: {number} nearest people are training people; {chance}"
        print_safely(console, Text(line, style="dim"))
    if result.main.copies:
        console.print()
        print_safely(console, _terminal_copies(result.main))
    if result.retrieval:
        console.print()
        print_safely(console, _terminal_risk(result.retrieval))
    if result.paper:
        console.print()
        print_safely(console, _terminal_paper(result.paper))
        print_safely(console, Text(_FRESH, style="dim"))
    if result.main.riskiest:
        console.print()
        ids = ", ".join(one.id for one in result.main.riskiest[:5])
        print_safely(console, Text(f"Nearest to training: {ids}"))
    console.print()
    for remark in remarks(result.findings, result.not_measured):
        print_safely(console, remark)


def advice(result: ReleaseResult, *, decided: bool = False) -> list[str]:
    """What to do about it, the most effective first; where a policy has ``decided``, none is recommended."""
    if result.decision == "not comparable":
        return [
            "Draw the holdout from the same source as training: same cameras, same crop, other people. Run it again."
        ]
    if result.decision == "no evidence":
        return [
            *([f"Look at the pictures of the people in {EXPOSED_FILE}."] if result.exposure.listed else []),
            "Repeat this with a second encoder, and with a larger holdout, which can list a smaller number of people.",
            *([] if decided else [f"Keep release.json with the set, and check it with a gate: {_LIMITS}."]),
        ]
    listed = f" and in {EXPOSED_FILE}" if result.exposure.listed else ""
    return [
        f"Look at the synthetic pictures listed below{listed}. The usual cause is memorised pictures: train the "
        "generator on more people, for fewer steps, or without repeated pictures.",
        "Draw a new set and test that one. Removing the listed pictures alone leaves similar ones that no test listed.",
        *([] if decided else [f"Check the next version with a gate: {_LIMITS}."]),
    ]


def _about(result: ReleaseResult) -> str:
    encoder = f", encoder {result.training.encoder}" if result.training.encoder else ""
    return (
        f"{result.synthetic.name}: {count(result.synthetic.rows, 'synthetic face')} against "
        f"{count(result.training.people or 0, 'training person', 'training people')} and "
        f"{count(result.holdout.people or 0, 'holdout person', 'holdout people')}{encoder}."
    )


def _p(test: PermutationTest) -> str:
    return f"{test.p:.2g}" if test.p >= 1e-4 else "<0.0001"


def _nearest_people(result: ReleaseResult) -> dict[str, tuple[str, str]]:
    """By view: how many of the people nearest to synthetic faces are training people, and chance; p is corrected."""
    return {
        view.name: (
            f"{near.training:,} of the {near.nearest:,}",
            f"chance {near.expected:.1f}, p = {result.corrected[view.name]:.2g}",
        )
        for view in result.views
        if (near := view.enrichment) is not None
    }


def _headline(result: ReleaseResult) -> list[tuple[str, str, str]]:
    """(what, value, small) of the three numbers to look at."""
    main, exposure = result.main, result.exposure
    exposed, share = exposure.exposed, main.membership.share
    cells = [
        ("Exposed training people", NOT_MEASURED, "the holdout is too small to list anybody")
        if exposed is None
        else (
            "Exposed training people",
            f"{exposed.numerator:,}",
            f"of {exposed.denominator:,}: {interval(exposed.low, exposed.high)} %; on average at most "
            f"{percent(exposure.fdr)} of those listed by accident",
        ),
        (
            "Nearest person is in training",
            percent(share.value),
            f"{interval(share.low, share.high)} %, chance {percent(main.membership.null)}",
        ),
    ]
    if main.copies:
        strictest = min(main.copies, key=lambda one: one.far)
        cells.append(
            (
                f"Copies at FAR {rate(strictest.far)}",
                f"{strictest.copies.numerator:,}",
                f"the holdout leads to expect {strictest.expected:.1f}",
            )
        )
    return cells


def _links(view: ViewResult) -> str:
    return "not known" if view.linking is None else bounded(view.linking.tar)


def _exposed(exposure: ExposureResult) -> tuple[str, str]:
    """How many people are listed, and what share that is."""
    exposed = exposure.exposed
    if exposed is None:
        return NOT_MEASURED, ""
    return f"{exposed.numerator:,}", f"{interval(exposed.low, exposed.high)} % of {exposed.denominator:,}"


def _views_table(result: ReleaseResult) -> Table:
    rows, people = [], _nearest_people(result)
    for view in result.views:
        auc, tpr = view.separation.auc, view.separation.tpr
        rows.append(
            [
                Cell(view.name, strong=view is result.main),
                Cell(_links(view)),
                Cell(
                    bounded(view.membership.share),
                    f"chance {percent(view.membership.null)}, p = {_p(view.membership.test)}",
                ),
                Cell(*_exposed(view.exposure)),
                Cell(*people.get(view.name, (NOT_MEASURED, ""))),
                Cell(
                    f"{auc.value:.3f} [{auc.low:.3f}, {auc.high:.3f}]",
                    f"TPR {NOT_MEASURED if tpr is None else bounded(tpr)} at FPR {rate(view.separation.fpr)}; "
                    f"mAP {view.separation.average_precision:.3f}, a coin {view.separation.coin:.3f}",
                ),
            ]
        )
    if result.fused is not None:
        rows.append([Cell("all together"), *2 * [Cell("–")], Cell(*_exposed(result.fused)), *2 * [Cell("–")]])
    heads = (
        "view",
        "links real people",
        "nearest in training",
        "exposed people",
        "nearest people in training",
        "AUC, TPR and mAP",
    )
    return table("Training against holdout people", heads, rows)


def _copies_table(view: ViewResult) -> Table:
    rows = [
        [
            Cell(rate(one.far), one.resolution if one.resolution == "coarse" else ""),
            Cell(f"{one.cosine:.3f}"),
            Cell(f"{one.copies.numerator:,}", bounded(one.copies)),
            Cell(f"{one.expected:,.1f}"),
            Cell(difference(one.excess.value, one.excess.low, one.excess.high)),
            Cell(_p(one.test)),
        ]
        for one in view.copies
    ]
    caption = f"Synthetic faces within the threshold of a training picture, {view.name}"
    return table(caption, ("FAR", "cosine", "copies", "expected", "excess, points", "p"), rows)


def _riskiest_table(view: ViewResult) -> Table:
    rows = [
        [
            Cell(one.id),
            Cell(f"{one.training:.3f}"),
            Cell(f"{one.holdout:.3f}"),
            Cell(f"{one.people:,}" if one.people else "–"),
            Cell("yes" if one.is_copy else "–"),
        ]
        for one in view.riskiest
    ]
    heads = ("synthetic picture", "nearest training picture", "nearest holdout picture", "people it exposes", "copy")
    return table("The riskiest pictures: how much nearer to training than to the holdout, in cosines", heads, rows)


def _risk_table(risks: list[RiskResult]) -> Table:
    rows = [
        [
            Cell(f"{one.identities:,}", f"{one.released:,} faces"),
            Cell(f"{one.k}"),
            Cell(_KINDS[one.pictures]),
            Cell(bounded(one.share)),
            Cell(percent(one.chance)),
        ]
        for one in risks
    ]
    return table("Retrieval risk R(A, S, K)", ("people in the gallery", "K", "query is", "found", "chance"), rows)


_FRESH = "fresh: holdout people scored as members are; as high as members, it is not membership"
_PAPER_HEADS = ("trait", "mAP", "mAP, fresh", "AUC over fresh", "mAP, person left out", "flagged")


def _paper_cells(one: PaperResult) -> list[str]:
    numbers = (one.average_precision, one.fresh, one.fresh_auc, one.person_left_out)
    return [one.trait, *(f"{number:.3f}" for number in numbers), percent(one.flagged)]


def _paper_table(scores: list[PaperResult]) -> Table:
    rows = [[Cell(text) for text in _paper_cells(one)] for one in scores]
    return table("The trait privacy score, as published, and its controls", _PAPER_HEADS, rows)


def _risk_figures(risks: list[RiskResult]) -> list[Figure]:
    figures = []
    for kind in dict.fromkeys(one.pictures for one in risks):
        here = [one for one in risks if one.pictures == kind]
        sizes = sorted({one.identities for one in here})
        if len(sizes) < 2:
            continue
        ks = sorted({one.k for one in here})
        looks = [
            Look(f"K = {k}", ERASERS[at % len(ERASERS)], (1, 0), SHAPES[at % len(SHAPES)]) for at, k in enumerate(ks)
        ]
        rows: Rows = [
            {
                "x": one.identities,
                "y": one.share.value,
                "low": one.share.low,
                "high": one.share.high,
                "look": f"K = {one.k}",
            }
            for one in here
        ]
        chance: Rows = [{"x": one.identities, "y": one.chance, "look": f"K = {one.k}"} for one in here]
        x = alt.X(
            "x:Q",
            title="people in the gallery",
            scale=alt.Scale(type="log", domain=[sizes[0], sizes[-1]], nice=False),
            axis=alt.Axis(grid=False, values=sizes, format="d"),
        )
        y = alt.Y("y:Q", title="found", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%", tickCount=5))
        layers = [
            data(rows)
            .mark_area(opacity=0.15)
            .encode(x=x, y=alt.Y("low:Q", title="found"), y2="high:Q", color=colour(looks)),
            data(rows).mark_line(strokeWidth=2).encode(x=x, y=y, color=colour(looks), strokeDash=dash(looks)),
            data(rows)
            .mark_point(filled=True, size=45, opacity=1)
            .encode(x=x, y=y, color=colour(looks), shape=shape(looks)),
            data(chance).mark_line(color=GREY, strokeWidth=1.5, strokeDash=[2, 2]).encode(x=x, y=y, detail="look:N"),
        ]
        last = "; ".join(f"K = {one.k} {percent(one.share.value)}" for one in here if one.identities == sizes[-1])
        title = f"Query is {_KINDS[kind]}"
        label = f"{title}: found over people in the gallery. With {sizes[-1]:,} people: {last}."
        figures.append(Figure(title, draw(layers, label), (*looks, Look("chance", GREY, (2, 2), "circle"))))
    return figures


def _terminal_views(result: ReleaseResult) -> TerminalTable:
    made = terminal_table("Training against holdout people")
    made.add_column("view", max_width=18, overflow="fold")
    for head in ("links %", "nearest in training %", "p", "exposed", "AUC"):
        made.add_column(head, justify="right", no_wrap=True)
    for view in result.views:
        share = view.membership.share
        made.add_row(
            view.name,
            "–" if view.linking is None else in_percent(view.linking.tar.value),
            f"{in_percent(share.value)} {interval(share.low, share.high)}",
            _p(view.membership.test),
            _exposed(view.exposure)[0],
            f"{view.separation.auc.value:.3f}",
        )
    if result.fused is not None:
        made.add_row("all together", "–", "–", "–", _exposed(result.fused)[0], "–")
    return made


def _terminal_copies(view: ViewResult) -> TerminalTable:
    made = terminal_table(f"Copies: nearer to a training picture than FAR allows, {view.name}")
    for head in ("FAR", "cosine", "copies", "expected", "excess, points", "p"):
        made.add_column(head, justify="right", no_wrap=True)
    for one in view.copies:
        made.add_row(
            f"{'~' if one.resolution == 'coarse' else ''}{rate(one.far)}",
            f"{one.cosine:.3f}",
            f"{one.copies.numerator:,}",
            f"{one.expected:,.1f}",
            difference(one.excess.value, one.excess.low, one.excess.high),
            _p(one.test),
        )
    return made


def _terminal_paper(scores: list[PaperResult]) -> TerminalTable:
    made = terminal_table("Trait privacy score (Leyva et al.), and its controls")
    for head in _PAPER_HEADS:
        made.add_column(head, justify="left" if head == "trait" else "right")
    for one in scores:
        made.add_row(*_paper_cells(one))
    return made


def _terminal_risk(risks: list[RiskResult]) -> TerminalTable:
    made = terminal_table("Retrieval risk: the K nearest released faces show the query's person")
    for head in ("people", "K", "query is", "found %", "chance %"):
        made.add_column(head, justify="left" if head == "query is" else "right", no_wrap=True)
    largest = max(one.identities for one in risks)
    for one in risks:
        if one.identities == largest:
            share = f"{in_percent(one.share.value)} {interval(one.share.low, one.share.high)}"
            made.add_row(f"{one.identities:,}", f"{one.k}", _KINDS[one.pictures], share, in_percent(one.chance))
    return made
