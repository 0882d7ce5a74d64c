"""If these fail, files are worked on in another order, not at the same time, or when nobody wants them any more."""

import threading
from collections.abc import Iterator

import pytest

from unface import UnfaceError
from unface.scale import local_executor
from unface.scale.executor import overlapped


def test_every_job_gives_its_result_and_a_refused_one_its_error() -> None:
    def halved(job: int) -> int:
        if job % 2:
            raise UnfaceError(f"{job}: is odd")
        return job // 2

    found = dict(local_executor(2)(halved, [4, 5, 6]))
    assert (found[0], str(found[1]), found[2]) == (2, "5: is odd", 3)


def test_a_defect_is_raised_as_it_is() -> None:
    with pytest.raises(ZeroDivisionError):
        list(local_executor(1)(lambda job: 1 // job, [1, 0]))


def test_so_many_jobs_run_at_a_time_and_no_more() -> None:
    together, running, most = threading.Barrier(3, timeout=10), [], []

    def met(job: int) -> int:
        running.append(job)
        most.append(len(running))
        together.wait()
        running.remove(job)
        return job

    assert sorted(local_executor(3)(met, range(9))) == [(job, job) for job in range(9)]
    assert max(most) == 3


def test_closing_drops_what_has_not_begun_and_waits_for_what_has() -> None:
    begun, ended = [], []

    def noted(job: int) -> int:
        begun.append(job)
        threading.Event().wait(0.05)
        ended.append(job)
        return job

    results = local_executor(1)(noted, range(50))
    next(results)
    results.close()  # type: ignore[attr-defined]  # an iterator in its type, a generator in fact
    assert begun == ended
    assert len(ended) < 10


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_overlapped_work_is_done_at_the_same_time_in_order_and_little_is_held(threads: int) -> None:
    made: list[int] = []

    def items() -> Iterator[int]:
        for number in range(6 * threads):
            made.append(number)
            yield number

    together = threading.Barrier(threads, timeout=10)
    running: list[int] = []

    def met(item: int) -> int:
        running.append(item)
        together.wait()
        assert len(running) <= threads
        together.wait()
        running.remove(item)
        return 10 * item

    used = []
    for result in overlapped(items(), met, threads):
        used.append(result)
        # Beside those at work: one that waits, and one that is being made.
        assert len(made) <= len(used) + threads + 2
    assert used == [10 * number for number in range(6 * threads)]


def test_nothing_overlaps_to_nothing() -> None:
    assert list(overlapped(iter([]), str, 2)) == []


def test_what_fails_while_items_are_made_or_worked_on_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        list(overlapped((1 // number for number in (1, 0)), str, 2))
    with pytest.raises(ZeroDivisionError):
        list(overlapped(iter([1, 0]), lambda item: 1 // item, 2))
