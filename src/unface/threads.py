"""Threads over work items with single-threaded BLAS inside: the same bytes whatever the number of threads."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import TypeVar

from threadpoolctl import ThreadpoolController

# How many modules there were when this thread of control last limited BLAS, 0 outside: to set the limit again takes
# longer than a small product.
_limited: ContextVar[int] = ContextVar("_limited", default=0)
Item = TypeVar("Item")
Result = TypeVar("Result")


def parallel_map(work: Callable[[Item], Result], items: Iterable[Item], threads: int | None = None) -> list[Result]:
    """``[work(item) for item in items]``, several at a time; results keep the order of the items."""
    listed = list(items)
    workers = min(threads or available_cores(), len(listed))
    with one_blas_thread():
        if workers <= 1:
            return [work(item) for item in listed]
        with ThreadPoolExecutor(workers, initializer=_limited.set, initargs=(len(sys.modules),)) as pool:
            return list(pool.map(work, listed))


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """BLAS on one thread: how a product is cut up among threads would otherwise show in its last bits."""
    if (limited := _limited.get()) and limited == len(sys.modules):
        yield
        return
    # A module imported since the last call may have brought a BLAS of its own.
    with _controller(len(sys.modules)).limit(limits=1, user_api="blas"):
        token = _limited.set(len(sys.modules))
        try:
            yield
        finally:
            _limited.reset(token)


def available_cores() -> int:
    """Cores this process may use, which is less than the machine has inside many containers."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@lru_cache(maxsize=1)
def _controller(modules: int) -> ThreadpoolController:
    """Looking for libraries takes milliseconds, so it is done again only when ``modules``, their number, changed."""
    import scipy.linalg  # noqa: F401  (scipy brings a BLAS of its own, to be found before the list is made)

    return ThreadpoolController()
