"""If these fail, the terminal shows other numbers than audit.json holds, or hides what it could not measure."""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from io import StringIO

import numpy as np
import pytest
from rich.console import Console

from tests.report.made import full_audit, invalid_audit, raw_audit
from unface import Protocol, audit, make_identities
from unface.report.table import print_audit
from unface.result.audit import AuditResult, Point, SpaceResult
from unface.result.file import Finding
from unface.result.words import interval, percent, signed_points


@cache
def audited() -> AuditResult:
    """60 identities of 8 images: k = 1, 4 and all are run, 16 is left out; the lower rates are coarse and refused."""
    people = make_identities(60, 8, 8, between=1.2, seed=1)
    vectors = people.vectors.copy()
    vectors[5] = vectors[100]
    shoots = np.array([f"shoot {row // 4}" for row in range(len(vectors))])
    people = replace(people, vectors=vectors, labels={"shoot": shoots}, source="faces.parquet")
    probes = ("cosine", "ridge", "lda", "plda")
    protocol = Protocol(probe=probes, seeds=2, bootstraps=200, group="shoot", threads=1)
    return audit(people, far=(1e-2, 1e-3, 5e-4), eraser=(), protocol=protocol)


def printed(result: AuditResult | None = None, width: int = 160) -> str:
    page = StringIO()
    print_audit(result or audited(), Console(file=page, width=width, color_system=None))
    return page.getvalue()


def words(text: str) -> str:
    """In one line, without the frame."""
    return " ".join(text.replace("│", " ").split())


def test_the_verdict_comes_first_and_whole() -> None:
    assert audited().verdict in words(printed())
    assert words(printed()).index(audited().verdict) < words(printed()).index("faces.parquet")


def test_what_was_used_is_told_before_the_table() -> None:
    assert (
        "faces.parquet: 480 vectors of 8 dimensions, 60 identities. Used: 60 × 8 images. "
        "Roles: fit 18, train 15, calibrate 12, test 15." in words(printed())
    )


def test_identities_left_out_by_curation_are_counted() -> None:
    curated = audited().curated.model_copy(update={"identities": 58, "identities_dropped": 1234, "rows_dropped": 5678})
    assert "Used: 58 × 8 images, 1,234 with fewer left out, 5,678 images not used." in words(
        printed(audited().model_copy(update={"curated": curated}))
    )


def test_every_number_of_the_audit_is_in_the_table() -> None:
    page = words(printed())
    for point in audited().raw.points:
        if point.tar:
            shown = f"{percent(point.tar.value).removesuffix(' %')} {interval(point.tar.low, point.tar.high)}"
            assert f"~{shown}" in page if point.resolution == "coarse" else shown in page


def test_rows_are_the_probes_of_each_k_and_the_worst_is_marked_once_for_each_rate() -> None:
    lines = printed().splitlines()
    rows = [line for line in lines if line.split()[:1] and line.split()[0] in audited().protocol.probe]
    assert [row.split()[0] for row in rows] == ["cosine", "ridge", "lda", "plda"] * 6, "two rates, then the third"
    worst = [point for point in audited().raw.points if point.worst]
    assert sum(row.count("◂") for row in rows) == len(worst) == 6
    for point in worst:
        table, column = divmod(audited().protocol.far.index(point.far), 2)
        row = rows[table * 12 + audited().protocol.k.index(point.k) * 4 + audited().protocol.probe.index(point.probe)]
        assert "◂" in row.split("]")[column + 1][:3]


@pytest.mark.parametrize("result", [full_audit, audited], ids=["erased", "raw"])
def test_no_number_or_interval_of_a_table_is_split_at_80_columns(result: Callable[[], AuditResult]) -> None:
    """The widest there can be: all of them close to 100 %, coarse, and worst; times chance near a million."""
    found = result()

    def widest(point: Point) -> Point:
        tar = point.tar and replace(
            point.tar, value=0.9991, low=0.9983, high=0.9997, numerator=9991, denominator=10_000
        )
        return point.model_copy(update={"tar": tar, "resolution": "coarse", "worst": True, "times_chance": 999_100.0})

    spaces = [one.model_copy(update={"points": [widest(point) for point in one.points]}) for one in found.spaces]
    for shown in (found, found.model_copy(update={"spaces": spaces})):
        narrow, broad = (printed(shown, width).splitlines() for width in (80, 200))
        tables = [line for line in broad if re.search(r"\d \[[\d.]+, [\d.]+\]( ◂)?  ", line)]
        assert len(tables) > 4
        assert {line.rstrip() for line in tables} <= {line.rstrip() for line in narrow}


