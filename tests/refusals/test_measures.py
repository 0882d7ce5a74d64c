"""If these fail, a rate, a score or a plan that means nothing is measured."""

import math
import sys
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np

from tests.refusals.table import Row, table
from unface import verify
from unface.metrics import tar_at_far
from unface.metrics.rates import allowed_accepts
from unface.pairs import cosine_space, open_screen
from unface.pairs.space import l2_space
from unface.probe import Plan, Variant, pick_probes
from unface.probe.albums import album_sizes

GOOD = np.eye(4)
PEOPLE = ["a", "a", "b", "b"]


def plan(name: str, *names: str, **change: Any) -> Row:
    """A plan that cannot be carried out."""
    return Row(f"plan-{name}", lambda _: replace(Plan(), **change), "probe", None, names)


def rate(far: float) -> Row:
    return Row(f"far-{far}", lambda _: allowed_accepts(far, 10), "scores", None, f"not {far:g}")


def scores(name: str, mated: Any, impostor: Any, *names: str) -> Row:
    return Row(f"scores-{name}", lambda _: tar_at_far(mated, impostor, 0.1), "scores", None, names)


def verified(name: str, vectors: Any, identities: Any, *names: str, code: str = "vectors", **options: Any) -> Row:
    """Vectors that cannot be compared."""
    return Row(f"verify-{name}", lambda _: verify(vectors, identities, **options), code, None, names)


def without_torch(device: str) -> Row:
    def act(_: object) -> None:
        with patch.dict(sys.modules, {"unface.pairs.torch_screen": None}):
            open_screen(cosine_space(GOOD), device)

    return Row(f"device-{device}-without-torch", act, "pairs", None, (repr(device), "unface[torch]"))


def square(length: float) -> Row:
    name = f"l2-of-{length:g}"
    return Row(name, lambda _: l2_space(np.array([[length, 0], [0, 0]])), "pairs", None, f"{length:.1e}")


test_refused = table(
    "measures",
    plan("no-rates", fars=()),
    plan("no-k", ks=()),
    plan("far-0", "not 0", fars=(0.1, 0.0)),
    plan("far-1", "not 1", fars=(0.1, 1.0)),
    plan("far-too-low", "1e-13", "1e-12", fars=(0.1, 1e-13)),
    plan("k-0", "not 0", ks=(4, 0, 1)),
    plan("no-seeds", "not 0", seeds=0),
    plan("one-seed-for-the-paper", "2", variant=Variant.PAPER, seeds=1),
    plan("seed-below-0", "not -1", seed=-1),
    plan("quota-0", "not 0", quota=0),
    Row(
        "probe",
        lambda _: pick_probes(["cosine", "oracle"]),
        "name",
        None,
        ("'oracle'", "cosine, ridge, lda, plda, net, mlp"),
    ),
    Row("albums-of-4", lambda _: album_sizes([4], 7), "probe", "--album 4", "4"),
    Row("albums-of-0", lambda _: album_sizes([0], 7), "probe", "--album", "0"),
    Row("albums-of-all", lambda _: album_sizes(["all"], 7), "probe", "--album", "all"),
    *(rate(far) for far in (-0.1, 1.5, math.nan)),
    scores("no-mated", [], [1.0], "mated"),
    scores("no-impostor", [1.0], [], "impostor"),
    scores("mated-nan", [1.0, math.nan], [1.0], "mated score 1"),
    scores("mated-infinite", [math.inf], [1.0], "mated score 0"),
    scores("impostor-nan", [1.0], [math.nan], "impostor score 0"),
    scores("mated-text", ["a"], [1.0], "mated", "<U1"),
    scores("impostor-complex", [1.0], [1j], "impostor", "complex128"),
    Row("device", lambda _: open_screen(cosine_space(GOOD), "tpu"), "pairs", None, ("'tpu'", "'cpu'", "'cuda'")),
    without_torch("cuda"),
    without_torch("cuda:1"),
    Row("no-direction", lambda _: cosine_space(np.array([[1.0, 0.0], [0.0, 0.0]])), "pairs", None, "vector 1"),
    square(1e-18),
    square(2e18),
    verified("nan", [[1, 0], [0, 1], [np.nan, 1], [1, 1]], PEOPLE, "vector 2"),
    verified("infinity", [[1, 0], [0, np.inf], [1, 1], [1, 1]], PEOPLE, "vector 1"),
    verified("zeros", [[1, 0], [0, 1], [1, 1], [0, 0]], PEOPLE, "vector 3", code="pairs"),
    verified("identities-lacking", GOOD, PEOPLE[:3], "4", "(3,)"),
    verified("one-axis", [1.0, 2.0, 3.0, 4.0], PEOPLE, "(4,)"),
    verified("text", [["x", "y"], ["z", "w"]], ["a", "b"], "<U1", "(2, 2)"),
    verified("complex", GOOD.astype(complex), PEOPLE, "complex128"),
    verified("one-person", GOOD, ["a"] * 4, "1 distinct", "0 impostor"),
    verified("one-vector-each", GOOD, list("abcd"), "4 distinct", "0 mated"),
    verified("nothing", np.empty((0, 3)), [], "0 vectors"),
    verified("score", GOOD, PEOPLE, "'dot'", "'cosine'", "'l2'", score="dot"),
    verified("device", GOOD, PEOPLE, "'tpu'", code="pairs", device="tpu"),
    verified("far", GOOD, PEOPLE, "1.2", code="scores", far=(0.1, 1.2)),
)
