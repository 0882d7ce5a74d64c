"""What survives erasure: telling classes, finding copies, keeping neighbours; before and after on the same queries."""

from unface.utility.choose import utility_tasks
from unface.utility.copies import CopyTask, copy_task
from unface.utility.kept import kept
from unface.utility.labelled import LabelledTask, labelled_task
from unface.utility.neighbours import neighbour_task
from unface.utility.outcome import Outcome, Task

__all__ = [
    "CopyTask",
    "LabelledTask",
    "Outcome",
    "Task",
    "copy_task",
    "kept",
    "labelled_task",
    "neighbour_task",
    "utility_tasks",
]
