"""If these fail, the study erases more directions than an encoder has, or its tables say of audits what they do not."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from studies import erasure, tables
from studies.erasure import Study, rank, run, spanned, studies
from studies.inversion_table import Joined, widest
from studies.record import record_of
from studies.tables import (
    chosen,
    compared,
    differences,
    left_out_overview,
    left_out_table,
    plain_cell,
    removed,
    removed_adjusted,
    same_shoot,
    unbroken,
    weaker,
    within_and_elsewhere,
    worst_table,
)

import unface
from tests.refusals.table import refused
from unface import AuditResult, EmbeddingSet, Protocol, audit, make_identities
from unface.probe import PROBES
from unface.result.audit import Point
from unface.result.numbers import Rate, Share

PEOPLE = make_identities(200, 8, 64, seed=3)
STUDY = Study("any", "celeba20", "apart")


def thin(directions: int) -> EmbeddingSet:
    """Sixty-four numbers that vary in so many directions, and hardly in the others."""
    vectors = PEOPLE.vectors * np.where(np.arange(64) < directions, 1.0, 1e-5).astype(np.float32)
    return EmbeddingSet.from_arrays(vectors, np.array(PEOPLE.names)[PEOPLE.identities])


@pytest.mark.parametrize(("directions", "removed"), [(64, 24), (25, 24), (24, 9), (16, 6)])
def test_three_eighths_go_of_the_dimensions_or_if_those_are_all_of_what_vectors_vary_in(
    directions: int, removed: int
) -> None:
    assert spanned(thin(directions)) == directions
    assert rank(thin(directions), None, STUDY) == removed


def test_the_usual_rank_is_asked_for_where_the_remainder_itself_is_measured() -> None:
    assert rank(thin(16), None, Study("any", "celeba20", "beyond")) == 24


@cache
def audited(seed: int = 1) -> AuditResult:
    """Of people who were photographed twice at one place, and then elsewhere; another seed, other people and rank."""
    people = make_identities(60, 5, 16, rank=6, between=1.6, seed=seed)
    places = np.random.default_rng(0).normal(size=(len(people.vectors), 8)).astype(np.float32)
    places[1::5] = places[::5]
    return audit(
        replace(people, labels={"context": places}),
        far=(2e-2, 1e-2),
        k=(1, 4),
        eraser=("isp", "leace"),
        rank=3 + seed,
        protocol=Protocol(context="context", probe=("cosine", "lda"), seeds=1, bootstraps=50),
    )


def worst(result: AuditResult, space: int, far: float = 1e-2, k: int = 4) -> Point:
    (point,) = (p for p in result.spaces[space].points if p.worst and (p.k, p.far) == (k, far))
    return point


def test_tables_say_what_is_left_without_pairs_of_one_place() -> None:
    record = record_of("sscd-int8_lfw_apart", audited())
    wanted, mated = [], []
    for space in (0, 1):
        point = worst(audited(), space)
        assert point.tar is not None
        assert point.context_adjusted is not None
        without = [left.tar for left in point.context_adjusted.without_suspects[::-1]]
        tars: list[Rate | Share] = [point.tar, *without]
        wanted += [f"~{100 * tar.numerator / tar.denominator:.1f}" for tar in tars]
        mated += [tar.denominator for tar in tars]
    assert point.resolution == "coarse"
    assert mated[0] > mated[1] > mated[3]
    shares = ", ".join(f"{100 * pairs / mated[0]:.0f}" for pairs in mated[1:4])
    row = list(left_out_overview({record.audit: record}, 1e-2))[-1]
    assert row == f"| sscd-int8, lfw, within, roles apart | {' | '.join(wanted)} | {shares} |"
    (line,) = (line for line in left_out_table(record) if line.startswith("| raw | 4 |"))
    assert line.endswith(f"| ~{', '.join(cell[1:] for cell in wanted[1:4])} |")


def test_a_table_of_three_cuts_refuses_other_numbers_of_them() -> None:
    record = record_of("sscd-int8_lfw_apart", audited())
    found = record.space("raw").left_out
    cut = found[: [(left.k, left.far) for left in found].index((4, 1e-2))] + found[-2:]
    raw = record.space("raw").model_copy(update={"left_out": cut})
    short = record.model_copy(update={"spaces": [raw, *record.spaces[1:]]})
    assert [(left.k, left.far) for left in cut].count((4, 1e-2)) == 2
    with refused("plug-in", "sscd-int8_lfw_apart", "with 2"):
        list(left_out_overview({short.audit: short}, 1e-2))


def test_worst_cases_are_counted_to_their_probe_where_the_panel_was_whole() -> None:
    results = {"sface_lfw_apart": audited(), "sface_lfw_on-celeba5": audited(2), "sface_lfw_beyond": audited()}
    records = {name: record_of(name, result) for name, result in results.items()}
    assert chosen(records, 1e-2) == "0"
    whole = {name: one.model_copy(update={"probes": [*PROBES]}) for name, one in records.items()}
    places = [(audited(), 0), (audited(), 1), (audited(), 2), (audited(2), 1), (audited(2), 2)]
    of_audits = [worst(result, space).probe for result, space in places]
    assert 0 < of_audits.count("lda") < 5
    found = [chosen(whole, 1e-2, *probes) for probes in ((), ("cosine",), ("lda",), ("mlp",), ("cosine", "lda"))]
    assert found == ["5", str(of_audits.count("cosine")), str(of_audits.count("lda")), "0", "5"]
    tars = [
        {p.probe: p.tar.value for p in result.spaces[space].points if p.tar and (p.k, p.far) == (4, 1e-2)}
        for result, space in places
    ]
    assert weaker(whole, 1e-2, "lda", "cosine") == str(sum(tar["lda"] < tar["cosine"] for tar in tars))
    assert weaker(whole, 1e-2, "cosine", "lda") == str(sum(tar["cosine"] < tar["lda"] for tar in tars))


def test_comparisons_are_counted_in_audits_of_any_name_given() -> None:
    records = {name: record_of(name, audited()) for name in ("sface_lfw_apart", "facenet_lfw_apart", "dlib_lfw_apart")}
    names = ((), ("s*",), ("s*", "d*"))
    assert [compared(records, "isp", "pca", 1e-2, *some) for some in names] == ["3", "1", "2"]
    with refused("plug-in", "docs/measured/erasure"):
        compared(records, "isp", "pca", 1e-2, "s*", "x*")


def test_encoders_stand_side_by_side_and_what_was_not_run_is_left_open() -> None:
    results = {"apart": audited(), "shared": audited(2), "on-celeba5": audited(3)}
    records = {f"dlib_lfw_{way}": record_of(f"dlib_lfw_{way}", result) for way, result in results.items()}
    shown = [("apart", 0), ("apart", 1), ("shared", 0), ("shared", 1), *(("on-celeba5", space) for space in (1, 3, 4))]
    assert [space.name for space in audited().spaces] == ["raw", "isp", "leace", "random", "pca"]
    names = ("raw", "isp", "leace", "random", "pca")
    wanted = [plain_cell(records[f"dlib_lfw_{way}"].worst(names[space], 1e-2)) for way, space in shown]
    tars = [worst(results[way], space).tar for way, space in shown]
    lines = {line.split(" | ")[0]: line for line in within_and_elsewhere(records, "lfw", 1e-2)}
    assert lines["| dlib"].removesuffix(" |").split(" | ")[2:] == wanted
    values = [100 * tar.value for tar in tars if tar is not None]
    assert [cell.split(" ")[0] for cell in wanted] == [f"~{value:.{1 if value >= 1 else 2}f}" for value in values]
    assert lines["| dlib"].startswith(f"| dlib | {unbroken('4, 5, 6')} | ")
    assert lines["| sface"] == f"| sface | {unbroken('–, –, –')} | – | – | – | – | – | – | – |"
    assert list(within_and_elsewhere(records, "lfw", 1e-5))[-2].endswith(" | – | – | – | – | – | – | – |")


def test_a_table_is_of_the_audits_whose_names_match() -> None:
    records = {name: record_of(name, audited()) for name in ("sface_lfw_apart", "dlib_celeba5_apart")}
    assert len(list(worst_table(records, 1e-2))) == 4
    assert [line.split(",")[0] for line in worst_table(records, 1e-2, "*_celeba5_*")][2:] == ["| dlib"]


def test_what_is_left_when_all_is_gone_is_no_comparison_of_erasers() -> None:
    records = {name: record_of(name, audited()) for name in ("facenet_lfw_apart", "facenet_lfw_beyond")}
    assert len(differences(records, "isp", "pca", 1e-2)) == 1


def test_the_difference_that_is_kept_is_that_of_the_k_shown() -> None:
    record = record_of("dlib_lfw_apart", audited())
    (wanted,) = (one for one in audited().spaces[1].changes if (one.against, one.k, one.far) == ("pca", 4, 1e-2))
    (found,) = differences({record.audit: record}, "isp", "pca", 1e-2)
    assert found.points.value == pytest.approx(wanted.value, rel=1e-5)


def test_what_is_left_when_all_is_gone_is_asked_for_and_not_run_where_vectors_span_more(tmp_path: Path) -> None:
    table = pa.table(
        {
            "id": [str(row) for row in range(len(PEOPLE.vectors))],
            "identity": [PEOPLE.names[one] for one in PEOPLE.identities],
            "vector": list(PEOPLE.vectors),
        }
    )
    pq.write_table(table, tmp_path / "any_celeba20.parquet")
    ways = [study.way for study in studies(tmp_path, ["any"])]
    assert ways == ["apart", "beyond", "shared"]
    said = run(Study("any", "celeba20", "beyond"), tmp_path, tmp_path / "out", "cpu", False)
    assert said == "any_celeba20_beyond: vectors span more than 24 dimensions"
    assert not (tmp_path / "out").exists()


def test_every_way_of_fitting_asks_for_attackers_that_its_variant_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A study that is not run can ask for what an audit no longer takes, and nobody notices."""
    unface.write_embeddings(PEOPLE, tmp_path / "any_celeba20.parquet")
    asked: dict[str, Protocol] = {}

    def asks(*_: object, protocol: Protocol, **__: object) -> AuditResult:
        asked[protocol.variant] = protocol
        return audited()

    monkeypatch.setattr("studies.erasure.audit", asks)
    for way in ("apart", "shared"):
        run(Study("any", "celeba20", way), tmp_path, tmp_path / "out", "cpu", False)
    assert [probe.name for probe in asked["unface"].probes()] == ["cosine", "ridge", "lda", "plda"]
    assert [probe.name for probe in asked["paper"].probes()] == ["cosine", "ridge", "lda", "plda", "mlp"]


