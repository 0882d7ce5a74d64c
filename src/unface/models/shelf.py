"""The cards there are: those that come with unface, those of models one has added, and a file with its card beside."""

import tomllib
from dataclasses import replace
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from unface.errors import UnfaceError, reason
from unface.models.card import Card, Local
from unface.models.store import models_folder

CARD_FILE = "card.json"
CARD_SUFFIX = ".card.json"
_SCHEMA = "unface.card/1"
_LARGEST = 1 << 20  # bytes; a card is a page of text
_ADAPTER = TypeAdapter(Card)


def cards() -> tuple[Card, ...]:
    """Every card, unface's own first."""
    return (*shipped(), *(read_card(path) for path in _added().values()))


def card(name: str) -> Card:
    """A card by its name, or by the path of a file that has ``<file>.card.json`` beside it."""
    known = {one.name: one for one in shipped()}
    if name in known:
        return known[name]
    path = Path(name)
    if path.suffix and path.is_file():
        return _of_file(path)
    added = _added()
    if name in added:
        return read_card(added[name])
    names = [*known, *added]
    near = get_close_matches(name, names, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(names)}"
    raise UnfaceError(f"{name}: no model of that name; {hint}")


@cache
def shipped() -> tuple[Card, ...]:
    """The cards that come with unface."""
    known = []
    for source in sorted(files("unface.models").joinpath("cards").iterdir(), key=lambda file: file.name):
        if source.name.endswith(".toml"):
            for fields in tomllib.loads(source.read_text(encoding="utf-8"))["card"]:
                known.append(_validated(_filled(fields), f"{source.name}: {fields.get('name')}"))
    if len({one.name for one in known}) != len(known):
        raise UnfaceError("cards: two have the same name")
    return tuple(known)


def read_card(path: Path) -> Card:
    """A card from a JSON file."""
    where = f"{path.parent.name}/{path.name}"
    try:
        if path.stat().st_size > _LARGEST:
            raise UnfaceError(f"{where}: {path.stat().st_size} bytes are too many for a card")
        fields = _JSON.validate_json(path.read_bytes())
    except OSError as error:
        raise UnfaceError(f"{where}: cannot be read ({reason(error)})") from None
    except ValidationError:
        raise UnfaceError(f"{where}: not a card; expected one JSON object") from None
    if fields.pop("schema", None) != _SCHEMA:
        raise UnfaceError(f"{where}: not a card; expected schema {_SCHEMA!r}")
    return _validated(fields, where)


def card_json(one: Card) -> bytes:
    """The file that ``read_card`` reads."""
    return _JSON.dump_json({"schema": _SCHEMA, **_ADAPTER.dump_python(one, mode="json")}, indent=2) + b"\n"


_JSON = TypeAdapter(dict[str, Any])


def _added() -> dict[str, Path]:
    """The cards of added models by name; folders with a dot are files on their way in."""
    return {path.parent.name: path for path in sorted(models_folder().glob(f"[!.]*/{CARD_FILE}"))}


def _of_file(path: Path) -> Card:
    beside = path.with_name(path.name + CARD_SUFFIX)
    if not beside.is_file():
        raise UnfaceError(f"{path.name}: has no {beside.name} beside it; add the model with `unface models add {path}`")
    described = read_card(beside)
    if not described.sha256:
        raise UnfaceError(f"{beside.name}: has no sha256; add the model with `unface models add {path}`")
    return replace(described, file=path.name, sources=(Local(str(path)),))


def _filled(fields: dict[str, Any]) -> dict[str, Any]:
    """What a shipped card leaves out because it is nearly always the same, or said once for card and source."""
    pinned = {"bytes": fields.get("bytes"), "sha256": fields.get("sha256")}
    sources = [source | (pinned if source["kind"] == "package" else {}) for source in fields["sources"]]
    return {"output": None, "pool": "none", **fields, "sources": sources}


def _validated(fields: dict[str, Any], where: str) -> Card:
    try:
        return _ADAPTER.validate_python(fields)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise UnfaceError(f"{where}: {field or 'card'}: {first['msg'].lower()}; correct the card") from None
