"""What an eraser changed, in sentences: against the raw vectors, and against the controls it must beat."""

from dataclasses import dataclass

from unface.auditing import headline
from unface.auditing.schema import AuditResult, Change, Erasure, SpaceResult
from unface.auditing.words import rate
from unface.report.cells import Cell, Table, difference, table

_CONTROLS = {"random": "the random subspace", "pca": "label-free PCA"}


@dataclass(frozen=True)
class Comparison:
    """One sentence, and whether it speaks for the eraser."""

    text: str
    won: bool


def comparisons(result: AuditResult) -> list[Comparison]:
    """One sentence for each eraser and each space it was put against, at the rate and k of the headline."""
    head = headline(result.raw.points)
    said: list[Comparison] = []
    pairs: set[tuple[str, str]] = set()
    for space in result.erased:
        at = [change for change in space.changes if head is None or (change.k, change.far) == (head.k, head.far)]
        # Of two erasers the second would only say again, with the sign turned, what the first has said.
        new = [change for change in at or space.changes[:1] if (change.against, space.name) not in pairs]
        pairs |= {(space.name, change.against) for change in new}
        said += [_sentence(result, space, change) for change in new]
        missing = [name for name in _yardsticks(result) if name not in {change.against for change in space.changes}]
        said += [Comparison(f"{space.name} was not compared with {_named(result, space, n)}.", False) for n in missing]
        if not any(other.erasure and other.erasure.control for other in result.spaces):
            text = f"{space.name} was not put against a control of equal rank: whether it removes identity or only"
            said.append(Comparison(f"{text} dimensions is not known.", False))
    return said


def change_table(result: AuditResult) -> Table | None:
    """Every paired change, at every k and rate."""
    rows = [
        (
            Cell(f"{space.name} − {change.against}", f"{change.probe} − {change.against_probe}"),
            f"{change.k}",
            rate(change.far),
            difference(change.value, change.low, change.high),
            _outcome(change),
        )
        for space in result.spaces
        for change in space.changes
    ]
    if not rows:
        return None
    columns = ("difference", "k", "FAR", "worst-case TAR, percentage points", "told apart")
    return table("Paired changes: the same pairs and the same draws of identities on both sides", columns, rows)


def _yardsticks(result: AuditResult) -> list[str]:
    return [space.name for space in result.spaces if not space.by_eraser]


def _sentence(result: AuditResult, space: SpaceResult, change: Change) -> Comparison:
    other = _named(result, space, change.against)
    apart = difference(change.value, change.low, change.high)
    size = f"{apart} percentage points at k = {change.k}, FAR {rate(change.far)}"
    if change.high < 0:
        verb = "leaves less than" if change.against == result.raw.name else "beats"
        return Comparison(f"{space.name} {verb} {other}: {size}.", True)
    if change.low > 0:
        return Comparison(f"{space.name} leaves more than {other}: {size}.", False)
    return Comparison(f"{space.name} cannot be told from {other}: {size}.", False)


def _named(result: AuditResult, space: SpaceResult, name: str) -> str:
    other = result.space(name)
    if other is None or other.erasure is None:
        return "the raw vectors" if name == result.raw.name else name
    called = _CONTROLS.get(other.erasure.method, name)
    return f"{called} of {_rank(other.erasure, space.erasure)}"


def _rank(other: Erasure, own: Erasure | None) -> str:
    return "the same rank" if own is not None and own.rank == other.rank else f"rank {other.rank}"


def _outcome(change: Change) -> str:
    if change.high < 0:
        return "less"
    return "more" if change.low > 0 else "no"
