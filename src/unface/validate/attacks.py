"""Attacks by name: those of unface, and those that other packages register under the entry point ``unface.attacks``."""

from collections.abc import Callable, Sequence

import numpy as np

from unface.functions import registered, unknown
from unface.validate.map2v import ImprovedMap2V, Map2V
from unface.validate.ports import Attack, Knowledge, Oracle, Picture, Recovered, Setting
from unface.validate.scores import Decisions, Scores


class BestOfN:
    """The face that scored highest: what anybody gets by asking alone, beside which every attack stands."""

    name = "best-of-n"
    adaptive = False
    settings: tuple[Setting, ...] = ({},)

    def run(self, oracle: Oracle, knowledge: Knowledge, queries: Sequence[int]) -> Recovered:
        """The first of equal scores; nobody where no answer came, or a system of decisions accepted none."""
        answers = oracle.ask(knowledge.pictures[: max(queries)])
        templates = np.full((1, len(queries), knowledge.vectors.shape[1]), np.nan)
        pictures: list[Picture | None] = [None] * len(queries)
        for at, n in enumerate(queries):
            known = np.where(np.isnan(answers[:n]), -np.inf, answers[:n])
            best = int(known.argmax())
            if known[best] > (0 if oracle.decisions_only else -np.inf):
                templates[0, at], pictures[at] = knowledge.vectors[best], knowledge.pictures[best]
        return Recovered(tuple(queries), templates, (tuple(pictures),))


ATTACKS: dict[str, Callable[[], Attack]] = {
    attack.name: attack for attack in (BestOfN, Scores, Decisions, Map2V, ImprovedMap2V)
}


def usual_attacks(*, decisions_only: bool) -> tuple[str, ...]:
    """Names of those that make sense for a target."""
    return ("best-of-n", "scores", "decisions") if decisions_only else ("best-of-n", "scores")


def load_attack(name: str) -> Attack:
    """An attack by its name."""
    if name in ATTACKS:
        return ATTACKS[name]()
    unfit = "works on stored vectors, not on scores; use it with unface invert"
    others: Attack | None = registered("attack", name, lambda make: make(), Attack, unfit=unfit)
    if others is not None:
        return others
    raise unknown("attack", name, ATTACKS)
