"""If these fail, vectors without length, spread or difference break the audit instead of being at chance."""

import warnings
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.probe.small import cosines, score_matrix
from tests.refusals.table import refused
from unface import AuditResult, Protocol, audit
from unface.probe import PROBES
from unface.probe.cosine import cosine_of_seen
from unface.seeds import stream

IDENTITIES, IMAGES = 60, 5
CLOSED = [name for name in PROBES if name != "mlp"]


def test_a_row_of_zeros_resembles_none_and_changes_no_other_score() -> None:
    seen = stream(0, "seen").normal(size=(6, 4)).astype(np.float32)
    seen[[1, 4]] = 0
    scores = score_matrix(cosine_of_seen(seen))
    assert not scores[[1, 4]].any()
    assert not scores[:, [1, 4]].any()
    others = [0, 2, 3, 5]
    assert scores[np.ix_(others, others)] == pytest.approx(cosines(seen[others]), abs=1e-6)


def test_rows_that_are_all_zeros_or_have_no_entries_all_score_zero() -> None:
    for shape in ((5, 3), (5, 0)):
        space = cosine_of_seen(np.zeros(shape, np.float32))
        assert score_matrix(space).tolist() == [[0.0] * 5] * 5
        assert space.bound == 1


def cases() -> dict[str, NDArray[np.float64]]:
    rng = stream(0, "degenerate")
    each = np.repeat(np.arange(IDENTITIES), IMAGES)
    return {
        "one dimension": rng.normal(size=(len(each), 1)),
        "two vectors for all identities": np.eye(2)[each % 2],
        "one vector for each identity": rng.normal(size=(IDENTITIES, 6))[each],
        "an axis of its own for each identity": np.eye(IDENTITIES)[each],
        "an axis that is always zero": np.hstack([rng.normal(size=(len(each), 3)), np.zeros((len(each), 2))]),
    }


@cache
def quick_audit(case: str, probe: str) -> AuditResult:
    names = np.repeat([f"p{number:02d}" for number in range(IDENTITIES)], IMAGES)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)  # a division by zero is a fault even where it does no harm
        return audit(
            (cases()[case], names), far=(0.05,), k=(1, 2), protocol=Protocol(probe=[probe], seeds=1, bootstraps=100)
        )


@pytest.mark.parametrize("probe", CLOSED)
@pytest.mark.parametrize("case", cases())
def test_an_audit_of_such_vectors_ends_with_a_verdict(case: str, probe: str) -> None:
    result = quick_audit(case, probe)
    assert result.valid
    assert "an attacker matches them" in result.verdict


@pytest.mark.parametrize("probe", CLOSED)
@pytest.mark.parametrize("case", ["one dimension", "two vectors for all identities"])
def test_vectors_that_tell_nobody_apart_are_at_chance(case: str, probe: str) -> None:
    result = quick_audit(case, probe)
    assert ": no measurable difference from chance, which is " in result.verdict
    assert "labels" in {finding.about for finding in result.findings if finding.severity == "warning"}


@pytest.mark.parametrize("noise", [0, 1e-7])
def test_one_vector_for_everything_is_refused_since_every_limit_would_hold(noise: float) -> None:
    vectors = 1 + noise * stream(0, "nearly the same").normal(size=(IDENTITIES * IMAGES, 4))
    with refused("audit", "arrays", "all 300"):
        audit((vectors, np.repeat(np.arange(IDENTITIES), IMAGES)), far=(0.05,))


@pytest.mark.parametrize("probe", ["cosine", "lda", "plda"])
def test_images_that_do_not_vary_at_all_are_linked_every_time(probe: str) -> None:
    worst = max(point.tar.value for point in quick_audit("one vector for each identity", probe).worst if point.tar)
    assert worst == 1
