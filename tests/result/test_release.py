"""If these fail, the verdict on a synthetic set does not follow from its numbers."""

import json
from pathlib import Path

import pytest

from tests.kit.results import exact_copies, exposure, view
from tests.kit.results import release as result
from unface.result.file import Finding, Listing
from unface.result.numbers import Estimate
from unface.result.release import (
    EnrichmentResult,
    ReleaseResult,
    ViewResult,
)


def test_the_longest_list_of_people_counts_and_exact_copies_beyond_those_of_strangers() -> None:
    both, more = result(view(listed=40), fused=exposure(44)), result(view(listed=40), fused=exposure(3))
    assert both.exposure is both.fused
    assert more.exposure is more.main.exposure
    assert exact_copies(1, 1).found
    assert not exact_copies(3, 0).model_copy(update={"holdout": 3}).found, "strangers collide as often"
    without = result(view(listed=3), holds=False)
    assert (without.evidence, without.comparable, without.valid) == ([], False, False)


def near(name: str, p: float, listed: int = 0, training: int = 1_500) -> ViewResult:
    found = EnrichmentResult(nearest=2_000, training=training, expected=1_000.04, p=p)
    return view(name, listed=listed).model_copy(update={"enrichment": found})


def test_a_single_trait_that_lists_more_people_is_named_if_its_test_passes_the_correction() -> None:
    found = result(near("face", 0.5), near("eyes", 0.002, 1_000), fused=exposure(44))
    assert [one.name for one in found.enriched] == ["eyes"]
    # Two tests: 2 · 0.005 = 0.01 is not below 0.01.
    assert result(near("face", 0.5), near("eyes", 0.005, 1_000)).enriched == []
    # No p-value is above 1, and none is below that of a view with a smaller one.
    assert result(near("a", 0.6), near("b", 0.7)).corrected == {"a": 1.0, "b": 1.0}
    assert result(near("a", 0.004), near("b", 0.005)).corrected == {"a": 0.008, "b": 0.008}
    assert result(view("a"), near("b", 0.004)).corrected == {"b": 0.004}, "a view of an earlier version has no test"


def test_a_release_is_compared_by_named_numbers_of_its_main_view() -> None:
    found = result(view("face", listed=40), view("eyes"))
    assert [(one.name, one.headline, one.is_share, one.better) for one in found.readings()] == [
        ("people exposed, FDR 5.0 %", True, True, "lower"),
        ("face: nearest is a training person, all faces", False, True, "lower"),
        ("face: copies, FAR 1e-4", False, True, "lower"),
        ("face: copies, FAR 1e-5", False, True, "lower"),
        ("face: separation, AUC, people", False, False, "lower"),
    ]
    values = [one.found.value for one in found.readings() if one.found is not None]
    assert values == [0.04, 0.5, 0.005, 0.005, 0.5]
    assert found.readings()[-1].found == Estimate(0.5, 0.48, 0.52, 0.95)
    assert (found.subject, found.conditions()) == ("drawn", {"views": "face, eyes"})
    broken = result(findings=[Finding(severity="invalid", about="a", text="b")])
    assert (broken.valid, found.valid, result(exchangeable=None).valid) == (False, True, True)


@pytest.mark.parametrize("shows_faces", [False, True])
def test_the_list_of_people_and_a_page_with_faces_are_for_their_owner_alone(tmp_path: Path, shows_faces: bool) -> None:
    people = Listing(("identity",), [("Ann",)], "exposed people")
    found = result(view(listed=1))
    path = found.save(tmp_path, "<p>", exposed=people, shows_faces=shows_faces)
    assert path == tmp_path / "release.json"
    assert {one.name for one in tmp_path.iterdir()} == {"release.json", "release.html", "exposed.csv"}
    assert (tmp_path / "exposed.csv").read_text() == "identity\nAnn\n"
    assert (tmp_path / "release.html").read_text() == "<p>"
    alone = {one.name for one in tmp_path.iterdir() if not one.stat().st_mode & 0o077}
    assert alone == ({"exposed.csv", "release.html"} if shows_faces else {"exposed.csv"})
    assert ReleaseResult.load(path) == found
    found.save(tmp_path, "<p>")
    assert not (tmp_path / "exposed.csv").exists(), "a list of an earlier set does not stay"
    assert "Ann" not in json.dumps(json.loads(path.read_text()))
