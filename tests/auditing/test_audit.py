"""If these fail, an audit measures something else than it was asked for, or does not say what it left out."""

import json
import os
import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest

from tests.auditing.made import audited, secret_people
from unface import UnfaceError, audit, make_identities
from unface.auditing import AuditResult
from unface.data import EmbeddingSet
from unface.probe import PROBES

PEOPLE = make_identities(40, 5, 4, between=1.5, seed=2)


def quick(embeddings: EmbeddingSet = PEOPLE, **options: object) -> AuditResult:
    chosen: dict[str, object] = {"erasers": (), "fars": (0.05,), "probes": ["cosine"], "seeds": 1}
    chosen |= {"bootstraps": 100, "threads": 1}
    return audit(embeddings, **(chosen | options))  # type: ignore[arg-type]


def refusal(embeddings: EmbeddingSet = PEOPLE, **options: object) -> str:
    with pytest.raises(UnfaceError) as caught:
        quick(embeddings, **options)
    return str(caught.value)


def test_every_probe_is_measured_at_every_k_and_rate_in_order() -> None:
    found = [(point.k, point.far, point.probe) for point in audited().spaces[0].points]
    probes = ["cosine", "ridge", "lda", "plda"]
    assert found == [(k, far, probe) for k in (1, 4) for far in (1e-2, 1e-3) for probe in probes]
    assert [(curve.probe, curve.k) for curve in audited().spaces[0].curves] == [(p, k) for k in (1, 4) for p in probes]


def test_each_k_and_rate_that_was_measured_has_one_worst_case() -> None:
    measured = {(point.k, point.far) for point in audited().spaces[0].points if point.tar}
    assert sorted((point.k, point.far) for point in audited().worst) == sorted(measured)


def test_a_refused_rate_has_no_number_and_says_what_it_would_need() -> None:
    refused = [point for point in audited().spaces[0].points if point.resolution == "refused"]
    assert {(point.k, point.far) for point in refused} == {(4, 1e-3)}
    assert all(point.tar is None and point.threshold is None and not point.worst for point in refused)
    needed = {point.identities_needed for point in refused}
    # Two seeds compare up to 2 · 16 pairs of pictures of each two people, some of them twice:
    # m (m − 1) / 2 · 16 · 1e-3 ≥ 3 from m = 20 on, with twice as many from m = 15 on.
    assert needed == {16}


def test_intervals_hold_their_rates_and_counts_their_values() -> None:
    for point in audited().spaces[0].points:
        if point.tar and point.achieved_far and point.chance and point.times_chance:
            assert point.tar.low <= point.tar.value <= point.tar.high
            assert point.tar.value == point.tar.numerator / point.tar.denominator
            assert point.achieved_far.value == point.achieved_far.numerator / point.achieved_far.denominator
            assert point.times_chance == pytest.approx(point.tar.value / point.chance)
            assert point.tar.value == pytest.approx(np.mean(point.tar_by_seed))


def test_the_context_is_adjusted_for_in_the_worst_case() -> None:
    points = audited().spaces[0].points
    assert all((point.context_adjusted is not None) == point.worst for point in points)


def test_what_was_given_used_and_split_is_told() -> None:
    result = audited()
    assert (result.source.rows, result.source.identities, result.source.dim) == (480, 60, 8)
    assert result.source.sha256 == secret_people().sha256()
    assert (result.curated.images, result.curated.identities, result.curated.identities_dropped) == (8, 60, 0)
    roles = result.roles
    assert (roles.fit, roles.train, roles.calibrate, roles.test, roles.seed) == (18, 15, 12, 15, 0)
    protocol = result.protocol
    assert (protocol.ks, protocol.fars, protocol.seeds, protocol.bootstraps) == ([1, 4], [1e-2, 1e-3], 2, 200)


def test_ks_that_do_not_fit_are_left_out_and_told() -> None:
    told = [finding.text for finding in audited().findings if finding.about == "k"]
    assert told == ["k = 16 was left out: 8 images for each identity leave no pair to compare"]


def test_a_k_that_was_asked_for_and_does_not_fit_is_refused() -> None:
    expected = (
        "k = 4 needs 6 images for each identity, 5 are used; ask for a smaller k, or for more --images of fewer "
        "identities"
    )
    assert refusal(ks=(1, 4)) == expected


def test_too_few_images_are_refused() -> None:
    expected = (
        "2 images for each identity are too few; 3 are needed, 1 to learn from and 2 to compare: --images 3 or more "
        "leaves out identities with fewer"
    )
    assert refusal(make_identities(40, 2, 4)) == expected