def test_shares_that_are_gone_are_those_of_the_audit() -> None:
    records = {"dlib_lfw_apart": record_of("dlib_lfw_apart", audited())}
    (raw, raw_adjusted), (isp, isp_adjusted) = (
        (point.tar.value, point.context_adjusted.value)
        for point in (worst(audited(), 0), worst(audited(), 1))
        if point.tar and point.context_adjusted and point.context_adjusted.value is not None
    )
    words = ("dlib_lfw_apart", "isp", 1e-2)
    assert removed(records, *words) == f"{100 * (raw - isp) / raw:.0f}"
    assert (
        removed_adjusted(records, *words) == f"{100 * (raw_adjusted - (isp_adjusted or 0)) / (raw_adjusted or 1):.0f}"
    )
    assert same_shoot(records, *words) == f"{100 * (isp - (isp_adjusted or 0)) / isp:.0f}"


def test_a_target_of_two_blocks_is_counted_once() -> None:
    def row(start: int, targets: int, space: str = "raw") -> dict[str, object]:
        cell = {"attack": "alsuv", "space": space, "targets": targets}
        return {"people": "photographs", "encoder": "sscd-int8", "start": start, "cell": cell}

    rows = [row(0, 100), row(0, 200), row(200, 100), row(100, 100), row(0, 100, "isp")]
    kept = [(one["cell"]["space"], one["start"], one["cell"]["targets"]) for one in widest(rows)]
    assert sorted(kept) == [("isp", 0, 100), ("raw", 0, 200), ("raw", 200, 100)]


