"""What survives erasure: telling classes, finding copies, keeping neighbours; before and after on the same queries."""

from unface.utility.kept import kept
from unface.utility.tasks import (
    CopyTask,
    LabelledTask,
    NeighbourTask,
    Outcome,
    Task,
    copy_task,
    labelled_task,
    neighbour_task,
    utility_tasks,
)

__all__ = [
    "CopyTask",
    "LabelledTask",
    "NeighbourTask",
    "Outcome",
    "Task",
    "copy_task",
    "kept",
    "labelled_task",
    "neighbour_task",
    "utility_tasks",
]
