"""If these fail, a notebook shows a wall of text, another number than the file's, or something that a name planted."""

import copy
import pickle
from typing import cast

import pytest
from markupsafe import escape

from tests.auditing.made import point
from tests.gate import test_inversion as inversions
from tests.gate import test_release as releases
from tests.gate.made import INVALID, audited, erased, raw
from tests.gate.test_certificate import certificate
from tests.gate.test_protection import protection
from tests.report.made import full_audit
from tests.report.made_validation import validation
from unface.auditing.albums import AlbumPoint, AlbumResults
from unface.gate import Trend, compare
from unface.report.validation import render_validation
from unface.result.audit import AuditResult
from unface.result.history import past_result
from unface.result.readings import Told, ToldFile
from unface.result.validation import ValidationResult

HOSTILE = '"><script>alert(1)</script>'


def test_an_audit_shows_banner_conclusion_and_bars_in_a_few_kilobytes() -> None:
    html = full_audit()._repr_html_()
    assert "<strong>No policy set.</strong>" in html
    assert "Given two photos of the same stranger, an attacker matches them 6.6 % of the time" in html
    assert "What is left: 2.6 % after isp." in html
    assert html.count("<svg") == 4  # raw, isp and two controls
    assert "6.6 [6.2, 7.1]" in html
    assert len(html) < 8_000
    assert not any(word in html for word in ("http", "<script", "@import", "url("))


def test_an_invalid_result_shows_no_number() -> None:
    for html in (
        audited(raw(), findings=[INVALID])._repr_html_(),
        validation(findings=(INVALID,))._repr_html_(),
        protection(invalid=True)._repr_html_(),
    ):
        assert "<strong>Invalid.</strong> Do not use these numbers." in html
        assert "<svg" not in html
        assert "30.0" not in html


def test_chance_is_not_called_a_match() -> None:
    html = audited(raw(point(0.0001, 0.0, 0.0003)))._repr_html_()
    assert "no more often than by chance" in html


def test_a_validation_shows_every_attack_and_the_ceiling() -> None:
    html = validation()._repr_html_()
    assert html.count("<svg") == 3
    assert "a real second photo" in html
    assert "After 100 questions about a person, FAR 1e-3" in html
    assert len(html) < 8_000
    assert len(repr(validation())) < 300


OTHERS = {
    "release": releases.result(releases.view(listed=4)),
    "inversion": inversions.result(inversions.cell("alsuv", 30)),
    "protection": protection(),
    "certificate": certificate(),
}


@pytest.mark.parametrize("result", OTHERS.values(), ids=OTHERS)
def test_every_other_result_shows_its_verdict_and_its_shares(result: ToldFile) -> None:
    told, html = cast(Told, result), result._repr_html_()
    shares = [one.found for one in told.readings() if one.found is not None and one.is_share]
    assert html.count("<svg") == len(shares) > 0
    assert str(escape(told.verdict)) in html
    assert len(html) < 8_000
    assert "<script" not in html
    assert "<b>" not in html, "a name of the file is text"
    assert len(repr(result)) < 1_000
    frame = result.to_frame()
    assert len(frame) == sum(one.found is not None for one in told.readings())
    assert [*frame["value"]] == [one.found.value for one in told.readings() if one.found is not None]
    spec = result.plot().to_dict()
    (rows,) = spec["datasets"].values()
    assert [row["share"] for row in rows] == [one.value for one in shares]
    assert pickle.loads(pickle.dumps(result)) == result


def test_names_are_text() -> None:
    planted = audited(raw(), erased(HOSTILE))
    planted = planted.model_copy(update={"source": planted.source.model_copy(update={"name": HOSTILE})})
    for html in (planted._repr_html_(), validation(name=HOSTILE)._repr_html_()):
        assert "<script" not in html
        assert "&lt;script" in html


@pytest.mark.parametrize("result", [full_audit(), validation()], ids=["audit", "validation"])
def test_results_can_be_copied_and_pickled(result: AuditResult | ValidationResult) -> None:
    for again in (copy.copy(result), copy.deepcopy(result), pickle.loads(pickle.dumps(result))):
        assert again == result
        assert again.file_text() == result.file_text()


def _rows(result: AuditResult | ValidationResult) -> list[dict[str, object]]:
    spec = result.plot().to_dict()
    rows: list[dict[str, object]] = spec["datasets"][spec["data"]["name"]]
    return rows


def test_charts_hold_the_worst_attacker_of_each_space_and_every_attack() -> None:
    rows = _rows(full_audit())
    assert {(row["space"], row["k"], row["FAR"]) for row in rows} == {
        (space.name, one.k, f"1e-{3 if one.far == 1e-3 else 4}")
        for space in full_audit().spaces
        for one in space.points
    }
    assert {row["attacker"] for row in rows} == {"lda"}
    rows = _rows(validation())
    assert len(rows) == 2 * 2 * 2
    assert {"attack": "scores", "questions": 100, "FAR": "0.01", "recovered": 0.6}.items() <= rows[1].items()


def test_frames_are_tidy_and_albums_are_rows_of_their_own() -> None:
    base = full_audit()
    album = AlbumPoint(
        space="isp", probe="lda", first=2, second=3, far=1e-4, resolution="resolved", worst=True, tar=base.worst[0].tar,
        achieved_far=None, chance=1e-4, times_chance=9.0, threshold=0.5, calibrate_tar=0.1,
    )  # fmt: skip
    albums = AlbumResults(k=4, images=20, deals=3, points=[album], changes=[], shuffled_identities=[])
    frame = base.model_copy(update={"parts": {"albums": albums}}).to_frame()
    keys = ["space", "probe", "k", "album", "against", "far"]
    assert not frame.duplicated(keys).any()
    (row,) = frame[frame.album > 1].to_dict("records")
    assert [row[key] for key in keys] == ["isp", "lda", 4, 2, 3, 1e-4]
    found = validation().to_frame()
    assert not found.duplicated(["attack", "queries", "far", "judge", "pictures"]).any()
    assert len(found) == 8


def test_a_validation_is_compared_by_its_worst_attack_and_has_a_trend() -> None:
    diff = compare(validation(0.3), validation(0.9))
    assert diff.exit_code == 3
    (row,) = (row for row in diff.rows if row.headline)
    assert (row.name, row.trend) == ("recovered, 100 questions, FAR 1e-3", Trend.WORSE)
    assert compare(validation(0.9), validation(0.3)).exit_code == 0
    history = [past_result(validation(0.3)), past_result(validation(0.9))]
    page = render_validation(validation(0.9), history)
    assert "recovered 15.0 % in the first, 45.0 % in the last" in page
