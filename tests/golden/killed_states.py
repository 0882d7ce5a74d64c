"""States that a killed run leaves, kept as files: ``python -m tests.golden.killed_states [WRITER …]`` makes them again.

Each writer runs once in a process that stops before and after each of its steps on disk. What lies there at that moment
is what a kill at that moment leaves, and becomes ``killed/<writer>-<step>.tar.xz``; states that differ in nothing but
times and drawn names are kept once. ``killed/<writer>-inputs.tar.xz`` has what the run was given. ``killed/index.toml``
names the version that made each state, its step, and how the writer's command ends when it is given again (the commands
are in ``killed_writers.py``, ledgers in ``killed_ledger.py``):
it finishes as an undisturbed run does, or it refuses in one line. A state that is made again by a later version says
what that version leaves, and no longer what users of an earlier one have on their disks: make only new writers' states.

Two things in such states hold only on the machine and in the folder where they were made. In the archives they are
replaced by words, and ``unpack`` puts the numbers of the new place there:

* the sidecar of a store that is one file has the inode of its raw file: "inode of <name>";
* the manifest of a folder of Parquet files has the hash of its source's path: "hash of the path of <name>".

A PostgreSQL table is kept as the SQL of its dump, in which the names that unface makes have "OID" for its number.

Times of files are restored to the nanosecond. Locks are not kept: a process holds them, not what it leaves.
"""

import hashlib
import io
import json
import lzma
import math
import os
import re
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, chdir, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from tests.fire.held_run import Announce, HeldRun
from tests.golden.store_contents import Value, contents, readable
from tests.kit.command import unface

ARCHIVES = Path(__file__).parent / "killed"
INDEX = ARCHIVES / "index.toml"
_INODE, _HASH = "inode of ", "hash of the path of "
_DRAWN = re.compile(
    r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\b[0-9a-f]{16,64}\b|(?<=\.)[0-9a-f]{8}(?=\.tmp)|\b[01]{24}[0-9a-z]{26}\b"
)
_TIMES = re.compile(rb'"(finished|started|resumed|time|seconds|written_ns|source_changed_ns)": ?("[^"]*"|[0-9.]+)')


@dataclass(frozen=True)
class Writer:
    """A command that works in pieces, as it is given in a folder that holds ``in/``."""

    command: str
    prepare: Callable[[], None]
    """Makes ``in/`` and, for a store, the store itself in the present folder."""
    wrap: Callable[[Announce], None]
    setting: Callable[[], AbstractContextManager[None]] = nullcontext
    """What the process that runs needs besides, both when states are made and when they are continued."""
    only: tuple[str, ...] = ()
    """If given: the steps, by name, at which states are kept."""
    dump: Callable[[Path], bool] = lambda folder: True
    """Brings what lies elsewhere into the folder; False where that cannot be seen at this step."""


@dataclass(frozen=True)
class Entry:
    """A file, folder or second name of a file."""

    name: str
    mode: int
    changed_ns: int
    content: bytes | None = None
    """None for a folder."""
    same_as: str | None = None
    """The first name of a file that has several."""


@dataclass
class State:
    """What lies there before or after a step."""

    step: str
    entries: list[Entry] = field(default_factory=list)

    def key(self) -> str:
        """Equal for states that differ only in times and drawn names."""
        digest = hashlib.sha256()
        names: dict[str, str] = {}

        def plain(text: bytes) -> bytes:
            known = _DRAWN.sub(lambda found: names.setdefault(found[0], f"drawn {len(names)}"), text.decode("latin-1"))
            return _TIMES.sub(rb'"\1": 0', known.encode("latin-1"))

        for entry in self.entries:
            digest.update(repr((plain(entry.name.encode()), entry.mode, entry.same_as)).encode())
            digest.update(b"folder" if entry.content is None else plain(entry.content))
        return digest.hexdigest()


def writers() -> dict[str, Writer]:
    """By name, as the archives' names begin."""
    from tests.golden import killed_writers

    return killed_writers.WRITERS