def test_a_rate_that_cannot_be_resolved_is_refused_with_the_identities_it_needs() -> None:
    """8 calibrate identities of 4 query images: 28 · 16 pairs; m (m − 1) / 2 · 16 · 1e-3 ≥ 3 from m = 20 on."""
    assert refusal(fars=(1e-3, 1e-4)) == (
        "FAR 1e-3 cannot be resolved: at k = 1 calibrate has 448 impostor pairs, so fewer than 3 false accepts are "
        "expected; 20 calibrate identities are needed, or a higher --far"
    )


def test_the_identities_said_to_be_needed_do_resolve_it() -> None:
    """20 of 100 identities calibrate."""
    assert quick(make_identities(100, 5, 4), fars=(1e-3,), ks=(1,)).worst[0].resolution == "coarse"
    assert "20 calibrate identities are needed" in refusal(make_identities(95, 5, 4), fars=(1e-3,), ks=(1,))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"probes": ["cosine", "forest"]}, "probe 'forest' is not known; choose from cosine, ridge, lda, plda, mlp"),
        ({"variant": "mine"}, "variant 'mine' is not known; use unface or paper"),
        ({"bootstrap": "jackknife"}, "bootstrap 'jackknife' is not known; use double-or-nothing or multinomial"),
        ({"device": "tpu"}, "device 'tpu' is not known; use 'cpu' or 'cuda'"),
        ({"fars": (0.0,)}, "a false-accept rate lies between 0 and 1, not 0"),
        ({"fars": (2.0,)}, "a false-accept rate lies between 0 and 1, not 2"),
        ({"fars": (float("nan"),)}, "a false-accept rate lies between 0 and 1, not nan"),
        ({"fars": (1e-320,)}, "no set of pairs resolves a false-accept rate of 9.99989e-321; ask for 1e-12 or more"),
        ({"fars": ()}, "at least one false-accept rate and one k are needed"),
        ({"ks": (0,)}, "k is the number of support images, at least 1, not 0"),
        ({"ks": (1.5,)}, "k is a whole number of images, not 1.5"),
        (
            {"seeds": 1, "variant": "paper"},
            "the paper variant takes its intervals from the spread over seeds; give at least 2",
        ),
        ({"seed": -1}, "a seed is a number from 0, not -1"),
        ({"bootstraps": 301}, "double-or-nothing replicates come in mirrored pairs; give an even number, not 301"),
        ({"seeds": 0}, "at least one seed is needed, not 0"),
        ({"quota": 0}, "a quota is a number of image pairs, at least 1, not 0"),
        ({"group": "shoot"}, "synthetic: has no column 'shoot'; other columns are: none"),
        ({"group": "a", "context": "b"}, "give --group or --context, not both"),
    ],
    ids=str,
)
def test_what_cannot_be_asked_for_is_refused(options: dict[str, object], sentence: str) -> None:
    assert refusal(PEOPLE, **options) == sentence


def with_roles(change: Callable[[np.ndarray[tuple[int], np.dtype[np.object_]]], None]) -> EmbeddingSet:
    roles = np.array(["fit", "train", "calibrate", "test"], dtype=object)[PEOPLE.identities % 4]
    change(roles)
    return EmbeddingSet.from_arrays(
        PEOPLE.vectors, np.array(PEOPLE.names)[PEOPLE.identities], labels={"role": roles}, source="faces.parquet"
    )


def test_a_split_of_ones_own_is_kept_to() -> None:
    found = quick(with_roles(lambda roles: None), split_column="role").roles
    assert (found.fit, found.train, found.calibrate, found.test, found.seed) == (10, 10, 10, 10, None)


@pytest.mark.parametrize("seed", range(6))
def test_an_identity_in_two_roles_is_refused_also_where_curation_would_drop_the_row(seed: int) -> None:
    def change(roles: np.ndarray[tuple[int], np.dtype[np.object_]]) -> None:
        roles[0] = "test"

    twofold = with_roles(change)
    expected = "split: identity 'p0001' is in two roles, test and fit; give it one"
    assert refusal(twofold, split_column="role", images=3, seed=seed) == expected


def test_an_unknown_role_is_named_by_the_row_it_has_in_the_file() -> None:
    def change(roles: np.ndarray[tuple[int], np.dtype[np.object_]]) -> None:
        roles[17] = "validation"

    expected = "split: row 17 has role 'validation'; roles are fit, train, calibrate, test"
    assert refusal(with_roles(change), split_column="role", images=3) == expected


def test_a_role_with_one_identity_is_refused() -> None:
    def change(roles: np.ndarray[tuple[int], np.dtype[np.object_]]) -> None:
        roles[(roles == "calibrate") & (PEOPLE.identities > 4)] = "fit"

    expected = "faces.parquet: role 'calibrate' has 1 identity of 40; at least 5 are needed to say anything"
    assert refusal(with_roles(change), split_column="role") == expected


