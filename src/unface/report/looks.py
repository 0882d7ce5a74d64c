"""Colours, dashes and shapes that tell spaces apart: ink for raw, colour for erasers, grey for controls."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from unface.auditing.schema import AuditResult

INK, GREY, AXIS, GRID = "#1f2328", "#767c85", "#4a4f57", "#e3e5e8"
ERASERS = ("#1c5d99", "#a8501c", "#2f7a4f", "#7a4a96")
# Of the maps alone, where each colour is a person.
PEOPLE = ("#3f79b0", "#c2692f", "#3f8a5f", "#a4508b", "#8a7420", "#5b62b8", "#b0484f", "#2b8794")
_CONTROLS = (((2, 2), "cross"), ((6, 3), "square"), ((10, 3), "triangle-down"), ((4, 6), "triangle-up"))
SHAPES = ("circle", "diamond", "triangle-up", "square")


@dataclass(frozen=True)
class Look:
    """How one space is drawn, everywhere on the page."""

    name: str
    colour: str
    dash: tuple[int, int]
    shape: str


def looks_of(names: Sequence[str]) -> dict[str, Look]:
    """Of spaces without an audit around them: the first is raw, the others are erasers."""
    raw, *erasers = names
    return {raw: Look(raw, INK, (1, 0), "circle"), **{name: _eraser(name, n) for n, name in enumerate(erasers)}}


def looks(result: AuditResult) -> dict[str, Look]:
    """The look of each space by its name, and of each method of a sweep by its own."""
    control: dict[str, bool] = {}
    for space in result.spaces[1:]:
        control[space.name] = space.erasure is not None and space.erasure.control
    methods = {space.erasure.method: space.name for space in reversed(result.spaces) if space.erasure}
    swept = {point.method: point.control for sweep in result.sweeps for point in sweep.points}
    control |= {name: swept[name] for name in swept if name not in control and name not in methods}
    found = {result.raw.name: Look(result.raw.name, INK, (1, 0), "circle")}
    erasers = [name for name in control if not control[name] and name not in found]
    for index, name in enumerate(erasers):
        found[name] = _eraser(name, index)
    for index, name in enumerate(name for name in control if control[name] and name not in found):
        found[name] = Look(name, GREY, *_CONTROLS[index % len(_CONTROLS)])
    # A method of a sweep looks like the first space that it made.
    found |= {name: replace(found[methods[name]], name=name) for name in swept if name in methods and name not in found}
    return found


def _eraser(name: str, index: int) -> Look:
    """Past the last colour a dash tells them apart."""
    dash = (1, 0) if index < len(ERASERS) else (8, 3)
    return Look(name, ERASERS[index % len(ERASERS)], dash, SHAPES[index % len(SHAPES)])
