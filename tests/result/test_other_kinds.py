"""If these fail, a result of any kind but an audit is compared, or concludes, by something else than its numbers."""

import json
import math
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.results import (
    INVALID,
    WARNING,
    attacker,
    attribution,
    certificate,
    exact_copies,
    exposure,
    protection,
    release,
    validation,
    view,
)
from tests.kit.results import accuracy as pairs
from tests.kit.results import of_400 as share
from tests.kit.results import validated_attack as attack
from unface.errors import UnfaceError
from unface.result.attribution import AttributionResult, require_no_attribution
from unface.result.certificate import CertificateResult
from unface.result.file import NO_RATE, Finding, Listing
from unface.result.numbers import Estimate, Interval, Share
from unface.result.protection import AttackerResult, MethodResult, PairsResult, ProtectionResult, spread
from unface.result.release import (
    EnrichmentResult,
    ReleaseResult,
    ViewResult,
)
from unface.result.validation import AttackResult, Success, ValidationResult, measured


def with_maps(inputs: int, *maps: tuple[int, float | None]) -> CertificateResult:
    """Maps by rank and dB under noise; nobody looked at pictures."""
    made = certificate(encoder=False)
    (one,) = made.maps
    found = [one.model_copy(update={"rank": rank, "noise_psnr": psnr}) for rank, psnr in maps]
    return made.model_copy(update={"inputs": inputs, "maps": found, "pictures": None})


def test_a_certificate_is_compared_by_recognition_and_psnr() -> None:
    found = certificate(0.02)
    first, second = found.readings()
    assert found.pictures is not None
    assert found.pictures.identity is not None
    assert (first.name, first.found, first.headline) == (
        "recognised, sface, FAR 1e-3",
        found.pictures.identity.reconstructions,
        True,
    )
    assert (second.name, second.is_share, second.headline) == ("PSNR of least squares, 16 × 16", False, False)
    assert second.found is not None
    assert (second.found.value, second.found.low, second.found.high, second.found.level) == (20.0, 19.0, 21.0, 0.95)
    assert found.conditions() == {"size": "16", "pictures": "abababababab"}
    bare = with_maps(768, (9, None))
    assert [(one.name, one.found) for one in bare.readings()] == [
        ("recognised, no recogniser", None),
        ("PSNR of least squares, 16 × 16", None),
    ]
    assert bare.conditions() == {"size": "16", "pictures": "none"}
    assert bare.to_frame().empty
    seen = certificate(encoder=False).readings()
    assert (seen[0].found, seen[0].at, seen[1].found) == (None, "no recogniser", second.found)


def test_it_is_named_by_its_variant_and_valid_unless_a_finding_says_otherwise() -> None:
    found = certificate()
    assert found.subject == "dctdp (published)"
    assert found.model_copy(update={"variant": None}).subject == "dctdp"
    assert found.model_copy(update={"findings": [WARNING]}).valid
    broken = found.model_copy(update={"findings": [WARNING, INVALID]})
    assert not broken.valid
    assert (with_maps(9, (4, 8.0), (7, 9.0)).lost, with_maps(9, (4, 8.0), (7, 9.0)).noise_psnr) == ((2, 5), 9.0)


def linked(hits: int, low: float, **more: object) -> AttackerResult:
    """Of 1,000 pairs, up to 5 points more."""
    share = Share.counted(hits, 1000, Interval(low, hits / 1000 + 0.05, 0.95), 20)
    return attacker("one", 0).model_copy(update={"same": share, "other": share, **more})


def method(*attackers: AttackerResult, name: str = "FaceMAE", utility: bool = False, **more: object) -> MethodResult:
    made = MethodResult(
        name=name, ratio=0.75, audited=name == "FaceMAE", pictures=9, people=3,
        utility=[pairs(0.8)] if utility else [], attackers=list(attackers),
    )  # fmt: skip
    return made.model_copy(update=more)


def protected(*methods: MethodResult) -> ProtectionResult:
    return protection().model_copy(update={"methods": list(methods)})


def test_people_are_linked_only_beyond_the_rate_asked_for_and_the_one_that_was_reached() -> None:
    for far, achieved, links in ((1e-3, 0.01, False), (0.01, 1e-3, False), (0.0099, 0.0099, True)):
        assert protected(method(linked(20, 0.01, far=far, achieved_far=achieved))).links is links
    one_picture = linked(500, 0.4, other=None)
    assert protected(method(one_picture)).links


