"""Transfer on the page: tables of both sets, and how much the two subspaces share."""

import altair as alt

from unface.auditing.transfer import EraserTransfer, TransferCell
from unface.page.charts import GREY, INK, Figure, Look, Rows, data, draw, landmarks, thinned
from unface.page.tables import NOT_MEASURED, Cell, Table, bounded, multiple, pairs, table
from unface.page.templates import render
from unface.result.parts import Section
from unface.result.words import rate


def section(transfers: list[EraserTransfer]) -> Section:
    """One piece for each eraser."""
    drawn = [(_tables(one), _cosine_figure(one)) for one in transfers]
    body = render("unface.auditing.transfer:section.jinja", transfers=drawn)
    return Section("transfer", "On other people", body, sources=tuple(("Other set", one.second) for one in transfers))


def _tables(transfer: EraserTransfer) -> list[Table]:
    """One for each k and rate: fitted on the rows' set, tested on the columns'."""
    return [_table(transfer, k, far) for k, far in dict.fromkeys((cell.k, cell.far) for cell in transfer.cells)]


def _cosine_figure(transfer: EraserTransfer) -> Figure:
    """Principal cosines, and where the largest of two random subspaces lies."""
    rows: Rows = [{"x": x, "y": value} for x, value in thinned(transfer.cosines)]
    x = alt.X("x:Q", title="principal angle", axis=alt.Axis(grid=False, format="d"))
    y = alt.Y("y:Q", title="cosine", scale=alt.Scale(domain=[0, 1]))
    chance = data([{"y": transfer.chance_cosine}]).mark_rule(color=GREY, strokeDash=[6, 3]).encode(y=y)
    above = sum(value > transfer.chance_cosine for value in transfer.cosines)
    note = (
        f"{above} of {len(transfer.cosines)} cosines lie above {transfer.chance_cosine:.3f}, where the largest of two"
    )
    note += " random subspaces of this rank lies."
    svg = draw(
        [chance, data(rows).mark_line(color=INK, strokeWidth=1.8).encode(x=x, y=y)],
        f"Principal cosines, falling. {note}",
    )
    keys = (Look("principal cosines", INK, (1, 0), "circle"), Look("largest by chance", GREY, (6, 3), "circle"))
    shown = [(f"{at}", f"{value:.4f}") for at, value in landmarks(transfer.cosines)]
    shown.append(("largest by chance", f"{transfer.chance_cosine:.4f}"))
    numbers = table("Principal cosines, falling", ("angle", "cosine"), shown)
    return Figure("Principal cosines", svg, keys, numbers, note)


def _table(transfer: EraserTransfer, k: int, far: float) -> Table:
    by = {(cell.fitted_on, cell.tested_on): cell for cell in transfer.cells if (cell.k, cell.far) == (k, far)}
    tested = list(dict.fromkeys(cell.tested_on for cell in transfer.cells))
    fitted = [None, *dict.fromkeys(cell.fitted_on for cell in transfer.cells if cell.fitted_on)]
    rows: list[tuple[Cell | str, ...]] = [
        (f"fitted on {fit}" if fit else "raw, no eraser", *(_cell(by.get((fit, test))) for test in tested))
        for fit in fitted
    ]
    caption = f"Worst-case TAR of {transfer.method}, rank {transfer.rank}, at k = {k}, FAR {rate(far)}"
    return table(caption, ("eraser", *(f"tested on {name}" for name in tested)), rows)


def _cell(found: TransferCell | None) -> Cell:
    if found is None:
        return Cell(NOT_MEASURED)
    coarse = "~" if found.resolution == "coarse" else ""
    return Cell(
        f"{coarse}{bounded(found.tar)}", f"{multiple(found.times_chance)} chance, {pairs(found.tar)}, {found.probe}"
    )
