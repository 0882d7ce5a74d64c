"""Compares the page that documents the command line with the command line itself."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol


class Parameter(Protocol):
    """What is asked of a click option or argument, wherever typer takes click from."""

    opts: list[str]
    secondary_opts: list[str]
    param_type_name: str


@dataclass
class Command:
    """A command by its full name, with the spellings of its options."""

    name: str
    options: set[str] = field(default_factory=set)


def commands(command: object, name: str = "unface") -> Iterator[Command]:
    """The command and all below it, but for what is hidden."""
    if getattr(command, "hidden", False):
        return
    parameters: Iterable[Parameter] = getattr(command, "params", [])
    shown = [one for one in parameters if one.param_type_name == "option" and not getattr(one, "hidden", False)]
    yield Command(name, {spelling for one in shown for spelling in [*one.opts, *one.secondary_opts]})
    below: Mapping[str, object] = getattr(command, "commands", {})
    for word, child in below.items():
        yield from commands(child, f"{name} {word}")


def differences(page: str, found: list[Command]) -> Iterator[str]:
    """One sentence for each command or option that only the page or only the command line knows.

    A command has a section whose heading names it, as in "## `unface audit`"; what stands outside such sections
    is said of every command.
    """
    sections = by_command(page)
    shared = sections.get("", "")
    for command in found:
        if command.name != "unface" and command.name not in sections:
            yield f"`{command.name}` has no heading"
        text = shared + sections.get(command.name, "")
        yield from (
            f"`{command.name}` has an option {o} that is not told" for o in sorted(command.options) if not told(o, text)
        )
    names = {command.name for command in found}
    yield from (f"there is no command `{name}`" for name in sections if name and name not in names)
    known = {"--help"}.union(*(command.options for command in found))
    mentioned = set(re.findall(r"(?<![\w-])--[a-z][\w-]*", page))
    yield from (f"there is no option {option}" for option in sorted(mentioned - known))


def by_command(page: str) -> dict[str, str]:
    """The page's text under each command's heading, deeper headings included; the rest under ""."""
    sections: dict[str, str] = {}
    name, depth, fenced = "", 0, False
    for line in page.splitlines():
        fenced ^= line.lstrip().startswith("```")
        heading = None if fenced else re.match(r"(#+) (.*)", line)
        if heading:
            named = re.search(r"`(unface(?: [a-z][\w-]*)*)", heading[2])
            if named or len(heading[1]) <= depth:
                name, depth = (named[1], len(heading[1])) if named else ("", 0)
        sections[name] = sections.get(name, "") + line + "\n"
    return sections


def told(option: str, text: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", text) is not None