def test_the_worst_attacker_is_chosen_on_calibrate_people_and_the_audited_method_by_its_mark() -> None:
    strong, weak, unknown = (
        linked(10, 0.0, name=name, calibrate_other=at) for name, at in (("s", 0.2), ("w", 0.1), ("u", None))
    )
    audited = method(unknown, weak, strong)
    assert audited.worst is strong
    assert method().worst is None
    originals = method(name="originals", ratio=None)
    plain, other = method(name="plain MAE"), method(name="plain MAE", ratio=0.5)
    found = protected(originals, other, plain, audited)
    assert (found.audited, found.originals, found.plain) == (audited, originals, plain)
    assert protected(originals, other).plain is None, "without a mark the first is audited, of which nothing is hidden"
    assert protected(originals).audited is originals
    assert protected(plain).originals is None
    assert (audited.label, originals.label) == ("FaceMAE, 75.0 % hidden", "originals")
    assert (audited.accuracy, method(utility=True).accuracy) == (None, pairs(0.8).accuracy)


def test_the_risk_is_that_among_most_people() -> None:
    one = attacker("one", 30)
    found = one.risk(2, "other")
    assert found is not None
    assert (found.identities, found.k, found.pictures) == (20, 2, "other")
    assert one.risk(3, "other") is one.risk(2, "any") is None


def test_a_protection_is_compared_by_its_worst_attacker_and_its_accuracy() -> None:
    found = protected(method(attacker("weak", 0), attacker("fine-tuned", 30, 0.5), utility=True))
    readings = found.readings()
    assert [(one.name, one.better, one.headline) for one in readings] == [
        ("release: TAR, another picture, FAR 1e-3", "lower", True),
        ("release: TAR, the same picture, FAR 1e-3", "lower", False),
        ("release: retrieval risk, K = 1, same picture", "lower", False),
        ("release: retrieval risk, K = 2, same picture", "lower", False),
        ("release: retrieval risk, K = 1, other picture", "lower", False),
        ("release: retrieval risk, K = 2, other picture", "lower", False),
        ("release: accuracy, lfw", "higher", False),
    ]
    worst = found.audited.attackers[1]
    assert [one.found for one in readings[:2]] == [worst.other, worst.same]
    assert [one.found for one in readings[2:6]] == [risk.share for risk in worst.retrieval if risk.identities == 20]
    assert readings[-1].found == pairs(0.8).accuracy
    assert found.conditions() == {"attackers": "weak, fine-tuned", "people": "20 people"}
    assert found.model_copy(update={"measured_people": 1}).conditions()["people"] == "1 person"
    assert protected(method()).readings() == []
    assert found.subject == "set"
    assert found.model_copy(update={"findings": [WARNING]}).valid
    assert not found.model_copy(update={"findings": [WARNING, INVALID]}).valid


def test_folds_and_seeds_are_noise_that_adds_up_by_hand() -> None:
    """Two folds 0.6 and 0.8: s = √0.02, half = 12.706 · √0.02 / √2 = 1.2706. Seeds 0.6 and 0.8 as much again."""
    one = spread([[0.6, 0.8]])
    assert (one.value, one.high - one.value, one.value - one.low, one.level) == pytest.approx(
        (0.7, 1.2706, 1.2706, 0.95)
    )
    both = spread([[0.5, 0.7], [0.7, 0.9]])
    assert both.high - both.value == pytest.approx(1.2706 * math.sqrt(2))
    assert spread([[0.6], [0.8]]).high == pytest.approx(0.7 + 1.2706), "one fold has no spread of its own"
    assert spread([[0.6]]) == Estimate(0.6, 0.6, 0.6, 0.95)
    # Three folds: 4.303 · 0.1 / √3. Twelve folds of which half are 0.1 apart: t of ten degrees, not eleven.
    three = spread([[0.4, 0.5, 0.6]])
    assert three.high - three.value == pytest.approx(4.303 * 0.1 / math.sqrt(3))
    for folds, t in ((10, 2.262), (11, 2.228), (12, 2.228), (13, 2.228)):
        values = [0.5] * (folds - 1) + [0.6]
        sigma = 0.1 / math.sqrt(folds)  # of one value that is 0.1 above all others
        assert spread([values]).high - spread([values]).value == pytest.approx(t * sigma / math.sqrt(folds))


