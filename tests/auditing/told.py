"""Who listens to progress in tests."""


class Told:
    """How many steps of each task were announced, and how many reported."""

    def __init__(self) -> None:
        self.totals: dict[str, int] = {}
        self.done: dict[str, int] = {}

    def start(self, task: str, total: int) -> None:
        self.totals[task] = total

    def advance(self, task: str, steps: int = 1) -> None:
        self.done[task] = self.done.get(task, 0) + steps
