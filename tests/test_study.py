"""If these fail, the study erases more directions than an encoder has, or its tables say of audits what they do not."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from studies.erasure import Study, rank, spanned
from studies.prose import compared, speaks
from studies.record import record_of
from studies.summary import differences, left_out_cases, within_and_elsewhere, worst_case, worst_cases
from studies.tables import left_out_table, plain_cell, unbroken

from unface import AuditResult, EmbeddingSet, audit, make_identities

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
def audited() -> AuditResult:
    """Of people who were photographed twice at one place, and then elsewhere."""
    people = make_identities(60, 6, 16, rank=6, seed=1)
    places = np.random.default_rng(0).normal(size=(len(people.vectors), 8)).astype(np.float32)
    places[1::6] = places[::6]
    return audit(
        replace(people, labels={"context": places}),
        context="context",
        erasers=("isp", "leace"),
        rank=4,
        fars=(1e-2,),
        ks=(1,),
        probes=("cosine",),
        seeds=1,
        bootstraps=50,
    )


def test_tables_say_what_is_left_without_pairs_of_one_place() -> None:
    record = record_of("sscd-int8_lfw_apart", audited())
    wanted, mated = [], []
    for space in audited().spaces[:2]:
        (point,) = space.points
        assert point.tar is not None
        assert point.context_adjusted is not None
        tars = [point.tar, *(left.tar for left in point.context_adjusted.without_suspects[::-1])]
        wanted += [f"{100 * tar.numerator / tar.denominator:.1f}" for tar in tars]
        mated += [tar.denominator for tar in tars]
    assert mated[0] > mated[1] > mated[3]
    shares = ", ".join(f"{100 * pairs / mated[0]:.0f}" for pairs in mated[1:4])
    row = list(left_out_cases({record.audit: record}, "1e-2"))[-1]
    assert row == f"| sscd-int8, lfw, within, roles apart | {' | '.join(wanted)} | {shares} |"
    assert f"| raw | 1 | {', '.join(wanted[1:4])} |" in list(left_out_table(record))


def test_every_worst_case_is_counted_to_its_probe() -> None:
    records = {name: record_of(name, audited()) for name in ("sface_lfw_apart", "facenet_lfw_apart")}
    counts = [speaks(records, "1e-2", *probes) for probes in ((), ("cosine",), ("mlp",), ("cosine", "mlp"))]
    assert counts == ["6", "6", "0", "6"]
    assert speaks(records, "1e-5") == "0"


def test_comparisons_are_counted_in_audits_of_any_name_given() -> None:
    records = {name: record_of(name, audited()) for name in ("sface_lfw_apart", "facenet_lfw_apart", "dlib_lfw_apart")}
    names = ((), ("s*",), ("s*", "d*"), ("none",))
    assert [compared(records, "isp", "pca", "1e-2", *some) for some in names] == ["3", "1", "2", "0"]


def test_encoders_stand_side_by_side_and_what_was_not_run_is_left_open() -> None:
    ways = ("apart", "shared")
    records = {name: record_of(name, audited()) for name in (f"dlib_lfw_{way}" for way in ways)}
    lines = {line.split(" | ")[0]: line for line in within_and_elsewhere(records, "lfw", "1e-2")}
    raw, isp = (plain_cell(worst_case(records["dlib_lfw_apart"], space, 1e-2)) for space in ("raw", "isp"))
    assert lines["| dlib"] == f"| dlib | {unbroken('4, 4, –')} | {raw} | {isp} | {isp} | – | – | – | – |"
    assert lines["| sface"] == f"| sface | {unbroken('–, –, –')} | – | – | – | – | – | – | – |"


def test_a_table_is_of_the_audits_whose_names_match() -> None:
    records = {name: record_of(name, audited()) for name in ("sface_lfw_apart", "dlib_celeba5_apart")}
    assert len(list(worst_cases(records, "1e-2"))) == 4
    assert [line.split(",")[0] for line in worst_cases(records, "1e-2", "*_celeba5_*")][2:] == ["| dlib"]


def test_what_is_left_when_all_is_gone_is_no_comparison_of_erasers() -> None:
    records = {name: record_of(name, audited()) for name in ("facenet_lfw_apart", "facenet_lfw_beyond")}
    assert len(differences(records, "isp", "pca", 1e-2)) == 1