def test_accuracy_stays_a_share_and_is_compared_over_the_seeds_that_both_have() -> None:
    wide = PairsResult(name="lfw", pairs=10, seeds=[1], by_seed=[[0.1, 0.9]])
    assert (wide.accuracy.low, wide.accuracy.value, wide.accuracy.high) == (0.0, 0.5, 1.0)
    assert wide.by_fold == [0.1, 0.9]
    mine = PairsResult(name="lfw", pairs=10, seeds=[1, 2], by_seed=[[0.5, 0.7], [0.9, 0.9]])
    theirs = PairsResult(name="lfw", pairs=10, seeds=[3, 1], by_seed=[[0.0, 0.0], [0.25, 0.25]])
    less = mine.less(theirs)
    assert less is not None
    assert (less.value, less.high - less.value) == pytest.approx((0.35, 12.706 * 0.1))
    assert mine.by_fold == pytest.approx([0.7, 0.8])
    others = ({"seeds": [3, 4]}, {"name": "agedb_30"}, {"by_seed": [[0.1] * 3] * 2})
    assert [mine.less(mine.model_copy(update=change)) for change in others] == [None] * 3


@pytest.mark.parametrize(
    ("seeds", "folds"), [([1, 2], [[0.5]]), ([1], [[0.5], [0.5]]), ([1, 2], [[0.5], [0.5, 0.6]]), ([1], [[]])]
)
def test_seeds_without_equally_many_folds_are_refused(seeds: list[int], folds: list[list[float]]) -> None:
    with pytest.raises(ValueError, match=f"{len(seeds)} seeds do not have equally many folds each"):
        PairsResult(name="lfw", pairs=10, seeds=seeds, by_seed=folds)


def test_the_longest_list_of_people_counts_and_exact_copies_beyond_those_of_strangers() -> None:
    both, more = release(view(listed=40), fused=exposure(44)), release(view(listed=40), fused=exposure(3))
    assert both.exposure is both.fused
    assert more.exposure is more.main.exposure
    assert exact_copies(1, 1).found
    assert not exact_copies(3, 0).model_copy(update={"holdout": 3}).found, "strangers collide as often"
    without = release(view(listed=3), holds=False)
    assert (without.evidence, without.comparable, without.valid) == ([], False, False)


def near(name: str, p: float, listed: int = 0, training: int = 1_500) -> ViewResult:
    found = EnrichmentResult(nearest=2_000, training=training, expected=1_000.04, p=p)
    return view(name, listed=listed).model_copy(update={"enrichment": found})


def test_a_single_trait_that_lists_more_people_is_named_if_its_test_passes_the_correction() -> None:
    found = release(near("face", 0.5), near("eyes", 0.002, 1_000), fused=exposure(44))
    assert [one.name for one in found.enriched] == ["eyes"]
    # Two tests: 2 · 0.005 = 0.01 is not below 0.01.
    assert release(near("face", 0.5), near("eyes", 0.005, 1_000)).enriched == []
    # No p-value is above 1, and none is below that of a view with a smaller one.
    assert release(near("a", 0.6), near("b", 0.7)).corrected == {"a": 1.0, "b": 1.0}
    assert release(near("a", 0.004), near("b", 0.005)).corrected == {"a": 0.008, "b": 0.008}
    assert release(view("a"), near("b", 0.004)).corrected == {"b": 0.004}, "a view of an earlier version has no test"


def test_a_release_is_compared_by_named_numbers_of_its_main_view() -> None:
    found = release(view("face", listed=40), view("eyes"))
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
    broken = release(findings=[Finding(severity="invalid", about="a", text="b")])
    assert (broken.valid, found.valid, release(exchangeable=None).valid) == (False, True, True)


@pytest.mark.parametrize("shows_faces", [False, True])
def test_the_list_of_people_and_a_page_with_faces_are_for_their_owner_alone(tmp_path: Path, shows_faces: bool) -> None:
    people = Listing(("identity",), [("Ann",)], "exposed people")
    found = release(view(listed=1))
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


def success(
    queries: int, far: float, other: Share | None, same: Share | None = None, chance: float = 0.0, judge: str = "all"
) -> Success:
    return Success(queries=queries, far=far, judge=judge, same=same, other=other, chance=chance)


