"""If these fail, an eraser is judged on the pictures it was fitted on, and nobody is told that it looks too good."""

import numpy as np
import pytest

from tests.auditing.audits import RANK, refusal
from unface import ISP, EmbeddingSet, Projection, audit, make_identities, verify
from unface.auditing import Protocol
from unface.fitted import ERASED, FITTED, Remembered, hashes

PEOPLE = make_identities(80, 6, 16, rank=RANK, between=3.0, seed=21)
NAMES = np.array(PEOPLE.names)[PEOPLE.identities]
KNOWN = PEOPLE.identities < 40
QUICK = Protocol(probe="cosine", seeds=1, bootstraps=100, threads=1)


def test_verifying_the_pictures_an_eraser_was_fitted_on_says_so() -> None:
    erased = ISP(rank=RANK).fit_transform(PEOPLE.vectors, PEOPLE.identities)
    (said,) = verify(erased, PEOPLE.identities, far=0.01).notes
    assert said.startswith("480 of 480 vectors are pictures that the eraser was fitted on")
    some = np.random.default_rng(0).permutation(len(erased))[:100]
    assert verify(erased[some], PEOPLE.identities[some], far=0.01).notes[0].startswith("100 of 100 ")


def test_other_people_and_raw_vectors_need_no_note() -> None:
    eraser = ISP(rank=RANK).fit(PEOPLE.vectors[KNOWN], PEOPLE.identities[KNOWN])
    for vectors in (eraser.transform(PEOPLE.vectors[~KNOWN]), PEOPLE.vectors[~KNOWN]):
        assert verify(vectors, PEOPLE.identities[~KNOWN], far=0.01).notes == ()


def test_a_projection_saved_loaded_and_fitted_in_batches_remembers_too(tmp_path: object) -> None:
    eraser = ISP(rank=RANK)
    for part in (KNOWN, ~KNOWN):
        eraser.partial_fit(PEOPLE.vectors[part], PEOPLE.identities[part])
    eraser.projection_.save(f"{tmp_path}/p.safetensors")
    erased = Projection.load(f"{tmp_path}/p.safetensors").apply(PEOPLE.vectors)
    assert verify(erased, PEOPLE.identities, far=0.01).notes


def test_an_audit_of_a_projection_that_was_fitted_on_its_pictures_is_invalid() -> None:
    people = EmbeddingSet.from_arrays(PEOPLE.vectors, NAMES)
    everybody = ISP(rank=RANK).fit(PEOPLE.vectors, PEOPLE.identities).projection_
    found = audit(people, projections=[everybody], eraser="none", far=0.05, k=2, parts=(), protocol=QUICK)
    assert not found.valid
    strangers = make_identities(40, 6, 16, rank=RANK, between=3.0, seed=22)
    others = ISP(rank=RANK).fit(strangers.vectors, strangers.identities).projection_
    assert audit(people, projections=[others], eraser="none", far=0.05, k=2, parts=(), protocol=QUICK).valid


def test_an_audit_of_vectors_erased_for_themselves_is_invalid() -> None:
    eraser = ISP(rank=RANK).fit(PEOPLE.vectors, PEOPLE.identities)
    erased = EmbeddingSet.from_arrays(eraser.transform(PEOPLE.vectors), NAMES)
    found = audit(erased, eraser="none", far=0.05, k=2, parts=(), protocol=QUICK)
    assert [one.about for one in found.findings if one.severity == "invalid"] == ["erased before"]
    assert not found.valid


def test_hashes_tell_rows_apart_and_nothing_else() -> None:
    vectors = np.random.default_rng(1).standard_normal((5000, 3)).astype(np.float32)
    assert len(np.unique(hashes(vectors))) == 5000
    assert (hashes(vectors[::-1])[::-1] == hashes(vectors)).all()
    assert (hashes(vectors.astype(np.float64)) == hashes(vectors)).all()
    assert hashes(np.array([[0.0, 1.0]])) == hashes(np.array([[-0.0, 1.0]]))


def test_only_the_latest_projections_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unface.fitted._MOST_PROJECTIONS", 2)
    known, rows = Remembered(), np.eye(3, dtype=np.float32)
    for at, mark in enumerate("abc"):
        known.add(mark, hashes(rows[at : at + 1]))
    assert known.among(rows).tolist() == [False, True, True]
    assert known.among(rows, "c").tolist() == [False, False, True]


def test_erasers_that_an_audit_fits_by_itself_leave_no_trace() -> None:
    FITTED._known.clear()
    ERASED._known.clear()
    assert "also in" in refusal(fit_on=make_identities(30, 4, 16))
    audit(EmbeddingSet.from_arrays(PEOPLE.vectors, NAMES), rank=RANK, far=0.05, k=2, parts=(), protocol=QUICK)
    assert not FITTED
    assert not ERASED
