"""Open a folder of Qdrant's local mode without running code from it: the client keeps every point as a pickle."""

import io
import json
import pickle
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from unface.errors import UnfaceError, reason

if TYPE_CHECKING:
    from qdrant_client import QdrantClient

# The classes that the client itself pickles. Both are pydantic models: to unpickle one sets its fields, nothing else.
_CLASSES = {("qdrant_client.http.models.models", name) for name in ("PointStruct", "SparseVector")}


def open_folder(folder: Path, where: str) -> "QdrantClient":
    """A client on the folder. From then on, every local client of this process unpickles points and nothing else."""
    from qdrant_client import QdrantClient

    _require_plain_folder(folder, where)
    _restrict_unpickling(where)
    try:
        return QdrantClient(path=str(folder))
    except Exception as error:  # whatever the client raises while it interprets files that anybody may have written
        raise UnfaceError(f"{where}: the folder could not be read: {reason(error)}") from error


def copy_of_folder(folder: Path, target: str, where: str) -> Path:
    """A copy to read from: each database as of one moment, also while its owner writes."""
    _require_plain_folder(folder, where)
    copied = Path(target)
    try:
        for path in folder.rglob("*"):
            there = copied / path.relative_to(folder)
            if path.is_dir():
                there.mkdir(parents=True, exist_ok=True)
            elif path.suffix == ".sqlite":
                there.parent.mkdir(parents=True, exist_ok=True)
                opened = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
                with closing(opened) as live, closing(sqlite3.connect(there)) as copy:
                    live.backup(copy)
            elif path.name == "meta.json":
                shutil.copyfile(path, there)
    except (OSError, sqlite3.Error) as error:
        raise UnfaceError(f"{where}: the folder could not be read: {reason(error)}") from None
    return copied


class _PointUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        from qdrant_client import models

        if (module, name) not in _CLASSES:
            raise pickle.UnpicklingError(f"a point refers to {module}.{name}, which could run code")
        return getattr(models, name)


def _point(pickled: bytes) -> Any:
    from qdrant_client import models

    try:
        point = _PointUnpickler(io.BytesIO(pickled)).load()
    except pickle.UnpicklingError:
        raise
    except Exception as error:  # a pickle that is damaged or made up may raise anything
        raise pickle.UnpicklingError(f"a point cannot be read: {reason(error)}") from error
    if not isinstance(point, models.PointStruct):
        raise pickle.UnpicklingError(f"expected a point, got {type(point).__name__}")
    return point


# Takes the place of the module pickle in the client. It has nothing but what the client calls.
_RESTRICTED = SimpleNamespace(dumps=pickle.dumps, loads=_point)


def _restrict_unpickling(where: str) -> None:
    """A check of the files beforehand would not do: the client also loads files while it creates a collection."""
    from qdrant_client.local import persistence

    used = getattr(persistence, "pickle", None)
    names = persistence.CollectionPersistence.load.__code__.co_names
    if used not in (pickle, _RESTRICTED) or "pickle" not in names:
        raise UnfaceError(
            f"{where}: a local folder cannot be read safely with this version of qdrant-client; use 1.20, or a server"
        )
    persistence.pickle = _RESTRICTED  # type: ignore[assignment,attr-defined]


def _require_plain_folder(folder: Path, where: str) -> None:
    """Refuse names and links that would make the client read, write or delete outside of the folder."""
    try:
        meta = json.loads((folder / "meta.json").read_bytes())
        collections = list(meta["collections"])
        named = {*collections, *meta["aliases"], *meta["aliases"].values()}
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        raise UnfaceError(
            f"{where}: the folder is not one of Qdrant's local mode; give that folder, or a server's URL"
        ) from None
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise UnfaceError(f"{where}: meta.json cannot be read: {reason(error)}") from None
    for name in named:
        if not isinstance(name, str) or name in ("", ".", "..") or set(name) & set("/\\\0"):
            raise UnfaceError(f"{where}: {name!r:.80} in meta.json is not a plain name")
    for path in folder.rglob("*"):
        if path.is_symlink():
            raise UnfaceError(f"{where}: {path.name!r} in the folder is a link; put the file itself there")
