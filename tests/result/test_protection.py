"""If these fail, a report says that a protected set links nobody, or that it is useful, although it is not so."""

import math

import pytest

from tests.kit.results import INVALID, WARNING, attacker, protection
from tests.kit.results import accuracy as pairs
from unface.result.numbers import Estimate, Interval, Share
from unface.result.protection import AttackerResult, MethodResult, PairsResult, ProtectionResult, spread


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


def result(*methods: MethodResult) -> ProtectionResult:
    return protection().model_copy(update={"methods": list(methods)})


def test_people_are_linked_only_beyond_the_rate_asked_for_and_the_one_that_was_reached() -> None:
    for far, achieved, links in ((1e-3, 0.01, False), (0.01, 1e-3, False), (0.0099, 0.0099, True)):
        assert result(method(linked(20, 0.01, far=far, achieved_far=achieved))).links is links
    one_picture = linked(500, 0.4, other=None)
    assert result(method(one_picture)).links


def test_the_worst_attacker_is_chosen_on_calibrate_people_and_the_audited_method_by_its_mark() -> None:
    strong, weak, unknown = (
        linked(10, 0.0, name=name, calibrate_other=at) for name, at in (("s", 0.2), ("w", 0.1), ("u", None))
    )
    audited = method(unknown, weak, strong)
    assert audited.worst is strong
    assert method().worst is None
    originals = method(name="originals", ratio=None)
    plain, other = method(name="plain MAE"), method(name="plain MAE", ratio=0.5)
    found = result(originals, other, plain, audited)
    assert (found.audited, found.originals, found.plain) == (audited, originals, plain)
    assert result(originals, other).plain is None, "without a mark the first is audited, of which nothing is hidden"
    assert result(originals).audited is originals
    assert result(plain).originals is None
    assert (audited.label, originals.label) == ("FaceMAE, 75.0 % hidden", "originals")
    assert (audited.accuracy, method(utility=True).accuracy) == (None, pairs(0.8).accuracy)


def test_the_risk_is_that_among_most_people() -> None:
    one = attacker("one", 30)
    found = one.risk(2, "other")
    assert found is not None
    assert (found.identities, found.k, found.pictures) == (20, 2, "other")
    assert one.risk(3, "other") is one.risk(2, "any") is None


def test_a_protection_is_compared_by_its_worst_attacker_and_its_accuracy() -> None:
    found = result(method(attacker("weak", 0), attacker("fine-tuned", 30, 0.5), utility=True))
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
    assert result(method()).readings() == []
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
