"""If these fail, the terminal shows other numbers than audit.json holds, or hides what it could not measure."""

from io import StringIO

from rich.console import Console
from unface.auditing.words import interval, percent

from tests.auditing.made import audited, controls
from unface.auditing import AuditResult, Finding
from unface.report import print_audit


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
    curated = audited().curated.model_copy(update={"identities": 58, "identities_dropped": 1234})
    assert "Used: 58 × 8 images, 1,234 with fewer left out." in words(
        printed(audited().model_copy(update={"curated": curated}))
    )


def test_every_number_of_the_audit_is_in_the_table() -> None:
    page = words(printed())
    for point in audited().spaces[0].points:
        if point.tar:
            shown = f"{percent(point.tar.value).removesuffix(' %')} {interval(point.tar.low, point.tar.high)}"
            assert f"~{shown}" in page if point.resolution == "coarse" else shown in page


def test_rows_are_the_probes_of_each_k_and_the_worst_is_marked_once_for_each_rate() -> None:
    lines = printed().splitlines()
    rows = [line for line in lines if line.split()[:1] and line.split()[0] in audited().protocol.probes]
    assert [row.split()[0] for row in rows] == ["cosine", "ridge", "lda", "plda"] * 2
    assert sum(row.count("◂") for row in rows) == len(audited().worst) == 3
    for point in audited().worst:
        row = rows[audited().protocol.ks.index(point.k) * 4 + audited().protocol.probes.index(point.probe)]
        assert "◂" in row


def test_refused_rates_are_shown_as_not_resolved_and_coarse_ones_are_explained() -> None:
    page = printed()
    assert page.count("not resolved") == 4
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
            "controls": controls(passed=False),
        }
    )
    page = printed(result)
    assert "invalid" in page.splitlines()[0]
    assert "verdict" in printed().splitlines()[0]
    assert "Control, identities shuffled: 0 of 1 at chance." in page
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
