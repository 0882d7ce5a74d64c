"""The port behind which files are worked on (threads of this process, or other machines), and overlapped work."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from typing import Protocol, TypeVar

from unface.errors import UnfaceError
from unface.threads import available_cores, one_blas_thread

Item = TypeVar("Item")
Job = TypeVar("Job")
Result = TypeVar("Result")


class Executor(Protocol):
    """Runs ``work(job)`` for each job and yields (index of the job, result) as jobs end, in any order.

    ``work`` is a function of a module and jobs are small frozen dataclasses, so both can be pickled. A job that fails
    with UnfaceError yields that error in place of a result, and the others go on; any other exception is a defect and
    is raised. A job may be run more than once: each is written so that this changes nothing. Closing the iterator
    drops the jobs that have not begun and waits for the others.
    """

    def __call__(
        self, work: Callable[[Job], Result], jobs: Sequence[Job]
    ) -> Iterator[tuple[int, Result | UnfaceError]]: ...


def local_executor(workers: int | None = None) -> Executor:
    """So many jobs at a time in threads of this process; as many as it may use cores if not given."""

    def run(work: Callable[[Job], Result], jobs: Sequence[Job]) -> Iterator[tuple[int, Result | UnfaceError]]:
        # Around all of them: the limit is the process's, and a job that ended would lift it for the others.
        with one_blas_thread(), ThreadPoolExecutor(workers or available_cores()) as pool:
            begun: dict[Future[Result], int] = {pool.submit(work, job): index for index, job in enumerate(jobs)}
            try:
                for ended in as_completed(begun):
                    outcome: Result | UnfaceError
                    try:
                        outcome = ended.result()
                    except UnfaceError as error:
                        outcome = error
                    yield begun[ended], outcome
            finally:
                pool.shutdown(cancel_futures=True)

    return run


def overlapped(
    items: Iterator[Item],
    work: Callable[[Item], Result],
    threads: int,
    is_large: Callable[[Item], bool] = lambda item: False,
) -> Iterator[Result]:
    """``map(work, items)`` in order, while the next items are made and the results used; large ones one at a time."""
    with ThreadPoolExecutor(1) as making, ThreadPoolExecutor(threads) as working:
        waiting: deque[Future[Result]] = deque()
        upcoming = making.submit(next, items, None)
        while (item := upcoming.result()) is not None or waiting:
            large = item is not None and is_large(item)
            if item is not None:
                waiting.append(working.submit(work, item))
            if item is not None and not large:
                upcoming = making.submit(next, items, None)
            while waiting and (item is None or large or len(waiting) > threads):
                yield waiting.popleft().result()
            if large:
                del item
                upcoming = making.submit(next, items, None)
