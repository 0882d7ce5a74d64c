"""The study of systems behind front ends: its unit is worked by hand, and accuracy comes before any attack."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from studies.ppfr import (
    JUDGES,
    Score,
    agreement,
    append,
    best_split,
    joined,
    made_tables,
    mine,
    pairs_of,
    read_cells,
    require_accuracy,
    summed,
)

from tests.refusals.table import refused


def test_the_threshold_of_psi_is_where_tar_less_far_is_largest() -> None:
    """Accepting 0.9, 0.8 and 0.6 keeps 3 of 4 mated pairs for 0 of 3 impostors; every other cut is worse."""
    mated, impostor = np.array([0.9, 0.8, 0.6, 0.1], np.float32), np.array([0.5, 0.2, 0.0], np.float32)
    threshold, rejected = best_split(mated, impostor)
    assert threshold == pytest.approx(0.6)
    assert rejected == 1.0
    threshold, rejected = best_split(np.array([0.9, 0.3], np.float32), np.array([0.5, 0.2, 0.1, 0.0], np.float32))
    assert threshold == pytest.approx(0.3)
    assert rejected == 0.75


def test_psi_is_half_accepted_and_half_rejected_and_never_falls_below_its_floor() -> None:
    nothing = Score(np.array([0]), np.array([0]), (10, 20), 0.98)
    assert summed([nothing]) == [[49.0, 49.0]], "an attack that never succeeds still scores a half"
    some = Score(np.array([5]), np.array([20]), (10, 20), 1.0)
    assert summed([some, some]) == [[75.0, 100.0]]


def test_a_system_is_attacked_only_after_it_was_shown_to_recognise_people(tmp_path: Path) -> None:
    system = "dctdp/as-attacked/sface"
    with refused("plug-in", "dctdp/as-attacked/sface"):
        require_accuracy(tmp_path, system)
    row = {"verb": "accuracy", "system": system, "folds": 10, "error": 0.001}
    append(tmp_path, {**row, "mean": 0.95})
    with refused("protection", "dctdp/as-attacked/sface", "95.0", "below 97.0"):
        require_accuracy(tmp_path, system)
    append(tmp_path, {**row, "mean": 0.99})
    assert require_accuracy(tmp_path, system) == 0.99


def test_of_each_search_the_newest_row_is_shown_at_some_numbers_of_questions_and_at_the_last() -> None:
    row = {"verb": "map2v", "system": "s", "attack": "published", "people": 2, "queries": [50, 500, 517], "chance": 0.0}
    shares = [[0.0, 0.0, 9.0], [5.0, 1.0, 9.0], [8.0, 2.0, 19.0]]
    row |= {"same": shares, "other": shares, "privacy": {"sface": [[49.0, 50.0]] * 3}}
    row |= {"hits": [1, 1], "of": [6, 6]}
    traits = {"male": [[80.0, 60.0, 90.0], 55.0, 0.01, 98.0]}
    rows = [{**row, "score": [0.0, 0.1, one], "traits": traits} for one in (0.2, 0.3)]
    tables = made_tables(rows)
    assert tables["map2v"].rows == [
        ["s", "published", 2, 500, 0.1, shares[1], shares[1], 0.0],
        ["s", "published", 2, 517, 0.3, shares[2], shares[2], 0.0],
    ]
    assert tables["traits"].rows == [["s", "published", 2, "male", *traits["male"]]]


def test_pictures_on_the_person_are_accepted_and_those_of_strangers_are_not() -> None:
    """Two people of three pictures: what an attack found is the first person's second picture, then her first."""
    accepted = np.zeros((2, 2, 6), bool)
    accepted[0, 0, 1] = accepted[0, 1, 0] = accepted[1, :, 2] = True
    first, rest = mine(accepted, [np.array([0, 1, 2]), np.array([3, 4, 5])])
    assert first.tolist() == [[0, 1], [0, 0]]
    assert rest.tolist() == [[1, 0], [0, 0]]
    mated, impostor = pairs_of(np.eye(3, dtype=np.float32), np.array([0, 0, 1]))
    assert (len(mated), len(impostor)) == (1, 2)


def test_attributes_that_follow_the_person_beat_chance_and_a_constant_does_not() -> None:
    """Half of 20 people are 0, half 1: a permuted truth agrees with either half the time."""
    truth = np.repeat([0.0, 1.0], 10)
    share, chance, p, real = agreement(truth, truth, 1 - truth, 0.5)
    assert (share[0], real) == (100.0, 0.0)
    assert chance == pytest.approx(50, abs=1)
    assert p < 1e-3
    share, chance, p, _ = agreement(np.ones(20), truth, truth, 0.5)
    assert (share[0], chance, p) == (50.0, 50.0, 1.0)


