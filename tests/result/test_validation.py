"""If these fail, the verdict on a face service does not follow from the attacks on it."""

import json

import pytest

from tests.kit.results import INVALID, WARNING, validation
from tests.kit.results import of_400 as share
from tests.kit.results import validated_attack as attack
from unface.result.file import NO_RATE, Finding
from unface.result.numbers import Share
from unface.result.validation import AttackResult, Success, ValidationResult, measured


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
