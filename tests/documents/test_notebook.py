"""If these fail, a notebook shows a wall of text, another number than the file's, or loses a result on its way."""

import copy
import pickle
from typing import Any

import pytest

from tests.kit.documents import card
from tests.kit.results import KINDS, Kind, album, albums, full_audit, result, validation, with_parts

READ = [kind for kind in KINDS if kind != "attribution"]
OTHERS = [kind for kind in READ if kind not in ("audit", "validation")]


def made(kind: Kind) -> Any:
    return result(kind)


@pytest.mark.parametrize("kind", READ)
def test_a_card_takes_a_few_kilobytes_and_loads_nothing(kind: Kind) -> None:
    html = card(made(kind))
    assert len(html) < 8_000
    assert not any(word in html for word in ("http", "<script", "@import", "url("))
    assert len(repr(made(kind))) < 1_000


@pytest.mark.parametrize(("kind", "bars"), [("audit", 4), ("validation", 3)])
def test_a_card_has_a_bar_for_each_space_or_for_each_attack_and_the_ceiling(kind: Kind, bars: int) -> None:
    assert card(made(kind)).count("<svg") == bars


@pytest.mark.parametrize("kind", OTHERS)
def test_card_frame_and_chart_hold_every_share_of_a_result(kind: Kind) -> None:
    readings = [one for one in made(kind).readings() if one.found is not None]
    shares = [one.found.value for one in readings if one.is_share]
    assert card(made(kind)).count("<svg") == len(shares) > 0
    assert [*made(kind).to_frame()["value"]] == [one.found.value for one in readings]
    (rows,) = made(kind).plot().to_dict()["datasets"].values()
    assert [row["share"] for row in rows] == shares


@pytest.mark.parametrize("kind", READ)
def test_results_can_be_copied_and_pickled(kind: Kind) -> None:
    one = made(kind)
    for again in (copy.copy(one), copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
        assert again == one
        assert again.file_text() == one.file_text()


def _rows(kind: Kind) -> list[dict[str, object]]:
    spec = made(kind).plot().to_dict()
    rows: list[dict[str, object]] = spec["datasets"][spec["data"]["name"]]
    return rows


def test_charts_hold_the_worst_attacker_of_each_space_and_every_attack() -> None:
    rows = _rows("audit")
    assert {(row["space"], row["k"], row["FAR"]) for row in rows} == {
        (space.name, one.k, f"1e-{3 if one.far == 1e-3 else 4}")
        for space in full_audit().spaces
        for one in space.points
    }
    assert {row["attacker"] for row in rows} == {"lda"}
    rows = _rows("validation")
    assert len(rows) == 2 * 2 * 2
    assert {"attack": "scores", "questions": 100, "FAR": "0.01", "recovered": 0.6}.items() <= rows[1].items()


def test_frames_are_tidy_and_albums_are_rows_of_their_own() -> None:
    frame = with_parts(full_audit(), albums=albums(album(0.2, (2, 3), "isp"))).to_frame()
    keys = ["space", "probe", "k", "album", "against", "far"]
    assert not frame.duplicated(keys).any()
    (row,) = frame[frame.album > 1].to_dict("records")
    assert [row[key] for key in keys] == ["isp", "lda", 4, 2, 3, 1e-4]
    found = validation().to_frame()
    assert not found.duplicated(["attack", "queries", "far", "judge", "pictures"]).any()
    assert len(found) == 8
