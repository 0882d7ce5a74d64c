"""Front ends of privacy-preserving face recognition: what a client sends to a server instead of the picture.

DCTDP, DuetFace and PartialFace enlarge a picture eight times, convert it to YCbCr, take the DCT of 8 × 8 blocks and
send some of the 64 channels. Enlarging and block DCT are linear for each colour plane, so that both are one thin
matrix B on either side of it: Y = B X Bᵀ. Numbers are from the schemes' own code (TFace) and Map²V's (paper 002).
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from unface.errors import UnfaceError
from unface.result.file import Finding, note

BLOCK = 8  # pixels of a block, and how often a picture is enlarged: one block for each pixel
LEVEL = 128.0  # taken off each plane before the DCT; JPEG adds as much to Cb and Cr, so that only Y changes
YCBCR = np.array(
    [[0.299, 0.587, 0.114], [-0.168735892, -0.331264108, 0.5], [0.5, -0.418687589, -0.081312411]], np.float64
)

SchemeName = Literal["dctdp", "duetface", "partialface"]
Variant = Literal["published", "as-attacked"]
SCHEMES: tuple[SchemeName, ...] = ("dctdp", "duetface", "partialface")
VARIANTS: tuple[Variant, ...] = ("published", "as-attacked")

# A channel is 8 u + v for the frequency u down a block and v across it.
_CLIENT = (0, 1, 2, 3, 4, 5, 8, 9, 16, 24)  # what DuetFace keeps on the client
_SUBSETS = (  # PartialFace drops ten low frequencies and splits the other 54 into six sets of nine
    (5, 21, 34, 38, 42, 50, 55, 57, 62),
    (11, 19, 41, 45, 47, 49, 52, 54, 63),
    (4, 13, 29, 31, 32, 33, 59, 60, 61),
    (14, 15, 18, 22, 27, 35, 40, 43, 48),
    (6, 12, 20, 23, 26, 36, 39, 53, 58),
    (7, 25, 28, 30, 37, 44, 46, 51, 56),
)
_NOT_DRAWN = (11, 18, 20, 26, 29, 30, 31, 33, 38, 39, 40, 41, 43, 49, 54, 55, 58, 59)  # Map²V: 36 of 54, seed 42


@dataclass(frozen=True)
class Scheme:
    """Which channels of each colour plane are sent, and the noise on them."""

    name: SchemeName
    variant: Variant
    subsets: tuple[tuple[int, ...], ...]
    """One of them is drawn for each picture."""
    laplace: float | None = None
    """Scale of Laplace noise on every number sent."""
    notes: tuple[Finding, ...] = ()
    """What a certificate has to say of it."""


def scheme(name: str, variant: str = "published") -> Scheme:
    """A scheme as its authors published it, or as Map²V's code attacked it."""
    if name not in SCHEMES:
        raise UnfaceError(f"scheme {name!r} is not known; choose from {', '.join(SCHEMES)}")
    if variant not in VARIANTS:
        raise UnfaceError(f"variant {variant!r} is not known; choose from {', '.join(VARIANTS)}")
    return _KNOWN[name, variant]


def _without(*dropped: int) -> tuple[int, ...]:
    return tuple(channel for channel in range(BLOCK * BLOCK) if channel not in dropped)


_DUETFACE_MASK = note(
    "server",
    "a randomly initialised 1 × 1 convolution weights its features in every forward pass; that is after what the "
    "client sends, so it changes scores and not this certificate (the code of its authors has it too)",
)
_FIRST_STEP = "that of the first training step; a trained system learns its own, which is not public"
_ORDERS = "they also arrive in one of three orders; the attacker is taken to know subset and order"
_KNOWN: dict[tuple[str, str], Scheme] = {
    (one.name, one.variant): one
    for one in (
        Scheme(
            "dctdp",
            "published",
            (_without(0),),
            laplace=0.25,  # sensitivity 1 over a mean budget of 4
            notes=(note("noise", _FIRST_STEP),),
        ),
        Scheme("dctdp", "as-attacked", (_without(0),), notes=(note("noise", "defined in the code and never applied"),)),
        Scheme(
            "duetface",
            "published",
            (_without(*_CLIENT),),
            notes=(note("channels", "the server receives 54; the other ten stay on the client"),),
        ),
        Scheme("duetface", "as-attacked", (_without(*_CLIENT),), notes=(_DUETFACE_MASK,)),
        Scheme(
            "partialface",
            "published",
            _SUBSETS,
            notes=(note("channels", _ORDERS),),
        ),
        Scheme(
            "partialface",
            "as-attacked",
            (_without(*_CLIENT, *_NOT_DRAWN),),
            notes=(note("channels", "36 fixed ones of DuetFace's 54, instead of nine drawn for each picture"),),
        ),
    )
}


