"""One progress port: rooms report steps to it, the command line decides whether anyone sees them."""

from typing import Protocol


class Progress(Protocol):
    """Hears about work in steps of any size; must be safe to call from several threads."""

    def start(self, task: str, total: int) -> None:
        """A task begins, of ``total`` steps."""

    def advance(self, task: str, steps: int = 1) -> None:
        """Some steps of a task are done."""


class Silent:
    """The default: nobody is watching."""

    def start(self, task: str, total: int) -> None:
        pass

    def advance(self, task: str, steps: int = 1) -> None:
        pass