def unpack(archive: str, folder: Path) -> None:
    """Put a state, or a writer's inputs, into ``folder``, and what depends on the place with it."""
    with tarfile.open(ARCHIVES / f"{archive}.tar.xz", "r:xz") as opened:
        members = opened.getmembers()
        for member in members:
            path = folder / member.name
            if member.isdir():
                path.mkdir(exist_ok=True)
            elif member.islnk():
                os.link(folder / member.linkname, path)
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                content = opened.extractfile(member)
                assert content is not None
                path.write_bytes(content.read())
            path.chmod(member.mode)
        for member in members:
            seconds, _, parts = member.pax_headers["mtime"].partition(".")
            _set_changed(folder / member.name, int(seconds) * 10**9 + int(parts.ljust(9, "0")))
    for path in [folder / member.name for member in members if member.isreg()]:
        _settle(path, folder)


def _set_changed(path: Path, changed_ns: int) -> None:
    os.utime(path, ns=(changed_ns, changed_ns))


def _settle(path: Path, folder: Path) -> None:
    """Put what holds here in the place of words."""
    if not path.name.endswith(".json"):
        return
    text = path.read_text("utf-8")
    for name in re.findall(rf'"{_INODE}([^"]+)"', text):
        text = text.replace(f'"{_INODE}{name}"', str((path.parent / name).stat().st_ino))
    for name in re.findall(rf"{_HASH}([^\"]+)", text):
        text = text.replace(f"{_HASH}{name}", hashlib.sha256(str(folder / name).encode()).hexdigest())
    if text != path.read_text("utf-8"):
        changed_ns = path.stat().st_mtime_ns
        path.write_text(text, "utf-8")
        _set_changed(path, changed_ns)


def states_of(name: str, folder: Path) -> Iterator[State]:
    """Run a writer in a folder that was prepared, and stop at each step."""
    arguments = writers()[name].command.split()[1:]
    held = HeldRun([*arguments, "--quiet"], partial(_begin, folder, name), folder.parent)
    inodes: dict[int, str] = {}
    for step in held:
        if writers()[name].dump(folder):
            yield State(step.name, _entries(folder, inodes))
    ended = held.ended()
    assert ended.code == 0, ended


_HELD = ExitStack()  # for as long as the process lives


def _begin(folder: Path, name: str, announce: Announce) -> None:
    writer = writers()[name]
    os.chdir(folder)
    _HELD.enter_context(writer.setting())
    writer.wrap(announce)


def _entries(folder: Path, inodes: dict[int, str] | None = None) -> list[Entry]:
    """All but ``in/``. ``inodes``: names that files had first, which stores record."""
    entries: list[Entry] = []
    first: dict[int, str] = {}
    for path in sorted(folder.rglob("*")):
        name, status = path.relative_to(folder).as_posix(), path.lstat()
        if inodes is not None and (name == "in" or name.startswith("in/")):
            continue
        made = partial(Entry, name, status.st_mode & 0o777, status.st_mtime_ns)
        if path.is_dir():
            entries.append(made())
        elif status.st_ino in first and status.st_nlink > 1:
            entries.append(made(b"", first[status.st_ino]))
        else:
            first[status.st_ino] = name
            entries.append(made(_portable(path, folder)))
    return entries


def _portable(path: Path, folder: Path) -> bytes:
    content = path.read_bytes()
    assert str(folder).encode() not in content, f"{path} names the folder in which it was made"
    if path.name.endswith(".unface.json") and b'"raw"' in content:
        stamp = json.loads(content)["raw"]
        if isinstance(stamp, dict):
            siblings = [each.name for each in sorted(path.parent.iterdir()) if each.stat().st_ino == stamp["inode"]]
            named = f'"{_INODE}{siblings[0]}"' if siblings else "0"
            return content.replace(f'"inode": {stamp["inode"]}'.encode(), f'"inode": {named}'.encode())
    if path.name == "manifest.json":
        for given in sorted((folder / "in").iterdir()):
            hashed = hashlib.sha256(str(given).encode()).hexdigest()
            content = content.replace(hashed.encode(), f"{_HASH}in/{given.name}".encode())
    return content


