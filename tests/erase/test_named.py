"""If these fail, a command that names an eraser gets another one, or another rank than the paper's share."""

import numpy as np
import pytest

from tests.erase.people import matrix_of, people
from tests.refusals.table import refused
from unface.erase import (
    CONTROLS,
    ERASERS,
    INLP,
    ISP,
    LEACE,
    RLACE,
    SAL,
    UTILITY_AWARE,
    Eraser,
    FairPCA,
    LabelFreePCA,
    RandomSubspace,
    UtilityLEACE,
    UtilityPCA,
    make_eraser,
    usual_rank,
)

KINDS: dict[str, type[Eraser]] = {
    "isp": ISP,
    "isp-whitened": ISP,
    "leace": LEACE,
    "sal": SAL,
    "inlp": INLP,
    "rlace": RLACE,
    "fair-pca": FairPCA,
    "random": RandomSubspace,
    "pca": LabelFreePCA,
    "utility-pca": UtilityPCA,
    "utility-leace": UtilityLEACE,
}
UTILITY = np.vstack([np.eye(24), -np.eye(24)]).astype(np.float32)


def test_a_keeper_by_name_keeps_what_is_not_removed_and_weighs_people_as_asked() -> None:
    found = make_eraser("keeper", 5, nuisance=np.eye(12), mu=0.7).get_params()
    assert (found["kept"], found["mu"]) == (7, 0.7)


def test_every_name_is_an_eraser_of_the_rank_that_was_asked_for() -> None:
    made = people(12)
    assert KINDS.keys() == ERASERS.keys() | CONTROLS.keys() | UTILITY_AWARE.keys()
    for name, kind in KINDS.items():
        eraser = make_eraser(name, 8, UTILITY)
        assert isinstance(eraser, kind)
        assert eraser.fit(made.vectors, made.identities).projection_.rank == 8
    whitened = make_eraser("isp-whitened", 8).fit(made.vectors, made.identities).projection_
    assert matrix_of(whitened) == pytest.approx(
        matrix_of(ISP(8, whitened=True).fit(made.vectors, made.identities).projection_)
    )
    assert make_eraser("fair-pca", 9).get_params()["unfair"] == 7


def test_a_name_that_spares_a_task_asks_for_its_vectors() -> None:
    with refused("eraser", None, "'utility-pca'", "--spare"):
        make_eraser("utility-pca", 3)
    assert make_eraser("utility-pca", 3, UTILITY).get_params()["utility"] is UTILITY


@pytest.mark.parametrize(
    ("dim", "identities", "rank"),
    [(512, 10_000, 192), (512, 193, 192), (512, 192, 191), (16, 100, 6), (1, 100, 1), (16, 1, 1)],
)
def test_the_usual_rank_is_the_paper_s_share_or_what_identities_allow(dim: int, identities: int, rank: int) -> None:
    assert usual_rank(dim, identities) == rank
