"""What each eraser removed: its spectrum with the rank marked, and the certificate with what it covers."""

import altair as alt

from unface.auditing.schema import AuditResult, Bounds, Erasure
from unface.auditing.words import percent
from unface.report.cells import Cell, Table, bounded, table
from unface.report.draw import Figure, Rows, data, draw, landmarks, thinned
from unface.report.looks import GREY, Look, looks


def spectrum_figures(result: AuditResult) -> list[Figure]:
    """Singular values with the rank marked; a control whose directions have no order has nothing to draw."""
    styles = looks(result)
    return [
        _spectrum(space.erasure, styles[space.name])
        for space in result.spaces
        if space.erasure and len(space.erasure.spectrum) > 1 and space.erasure.spectrum[0] > space.erasure.spectrum[-1]
    ]


def eraser_table(result: AuditResult) -> Table | None:
    """What each eraser is, and what its certificate says."""
    rows = [_row(space.name, space.erasure) for space in result.spaces if space.erasure]
    columns = ("eraser", "rank", "fitted on", "identity energy left", "largest Fisher ratio", "vectors left empty")
    caption = "Erasers and controls; certificates are measured on test identities, which no fit of this audit saw"
    return table(caption, columns, rows) if rows else None


def covered(result: AuditResult) -> list[str]:
    """What the certificates cover, each said once."""
    certificates = [space.erasure.certificate for space in result.spaces if space.erasure]
    return list(dict.fromkeys(found.covers for found in certificates if found))


def _row(name: str, erasure: Erasure) -> tuple[Cell | str, ...]:
    fit = f"{erasure.fit_identities:,} identities" if erasure.fit_identities is not None else "not said"
    head = (
        Cell(name, "control" if erasure.control else erasure.method),
        Cell(f"{erasure.rank} of {erasure.dim}", erasure.rank_rule),
        Cell(fit, erasure.fitted_on),
    )
    found = erasure.certificate
    if found is None:
        return (*head, "no certificate", "no certificate", f"{erasure.degenerate:,}")
    energy = Cell(bounded(found.energy_left), f"{found.identities:,} identities, {found.images:,} images")
    fisher = Cell(_plain(found.fisher_left), f"{_plain(found.fisher_before)} before")
    return (*head, energy, fisher, f"{erasure.degenerate:,}")


def _plain(bounds: Bounds) -> str:
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
