"""audit.json: the whole result as a file format, ``unface.audit/1``. Reports, gates and tables read nothing else."""

from os import PathLike
from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from unface.auditing.schema.attribution import EncoderAttribution
from unface.auditing.schema.erasure import AttributeSwap, Map, SpaceResult, Sweep, Transfer
from unface.auditing.schema.given import Curated, Finding, Given, Protocol, RoleCounts, Run
from unface.auditing.schema.numbers import Frozen
from unface.auditing.schema.points import Controls, Point

SCHEMA: Literal["unface.audit/1"] = "unface.audit/1"


class AuditResult(Frozen):
    """One audit: what was measured, on what, how surely, what was not, and what it comes to."""

    schema_: Literal["unface.audit/1"] = Field(default=SCHEMA, alias="schema")
    valid: bool
    verdict: str
    findings: list[Finding]
    not_measured: list[str]
    source: Given
    curated: Curated
    roles: RoleCounts
    protocol: Protocol
    spaces: list[SpaceResult] = Field(min_length=1, description="raw first, then erasers, then the controls")
    sweeps: list[Sweep] = []
    transfers: list[Transfer] = []
    maps: list[Map] = []
    attribute_swaps: list[AttributeSwap] = []
    attribution: EncoderAttribution | None = Field(default=None, description="whether similarity rests on the face")
    utility_sources: list[Given] = []
    utility_aware_source: Given | None = Field(default=None, description="vectors that an eraser was to spare")
    fit_source: Given | None = Field(default=None, description="set the erasers were fitted on, if not this one's own")
    controls: Controls
    run: Run
    suspects: list[tuple[str, str, str, str, str]] = Field(default=[], exclude=True, repr=False)
    """(why, id, identity, id, identity): kept beside audit.json, never in it."""
    left_out: list[tuple[str, str, str, str]] = Field(default=[], exclude=True, repr=False)
    """(encoder, id, step, reason) of pictures that attribution could not use: beside it as well."""

    @model_validator(mode="after")
    def _consistent(self) -> "AuditResult":
        if self.valid and any(finding.severity == "invalid" for finding in self.findings):
            raise ValueError("valid, but a finding says that it is not")
        return self

    def save(self, folder: str | PathLike[str], *, force: bool = False) -> Path:
        """Write audit.json, and suspects.csv and left-out.csv where there are any; returns the path of audit.json."""
        from unface.auditing.save import save_audit

        return save_audit(self, Path(folder), force=force)

    @property
    def raw(self) -> SpaceResult:
        """The vectors as they came."""
        return self.spaces[0]

    def space(self, name: str) -> SpaceResult | None:
        """A space by its name."""
        return next((space for space in self.spaces if space.name == name), None)

    @property
    def erased(self) -> list[SpaceResult]:
        """The spaces that erasers made."""
        return [space for space in self.spaces if space.by_eraser]

    @property
    def worst(self) -> list[Point]:
        """The worst case of the raw space at each k and rate."""
        return [point for point in self.raw.points if point.worst]
