"""Face or surroundings: whether an encoder's similarity rests on the face or on what is around it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from unface.result.attribution import LEFT_OUT_FILE, EncoderAttribution
from unface.result.audit import AuditResult
from unface.result.parts import Part, Section

if TYPE_CHECKING:
    from rich.text import Text

    from unface.auditing.attribution.run import Attributed, Subjects
    from unface.auditing.bench import Bench


class Attribution(Part):
    """``subjects``: the pictures behind the vectors, and how their faces are seen, found and swapped."""

    name = "attribution"
    schema = EncoderAttribution
    listings = (LEFT_OUT_FILE,)

    def __init__(self, subjects: Subjects) -> None:
        self.subjects = subjects

    def before(self, bench: Bench) -> Attributed:
        """Measure on pictures of people that no eraser was fitted on; pictures fail early, before the long attack."""
        from unface.auditing.attribution.run import attributed

        fitted = {name for defence in bench.fitted if defence.fit is not None for name in defence.fit.names}
        projections = {defence.name: defence.projection for defence in bench.erasers}
        plan, others = bench.attack.plan, self.subjects.without(fitted)
        return attributed(others, projections, seed=plan.seed, threads=plan.threads, progress=bench.progress)

    def run(self, bench: Bench, ready: Attributed) -> EncoderAttribution:
        from unface.auditing.attribution.run import left_out_listing

        bench.listings[LEFT_OUT_FILE] = left_out_listing(ready.left_out)
        return ready.part

    @classmethod
    def of(cls, result: AuditResult) -> EncoderAttribution | None:
        """The section of an audit."""
        section = result.parts.get(cls.name)
        return section if isinstance(section, EncoderAttribution) else None

    @classmethod
    def not_measured(cls, result: AuditResult) -> list[str]:
        return ["face-context attribution"] if cls.of(result) is None else []

    @classmethod
    def terminal(cls, result: AuditResult) -> Iterator[Text]:
        from rich.text import Text

        from unface.auditing.attribution.words import attribution_line

        section = cls.of(result)
        if section is not None:
            yield Text(attribution_line(section))

    @classmethod
    def page(cls, result: AuditResult) -> list[Section | str]:
        from unface.auditing.attribution.page import section
        from unface.page.charts import looks

        measured = cls.of(result)
        return ["face-context attribution"] if measured is None else [section([measured], looks(result))]


PART = Attribution
