"""What the parts of an audit work with: the people, the attack, the erasers, and what has been measured so far."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from unface.auditing.attack import Attack
from unface.auditing.defence import Defence, Defender
from unface.auditing.protocol import Prepared
from unface.auditing.utility.run import UtilityTasks
from unface.data import EmbeddingSet, Space, is_store
from unface.models import cards
from unface.progress import Progress
from unface.result.audit import ErasedSource, Headline, SpaceResult
from unface.result.file import Finding, Given, LeftOut, Listing


@dataclass(frozen=True, eq=False)
class Bench:
    """Handed to every part; a part reads it and adds to the last three fields only."""

    given: EmbeddingSet
    prepared: Prepared
    attack: Attack
    defender: Defender
    defences: Sequence[Defence]
    """Erasers, then controls of equal rank."""
    utility: UtilityTasks
    progress: Progress
    erased_by: ErasedSource | None = None
    """What the audited vectors went through before; None for raw ones."""
    spaces: Sequence[SpaceResult] = ()
    """Empty before the attack."""
    findings: list[Finding] = field(default_factory=list)
    """What the file itself does not show."""
    not_measured: list[str] = field(default_factory=list)
    listings: dict[str, Listing] = field(default_factory=dict)

    @property
    def erasers(self) -> list[Defence]:
        """Without the controls."""
        return [defence for defence in self.defences if not defence.control]

    @property
    def fitted(self) -> list[Defence]:
        """Erasers that were fitted for this audit."""
        return [defence for defence in self.erasers if defence.fit is not None]

    @property
    def headline(self) -> Headline | None:
        """Where the audit is quoted; None before the attack, or where no rate was resolved."""
        return Headline.among(self.spaces) if self.spaces else None


def describe_given(given: EmbeddingSet) -> Given:
    """A set of vectors as results name it."""
    bad = given.bad_rows
    return Given(
        name=given.source,
        sha256=given.sha256(),
        rows=len(given),
        identities=len(given.names),
        dim=given.space.dim,
        encoder=given.space.encoder,
        weights_sha256=given.space.weights_sha256,
        licence=_licence(given.space),
        notes=list(given.notes),
        columns=_columns(given),
        sample=given.sample,
        bad_rows=None if bad is None else LeftOut(rows=bad.rows, of=bad.of, faults=dict(bad.faults)),
    )


def _columns(given: EmbeddingSet) -> dict[str, str]:
    """Names that have to be given again to read the same set; the URL of a store has that of its vectors."""
    usual = {"identity": ("identity", "identities"), "vector": ("vector", "vectors"), "id": ("id", "ids")}
    named = {option: getattr(given.columns, option) for option in usual}
    if is_store(given.source):
        named.pop("vector")
    return {option: name for option, name in named.items() if name is not None and name not in usual[option]}


def _licence(space: Space) -> str | None:
    """By the card of the encoder, if the weights are those of the card."""
    known = (one for one in cards() if one.name == space.encoder and one.sha256 == space.weights_sha256)
    return next((one.licence.name for one in known), None)
