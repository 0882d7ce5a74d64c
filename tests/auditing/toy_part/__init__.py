"""A part as another package would bring it: how far the mean of each space is from zero. It is this folder alone."""

from collections.abc import Iterator

import numpy as np
from markupsafe import Markup
from pydantic import BaseModel
from rich.text import Text

from tests.kit.results import AuditResult, Finding
from unface import UnfaceError
from unface.auditing import Bench
from unface.result.file import note
from unface.result.parts import Option, Part, Section


class Offsets(BaseModel):
    """The length of the mean vector, by space."""

    lengths: dict[str, float]


class Offset(Part):
    name = "offset"
    schema = Offsets

    def __init__(self, most: float = 0.0) -> None:
        self.most = most

    def before(self, bench: Bench) -> float:
        if self.most < 0:
            raise UnfaceError(f"offset: a length is at least 0, not {self.most:g}")
        return self.most

    def run(self, bench: Bench, ready: float) -> Offsets:
        vectors = bench.prepared.embeddings.vectors
        spaces = {"raw": vectors, **{one.name: one.apply(vectors) for one in bench.erasers}}
        lengths = {name: float(np.linalg.norm(space.mean(axis=0, dtype=np.float64))) for name, space in spaces.items()}
        return Offsets(lengths={name: length for name, length in lengths.items() if length > ready})

    @classmethod
    def of(cls, result: AuditResult) -> Offsets:
        section = result.parts[cls.name]
        assert isinstance(section, Offsets)
        return section

    @classmethod
    def findings(cls, result: AuditResult) -> list[Finding]:
        return [note(name, f"its mean is {length:.3f} from zero") for name, length in cls.of(result).lengths.items()]

    @classmethod
    def not_measured(cls, result: AuditResult) -> list[str]:
        return ["where each person's own mean lies"]

    @classmethod
    def terminal(cls, result: AuditResult) -> Iterator[Text]:
        yield Text(f"offsets: {len(cls.of(result).lengths)} spaces")

    @classmethod
    def page(cls, result: AuditResult) -> list[Section | str]:
        listed = Markup("<ul>{}</ul>").format(
            Markup().join(Markup("<li>{}: {:.3f}</li>").format(*one) for one in cls.of(result).lengths.items())
        )
        return [Section("offset", "How far off centre", listed), "the spread around the centre"]

    @classmethod
    def repeat(cls, result: AuditResult) -> list[Option]:
        return [Option("--part", (cls.name,), value="toy_part.Offset()")]
