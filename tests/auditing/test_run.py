"""If these fail, an audit measures something else than it was asked for, hides what it left out, or varies."""

import json
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from tests.auditing.audits import (
    FEW,
    PEOPLE,
    RANK,
    Steps,
    bare,
    bare_refusal,
    complete,
    looped,
    quick,
    refusal,
    renamed,
    secret_people,
)
from tests.auditing.audits import secret_audit as audited
from tests.kit.results import controls
from unface import UnfaceError, audit, make_identities
from unface.auditing import Maps, Protocol, Sweeps, Transfer
from unface.data import EmbeddingSet
from unface.probe import USUAL_PROBES
from unface.progress import Silent
from unface.result.parts import BUILT_IN


def test_pictures_and_people_that_were_left_out_are_counted_with_what_would_use_them() -> None:
    """60 people of 8 pictures: five of them have 3, one has 1."""
    made = make_identities(60, 8, 8, between=1.2, seed=1)
    place = np.tile(np.arange(8), 60)
    uneven = made.take(~(((made.identities < 5) & (place >= 3)) | ((made.identities == 5) & (place >= 1))))
    quick = Protocol(far=0.05, k=1, probe="cosine", seeds=1, bootstraps=100, threads=1)
    result = audit(uneven, eraser=(), parts=(), protocol=quick)
    assert (result.curated.rows, result.curated.rows_dropped, result.curated.identities_dropped) == (447, 1, 1)
    (one,) = (finding.text for finding in result.findings if finding.about == "size" and "people" in finding.text[:20])
    assert one == "1 of 60 people (1.7 %) were left out: they have one picture, and nothing to compare it with"
    fewer = audit(uneven, eraser=(), parts=(), protocol=replace(quick, images=3))
    judged = fewer.roles.calibrate + fewer.roles.test
    assert fewer.curated.identities_dropped == 1
    assert 1 + 4 * judged <= fewer.curated.rows_dropped <= 1 + 5 * judged
    assert "calibrate and test people bring at most 3 pictures each" in str(fewer.findings)
    paper = audit(uneven, eraser=(), parts=(), protocol=replace(quick, far=0.1, variant="paper", seeds=2))
    assert (paper.curated.rows, paper.curated.rows_dropped, paper.curated.identities_dropped) == (432, 16, 6)
    same = audit(made, eraser=(), parts=(), protocol=quick)
    assert same.curated.rows_dropped == 0
    assert not any(finding.about == "size" for finding in same.findings)


def test_what_was_given_used_and_split_is_in_the_result() -> None:
    result = audited()
    assert (result.source.rows, result.source.identities, result.source.dim) == (480, 60, 8)
    assert result.source.sha256 == secret_people().sha256()
    assert (result.curated.images, result.curated.identities, result.curated.identities_dropped) == (8, 60, 0)
    roles = result.roles
    assert (roles.fit, roles.train, roles.calibrate, roles.test, roles.seed) == (18, 15, 12, 15, 0)
    protocol = result.protocol
    assert (protocol.k, protocol.far, protocol.seeds, protocol.bootstraps) == (
        [1, 4, 8],
        [1e-2, 1e-3, 5e-4],
        2,
        200,
    )


@pytest.mark.parametrize(
    ("images", "asked", "run"),
    [
        (5, None, [1, 4, 5]),
        (4, None, [1, 4]),
        (2, None, [1, 2]),
        (5, "all", [5]),
        (5, (2, "all"), [2, 5]),
        (5, ("all", 5, 1), [5, 1]),
    ],
)
def test_the_ks_are_those_that_fit_and_all_of_the_pictures(images: int, asked: object, run: list[int]) -> None:
    result = bare(make_identities(40, images, 4, between=1.2), k=asked)
    assert result.protocol.k == run
    assert result.k_words(images) == f"{images} (all)"
    assert result.k_words(1) == "1"


def test_rates_ks_and_probes_may_be_given_bare_and_repeated_ones_count_once() -> None:
    once = bare(far=0.05, k=1, probe="cosine").protocol
    again = bare(far=(0.05, 0.05), probe=["cosine", "cosine"], k=(1, 1)).protocol
    assert (once.far, once.probe, once.k) == (again.far, again.probe, again.k) == ([0.05], ["cosine"], [1])


def test_far_and_k_override_those_of_the_protocol() -> None:
    settings = Protocol(far=0.2, k=2, probe="cosine", seeds=1, bootstraps=100, threads=1)
    assert audit(FEW, eraser=(), parts=(), protocol=settings).protocol.far == [0.2]
    overridden = audit(FEW, far=0.1, k=1, eraser=(), parts=(), protocol=settings).protocol
    assert (overridden.far, overridden.k) == ([0.1], [1])


def test_what_was_not_measured_is_listed() -> None:
    alone = bare().not_measured
    assert alone[0].startswith("same-shoot pairs: bare vectors cannot separate the same person elsewhere")
    assert "probes left out: ridge, lda, plda" in alone
    everything = audited().not_measured
    assert not any(text.startswith("same-shoot") for text in everything)
    assert not any(text.startswith("probes left out") for text in everything)
    assert "template inversion" in everything
    assert "template inversion" in alone