def cell(path: Path, people: list[int], queries: list[int], *, whole: bool) -> None:
    """The vector of a person after n questions is [person, n]."""
    vectors = np.array([[[person, n] for n in queries] for person in people], np.float16)
    meta = {"system": "s", "search": "published", "people": people, "queries": queries, "whole": whole}
    arrays: dict[str, Any] = {"score": vectors[..., 1], "server": vectors, **dict.fromkeys(JUDGES, vectors)}
    arrays |= {"meta": np.array(json.dumps(meta)), "last": np.zeros((len(people), 1, 1, 3), np.uint8)}
    path.parent.mkdir(exist_ok=True)
    np.savez(path, **arrays)


def test_cells_join_people_where_all_have_asked_as_often_and_a_cut_one_is_left_out(tmp_path: Path) -> None:
    cell(tmp_path / "climb" / "0.npz", [0, 1], [20, 200, 500], whole=True)
    cell(tmp_path / "climb" / "20.npz", [20, 21], [200, 500], whole=True)
    cell(tmp_path / "climb" / "40.npz", [40, 41], [200], whole=False)
    (parts,) = read_cells(tmp_path).values()
    people, stages, arrays = joined(parts, 60)
    assert (people, stages) == ([0, 1, 20, 21], [200, 500])
    assert arrays["sface"].dtype == np.float32
    assert arrays["sface"][:, :, 0].tolist() == [[0, 0], [1, 1], [20, 20], [21, 21]]
    assert arrays["sface"][2].tolist() == [[20, 200], [20, 500]]
    assert joined(parts, 20)[0] == [0, 1]


def test_attacks_stand_side_by_side_after_equal_numbers_of_questions() -> None:
    def row(attack: str, people: int, shares: dict[int, float], verb: str = "map2v") -> dict[str, object]:
        other = [[share, 0.0, 100.0] for share in shares.values()]
        few = {"score": [0.5] * len(other), "chance": 0.1, "privacy": {}, "traits": {}, "ceiling": [9.0]}
        few |= {"hits": [round(other[-1][0])] * people, "of": [100] * people}
        return {"verb": verb, "system": "s", "attack": attack, "people": people, "queries": list(shares)} | {
            "same": other,
            "other": other,
            **few,
        }

    rows = [
        row("published", 60, {200: 3.0, 900: 9.0, 7300: 40.0}),
        row("published", 20, {200: 4.0, 7300: 50.0}),
        row("improved", 20, {200: 5.0, 1900: 49.0, 3600: 51.0, 6600: 60.0}),
        row("without W+", 20, {7300: 7.0}),
        row("scores, generated", 60, {200: 30.0, 7300: 80.0}, "generated"),
    ]
    tables = made_tables(rows)
    nothing = None
    budgets: list[Any] = list(tables["budgets"].rows)
    assert [[*one[1:3], *(share and share[0] for share in one[3:])] for one in budgets] == [
        ["scores, generated", 60, 30.0, nothing, nothing, nothing, nothing, 80.0],
        ["published", 60, 3.0, nothing, 9.0, nothing, nothing, 40.0],
        ["improved", 20, 5.0, nothing, nothing, 49.0, 51.0, 60.0],
    ]
    assert tables["efficiency"].rows == [["s", 20, [50.0, 0.0, 100.0], 7300, 3600]], "the same people are compared"
    assert [one[1] for one in tables["searches"].rows] == ["published", "without W+", "improved"]
    gains = {one[1]: one[3] for one in tables["paired"].rows}
    assert gains == {"without W+": [-43.0] * 3, "improved": [10.0] * 3}, "everybody loses or gains as much: no width"
    assert {one[2] for one in tables["map2v"].rows if one[1] == "published"} == {60}


def test_linkage_has_a_column_for_each_system_that_is_shown_the_drawn_faces() -> None:
    share = [50.0, 40.0, 60.0]
    climb = {"verb": "map2v", "system": "a", "attack": "published", "people": 60, "queries": [200, 7300], "chance": 0.0}
    climb |= {"score": [0.1, 0.5], "same": [share] * 2, "other": [share] * 2, "traits": {}, "judges": ["sface"]}
    climb |= {"privacy": {"sface": [[50.0, 50.0], [90.0, 80.0]]}, "hits": [3] * 60, "of": [6] * 60}
    link = {"verb": "linked", "system": "a", "attack": "published", "people": 60, "validated": "b"}
    old = {**link, "privacy": [1.0, 1.0], "same": share, "other": share}
    new = {**link, "privacy": [95.0, 85.0], "same": share, "other": [70.0, 60.0, 80.0]}
    fewer = {**new, "people": 20, "privacy": [2.0, 2.0]}
    tables = made_tables([climb, old, new, fewer])
    assert list(tables["linked"].columns)[-2:] == ["b", "sface"]
    assert tables["linked"].rows == [["a", "published", 60, 7300, [95.0, 85.0], [90.0, 80.0]]]
    assert tables["linked_success"].rows == [["a", "published", 60, 7300, [70.0, 60.0, 80.0]]]
