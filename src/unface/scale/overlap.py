"""Reading, working and writing at the same time, in order, with few things held between them."""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def overlapped(items: Iterator[Item], work: Callable[[Item], Result], threads: int) -> Iterator[Result]:
    """``map(work, items)`` in order, while the next items are made and the results used."""
    with ThreadPoolExecutor(1) as making, ThreadPoolExecutor(threads) as working:
        waiting: deque[Future[Result]] = deque()
        upcoming = making.submit(next, items, None)
        while (item := upcoming.result()) is not None or waiting:
            if item is not None:
                upcoming = making.submit(next, items, None)
                waiting.append(working.submit(work, item))
            if item is None or len(waiting) > threads:
                yield waiting.popleft().result()
