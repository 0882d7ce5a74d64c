"""If these fail, the verdict on a synthetic set does not follow from its numbers."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.gate.test_release import exposure, facts, result, share, view
from unface.result.file import Finding, Listing
from unface.result.numbers import Estimate
from unface.result.release import (
    CopiesResult,
    EnrichmentResult,
    ExactCopies,
    PermutationTest,
    ReleaseResult,
    ViewResult,
)

DO_NOT = "Do not publish this set as it is: "


def permuted(p: float) -> PermutationTest:
    return PermutationTest(p=p, exact=True, permutations=None)


def near(name: str, p: float, listed: int = 0, training: int = 1_500) -> ViewResult:
    found = EnrichmentResult(nearest=2_000, training=training, expected=1_000.04, p=p)
    return view(name, listed=listed).model_copy(update={"enrichment": found})


def copied(p: float, far: float, number: int = 5) -> CopiesResult:
    one = view().copies[0]
    return one.model_copy(
        update={"far": far, "test": permuted(p), "copies": share(number, 1000, 0, 0.01), "expected": 0.26}
    )


def test_people_that_are_listed_are_counted_with_the_share_of_false_alarms() -> None:
    found = result(view(listed=40))
    assert found.decision == "exposes people"
    assert found.verdict == (
        f"{DO_NOT}it exposes 40 of its 1,000 training people. Of these 40, on average at most 5.0 % are false alarms."
    )
    one = result(view(listed=1), training=facts("people", 1))
    assert one.verdict.startswith(f"{DO_NOT}it exposes 1 of its 1 training person. Of these 1,")
    both = result(view(listed=40), fused=exposure(44))
    assert both.exposure is both.fused
    assert both.verdict.startswith(f"{DO_NOT}it exposes 44 of its 1,000 training people. Of these 44,")
    more = result(view(listed=40), fused=exposure(3))
    assert more.exposure is more.main.exposure
    assert more.verdict.startswith(f"{DO_NOT}it exposes 40 of its 1,000 training people. ")


def test_a_single_trait_that_lists_more_people_is_named_if_its_test_passes_the_correction() -> None:
    found = result(near("face", 0.5), near("eyes", 0.002, 1_000), fused=exposure(44))
    assert found.verdict == (
        f"{DO_NOT}it exposes 1,000 of its 1,000 training people by eyes alone. Of these 1,000, on average at most "
        "5.0 % are false alarms."
    )
    assert [one.name for one in found.enriched] == ["eyes"]
    # Two tests: 2 · 0.005 = 0.01 is not below 0.01.
    assert result(near("face", 0.5), near("eyes", 0.005, 1_000)).enriched == []
    # No p-value is above 1, and none is below that of a view with a smaller one.
    assert result(near("a", 0.6), near("b", 0.7)).corrected == {"a": 1.0, "b": 1.0}
    assert result(near("a", 0.004), near("b", 0.005)).corrected == {"a": 0.008, "b": 0.008}
    assert result(view("a"), near("b", 0.004)).corrected == {"b": 0.004}, "a view of an earlier version has no test"


def test_every_piece_of_evidence_is_said_in_words() -> None:
    sure = view().membership.model_copy(update={"share": share(600, 1000, 0.5, 0.7), "test": permuted(0.00042)})
    views = (
        near("face", 0.5).model_copy(
            update={"membership": sure, "copies": [copied(0.009, 1e-3), copied(0.0081, 1e-4, 1), copied(0.02, 1e-5)]}
        ),
        near("eyes", 0.00211),
    )
    found = result(*views, exact=ExactCopies(faces=2_000, people=1_000, holdout=1_999))
    exact = "2,000 synthetic faces are an exact copy of a picture of 1,000 training people"
    member = "60.0 % of the synthetic faces are nearest to a training person, where 50.0 % is chance (p = 0.00042)"
    trait = "by eyes, 1,500 of the 2,000 people nearest to synthetic faces are training people, where 1000.0 is chance"
    near_copy = (
        "1 synthetic face is as near to a training picture as one in 10,000 pairs of strangers is, where the holdout "
        "leads to expect 0.3 (p = 0.0081)"
    )
    assert found.evidence == [exact, member, f"{trait} (p = 0.0042)", near_copy]
    assert found.decision == "leaks"
    assert found.verdict == f"{DO_NOT}{'; '.join(found.evidence)}."
    told = result(*views).verdict
    assert told == (
        f"{DO_NOT}{'; '.join(found.evidence[1:])}. No single person could be listed; with this holdout that takes "
        "2 people."
    )
    few = views[0].model_copy(update={"exposure": exposure(0, 1)})
    assert result(few).verdict.endswith("; with this holdout that takes 1 person.")
    for least, said in ((1000, "with this holdout that takes 1,000 people."), (1001, "too small to list anybody.")):
        assert result(views[0].model_copy(update={"exposure": exposure(0, least)})).verdict.endswith(said)


def test_exact_copies_count_beside_a_holdout_that_is_worth_nothing_and_p_values_do_not() -> None:
    one = ExactCopies(faces=1, people=1)
    sure = view().membership.model_copy(update={"test": permuted(0.0001)})
    leaky = view(listed=3).model_copy(update={"membership": sure})
    found = result(leaky, holds=False, exact=one)
    assert found.evidence == ["1 synthetic face is an exact copy of a picture of 1 training person"]
    assert (found.decision, found.valid) == ("leaks", False)
    assert found.verdict == f"{DO_NOT}1 synthetic face is an exact copy of a picture of 1 training person."
    without = result(leaky, holds=False)
    assert (without.decision, without.evidence, without.comparable) == ("not comparable", [], False)
    assert without.verdict == (
        "These numbers cannot decide: training and holdout pictures differ by more than their people. "
        "Give a holdout from the same source, with the same camera and crop."
    )
    assert not ExactCopies(faces=3, holdout=3).found, "strangers collide as often"
    assert result(exact=ExactCopies(faces=3, holdout=3)).evidence == []


def test_no_evidence_says_what_could_not_have_been_seen() -> None:
    def quiet(least: int, **more: Any) -> str:
        return result(view(least=least), **more).verdict

    begin = "No evidence that this set exposes its training people"
    shows = f"{begin}. This holdout can only show exposure of"
    assert quiet(2) == f"{shows} 2 people or more; fewer can go unnoticed."
    assert quiet(1) == f"{shows} 1 person or more; fewer can go unnoticed."
    assert quiet(1000) == f"{shows} 1,000 people or more; fewer can go unnoticed."
    small = f"{begin}, but this holdout is too small to list anybody: it has"
    assert quiet(1001) == f"{small} 1,000 people, and at least 19 are needed."
    assert quiet(1001, holdout=facts("others", 1)) == f"{small} 1 person, and at least 19 are needed."
    at_limit = [copied(0.01, 1e-4)]
    assert result(view().model_copy(update={"copies": at_limit})).decision == "no evidence", "below 0.01, not at it"
    edge = view().membership.model_copy(update={"test": permuted(0.01)})
    assert result(view().model_copy(update={"membership": edge})).decision == "no evidence"


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
    assert repr(found) == str(found) == f"<ReleaseResult drawn: {found.verdict} 0 findings>"
    broken = result(findings=[Finding(severity="invalid", about="a", text="b")])
    assert (broken.valid, found.valid, result(exchangeable=None).valid) == (False, True, True)
    assert repr(broken) == f"<ReleaseResult INVALID, drawn: {broken.verdict} 1 finding>"


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
