"""If these fail, results come back in another order, depend on the number of threads, or an error is swallowed."""

import os
import threading
from collections.abc import Callable

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from unface.threads import available_cores, one_blas_thread, parallel_map

EITHER = pytest.mark.parametrize("threads", [1, 3])


@EITHER
def test_results_keep_the_order_of_the_items_though_the_first_ends_last(threads: int) -> None:
    others = threading.Semaphore(0)

    def work(item: int) -> int:
        if item > 0:
            others.release()
        elif threads > 1:
            assert all(others.acquire(timeout=120) for _ in range(8))
        return item * item

    assert parallel_map(work, range(9), threads) == [item * item for item in range(9)]


def test_no_items_are_no_results() -> None:
    assert parallel_map(str, [], 4) == []


def test_several_threads_do_work_at_once() -> None:
    """Each waits for the other: one thread alone would stand still until the barrier gives up."""
    barrier = threading.Barrier(2, timeout=120)
    assert sorted(parallel_map(lambda _: barrier.wait(), range(2), 2)) == [0, 1]


@EITHER
def test_blas_has_one_thread_inside_and_its_own_number_again_outside(threads: int) -> None:
    with threadpool_limits(limits=2, user_api="blas"):
        inside = parallel_map(lambda _: blas_threads(), range(3), threads)
        assert inside == [[1] * len(blas_threads())] * 3
        with one_blas_thread():
            assert set(blas_threads()) == {1}
        assert set(blas_threads()) == {2}


@EITHER
def test_an_exception_reaches_the_caller_and_blas_is_set_free(threads: int) -> None:
    with threadpool_limits(limits=2, user_api="blas"):
        with pytest.raises(ZeroDivisionError, match="the fourth"):
            parallel_map(failing(3), range(6), threads)
        assert set(blas_threads()) == {2}


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="no affinity on this system")
def test_cores_are_those_this_process_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 4, 5})
    assert available_cores() == 3


def blas_threads() -> list[int]:
    """Of the libraries that NumPy and SciPy multiply with. FAISS brings one for itself, on OpenMP, which counts anew
    in each thread."""
    np.ones((2, 2)) @ np.ones((2, 2))
    pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    return [int(pool["num_threads"]) for pool in pools if pool.get("threading_layer") != "openmp"]


def failing(at: int) -> Callable[[int], int]:
    def work(item: int) -> int:
        if item == at:
            raise ZeroDivisionError("the fourth")
        return item

    return work
