"""If this fails, `scores` recovers less, or another template, than algebra says that the answers hold.

On Gaussian vectors the error of ridge regression has a closed form: with γ = d/n, ℓ = λ/n and M(ℓ) = ∫ dF(x)/(x + ℓ)
over the Marchenko–Pastur law F, bias² = |z|² ℓ² Q and variance = σ² γ (M − ℓQ), where Q = −M′.
"""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import norm

from unface.seeds import stream
from unface.validate.scores import ScoreRegression

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Law:
    """What n answers with Gaussian noise hold about a template in d dimensions."""

    error: float
    """E|ẑ − z|² / |z|²."""
    cosine: float

    @classmethod
    def of(cls, n: int, d: int, ridge: float, noise: float) -> "Law":
        """``ridge`` is λ; ``noise`` the standard deviation of an answer for one of |z|."""
        gamma, lam = d / n, ridge / n
        linear = 1 - gamma + lam
        m = (-linear + math.sqrt(linear**2 + 4 * gamma * lam)) / (2 * gamma * lam)
        q = (gamma * m**2 + m) / (2 * gamma * lam * m + linear)
        variance = noise**2 * gamma * (m - lam * q)
        along, length = 1 - lam * m, 1 - 2 * lam * m + lam**2 * q + variance
        return cls(lam**2 * q + variance, along / math.sqrt(length))


def asked(n: int, d: int, people: int = 200) -> tuple[Matrix, Matrix, Matrix]:
    """Vectors of n faces, templates of length one, and the scores of each person (people, n)."""
    draw = stream(0, "score regression", n, d)
    vectors, templates = draw.standard_normal((n, d)), draw.standard_normal((people, d))
    templates /= np.linalg.norm(templates, axis=1, keepdims=True)
    return vectors, templates, templates @ vectors.T


def cosine(found: Matrix, true: Matrix) -> float:
    lengths = np.linalg.norm(found, axis=1) * np.linalg.norm(true, axis=1)
    return float((np.einsum("ij,ij->i", found, true) / lengths).mean())


@pytest.mark.parametrize("n", [41, 200])
def test_as_many_independent_answers_as_unknowns_give_the_template_exactly(n: int) -> None:
    """40 dimensions and an offset are 41 unknowns."""
    vectors, templates, scores = asked(n, 40)
    found = ScoreRegression.of(vectors).templates(0.3 * scores + 0.7, [0])[0]
    np.testing.assert_allclose(found, 0.3 * templates, atol=1e-9)


def test_one_answer_fewer_leaves_one_direction_open() -> None:
    vectors, templates, scores = asked(40, 40)
    found = ScoreRegression.of(vectors).templates(scores, [0])[0]
    assert ((found - templates) ** 2).sum(axis=1).mean() == pytest.approx(1 / 40, rel=0.3)
    misses = found @ vectors.T - scores
    np.testing.assert_allclose(misses - misses.mean(axis=1, keepdims=True), 0, atol=1e-9)


@pytest.mark.parametrize("noise", [0.1, 0.5])
@pytest.mark.parametrize(("n", "d"), [(500, 60), (90, 60)])
def test_without_ridge_the_error_is_that_of_an_inverse_wishart(n: int, d: int, noise: float) -> None:
    """E tr (ΦᵀΦ)⁻¹ = d / (n − d − 1) with the n − 1 degrees of freedom that the mean leaves."""
    errors = []
    for draw in range(20):
        fresh = stream(draw, "noise", n)
        templates, faces = fresh.standard_normal((200, d)), fresh.standard_normal((n, d))
        answers = templates @ faces.T + noise * fresh.standard_normal((200, n))
        found = ScoreRegression.of(faces).templates(answers, [0])[0]
        errors.append(((found - templates) ** 2).sum(axis=1).mean())
    assert np.mean(errors) == pytest.approx(noise**2 * d / (n - 1 - d - 1), rel=0.06)


@pytest.mark.parametrize("strength", [0.03, 1.0])
@pytest.mark.parametrize("noise", [0.0, 0.5, 2.0])
@pytest.mark.parametrize(("n", "d"), [(60, 240), (240, 240), (960, 240)])
def test_error_and_cosine_follow_the_ridge_formula(n: int, d: int, noise: float, strength: float) -> None:
    vectors, templates, scores = asked(n, d)
    answers = scores + noise * stream(1, "noise", n).standard_normal(scores.shape)
    found = ScoreRegression.of(vectors).templates(answers, [strength])[0]
    law = Law.of(n - 1, d, strength * max(n - 1, d), noise)
    assert ((found - templates) ** 2).sum(axis=1).mean() == pytest.approx(law.error, rel=0.06)
    assert cosine(found, templates) == pytest.approx(law.cosine, rel=0.03)


@pytest.mark.parametrize("step", [0.1, 0.5, 1.0])
def test_rounding_to_a_step_is_noise_of_its_square_over_twelve(step: float) -> None:
    n, d, strength = 480, 120, 0.1
    vectors, templates, scores = asked(n, d)
    rounded = np.round(scores / step) * step
    found = ScoreRegression.of(vectors).templates(rounded, [strength])[0]
    law = Law.of(n, d, strength * n, step / math.sqrt(12))
    assert ((found - templates) ** 2).sum(axis=1).mean() == pytest.approx(law.error, rel=0.06)


@pytest.mark.parametrize("far", [0.5, 0.1, 0.01])
def test_decisions_hold_what_a_noisy_score_holds(far: float) -> None:
    """A decision is a·s + e with a = pdf(τ), and e, uncorrelated with s, has the rest of its variance far (1 − far)."""
    n, d, strength = 2000, 100, 1.0
    vectors, templates, scores = asked(n, d)
    threshold = norm.isf(far)
    slope = norm.pdf(threshold)
    rest = math.sqrt(far * (1 - far) - slope**2)
    found = ScoreRegression.of(vectors).templates((scores >= threshold).astype(float), [strength])[0]
    assert cosine(found, templates) == pytest.approx(Law.of(n, d, strength * n, rest / slope).cosine, rel=0.04)


def test_answers_in_another_order_hold_nothing() -> None:
    vectors, templates, scores = asked(300, 100)
    order = stream(2, "shuffle").permutation(300)
    found = ScoreRegression.of(vectors).templates(scores[:, order], [0.1])[0]
    # Of 200 people the mean cosine varies by 1/√(200 d).
    assert abs(cosine(found, templates)) < 4 / math.sqrt(200 * 100)


def test_a_prior_covariance_finds_what_the_faces_at_hand_do_not_span() -> None:
    """Templates lie in 20 of 200 dimensions: with that known, 30 answers are more than enough."""
    draw = stream(3, "prior")
    basis = np.linalg.qr(draw.standard_normal((200, 20)))[0]
    templates, faces = (draw.standard_normal((people, 20)) @ basis.T for people in (50, 30))
    faces = faces + 0.1 * draw.standard_normal(faces.shape)
    answers = templates @ faces.T
    blind = ScoreRegression.of(faces).templates(answers, [1e-6])[0]
    knowing = ScoreRegression.of(faces, basis @ basis.T).templates(answers, [1e-9])[0]
    np.testing.assert_allclose(knowing, templates, atol=1e-4)
    assert cosine(blind, templates) < 0.99
