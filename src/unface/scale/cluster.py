"""A Ray cluster, joined for as long as it is needed; an address without a cluster is refused soon and in one line."""

import logging
import os
import socket
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from unface.errors import UnfaceError, without_secrets
from unface.threads import available_cores

if TYPE_CHECKING:
    from unface.scale.ray_tasks import RayExecutor

_CLIENT = "ray://"
_CLIENT_PORT = 10001
_REACHED_SECONDS = 5.0
# Despite its name: how often Ray tries to join, some 40 s each time, when what answers there is not Ray.
_TRIES = "RAY_gcs_server_port_wait_time_s"
_HIDDEN_LOGS = "RAY_DEDUP_LOGS_SKIP_REGEX"


@contextmanager
def ray_executor(address: str) -> Iterator["RayExecutor"]:
    """``auto``: the cluster this machine is part of; ``local``: a new one with this machine's cores.

    HOST:PORT is the head of a cluster this machine is part of, ray://HOST:PORT that of any cluster. It yields an
    Executor whose ``gather`` is a Gather. When the context ends, whatever still runs there is stopped.
    """
    # Ray prints a page on stdout for every lost worker. It reads this setting when it is first imported.
    os.environ.setdefault(_HIDDEN_LOGS, ".")
    try:
        import ray
    except ImportError:
        raise UnfaceError("--ray: Ray is not installed here; pip install 'unface[ray]'") from None
    from unface.scale.ray_tasks import RayExecutor

    address = _running_here() if address == "auto" else address
    _require_reachable(address)
    _join(address)
    try:
        yield RayExecutor()
    finally:
        ray.shutdown()


def _running_here() -> str:
    """Where ray.init looks for "auto" too: in RAY_ADDRESS, then in the file that 'ray start' writes.

    Looked up apart from joining: the cluster that the file names may have ended, and Ray would try it for long.
    """
    if named := os.environ.get("RAY_ADDRESS"):
        return named
    folder = Path(os.environ.get("RAY_TMPDIR") or os.environ.get("TMPDIR") or "/tmp")
    try:
        return (folder / "ray" / "ray_current_cluster").read_text(encoding="utf-8").strip() or "auto"
    except OSError:
        return "auto"


def _require_reachable(address: str) -> None:
    """Checked first, because Ray itself tries for many minutes."""
    if address in ("auto", "local"):
        return
    # Never printed as given: what comes before "@", or in the place of the port, may be a password.
    shown = without_secrets(address)
    form = UnfaceError(f"--ray {shown}: not an address; give auto, local, HOST:PORT or {_CLIENT}HOST:PORT")
    if "@" in address:
        raise UnfaceError(
            f"--ray {shown}: Ray takes no user name or password in an address; leave them out, and where the cluster"
            " asks for a token set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN"
        )
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
        raise UnfaceError(f"--ray {shown}: cannot be reached ({reason}); is the cluster's head there?") from None


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
        if address == "auto" and isinstance(error, ConnectionError):
            message = "--ray auto: no cluster runs on this machine; run 'ray start', or give --ray local"
            raise UnfaceError(message) from None
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise UnfaceError(
            f"--ray {address}: could not be joined ({reason}); this machine needs the cluster's versions of Ray and"
            " Python and, where it asks for a token, RAY_AUTH_MODE=token and that"
        ) from error
    finally:
        if not made_here:
            del os.environ[_TRIES]
