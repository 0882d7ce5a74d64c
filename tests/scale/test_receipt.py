"""If these fail, whoever must show later what was done has a receipt that does not say so."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.scale.stored import projection
from unface._version import __version__
from unface.scale import Receipt
from unface.scale.receipt import Check, Verified

VERIFIED = Verified(rows=12_345, largest_left=3.21e-7, worst_length=6e-8, allowed=4e-6)


def receipt(**other: object) -> Receipt:
    seen = {"rows": 12_345, "degenerate": 0, "named_space": True, "raw_purged": False, "verified": None} | other
    return Receipt.of(projection(), "Käufer", **seen)


def test_a_receipt_says_what_was_done_by_what_and_when(tmp_path: Path) -> None:
    before = datetime.now(UTC).replace(microsecond=0)
    receipt(raw_purged=True, verified=VERIFIED, files=7, notes=["a replica"]).save(tmp_path / "receipt.json")
    found = json.loads((tmp_path / "receipt.json").read_text(encoding="utf-8"))
    finished = datetime.fromisoformat(found.pop("finished"))
    assert before <= finished <= datetime.now(UTC)
    assert finished.microsecond == 0
    assert found == {
        "schema": "unface.receipt/1",
        "unface": __version__,
        "where": "Käufer",
        "projection_sha256": projection().sha256,
        "kind": "isp",
        "rank": 5,
        "dim": 16,
        "released_dim": None,
        "rows": 12_345,
        "degenerate": 0,
        "not_faces": None,
        "named_space": True,
        "arrived": 0,
        "raw_purged": True,
        "verified": {"rows": 12_345, "largest_left": 3.21e-7, "worst_length": 6e-8, "allowed": 4e-6},
        "recall_before": None,
        "recall_after": None,
        "files": 7,
        "bad_rows": None,
        "on_bad_rows": "fail",
        "notes": ["a replica"],
    }


def test_a_saved_receipt_reads_back_equal_and_has_a_line_for_each_thing(tmp_path: Path) -> None:
    given = receipt(verified=VERIFIED)
    given.save(tmp_path / "receipt.json")
    text = (tmp_path / "receipt.json").read_text(encoding="utf-8")
    assert Receipt.model_validate_json(text) == given
    assert text.startswith('{\n  "schema": "unface.receipt/1",\n  "unface": ')
    assert text.endswith("\n}\n")


def test_what_was_verified_is_what_the_check_saw() -> None:
    check = Check(projection(), rows=9, degenerate=1, largest_left=0.1, worst_length=0.2, allowed=0.3)
    assert Verified.by(check) == Verified(rows=9, largest_left=0.1, worst_length=0.2, allowed=0.3)


@pytest.mark.parametrize(
    ("seen", "added"),
    [
        ({}, ""),
        ({"degenerate": 1234}, "; 1,234 have nothing left and are zero"),
        ({"verified": VERIFIED}, "; read back: at most 3e-07 left along what was removed"),
    ],
)
def test_the_sentence_says_what_was_done_and_what_is_odd_about_it(seen: dict[str, object], added: str) -> None:
    done = "Käufer: 12,345 vectors, 5 of 16 dimensions removed (isp)"
    assert receipt(**seen).sentence() == done + added


def test_the_sentence_says_that_nobody_knows_the_encoder() -> None:
    unchecked = "(isp); the source does not say which encoder it is from, so this could not be checked"
    assert receipt(named_space=False).sentence().endswith(unchecked)
