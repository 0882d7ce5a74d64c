"""If these fail, README or docs/claims.md shows a measured number that no committed record holds.

Most figures are rendered from records (tests/test_figures.py). Those that are written by hand are listed here with what
they follow from; any other number on these two pages is a setting, the number of a list, or what a paper reports.
"""

import re
from collections.abc import Callable

import pytest
from docs import figures
from studies.measured import read_findings
from studies.record import read_records

from unface.data import nobody, things
from unface.release.embedded import COPIES
from unface.utility import labelled_task
from unface.validate import embedded


def cells(record: str, table: str, column: str) -> dict[str, object]:
    """By the first cells of a row."""
    found = read_findings(record).tables[table]
    at = list(found.columns).index(column)
    return {" ".join(str(cell) for cell in row[:4]): row[at] for row in found.rows}


def worst_shares(space: str, *encoders: str) -> str:
    """Percent of photo pairs at FAR 1e-4 on CelebA with 20 pictures each, over encoders and k."""
    records = read_records()
    points = [
        point
        for name in encoders
        for one in records[f"{name}_celeba20_apart"].spaces
        if one.name == space
        for point in one.points
        if point.worst and point.tar is not None and point.far == pytest.approx(1e-4)
    ]
    shares = [100 * point.tar.accepted / point.tar.mated for point in points if point.tar is not None]
    return f"{min(shares):.1f} to {max(shares):.1f} %"


def attribution(column: str, *encoders: str, space: str = "raw") -> list[float]:
    found = read_findings("attribution").tables["spaces"]
    at = list(found.columns).index(column)
    values = [row[at] for row in found.rows if row[0] in encoders and row[1] == space]
    return [value[0] if isinstance(value, list) else float(str(value).split()[0]) for value in values]  # type: ignore[misc]


def paper_ridge() -> list[object]:
    return [row[2] for row in read_findings("raw_space").tables["paper"].rows]


def keeper_loses() -> str:
    knn = {str(row[0]): row[-1][0] for row in read_findings("frontier").tables["sscd-int8"].rows}  # type: ignore[index]
    lost = [100 * (1 - value / knn["raw"]) for name, value in knn.items() if name.startswith("keeper")]  # type: ignore[operator]
    return f"{min(lost):.0f} to {max(lost):.0f} %"


RECOGNISERS, GENERAL = ("arcface-mbf", "sface"), ("sscd-int8", "dinov2-s-focus", "mobilenet-v2")
OTHER_GENERAL = ("dinov2-s-focus", "augnet-r50", "mobilenet-v2", "efficientnet-lite0")

