"""What is still good for something, and what an attribute gives away: tables of both."""

from unface.auditing.schema import AttributeSwap, AuditResult, Kept
from unface.auditing.words import count, percent, rate
from unface.report.cells import Cell, Table, bounded, pairs, table


def utility_table(result: AuditResult) -> Table | None:
    """Each measure before and after each eraser."""
    rows = [(Cell(space.name, kept.measure), *_row(kept)) for space in result.spaces for kept in space.utility]
    columns = ("space", "measured on", "raw", "erased", "kept")
    return table("Usefulness before and after; the interval of what is kept is paired", columns, rows) if rows else None


def swap_table(result: AuditResult) -> Table | None:
    """Whether vectors made to tell the other value of an attribute still pass for the same person."""
    rows = [_swap(swap) for swap in result.attribute_swaps]
    columns = ("attribute, space", "both", "still the same person", "attribute flipped", "attribute read before")
    return table("Vectors moved until they tell the other value of an attribute", columns, rows) if rows else None


def _swap(swap: AttributeSwap) -> tuple[Cell, ...]:
    coarse = ", coarse" if swap.resolution == "coarse" else ""
    at = f"{count(swap.directions, 'direction')}, FAR {rate(swap.far)}{coarse}"
    guess = f"{pairs(swap.accuracy)}; guessing: {percent(swap.majority)}"
    return (
        Cell(f"{swap.attribute}, {swap.space}", at),
        Cell(bounded(swap.joint), pairs(swap.joint), strong=True),
        Cell(bounded(swap.accept), pairs(swap.accept)),
        Cell(bounded(swap.flip), pairs(swap.flip)),
        Cell(bounded(swap.accuracy), guess if swap.trusted else f"{guess}; not better than chance, so no attribute"),
    )


def _row(kept: Kept) -> tuple[Cell | str, ...]:
    on = Cell(kept.on, count(kept.queries, "query", "queries"))
    return on, bounded(kept.raw), bounded(kept.erased), Cell(bounded(kept.retained), strong=True)
