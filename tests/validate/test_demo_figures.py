"""If this fails, docs/validate.md shows other figures than the demo's 200 questions to a face system give."""

from functools import cache
from pathlib import Path

from unface.page.tables import bounded
from unface.result.validation import ALL_JUDGES, ValidationResult
from unface.result.words import percent
from unface.validate.embedded import embedded_case
from unface.validate.run import Plan, validate

PAGE = Path(__file__).resolve().parents[2] / "docs" / "validate.md"


@cache
def asked() -> ValidationResult:
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        return validate(embedded_case(), Plan(200), Path(folder) / "ledger.jsonl").result


def test_the_page_shows_what_the_demo_finds() -> None:
    page, result = PAGE.read_text(encoding="utf-8"), asked()
    for queries in (20, 50, 100, 200):
        cells = []
        for attack in result.attacks:
            point = attack.point(queries, 1e-3)
            assert point is not None
            assert point.other is not None
            cells.append(bounded(point.other))
        assert f"| {queries} | {' | '.join(cells)} |" in page
    ceiling = next(one.other for one in result.ceiling if (one.far, one.judge) == (1e-3, ALL_JUDGES))
    assert f"The ceiling is {bounded(ceiling)}" in page
    shown = [
        line.split(" | ")
        for line in page.splitlines()
        if line.startswith(("| as it", "| scores r", "| noise", "| dec"))
    ]
    by_measure = {one.measure: one for one in result.hardening}
    assert len(shown) == 4
    for measure, half, recovered in shown:
        one = by_measure[measure.removeprefix("| ")]
        found = one.queries_to_half
        words = "not within 200" if found is None else f"{found.value:,.0f} [{found.low:,.0f}, {found.high:,.0f}]"
        assert one.other is not None
        assert (half, recovered) == (words, f"{percent(one.other.value)} |")


def test_the_demo_says_that_its_one_judge_is_not_independent() -> None:
    assert [judge.independent for judge in asked().judges] == [False]
    assert any(finding.about == "judges" and finding.severity == "warning" for finding in asked().findings)
    assert asked().enrolled.generated
    assert asked().asked.counted == 50 * 200
