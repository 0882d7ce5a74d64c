"""Files of one result: written whole and together or not at all, those that name someone for their owner alone."""

import csv
import os
from collections.abc import Iterable, Mapping, Sequence
from io import StringIO
from pathlib import Path
from tempfile import NamedTemporaryFile

from unface.data.files import renamed_when_whole, require_folder
from unface.errors import UnfaceError

LEFT_OUT_FILE = "left-out.csv"


def require_without(folder: Path, names: Iterable[str], *, force: bool) -> None:
    """Refuse a folder that cannot be written or holds one of these files, before any work is done for it."""
    require_folder(folder)
    for name in names:
        if (folder / name).exists() and not force:
            raise UnfaceError(f"{folder / name}: exists already; choose another --out or pass --force")


def write_together(folder: Path, texts: Mapping[str, str], named: Mapping[str, str | None]) -> None:
    """Nothing is renamed before all is written. ``named`` files have names in them: only their owner may read them,
    and one that is None now is removed if an earlier run left it.
    """
    written: dict[str, Path] = {}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in (*named.items(), *texts.items()):
            if text is None:
                continue
            with NamedTemporaryFile("w", encoding="utf-8", dir=folder, prefix=f".{name}.", delete=False) as file:
                written[name] = Path(file.name)
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            if name in texts:
                written[name].chmod(0o666 & ~_umask())
        for name, path in written.items():
            path.replace(folder / name)
        for name in named.keys() - written.keys():
            (folder / name).unlink(missing_ok=True)
    except OSError as error:
        raise UnfaceError(f"{folder}: cannot be written ({error.strerror}); choose another --out") from None
    finally:
        for path in written.values():
            path.unlink(missing_ok=True)


def write_whole(path: Path, content: bytes, option: str) -> None:
    """One file that anybody may read; replaces what is there. ``option`` named it."""
    try:
        with renamed_when_whole(path) as unfinished:
            unfinished.write_bytes(content)
    except OSError as error:
        raise UnfaceError(f"{path}: cannot be written ({error.strerror}); choose another {option}") from None


def listing(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str | None:
    """As CSV; None of no rows."""
    if not rows:
        return None
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_plain(cell) for cell in row] for row in rows)
    return text.getvalue()


def left_out_listing(rows: Sequence[Sequence[str]]) -> str | None:
    """Pictures that attribution could not use."""
    return listing(("encoder", "id", "step", "reason"), rows)


def _plain(cell: str) -> str:
    """A name that a spreadsheet would take for a formula, marked as text."""
    return f"'{cell}" if cell.startswith(("=", "+", "-", "@")) else cell


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
