"""If these fail, a study of real faces runs no longer, or records other numbers than it measured."""

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray
from PIL import Image
from studies import erasure, lfw_pairs, nobody, tables
from studies.erasure import Study, rank, run, spanned, studies
from studies.frontier import PAIRS, RAW, FirstHits
from studies.frontier_record import ALBUM, FAR, PAIRS_AND_ALBUM, Space, equal_use, verdicts
from studies.inversion_table import Joined, widest
from studies.measured import Findings, read_findings, write_findings
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
from tests.attribute.averages import Averages
from tests.refusals.table import refused
from unface import AuditResult, EmbeddingSet, Protocol, audit, make_identities, write_embeddings
from unface.metrics import Replicates
from unface.models import card
from unface.probe import PROBES
from unface.result.audit import Point
from unface.result.numbers import Rate, Share
from unface.utility import copy_task

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


def recorded(
    study: object, name: str, arguments: list[object], home: Path, monkeypatch: pytest.MonkeyPatch
) -> Findings:
    """What the command keeps, in a folder of its own."""
    monkeypatch.setattr(study, "write_findings", partial(write_findings, home=home))
    monkeypatch.setattr(sys, "argv", ["study", *map(str, arguments), "--record", "here"])
    study.main()  # type: ignore[attr-defined]
    return read_findings(name, home)


def two_pictures_each(path: Path, first: int, people: int, cosine: float) -> None:
    """People along axes of their own: every mated pair has this cosine, every impostor pair 0."""
    axes: NDArray[np.float32] = np.eye(64, dtype=np.float32)
    own, other = axes[2 * first : 2 * (first + people) : 2], axes[2 * first + 1 : 2 * (first + people) : 2]
    vectors = np.concatenate([own, cosine * own + (1 - cosine**2) ** 0.5 * other])
    names = [f"p{number}" for number in range(people)] * 2
    write_embeddings(EmbeddingSet.from_arrays(vectors, names, source=path.name), path)


def test_nobody_records_quantiles_and_who_is_nearest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for encoder in nobody.DRAWN:
        for name, first, cosine in (("nobody", 0, 0.6), ("celeba20", 7, 0.8), ("celeba5", 16, 0.8), ("lfw", 24, 0.8)):
            two_pictures_each(tmp_path / f"{encoder}_{name}.parquet", first, 8, cosine)
    found = recorded(nobody, "nobody", [tmp_path, tmp_path], tmp_path, monkeypatch)
    scores = {(row[0], row[1], row[2]): row[3:] for row in found.tables["scores"].rows}
    assert len(scores) == 18
    assert scores["sscd-int8", "nobody", "8 mated"] == pytest.approx([0.6] * 6 + [1.0])
    assert scores["sface", "LFW", "8 mated"] == pytest.approx([0.8] * 6 + [1.0])
    assert scores["sface", "nobody", "112 impostor"] == [*[pytest.approx(0.0)] * 6, None]
    nearest = {(row[0], row[1]): row for row in found.tables["nearest"].rows}
    at = list(found.tables["nearest"].columns).index("nobody")
    # The last person of "nobody" is the first of celeba20; nobody else shares an axis.
    assert nearest["sface", "CelebA (20 each)"][at][-1] == pytest.approx(1.0)  # type: ignore[index]
    assert nearest["sface", "LFW"][at] == pytest.approx([0.0] * 3)
    assert nearest["arcface-mbf", "all"][2] == 48


def test_lfw_pairs_counts_a_missing_picture_as_a_mistake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    for person in "abcd":
        coarse = Image.fromarray(random.integers(0, 256, (8, 8, 3), dtype=np.uint8))
        for number in (1, 2):
            picture = tmp_path / "pictures" / person / f"{person}_{number:04d}.png"
            picture.parent.mkdir(parents=True, exist_ok=True)
            coarse.resize((112, 112), Image.Resampling.NEAREST).save(picture)
    lists = ["2\t2", "a\t1\t2", "b\t1\t2", "a\t1\tb\t1", "c\t1\td\t1", "c\t1\t2", "d\t1\t3", "a\t2\tc\t2", "b\t2\td\t2"]
    (tmp_path / "pairs.txt").write_text("\n".join(lists) + "\n", encoding="utf-8")
    monkeypatch.setattr(lfw_pairs, "load_encoder", lambda name, **_: Averages(card(name), []))
    arguments = [tmp_path / "pictures", tmp_path / "pairs.txt", "--encoder", "arcface-mbf"]
    found = recorded(lfw_pairs, "lfw_pairs", arguments, tmp_path, monkeypatch)
    # The first fold is right in all four pairs, the second in three: d has no third picture.
    assert found.tables["accuracy"].rows == [["arcface-mbf", 87.5, 12.5, 99.53]]