def test_cells_of_different_lengths_are_compared_on_the_targets_that_both_have() -> None:
    def block(start: int, same: list[int]) -> dict[str, object]:
        of = [1] * len(same)
        tally = {"same": [same], "same_of": of, "other": [same], "other_of": of, "stranger": [same], "stranger_of": of}
        return {
            "start": start,
            "cell": {"targets": len(same)},
            "tally": {"fars": [1e-3], "by": {"sface": tally}},
        }

    raw = Joined("photographs", "sscd-int8", "alsuv", "raw", [block(0, [1, 0, 1, 1]), block(4, [1])])
    erased = Joined("photographs", "sscd-int8", "alsuv", "isp", [block(0, [0, 1]), block(3, [0])])
    theirs, mine = erased.common(raw)
    assert theirs.by["sface"].same.tolist() == [[1, 0, 1]]
    assert mine.by["sface"].same.tolist() == [[0, 1, 0]]
    assert theirs.by["sface"].same_of.tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("main", "said"),
    [
        (erasure.main, "nothing to audit in it; give a folder of <encoder>_<set>.parquet, where a set is lfw"),
        (tables.main, "no audit in it; give what studies.erasure wrote"),
    ],
)
def test_a_folder_without_anything_to_study_is_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, main: Callable[[], None], said: str
) -> None:
    (tmp_path / "notes.txt").touch()
    monkeypatch.setattr("sys.argv", ["study", str(tmp_path), str(tmp_path / "out"), "--sets", "lfw"])
    with pytest.raises(SystemExit) as caught:
        main()
    assert str(caught.value) == f"{tmp_path}: {said}"
    assert not (tmp_path / "out").exists()
