"""The utility tasks of an audit, measured raw once and then after each projection."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from unface.data import EmbeddingSet, require_same_space
from unface.erase import Projection
from unface.result.numbers import Kept
from unface.utility import NeighbourTask, Outcome, Task, kept, neighbour_task, utility_tasks


@dataclass(frozen=True, eq=False)
class UtilityTasks:
    """Tasks with what the raw space achieves on them."""

    tasks: tuple[tuple[Task, tuple[Outcome, ...]], ...]
    level: float

    def kept(self, projection: Projection, *, useful: bool = False) -> list[Kept]:
        """Every measure after a projection, or only those of usefulness, beside the raw one."""
        measured = []
        for task, before in self.tasks:
            if useful and isinstance(task, NeighbourTask):
                continue
            after = task.outcomes(projection.apply(task.vectors))
            both = list(zip(before, after, strict=True))
            if isinstance(task, NeighbourTask):  # nobody may have a picture of the same person near
                both = [(raw, erased) for raw, erased in both if raw.value]
            measured += [kept(raw, erased, self.level) for raw, erased in both]
        return measured


def utility_tasks_of(audited: EmbeddingSet, sources: Sequence[EmbeddingSet], seed: int, level: float) -> UtilityTasks:
    """Neighbours in the audited set itself, and what each labelled or copy-detection source can be used for."""
    for source in sources:
        require_same_space(audited.space, source.unit().space)
    tasks: list[Task] = [neighbour_task(audited, seed=seed)]
    tasks += [task for source in _named_apart(sources) for task in utility_tasks(source, seed)]
    return UtilityTasks(tuple((task, task.outcomes(task.vectors)) for task in tasks), level)


def _named_apart(sources: Sequence[EmbeddingSet]) -> list[EmbeddingSet]:
    """Two sources of one name would read as one."""
    seen: dict[str, int] = {}
    named = []
    for source in sources:
        seen[source.source] = seen.get(source.source, 0) + 1
        again = seen[source.source]
        named.append(source if again == 1 else replace(source, source=f"{source.source} ({again})"))
    return named