HELD: dict[str, Callable[[], bool]] = {
    "[480 people who do not exist]": lambda: len(set(nobody("sface").identities)) == 480,
    "measured on 400 pictures": lambda: len(labelled_task(things("sface")).test) == 400,
    "a score 200 questions about each person": lambda: embedded._ASKED == 200,
    "20 planted copies": lambda: COPIES == 20,
    "190 people in all": lambda: (
        sum(int(str(read_findings("raw_space").figures[f"paper_{role}"])) for role in ("train", "calibrate", "test"))
        == 190
    ),
    "~3.2, ~3.2 %, and refused at k = 16": lambda: (
        [str(cell)[:4] for cell in paper_ridge()] == ["~3.2", "~3.1", "refu"]
        and round(float(str(paper_ridge()[1])[1:5]), 1) == 3.2
    ),
    "flat from 320 to 2,000": lambda: (
        {320, 2000}
        <= {
            point.fit_identities
            for sweep in read_records()["sscd-int8_celeba9k_apart"].sweeps
            for point in sweep.points
        }
    ),
    "B* at 1 against 0 to 0.25": lambda: (
        set(attribution("B*", *RECOGNISERS)) == {1.0}
        and (min(attribution("B*", *GENERAL)), max(attribution("B*", *GENERAL))) == (0, 0.25)
    ),
    "CPI(0) below 0.01 against 0.96 and more": lambda: (
        max(attribution("CPI(0)", *RECOGNISERS)) < 0.01 and min(attribution("CPI(0)", *GENERAL)) >= 0.96
    ),
    "it stays at 0.97 and above": lambda: min(attribution("CPI(0)", *GENERAL, space="ISP")) >= 0.97,
    "~2.4 to 3.2 %": lambda: worst_shares("isp", "sscd-int8", "sscd-distilled") == "2.4 to 3.2 %",
    "~0.3 to 1.2 %": lambda: worst_shares("isp", *OTHER_GENERAL) == "0.3 to 1.2 %",
    "loses 59 to 86 %": lambda: keeper_loses() == "59 to 86 %",
    "Shares are of 200 people": lambda: (
        {
            targets
            for name, targets in cells("inversion", "success", "targets").items()
            if name.startswith(("photographs arcface-mbf alsuv ", "photographs sscd-int8 alsuv ", "photographs dinov2"))
            and " alsuv " in name
            and not name.endswith("random")
        }
        == {200}
    ),
    "(100 people)": lambda: cells("inversion_whole", "success", "targets")["photographs arcface-mbf diffmi raw"] == 100,
    "(100 people each)": lambda: (
        {
            targets
            for name, targets in cells("inversion", "success", "targets").items()
            if name.endswith("translate:decode raw")
        }
        == {100}
    ),
    "(50 people)": lambda: cells("inversion_whole", "success", "targets")["photographs arcface-mbf bob raw"] == 50,
    "behind DCTDP with 60 people": lambda: 60 in {row[2] for row in read_findings("ppfr").tables["linked"].rows},
    "the best of 7,300 random faces": lambda: (
        {row[3] for row in read_findings("ppfr").tables["linked"].rows if row[1] == "best of generated"} == {7300}
    ),
    "20 people: linked": lambda: (
        {20}
        == {
            row[2]
            for row in read_findings("ppfr").tables["searches"].rows
            if row[1] in ("without an ensemble", "without W+")
        }
    ),
    "% of 200 people": lambda: (
        cells("inversion_whole", "templates", "targets")["photographs sscd-int8 translate raw"] == 200
    ),
}

SETTINGS = (
    r"FAR(?: below)? 1e-\d(?: and| ,)*",
    r"at (?:FAR )?1e-\d",
    r"\(?FAR 1e-\d\)?",
    r"k = [\d, ]+",
    r"rank \d+",
    r"^\d\. ",
    r"one false match in 1,000",
    r"95 (?:% interval|are promised)",
    r"(?:reference|Reference) \d",
    r"CVPR \d{4}, arXiv:\d{4}\.\d{5}",
    r"less than 3 expected",
    r"CelebA × 20|\(× 5\)|celeba20|celeba9k",
    r"192 of 512 dimensions|320 removed|64 kept",
    r"false-discovery rate of 5 %",
    r"over 10⁹ pairs",
    r"at 75 % hidden",
    r"from 99 scores",
    r"7,300 in its code|% after 200|48 % is chance",
    r"exits with (?:\d[^.]*){1,3}",
    r"Python 3\.11|Apache-2\.0",
    r"100 photo pairs before and after",
)


def written_by_hand(page: str) -> list[str]:
    """The lines of a template as far as they are no call, code, link, or claim of a paper."""
    text = (figures.TEMPLATES / f"{page}.jinja").read_text(encoding="utf-8")
    text = re.sub(r"```.*?```|\{\{.*?\}\}|\{%.*?%\}", "", text, flags=re.DOTALL)
    text = re.sub(r"\]\([^)]*\)|`[^`]*`", "]", text)
    lines = text.splitlines()
    if page == "claims.md":
        lines = [line.split("|")[2] if line.startswith("|") else line for line in lines]
    return lines


@pytest.mark.parametrize("phrase", HELD)
def test_a_figure_written_by_hand_is_what_its_record_holds(phrase: str) -> None:
    assert any(phrase in line for page in ("README.md", "claims.md") for line in written_by_hand(page)), "not shown"
    assert HELD[phrase]()


@pytest.mark.parametrize("page", ["README.md", "claims.md"])
def test_every_other_number_is_rendered_from_a_record_or_no_measurement(page: str) -> None:
    left = []
    for line in written_by_hand(page):
        rest = line
        for phrase in HELD:
            rest = rest.replace(phrase, "")
        for setting in SETTINGS:
            rest = re.sub(setting, "", rest)
        if re.search(r"(?<![\w*-])\d", rest):
            left.append(rest.strip())
    assert left == []
