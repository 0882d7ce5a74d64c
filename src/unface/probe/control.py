"""A self-test of probes and pipeline that can void an audit: on shuffled identities no probe may beat chance.

It has no power against leaks in the data: whatever pictures share beside the person is shuffled with the names.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc

from unface.probe.measure import Bootstrap, Measurement, measure
from unface.probe.panel import Roles, draw_shots, run_panel
from unface.probe.plan import Plan, Variant
from unface.probe.ports import Probe
from unface.progress import Progress
from unface.seeds import stream

# Every probe at every rate is tested, so each test must be all but certain before it may void the audit.
LEVEL = 0.999
# An interval over so few people with an accepted pair is too narrow at that level: of 40 clean audits with albums two
# were voided. Then chance must also be all but unable to link so many people.
_FEW = 10
# Partners tried for an image that shares its new identity with another of its own person.
_TRIES = 200


@dataclass(frozen=True, eq=False)
class Control:
    """The panel on shuffled identities at one k."""

    measurements: tuple[Measurement, ...]

    @property
    def failures(self) -> tuple[Measurement, ...]:
        """Measurements whose whole interval lies above chance, and above the achieved FAR where that is higher."""
        return tuple(
            found
            for found in self.measurements
            if found.accepted
            and found.interval.low > max(found.achieved_far, found.far)
            and (found.accepted_people >= _FEW or _by_chance(found) < 1 - LEVEL)
        )


def _by_chance(found: Measurement) -> float:
    """How likely chance links pairs of so many people: at most far × pairs for each, whatever the pairs share."""
    each = min(1.0, max(found.achieved_far, found.far) * found.mated / found.identities)
    # The tail of a binomial distribution.
    return float(betainc(found.accepted_people, found.identities - found.accepted_people + 1, each))


def shuffled_control(
    vectors: NDArray[np.float32],
    roles: Roles,
    probes: Sequence[Probe],
    plan: Plan,
    bootstrap: Bootstrap,
    progress: Progress | None = None,
) -> Control:
    """Shuffle identities among the images of each role and run the panel at the k that learns from most images."""
    k = max(plan.ks)
    control_plan = replace(plan, ks=(k,), everything=k, variant=Variant.UNFACE)
    shuffled = shuffled_roles(roles, plan.seed, apart=_one_pair_decides(vectors, roles, control_plan))
    panel = run_panel(vectors, shuffled, probes, control_plan, progress, task="shuffled control")
    strict = replace(bootstrap, level=LEVEL)
    return Control(
        tuple(measure(trial, far, strict, control_plan) for trial in panel.trials.values() for far in trial.thresholds)
    )


def shuffled_roles(roles: Roles, seed: int, *, apart: bool) -> Roles:
    """Identities shuffled among the images of each role; ``apart``: no two images of a person stay together."""
    deal = _part if apart else _permute
    return Roles(
        *(
            replace(role, identities=deal(role.identities, stream(seed, "shuffle", name)))
            for name, role in (("train", roles.train), ("calibrate", roles.calibrate), ("test", roles.test))
        )
    )


def _one_pair_decides(vectors: NDArray[np.float32], roles: Roles, plan: Plan) -> bool:
    """Whether at the lowest rate chance accepts less than one of the mated pairs that seeds may compare."""
    _, resolved = draw_shots(vectors, roles, plan, plan.ks[0])
    images = roles.test.images()
    return min(resolved.measured, default=1.0) * float((images * (images - 1) // 2).sum()) < 1


def _permute(people: NDArray[np.int64], draw: np.random.Generator) -> NDArray[np.int64]:
    """Identities in any order: two images of a person stay together as often as chance has it, mated or not."""
    return draw.permutation(people)


def _part(people: NDArray[np.int64], draw: np.random.Generator) -> NDArray[np.int64]:
    """Identities in an order that leaves no two images of a person together.

    At a rate of 1e-6 one such pair, rightly accepted, would pass for a leak. The price: such pairs are impostors only,
    so that shuffled TAR lies below chance, by no more than chance. Where identities are hardly more than images of
    each, some stay together.
    """
    dealt = draw.permutation(people)
    held = Counter(zip(dealt.tolist(), people.tolist(), strict=True))
    for row in range(len(dealt)):
        if held[dealt[row], people[row]] == 1:
            continue  # alone of its person under this name, perhaps since its twin has left
        for other in draw.integers(len(dealt), size=_TRIES):
            if not (held[dealt[other], people[row]] or held[dealt[row], people[other]]):
                for moved, to in ((row, dealt[other]), (other, dealt[row])):
                    held[dealt[moved], people[moved]] -= 1
                    held[to, people[moved]] += 1
                dealt[row], dealt[other] = dealt[other], dealt[row]
                break
    return dealt
