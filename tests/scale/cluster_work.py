"""Work for a cluster's workers, some of which it kills; of a module of its own, as workers must import it."""

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unface.errors import UnfaceError
from unface.output.place import Place
from unface.scale.executor import Job, Result


@dataclass(frozen=True)
class Marked:
    """A job that leaves a file for each time it was begun, so that a test can count."""

    name: str
    folder: Path
    deaths: int = 0
    """How many times its worker is killed at the first of its attempts."""

    def begun(self) -> int:
        return len(list(self.folder.glob(f"{self.name}.*")))


def length_of_name(job: Marked) -> int:
    attempt = job.begun()
    (job.folder / f"{job.name}.{attempt}").touch()
    if attempt < job.deaths:
        os.kill(os.getpid(), signal.SIGKILL)
    return len(job.name)


def gated(job: Marked) -> int:
    """The job with the shortest name goes through at once, the others when there is a file "open"."""
    while len(job.name) > 1 and not (job.folder / "open").exists():
        time.sleep(0.05)
    return length_of_name(job)


def stubborn(job: Marked) -> int:
    """The same, and an interrupt is lost; it leaves a file "asked" when it has begun to wait."""
    if len(job.name) > 1:
        (job.folder / "asked").touch()
    while True:
        try:
            return gated(job)
        except KeyboardInterrupt:
            continue


@dataclass(frozen=True)
class Doomed:
    """A job that on one machine never ends, and on others waits until that one has begun one."""

    name: str
    folder: Path
    machine: str

    def reached(self) -> bool:
        return (self.folder / self.machine).exists()


def until_lost(job: Doomed) -> str:
    import ray

    here: str = ray.get_runtime_context().get_node_id()
    (job.folder / here).touch()
    while here == job.machine or not job.reached():
        time.sleep(0.05)
    return here


def dying(work: Callable[[Job], Result], folder: Path, steps: dict[str, str], job: Job) -> Result:
    """The worker is killed once over each of the files that are named, when it comes to that step of a Place."""
    name = getattr(job, "name", "")
    if name in steps and not (folder / name).exists():
        (folder / name).touch()
        setattr(Place, steps[name], lambda *_: os.kill(os.getpid(), signal.SIGKILL))
    return work(job)


def odd_refused(job: int) -> int:
    if job % 2:
        raise UnfaceError(f"{job}.parquet: is odd; give an even one")
    return job // 2


def divided(job: int) -> float:
    return 1 / job


def wordy(job: int) -> int:
    raise ValueError(f"a page\nof text about\njob {job}\n")


@dataclass
class Told:
    """Which jobs were put together, in which order, by which processes, and a sum too large to be sent along."""

    jobs: list[str]
    merged_by: set[int]
    total: NDArray[np.float64]


def told(job: Marked) -> Told:
    length_of_name(job)
    return Told([job.name], set(), np.full(200_000, 0.1 * len(job.name)))


def both_told(left: Told, right: Told) -> Told:
    mergers = {os.getpid()} | left.merged_by | right.merged_by
    return Told(left.jobs + right.jobs, mergers, left.total + right.total)
