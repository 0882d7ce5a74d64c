"""What an audit may measure beside its spaces, with numbers that agree with theirs: sweeps, transfer, maps, swaps."""

import math

from unface.auditing.schema import (
    AttributeSwap,
    Given,
    Map,
    Sweep,
    SweepPoint,
    Transfer,
    TransferCell,
)

from tests.report.made_spaces import (
    DIM,
    LEAKED,
    PROBES,
    RANK,
    RANKS,
    USEFUL,
    estimate,
    kept,
)
from unface.result.numbers import Interval, Kept, Share


def given(name: str, rows: int) -> Given:
    return Given(
        name=name,
        sha256="a" * 64,
        rows=rows,
        identities=rows // 20,
        dim=DIM,
        encoder="made-encoder",
        weights_sha256="b" * 64,
        notes=[],
    )


def rank_sweep() -> Sweep:
    """The raw space as rank 0, then each method at each rank."""
    points = [_swept("raw", 0, 0.066)]
    points += [
        _swept(method, rank, leaked, [kept(useful), kept(1 - (1 - useful) / 2, "copy recall@1", 0.9)])
        for method in LEAKED
        for rank, leaked, useful in zip(RANKS, LEAKED[method], USEFUL[method], strict=True)
    ]
    return Sweep(over="rank", k=4, far=1e-4, resolution="resolved", seeds=2, probes=PROBES, points=points)


def identity_sweep() -> Sweep:
    """More people to learn from, less left."""
    points = [
        _swept("isp", RANK, left, people=n) for n, left in ((210, 0.038), (420, 0.034), (840, 0.03), (1680, 0.026))
    ]
    return Sweep(over="identities", k=4, far=1e-4, resolution="resolved", seeds=2, probes=PROBES, points=points)


def _swept(method: str, rank: int, leaked: float, utility: list[Kept] | None = None, people: int = 144) -> SweepPoint:
    return SweepPoint(
        method=method,
        control=method in {"random", "pca"},
        rank=rank,
        fit_identities=people,
        probe="lda",
        calibrate_tar=leaked,
        tar=estimate(leaked),
        chance=1e-4,
        times_chance=leaked / 1e-4,
        utility=utility or [],
    )


def transfer() -> Transfer:
    cells = {
        (None, "faces.parquet"): 0.066,
        ("faces.parquet", "faces.parquet"): 0.026,
        ("strangers.parquet", "faces.parquet"): 0.031,
        (None, "strangers.parquet"): 0.08,
        ("faces.parquet", "strangers.parquet"): 0.039,
        ("strangers.parquet", "strangers.parquet"): 0.029,
    }
    return Transfer(
        method="isp",
        rank=RANK,
        first="faces.parquet",
        second=given("strangers.parquet", 8_000),
        cells=[
            TransferCell(
                fitted_on=fitted,
                tested_on=tested,
                k=4,
                far=1e-4,
                resolution="resolved",
                probe="lda",
                tar=estimate(tar),
                chance=1e-4,
                times_chance=tar / 1e-4,
            )
            for (fitted, tested), tar in cells.items()
        ],
        cosines=[1 - (index / RANK) ** 2 * 0.7 - 0.002 for index in range(RANK)],
        chance_cosine=0.968,
    )


def map_of(space: str, spread: float) -> Map:
    """A clump for each of 24 identities; the wider the spread, the less they are clumps."""
    rows = [(person, picture) for person in range(24) for picture in range(20)]
    return Map(
        space=space,
        perplexity=30.0,
        x=[
            30 * math.cos(2.4 * person) * (person / 24) ** 0.5 + spread * math.sin(7.3 * p + person)
            for person, p in rows
        ],
        y=[
            30 * math.sin(2.4 * person) * (person / 24) ** 0.5 + spread * math.cos(3.1 * p + person)
            for person, p in rows
        ],
        identity=[person for person, _ in rows],
    )


def swap_of(space: str, joint: float) -> AttributeSwap:
    return AttributeSwap(
        space=space,
        attribute="smiling",
        far=1e-3,
        resolution="resolved",
        threshold=0.3,
        directions=128,
        accuracy=_share(0.91),
        majority=0.5,
        trusted=True,
        accept=_share(joint + 0.1),
        flip=_share(0.85),
        joint=_share(joint),
    )


def _share(value: float) -> Share:
    return Share.counted(round(value * 1200), 1200, Interval(value - 0.03, value + 0.03, 0.95), identities=60)
