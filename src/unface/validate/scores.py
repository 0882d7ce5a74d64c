"""`scores` and `decisions`: a person's template by regression of a system's answers on the attacker's own vectors.

A score is nearly an inner product: s(x) ≈ φ(x)·z + c, with φ the attacker's encoder and z the enrolled person in its
space. So the answers to n faces, asked once, are n linear equations in z. Answers need not be scores: from any answer
that grows with the score (rounded, cut off, 1 and 0) the same regression estimates the direction of z, exactly so where
faces are Gaussian (Brillinger 1982), and the direction is all that a cosine sees.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from unface.validate.ports import Knowledge, Oracle, Recovered, Setting

Matrix = NDArray[np.float64]

_STRENGTHS = (1.0, 0.3, 3.0, 0.1, 10.0, 0.03, 30.0)
_PRIORS = (1.0, 0.0)
_DECISION_STRENGTHS = (0.1, 0.03, 0.3, 0.01, 1.0)
_STEPS = 60


@dataclass(frozen=True, eq=False)
class ScoreRegression:
    """ẑ = (ΦᵀΦ + λC⁻¹)⁻¹ Φᵀ(s − s̄), Φ centred, for every λ and any number of people: Φ (n, d) is decomposed once.

    The prior C is the covariance that templates are expected to have; I gives plain ridge regression. The unknown
    offset c of scores takes one answer: without noise, n > d independent answers give z exactly.
    """

    left: Matrix  # (n, r)
    values: NDArray[np.float64]  # (r,)
    right: Matrix  # (r, d)

    @classmethod
    def of(cls, vectors: NDArray[np.floating], root: Matrix | None = None) -> "ScoreRegression":
        """``root`` (d, d) is the symmetric square root of C; None: I."""
        exact = np.asarray(vectors, np.float64)
        exact = exact - exact.mean(axis=0)
        left, values, right = np.linalg.svd(exact if root is None else exact @ root, full_matrices=False)
        real = values > values[0] * max(exact.shape) * np.finfo(float).eps
        return cls(left[:, real], values[real], right[real] if root is None else right[real] @ root)

    def templates(self, answers: NDArray[np.floating], strengths: Sequence[float]) -> Matrix:
        """(strengths, m, d) of (m, n) answers, up to length; λ is a strength times the mean squared singular value."""
        exact = np.asarray(answers, np.float64)
        squares = self.values**2
        ridge = np.asarray(strengths, np.float64)[:, None, None] * squares.mean()
        along = (exact - exact.mean(axis=1, keepdims=True)) @ self.left
        found: Matrix = (along * self.values / (squares + ridge)) @ self.right
        return found

    def logistic(self, accepted: NDArray[np.bool_], strengths: Sequence[float]) -> Matrix:
        """(strengths, m, d) of (m, n) decisions: penalised logistic regression instead of least squares.

        Its curvature is at most a quarter of that of least squares (Böhning and Lindsay 1988), so that steps with this
        bound never overshoot and need no further decomposition.
        """
        left, values = self.left.astype(np.float32), self.values.astype(np.float32)
        people, scale = len(accepted), float((self.values**2).mean())
        ridge = np.repeat(np.asarray(strengths, np.float32) * scale, people)[:, None]
        decided = np.tile(np.asarray(accepted, np.float32), (len(strengths), 1))
        bound = values**2 / 4 + ridge
        share = np.clip(decided.mean(axis=1, keepdims=True), 1e-6, 1 - 1e-6)
        found, offset = np.zeros((len(decided), len(values)), np.float32), np.log(share / (1 - share))
        ahead, ahead_offset = found, offset
        for step in range(_STEPS):
            missed = decided - 1 / (1 + np.exp(-((ahead * values) @ left.T + ahead_offset)))
            nearer = ahead + ((missed @ left) * values - ridge * ahead) / bound
            nearer_offset = ahead_offset + 4 * missed.mean(axis=1, keepdims=True)
            momentum = step / (step + 3)
            ahead = nearer + momentum * (nearer - found)
            ahead_offset = nearer_offset + momentum * (nearer_offset - offset)
            found, offset = nearer, nearer_offset
        templates: Matrix = (found @ self.right).reshape(len(strengths), people, -1)
        return templates


class Regressions:
    """Of one attacker's faces, each made once: for the first n of them, with and without the prior."""

    def __init__(self, knowledge: Knowledge) -> None:
        self.knowledge = knowledge
        self._made: dict[tuple[int, bool], ScoreRegression] = {}

    @cached_property
    def root(self) -> Matrix:
        """Of the covariance of all the faces that the attacker has, asked or not."""
        exact = self.knowledge.vectors.astype(np.float64)
        values, axes = np.linalg.eigh(np.cov(exact.T))
        root: Matrix = (axes * np.sqrt(np.maximum(values, 0))) @ axes.T
        return root

    def of(self, answered: NDArray[np.bool_], *, prior: bool) -> ScoreRegression:
        """Of those of the first n faces that were answered; all of them in most cases, for which it is kept."""
        root = self.root if prior else None
        vectors = self.knowledge.vectors[: len(answered)]
        if not answered.all():
            return ScoreRegression.of(vectors[answered], root)
        key = len(answered), prior
        if key not in self._made:
            self._made[key] = ScoreRegression.of(vectors, root)
        return self._made[key]


