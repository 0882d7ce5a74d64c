"""If these fail, the frontier compares erasers at unequal use, or counts other copies than an audit does."""

from typing import Any

import numpy as np
import pytest
from studies.frontier import PAIRS, RAW, FirstHits
from studies.frontier_record import ALBUM, FAR, PAIRS_AND_ALBUM, Space, equal_use, verdicts

from unface import EmbeddingSet
from unface.metrics import Replicates
from unface.utility import copy_task


def space(name: str, tar: float, noise: float = 0.0) -> Space:
    """A finished cell that leaves the same to pairs and albums, with replicates around it."""
    sizes = (PAIRS, ALBUM)
    draws = tar + noise * np.linspace(-1, 1, 200)
    rows = [{"size": size, "far": FAR, "tar": [tar, tar, tar]} for size in sizes]
    result: dict[str, Any] = {"space": name, "TAR": rows, "uses": [], "level": 0.95}
    return Space(result, {(size, FAR): Replicates(draws, False) for size in sizes})


def test_a_keeper_is_compared_halfway_between_the_strengths_that_find_more_and_fewer_copies() -> None:
    spaces = [space(RAW, 0.2), space("isp 1", 0.1), space("isp 2", 0.06), space("isp 3", 0.12)]
    keeper = space("keeper 8, μ 1", 0.05, noise=0.01)
    # isp 3 finds fewer copies than isp 2 and leaves more: nobody would choose it
    found = {RAW: 1.0, "isp 1": 0.95, "isp 2": 0.85, "isp 3": 0.849, keeper.name: 0.9}
    compared = equal_use([*spaces, keeper], found, PAIRS_AND_ALBUM)
    ((name, rival, share, between, pairs, albums),) = compared.rows
    assert (name, rival, share, between) == (keeper.name, "isp", 0.9, "isp 1 and isp 2")
    assert isinstance(pairs, list)
    assert pairs[0] == pytest.approx(0.05 - (0.1 + 0.06) / 2)
    assert albums == pairs
    assert verdicts(compared, 4)[0] == "1 of 1"


def test_a_rival_that_erasure_helps_is_not_compared_by_its_raw_vectors() -> None:
    """Raw vectors that find fewer copies than an erased space and leave more are no strength to interpolate with."""
    spaces = [space(RAW, 0.2), space("isp 1", 0.1), space("isp 2", 0.05), space("keeper 8, μ 1", 0.04)]
    found = {RAW: 0.2, "isp 1": 0.3, "isp 2": 0.1, "keeper 8, μ 1": 0.25}
    (row,) = equal_use(spaces, found, PAIRS_AND_ALBUM).rows
    assert row[3] == "isp 1 and isp 2"


def test_where_no_rival_finds_as_many_copies_nothing_is_compared() -> None:
    spaces = [space(RAW, 0.2), space("isp 1", 0.1), space("keeper 8, μ 1", 0.04)]
    compared = equal_use(spaces, {RAW: 0.5, "isp 1": 0.4, "keeper 8, μ 1": 0.6}, PAIRS_AND_ALBUM)
    assert compared.rows == [["keeper 8, μ 1", "isp", 0.6, "none finds as many", None, None]]
    assert verdicts(compared, 4)[0] == "none finds as many"


def test_first_hits_are_the_recall_at_one_of_an_audit() -> None:
    draw = np.random.default_rng(3)
    pictures = draw.normal(size=(60, 8)).astype(np.float32)
    copies = pictures[:40] + draw.normal(scale=0.9, size=(40, 8)).astype(np.float32)
    task = copy_task(
        EmbeddingSet.from_arrays(
            np.concatenate([pictures, copies]),
            [str(row % 60) for row in range(100)],
            ids=[f"{row:03}" for row in range(100)],
            labels={"copy_of": [""] * 60 + [f"{row:03}" for row in range(40)]},
        )
    )
    whole = task.outcomes(task.vectors)[0]
    (first,) = FirstHits(task).outcomes(task.vectors)
    assert 0 < first.per_query.mean() < 1
    assert (first.measure, first.on) == (whole.measure, whole.on)
    np.testing.assert_array_equal(first.per_query, whole.per_query)
    np.testing.assert_array_equal(first.groups, whole.groups)
