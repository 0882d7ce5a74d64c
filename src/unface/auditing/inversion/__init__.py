"""Inversion: can somebody who has the encoder turn these vectors back into faces of the people?"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from unface.result.audit import AuditResult
from unface.result.file import Finding, note, warning
from unface.result.inversion import NOT_CONVERGED, InversionResult
from unface.result.parts import Part, Section
from unface.result.readings import AS_GIVEN, Reading

if TYPE_CHECKING:
    from unface.auditing.bench import Bench
    from unface.auditing.inversion.run import Inverter
    from unface.invert.run import Case


class Inversion(Part):
    """``attacker``: the encoder with gradients, a generator and an attack; and recognisers that judge."""

    name = "inversion"
    schema = InversionResult

    def __init__(self, attacker: Inverter) -> None:
        self.attacker = attacker

    def before(self, bench: Bench) -> Case:
        """Choose targets among test people, and set the judges' thresholds on calibrate people."""
        from unface.auditing.inversion.run import case_of

        return case_of(bench, self.attacker)

    def run(self, bench: Bench, ready: Case) -> InversionResult:
        from unface.auditing.inversion.run import invert_spaces

        return invert_spaces(bench, ready, self.attacker)

    @classmethod
    def of(cls, result: AuditResult) -> InversionResult | None:
        """The section of an audit."""
        section = result.parts.get(cls.name)
        return section if isinstance(section, InversionResult) else None

    @classmethod
    def readings(cls, result: AuditResult) -> list[Reading]:
        found = cls.of(result)
        if found is None:
            return []
        named = {space.name: AS_GIVEN if space.kind is None else space.name for space in found.spaces}
        controls = {space.name for space in result.spaces if space.is_control}
        return [
            replace(one, where=named[one.where], headline=False)
            for one in found.readings()
            if one.where not in controls
        ]

    @classmethod
    def findings(cls, result: AuditResult) -> list[Finding]:
        found = cls.of(result)
        if found is None:
            return []
        said = [
            warning(cls.name, one.text)
            for one in found.findings
            if one.severity in ("warning", "invalid") and one.about not in (NOT_CONVERGED, "controls")
        ]
        short = ", ".join(cell.space for cell in found.cells if cell.converged is False)
        if short:
            text = f"the attack did not come as near as another real photo ({short}); where it fails, that says nothing"
            said.append(warning(cls.name, f"{text} about privacy"))
        return [note(cls.name, found.verdict), *said]

    @classmethod
    def not_measured(cls, result: AuditResult) -> list[str]:
        return ["template inversion"] if cls.of(result) is None else []

    @classmethod
    def page(cls, result: AuditResult) -> list[Section | str]:
        found = cls.of(result)
        if found is None:
            return ["faces made from vectors"]
        from unface.auditing.inversion.page import section

        return [section(found)]


PART = Inversion
