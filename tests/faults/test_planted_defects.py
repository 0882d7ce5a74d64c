"""If these fail, wrong labels or photo shoots are measured as if they were identity, without a warning.

Every defect is planted in a set that is otherwise clean, and the clean set must raise none of the alarms.
"""

from functools import cache

import numpy as np
import pytest

from tests.probe.planted import Model
from unface import AuditResult, Protocol, audit
from unface.data import EmbeddingSet
from unface.seeds import stream

CLEAN = Model(80, 6, 48)
SEEDS = range(3)


@cache
def audited(defect: str, seed: int) -> AuditResult:
    group = "shoot" if "shoot" in defect else None
    probes = ["cosine", "lda", "plda"]
    made = DEFECTS[defect](seed)
    return audit(
        made,
        far=0.01,
        k=1,
        eraser=(),
        protocol=Protocol(probe=probes, seeds=2, bootstraps=300, group=group, seed=seed, threads=1),
    )


def warnings_of(result: AuditResult) -> set[str]:
    return {finding.about for finding in result.findings if finding.severity != "note"}


def text_of(result: AuditResult, about: str) -> str:
    return next(finding.text for finding in result.findings if finding.about == about)


def clean(seed: int) -> EmbeddingSet:
    return CLEAN.clean(seed)


def one_under_two_names(seed: int) -> EmbeddingSet:
    return CLEAN.one_under_two_names(seed)


def one_picture_twice(seed: int) -> EmbeddingSet:
    made = CLEAN.clean(seed)
    vectors = made.vectors.copy()
    vectors[3] = 1.01 * vectors[200]
    return EmbeddingSet.from_arrays(vectors, np.array(made.names)[made.identities], ids=made.ids)


def shuffled(seed: int) -> EmbeddingSet:
    made = CLEAN.clean(seed)
    names = np.array(made.names)[stream(seed, "shuffled labels").permutation(made.identities)]
    return EmbeddingSet.from_arrays(made.vectors, names)


def same_shoot(seed: int, strength: float = 1.5) -> EmbeddingSet:
    """Each person has two shoots of three pictures, which share a backdrop in the vectors."""
    made = Model(80, 6, 48, between=0.4).clean(seed)
    shoots = np.arange(len(made)) // 3
    backdrops = stream(seed, "backdrops").normal(size=(shoots.max() + 1, 48))
    vectors = made.vectors + strength * backdrops[shoots]
    labels = {"shoot": [f"shoot {number}" for number in shoots]}
    return EmbeddingSet.from_arrays(vectors, np.array(made.names)[made.identities], labels=labels)


def shoots_that_leave_no_trace(seed: int) -> EmbeddingSet:
    made = CLEAN.clean(seed)
    labels = {"shoot": [f"shoot {number}" for number in np.arange(len(made)) // 3]}
    return EmbeddingSet.from_arrays(made.vectors, np.array(made.names)[made.identities], labels=labels)


def one_shoot_for_each_person(seed: int) -> EmbeddingSet:
    made = CLEAN.clean(seed)
    names = np.array(made.names)[made.identities]
    return EmbeddingSet.from_arrays(made.vectors, names, labels={"shoot": names})


DEFECTS = {
    "clean": clean,
    "one person under two names": one_under_two_names,
    "one picture under two names": one_picture_twice,
    "shuffled labels": shuffled,
    "same shoot": same_shoot,
    "shoots that leave no trace": shoots_that_leave_no_trace,
    "one shoot for each person": one_shoot_for_each_person,
}
EACH_SEED = pytest.mark.parametrize("seed", SEEDS)


@EACH_SEED
def test_a_clean_set_raises_no_alarm(seed: int) -> None:
    result = audited("clean", seed)
    assert warnings_of(result) == set()
    assert result.listings["suspects.csv"].rows == []
    assert result.valid


@EACH_SEED
def test_one_person_under_two_names_is_told_and_both_names_are_suspects(seed: int) -> None:
    result = audited("one person under two names", seed)
    assert warnings_of(result) == {"identities"}
    assert result.listings["suspects.csv"].rows == [("one person, two names?", "", "p0001", "", "zz")]
    assert result.controls.lookalike_identities == 1
    assert text_of(result, "identities") == (
        "1 pair of identities resemble each other as much as themselves: one person under two names? "
        "Such pairs count as impostors and hide leakage"
    )


@EACH_SEED
def test_one_picture_under_two_identities_is_told_and_named_by_its_ids(seed: int) -> None:
    result = audited("one picture under two names", seed)
    # The copy is also a picture under the wrong name, and may be told as that too.
    assert {"near-duplicates"} <= warnings_of(result) <= {"near-duplicates", "identities"}
    duplicate, *lost = result.listings["suspects.csv"].rows
    assert duplicate == ("near-duplicate", "p0001-3", "p0001", "p0034-2", "p0034")
    assert lost in ([], [("picture of another?", "p0001-3", "p0001", "", "p0034")])
    assert text_of(result, "near-duplicates") == (
        "1 pair of nearly the same vector (cosine ≥ 0.999) under different identities: "
        "one picture under two names raises every threshold"
    )


@EACH_SEED
def test_shuffled_labels_are_told_before_anyone_calls_the_vectors_safe(seed: int) -> None:
    result = audited("shuffled labels", seed)
    assert warnings_of(result) == {"labels"}
    assert text_of(result, "labels").startswith("no probe does better than chance at any rate: ")
    assert ": no measurable difference from chance, which is " in result.verdict
    # the control has nothing to say here: the labels were as good as shuffled before
    assert result.valid


@EACH_SEED
def test_pictures_of_one_shoot_are_told_from_pictures_of_one_person(seed: int) -> None:
    result = audited("same shoot", seed)
    assert "same shoot" in warnings_of(result)
    point = next(point for point in result.worst if point.context_adjusted)
    assert point.context_adjusted is not None
    assert point.tar is not None
    assert point.context_adjusted.high < point.tar.value
    assert point.context_adjusted.suspects is not None
    assert point.context_adjusted.suspects.value > 0.8
    text = text_of(result, "same shoot")
    assert " of the accepted pairs share their 'shoot'; with surroundings as alike as those of strangers " in text


@EACH_SEED
def test_shoots_that_leave_no_trace_raise_no_alarm(seed: int) -> None:
    assert warnings_of(audited("shoots that leave no trace", seed)) == set()


@EACH_SEED
def test_where_all_of_a_persons_pictures_are_of_one_shoot_the_two_cannot_be_told_apart(seed: int) -> None:
    result = audited("one shoot for each person", seed)
    assert warnings_of(result) == {"same shoot"}
    assert text_of(result, "same shoot") == (
        "'shoot' separates mated from impostor pairs almost wholly (overlap 0.0 %); "
        "identity and photo shoot cannot be separated"
    )


def test_no_defect_voids_an_audit_that_is_otherwise_right() -> None:
    assert all(audited(defect, 0).valid for defect in DEFECTS)
