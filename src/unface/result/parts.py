"""Where parts of an audit plug in: what a part can do with a result, and how it is found by its name.

A part is a folder of its own: what it measures and what it says of that. ``unface.auditing`` has the built-in ones;
others register a class under the entry point ``unface.parts``. Nothing here imports the code that measures.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, ClassVar, cast

from pydantic import BaseModel

from unface.errors import UnfaceError
from unface.functions import registered

if TYPE_CHECKING:
    from rich.console import RenderableType

    from unface.result.audit import AuditResult
    from unface.result.file import Finding, Given
    from unface.result.readings import Reading

BUILT_IN = (
    "leakage",
    "erasure",
    "albums",
    "search",
    "exposure",
    "sweeps",
    "transfer",
    "maps",
    "attribute_swap",
    "translate",
    "inversion",
    "utility",
    "attribution",
)
"""In the order in which a reader meets them."""


@dataclass(frozen=True)
class Section:
    """A piece of the page."""

    anchor: str
    title: str
    body: str
    """Markup that ``unface.page.templates.render`` made; a plain string is shown as text."""
    order: int = 2
    """1: what most readers come for; 2: details; 3: checks of the audit itself. Parts keep their order within each."""
    sources: tuple[tuple[str, "Given"], ...] = ()
    """Sets of vectors it was measured on, each with a short label."""


@dataclass(frozen=True)
class Option:
    """How to ask for something again: on the command line, and in Python."""

    flag: str
    values: tuple[str, ...] = ()
    """Each is given with a flag of its own; none for a switch."""
    keyword: str = ""
    """Of ``unface.audit``; empty for an item of its ``parts``."""
    value: str = ""
    """As Python writes it."""


class NoSection(BaseModel):
    """Of a part that measures nothing of its own."""


class Part:
    """A part of an audit. The class reads results; an instance, made with what it is to measure on, runs.

    Inherit, set ``name`` and ``schema``, and override what the part has something to say in. Methods that get a result
    look up their own section as ``result.parts[name]``, which is of type ``schema``, or missing.
    """

    name: ClassVar[str]
    schema: ClassVar[type[BaseModel]] = NoSection
    """Of its section; a part whose numbers stand with each space has none."""
    listings: ClassVar[tuple[str, ...]] = ()
    """Names of the files with names of people that it may leave beside audit.json (``bench.listings``)."""

    def before(self, bench: Any) -> Any:
        """Before the long attack: refuse what can be refused. What it returns is handed to ``run``.

        ``bench`` is an ``unface.auditing.Bench``: the people, the attack and the erasers of this audit.
        """

    def run(self, bench: Any, ready: Any) -> BaseModel | None:
        """After the attack: the section for audit.json, or None if there is nothing to say."""
        raise NotImplementedError(f"{type(self).__name__} is measured by the audit itself")

    @classmethod
    def findings(cls, result: "AuditResult") -> "list[Finding]":
        """What the reader must know."""
        return []

    @classmethod
    def verdict(cls, result: "AuditResult") -> str:
        """A sentence that the conclusion of the audit needs; most parts have none."""
        return ""

    @classmethod
    def not_measured(cls, result: "AuditResult") -> list[str]:
        """What a reader might take for measured and is not."""
        return []

    @classmethod
    def readings(cls, result: "AuditResult") -> "list[Reading]":
        """Numbers that another audit can be compared by: ``unface diff`` and the history."""
        return []

    @classmethod
    def terminal(cls, result: "AuditResult") -> "Iterable[RenderableType]":
        """Its lines and tables on the terminal."""
        return ()

    @classmethod
    def page(cls, result: "AuditResult") -> list[Section | str]:
        """Its sections of the page; a few words for each that there is nothing to show of."""
        return []

    @classmethod
    def repeat(cls, result: "AuditResult") -> list[Option]:
        """What to ask for to get the same again."""
        return [Option("--part", (cls.name,))] if cls.name in result.parts and cls.name not in BUILT_IN else []


def installed_part(name: str) -> "type[Part] | None":
    """The class of a part, or None if no installed package has it."""
    if name in BUILT_IN:
        return cast("type[Part]", import_module(f"unface.auditing.{name}").PART)
    part: object | None = registered("part", name, lambda found: found)
    if part is None or (isinstance(part, type) and issubclass(part, Part) and getattr(part, "name", None) == name):
        return part
    value = next(iter(entry_points(group="unface.parts", name=name))).value
    raise UnfaceError(f"part {name!r}: {value} is not a subclass of unface.result.parts.Part of that name")


def listing_names() -> list[str]:
    """Of every installed part: what an earlier audit may have left beside audit.json."""
    others = sorted({found.name for found in entry_points(group="unface.parts")} - set(BUILT_IN))
    return [file for name in (*BUILT_IN, *others) if (part := installed_part(name)) for file in part.listings]


def parts_of(result: "AuditResult") -> "list[type[Part]]":
    """The built-in parts, then those that others measured, as far as they are installed here."""
    others = [name for name in result.parts if name not in BUILT_IN]
    return [part for name in (*BUILT_IN, *others) if (part := installed_part(name)) is not None]
