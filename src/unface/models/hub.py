"""A file from the Hugging Face hub at one commit, by its own library and through its own cache."""

import importlib.util
import socket
import sys
from importlib import import_module
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit
from urllib.request import getproxies

from unface.models.card import Card, Hub

_SECONDS = 5.0


class NotOnHub(Exception):
    """The hub did not give it; the words say why."""


def hub_files(card: Card, source: Hub, *, offline: bool) -> list[Path]:
    """Paths of the card's files in the hub library's cache, fetched into it first unless ``offline``."""
    if importlib.util.find_spec("huggingface_hub") is None:
        raise NotOnHub("huggingface_hub is not installed (pip install 'unface[hub]')")
    errors = import_module("huggingface_hub.errors")
    folder = PurePosixPath(source.file).parent
    names = [source.file, *(str(folder / part.file) for part in card.beside)]
    try:
        return _download(source, names, offline=True)
    except errors.LocalEntryNotFoundError:
        if offline:
            raise NotOnHub(f"{source.repo} is not in the hub library's cache") from None
    _require_reachable()
    try:
        return _download(source, names, offline=False)
    except errors.GatedRepoError:
        raise NotOnHub(f"{source.repo} asks for consent; agree on its page and log in with `hf auth login`") from None
    except Exception as error:  # whichever HTTP library it stands on raises its own
        raise NotOnHub(f"{source.repo} cannot be fetched from the hub ({type(error).__name__})") from None


def _download(source: Hub, names: list[str], *, offline: bool) -> list[Path]:
    if not sys.stderr.isatty():
        import_module("huggingface_hub.utils").disable_progress_bars()
    download = import_module("huggingface_hub").hf_hub_download
    where = {"revision": source.revision, "local_files_only": offline}
    return [Path(download(source.repo, name, **where)) for name in names]


def _require_reachable() -> None:
    """The library tries for half a minute and complains aloud, so find out first; behind a proxy one cannot."""
    hub = urlsplit(import_module("huggingface_hub.constants").ENDPOINT)
    if hub.scheme in getproxies():
        return
    try:
        socket.create_connection((hub.hostname or "", hub.port or 443), timeout=_SECONDS).close()
    except OSError:
        raise NotOnHub(f"{hub.hostname} is out of reach") from None