def of(*points: Success, name: str = "scores", **more: object) -> ValidationResult:
    one = AttackResult(name=name, adaptive=False, settings=[], at=list(points))
    return validation().model_copy(update={"attacks": [one], **more})


def test_nothing_measured_and_a_failed_control_are_said_instead_of_numbers() -> None:
    assert not validation(findings=(WARNING, INVALID)).valid
    assert validation(findings=(WARNING,)).valid
    for empty in (of(), of(success(5, 1e-3, None)), of(success(5, 1e-3, share(0.5), judge="one"))):
        assert empty.headline is None
    assert (of().far, of().readings()) == ([], [])
    (reading,) = of(success(5, 1e-3, None)).readings()
    assert (reading.found, reading.headline, reading.at) == (None, False, "5 questions, FAR 1e-3")


def test_the_headline_is_the_lowest_rate_where_one_in_a_thousand_is_missing() -> None:
    rates = (0.05, 1e-4, 1e-2)
    found = of(*(success(queries, far, share(0.5)) for far in rates for queries in (2, 9, 4)))
    assert found.far == [0.05, 1e-2, 1e-4]
    head = found.headline
    assert head is not None
    assert (head.attack, head.point.far, head.point.queries) == ("scores", 1e-4, 9)
    with_it = of(*(success(3, far, share(0.5)) for far in (*rates, 1e-3)), success(9, 1e-4, share(0.5)))
    assert with_it.headline is not None
    assert (with_it.headline.point.far, with_it.headline.point.queries) == (1e-3, 3)


def test_an_attack_that_was_chosen_on_other_people_is_quoted_before_the_largest_number() -> None:
    one = success(100, 1e-3, share(0.2)).model_copy(update={"attacks": ["scores", "best-of-n"]})
    chosen = AttackResult(name="worst case", adaptive=False, settings=[], at=[one])
    found = validation(0.6).model_copy(update={"worst_case": chosen})
    worst = found.worst(1e-3, 100)
    assert worst is not None
    assert (worst.attack, worst.point) == ("scores or best-of-n", one)
    assert found.worst(1e-2, 100) is None
    plain = validation(0.6).worst(1e-2, 10)
    assert plain is not None
    assert (plain.attack, measured(plain.point)) == ("scores", share(0.3))
    assert validation().attacks[0].point(10, 1e-2, "one judge") is None
    turned = validation(0.6)
    assert turned.model_copy(update={"attacks": turned.attacks[::-1]}).worst(1e-2, 10) == plain, "not the first one"


def test_a_validation_is_compared_by_the_worst_attack_at_each_rate_and_number_of_questions() -> None:
    found = validation(0.6)
    assert [(one.name, one.found, one.headline) for one in found.readings()] == [
        ("recovered, 10 questions, FAR 0.01", share(0.3), False),
        ("recovered, 100 questions, FAR 0.01", share(0.6), False),
        ("recovered, 10 questions, FAR 1e-3", share(0.15), False),
        ("recovered, 100 questions, FAR 1e-3", share(0.3), True),
    ]
    assert of(success(1, 1e-3, share(0.5))).readings()[0].at == "1 question, FAR 1e-3"
    assert found.conditions() == {
        "attacker's encoder": "made-encoder",
        "judges": "judge",
        "attacks": "scores, best-of-n",
    }
    assert found.subject == "door"


def test_the_frame_has_a_row_for_each_kind_of_picture_that_was_compared() -> None:
    frame = of(
        success(5, 1e-3, share(0.5), share(0.75), 0.002), success(9, 1e-3, None, share(0.8)), success(1, 0.1, None)
    ).to_frame()
    assert list(frame.columns) == [
        *("attack", "queries", "far", "judge", "pictures", "recovered", "low", "high", "accepted", "compared", "chance")
    ]
    assert frame.to_numpy().tolist() == [
        ["scores", 5, 1e-3, "all", "other", 0.5, 0.45, 0.55, 200, 400, 0.002],
        ["scores", 5, 1e-3, "all", "same", 0.75, 0.7, 0.8, 300, 400, 0.002],
        ["scores", 9, 1e-3, "all", "same", 0.8, pytest.approx(0.75), pytest.approx(0.85), 320, 400, 0.0],
    ]


