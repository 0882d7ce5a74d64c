"""If these fail, a page or terminal about a protected face set breaks, or shows what protection.json does not hold."""

import re
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from tests.gate.test_protection import protection
from unface.gate import decide, make_policy
from unface.report.protection import advice, print_protection, render_protection
from unface.result.file import AUDIT, find_result
from unface.result.protection import ProtectionResult


def test_the_page_has_the_common_opening_the_curve_and_escapes_names() -> None:
    policy = make_policy({"require": [{"utility_min": 0.85}]}, lambda table, key: f"{table} {key}")
    page = render_protection(protection(), decide(protection(), policy))
    assert "Failed" in page
    assert "<b>set</b>" not in page
    assert 'aria-label="This release: 30 of 100' in page
    assert "Utility and risk. FaceMAE, 75.0 % hidden: utility 80.0 %, risk 30.0 %" in page
    assert "originals: utility 90.0 %, risk 90.0 %" in page
    assert "Not measured: other backbones" in page
    assert "44.0 %" in page
    assert page == render_protection(protection(), decide(protection(), policy))
    assert "risk_max = 0.02" in render_protection(protection())


@pytest.mark.parametrize("width", [80, 120])
def test_the_terminal_fits(width: int) -> None:
    text = StringIO()
    print_protection(protection(), Console(file=text, width=width))
    shown = text.getvalue()
    assert max(map(len, shown.splitlines())) <= width
    assert "fine-tuned *" in shown
    assert "not measured: other backbones" in shown


def test_each_count_says_what_was_counted() -> None:
    """The study releases 3,000 people, and attackers look for 500 of them."""
    made = protection()
    methods = [one.model_copy(update={"pictures": 15_000, "people": 3_000}) for one in made.methods[:3]]
    unlearned = methods[2].model_copy(update={"utility": []})
    made = made.model_copy(
        update={
            "release": made.release.model_copy(update={"pictures": 15_000, "people": 3_000}),
            "methods": [*methods[:2], unlearned, made.methods[3]],
            "calibrate_people": 400,
            "measured_people": 500,
        }
    )
    page = re.sub(r"<[^>]+>", " ", render_protection(made))
    assert "15,000 released pictures of 3,000 people, preset" in page
    assert page.count("learned from 15,000 pictures of 3,000 people") == 2
    assert page.count("learned from 9 pictures of 3 people") == 1
    assert "on 400 people of the release; the numbers are of 500 other people" in page
    text = StringIO()
    print_protection(made, Console(file=text, width=300))
    assert (
        "15,000 released pictures of 3,000 people, from which recognisers learn; attackers look for 500 of these "
        "people, with thresholds from 400 others."
    ) in text.getvalue()


def test_a_release_that_hides_people_is_not_recommended_before_the_rest_is_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ProtectionResult, "links", False)
    made = protection()
    assert advice(made)[0].startswith("Repeat this with more people")
    useless = made.audited.model_copy(update={"utility": []})
    methods = [useless if one.audited else one for one in made.methods]
    missing = ["an attacker who fine-tunes on pairs of their own; give --attacker-people"]
    first, second, *_ = advice(made.model_copy(update={"methods": methods, "not_measured": missing}))
    assert "audit with --attacker-people" in first
    assert "A model that learned too little hides people too" in second


def test_the_file_is_read_back(tmp_path: Path) -> None:
    path = protection().save(tmp_path)
    assert ProtectionResult.load(path) == protection()
    assert find_result(path.parent) == (path, ProtectionResult.file_kind())
    assert find_result(path.parent / "none.json")[1] is AUDIT