def pack(name: str, entries: list[Entry]) -> int:
    """Write an archive; returns its size. The same entries make the same bytes."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for entry in entries:
            member = tarfile.TarInfo(entry.name)
            member.mode = entry.mode
            member.pax_headers = {"mtime": f"{entry.changed_ns // 10**9}.{entry.changed_ns % 10**9:09d}"}
            if entry.same_as is not None:
                member.type, member.linkname = tarfile.LNKTYPE, entry.same_as
                archive.addfile(member)
            elif entry.content is None:
                member.type = tarfile.DIRTYPE
                archive.addfile(member)
            else:
                member.size = len(entry.content)
                archive.addfile(member, io.BytesIO(entry.content))
    packed = lzma.compress(plain.getvalue(), preset=9 | lzma.PRESET_EXTREME)
    (ARCHIVES / f"{name}.tar.xz").write_bytes(packed)
    return len(packed)


def make(name: str, folder: Path) -> dict[str, str]:
    """All states of one writer; returns the step of each by the name of its archive."""
    writer = writers()[name]
    place = folder / name
    place.mkdir()
    with chdir(place):
        Path("in").mkdir()
        writer.prepare()
    for old in ARCHIVES.glob(f"{name}-[0-9]*.tar.xz"):
        old.unlink()
    size = pack(f"{name}-inputs", _entries(place))
    begun = State("", _entries(place, {})).key()
    seen, made = {begun}, {}
    for state in states_of(name, place):
        if state.key() in seen or (writer.only and state.step not in writer.only):
            continue
        seen.add(state.key())
        slug = re.sub(r"[^a-z0-9]+", "-", state.step.lower()).strip("-")[:24]
        archive = f"{name}-{len(seen) - 1:02d}-{slug}"
        size += pack(archive, state.entries)
        made[archive] = state.step
    print(f"{name}: {len(made)} states, {size / 1000:.0f} kB", flush=True)
    return made


@dataclass(frozen=True)
class Ended:
    """How a command ended, and what then lies in its folder."""

    code: int
    errors: list[str]
    found: dict[str, Value]


def run_again(name: str, folder: Path) -> Ended:
    """Give a writer's command in a folder, in this process."""
    writer = writers()[name]
    with chdir(folder):
        with writer.setting():
            done = unface(*writer.command.split()[1:], "--quiet")
        return Ended(done.code, done.err.splitlines(), found(folder))


def whole(name: str, folder: Path) -> Ended:
    """An undisturbed run of today's code."""
    unpack(f"{name}-inputs", folder)
    return run_again(name, folder)


def continued(archive: str, folder: Path) -> Ended:
    """Today's code on a state."""
    name = writer_of(archive)
    inputs = folder / "in"
    unpack(f"{name}-inputs", folder)
    for path in sorted(folder.rglob("*"), reverse=True):
        if not path.is_relative_to(inputs):
            path.rmdir() if path.is_dir() else path.unlink()
    unpack(archive, folder)
    return run_again(name, folder)


def writer_of(archive: str) -> str:
    """The name that an archive's name begins with."""
    return re.sub(r"-(\d\d-.*|inputs)$", "", archive)


# Hashes of floats and their noise, times, and what a run that is continued need not measure again.
_NOT_COMPARED = {
    *("finished", "started", "resumed", "time", "seconds", "verified", "recall_before", "recall_after", "notes"),
    *("source_changed_ns", "raw", "erased_sha256", "sha256", "bytes", "unface"),
}


def found(folder: Path) -> dict[str, Value]:
    """Every file, and what is in it, without ``in/``, locks, times and drawn names."""
    seen: dict[str, Value] = {}
    stores = [path for path in sorted(folder.rglob("*")) if readable(path) and not path.is_relative_to(folder / "in")]
    for store in stores:
        name = store.relative_to(folder).as_posix()
        seen |= {f"{name}: {path}": value for path, value in contents(store).items()}
    for path in sorted(folder.rglob("*")):
        name = _DRAWN.sub("*", path.relative_to(folder).as_posix())
        inside = any(path.is_relative_to(store) for store in stores)
        if path.is_dir() or inside or path.is_relative_to(folder / "in") or path.name in ("lock", ".lock"):
            continue
        seen[f"{name}: file"] = True
        seen |= {f"{name}: {where}": value for where, value in _inside(path)}
    return seen


