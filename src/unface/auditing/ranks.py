"""How many dimensions an eraser removes: given, by energy, by a privacy target, or the usual share."""

import re
from dataclasses import dataclass, replace

from unface.auditing.attack import Attack
from unface.auditing.defender import Defender
from unface.auditing.words import percent, rate
from unface.data import EmbeddingSet
from unface.erase import ISP, fit_projection, usual_rank
from unface.errors import UnfaceError
from unface.probe import calibrate_tar
from unface.progress import Progress

_STEPS = 16


@dataclass(frozen=True)
class Target:
    """The highest worst-case TAR, on calibrate identities, that is acceptable at a rate."""

    tar: float
    far: float

    def __str__(self) -> str:
        return f"at most {percent(self.tar)} at FAR {rate(self.far)}"


@dataclass(frozen=True)
class RankRule:
    """At most one of the three; none means three eighths of the dimensions, or what the fit identities allow."""

    rank: int | None = None
    energy: float | None = None
    target: Target | None = None

    def __post_init__(self) -> None:
        if sum(given is not None for given in (self.rank, self.energy, self.target)) > 1:
            raise UnfaceError("rank, energy and target each decide how many dimensions go; give one of them")
        if self.rank is not None and self.rank < 1:
            raise UnfaceError(f"rank {self.rank}; an eraser removes at least one dimension")

    def __str__(self) -> str:
        if self.rank is not None:
            return "given"
        if self.energy is not None:
            return f"{percent(self.energy)} of the energy of the class means"
        if self.target is not None:
            return f"smallest rank with a worst case on calibrate of {self.target}"
        return "usual: three eighths of the dimensions, at most fit identities − 1"


def parse_target(text: str) -> Target:
    """``0.05@1e-4``: at most 5 % at FAR 1e-4."""
    found = re.fullmatch(r"([0-9.eE+-]+)@([0-9.eE+-]+)", text.strip())
    try:
        target = Target(*(float(part) for part in found.groups())) if found else None
    except ValueError:
        target = None
    if target is None or not (0 < target.tar < 1 and 0 < target.far < 1):
        raise UnfaceError(f"target {text!r}; expected a TAR and a FAR between 0 and 1, such as 0.05@1e-4")
    return target


def choose_rank(
    rule: RankRule, method: str, defender: Defender, audited: EmbeddingSet, attack: Attack, progress: Progress
) -> int:
    """The rank at which ``method``, fitted by ``defender``, is to be applied."""
    if rule.target is None:
        return plain_rank(rule, defender)
    return _smallest(rule.target, method, defender, audited, attack, progress)


def plain_rank(rule: RankRule, defender: Defender) -> int:
    """By any rule that needs no attack."""
    if rule.rank is not None:
        return rule.rank
    if rule.energy is not None:
        return fit_projection(ISP(energy=rule.energy), defender.people).rank
    return usual_rank(defender.dim, defender.identities)


def _smallest(
    target: Target, method: str, defender: Defender, audited: EmbeddingSet, attack: Attack, progress: Progress
) -> int:
    """One sweep over ranks up to the first that meets the target, then halving the last step; test is not looked at."""
    plan = replace(attack.plan, fars=(target.far,))
    most = min(defender.dim - 1, defender.identities - 1)
    step = max(1, most // _STEPS)
    seen: dict[int, float] = {}

    def met(rank: int) -> bool:
        vectors = defender.project(method, rank).apply(audited.vectors)
        found = [calibrate_tar(vectors, attack.roles, attack.probes, plan, k) for k in plan.ks]
        if not any(found):
            raise UnfaceError(f"FAR {rate(target.far)} cannot be resolved on these calibrate identities; raise it")
        seen[rank] = max(tar[target.far] for tar in found if tar)
        progress.advance("rank by target")
        return seen[rank] <= target.tar

    ranks = [*range(step, most, step), most]
    progress.start("rank by target", len(ranks) + step.bit_length())
    passed = next((rank for rank in ranks if met(rank)), None)
    if passed is None:
        raise UnfaceError(
            f"{method}: no rank up to {most} brings the worst case to {target}; the lowest seen is "
            f"{percent(min(seen.values()))} at rank {min(seen, key=lambda rank: seen[rank])}"
        )
    low: int = max([rank for rank in seen if rank < passed], default=0)
    high: int = passed
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if met(middle) else (middle, high)
    return high