def test_an_invalid_finding_comes_first_and_the_audit_says_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unface.auditing.run.check_controls", lambda bench: controls(passed=False, across=2))
    result = bare()
    assert [finding.severity for finding in result.findings] == ["invalid", "warning", "note"]
    assert not result.valid
    assert result.verdict == f"The audit is invalid: {result.findings[0].text}"


def test_options_that_have_nothing_to_act_on_are_refused() -> None:
    strangers = renamed(make_identities(40, 5, 16, rank=RANK, between=3.0, seed=11), "other")
    for option, given in (("--transfer", {"parts": (Transfer(strangers),)}), ("--fit-on", {"fit_on": strangers})):
        assert refusal(eraser=(), **given).startswith(f"{option}: no eraser is fitted in this audit")
    assert refusal(eraser=(), parts=(Sweeps(fit_counts=(12,)),)).startswith("--fit-counts: no eraser is fitted")
    assert refusal(parts=(Sweeps(fit_counts=(1, 1000)),)).startswith("--fit-counts: none lies above rank")


def test_a_part_given_twice_is_refused_since_only_one_of_the_two_could_be_kept() -> None:
    told = "parts: 'maps' is given twice; an audit has one section of each part"
    assert bare_refusal(parts=(Maps(), Sweeps(), Maps())) == told


def test_every_part_that_was_asked_for_has_its_section_and_no_other_has() -> None:
    assert list(complete().parts) == ["utility", "sweeps", "maps", "transfer", "attribute_swap"]
    assert set(complete().parts) <= set(BUILT_IN)
    assert looped().parts == {}


def test_progress_comes_in_steps_that_add_up() -> None:
    steps = Steps()
    bare(progress=steps, k=(1, 2), probe=["cosine", "lda"])
    assert steps.totals == steps.done == {"raw": 4, "shuffled control": 2}


def test_the_order_of_rows_decides_nothing() -> None:
    order = np.random.default_rng(0).permutation(len(FEW))
    names = np.array(FEW.names)[FEW.identities]
    ids = np.array([f"i{row}" for row in range(len(FEW))])
    one = EmbeddingSet.from_arrays(FEW.vectors, names, ids=ids)
    other = EmbeddingSet.from_arrays(FEW.vectors[order], names[order], ids=ids[order])
    assert bare(one).spaces == bare(other).spaces


CODE = """
import sys
from dataclasses import replace
from unface import UnfaceError, audit, make_identities
from unface.auditing import Maps, Protocol, Sweeps

result = audit(
    make_identities(120, 5, 40, between=0.8, seed=4),
    parts=(Sweeps(ranks=False, fit_counts=(20,)), Maps()),
    protocol=Protocol(far=(1e-2, 1e-3), k=1, seeds=2, bootstraps=500, threads=int(sys.argv[1])),
)
print(result.model_dump_json(by_alias=True, exclude={"run"}))
"""


@pytest.mark.slow
def test_neither_threads_nor_those_of_blas_change_a_byte() -> None:
    """All probes, in processes of their own, since BLAS reads its number of threads once."""
    shown = [
        subprocess.run(
            [sys.executable, "-c", CODE, threads],
            env=os.environ | {"OPENBLAS_NUM_THREADS": blas, "OMP_NUM_THREADS": blas, "MKL_NUM_THREADS": blas},
            capture_output=True,
            check=True,
            timeout=300,
        ).stdout
        for threads, blas in (("1", "1"), ("2", "2"))
    ]
    assert shown[0] == shown[1]
    content = json.loads(shown[0])
    assert content["protocol"]["probe"] == list(USUAL_PROBES)
    assert list(content["parts"]) == ["sweeps", "maps"]


def test_the_seed_decides_everything() -> None:
    first, again, other = (bare(seed=seed).model_dump(exclude={"run"}) for seed in (0, 0, 1))
    assert first == again
    assert first["spaces"] != other["spaces"]


def test_the_people_of_these_tests_leak() -> None:
    """What most other tests here take for granted."""
    assert len(PEOPLE.names) == 120
    head = looped().headline
    assert head is not None
    assert (head.raw.times_chance or 0) > 10


def test_vectors_that_are_all_the_same_are_refused_and_not_found_to_be_safe() -> None:
    """The default of a column nobody has filled: without this, no pair is ever linked and every limit holds."""
    people = make_identities(60, 8, 8, between=1.2, seed=1)
    same = replace(people, vectors=np.tile(people.vectors[:1], (len(people), 1)))
    with pytest.raises(UnfaceError, match="all 480 vectors are the same, so nothing can be measured; check that the"):
        audit(same, eraser=(), parts=(), protocol=Protocol(far=0.05, k=1, probe="cosine", seeds=1, bootstraps=50))


def test_what_is_not_shared_among_cores_runs_with_one_thread_of_blas() -> None:
    """Threads of BLAS would wait for each other over small matrices: a fifth of an audit's time."""
    seen = list[int]()

    class Watch(Silent):
        def start(self, task: str, total: int) -> None:
            seen.extend(one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas")

    with threadpool_limits(2, user_api="blas"):
        quick(progress=Watch())
    assert set(seen) == {1}
