"""If these fail, the terminal says something else of before and after than audit.json does."""

import io

from rich.console import Console
from unface.auditing.schema import SpaceResult
from unface.auditing.words import signed_points

from tests.report.made_audit import full_audit, raw_audit
from unface.auditing import AuditResult
from unface.report import print_audit


def printed(result: AuditResult) -> list[str]:
    console = Console(file=io.StringIO(), width=200, color_system=None)
    print_audit(result, console)
    shown = console.file
    assert isinstance(shown, io.StringIO)
    return shown.getvalue().splitlines()


def row_of(lines: list[str], name: str, under: str) -> str:
    start = next(number for number, line in enumerate(lines) if line.startswith(under))
    return next(line for line in lines[start:] if line.split()[:1] == [name])


def with_change(value: float, low: float, high: float) -> AuditResult:
    def changed(space: SpaceResult) -> SpaceResult:
        moved = [change.model_copy(update={"value": value, "low": low, "high": high}) for change in space.changes]
        return space.model_copy(update={"changes": moved})

    full = full_audit()
    return full.model_copy(update={"spaces": [changed(space) for space in full.spaces]})


def test_each_space_has_a_row_with_what_it_removed_and_its_change() -> None:
    full = full_audit()
    lines = printed(full)
    for space in full.spaces[1:]:
        assert space.erasure is not None
        row = row_of(lines, space.name, "worst case at k")
        assert f"{space.erasure.rank} of {space.erasure.dim}" in row
        assert ("(control)" in row) == space.erasure.control
        change = next(one for one in space.changes if one.against == "raw")
        assert signed_points(change.value) in row


def test_a_change_whose_interval_holds_zero_is_marked() -> None:
    assert "−1.0 ?" in row_of(printed(with_change(-0.01, -0.03, 0.01)), "isp", "worst case at k")
    assert "?" not in row_of(printed(with_change(-0.01, -0.03, -0.001)), "isp", "worst case at k")
    assert "?" not in row_of(printed(with_change(0.01, 0.001, 0.03)), "isp", "worst case at k")


def test_what_is_kept_is_shown_with_its_interval() -> None:
    full = full_audit()
    kept = full.spaces[1].utility[0].retained
    assert f"{100 * kept.value:.0f} [{100 * kept.low:.0f}, {100 * kept.high:.0f}]" in row_of(
        printed(full), "isp", "share kept"
    )


def test_an_audit_of_the_raw_space_alone_has_neither_table() -> None:
    assert not [line for line in printed(raw_audit()) if line.startswith(("worst case at k", "share kept"))]
