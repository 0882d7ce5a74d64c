"""If these fail, a keeper learns from people it is judged on, copies count as pictures, or a target is not met.

People, pictures and copies differ along planted axes, so that what must be kept is known.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.kit import documents
from tests.kit.command import unface
from tests.kit.results import AuditResult
from unface import EmbeddingSet, Projection, UnfaceError, audit, write_embeddings
from unface.auditing import Protocol, fit_audited, fit_certified, fit_streamed
from unface.erase import Keeper, copy_covariance

DIM, IMAGES = 24, 5
COPIED = 3


def scales(first: int, last: int, strong: float, weak: float) -> NDArray[np.float64]:
    made = np.full(DIM, weak)
    made[first:last] = strong
    return made


def people(identities: int = 90, seed: int = 0, *, copied: bool = True) -> EmbeddingSet:
    """People differ along axes 0 to 7, pictures along 8 to 23, copies along 16 to 23."""
    rng = np.random.default_rng(seed)
    codes = np.repeat(np.arange(identities), IMAGES)
    means = rng.standard_normal((identities, DIM)) * scales(0, 8, 1.5, 0.1)
    pictures = means[codes] + rng.standard_normal((len(codes), DIM)) * scales(8, 24, 1.0, 0.3)
    copies = np.repeat(pictures, COPIED, axis=0)
    copies = copies + rng.standard_normal(copies.shape) * scales(16, 24, 0.8, 0.4)
    names = [f"p{code}" for code in codes]
    ids = [f"i{number}" for number in range(len(codes))]
    if not copied:
        return EmbeddingSet.from_arrays(pictures.astype(np.float32), names, ids=ids, source="people")
    return EmbeddingSet.from_arrays(
        np.concatenate([pictures, copies]).astype(np.float32),
        [*names, *np.repeat(names, COPIED)],
        ids=[*ids, *(f"c{number}" for number in range(len(copies)))],
        labels={"copy_of": [*([""] * len(ids)), *np.repeat(ids, COPIED)]},
        source="people",
    )


PROTOCOL = Protocol(far=1e-2, probe=("cosine", "lda"), seeds=1, bootstraps=100)


@pytest.fixture(scope="module")
def measured() -> AuditResult:
    return audit(people(), eraser=("isp", "keeper"), rank=DIM - 8, parts=(), protocol=PROTOCOL)


def test_copies_are_no_pictures_and_every_space_is_asked_to_find_them(measured: AuditResult) -> None:
    assert measured.curated.rows == 90 * IMAGES, "copies were counted as pictures of a person"
    found = {
        space.name: next(kept.erased.value for kept in space.utility if kept.measure == "copy recall@1")
        for space in measured.spaces[1:]
    }
    tar = {space.name: next(point.tar.value for point in space.points if point.tar) for space in measured.spaces}
    assert set(found) == {"isp", "keeper", "random", "pca"}
    assert tar["keeper"] < 0.5 * tar["raw"]
    # ISP removes people; of the rest it keeps what copies change as well as what they do not.
    assert found["keeper"] > found["random"]
    assert found["keeper"] > found["pca"]
    erasure = next(space.erasure for space in measured.spaces if space.name == "keeper")
    assert erasure is not None
    assert (erasure.rank, erasure.kept, erasure.control) == (DIM - 8, 8, False)
    assert "μ = 0.3" in erasure.rank_rule


def test_copies_in_a_file_of_their_own_are_the_same(tmp_path: Path) -> None:
    whole = people()
    is_copy = whole.labels["copy_of"] != ""
    pictures, copies = whole.take(~is_copy), whole.take(is_copy)
    apart = fit_certified(pictures, "keeper", copies=copies)
    within = fit_certified(whole, "keeper")
    assert apart.sha256 == within.sha256
    assert apart.released_dim == 3
    assert apart.certificate is not None
    assert apart.certificate.identities == 18

    (tmp_path / "src").mkdir()
    for number, half in enumerate((pictures.identities < 40, pictures.identities >= 40)):
        write_embeddings(replace(pictures.take(half), labels={}), tmp_path / f"src/{number}.parquet")
    write_embeddings(whole, tmp_path / "copies.parquet")
    streamed = fit_streamed(tmp_path / "src", "keeper", copies=tmp_path / "copies.parquet", hold_out=0)
    all_of_them = fit_certified(whole, "keeper", hold_out=0)
    a, b = (one.apply(pictures.vectors) for one in (streamed, all_of_them))
    assert np.abs(a @ a.T - b @ b.T).max() < 1e-4


def test_to_a_target_it_keeps_what_finds_most_copies() -> None:
    loose, tight = (fit_certified(people(), "keeper", rank=target) for target in ("0.9@1e-2", "0.02@1e-2"))
    assert loose.released_dim > tight.released_dim
    assert loose.certificate is not None
    assert tight.certificate is not None
    assert tight.certificate.energy_left.value < loose.certificate.energy_left.value


def test_a_target_that_nothing_meets_is_refused_with_the_best_there_is() -> None:
    """Where all of a picture is the person, whatever is kept is too."""
    rng = np.random.default_rng(0)
    means = rng.standard_normal((60, 8))
    pictures = np.repeat(means, 4, axis=0) + 0.1 * rng.standard_normal((240, 8))
    codes = [f"p{number // 4}" for number in range(240)]
    made = EmbeddingSet.from_arrays(pictures.astype(np.float32), codes, ids=[f"i{n}" for n in range(240)])
    copies = EmbeddingSet.from_arrays(
        (pictures + 0.05 * rng.standard_normal(pictures.shape)).astype(np.float32),
        codes,
        ids=[f"c{n}" for n in range(240)],
        labels={"copy_of": [f"i{n}" for n in range(240)]},
    )
    with pytest.raises(UnfaceError, match="nothing it can keep brings the worst case to at most 1"):
        fit_certified(made, "keeper", rank="0.01@5e-2", copies=copies)


def test_a_task_with_classes_takes_the_place_of_copies() -> None:
    task = people(20, seed=5, copied=False)
    made = fit_certified(people(copied=False), "keeper", spare=task)
    assert (made.kind, made.released_dim) == ("keeper", 3)


def test_what_is_wrong_with_copies_is_one_line() -> None:
    whole = people()
    pictures = people(copied=False)
    is_copy = whole.labels["copy_of"] != ""
    copies = whole.take(is_copy)
    stray = replace(
        copies, labels={"copy_of": np.where(np.arange(len(copies)) < 2, "nowhere", copies.labels["copy_of"])}
    )
    cases: tuple[tuple[str, dict[str, Any]], ...] = (
        ("2 copies of pictures that are not there, such as of 'nowhere'", {"source": pictures, "copies": stray}),
        ("needs copies of pictures", {"source": pictures}),
        ("no column 'copy_of'", {"source": pictures, "copies": pictures}),
        ("there are no copies", {"source": pictures, "copies": whole.take(~is_copy)}),
        ("SRC itself has copies", {"source": whole, "copies": copies}),
        ("at least one must be kept", {"source": whole, "rank": DIM}),
        ("at least one must be kept", {"source": whole, "rank": 10 * DIM}),
        ("give --copies or --spare", {"source": pictures, "copies": copies, "spare": pictures}),
    )
    for message, given in cases:
        with pytest.raises(UnfaceError, match=message) as error:
            fit_certified(**{"eraser": "keeper", **given})
        assert "\n" not in str(error.value)
    with pytest.raises(UnfaceError, match="does not learn from copies"):
        fit_certified(pictures, "isp", copies=copies)


def test_the_command_fits_and_applies_it(tmp_path: Path) -> None:
    write_embeddings(people(), tmp_path / "people.parquet")
    saved, out = tmp_path / "p.safetensors", tmp_path / "out.parquet"
    done = unface("fit", tmp_path / "people.parquet", "--eraser", "keeper", "--out", saved)
    assert (done.code, done.err) == (0, "")
    assert "keeper, 21 of 24 dimensions removed, released in 3 dimensions" in done.out
    assert Projection.load(saved).released_dim == 3
    done = unface("apply", saved, tmp_path / "people.parquet", out, "--verify")
    assert (done.code, done.err) == (0, "")
    assert "released in 3 dimensions" in done.out
    done = unface("apply", saved, tmp_path / "people.parquet", tmp_path / "same.parquet", "--keep-dimension")
    assert (done.code, done.err) == (0, "")
    assert "released in" not in done.out


def without(made: EmbeddingSet) -> tuple[EmbeddingSet, EmbeddingSet]:
    is_copy = made.labels["copy_of"] != ""
    return replace(made.take(~is_copy), labels={}), made.take(is_copy)


@pytest.mark.parametrize("where", ["in SRC", "in a file", "task", "behind a gate"])
def test_fitted_again_from_the_audit_a_keeper_is_the_same_in_every_byte(where: str, tmp_path: Path) -> None:
    whole = people()
    pictures, copies = without(whole)
    sets: dict[str, EmbeddingSet] = {}
    if where in ("in a file", "behind a gate"):
        sets = {"copies": copies}
    if where == "task":
        sets = {"spare": people(20, seed=5, copied=False)}
    if where == "behind a gate":
        things = np.random.default_rng(3).standard_normal((400, DIM)) + 9 * np.eye(DIM)[-1]
        sets["gate"] = EmbeddingSet.from_arrays(things.astype(np.float32), [str(row) for row in range(400)])
    source = whole if where == "in SRC" else pictures
    measured = audit(source, eraser="keeper", keep=7, mu=0.7, parts=(), protocol=PROTOCOL, **sets)  # type: ignore[arg-type]
    erasure = measured.spaces[1].erasure
    assert erasure is not None
    assert (erasure.kept, erasure.mu) == (7, 0.7)
    measured.save(tmp_path)
    again = fit_audited(AuditResult.load(tmp_path), source, **sets)  # type: ignore[arg-type]
    again.save(tmp_path / "again.safetensors")
    assert (tmp_path / "again.safetensors").read_bytes() == measured.projections["keeper"]
    if where == "in a file":
        said = documents.repeated(measured)[0]
        assert all(f"--{option}" in said for option in ("eraser keeper", "mu 0.7", "rank 17", "copies people"))
        with pytest.raises(UnfaceError, match="the audit had --copies people"):
            fit_audited(measured, source)
        with pytest.raises(UnfaceError, match="--copies people: is not the set of the audit"):
            fit_audited(measured, source, copies=copies.take(np.arange(len(copies)) > 0))


def test_dimensions_and_mu_are_those_asked_for_also_beside_a_target() -> None:
    whole = people()
    pictures, copies = without(whole)
    nuisance = copy_covariance(np.repeat(pictures.unit().vectors, COPIED, axis=0), copies.unit().vectors)
    for mu in (0.0, 100.0):
        expected = Keeper(6, mu=mu, nuisance=nuisance).fit(pictures.unit().vectors, pictures.identities).projection_
        made = fit_certified(whole, "keeper", keep=6, mu=mu, hold_out=0).kept
        assert expected.kept is not None
        assert made == pytest.approx(expected.kept)
    assert fit_certified(whole, "keeper", rank="0.5@1e-2", keep=5).released_dim == 5
    chosen = audit(whole, eraser="keeper", rank="0.9@1e-2", mu=2.5, parts=(), protocol=PROTOCOL).spaces[1].erasure
    assert chosen is not None
    assert chosen.mu == 2.5
    assert "μ = 2.5" in chosen.rank_rule


def test_what_only_a_keeper_has_use_for_is_refused_elsewhere(tmp_path: Path) -> None:
    write_embeddings(people(), tmp_path / "people.parquet")
    cases = (
        (["--eraser", "isp", "--mu", "1"], "--mu: is for --eraser keeper, which is not fitted here; leave it out"),
        (["--keep", "5"], "--keep: is for --eraser keeper, which is not fitted here; leave it out"),
        (["--eraser", "keeper", "--keep", "5", "--rank", "9"], "--keep: --rank or --energy decides that too"),
        (["--eraser", "keeper", "--keep", "24"], "--keep 24: of 24 dimensions; keep at most 23"),
        (["--eraser", "keeper", "--mu", "inf"], "--mu inf: expected 0 or more"),
    )
    for options, sentence in cases:
        for verb, out in (("fit", "p.safetensors"), ("audit", "out")):
            done = unface(verb, tmp_path / "people.parquet", "--out", tmp_path / out, *options, "--quiet")
            assert (done.code, sentence in done.err) == (1, True), done.err
            assert not (tmp_path / out).exists()
