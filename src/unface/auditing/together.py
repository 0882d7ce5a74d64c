"""Listings that name people or pictures, as CSV beside a result."""

import csv
from collections.abc import Sequence
from io import StringIO

LEFT_OUT_FILE = "left-out.csv"


def listing(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str | None:
    """As CSV; None of no rows."""
    if not rows:
        return None
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_plain(cell) for cell in row] for row in rows)
    return text.getvalue()


def left_out_listing(rows: Sequence[Sequence[str]]) -> str | None:
    """Pictures that attribution could not use."""
    return listing(("encoder", "id", "step", "reason"), rows)


def _plain(cell: str) -> str:
    """A name that a spreadsheet would take for a formula, marked as text."""
    return f"'{cell}" if cell.startswith(("=", "+", "-", "@")) else cell