def test_a_context_column_must_hold_vectors() -> None:
    expected = (
        "faces.parquet: 'role' is no column of vectors; --context needs one vector for each row, --group takes a name"
    )
    assert refusal(with_roles(lambda roles: None), context="role") == expected


def grouped(groups: list[str | None]) -> EmbeddingSet:
    names = np.array(PEOPLE.names)[PEOPLE.identities]
    return EmbeddingSet.from_arrays(PEOPLE.vectors, names, labels={"shoot": np.array(groups, dtype=object)})


def test_pairs_of_unknown_groups_are_left_out_and_counted() -> None:
    """Every other picture has no group: 1 pair in 4 is known, give or take what the seeds draw."""
    result = quick(grouped([None if row % 2 else f"s{row}" for row in range(len(PEOPLE))]), group="shoot")
    adjusted = result.worst[0].context_adjusted
    assert adjusted is not None
    assert 0.5 < adjusted.unknown < 0.95
    assert any("is not known for both pictures" in finding.text for finding in result.findings)


@pytest.mark.parametrize("group", [None, "one for all"])
def test_a_group_that_says_nothing_is_refused(group: str | None) -> None:
    told = refusal(grouped([group] * len(PEOPLE)), group="shoot")
    assert told == "arrays: 'shoot' names fewer than two groups; it says nothing of a shoot"


def test_the_order_of_rows_decides_nothing() -> None:
    order = np.random.default_rng(0).permutation(len(PEOPLE))
    names = np.array(PEOPLE.names)[PEOPLE.identities]
    ids = np.array([f"i{row}" for row in range(len(PEOPLE))])
    one = EmbeddingSet.from_arrays(PEOPLE.vectors, names, ids=ids)
    other = EmbeddingSet.from_arrays(PEOPLE.vectors[order], names[order], ids=ids[order])
    assert quick(one).spaces == quick(other).spaces


def test_one_rate_one_k_and_one_probe_may_be_given_bare() -> None:
    assert audit(PEOPLE, erasers=(), fars=0.05, ks=1, probes="cosine", seeds=1, bootstraps=100).protocol.probes == [
        "cosine"
    ]


def test_what_was_not_measured_is_told() -> None:
    bare = quick().not_measured
    assert bare[0].startswith("same-shoot pairs: bare vectors do not tell the same person elsewhere")
    assert bare[-1] == "probes left out: ridge, lda, plda, mlp"
    everything = audited().not_measured
    assert not any(text.startswith("same-shoot") for text in everything)
    assert everything[-1] == "probes left out: mlp"


def test_the_paper_variant_uses_its_shares_and_its_intervals() -> None:
    result = quick(variant="paper", fars=(0.1,), seeds=3, probes=["cosine", "ridge"])
    roles = result.roles
    assert (roles.fit, roles.train, roles.calibrate, roles.test) == (0, 27, 6, 7)
    for point in result.worst:
        assert point.tar is not None
        assert point.tar.method == "1.96 sd over seeds"
        spread = 1.96 * np.std(point.tar_by_seed, ddof=1)
        assert point.tar.high - point.tar.value == pytest.approx(min(spread, 1 - point.tar.value))
        assert point.partial_auc is not None
        assert 0 <= point.partial_auc <= 1
    assert all(point.tar.method == "identity bootstrap" for point in result.controls.shuffled_identities)


def test_repeated_rates_probes_and_ks_count_once() -> None:
    result = quick(fars=(0.05, 0.05), probes=["cosine", "cosine"], ks=(1, 1))
    assert (result.protocol.fars, result.protocol.probes, result.protocol.ks) == ([0.05], ["cosine"], [1])


def test_progress_is_told_in_steps_that_add_up() -> None:
    class Told:
        def __init__(self) -> None:
            self.totals: dict[str, int] = {}
            self.done: dict[str, int] = {}

        def start(self, task: str, total: int) -> None:
            self.totals[task] = total

        def advance(self, task: str, steps: int = 1) -> None:
            self.done[task] = self.done.get(task, 0) + steps

    told = Told()
    quick(progress=told, ks=(1, 2), probes=["cosine", "lda"])
    assert told.totals == told.done == {"raw": 4, "shuffled control": 2}


CODE = """
import sys
from unface import audit, make_identities

result = audit(
    make_identities(120, 5, 40, between=0.8, seed=4),
    fars=(1e-2, 1e-3), ks=(1,), seeds=2, bootstraps=500, sweep=False, fit_counts=(20,), threads=int(sys.argv[1]),
)
print(result.model_dump_json(by_alias=True, exclude={"run"}))
"""


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
    assert list(PROBES) == json.loads(shown[0])["protocol"]["probes"]


def test_the_seed_decides_everything() -> None:
    first, again, other = (quick(seed=seed).model_dump(exclude={"run"}) for seed in (0, 0, 1))
    assert first == again
    assert first["spaces"] != other["spaces"]
