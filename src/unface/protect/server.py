"""A server for a frequency front end that needs no training: least squares undoes what is sent, a recogniser follows.

The front end is linear, so the first layer of the server's network can hold its inverse. What such a server recognises
is the least that a distilled one could: it is an upper bound on what the scheme hides, not a model of any product.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from unface.errors import UnfaceError
from unface.judge import Recogniser
from unface.protect.certificate import SchemeFrontEnd
from unface.protect.frequency import Scheme, scheme
from unface.result.words import percent
from unface.seeds import stream

FEWEST_CORRECT = 0.97
"""LFW 10-fold accuracy below which a server is no face recognition, and its privacy is not spoken of."""
# Measured by ``studies.ppfr accuracy`` for DCTDP as attacked. Without noise the others hide the same three numbers of a
# picture, so that their server sees the same (tests/protect/test_server.py).
_WITHOUT_MEANS = {"arcface-mbf": 0.9952}
LFW_ACCURACY: dict[tuple[str, str, str], float] = {
    (name, variant, recogniser): accuracy
    for name, variant in (
        ("dctdp", "as-attacked"),
        ("duetface", "published"),
        ("duetface", "as-attacked"),
        ("partialface", "as-attacked"),
    )
    for recogniser, accuracy in _WITHOUT_MEANS.items()
} | {("dctdp", "published", "arcface-mbf"): 0.9948}
"""LFW 10-fold, by scheme, variant and recogniser; others can be asked too, with a caution."""
FACE_COLOUR = (136.0, 108.0, 89.0)  # mean of LFW's aligned faces: stands for what the front end does not send


def open_server(text: str, recogniser: Callable[[str], Recogniser], *, seed: int = 0) -> "ReconstructingServer":
    """A server by SCHEME/VARIANT/RECOGNISER."""
    parts = text.split("/")
    if len(parts) != 3:
        raise UnfaceError(f"{text!r}: not a server; give SCHEME/VARIANT/RECOGNISER, as dctdp/as-attacked/sface")
    name, variant, encoder = parts
    chosen = scheme(name, variant)
    return ReconstructingServer(chosen, recogniser(encoder), seed=seed)


def accuracy_caution(text: str) -> str | None:
    """What to say of a server of which nobody measured how well it recognises people; None where that is known."""
    if tuple(text.split("/")) in LFW_ACCURACY:
        return None
    return (
        f"how well {text} recognises people on LFW was not measured: a server that recognises few of them hides them "
        "for that reason; compare with how often it knows the enrolled pictures"
    )


def require_recognition(name: str, accuracy: float) -> None:
    """Refuse to attack a server that does not recognise people: that it hides them says nothing."""
    if not accuracy >= FEWEST_CORRECT:
        raise UnfaceError(
            f"{name}: {percent(accuracy)} on LFW; a server below {percent(FEWEST_CORRECT)} recognises nobody well "
            "enough to judge its privacy; train it longer, or use another"
        )


class Server(Recogniser, Protocol):
    """A recogniser that sees what a front end sends, and nothing else."""

    @property
    def deterministic(self) -> bool:
        """Whether the same face always gives the same vector: no noise, no channels by lot."""
        ...


class ReconstructingServer:
    """A recogniser behind a front end; see ``Server``."""

    def __init__(self, scheme: Scheme, recogniser: Recogniser, *, seed: int = 0) -> None:
        if recogniser.wanted.alignment == "none":
            raise UnfaceError(f"{recogniser.name}: takes whole pictures; a server needs a face recogniser")
        self.name = f"{scheme.name} {scheme.variant} {recogniser.name}"
        self.wanted, self.space = recogniser.wanted, recogniser.space
        self.front = SchemeFrontEnd(scheme, recogniser.wanted.size)
        self._recogniser, self._random = recogniser, stream(seed, "protect", "server")
        self._plain = len(scheme.subsets) == 1 and scheme.laplace is None
        self._null = self.front.null_space(0) if self._plain else None

    @property
    def deterministic(self) -> bool:
        """See ``Server``."""
        return self._plain

    def embed(self, frames: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        """(n, dim) unit vectors of what the server makes of what the client sends."""
        return (
            self._recogniser.embed(list(self.reconstructed(np.stack(frames))))
            if len(frames)
            else np.zeros((0, self.space.dim), np.float32)
        )

    def reconstructed(self, frames: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """(n, size, size, 3): least squares of what is sent, and a face's mean colour for what is not."""
        pictures = frames.astype(np.float64)
        guesses = np.broadcast_to(np.array(FACE_COLOUR), pictures.shape)
        if self._null is None:
            solved, _ = self.front.reconstruct(pictures, guesses, self._random)
        else:
            # Without noise, least squares is the picture itself but for the null space.
            planes, guess = self.front.front.planes(pictures), self.front.front.planes(guesses[:1])
            flat = (planes - guess).reshape(-1, self._null.shape[1])
            planes -= ((flat @ self._null.T) @ self._null).reshape(planes.shape)
            solved = self.front.front.pictures(planes)
        return np.rint(np.clip(solved, 0, 255)).astype(np.uint8)


def same_answers(server: Server, frames: Sequence[NDArray[np.uint8]]) -> None:
    """Refuse a server that claims to be deterministic and is not."""
    if server.deterministic and not np.array_equal(server.embed(frames), server.embed(frames)):
        raise UnfaceError(f"{server.name}: claims to be deterministic and answers differently; fix its seed or noise")
