"""Transfer: does an eraser that was fitted on one set hold on another? Fit on A, test on B, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from unface.result.audit import AuditResult, Tar
from unface.result.file import Frozen, Given
from unface.result.parts import Option, Part, Section

if TYPE_CHECKING:
    from unface.auditing.bench import Bench
    from unface.auditing.transfer.run import Pairing
    from unface.data import Source


class TransferCell(Frozen):
    """Worst-case TAR on one set, in the raw space or after a projection fitted on one of the two."""

    fitted_on: str | None = Field(description="name of the set, null for raw")
    tested_on: str
    k: int
    far: float
    resolution: Literal["resolved", "coarse"]
    probe: str
    tar: Tar
    chance: float
    times_chance: float


class EraserTransfer(Frozen):
    """One eraser between two sets."""

    method: str
    rank: int
    first: str
    second: Given
    cells: list[TransferCell]
    cosines: list[float] = Field(description="of the principal angles between the two projections, falling")
    chance_cosine: float = Field(description="where the largest of two random subspaces of this rank concentrates")


class TransferResults(Frozen):
    """All erasers of an audit."""

    transfers: list[EraserTransfer]


class Transfer(Part):
    """``second``: another set of faces of the same encoder, anything ``read_embeddings`` takes."""

    name = "transfer"
    schema = TransferResults

    def __init__(self, second: Source) -> None:
        self.second = second

    def before(self, bench: Bench) -> Pairing:
        """Fit there what was fitted here, and refuse sets that share people."""
        from unface.auditing.transfer.run import pair_up

        return pair_up(bench, self.second)

    def run(self, bench: Bench, ready: Pairing) -> TransferResults | None:
        from unface.auditing.transfer.run import transfer

        head = bench.headline
        return None if head is None else TransferResults(transfers=transfer(bench, head, ready))

    @classmethod
    def of(cls, result: AuditResult) -> list[EraserTransfer]:
        """The transfers of an audit."""
        section = result.parts.get(cls.name)
        return section.transfers if isinstance(section, TransferResults) else []

    @classmethod
    def not_measured(cls, result: AuditResult) -> list[str]:
        if len(result.spaces) == 1 or cls.of(result):
            return []
        return ["whether the projection holds on other faces: give a second set as --transfer"]

    @classmethod
    def page(cls, result: AuditResult) -> list[Section | str]:
        from unface.auditing.transfer.page import section

        return [section(cls.of(result))] if cls.of(result) else ["whether an eraser carries to another set"]

    @classmethod
    def repeat(cls, result: AuditResult) -> list[Option]:
        if not cls.of(result):
            return []
        name = cls.of(result)[0].second.name
        return [Option("--transfer", (name,), value=f"unface.auditing.Transfer({name!r})")]


PART = Transfer
