"""People no linear attacker can distinguish, and how well a probe links them."""

import numpy as np
from numpy.typing import NDArray

from tests.probe.small import all_pairs
from unface.metrics import tar_at_far
from unface.probe import Probe, Support
from unface.seeds import stream


def best_tar(probe: Probe) -> float:
    vectors, identities = sign_people(100, 40, seed=0)
    scorer = probe.fit(Support(vectors, identities, 40, 0))
    queries, codes = sign_people(40, 6, seed=1)
    pairs = [all_pairs(scorer.space(setting, queries), codes) for setting in probe.settings]
    return max(tar_at_far(one.mated, one.impostor, 1e-2).value for one in pairs)


def sign_people(identities: int, images: int, seed: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    hidden, dim = 16, 96
    basis = np.linalg.qr(stream(0, "sign basis").normal(size=(dim, hidden)))[0]
    rng = stream(seed, "sign people")
    large = np.argsort(rng.random((identities, 1, hidden)), axis=2) < hidden // 2
    signs = rng.choice([-1.0, 1.0], size=(identities, images, hidden))
    vectors = (large * signs).reshape(-1, hidden) @ basis.T + 0.02 * rng.normal(size=(identities * images, dim))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors.astype(np.float32), np.repeat(np.arange(identities), images)
