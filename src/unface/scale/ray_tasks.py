"""The executor of a Ray cluster: one task for each job, rerun by Ray when its worker or its machine is lost."""

import copy
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from typing import Any

import ray
from ray.exceptions import RayError, RayTaskError

from unface._version import __version__
from unface.errors import UnfaceError
from unface.progress import Progress, Silent
from unface.scale.executor import Job, Result
from unface.scale.sums import PartSums, SumsJob, merge_sums, part_sums
from unface.threads import one_blas_thread

# A lost machine takes its tasks with it; a file that brings down every worker must not do so for ever.
_RETRIES = 3
_QUEUED_PER_CORE = 2
_KILLING_TRIES, _STOPPING_SECONDS = 5, 5.0

Branch = tuple[int, int]
"""Of the tree of merges: how high it is, and its number from the left among those as high."""


class RayExecutor:
    """Of the cluster that this process has joined."""

    def __call__(
        self, work: Callable[[Job], Result], jobs: Sequence[Job]
    ) -> Iterator[tuple[int, Result | UnfaceError]]:
        with closing(_Tasks(work, jobs).ended()) as ended:
            for (_, index), failure, result in ended:
                yield index, failure or ray.get(result)

    def gather(self, jobs: Sequence[SumsJob], progress: Progress) -> PartSums:
        """The sums of all files; a ``Gather``."""
        return self.reduce(part_sums, merge_sums, jobs, progress)

    def reduce(
        self,
        work: Callable[[Job], Result],
        merge: Callable[[Result, Result], Result],
        jobs: Sequence[Job],
        progress: Progress | None = None,
    ) -> Result:
        """``work`` of every job, put together in their order by ``merge``: associative, changing neither argument.

        Neighbours are merged where they lie, then pairs of pairs: this process is sent nothing but the last one. The
        same jobs give the same bytes, whichever end first. UnfaceError of any is raised. At least one job.
        """
        progress = progress or Silent()
        progress.start("files", len(jobs))
        tasks = _Tasks(work, jobs)
        alone: dict[Branch, Any] = {}
        with closing(tasks.ended()) as ended:
            for (level, number), failure, result in ended:
                if failure:
                    raise failure
                if level == 0:
                    progress.advance("files")
                # The last of an odd number has no neighbour, and goes up as it is.
                while number % 2 == 0 and number == (len(jobs) - 1) >> level > 0:
                    level, number = level + 1, number // 2
                neighbour = alone.pop((level, number ^ 1), None)
                if neighbour is None:
                    alone[level, number] = result
                    continue
                pair = (result, neighbour) if number % 2 == 0 else (neighbour, result)
                tasks.begin((level + 1, number // 2), _MERGED, merge, *pair)
        ((_, whole),) = alone.items()
        # Out of the shared store: that goes with the cluster, and cannot be written to.
        return copy.deepcopy(ray.get(whole))  # type: ignore[no-any-return]  # Ray has no types


class _Tasks:
    """Those of one run that have begun, and the jobs held back until the cluster has a core for them soon."""

    def __init__(self, work: Callable[[Job], Result], jobs: Sequence[Job]) -> None:
        self._work, self._jobs = work, jobs
        self._waiting = deque(range(len(jobs)))
        self._running: dict[Any, tuple[Branch, Any]] = {}

    def begin(self, branch: Branch, task: Any, *given: Any) -> None:
        failure, result = task.remote(__version__, *given)
        self._running[failure] = branch, result

    def ended(self) -> Generator[tuple[Branch, UnfaceError | None, Any]]:
        """(branch, failure, reference to the result) of each, also of those begun meanwhile."""
        try:
            while self._fill():
                (failure,), _ = ray.wait(list(self._running), num_returns=1)
                branch, result = self._running.pop(failure)
                yield branch, self._failure(failure, branch), result
        finally:
            self._stop()

    def _fill(self) -> bool:
        # Asked each time: machines come and go.
        cores = int(ray.cluster_resources().get("CPU", 0))  # type: ignore[no-untyped-call]  # nor here
        while self._waiting and len(self._running) < max(1, _QUEUED_PER_CORE * cores):
            index = self._waiting.popleft()
            self.begin((0, index), _WORKED, self._work, self._jobs[index])
        return bool(self._running)

    def _failure(self, failure: Any, branch: Branch) -> UnfaceError | None:
        level, number = branch
        where = getattr(self._jobs[number << level], "name", f"job {number << level}")
        try:
            refused: UnfaceError | None = ray.get(failure)
        except RayTaskError as error:
            raised = error.cause
            raise UnfaceError(f"{where}: failed on the cluster ({type(raised).__name__}: {_line(raised)})") from error
        except RayError as error:
            lost = f"{where}: {1 + _RETRIES} workers were lost over it ({type(error).__name__})"
            return UnfaceError(f"{lost}; see that a worker has memory enough")
        return refused

    def _stop(self) -> None:
        if not self._running or not ray.is_initialized():
            return
        left = list(self._running)
        # A task is interrupted by an exception, which is lost inside a callback from C, such as threadpoolctl's, or by
        # whoever catches it. Then its worker is killed, which every job survives.
        for force in (False, *[True] * _KILLING_TRIES):
            for failure in left:
                ray.cancel(failure, force=force)
            _, left = ray.wait(left, num_returns=len(left), timeout=_STOPPING_SECONDS)
            if not left:
                return


def _worked(version: str, work: Callable[[Job], Result], job: Job) -> tuple[UnfaceError | None, Result | None]:
    """On a worker. What failed and what came of it are apart, so that the latter can stay where it is."""
    if version != __version__:
        message = f"--ray: a worker has unface {__version__}, this is {version}; install one on all machines"
        return UnfaceError(message), None
    try:
        with one_blas_thread():
            return None, work(job)
    except UnfaceError as error:
        return error, None


def _merged(
    version: str, merge: Callable[[Result, Result], Result], left: Result, right: Result
) -> tuple[UnfaceError | None, Result | None]:
    return _worked(version, lambda both: merge(*both), (left, right))


def _line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [""])[-1]


_WORKED: Any = ray.remote(max_retries=_RETRIES, num_returns=2)(_worked)
_MERGED: Any = ray.remote(max_retries=_RETRIES, num_returns=2)(_merged)
