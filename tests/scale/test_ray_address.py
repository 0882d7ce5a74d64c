"""If this fails, an address without a cluster hangs, or ends in a page of text instead of a sentence."""

import logging
import os
import socket
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from unface.errors import UnfaceError
from unface.scale.cluster import ray_executor
from unface.threads import available_cores


def free_port() -> int:
    with socket.socket() as used:
        used.bind(("127.0.0.1", 0))
        return int(used.getsockname()[1])


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
def test_a_head_that_is_not_there_is_told_at_once(scheme: str) -> None:
    pytest.importorskip("ray", reason="Ray is not installed")
    address = f"{scheme}127.0.0.1:{free_port()}"
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


def test_auto_where_a_cluster_ended_is_told(recorded: Path) -> None:
    recorded.write_text(f"127.0.0.1:{free_port()}")
    assert "cannot be reached (Connection refused)" in refusal("auto")


def test_a_cluster_of_any_kind_has_a_port_that_is_usual(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ray", reason="Ray is not installed")
    monkeypatch.setattr("unface.scale.cluster._CLIENT_PORT", free_port())
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
