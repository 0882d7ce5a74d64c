"""How much memory a command may use: what a file declares is held against it before anything is allocated."""

import os
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from pathlib import Path

from unface.errors import UnfaceError

_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_LEAST = 64 << 20
# Of version 2 and 1 of control groups: a container's limit, what it uses, and how much of that is files read before.
_GROUPS = (
    (Path("/sys/fs/cgroup"), "memory.max", "memory.current", "inactive_file"),
    (Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)
_MEMORY = Path("/proc/meminfo")
# Code, buffers and stacks of threads of what a command imports: torch and Ray take the most, half of this.
_LIBRARIES = 1 << 30
# What one step of a library may take, and what is held with it, at least: small budgets have to do with libraries too.
_LEAST_STEP, _LEAST_HELD = 128 << 20, 512 << 20
# Arrow's own allocator takes a gigabyte of addresses at once, in which nothing is refused any more.
_ARROW_POOL = "ARROW_DEFAULT_MEMORY_POOL"
_given: int | None = None

# Bytes for each number of a set that is read, beside those of the file: twice in single precision.
_in_use: ContextVar[int] = ContextVar("_in_use", default=8)


def memory_budget() -> int:
    """Bytes: what ``limit_memory`` was given, or three quarters of what was available when it was first asked for."""
    return _given or max(_available() * 3 // 4, _LEAST)


def number_in_use() -> int:
    """Bytes that the command takes for each number of a set that it reads, beside those of the file itself."""
    return _in_use.get()


@contextmanager
def numbers_take(size: int) -> Iterator[None]:
    """Sets that are read in here are held against the budget with so many bytes for each number."""
    before = _in_use.set(size)
    try:
        yield
    finally:
        _in_use.reset(before)


def limit_memory(size: str | None) -> None:
    """Set the budget from text such as "8G" or "512M"; None is the default."""
    global _given  # noqa: PLW0603 - a property of the process, as its limits are
    if size is None:
        _given = None
        return
    parsed = re.fullmatch(r"(\d{1,15})\s*([kmgt]?)(i?b)?", size.strip().lower())
    if parsed is None:
        raise UnfaceError(f"--memory: {ascii(size)[:40]} is not a size; write for example 8G or 512M")
    wanted = int(parsed[1]) * _UNITS[parsed[2]]
    if wanted < _LEAST:
        raise UnfaceError(f"--memory: {ascii(size)[:40]} is too little to work with; give at least {_shown(_LEAST)}")
    _given = wanted


def enforce_memory() -> Callable[[], None]:
    """Let the system refuse this process more than the budget and a gigabyte for libraries, which raises MemoryError.

    For what no header declares. Steps that ``one_step`` surrounds are held to less. Only Linux knows such a limit.
    What is returned ends it.
    """
    try:
        import resource

        before, most = resource.getrlimit(resource.RLIMIT_DATA)
        wanted = _now("VmData") + _LIBRARIES + memory_budget()
        wanted = min(wanted, most) if most >= 0 else wanted
        resource.setrlimit(resource.RLIMIT_DATA, (wanted, most))
    except (ImportError, OSError, ValueError):
        return lambda: None
    pool = os.environ.get(_ARROW_POOL)
    os.environ[_ARROW_POOL] = pool or "system"
    _STEPS.limit, _STEPS.most = wanted, most

    def end() -> None:
        _STEPS.limit = None
        if pool is None:
            os.environ.pop(_ARROW_POOL, None)
        resource.setrlimit(resource.RLIMIT_DATA, (before, most))

    return end


@contextmanager
def one_step() -> Iterator[None]:
    """While a library unpacks or packs one piece: the system refuses it more than a quarter of the budget.

    A page of a few bytes can stand for gigabytes, and what a header declares may be false. Steps of several threads at
    once share the limit. Without ``enforce_memory``, which commands call, nothing is refused.
    """
    _STEPS.begin()
    try:
        yield
    finally:
        _STEPS.end()


class _Steps:
    """The steps that are under way; ``limit`` is what holds between them, None where nothing is enforced."""

    def __init__(self) -> None:
        self.limit: int | None = None
        self.most = -1
        self._count = 0
        self._lock = threading.Lock()

    def begin(self) -> None:
        with self._lock:
            self._count += 1
            if self.limit is None:
                return
            budget = memory_budget()
            left = max(budget * 3 // 4, _LEAST_HELD) - _now("RssAnon")
            if left <= 0:
                self._count -= 1
                raise MemoryError
            self._set(min(self.limit, _now("VmData") + min(left, max(budget // 4, _LEAST_STEP))))

    def end(self) -> None:
        with self._lock:
            self._count -= 1
            if self.limit is not None and not self._count:
                self._set(self.limit)

    def _set(self, limit: int) -> None:
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (limit, self.most))


_STEPS = _Steps()


def _now(key: str) -> int:
    """Bytes that this process has: addresses that it may write to (VmData), or memory behind them (RssAnon)."""
    found = re.search(rf"{key}:\s+(\d+)", Path("/proc/self/status").read_text(encoding="ascii", errors="replace"))
    return int(found[1]) << 10 if found else 0


def beyond_memory(source: str = "") -> UnfaceError:
    """What MemoryError means under such a limit."""
    where = f"{source}: " if source else ""
    return UnfaceError(f"{where}needs more memory than the budget of {_shown(memory_budget())}; raise --memory")


def require_further_memory(needed: int, source: str, advice: str) -> None:
    """Refuse what would not fit beside all that the process holds already, as far as the system tells."""
    with suppress(OSError):
        needed += _now("RssAnon")
    if needed > _LEAST_HELD:
        require_memory(needed, source, advice)


def require_memory(needed: int, source: str, advice: str) -> None:
    """Refuse what would not fit; ``advice`` says what to do instead of giving more memory."""
    budget = memory_budget()
    if needed > budget:
        raise UnfaceError(
            f"{source}: needs about {_shown(needed)} of memory, the budget is {_shown(budget)}; {advice},"
            " or raise --memory"
        )


@cache
def _available() -> int:
    """Bytes that this machine and its container can still give without taking them from another process."""
    free = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 8 << 30
    found = re.search(r"MemAvailable:\s+(\d+)", _text(_MEMORY))
    if found is not None:
        free = min(free, int(found[1]) << 10)
    for folder, limit, used, files in _GROUPS:
        most, now = _text(folder / limit).strip(), _text(folder / used).strip()
        if most.isdigit() and now.isdigit():  # otherwise not here, or "max"
            again = re.search(rf"^{files} (\d+)", _text(folder / "memory.stat"), re.MULTILINE)
            free = min(free, max(int(most) - int(now) + (int(again[1]) if again else 0), 0))
    return free


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="ascii")
    except (OSError, ValueError):
        return ""


def _shown(size: int) -> str:
    return f"{size / (1 << 30):,.1f} GB" if size >= 1 << 30 else f"{size / (1 << 20):,.0f} MB"