def test_refused_rates_are_shown_as_not_resolved_and_coarse_ones_are_explained() -> None:
    page = printed()
    assert page.count("not resolved") == 12
    assert "~: coarse." in page


def test_findings_and_what_was_not_measured_are_told_below() -> None:
    page = words(printed())
    for finding in audited().findings:
        mark = {"invalid": "✗", "warning": "!", "note": "·"}[finding.severity]
        assert f"{mark} {finding.about}: {finding.text}" in page
    for missing in audited().not_measured:
        assert f"not measured: {missing}" in page
    assert "Control, identities shuffled: 8 of 8 at chance." in page


def test_what_reading_changed_is_told_too() -> None:
    source = audited().source.model_copy(update={"notes": ["skipped 2 of 482 rows: 2 with NaN in 'vector'"]})
    page = words(printed(audited().model_copy(update={"source": source})))
    assert "· reading: skipped 2 of 482 rows: 2 with NaN in 'vector'" in page


def test_an_invalid_audit_is_called_so_in_the_frame() -> None:
    broken = Finding(severity="invalid", about="shuffled identities", text="no number here can be trusted")
    result = audited().model_copy(
        update={
            "valid": False,
            "verdict": "The audit is invalid: no number here can be trusted",
            "findings": [broken],
            "controls": invalid_audit().controls,
        }
    )
    page = printed(result)
    assert "invalid" in page.splitlines()[0]
    assert "verdict" in printed().splitlines()[0]
    assert "Control, identities shuffled: 2 of 3 at chance." in page
    assert "✗ shuffled identities: no number here can be trusted" in words(page)


def test_the_spread_over_seeds_is_said_to_under_cover() -> None:
    paper = audited().protocol.model_copy(update={"variant": "paper"})
    assert "spread over seeds, which under-covers" in printed(audited().model_copy(update={"protocol": paper}))
    assert "identities resampled" in printed()


def test_markup_in_the_name_of_a_file_is_printed_as_it_is() -> None:
    source = audited().source.model_copy(update={"name": "[red]faces[/nothing].parquet"})
    assert "[red]faces[/nothing].parquet: 480 vectors" in words(
        printed(audited().model_copy(update={"source": source}))
    )


def wide(result: AuditResult) -> list[str]:
    return printed(result, 200).splitlines()


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
    lines = wide(full)
    for space in full.spaces[1:]:
        assert space.erasure is not None
        row = row_of(lines, space.name, "FAR 1e-4")
        assert f"{space.erasure.rank} of {space.erasure.dim}" in row
        assert ("(control)" in row) == space.erasure.control
        change = next(one for one in space.changes if one.against == "raw")
        assert signed_points(change.value) in row


def test_a_change_whose_interval_holds_zero_is_marked() -> None:
    assert "−1.0 ?" in row_of(wide(with_change(-0.01, -0.03, 0.01)), "isp", "FAR 1e-4")
    assert "?" not in row_of(wide(with_change(-0.01, -0.03, -0.001)), "isp", "FAR 1e-4")
    assert "?" not in row_of(wide(with_change(0.01, 0.001, 0.03)), "isp", "FAR 1e-4")


def test_what_is_kept_is_shown_with_its_interval() -> None:
    full = full_audit()
    kept = full.spaces[1].utility[0].retained
    assert f"{100 * kept.value:.0f} [{100 * kept.low:.0f}, {100 * kept.high:.0f}]" in row_of(
        wide(full), "isp", "share kept"
    )


def test_an_audit_of_the_raw_space_alone_has_neither_table() -> None:
    assert not [line for line in wide(raw_audit()) if line.startswith(("worst case at k", "share kept"))]
