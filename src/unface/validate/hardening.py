"""Hardening: what a change to a system's answers costs an attacker, worked out on answers that were given already."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from unface.metrics import allowed_accepts, threshold_allowing
from unface.result.validation import Hardening
from unface.result.words import rate
from unface.seeds import stream
from unface.validate.attacks import load_attack, usual_attacks
from unface.validate.measure import Verdicts, judge_recovered, worst_curve
from unface.validate.oracle import Replayed
from unface.validate.ports import Attack, Faces, Knowledge, TemplateJudge
from unface.validate.scores import Scores

Answers = NDArray[np.float64]
_FEWEST_ACCEPTED = 30
_LIMITS = (20, 50, 100)


@dataclass(frozen=True)
class Measure:
    """A change to answers (people, n), such as rounding."""

    words: str
    change: Callable[[Answers], Answers]
    decisions_only: bool = False
    cut: bool = False
    """Whether all rejected faces get the same answer."""

    @property
    def attacks(self) -> tuple[str, ...]:
        """Names of those that make sense."""
        return usual_attacks(decisions_only=self.decisions_only or self.cut)


def usual_measures(answers: Answers, seed: int) -> list[Measure]:
    """In the units of the answers themselves: for cosines steps of 0.01 and 0.1, for percentages of 1 and 10.

    Faces that an attacker asks with are strangers, so the highest 1 in 1,000 of all answers are what a threshold at FAR
    1e-3 would accept.
    """
    known = answers[np.isfinite(answers)]
    if len(np.unique(known)) <= 2:
        return []  # decisions: there is nothing left to take away
    unit = 10.0 ** math.ceil(math.log10(float(np.abs(known - np.median(known)).max())) - 1e-9)
    measures = [_rounded(unit * share) for share in (0.01, 0.1)]
    measures += [_noisy(unit * share, seed) for share in (0.05, 0.2)]
    for far in (1e-2, 1e-3):
        if far * len(known) >= _FEWEST_ACCEPTED:
            cut = threshold_allowing(known, allowed_accepts(far, len(known)))
            measures += [_above(cut, far), _decided(cut, far)]
    return sorted(measures, key=lambda measure: measure.decisions_only)


def harden(
    answers: Answers,
    knowledge: Knowledge,
    faces: Faces,
    judges: Sequence[TemplateJudge],
    queries: Sequence[int],
    far: float,
    *,
    seed: int,
    applies_to: Literal["answers of this run", "built-in target"] = "answers of this run",
) -> list[Hardening]:
    """Every measure beside the answers as they are; the worst attack of the panel, chosen on other people.

    ``answers`` (people, n) are those to the first n faces of ``knowledge``, NaN where there is none. A limit on
    questions is read off the curve of the answers as they are.
    """
    attacks = {name: load_attack(name) for name in usual_attacks(decisions_only=True)}
    decided = len(np.unique(answers[np.isfinite(answers)])) <= 2
    rows = []
    for measure in (Measure("as it is", np.copy, decided), *usual_measures(answers, seed)):
        panel = [attacks[name] for name in measure.attacks]
        curve = worst_curve(
            [judged_measure(attack, measure, answers, knowledge, faces, judges, queries) for attack in panel], seed
        )
        at, everybody = curve.verdicts.fars.index(far), list(range(len(judges)))
        half, note = curve.queries_to_half(far)
        largest = max(queries)
        rows.append(
            Hardening(
                measure=measure.words,
                applies_to=applies_to,
                far=far,
                other=curve.share("other", everybody, at, len(queries) - 1),
                queries_to_half=half,
                largest=largest,
                note=note,
            )
        )
        if measure.words == "as it is":
            limits = [(number, n) for number, n in enumerate(queries) if n in _LIMITS and n < largest]
            for number, n in limits:
                share = curve.share("other", everybody, at, number)
                reached = half if half is not None and half.value <= n else None
                words = f"at most {n} questions about a person"
                rows.append(
                    Hardening(
                        measure=words, applies_to=applies_to, far=far, other=share, queries_to_half=reached, largest=n
                    )
                )
    return rows


def judged_measure(
    attack: Attack,
    measure: Measure,
    answers: Answers,
    knowledge: Knowledge,
    faces: Faces,
    judges: Sequence[TemplateJudge],
    queries: Sequence[int],
) -> Verdicts:
    """One attack on changed answers."""
    changed = measure.change(answers)
    if isinstance(attack, Scores):
        recovered = attack.recover(changed, knowledge, queries)
    else:
        pictures = knowledge.pictures[: answers.shape[1]]
        recovered = [
            attack.run(Replayed(pictures, row, decisions_only=measure.decisions_only), knowledge, queries)
            for row in changed
        ]
    return judge_recovered(attack.settings, recovered, faces, judges)


def _rounded(step: float) -> Measure:
    return Measure(f"scores rounded to {step:g}", lambda answers: np.round(answers / step) * step)


def _noisy(deviation: float, seed: int) -> Measure:
    def change(answers: Answers) -> Answers:
        return answers + deviation * stream(seed, "hardening", "noise").standard_normal(answers.shape)

    return Measure(f"noise of standard deviation {deviation:g} added to every score", change)


def _above(cut: float, far: float) -> Measure:
    """A score that is held back is taken for the threshold."""

    def change(answers: Answers) -> Answers:
        return np.where(np.isnan(answers), np.nan, np.maximum(answers, cut))

    return Measure(f"a score only for accepted faces, at FAR {rate(far)}", change, cut=True)


def _decided(cut: float, far: float) -> Measure:
    def change(answers: Answers) -> Answers:
        return np.where(np.isnan(answers), np.nan, answers >= cut)

    return Measure(f"decisions only, at FAR {rate(far)}", change, decisions_only=True)
