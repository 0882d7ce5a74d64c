"""What could make the numbers mean something else: shuffled identities, and pictures or names that occur twice."""

from dataclasses import dataclass

from unface.auditing.attack import Attack
from unface.auditing.inputs import Prepared
from unface.auditing.points import control_points
from unface.auditing.schema import Controls, Duplicates
from unface.probe import (
    Control,
    Lookalike,
    NearDuplicates,
    Stray,
    lookalikes,
    near_duplicates,
    shuffled_control,
    strays,
)
from unface.progress import Progress


@dataclass(frozen=True, eq=False)
class Checked:
    """What each control found."""

    shuffled: Control
    duplicates: NearDuplicates
    lookalikes: tuple[Lookalike, ...]
    strays: tuple[Stray, ...]

    def part(self) -> Controls:
        """For audit.json, in numbers."""
        return Controls(
            shuffled_identities=control_points(self.shuffled),
            near_duplicates=Duplicates(
                cosine=self.duplicates.cosine,
                across_identities=self.duplicates.across,
                within_identities=self.duplicates.within,
                mated=self.duplicates.mated,
            ),
            lookalike_identities=len(self.lookalikes),
            stray_pictures=len(self.strays),
        )

    def suspects(self) -> list[tuple[str, str, str, str, str]]:
        """(why, id, identity, id, identity) of all that looks wrong, for the file beside audit.json."""
        return [
            *(("near-duplicate", *pair) for pair in self.duplicates.named),
            *(("one person, two names?", "", double.first, "", double.second) for double in self.lookalikes),
            *(("picture of another?", stray.id, stray.identity, "", stray.resembles) for stray in self.strays),
        ]


def check(prepared: Prepared, attack: Attack, progress: Progress) -> Checked:
    """The controls of an audit, on the vectors as they came."""
    embeddings, plan = prepared.embeddings, attack.plan
    return Checked(
        shuffled_control(embeddings.vectors, attack.roles, attack.probes, plan, attack.bootstrap, progress),
        near_duplicates(embeddings, device=plan.device, threads=plan.threads),
        lookalikes(embeddings),
        strays(embeddings),
    )
