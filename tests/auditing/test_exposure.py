"""If these fail, the spread over people is another than that of the audit's own accepts, or a name reaches the file."""

import csv
import stat
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from benchmarks.audit_coverage import Population, gap_is_claimed

from tests.kit.results import AuditResult
from unface import Protocol, audit
from unface.auditing import Exposures
from unface.auditing.exposure.run import group_tars, worst_tenth
from unface.data import EmbeddingSet, make_identities
from unface.pairs import all_mated, cosine_space, pair_up
from unface.result.readings import EXPOSED_FILE
from unface.score import Draws, Mated, thresholds

SECRET, GROUPS = "Ada Lovelace", ("Northerner", "Southerner")


@cache
def audited() -> AuditResult:
    """Two groups; pictures of the first vary less, so that they are linked more often. One person is a group alone."""
    made = make_identities(240, 6, 16, between=1.2, seed=2)
    second = made.identities % 2 == 1
    means = np.array([made.vectors[made.identities == code].mean(axis=0) for code in range(240)])[made.identities]
    vectors = np.where(second[:, None], made.vectors, 0.6 * made.vectors + 0.4 * means)
    people = EmbeddingSet.from_arrays(
        vectors,
        [f"{SECRET} {code}" for code in made.identities],
        labels={"region": [GROUPS[int(one)] for one in second]},
        source="faces.parquet",
    )
    settings = Protocol(far=1e-2, k=("all",), probe=["cosine"], seeds=1, bootstraps=400, group="region", threads=1)
    return audit(people, eraser=(), parts=(Exposures(),), protocol=settings)


