"""A Ray cluster, joined for as long as it is needed; an address where there is none is told soon and in one line."""

import logging
import os
import socket
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from unface.errors import UnfaceError
from unface.threads import available_cores

if TYPE_CHECKING:
    from unface.scale.ray_tasks import RayExecutor

_CLIENT = "ray://"
_CLIENT_PORT = 10001
_REACHED_SECONDS = 5.0
# Not only for the port: how often joining is tried, some 40 s each time, when what answers there is no Ray.
_TRIES = "RAY_gcs_server_port_wait_time_s"


@contextmanager
def ray_executor(address: str) -> Iterator["RayExecutor"]:
    """``auto``: the cluster this machine is part of; ``local``: one of this machine's cores, made for the purpose.

    HOST:PORT is the head of a cluster this machine is part of, ray://HOST:PORT that of any cluster. What it gives is an
    Executor, and its ``gather`` a Gather. When the context ends, whatever still runs there is stopped.
    """
    try:
        import ray
    except ImportError:
        raise UnfaceError("--ray: Ray is not installed here; pip install 'unface[ray]'") from None
    from unface.scale.ray_tasks import RayExecutor

    address = _running_here() if address == "auto" else address
    _require_reachable(address)
    with _no_reports():
        _join(address)
        try:
            yield RayExecutor()
        finally:
            ray.shutdown()


def _running_here() -> str:
    """Looked up apart from joining: what Ray remembers may be a cluster that has ended."""
    from ray._private import services

    try:
        found: str = os.environ.get("RAY_ADDRESS") or services.canonicalize_bootstrap_address_or_die("auto")
    except ConnectionError:
        raise UnfaceError("--ray auto: no cluster runs on this machine; run 'ray start', or give --ray local") from None
    return found


def _require_reachable(address: str) -> None:
    """Asked first, because Ray itself goes on trying for many minutes."""
    if address == "local":
        return
    form = UnfaceError(f"--ray {address}: not an address; give auto, local, HOST:PORT or {_CLIENT}HOST:PORT")
    client = address.startswith(_CLIENT)
    try:
        parts = urlsplit(address if client else f"//{address}")
        host, port = parts.hostname, parts.port or (_CLIENT_PORT if client else None)
    except ValueError:
        raise form from None
    if not host or not port:
        raise form
    try:
        socket.create_connection((host, port), timeout=_REACHED_SECONDS).close()
    except OSError as error:
        reason = error.strerror or str(error)
        raise UnfaceError(f"--ray {address}: cannot be reached ({reason}); is the cluster's head there?") from None


def _join(address: str) -> None:
    import ray

    made_here: dict[str, Any] = {}
    if address == "local":
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        made_here = {"num_cpus": available_cores(), "include_dashboard": False}
    else:
        os.environ[_TRIES] = "1"
    try:
        with warnings.catch_warnings(action="ignore"):
            ray.init(address, log_to_driver=False, logging_level=logging.CRITICAL, **made_here)
    except Exception as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise UnfaceError(
            f"--ray {address}: could not be joined ({reason}); this machine needs the cluster's versions of Ray and"
            " Python and, where it asks for a token, RAY_AUTH_MODE=token and that"
        ) from error
    finally:
        if not made_here:
            del os.environ[_TRIES]


@contextmanager
def _no_reports() -> Iterator[None]:
    """Ray prints pages on stdout about every lost worker, and has no public switch for that."""
    from ray._private import worker

    shown = worker._worker_logs_enabled
    worker._worker_logs_enabled = False
    try:
        yield
    finally:
        worker._worker_logs_enabled = shown
