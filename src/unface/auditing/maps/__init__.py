"""Maps: some test identities on a plane, before and after, numbered and never named."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from pydantic import model_validator

from unface.result.audit import AuditResult
from unface.result.file import Frozen
from unface.result.parts import Option, Part, Section

if TYPE_CHECKING:
    from unface.auditing.bench import Bench


class Map(Frozen):
    """t-SNE of some test identities in one space."""

    space: str
    perplexity: float
    x: list[float]
    y: list[float]
    identity: list[int]

    @model_validator(mode="after")
    def _as_many_of_each(self) -> Self:
        if not len(self.x) == len(self.y) == len(self.identity):
            raise ValueError(f"{len(self.x)}, {len(self.y)} and {len(self.identity)} values for one set of points")
        return self


class MapResults(Frozen):
    """The raw space, and that of the first eraser."""

    maps: list[Map]


class Maps(Part):
    """Draws test identities by t-SNE, in the raw space and after the first eraser."""

    name = "maps"
    schema = MapResults

    def run(self, bench: Bench, ready: None) -> MapResults | None:
        from unface.auditing.maps.run import tsne_map

        vectors, test, seed = bench.prepared.embeddings.vectors, bench.prepared.roles.test, bench.attack.plan.seed
        spaces = [("raw", vectors), *((one.name, one.apply(vectors)) for one in bench.erasers[:1])]
        drawn = [tsne_map(name, space, test, seed) for name, space in spaces]
        maps = [one for one in drawn if one is not None]
        return MapResults(maps=maps) if maps else None

    @classmethod
    def of(cls, result: AuditResult) -> list[Map]:
        """The maps of an audit."""
        section = result.parts.get(cls.name)
        return section.maps if isinstance(section, MapResults) else []

    @classmethod
    def page(cls, result: AuditResult) -> list[Section | str]:
        from unface.auditing.maps.page import section

        return [section(cls.of(result))] if cls.of(result) else ["maps before and after"]

    @classmethod
    def repeat(cls, result: AuditResult) -> list[Option]:
        return [Option("", value="unface.auditing.Maps()")] if cls.of(result) else [Option("--no-maps")]


PART = Maps
