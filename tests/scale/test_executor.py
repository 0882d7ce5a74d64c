"""If these fail, jobs are lost or run at once where they must not, or a cluster that is not there is not told."""

import logging
import os
import socket
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from unface import UnfaceError
from unface.scale import local_executor
from unface.scale.cluster import ray_executor
from unface.scale.executor import overlapped
from unface.threads import available_cores


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
    together, running, most = threading.Barrier(3, timeout=60), [], []

    def met(job: int) -> int:
        running.append(job)
        most.append(len(running))
        together.wait()
        running.remove(job)
        return job

    assert sorted(local_executor(3)(met, range(9))) == [(job, job) for job in range(9)]
    assert max(most) == 3


def test_closing_drops_what_has_not_begun_and_waits_for_what_has() -> None:
    begun, ended, closing = [], [], threading.Event()

    def noted(job: int) -> int:
        begun.append(job)
        assert job == 0 or closing.wait(60)
        threading.Event().wait(0.2)
        ended.append(job)
        return job

    results = local_executor(1)(noted, range(50))
    next(results)
    closing.set()
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

    together = threading.Barrier(threads, timeout=60)
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


@pytest.fixture
def closed() -> Iterator[int]:
    """A port at which nobody listens, held so that nobody else is given it."""
    with socket.socket() as used:
        used.bind(("127.0.0.1", 0))
        yield int(used.getsockname()[1])


def refusal(address: str) -> str:
    with pytest.raises(UnfaceError) as told, ray_executor(address):
        pass
    assert "\n" not in str(told.value)
    return str(told.value)


def test_ray_is_kept_from_printing_pages_about_lost_workers_before_it_is_imported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delenv("RAY_DEDUP_LOGS_SKIP_REGEX", raising=False)
    refusal("auto")
    assert os.environ["RAY_DEDUP_LOGS_SKIP_REGEX"] == "."
    monkeypatch.setenv("RAY_DEDUP_LOGS_SKIP_REGEX", "of the user")
    refusal("auto")
    assert os.environ["RAY_DEDUP_LOGS_SKIP_REGEX"] == "of the user"


@pytest.mark.parametrize(
    "address",
    ["ray://u:private@127.0.0.1:1", "ray://u:pri@vate@h:1", "ray://u:pri#vate@h:1", "ray://h:private", "u:private@h:1"],
)
@pytest.mark.parametrize("given", ["option", "environment"])
def test_no_part_of_a_password_in_an_address_is_printed(
    address: str, given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ray", reason="Ray is not installed")
    monkeypatch.setenv("RAY_ADDRESS", address)
    message = refusal(address if given == "option" else "auto")
    assert not {part for part in ("pri", "vate") if part in message}


@pytest.mark.parametrize("scheme", ["", "ray://"])
def test_a_head_that_is_not_there_is_told_at_once(scheme: str, closed: int) -> None:
    pytest.importorskip("ray", reason="Ray is not installed")
    address = f"{scheme}127.0.0.1:{closed}"
    expected = f"--ray {address}: cannot be reached (Connection refused); is the cluster's head there?"
    assert refusal(address) == expected


def test_a_head_that_never_answers_is_not_waited_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ray", reason="Ray is not installed")

    def silent(address: tuple[str, int], timeout: float = 3600) -> socket.socket:
        assert address == ("head", 6379)
        assert timeout <= 10
        raise TimeoutError("timed out")

    monkeypatch.setattr(socket, "create_connection", silent)
    expected = "--ray head:6379: cannot be reached (timed out); is the cluster's head there?"
    assert refusal("head:6379") == expected


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The file in which Ray notes the last cluster that it started; not there yet."""
    pytest.importorskip("ray", reason="Ray is not installed")
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    (tmp_path / "ray").mkdir()
    return tmp_path / "ray" / "ray_current_cluster"


def test_auto_where_a_cluster_ended_is_told(recorded: Path, closed: int) -> None:
    recorded.write_text(f"127.0.0.1:{closed}")
    assert "cannot be reached (Connection refused)" in refusal("auto")


def test_a_cluster_of_any_kind_has_a_port_that_is_usual(monkeypatch: pytest.MonkeyPatch, closed: int) -> None:
    pytest.importorskip("ray", reason="Ray is not installed")
    monkeypatch.setattr("unface.scale.cluster._CLIENT_PORT", closed)
    assert refusal("ray://127.0.0.1").startswith("--ray ray://127.0.0.1: cannot be reached (Connection refused)")


@pytest.fixture
def listening() -> Iterator[str]:
    """An address at which something answers that is no Ray."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


TRIES = "RAY_gcs_server_port_wait_time_s"


@dataclass
class Joined:
    """What Ray was asked for, in its place."""

    failure: Exception | None = None
    asked: list[tuple[str, dict[str, Any], str | None]] = field(default_factory=list)
    left: int = 0

    def init(self, address: str, **options: Any) -> None:
        self.asked.append((address, options, os.environ.get(TRIES)))
        if self.failure is not None:
            raise self.failure

    def shutdown(self) -> None:
        self.left += 1


@pytest.fixture
def ray_itself(monkeypatch: pytest.MonkeyPatch) -> Joined:
    ray, instead = pytest.importorskip("ray", reason="Ray is not installed"), Joined()
    monkeypatch.setattr(ray, "init", instead.init)
    monkeypatch.setattr(ray, "shutdown", instead.shutdown)
    monkeypatch.delenv(TRIES, raising=False)
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "1")
    return instead


def test_a_cluster_is_joined_by_one_try_without_its_logs_and_left_whatever_happens(
    ray_itself: Joined, listening: str
) -> None:
    with pytest.raises(ZeroDivisionError), ray_executor(listening):
        raise ZeroDivisionError
    assert ray_itself.asked == [(listening, {"log_to_driver": False, "logging_level": logging.CRITICAL}, "1")]
    assert ray_itself.left == 1
    assert TRIES not in os.environ


def test_one_of_this_machine_has_its_cores_no_pages_and_reports_to_nobody(ray_itself: Joined) -> None:
    with ray_executor("local"):
        assert os.environ["RAY_USAGE_STATS_ENABLED"] == "0"
    ((address, options, tries),) = ray_itself.asked
    assert (address, options["num_cpus"], options["include_dashboard"]) == ("local", available_cores(), False)
    assert tries is None


@pytest.mark.parametrize(
    ("failure", "why"),
    [(ValueError("Version mismatch: 2.1\nand a page\nof text"), "Version mismatch: 2.1"), (KeyError(), "KeyError")],
)
def test_a_cluster_that_cannot_be_joined_is_told_in_a_line_with_what_is_needed(
    ray_itself: Joined, listening: str, failure: Exception, why: str
) -> None:
    ray_itself.failure = failure
    told = refusal(listening)
    assert told.startswith(f"--ray {listening}: could not be joined ({why}); this machine needs the cluster's versions")
    assert "RAY_AUTH_MODE=token" in told
    assert TRIES not in os.environ


@pytest.mark.usefixtures("recorded")
def test_auto_where_no_cluster_runs_is_told(ray_itself: Joined) -> None:
    ray_itself.failure = ConnectionError("Could not find any running Ray instance.")
    assert refusal("auto") == "--ray auto: no cluster runs on this machine; run 'ray start', or give --ray local"
    assert [address for address, _, _ in ray_itself.asked] == ["auto"]


def test_auto_is_the_cluster_that_was_started_last(ray_itself: Joined, recorded: Path, listening: str) -> None:
    recorded.write_text(f"{listening}\n")
    with ray_executor("auto"):
        pass
    assert [address for address, _, _ in ray_itself.asked] == [listening]
