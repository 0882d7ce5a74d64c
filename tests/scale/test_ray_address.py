"""If this fails, an address without a cluster hangs, or ends in a page of text instead of a sentence."""

import socket
import sys
import time
from pathlib import Path

import pytest

from unface.errors import UnfaceError
from unface.scale.cluster import ray_executor


def free_port() -> int:
    with socket.socket() as used:
        used.bind(("127.0.0.1", 0))
        return int(used.getsockname()[1])


def refusal(address: str) -> str:
    start = time.monotonic()
    with pytest.raises(UnfaceError) as told, ray_executor(address):
        pass
    assert time.monotonic() - start < 10
    assert "\n" not in str(told.value)
    return str(told.value)


def test_without_ray_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    assert refusal("auto") == "--ray: Ray is not installed here; pip install 'unface[ray]'"


@pytest.mark.parametrize(
    "address", ["", "head", "head:", "head:port", ":6379", "head:99999", "ray://", "http://head:80"]
)
def test_what_is_no_address_is_refused(address: str) -> None:
    pytest.importorskip("ray", reason="Ray is not installed")
    expected = f"--ray {address}: not an address; give auto, local, HOST:PORT or ray://HOST:PORT"
    assert refusal(address) == expected


@pytest.mark.parametrize("scheme", ["", "ray://"])
def test_a_head_that_is_not_there_is_told_at_once(scheme: str) -> None:
    pytest.importorskip("ray", reason="Ray is not installed")
    address = f"{scheme}127.0.0.1:{free_port()}"
    expected = f"--ray {address}: cannot be reached (Connection refused); is the cluster's head there?"
    assert refusal(address) == expected


@pytest.fixture
def nothing_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Whatever does run on this machine, Ray does not find it; the file in which it notes the last one it started."""
    services = pytest.importorskip("ray._private.services", reason="Ray is not installed")
    monkeypatch.setattr(services, "find_gcs_addresses", set)
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    return tmp_path / "ray" / "ray_current_cluster"


@pytest.mark.usefixtures("nothing_runs")
def test_auto_where_no_cluster_runs_is_told() -> None:
    assert refusal("auto") == "--ray auto: no cluster runs on this machine; run 'ray start', or give --ray local"


def test_auto_where_a_cluster_ended_is_told(nothing_runs: Path) -> None:
    nothing_runs.parent.mkdir()
    nothing_runs.write_text(f"127.0.0.1:{free_port()}")
    assert "cannot be reached (Connection refused)" in refusal("auto")


def test_auto_is_what_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ray", reason="Ray is not installed")
    monkeypatch.setenv("RAY_ADDRESS", "somewhere")
    assert refusal("auto").startswith("--ray somewhere: not an address")