def test_two_attacks_of_one_name_are_refused() -> None:
    content = json.loads(validation().file_text())
    content["attacks"] = [json.loads(attack("scores", 0.1, 0.2).model_dump_json())] * 2
    with pytest.raises(ValueError, match="two attacks have one name"):
        ValidationResult.model_validate(content)


def test_without_a_rate_the_verdict_says_what_can_be_concluded() -> None:
    unfit = Finding(severity="invalid", about=NO_RATE, text="strangers pass too often; try others")
    for chance, said in ((0.094, "recovers something"), (0.9, "cannot be said")):
        found = of(success(20, 1e-3, share(0.5), chance=chance), findings=[unfit])
        assert not found.valid
        assert found.verdict.startswith("No rate of success can be stated: strangers pass too often.")
        assert said in found.verdict
    assert of(findings=[unfit]).verdict.startswith("These numbers cannot be used")
    assert of(success(20, 1e-3, share(0.5)), findings=[unfit, INVALID]).verdict.startswith("These numbers cannot")


def test_a_coarse_rate_is_said_in_the_verdict() -> None:
    plain = validation()
    coarse = [
        one.model_copy(
            update={"thresholds": [each.model_copy(update={"resolution": "coarse"}) for each in one.thresholds]}
        )
        for one in plain.judges
    ]
    assert "coarse" not in plain.verdict
    assert "coarse" in plain.model_copy(update={"judges": coarse}).verdict
    of_templates = [one.model_copy(update={"template_thresholds": coarse[0].thresholds}) for one in plain.judges]
    assert "coarse" in plain.model_copy(update={"judges": of_templates}).verdict


def test_pictures_that_were_left_out_are_named_beside_the_file_for_its_owner_alone(tmp_path: Path) -> None:
    path = attribution().save(str(tmp_path), "<p>")
    assert path == tmp_path / "attribution.json"
    assert {one.name for one in tmp_path.iterdir()} == {"attribution.json", "attribution.html", "left-out.csv"}
    assert (tmp_path / "attribution.html").read_text() == "<p>"
    assert (tmp_path / "left-out.csv").read_text() == "encoder,picture,step,reason\nmade,ann/7.jpg,picture,no face\n"
    assert [one.name for one in tmp_path.iterdir() if not one.stat().st_mode & 0o077] == ["left-out.csv"]
    text = path.read_text(encoding="utf-8")
    assert text.startswith('{\n  "schema": "unface.attribution/1",\n')
    assert "ann" not in text
    nobody = attribution().model_copy(update={"left_out": None})
    assert AttributionResult.model_validate_json(text) == nobody
    nobody.save(tmp_path)
    assert not (tmp_path / "left-out.csv").exists()


@pytest.mark.parametrize("name", ["attribution.json", "attribution.html", "left-out.csv"])
def test_a_finished_attribution_is_not_overwritten(tmp_path: Path, name: str) -> None:
    require_no_attribution(tmp_path, force=False)
    (tmp_path / name).touch()
    with pytest.raises(UnfaceError) as caught:
        require_no_attribution(tmp_path, force=False)
    assert (caught.value.where, caught.value.code) == (str(tmp_path / name), "output")
    require_no_attribution(tmp_path, force=True)


def test_a_killed_run_leaves_no_result_without_its_page_and_can_be_given_again(tmp_path: Path) -> None:
    """A child that is killed before its last rename, that of the result file."""
    killed = (
        "import os, signal, sys; from pathlib import Path; from tests.kit.results import attribution;"
        " real = Path.replace; Path.replace = lambda path, to: os.kill(os.getpid(), signal.SIGKILL)"
        " if to.suffix == '.json' else real(path, to); attribution('one').save(sys.argv[1], '<html></html>')"
    )
    child = subprocess.run([sys.executable, "-c", killed, str(tmp_path)], check=False)
    assert child.returncode == -signal.SIGKILL
    there = {path.name for path in tmp_path.iterdir() if not path.name.startswith(".")}
    assert there == {"attribution.html", "left-out.csv"}
    require_no_attribution(tmp_path, force=False)
    attribution("one").save(tmp_path, "<html></html>")
    assert {path.name for path in tmp_path.iterdir()} == {*there, "attribution.json"}
    with pytest.raises(UnfaceError):
        require_no_attribution(tmp_path, force=False)
