"""The FaceMAE study: rows that several calls share, and pages from rows alone."""

import json
from pathlib import Path
from typing import Any

import pytest
from studies.facemae import CURVE, FIRST, Row, claimed, joined, ladder, not_reached, result_of, tables
from studies.measured import Cell, Findings, Table

from unface.result.file import Clock

FOLDS = 10


@pytest.fixture
def keep(tmp_path: Path) -> Path:
    for folder in ("rows", "locks"):
        (tmp_path / folder).mkdir()
    settings = {"preset": "small", "attacked": 4}
    facts = {"settings": settings, "pictures": {"release": 20}, "released_people": 4, "attacked_pictures": 20,
             "sha256": "0" * 64}  # fmt: skip
    (tmp_path / "rows" / "facts.json").write_text(json.dumps(facts), encoding="utf-8")
    return tmp_path


def write(keep: Path, row: Row, found: dict[str, Any]) -> None:
    (keep / "rows" / f"{row.name}.json").write_text(json.dumps({**found, "seconds": 1.0}), encoding="utf-8")


def learned(keep: Path, row: Row, accuracy: float) -> None:
    """Folds differ by as much as they always do, whatever was learned from."""
    folds = [accuracy + 0.01 * (fold % 2) for fold in range(FOLDS)]
    pairs = {"name": "lfw", "pairs": 6_000, "seeds": [row.seed], "by_seed": [folds]}
    write(keep, row, {"pairs": [pairs], "learned_in": 1.0, "loss": 1.0})


def attacked(keep: Path, row: Row, hits: list[int]) -> None:
    """One attacker; two people are measured, with 20 pairs each."""
    share = {"value": sum(hits) / 40, "low": 0.0, "high": 1.0, "level": 0.95, "numerator": sum(hits),
             "denominator": 40, "identities": 2}  # fmt: skip
    one = {"name": "sface", "kind": "recogniser", "far": 1e-3, "cosine": 0.5, "achieved_far": 1e-3, "same": share,
           "other": share, "calibrate_other": 0.1, "retrieval": []}  # fmt: skip
    write(keep, row, {"attackers": [one], "hits": [[hits, [20, 20]]]})


def test_every_row_comes_after_what_it_needs() -> None:
    seen = set[str]()
    for row in ladder():
        assert row.needs is None or row.needs.name in seen, row.name
        seen.add(row.name)
    assert len(seen) == len(ladder())


def test_a_row_is_made_by_one_call_alone(keep: Path) -> None:
    row = Row("model", FIRST[0])
    with claimed(keep, row) as first, claimed(keep, row) as second:
        assert (first, second) == (True, False)
    with claimed(keep, row) as freed:
        assert freed
    write(keep, row, {})
    with claimed(keep, row) as done:
        assert not done


def test_a_half_finished_study_says_what_it_found_and_what_it_did_not_reach(keep: Path) -> None:
    face_mae, plain, masks, _ = FIRST
    training = {"steps": 100, "seconds": 10.0, "losses": [0.1, 0.1, 0.9, 0.6, 0.5], "mse_until_step": 30,
                "steps_per_loss": 20, "recipe": {"loss": "irm"}}  # fmt: skip
    unseen = {"unseen_loss": 2.5, "strangers_loss": 3.3, "unseen_cosine": 0.4, "strangers_cosine": 0.1}
    write(keep, Row("model", face_mae), {"sha256": "1" * 64, "batch": 256, "training": training, **unseen})
    for seed in (1, 2):
        learned(keep, Row("utility", face_mae, seed), 0.80)
        learned(keep, Row("utility", plain, seed), 0.77)
    learned(keep, Row("utility", masks), 0.70)
    attacked(keep, Row("attack", face_mae), [12, 8])
    attacked(keep, Row("attack", plain), [6, 2])
    result = result_of(keep, Clock())
    found = tables(keep, result)
    assert [row[:3] for row in found["methods"].rows] == [
        ["FaceMAE", 0.75, 2], ["plain MAE", 0.75, 2], ["masks", 0.75, 1],
    ]  # fmt: skip
    # Of 40 pairs 20 are linked instead of 8: 30 points, 6 and 6 of 20 for each person, so that no resample differs.
    (_, _, seeds, gain, risk), (*_, no_risk) = found["differences"].rows
    assert (seeds, no_risk) == (2, None)
    assert gain == pytest.approx([3.0, 3.0, 3.0])
    assert risk == pytest.approx([30.0, 30.0, 30.0])
    assert found["training"].rows == [["irm-0.75", 100, 10.0, 2560.0, [0.9, 0.5], 2.5, 3.3, 0.4, 0.1]]
    assert "attackers of masks at 75 %" in result.not_measured
    assert any("FaceMAE at 90" in words for words in result.not_measured)
    assert Row("utility", CURVE[0]).name not in [path.stem for path in (keep / "rows").iterdir()]


def test_what_was_not_reached_is_one_line_for_a_method_without_any_row() -> None:
    face_mae, curve = FIRST[0], CURVE[0]
    rows = [Row("utility", face_mae, 2), Row("utility", face_mae, 3), Row("second", face_mae)]
    rows += [Row("utility", curve), Row("attack", curve)]
    assert not_reached(rows) == [
        "recognisers 2 and 3 of FaceMAE at 75 %", "two releases of FaceMAE at 75 %", "FaceMAE at 50 %",
    ]  # fmt: skip


def test_a_record_keeps_its_lines_and_gains_those_of_other_shares() -> None:
    columns = {"method": "", "hidden": ".0%", "accuracy": ".1%"}
    before = Findings(
        command="",
        measured="",
        where="",
        unface="",
        tables={"curve": Table(columns=columns, rows=[["FaceMAE", 0.75, 0.742]])},
        figures={"not_reached": ["30 %", "nobody"], "verdict": "earlier"},
    )
    again = Table(columns=columns, rows=[["FaceMAE", 0.75, 0.1], ["FaceMAE", 0.3, 0.8]])
    ablations = Table(columns=columns, rows=[["IM", 0.75, 0.7]])
    figures: dict[str, Cell] = {"not_reached": ["nobody", "masks"], "verdict": "later", "second_one": 0.5}
    before.tables["methods"] = before.tables["curve"]
    both, told = joined(before, {"curve": again, "methods": again, "ablations": ablations}, figures)
    assert both["curve"].rows == [["FaceMAE", 0.3, 0.8], ["FaceMAE", 0.75, 0.742]]
    assert both["ablations"].rows == ablations.rows
    assert both["repeated"].rows == [["FaceMAE", 0.75, 0.1]]
    assert told == {"not_reached": ["nobody"], "verdict": "earlier", "second_one": 0.5}
