"""If this fails, a page shows a figure that is not what was measured, or a record of a measurement is not whole.

That the recorded table of the demo is what the demo gives is tested in tests/cli/test_demo.py.
"""

import re
from datetime import date
from pathlib import Path

import pytest
from benchmarks.ratios import Ratio
from benchmarks.record import COLUMNS, write_ratios
from docs import figures
from jinja2 import UndefinedError
from studies.measured import HOME, Cell, Findings, Table, markdown, read_findings, written
from studies.record import Measured, Tar, read_record, read_records, record_json, record_of
from studies.tables import audit_sections, plain_cell, spaces_table, times_chance

from tests.refusals.table import refused
from unface import AuditResult, Protocol, UnfaceError, audit, make_identities

FINDINGS = sorted(path.relative_to(HOME).with_suffix("").as_posix() for path in HOME.rglob("*.json"))
FINDINGS = [name for name in FINDINGS if not name.startswith("erasure/")]
MOST = 1_500_000  # bytes


@pytest.mark.parametrize("name", figures.PAGES)
def test_a_page_is_what_its_template_renders_from_the_records(name: str) -> None:
    shown, rendered = figures.PAGES[name].read_text(encoding="utf-8"), figures.rendered(name)
    differing = [pair for pair in zip(shown.splitlines(), rendered.splitlines(), strict=False) if pair[0] != pair[1]]
    advice = f"edit docs/templates/{name}.jinja, not the page, and run `make figures`"
    assert not differing, f"{advice}; first of {len(differing)} lines:\n{differing[0][0]}\n{differing[0][1]}"
    assert shown == rendered, advice