def _inside(path: Path) -> Iterator[tuple[str, Value]]:
    if path.suffix == ".json":
        yield from _leaves(json.loads(path.read_bytes()), "")
    elif path.suffix == ".jsonl":
        for number, line in enumerate(path.read_bytes().splitlines()):
            yield from _leaves(json.loads(line), f"line {number}")
    elif path.suffix == ".csv":
        yield "text", path.read_text("utf-8")
    elif path.suffix == ".html":
        yield "whole", path.read_text("utf-8").rstrip().endswith("</html>")
    elif path.suffix == ".safetensors":
        from safetensors.numpy import load_file

        for name, array in load_file(path).items():
            yield f"{name}/shape", str(array.shape)
            yield f"{name}/size", float(abs(array.astype(float)).sum())


def _leaves(content: Any, path: str) -> Iterator[tuple[str, Value]]:
    if isinstance(content, dict):
        for name, inner in content.items():
            if name not in _NOT_COMPARED:
                yield from _leaves(inner, f"{path}/{name}")
    elif isinstance(content, list):
        for place, inner in enumerate(content):
            yield from _leaves(inner, f"{path}/{place}")
    elif not (isinstance(content, str) and re.fullmatch("[0-9a-f]{64}", content)):
        yield path, content


def differences(one: dict[str, Value], other: dict[str, Value], tolerance: float = 2e-6) -> list[str]:
    """Paths whose values differ by more than rounding to single precision, or that only one of them has."""

    def same(a: Value, b: Value) -> bool:
        if isinstance(a, float) and isinstance(b, float):
            return math.isclose(a, b, rel_tol=tolerance, abs_tol=tolerance)
        return a == b

    files = [{path.partition(": ")[0] for path in seen} for seen in (one, other)]
    lines = {f"missing: {name}" for name in files[0] - files[1]} | {
        f"left over: {name}" for name in files[1] - files[0]
    }
    lines |= {f"missing: {path}" for path in one.keys() - other.keys() if path.partition(": ")[0] in files[1]}
    lines |= {f"left over: {path}" for path in other.keys() - one.keys() if path.partition(": ")[0] in files[0]}
    both = one.keys() & other.keys()
    lines |= {f"{path}: {other[path]}, not {one[path]}" for path in both if not same(one[path], other[path])}
    return sorted(lines)


def index() -> dict[str, Any]:
    """``made_with``, and by name of an archive how the same command ends."""
    return tomllib.loads(INDEX.read_text("utf-8"))


def main() -> int:
    from unface import __version__

    known = index()["state"] if INDEX.exists() else {}
    for name in sys.argv[1:] or [*writers(), "ledger"]:
        known = {archive: ends for archive, ends in known.items() if writer_of(archive) != name}
        if name == "ledger":
            from tests.golden import killed_ledger

            with tempfile.TemporaryDirectory() as temporary, chdir(temporary):
                steps = killed_ledger.make()
            known |= {archive: {"step": step, "made_with": __version__} for archive, step in steps.items()}
            continue
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary).resolve()
            made = make(name, folder)
            reference = _in(folder / "whole", partial(whole, name))
            assert reference.code == 0, reference.errors
            for archive, step in made.items():
                ended = _in(folder / archive, partial(continued, archive))
                apart = differences(reference.found, ended.found)
                print(f"  {archive}: {ended.code} {' '.join(ended.errors)} {apart[:4]}", flush=True)
                known[archive] = {
                    "step": step,
                    "made_with": __version__,
                    "code": ended.code,
                    "apart": apart,
                }
    _write_index(known)
    return 0


def _in(folder: Path, run: Callable[[Path], Ended]) -> Ended:
    folder.mkdir()
    return run(folder)


def _write_index(known: dict[str, dict[str, Any]]) -> None:
    lines = [
        "# Made by 'python -m tests.golden.killed_states'.",
        "# code: how the same command ends, 1 if it refuses in one line.",
        "# apart: in what the folder then differs from that of an undisturbed run.",
    ]
    for archive in sorted(known):
        fields = [f"{name} = {json.dumps(value)}" for name, value in known[archive].items()]
        lines += ["", f"[state.{archive}]", *fields]
    INDEX.write_text("\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    sys.exit(main())