@dataclass(frozen=True, eq=False)
class FrontEnd:
    """A scheme for square pictures of ``size`` pixels."""

    scheme: Scheme
    size: int

    def __post_init__(self) -> None:
        if self.size < 2:
            raise UnfaceError(f"pictures of {self.size} × {self.size} pixels cannot be enlarged; expected at least 2")

    @cached_property
    def bases(self) -> NDArray[np.float64]:
        """(8, size, size): B by frequency. Row i of B_u is what frequency u of block i sees of a line of pixels."""
        return block_dct_bases(self.size)

    def planes(self, pictures: NDArray[np.generic]) -> NDArray[np.float64]:
        """Y, Cb and Cr (n, 3, size, size), less 128 where JPEG has it, of RGB pictures (n, size, size, 3) 0 to 255."""
        if pictures.shape[1:] != (self.size, self.size, 3):
            raise UnfaceError(f"pictures have shape {pictures.shape}; expected (n, {self.size}, {self.size}, 3)")
        planes: NDArray[np.float64] = np.einsum("cd,nijd->ncij", YCBCR, pictures.astype(np.float64), optimize=True)
        planes[:, 0] -= LEVEL
        return planes

    def pictures(self, planes: NDArray[np.float64]) -> NDArray[np.float64]:
        """RGB (n, size, size, 3) of ``planes``."""
        shifted = planes.copy()
        shifted[:, 0] += LEVEL
        rgb: NDArray[np.float64] = np.einsum("dc,ncij->nijd", np.linalg.inv(YCBCR), shifted, optimize=True)
        return rgb

    def channels(self, planes: NDArray[np.floating], subset: int = 0) -> NDArray[np.float32]:
        """(n, 3, channels, size, size): what is sent of planes, before any noise. Only kept channels are computed."""
        count, (thin, across, rows) = len(planes), self._products
        kept = self.scheme.subsets[subset]
        sent = np.empty((count * 3, len(kept), self.size, self.size), np.float32)
        runs = _runs(kept)
        for plane, out in zip(planes.reshape(-1, self.size, self.size).astype(np.float32), sent, strict=True):
            half = (thin @ plane).reshape(rows)
            for start, channel, length in runs:
                down, first = divmod(channel, BLOCK)
                np.matmul(half[down], across[first : first + length], out=out[start : start + length])
        return sent.reshape(count, 3, len(kept), self.size, self.size)

    def protect(
        self, pictures: NDArray[np.generic], random: np.random.Generator
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """What is sent of RGB pictures, with the scheme's noise; and which subset was drawn for each picture."""
        drawn = random.integers(len(self.scheme.subsets), size=len(pictures))
        planes = self.planes(pictures)
        sent = np.empty((len(pictures), 3, len(self.scheme.subsets[0]), self.size, self.size), np.float32)
        for subset in range(len(self.scheme.subsets)):
            sent[drawn == subset] = self.channels(planes[drawn == subset], subset)
        if self.scheme.laplace is not None:
            sent += random.laplace(scale=self.scheme.laplace, size=sent.shape).astype(np.float32)
        return sent, drawn

    @cached_property
    def _products(self) -> tuple[NDArray[np.float32], NDArray[np.float32], tuple[int, int, int]]:
        bases = self.bases.astype(np.float32)
        return bases.reshape(-1, self.size), np.ascontiguousarray(bases.transpose(0, 2, 1)), bases.shape


def block_dct_bases(size: int) -> NDArray[np.float64]:
    """(8, size, size): B = D U by frequency, U a bilinear enlargement with aligned corners and D the block DCT."""
    length = BLOCK * size
    position = np.arange(length) * (size - 1) / (length - 1)
    left = np.minimum(position.astype(np.int64), size - 2)
    enlarge = np.zeros((length, size))
    enlarge[np.arange(length), left] = 1 - (position - left)
    enlarge[np.arange(length), left + 1] = position - left
    steps = np.arange(BLOCK)
    dct = np.sqrt(2 / BLOCK) * np.cos(np.outer(steps, 2 * steps + 1) * np.pi / (2 * BLOCK))
    dct[0] /= np.sqrt(2)
    bases: NDArray[np.float64] = np.einsum("ux,bxn->ubn", dct, enlarge.reshape(size, BLOCK, size))
    return bases


def _runs(kept: tuple[int, ...]) -> list[tuple[int, int, int]]:
    """Neighbouring channels of one row of frequencies: (place, first channel, how many), one product for each run."""
    runs: list[tuple[int, int, int]] = []
    for place, channel in enumerate(kept):
        if runs and channel % BLOCK and channel == runs[-1][1] + runs[-1][2]:
            runs[-1] = (*runs[-1][:2], runs[-1][2] + 1)
        else:
            runs.append((place, channel, 1))
    return runs
