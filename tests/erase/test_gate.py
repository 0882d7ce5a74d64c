"""If these fail, a face gate misses more faces than its certificate says, or says something of faces it never saw."""

from dataclasses import replace
from math import erf, sqrt
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from tests.erase.people import people
from tests.refusals.table import refused
from unface import Projection
from unface.data import Space
from unface.erase.gate import Gate, fit_gate, upper_bound
from unface.moments import class_moments
from unface.result.face_gate import GateCertificate, gate_words, people_needed
from unface.result.numbers import Rate
from unface.scale.receipt import Check

DIM = 6
# Two Gaussians with one covariance; the fifth and sixth dimension say nothing.
APART = np.array([3.0, -1.5, 2.4, 0.0, 0.0, 0.0])
ROOT = np.diag([1.0, 0.5, 2.0, 1.0, 0.3, 1.5]) + 0.3 * np.eye(DIM, k=1)
SIGMA = ROOT @ ROOT.T
Vectors = NDArray[np.float32]


def drawn(rng: np.random.Generator, rows: int, *, face: bool, of: int = 1, alike: float = 0.0) -> Vectors:
    """Rows of one class; with ``of`` > 1 each run of so many shares a part of its noise, as pictures of one person."""
    noise = rng.standard_normal((rows, DIM))
    shared = np.repeat(rng.standard_normal((rows // of, DIM)), of, axis=0)
    mixed = sqrt(alike) * shared + sqrt(1 - alike) * noise
    return np.asarray(mixed @ ROOT.T + (APART if face else 0), np.float32)


def gate_of(rng: np.random.Generator, fitted: int, held: int, miss: float, *, of: int = 1, alike: float = 0.0) -> Gate:
    faces = class_moments(drawn(rng, fitted, face=True), np.zeros(fitted, np.int64))
    held_faces = drawn(rng, held, face=True, of=of, alike=alike)
    return fit_gate(faces, drawn(rng, 2 * fitted, face=False), held_faces, np.arange(held) // of, miss=miss)


def true_miss(gate: Gate) -> float:
    """P(w · z + b ≤ 0) of a face, by the normal distribution function."""
    mean = float(gate.weights @ APART) + gate.offset
    return 0.5 * (1 + erf(-mean / sqrt(2 * float(gate.weights @ SIGMA @ gate.weights))))


def test_on_two_gaussians_its_direction_is_fisher_s() -> None:
    gate = gate_of(np.random.default_rng(0), 100_000, 1000, 0.01)
    wanted = np.linalg.solve(SIGMA, APART)
    assert gate.weights @ wanted / np.linalg.norm(wanted) > 0.9999
    assert gate.weights @ gate.weights == pytest.approx(1)


def test_its_threshold_misses_as_many_gaussian_faces_as_the_beta_law_says() -> None:
    """With j misses of n held-out faces the true miss rate follows Beta(j + 1, n − j), of mean (j + 1) / (n + 1)."""
    rng = np.random.default_rng(1)
    gates = [gate_of(rng, 200, 2000, 0.02) for _ in range(200)]
    j = 29
    assert upper_bound(j, 2000) <= 0.02 < upper_bound(j + 1, 2000)
    assert {gate.certificate.bound for gate in gates} == {upper_bound(j, 2000)}, (
        "of how many faces, not of their scores"
    )
    rates = np.array([true_miss(gate) for gate in gates])
    expected = (j + 1) / 2001
    spread = sqrt(expected * (1 - expected) / 2002)
    assert abs(rates.mean() - expected) < 4 * spread / sqrt(200)
    # The bound is one-sided at 95 %: of 200 gates so many lie above it, within what chance allows at one in 10,000.
    above = int(np.count_nonzero(rates > [gate.certificate.bound for gate in gates]))
    assert binom.cdf(above, 200, 0.05) > 1e-4
    assert binom.sf(above - 1, 200, 0.05) > 1e-4


def test_where_pictures_of_one_person_are_alike_the_bound_still_holds() -> None:
    """Ten pictures that are nearly the same one: counting pictures, the bound fails in 40 of 200 and more."""
    rng = np.random.default_rng(2)
    gates = [gate_of(rng, 200, 1000, 0.02, of=10, alike=0.98) for _ in range(200)]
    rates = np.array([true_miss(gate) for gate in gates])
    above = int(np.count_nonzero(rates > [gate.certificate.bound for gate in gates]))
    assert binom.sf(above - 1, 200, 0.05) > 1e-4
    assert {gate.certificate.people.denominator for gate in gates} == {100}


def test_with_too_few_faces_it_takes_the_extreme_and_says_what_holds() -> None:
    gate = gate_of(np.random.default_rng(3), 200, 100, 1e-3)
    certificate = gate.certificate
    assert (certificate.missed.numerator, certificate.missed.denominator) == (0, 100)
    assert certificate.bound == pytest.approx(1 - 0.05 ** (1 / 100))
    assert people_needed(1e-3) == 2995
    assert upper_bound(0, 2995) <= 1e-3 < upper_bound(0, 2994)
    assert "needs 2,995 held-out people, here are 100" in " ".join(gate_words(certificate, "things"))


def test_the_share_of_the_gate_set_taken_for_faces_is_that_of_the_normal_law() -> None:
    gate = gate_of(np.random.default_rng(4), 40_000, 4000, 1e-3)
    mean, spread = gate.offset, sqrt(float(gate.weights @ SIGMA @ gate.weights))
    wanted = 0.5 * (1 + erf(mean / spread / sqrt(2)))
    taken = gate.certificate.taken
    assert taken.denominator == 40_000
    assert taken.value == pytest.approx(wanted, abs=4 * sqrt(wanted / 40_000))


def test_a_gate_set_of_faces_is_refused_and_one_with_some_is_told() -> None:
    rng = np.random.default_rng(5)
    far = np.array([8.0, 0, 0, 0, 0, 0], np.float32)
    moments = class_moments(drawn(rng, 500, face=True) + far, np.zeros(500, np.int64))
    held = drawn(rng, 500, face=True) + far
    with refused("eraser", "gate", "100"):
        fit_gate(moments, drawn(rng, 500, face=True) + far, held, np.arange(500))
    others = drawn(rng, 1000, face=False)
    assert len(gate_words(fit_gate(moments, others, held, np.arange(500), miss=0.01).certificate, "things")) == 1
    others[::10] = drawn(rng, 100, face=True) + far
    told = gate_words(fit_gate(moments, others, held, np.arange(500), miss=0.01).certificate, "things")
    assert "% of things is taken for faces, more than 5.0 %" in told[-1]


def projected(*, first: float = 0.0) -> Projection:
    """Removes the first of three dimensions from what has more than ``first`` along the second."""
    certificate = GateCertificate(1e-3, Rate.counted(0, 9), 0.3, Rate.counted(0, 3), 0.6, Rate.counted(1, 9))
    gate = Gate(np.array([0.0, 1.0, 0.0]), -first, certificate)
    space = Space("sscd", "ab" * 32, 3, normalised=True)
    return Projection("isp", np.eye(3)[:, :1].copy(), np.ones(1), space, gate=gate)


def test_only_what_it_takes_for_a_face_is_changed_and_the_rest_stays_to_the_bit() -> None:
    by = projected(first=0.1)
    given = np.array([[0.6, 0.8, 0], [0.8, -0.6, 0], [0.6, 0, 0.8], [3, 4, 0], [4, -3, 0], [0, 0, 0]], np.float32)
    wanted = [[0, 1, 0], given[1], given[2], [0, 1, 0], [0.8, -0.6, 0], [0, 0, 0]]
    done = by.kernel.rows(given)
    assert np.array_equal(done.vectors, np.array(wanted, np.float32))
    assert (done.degenerate, done.not_faces) == (1, 3)
    odd = people(5, 4, 3).unit().vectors
    passed = odd[:, 1] <= 0.1
    assert 3 < np.count_nonzero(passed) < 17
    assert np.array_equal(by.apply(odd)[passed], odd[passed])


def test_saved_and_loaded_the_gate_and_its_certificate_are_the_same(tmp_path: Path) -> None:
    saved = projected(first=0.1 + 2**-50)
    saved.save(tmp_path / "p.safetensors")
    loaded = Projection.load(tmp_path / "p.safetensors")
    assert loaded.gate is not None
    assert saved.gate is not None
    assert (loaded.gate.offset, loaded.gate.certificate) == (saved.gate.offset, saved.gate.certificate)
    assert np.array_equal(loaded.gate.weights, saved.gate.weights)
    assert loaded.sha256 == saved.sha256
    assert replace(saved, gate=None).sha256 != saved.sha256


def test_read_back_a_raw_face_does_not_pass_and_what_is_no_face_does() -> None:
    by = projected(first=0.1)
    check = Check(by)
    stored = by.apply(people(10, 3, 3).unit().vectors)
    check.add(stored)
    check.add(stored.astype(np.float16))
    check.require(60, "here")
    assert check.not_faces == 2 * np.count_nonzero(np.abs(stored[:, 0]) > 4e-3)
    assert check.is_erased(stored).all()
    raw_face = np.array([[0.6, 0.8, 0]], np.float32)
    assert not check.is_erased(raw_face).any()
    check.add(raw_face)
    with refused("apply", "here", "0.6"):
        check.require(61, "here")


def test_with_copies_in_view_a_picture_counts_as_missed_if_any_copy_of_it_is() -> None:
    """The threshold is the order statistic of each picture's lowest score, and the bound still counts pictures."""
    rng = np.random.default_rng(7)
    moments, others = class_moments(drawn(rng, 500, face=True), np.zeros(500, np.int64)), drawn(rng, 400, face=False)
    held = drawn(rng, 600, face=True)
    copies = (held[:300] - np.float32(0.5) * APART.astype(np.float32)).astype(np.float32)
    plain = fit_gate(moments, others, held, np.arange(600), miss=0.02)
    seen = fit_gate(moments, others, held, np.arange(600), copies=(copies, np.arange(300)), miss=0.02)
    assert np.array_equal(seen.weights, plain.weights)
    assert seen.offset > plain.offset
    assert seen.certificate.bound == plain.certificate.bound
    scores = held @ seen.weights
    scores[:300] = np.minimum(scores[:300], copies @ seen.weights)
    assert np.count_nonzero(scores + seen.offset <= 0) == seen.certificate.missed.numerator
