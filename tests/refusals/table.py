"""How a table of refusals is run: one line that says what is wrong, the exit code for it, and nothing left behind.

A row says what is given and what of the refusal decides: its code, the file, option or field that it names. How it is
worded is not in the table but in words.txt, which ``make snapshots`` writes.

    test_refused = table(
        "read",
        Row("no-such-file", lambda folder: read_embeddings(folder / "x.npz"), "vectors", "x.npz"),
        Row("far-of-a-word", "audit faces.npz --out out --far high", "settings", "--far", build=faces),
    )
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import EllipsisType

import pytest

from tests.kit.command import Done, unface
from tests.refusals.words import say
from unface.errors import UnfaceError

BEGINNING = "unface: "


def _nothing(folder: Path) -> None:
    """What is built for a row that needs no files."""


@dataclass(frozen=True)
class Row:
    """One refusal. A command, or a call that is given the folder, runs in a new folder that ``build`` has filled."""

    name: str
    act: str | list[str] | Callable[[Path], object]
    code: str
    where: str | None = None
    names: str | tuple[str, ...] = ()
    build: Callable[[Path], object] = _nothing
    exit: int = 1


def table(room: str, *rows: Row) -> Callable[..., None]:
    """The test of all rows; a file names it ``test_refused``."""
    twice = [name for name, count in Counter(row.name for row in rows).items() if count > 1]
    assert not twice, f"two rows of one name: {twice}"

    @pytest.mark.parametrize("row", [pytest.param(row, id=row.name) for row in rows])
    def test_refused(row: Row, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("UNFACE_CACHE", str(tmp_path / "cache"))
        folder = tmp_path / "folder"
        folder.mkdir()
        monkeypatch.chdir(folder)
        row.build(folder)
        before = _content(tmp_path)
        names = (row.names,) if isinstance(row.names, str) else row.names
        if callable(row.act):
            with refused(row.code, row.where, *names) as caught:
                row.act(folder)
            line = str(caught.value)
        else:
            done = unface(*(row.act.split() if isinstance(row.act, str) else row.act))
            line = require_refusal(done, row.code, row.where, *names, exit=row.exit)
        assert _content(tmp_path) == before, "something was left behind, or an input was changed"
        say(f"{room}/{row.name}", line.replace(str(tmp_path), "<tmp>"))

    test_refused.rows = rows  # type: ignore[attr-defined]  # so that a line of words.txt without a row is found
    test_refused.room = room  # type: ignore[attr-defined]
    return test_refused


@contextmanager
def refused(
    code: str | EllipsisType, where: str | EllipsisType | None = None, *names: str
) -> Iterator[pytest.ExceptionInfo[UnfaceError]]:
    """What a test about something else asserts of a refusal on its way: the line is one, and names these.

    ``...`` stands for a code, or a place, that the test does not look at.
    """
    with pytest.raises(UnfaceError) as caught:
        yield caught
    error = caught.value
    _require(error, str(error), error.code if code is ... else code, error.where if where is ... else where, names)


def require_refusal(
    done: Done, code: str | EllipsisType, where: str | EllipsisType | None = None, *names: str, exit: int = 1
) -> str:
    """What a test asserts of a command that is refused on its way: the exit code, one line, and what it names."""
    assert done.refusal is not None, f"exit {done.code}: {done.out}{done.err}"
    assert (done.code, done.out) == (exit, "")
    line = done.err.removeprefix(BEGINNING).removesuffix("\n")
    assert done.err == f"{BEGINNING}{line}\n", "standard error holds something else than one line of ours"
    error = done.refusal
    _require(error, line, error.code if code is ... else code, error.where if where is ... else where, names)
    return line


def _require(error: UnfaceError, line: str, code: str, where: str | None, names: tuple[str, ...]) -> None:
    assert (error.code, error.where) == (code, where), f"code {error.code!r}, where {error.where!r}: {line}"
    assert line.isprintable(), f"not one line: {line!r}"
    missing = [name for name in names if name not in line]
    assert not missing, f"{line!r} does not name {missing}"


def _content(folder: Path) -> dict[Path, bytes | None]:
    """Every path under a folder, and what the files among them hold."""
    return {path: path.read_bytes() if path.is_file() else None for path in sorted(folder.rglob("*"))}
