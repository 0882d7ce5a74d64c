"""The closed-form panel against nothing but the matrix products that score its pairs."""

from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from benchmarks.ratios import Ratio, cpu_seconds
from unface.data import Role, make_identities, split_identities
from unface.metrics import Scheme
from unface.pairs.pairing import Block
from unface.pairs.screen import CpuScreen
from unface.probe import Plan, Roles, draw_bootstrap, measure, pick_probes, role_rows, run_panel
from unface.threads import one_blas_thread

PROBES = ("cosine", "ridge", "lda", "plda")
REPLICATES = 2000


def run() -> list[Ratio]:
    """480 identities × 20 images × 512 dimensions, k 1/4/16, 5 seeds, 2,000 bootstraps."""
    shapes: list[tuple[int, int, int]] = []
    whole = cpu_seconds(lambda: panel(shapes), repeats=2)
    counted = shapes[: len(shapes) // 2]
    bare = cpu_seconds(lambda: bare_products(counted), repeats=2)
    detail = f"{whole:.1f} against {bare:.1f} s"
    name = (
        "panel without mlp (480 × 20 × 512, k 1/4/16, 5 seeds, 2,000 bootstraps) / the bare products of its scores, CPU"
    )
    return [Ratio(name, whole / bare, 5, detail=detail)]


def panel(shapes: list[tuple[int, int, int]]) -> None:
    """Every probe, k and seed, with intervals; notes the shape of each scored block."""
    people = make_identities(480, 20, 512, rank=64, between=0.6, seed=1).unit()
    split = split_identities(people.names)
    roles = Roles(*(role_rows(people, split, role) for role in (Role.TRAIN, Role.CALIBRATE, Role.TEST)))
    plan = Plan(ks=(1, 4, 16), seeds=5)
    weights = draw_bootstrap(Scheme.DOUBLE_OR_NOTHING, roles.calibrate.count, roles.test.count, REPLICATES, 0)
    original = CpuScreen.scores

    def noted(screen: CpuScreen, block: Block) -> NDArray[np.float32]:
        scores = original(screen, block)
        shapes.append((*scores.shape, screen._space.left.shape[1]))
        return scores

    with patch.object(CpuScreen, "scores", noted):
        trials = run_panel(people.vectors, roles, pick_probes(PROBES), plan).trials
    for trial in trials.values():
        for far in trial.thresholds:
            measure(trial, far, weights, plan)


def bare_products(shapes: list[tuple[int, int, int]]) -> None:
    """The same products on the same number of numbers."""
    numbers = np.random.default_rng(0).standard_normal(4096 * 1024, np.float32)
    out = np.empty(1024 * 4096, np.float32)
    with one_blas_thread():
        for rows, columns, depth in shapes:
            left = numbers[: rows * depth].reshape(rows, depth)
            right = numbers[: columns * depth].reshape(columns, depth)
            np.matmul(left, right.T, out=out[: rows * columns].reshape(rows, columns))