@pytest.mark.parametrize("page", [figures.HERE.parent / "README.md", *figures.HERE.glob("*.md")], ids=lambda p: p.name)
def test_a_page_is_plain_markdown(page: Path) -> None:
    assert not re.search(r"<!--|\{[{%#]", page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", FINDINGS)
def test_a_record_says_what_was_run_when_and_where(name: str) -> None:
    found = read_findings(name)
    assert all((found.command, found.where, found.unface))
    assert date(2026, 1, 1) <= date.fromisoformat(found.measured)
    assert found.tables or found.figures
    assert all(len(row) == len(table.columns) for table in found.tables.values() for row in table.rows)


def test_records_of_audits_are_whole_and_small() -> None:
    for name, record in read_records().items():
        assert (HOME / "erasure" / f"{name}.json").exists()
        assert record.valid
        assert record.shuffled == record.shuffled_at_chance > 0
        assert {space.name for space in record.spaces} >= {"raw", "isp", "leace", "random", "pca"}
        assert all(point.tar or point.mark == "refused" for space in record.spaces for point in space.points)
    assert sum(path.stat().st_size for path in HOME.rglob("*.json")) < MOST


def test_no_record_is_kept_that_no_page_shows() -> None:
    templates = "".join(path.read_text(encoding="utf-8") for path in figures.TEMPLATES.iterdir())
    assert [name for name in FINDINGS if f'"{name.removeprefix("speed/")}"' not in templates] == []


@pytest.mark.parametrize(
    ("template", "page"),
    [
        ('a {{ figure("cups", "count", "g") }} b', "a 3 b"),
        ('a {{ figure("cups", "range", ".1f") }}\n', "a 1.0 to 2.5\n"),
        ('{{ table("cups", "sizes") }}\n', "| cup | part |\n| --- | --- |\n| tea | 0.5 [0.4, 0.6] |\n"),
        ('{{ cell("cups", "kinds", "tea black", 3, ".1f") }}', "2.0"),
        ('{{ cell("cups", "kinds", "tea", 3, ".1f") }}', "1.0"),
        ('{% set name = "cups" %}\n{{ figure(name, "count") }} < 4 & more', "3 < 4 & more"),
    ],
)
def test_a_call_in_a_template_becomes_what_was_recorded(
    monkeypatch: pytest.MonkeyPatch, template: str, page: str
) -> None:
    table = Table(columns={"cup": "", "part": ".1f"}, rows=[["tea", [0.5, 0.4, 0.6]]])
    kinds = Table(columns={"cup": "", "kind": "", "size": ""}, rows=[["tea", "green", 1.0], ["tea", "black", 2.0]])
    found = Findings(
        command="count",
        measured="2026-11-16",
        where="here",
        unface="1",
        tables={"sizes": table, "kinds": kinds},
        figures={"count": 3, "range": [1.0, 2.5]},
    )
    monkeypatch.setattr("studies.measured.read_findings", lambda name: found)
    assert figures.environment().from_string(template).render() == page


@pytest.mark.parametrize(
    ("call", "error", "complaint"),
    [
        ('figure("timings", "absent", "g")', UnfaceError, "has no figure 'absent'"),
        ('figure("absent", "one", "g")', UnfaceError, r"docs/measured/absent.json: is not there"),
        ('table("timings", "absent")', UnfaceError, "has no table 'absent'"),
        ('tar("absent", "raw", 1e-3)', UnfaceError, "nothing of absent"),
        ('sweep_tables("absent", "rank")', UnfaceError, "nothing of absent"),
        ('tar("sface_lfw_apart")', TypeError, "missing 2 required positional arguments"),
        ("absent()", UndefinedError, "'absent' is undefined"),
    ],
)
def test_a_call_of_what_is_not_recorded_is_an_error(call: str, error: type[Exception], complaint: str) -> None:
    with pytest.raises(error, match=complaint):
        figures.environment().from_string(f"{{{{ {call} }}}}").render()


@pytest.mark.parametrize(
    ("value", "how", "words"),
    [
        (0.1234, ".2f", "0.12"),
        (-1.5, "+.1f", "−1.5"),
        (12345, ",", "12,345"),
        (0.188, ".1%", "18.8 %"),
        (None, "g", ""),
        ([2, 2.5], "g", "2 to 2.5"),
        ([0.3, 0.2, 0.4], ".1f", "0.3 [0.2, 0.4]"),
        ([0.3, 0.2], ".1f/", "0.3 / 0.2"),
    ],
)
def test_numbers_are_written_as_pages_show_them(value: Cell, how: str, words: str) -> None:
    assert written(value, how) == words


@pytest.fixture(scope="module")
def audited() -> AuditResult:
    people = make_identities(60, 6, 16, rank=6, seed=1)
    return audit(
        people,
        far=1e-2,
        k=1,
        eraser=("isp", "leace"),
        rank=4,
        protocol=Protocol(probe=("cosine",), seeds=1, bootstraps=50),
    )


def test_a_record_says_of_an_audit_what_the_audit_says(audited: AuditResult, tmp_path: Path) -> None:
    audited.save(tmp_path / "sface_lfw_apart")
    from_audit = read_records(tmp_path)
    (tmp_path / "sface_lfw_apart.json").write_text(record_json(from_audit["sface_lfw_apart"]))
    assert read_record(tmp_path / "sface_lfw_apart.json") == from_audit["sface_lfw_apart"]
    point = audited.worst[0]
    assert point.tar is not None
    assert point.chance is not None
    line = next(line for line in spaces_table(from_audit["sface_lfw_apart"]) if line.startswith("| raw | 1 |"))
    assert f"~{100 * point.tar.value:.1f} [" in line
    assert f"×{point.tar.value / point.chance:.0f} |" in line
    assert list(audit_sections(from_audit)) == list(audit_sections(read_records(tmp_path)))


def test_multiples_divide_by_the_target_rate_also_where_an_older_audit_divided_by_another() -> None:
    older = Tar(accepted=50, mated=1000, low=0.04, high=0.06, times_chance=7.0)
    assert plain_cell(Measured("cosine", 1, 1e-3, "", True, older, None)).endswith(" ×50")
    # 1,624 of 68,640 pairs; by the FAR that was achieved, 244.
    assert times_chance(read_records(), "sscd-int8_celeba9k_apart", "isp", 1e-4) == "237"


def test_a_record_names_nobody_and_no_place(audited: AuditResult) -> None:
    named = audited.model_copy(update={"suspects": [("twice", "row-17", "Ann", "row-18", "Bob")]})
    text = record_json(record_of("sface_lfw_apart", named))
    assert not re.search(r"Ann|Bob|row-1|/tmp|\.py\b", text)


def test_a_record_of_other_columns_is_refused(audited: AuditResult, tmp_path: Path) -> None:
    path = tmp_path / "sface_lfw_apart.json"
    path.write_text(record_json(record_of("sface_lfw_apart", audited)).replace('"times_chance"', '"chance"'))
    with refused("plug-in", "sface_lfw_apart.json"):
        read_record(path)


def test_a_benchmark_run_again_replaces_its_record(tmp_path: Path) -> None:
    (tmp_path / "speed").mkdir()
    for value in (1.5, 1.25):
        ratios = [Ratio("ours / theirs", value, 2, figures={"seconds": 0.123456})]
        write_ratios("pairs_speed", ratios, "two cores", home=tmp_path)
    write_ratios("pairs_speed", [], "a machine where it was skipped", home=tmp_path)
    found = read_findings("speed/pairs_speed", tmp_path)
    assert found.tables["ratios"] == Table(columns=COLUMNS, rows=[["ours / theirs", 1.25, 2, "at most", ""]])
    assert (found.where, found.figures) == ("two cores", {"seconds": 0.1235})
    assert markdown(found.tables["ratios"])[2].startswith("| ours / theirs | 1.25 | 2 |")
