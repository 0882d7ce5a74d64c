"""Progress bars on standard error, and only where a person watches."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from unface.progress import Progress, Silent

if TYPE_CHECKING:
    from rich.progress import Progress as Drawn
    from rich.progress import TaskID


class Bars:
    """The progress port drawn by rich."""

    def __init__(self, drawn: "Drawn") -> None:
        self._drawn = drawn
        self._tasks: dict[str, TaskID] = {}

    def start(self, task: str, total: int) -> None:
        self._tasks[task] = self._drawn.add_task(task, total=total)

    def advance(self, task: str, steps: int = 1) -> None:
        self._drawn.advance(self._tasks[task], steps)


@contextmanager
def progress_bars(*, quiet: bool) -> Iterator[Progress]:
    """A progress port for the duration of a command; silent unless standard error is a terminal."""
    from rich.console import Console

    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield Silent()
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Drawn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Drawn(*columns, console=console, transient=True) as drawn:
        yield Bars(drawn)
