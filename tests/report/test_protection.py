"""If these fail, a page or terminal about a protected face set breaks, or shows what protection.json does not hold."""

from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from tests.gate.test_protection import protection
from unface.gate import decide, make_policy
from unface.report.protection import print_protection, render_protection
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


def test_the_file_is_read_back(tmp_path: Path) -> None:
    path = protection().save(tmp_path)
    assert ProtectionResult.load(path) == protection()
    assert find_result(path.parent) == (path, ProtectionResult.file_kind())
    assert find_result(path.parent / "none.json")[1] is AUDIT
