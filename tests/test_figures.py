"""If this fails, a page shows a figure that is not what was measured, or a record of a measurement is not whole.

The table of the demo, which has to be run for it, is held in tests/cli/test_demo.py; the picture of the rooms in
tests/test_architecture_picture.py.
"""

import re
from datetime import date
from pathlib import Path

import pytest
from benchmarks.ratios import Ratio
from benchmarks.record import COLUMNS, write_ratios
from docs import figures, tables
from studies.measured import HOME, Cell, Findings, Table, markdown, read_findings, said
from studies.record import read_records, record_of
from studies.record_format import read_record, written
from studies.tables import every_probe, worst_table

from unface import AuditResult, UnfaceError, audit, make_identities

BY_OTHERS = {"rooms", "before and after", "embedded files"}
FINDINGS = sorted(path.relative_to(HOME).with_suffix("").as_posix() for path in HOME.rglob("*.json"))
FINDINGS = [name for name in FINDINGS if not name.startswith("erasure/")]
MOST = 1_500_000  # bytes


@pytest.mark.parametrize("page", figures.PAGES, ids=lambda page: page.name)
def test_a_page_shows_what_was_measured(page: Path) -> None:
    shown = page.read_text(encoding="utf-8")
    made = figures.filled(shown, page.name)
    differing = [pair for pair in zip(shown.splitlines(), made.splitlines(), strict=False) if pair[0] != pair[1]]
    assert not differing, f"run `make figures`; first of {len(differing)}:\n{differing[0][0]}\n{differing[0][1]}"
    assert shown == made, "run `make figures`"


@pytest.mark.parametrize("page", figures.PAGES, ids=lambda page: page.name)
def test_every_mark_on_a_page_is_one_that_is_filled_in(page: Path) -> None:
    marks = re.findall(r"<!-- /?(.*?) -->", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert [mark for mark in marks if mark not in BY_OTHERS and mark.split()[0] not in figures.MAKERS] == []


def test_the_data_card_lists_the_files_there_are() -> None:
    page = (figures.HERE / "data.md").read_text(encoding="utf-8")
    assert page == tables.with_tables(page, {"embedded files": tables.embedded_files()}), "run `make figures`"


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
    shown = "".join(page.read_text(encoding="utf-8") for page in figures.PAGES)
    marks = " ".join(re.findall(r"<!-- (.*?) -->", shown))
    assert [name for name in FINDINGS if name.removeprefix("speed/") not in marks] == []


@pytest.mark.parametrize(
    ("page", "made"),
    [
        ("a <!-- figure cups count g -->9<!-- /figure --> b", "a <!-- figure cups count g -->3<!-- /figure --> b"),
        (
            "a <!-- figure cups range .1f -->9<!-- /figure -->",
            "a <!-- figure cups range .1f -->1.0 to 2.5<!-- /figure -->",
        ),
        (
            "<!-- table cups sizes -->\nold\n<!-- /table -->",
            "<!-- table cups sizes -->\n\n| cup | part |\n| --- | --- |\n| tea | 0.5 [0.4, 0.6] |\n\n<!-- /table -->",
        ),
        ("<!-- a note to writers -->", "<!-- a note to writers -->"),
    ],
)
def test_what_is_marked_is_made_again(monkeypatch: pytest.MonkeyPatch, page: str, made: str) -> None:
    table = Table(columns={"cup": "", "part": ".1f"}, rows=[["tea", [0.5, 0.4, 0.6]]])
    found = Findings(
        command="count",
        measured="2026-11-16",
        where="here",
        unface="1",
        tables={"sizes": table},
        figures={"count": 3, "range": [1.0, 2.5]},
    )
    monkeypatch.setattr("studies.measured.read_findings", lambda name: found)
    assert figures.filled(page, "page.md") == made


@pytest.mark.parametrize(
    ("page", "complaint"),
    [
        ("a <!-- figure timings roc_curve_2e7 g -->9", r"1 marks <!-- figure … -->, 0 <!-- /figure -->"),
        ("<!-- figure timings roc_curve_2e7 g -->9<!-- /figure --> b", "a line begins with a mark"),
        ("a <!-- figure timings absent g -->9<!-- /figure -->", "has no figure 'absent'"),
        ("a <!-- figure absent one g -->9<!-- /figure -->", r"docs/measured/absent.json: is not there"),
        ("a <!-- tar absent raw 1e-3 -->9<!-- /tar -->", "nothing of absent"),
        ("a <!-- tar absent -->9<!-- /tar -->", "takes other words"),
    ],
)
def test_a_mark_that_cannot_be_filled_in_is_told(page: str, complaint: str) -> None:
    with pytest.raises(UnfaceError, match=complaint):
        figures.filled(page, "page.md")


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
def test_numbers_are_said_as_pages_say_them(value: Cell, how: str, words: str) -> None:
    assert said(value, how) == words


@pytest.fixture(scope="module")
def audited() -> AuditResult:
    people = make_identities(60, 6, 16, rank=6, seed=1)
    return audit(
        people, erasers=("isp", "leace"), rank=4, fars=(1e-2,), ks=(1,), probes=("cosine",), seeds=1, bootstraps=50
    )


def test_a_record_says_of_an_audit_what_the_audit_says(audited: AuditResult, tmp_path: Path) -> None:
    audited.save(tmp_path / "sface_lfw_apart")
    from_audit = read_records(tmp_path)
    (tmp_path / "sface_lfw_apart.json").write_text(written(from_audit["sface_lfw_apart"]))
    assert read_record(tmp_path / "sface_lfw_apart.json") == from_audit["sface_lfw_apart"]
    point = audited.worst[0]
    assert point.tar is not None
    assert point.chance is not None
    line = next(line for line in worst_table(from_audit["sface_lfw_apart"]) if line.startswith("| raw | 1 |"))
    assert f"~{100 * point.tar.value:.1f} [" in line
    assert f"×{point.tar.value / point.chance:.0f} |" in line
    assert list(every_probe(from_audit)) == list(every_probe(read_records(tmp_path)))


def test_a_record_names_nobody_and_no_place(audited: AuditResult) -> None:
    named = audited.model_copy(update={"suspects": [("twice", "row-17", "Ann", "row-18", "Bob")]})
    text = written(record_of("sface_lfw_apart", named))
    assert not re.search(r"Ann|Bob|row-1|/tmp|\.py\b", text)


def test_a_record_of_other_columns_is_refused(audited: AuditResult, tmp_path: Path) -> None:
    path = tmp_path / "sface_lfw_apart.json"
    path.write_text(written(record_of("sface_lfw_apart", audited)).replace('"times_chance"', '"chance"'))
    with pytest.raises(UnfaceError, match="record the audit again"):
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