class Scores:
    """Least squares, with λ and the prior chosen on other people."""

    name = "scores"
    adaptive = False
    settings: tuple[Setting, ...] = tuple(
        {"ridge": strength, "prior": prior} for strength in _STRENGTHS for prior in _PRIORS
    )

    def __init__(self) -> None:
        self._regressions: Regressions | None = None

    def run(self, oracle: Oracle, knowledge: Knowledge, queries: Sequence[int]) -> Recovered:
        """Ask the first faces once; every n uses the first n answers."""
        (found,) = self.recover(oracle.ask(knowledge.pictures[: max(queries)])[None], knowledge, queries)
        return found

    def recover(self, answers: NDArray[np.float64], knowledge: Knowledge, queries: Sequence[int]) -> list[Recovered]:
        """Of many people at once: (m, n) answers to the first n faces, NaN where there is none."""
        templates = np.full((len(answers), len(self.settings), len(queries), knowledge.vectors.shape[1]), np.nan)
        for at, n in enumerate(queries):
            there = np.isfinite(answers[:, :n])
            telling = np.array([self._tells(row[known]) for row, known in zip(answers[:, :n], there, strict=True)])
            whole = telling & there.all(axis=1)
            groups = [np.flatnonzero(whole), *np.flatnonzero(telling & ~whole)[:, None]]
            for people in groups:
                if len(people):
                    given = answers[people, :n][:, there[people[0]]]
                    found = self._templates(self._of(knowledge), there[people[0]], given)
                    templates[people, :, at] = found.transpose(1, 0, 2)
        return [Recovered(tuple(queries), found) for found in templates]

    def _tells(self, answers: NDArray[np.float64]) -> bool:
        """The same answer to everything says nothing."""
        return len(answers) > 1 and bool((answers != answers[0]).any())

    def _templates(self, regressions: "Regressions", there: NDArray[np.bool_], answers: NDArray[np.float64]) -> Matrix:
        """(settings, m, d)."""
        fits = [regressions.of(there, prior=bool(prior)).templates(answers, _STRENGTHS) for prior in _PRIORS]
        return np.stack(fits, axis=1).reshape(len(self.settings), len(answers), -1)

    def _of(self, knowledge: Knowledge) -> Regressions:
        if self._regressions is None or self._regressions.knowledge is not knowledge:
            self._regressions = Regressions(knowledge)
        return self._regressions


class Decisions(Scores):
    """Logistic regression, for systems that answer with accepted or rejected alone, or with a score if accepted."""

    name = "decisions"
    settings: tuple[Setting, ...] = tuple({"ridge": strength} for strength in _DECISION_STRENGTHS)

    def _tells(self, answers: NDArray[np.float64]) -> bool:
        """Nothing is recovered before a first face was accepted, nor where no answer stands for rejected."""
        rejected = (answers == answers.min(initial=np.inf)).mean() if len(answers) else 1.0
        return bool(0.5 <= rejected < 1)

    def _templates(self, regressions: "Regressions", there: NDArray[np.bool_], answers: NDArray[np.float64]) -> Matrix:
        accepted = answers > answers.min(axis=1, keepdims=True)
        return regressions.of(there, prior=True).logistic(accepted, _DECISION_STRENGTHS)