def test_people_and_groups_add_up_to_the_audits_own_accepts(tmp_path: Path) -> None:
    result = audited()
    found = Exposures.of(result)
    assert found is not None
    (one,) = found.spaces
    head = result.headline
    assert head is not None
    assert head.raw.tar is not None
    path = result.save(tmp_path)
    listed = list(csv.DictReader((tmp_path / EXPOSED_FILE).open()))
    assert len(listed) == result.roles.test
    assert sum(int(row["accepted"]) for row in listed) == head.raw.tar.numerator
    assert sum(int(row["mated_pairs"]) for row in listed) == head.raw.tar.denominator
    shares = [int(row["accepted"]) / int(row["mated_pairs"]) for row in listed]
    assert one.half_linked.numerator == sum(share >= 0.5 for share in shares)
    assert one.worst_tenth.value == pytest.approx(np.mean(sorted(shares)[-len(shares) // 10 :]), abs=0.05)
    assert one.half_linked.low <= one.half_linked.value <= one.half_linked.high
    assert sum(group.tar.numerator for group in one.groups) == head.raw.tar.numerator
    assert stat.S_IMODE((tmp_path / EXPOSED_FILE).stat().st_mode) == 0o600
    text = path.read_text()
    assert SECRET not in text
    assert not any(name in text for name in GROUPS)
    assert {row["group"] for row in listed} == set(GROUPS)


def test_the_group_that_is_linked_more_often_is_found() -> None:
    found = Exposures.of(audited())
    assert found is not None
    gap = found.spaces[0].gap
    assert gap is not None
    assert (gap.higher, gap.lower) == (1, 2)
    assert gap.low > 0
    assert any(finding.about == "groups" for finding in audited().findings)


def test_dsys_is_between_its_noise_and_one() -> None:
    found = Exposures.of(audited())
    assert found is not None
    one = found.spaces[0]
    assert one.dsys_bias < one.dsys.low < one.dsys.value < one.dsys.high < 1


def test_the_worst_tenth_counts_a_person_in_part() -> None:
    tar = np.array([0.0, 1.0, 0.5, 0.25])
    assert worst_tenth(tar[None], np.ones((1, 4))) == 1
    assert worst_tenth(np.repeat(tar, 5)[None], np.ones((1, 20))) == 1
    assert worst_tenth(np.arange(15)[None] / 14, np.ones((1, 15))) == pytest.approx((1 + 0.5 * 13 / 14) / 1.5)
    assert worst_tenth(tar[None], np.array([[2.0, 0.0, 2.0, 0.0]])) == 0.5


def test_groups_of_fewer_than_twenty_people_have_no_tar_and_no_gap() -> None:
    made = make_identities(240, 3, 8, between=1.5, seed=2)
    clubs = np.where(np.arange(240) % 3 > 0, "large", np.char.add("small ", (np.arange(240) % 4).astype(str)))
    people = EmbeddingSet.from_arrays(
        made.vectors, made.identities.astype(str), labels={"club": clubs[made.identities].tolist()}
    )
    settings = Protocol(far=0.05, k=("all",), probe=["cosine"], seeds=1, bootstraps=100, group="club", threads=1)
    result = audit(people, eraser=(), parts=(Exposures(),), protocol=settings)
    found = Exposures.of(result)
    assert found is not None
    assert found.few == 4
    (large,) = found.spaces[0].groups
    assert 20 <= large.people < result.roles.test
    assert found.spaces[0].gap is None
    assert any("fewer than 20 test people" in missing for missing in result.not_measured)


@pytest.mark.parametrize("groups", [2, 6])
def test_groups_that_do_not_differ_are_rarely_said_to(groups: int) -> None:
    """Of 100 sets of equal groups 5 may be; with 2 to 10 people in each, normal intervals say it of 7 to 27."""
    population = Population("heavy", between=0.8, fewest=2, most=6)
    assert sum(gap_is_claimed(population, groups, 1e-3, number) for number in range(100)) <= 9


def test_a_group_that_is_linked_far_more_often_is_found_among_six() -> None:
    """Power: pictures of one group of 30 lie half as far apart as those of five others."""
    found = 0
    for number in range(20):
        easy, hard = (
            Population("Gaussian", between, 3, 3).draw(count, 1, number) for between, count in ((1.6, 30), (0.8, 150))
        )
        vectors, codes = np.concatenate([easy[0], hard[0]]), np.concatenate([easy[1], hard[1] + 30])
        known, others = Population("Gaussian", 0.8, 3, 3).draw(80, 2, number)
        (limit,) = thresholds(pair_up(cosine_space(known), others), [1e-2], people=80, threads=1)
        mated = all_mated(pair_up(cosine_space(vectors), codes))
        of = np.arange(180) // 30
        _, gap = group_tars(of, Mated(mated.identities, mated.scores, 180), limit, Draws(replicates=500))
        assert gap is not None
        found += gap.low > 0 and gap.higher == 1
    assert found >= 18


def test_groups_of_people_do_not_change_what_tar_is_adjusted_for() -> None:
    """Pairs of one person always share such a group: adjusted for it, hardly a mated pair would be like impostors."""
    made = make_identities(60, 6, 8, between=1.2, seed=2)
    number = np.arange(len(made))
    people = EmbeddingSet.from_arrays(
        made.vectors,
        made.identities.astype(str),
        labels={
            "gender": ["" if row % 6 == 0 else ("f", "m")[made.identities[row] % 2] for row in number],
            "wall": np.random.default_rng(1).normal(size=(20, 4))[number // 3 % 20].astype(np.float32),
            "shoot": number // 3 % 20,
            "own": made.identities,
        },
    )

    def audited_with(**columns: str) -> AuditResult:
        settings = Protocol(far=0.05, k=("all",), probe=["cosine"], seeds=1, bootstraps=100, threads=1, **columns)  # type: ignore[arg-type]
        return audit(people, eraser=(), parts=(Exposures(),), protocol=settings)

    plain, grouped = audited_with(context="wall"), audited_with(context="wall", group="gender")
    assert plain.raw.points[0].context_adjusted is not None
    assert grouped.raw.points == plain.raw.points
    assert grouped.source.columns == {"context": "wall", "group": "gender"}
    groups = Exposures.of(grouped)
    assert groups is not None
    assert (groups.column, groups.few) == ("gender", 2)
    assert audited_with(group="gender").raw.points[0].context_adjusted is None
    for shoots in ("shoot", "own"):  # it varies within a person, or nobody shares it
        one = audited_with(group=shoots)
        assert one.raw.points[0].context_adjusted is not None
        assert one.parts["exposure"].column is None
