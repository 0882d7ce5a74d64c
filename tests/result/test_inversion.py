"""If these fail, a report says that vectors cannot be inverted although they can, or the reverse."""

from tests.kit.results import INVALID, WARNING, cell
from tests.kit.results import inversion as result
from unface.result.inversion import InversionCell, InversionResult, inverted
from unface.result.numbers import Interval, Share

FEW = Share.counted(3, 100, Interval(0.01, 0.06, 0.95), 100)


def changed(made: InversionCell, **more: object) -> InversionCell:
    point = made.at[0].model_copy(
        update={name: more.pop(name) for name in ("far", "other", "derangement") if name in more}
    )
    return made.model_copy(update={"at": [point], **more})


def test_without_a_rate_or_an_attack_on_raw_vectors_there_is_no_headline() -> None:
    empty = result(changed(cell("alsuv", 62), far=None))
    assert (empty.headline, empty.far) == (None, [])
    made = result(cell("alsuv", 62), cell("alsuv", 1, "isp"))
    assert made.model_copy(update={"cells": [cell("alsuv", 1, "isp")]}).headline is None
    assert made.model_copy(update={"findings": [WARNING]}).valid
    assert not made.model_copy(update={"findings": [WARNING, INVALID]}).valid


def at_rates(*rates: float, space: str = "raw") -> InversionCell:
    (point,) = cell("alsuv", 50).at
    points = [point.model_copy(update={"far": far}) for far in rates]
    return cell("alsuv", 50, space).model_copy(update={"at": points})


def test_the_headline_is_at_one_in_a_thousand_or_the_lowest_rate_on_the_raw_vectors_or_the_first_space() -> None:
    def quoted(found: InversionResult) -> tuple[str, str, float | None]:
        head = found.headline
        assert head is not None
        return head.cell.attack, head.cell.space, head.point.far

    assert quoted(result(at_rates(1e-2, 1e-3, 1e-4))) == ("alsuv", "raw", 1e-3)
    assert quoted(result(at_rates(1e-2, 1e-5, 1e-4))) == ("alsuv", "raw", 1e-5)
    assert result(at_rates(1e-5, 1e-2, 1e-4)).far == [1e-2, 1e-4, 1e-5]
    assert quoted(result(cell("bob", 90, "isp"), cell("bob", 20), cell("alsuv", 30))) == ("alsuv", "raw", 1e-3)
    assert quoted(result(cell("bob", 9, "pca"), cell("alsuv", 30, "isp"))) == ("bob", "pca", 1e-3)


def test_an_inversion_is_compared_by_the_worst_attack_on_each_space_at_each_rate() -> None:
    found = result(cell("bob", 20), at_rates(1e-3, 1e-2), cell("bob", 4, "isp"))
    assert [(one.name, one.found and one.found.value, one.headline) for one in found.readings()] == [
        ("raw: faces recovered, FAR 0.01", 0.5, False),
        ("raw: faces recovered, FAR 1e-3", 0.5, True),
        ("isp: faces recovered, FAR 0.01", None, False),
        ("isp: faces recovered, FAR 1e-3", 0.04, True),
    ]
    assert found.conditions() == {"judges": "sface", "attacks": "bob, alsuv"}
    two = found.model_copy(update={"judges": found.judges * 2})
    assert two.conditions()["judges"] == "sface, sface"
    assert found.subject == "e"
    assert found.cell("bob", "isp") is found.cells[2]
    assert found.cell("alsuv", "isp") is found.cell("none", "raw") is None
    assert found.worst(1e-3, "none") is None
    assert found.cells[0].point(1e-3, "one judge") is None
    frame = found.to_frame()
    assert list(frame.columns) == ["what", "where", "at", "value", "low", "high", "better"]
    assert frame.iloc[-1].tolist() == ["faces recovered", "isp", "FAR 1e-3", 0.04, 0.02, 0.07, "lower"]
    assert len(frame) == 3


def test_other_pictures_count_before_the_attacked_one() -> None:
    (point,) = changed(cell("alsuv", 60), other=FEW).at
    assert inverted(point) is FEW
    assert inverted(point.model_copy(update={"other": None})) is point.same
    easy = changed(cell("bob", 99), other=FEW)
    head = result(easy, cell("alsuv", 30)).headline
    assert head is not None
    assert head.cell.attack == "alsuv"