def space(name: str, tar: float, noise: float = 0.0) -> Space:
    """A finished cell that leaves the same to pairs and albums, with replicates around it."""
    sizes = (PAIRS, ALBUM)
    draws = tar + noise * np.linspace(-1, 1, 200)
    rows = [{"size": size, "far": FAR, "tar": [tar, tar, tar]} for size in sizes]
    result: dict[str, Any] = {"space": name, "TAR": rows, "uses": [], "level": 0.95}
    return Space(result, {(size, FAR): Replicates(draws, False) for size in sizes})


def test_a_keeper_is_compared_halfway_between_the_strengths_that_find_more_and_fewer_copies() -> None:
    spaces = [space(RAW, 0.2), space("isp 1", 0.1), space("isp 2", 0.06), space("isp 3", 0.12)]
    keeper = space("keeper 8, μ 1", 0.05, noise=0.01)
    # isp 3 finds fewer copies than isp 2 and leaves more: nobody would choose it
    found = {RAW: 1.0, "isp 1": 0.95, "isp 2": 0.85, "isp 3": 0.849, keeper.name: 0.9}
    compared = equal_use([*spaces, keeper], found, PAIRS_AND_ALBUM)
    ((name, rival, share, between, pairs, albums),) = compared.rows
    assert (name, rival, share, between) == (keeper.name, "isp", 0.9, "isp 1 and isp 2")
    assert isinstance(pairs, list)
    assert pairs[0] == pytest.approx(0.05 - (0.1 + 0.06) / 2)
    assert albums == pairs
    assert verdicts(compared, 4)[0] == "1 of 1"


def test_a_rival_that_erasure_helps_is_not_compared_by_its_raw_vectors() -> None:
    """Raw vectors that find fewer copies than an erased space and leave more are no strength to interpolate with."""
    spaces = [space(RAW, 0.2), space("isp 1", 0.1), space("isp 2", 0.05), space("keeper 8, μ 1", 0.04)]
    found = {RAW: 0.2, "isp 1": 0.3, "isp 2": 0.1, "keeper 8, μ 1": 0.25}
    (row,) = equal_use(spaces, found, PAIRS_AND_ALBUM).rows
    assert row[3] == "isp 1 and isp 2"


def test_where_no_rival_finds_as_many_copies_nothing_is_compared() -> None:
    spaces = [space(RAW, 0.2), space("isp 1", 0.1), space("keeper 8, μ 1", 0.04)]
    compared = equal_use(spaces, {RAW: 0.5, "isp 1": 0.4, "keeper 8, μ 1": 0.6}, PAIRS_AND_ALBUM)
    assert compared.rows == [["keeper 8, μ 1", "isp", 0.6, "none finds as many", None, None]]
    assert verdicts(compared, 4)[0] == "none finds as many"


def test_first_hits_are_the_recall_at_one_of_an_audit() -> None:
    draw = np.random.default_rng(3)
    pictures = draw.normal(size=(60, 8)).astype(np.float32)
    copies = pictures[:40] + draw.normal(scale=0.9, size=(40, 8)).astype(np.float32)
    task = copy_task(
        EmbeddingSet.from_arrays(
            np.concatenate([pictures, copies]),
            [str(row % 60) for row in range(100)],
            ids=[f"{row:03}" for row in range(100)],
            labels={"copy_of": [""] * 60 + [f"{row:03}" for row in range(40)]},
        )
    )
    whole = task.outcomes(task.vectors)[0]
    (first,) = FirstHits(task).outcomes(task.vectors)
    assert 0 < first.per_query.mean() < 1
    assert (first.measure, first.on) == (whole.measure, whole.on)
    np.testing.assert_array_equal(first.per_query, whole.per_query)
    np.testing.assert_array_equal(first.groups, whole.groups)
