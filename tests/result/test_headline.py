"""If these fail, an audit is quoted at a rate that a few people set, before erasure or after it."""

import pytest

from tests.kit.results import audited, change, erased, point, raw
from unface.result.audit import AuditResult


def quoted(result: AuditResult) -> tuple[float, int]:
    assert result.headline is not None
    return result.headline.far, result.headline.k


@pytest.mark.parametrize(
    ("before", "after", "far"),
    [
        (("resolved", "resolved"), ("resolved", "resolved"), 1e-4),
        (("resolved", "resolved"), ("resolved", "coarse"), 1e-3),
        (("resolved", "coarse"), ("resolved", "resolved"), 1e-3),
        (("resolved", "resolved"), ("coarse", "coarse"), 1e-3),
        (("coarse", "coarse"), ("coarse", "coarse"), 1e-3),
        (("coarse", "resolved"), ("resolved", "resolved"), 1e-4),
    ],
)
def test_the_lowest_rate_that_is_resolved_on_both_sides_is_quoted_else_the_highest(
    before: tuple[str, str], after: tuple[str, str], far: float
) -> None:
    fars = (1e-3, 1e-4)
    first, second = (
        [point(far=one, resolution=how) for one, how in zip(fars, side, strict=True)] for side in (before, after)
    )
    assert quoted(audited(raw(*first), erased("isp", *second)))[0] == far


def test_controls_and_erasers_that_leave_more_do_not_decide_where_an_audit_is_quoted() -> None:
    best = erased("isp", point(0.01, calibrate_tar=0.01))
    other = erased("leace", point(0.05, calibrate_tar=0.05, resolution="coarse"))
    control = erased("random", point(0.08, calibrate_tar=0.001, resolution="coarse"), control=True)
    higher = point(far=1e-3)
    spaces = [
        space.model_copy(update={"points": [*space.points, higher]}) for space in (raw(point()), best, other, control)
    ]
    assert quoted(audited(*spaces))[0] == 1e-4


def test_of_the_ks_of_a_rate_those_that_are_resolved_come_first() -> None:
    few = point(0.2, calibrate_tar=0.2, k=1)
    coarse = point(0.4, calibrate_tar=0.4, k=4, resolution="coarse")
    assert quoted(audited(raw(few, coarse))) == (1e-4, 1)


def test_a_difference_is_as_coarse_as_its_coarser_side() -> None:
    less = change(-0.05, -0.06, -0.04)
    for here, there, coarse in (("resolved", "resolved", False), ("coarse", "resolved", True)):
        for one, other in ((here, there), (there, here)):
            isp = erased("isp", point(resolution=one), changes=[less])
            random = erased("random", point(resolution=other), control=True)
            assert audited(raw(point()), isp, random).is_coarse(isp, less) is coarse
