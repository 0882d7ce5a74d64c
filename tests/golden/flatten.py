"""Flattens nested content to paths keyed by names, so that two numbers that trade places are seen."""

import re
from collections.abc import Iterator
from typing import Any

Scalar = str | int | float | bool | None
Value = Scalar | list[Scalar]
Path = tuple[str, ...]

# Fields that say which item of a list this is, in the order in which a reader would say them.
NAMES = """
    name space attack judge view set fit_on tested_on fitted_on method eraser attribute group target condition scheme
    recogniser encoder trait region source on measure about probe control rank gallery k first second album far fpir
    queries against against_probe what where at number person identity id file key test applies_to strength mask
    fit_identities identities people kind epoch step loss photo mode axis x similarity over ruleId
    ridge prior sigma pictures share
""".split()  # noqa: SIM905 - forty quoted names are harder to read
# Lists in the order of a policy or a run, of which several items may be about one thing.
_IN_ORDER = frozenset({"findings", "rules", "results"})
# When, by what, and where: they differ between two runs of one command.
LEFT_OUT = frozenset(
    {"run", "unface", "finished", "started", "seconds", "time", "created", "elapsed", "pid", "host", "resumed"}
)
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?(?:e-?\d+)?")
_HASH = re.compile(r"[0-9a-f]{64}")
# These are hashes of names and bytes that were read; all others follow from floats and their last digits.
_EXACT_HASHES = frozenset({"roles", "picture"})


def flatten(content: Any, path: Path = ()) -> Iterator[tuple[Path, Value]]:
    """Yield every leaf of nested dictionaries and lists with the names that lead to it.

    A list of scalars is one leaf. Items of other lists are keyed by their naming fields; one that has none, or the
    names of another, is an error. Of prose (a string with a space in it) only its numbers are kept.
    """
    if isinstance(content, dict):
        if not content and path:
            yield (*path, "{}"), 0
        for name, value in content.items():
            if name not in LEFT_OUT:
                yield from flatten(value, (*path, _text(name)))
    elif isinstance(content, list | tuple):
        yield from _items(list(content), path)
    elif isinstance(content, str) and " " in content:
        if numbers := _numbers(content):
            yield path, numbers
    elif isinstance(content, str) and _HASH.fullmatch(content) and not _EXACT_HASHES & set(path):
        yield path, "hash"
    else:
        yield path, content


def _items(items: list[Any], path: Path) -> Iterator[tuple[Path, Value]]:
    if not any(isinstance(item, dict | list | tuple) for item in items):
        prose = any(isinstance(item, str) and " " in item for item in items)
        yield path, [number for item in items for number in _numbers(str(item))] if prose else items
        return
    if not all(isinstance(item, dict) for item in items):
        for place, item in enumerate(items):
            yield from flatten(item, (*path, str(place)))
        return
    keys = _keys(items, path)
    yield (*path, "#order"), [*keys]
    for key, item in zip(keys, items, strict=True):
        yield from flatten(item, (*path, key))


def _keys(items: list[dict[str, Any]], path: Path) -> list[str]:
    """The shortest list of naming fields that tells all items of a list apart, as text."""
    fields = [name for name in NAMES if any(_is_name(item.get(name)) for item in items)]
    keys: list[str] = []
    for many in range(1, len(fields) + 1):
        keys = [" ".join(f"{name}={_text(item[name])}" for name in fields[:many] if name in item) for item in items]
        if len(set(keys)) == len(keys) and all(keys):
            return keys
    if len(items) == 1:
        return ["only"]
    if len({repr(item) for item in items}) == len(set(keys)):  # of equal items it cannot matter which is which
        return [f"{key} {keys[: place + 1].count(key)}" for place, key in enumerate(keys)]
    if path[-1] in _IN_ORDER:
        keys = [_text(item.get("about", path[-1])) for item in items]
        return [f"{key} {keys[:place].count(key) + 1}" for place, key in enumerate(keys)]
    raise ValueError(
        f"{'/'.join(path)}: nothing names its items {sorted(items[0])}; add a field to NAMES in flatten.py"
    )


def _numbers(prose: str) -> list[Scalar]:
    return [number.rstrip(".,") for number in _NUMBER.findall(prose)]


def _is_name(value: object) -> bool:
    return isinstance(value, str | int | float) or (isinstance(value, dict | list) and bool(value))


def _text(value: object) -> str:
    """A name in a path, whose parts are joined by slashes."""
    return f"{value:g}" if isinstance(value, float) else re.sub(r"\s+", " ", str(value)).replace("/", "|")
