"""Policies from TOML or from flags; whatever is wrong with one becomes a line that names the place and the keys."""

import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from unface.errors import UnfaceError
from unface.gate.policy import Gate, ImprovementRule, LeakageRule, Policy, Rule, UtilityRule

Place = Callable[[str, str], str]
"""(table, key) as the reader of an error would look for it; the key is empty where the whole table is meant."""

_KINDS: dict[str, type[Rule]] = {
    "tar_max": LeakageRule,
    "times_chance_max": LeakageRule,
    "utility": UtilityRule,
    "retained_min": UtilityRule,
    "beats": ImprovementRule,
}
_Model = TypeVar("_Model", bound=BaseModel)


def read_policy(path: Path) -> Policy:
    """A policy file."""
    try:
        content = tomllib.loads(path.read_bytes().decode())
    except OSError as error:
        raise UnfaceError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise UnfaceError(f"{path}: is not UTF-8 text; a policy is a TOML file") from None
    except tomllib.TOMLDecodeError as error:
        raise UnfaceError(f"{path}: is not TOML: {_lowered(str(error))}") from None
    except RecursionError:
        raise UnfaceError(f"{path}: is nested too deeply for a policy") from None
    return make_policy(content, lambda table, key: ": ".join(part for part in (str(path), table, key) if part))


def make_policy(content: Mapping[str, object], place: Place) -> Policy:
    """A policy from the tables of a file; ``place`` says where a table's key stands."""
    for key in content:
        if key not in Policy.model_fields:
            raise UnfaceError(f"{place('', '')}: unknown key {_shown(key)}; a policy has [[require]] and [gate]")
    tables = content.get("require", [])
    if isinstance(tables, Mapping):
        raise UnfaceError(f"{place('', '')}: [require] is one table; each rule starts with [[require]]")
    if not isinstance(tables, list) or not tables:
        raise UnfaceError(f"{place('', '')}: has no rules; each rule starts with [[require]]")
    rules = tuple(_rule(table, f"rule {number}", place) for number, table in enumerate(tables, 1))
    return Policy(gate=_checked(Gate, content.get("gate", {}), "gate", place), require=rules)


def _rule(table: object, name: str, place: Place) -> Rule:
    if not isinstance(table, Mapping):
        raise UnfaceError(f"{place(name, '')}: {_shown(table)} is not a table; each rule starts with [[require]]")
    known = sorted({field for kind in _KINDS.values() for field in kind.model_fields})
    unknown = next((key for key in table if key not in known), None)
    if unknown is not None:
        raise UnfaceError(f"{place(name, '')}: unknown key {_shown(unknown)}; rules know {', '.join(known)}")
    limit = next((key for key in _KINDS if key in table), None)
    if limit is None:
        raise UnfaceError(
            f"{place(name, '')}: sets no limit; give tar_max or times_chance_max, utility with retained_min, or beats"
        )
    return _checked(_KINDS[limit], table, name, place)


def _checked(model: type[_Model], table: object, name: str, place: Place) -> _Model:
    try:
        return model.model_validate(table)
    except ValidationError as error:
        first = error.errors()[0]
    known = ", ".join(sorted(model.model_fields))
    if not first["loc"]:
        raise UnfaceError(f"{place(name, '')}: {_shown(table)} is not a table; it knows {known}")
    key = str(first["loc"][0])
    if first["type"] == "extra_forbidden":
        other = "" if model is Gate else " beside the others here"
        raise UnfaceError(f"{place(name, '')}: {_shown(key)} has no meaning{other}; such a table knows {known}")
    expected = model.model_fields[key].description
    if first["type"] == "missing":
        raise UnfaceError(f"{place(name, key)}: is missing; give {expected}")
    raise UnfaceError(f"{place(name, key)}: {_shown(first['input'])} is not {expected}{_hint(key, first['input'])}")


def _hint(key: str, value: object) -> str:
    """Shares that look like percent."""
    if key not in ("tar_max", "retained_min", "far") or isinstance(value, bool) or not isinstance(value, int | float):
        return ""
    return f"; {value:g} % is {value / 100:g}" if 1 <= value <= 100 else ""


def _shown(value: object) -> str:
    text = str(value).lower() if isinstance(value, bool | float) else ascii(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _lowered(text: str) -> str:
    return text[:1].lower() + text[1:]
