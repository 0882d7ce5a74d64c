"""Named random streams: the same seed and name give the same numbers, whatever else has drawn before."""

import hashlib

import numpy as np


def stream(seed: int, *name: str | int) -> np.random.Generator:
    """A generator that depends on the seed and the name alone, e.g. ``stream(0, "kshot", 4)``."""
    words = "\x1f".join(str(part) for part in name).encode()
    digest = hashlib.sha256(words).digest()
    return np.random.default_rng([seed, int.from_bytes(digest[:16], "little")])
