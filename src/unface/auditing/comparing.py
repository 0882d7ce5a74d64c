"""Spaces beside each other on the same pairs of people: what an eraser changed, and whether a control does as well."""

from collections.abc import Mapping

from unface.auditing.attack import Attack, Attacked
from unface.auditing.schema import Change
from unface.probe import difference


def changes(others: Mapping[str, Attacked], attacked: Attacked, attack: Attack) -> list[Change]:
    """Worst case here less worst case in each other space, at every k and rate that is measured."""
    found = []
    for other, before in others.items():
        for k in attack.plan.ks:
            for far in attack.plan.fars:
                here, there = attacked.worst(k, far), before.worst(k, far)
                if here is None or there is None:
                    continue
                value, interval = difference(there, here, attack.bootstrap.level)
                found.append(
                    Change(
                        against=other,
                        k=k,
                        far=far,
                        probe=here.probe,
                        against_probe=there.probe,
                        value=value,
                        low=interval.low,
                        high=interval.high,
                        level=interval.level,
                    )
                )
    return found
