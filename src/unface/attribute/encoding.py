"""Every perturbed picture encoded once: made on threads beside the encoder, given to it in whole batches."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unface.attribute.canvas import Canvas
from unface.attribute.inputs import FaceSwap, Image, Reader
from unface.attribute.pairing import LeftOut, Pairing
from unface.attribute.perturb import (
    REVEALED,
    SIGMAS,
    Masks,
    blur_series,
    face_blurs,
    masks_of,
    revealed,
    ring_blur,
)
from unface.encode import ahead
from unface.errors import UnfaceError
from unface.progress import Progress, Silent
from unface.result.attribution import Axes

NO_RING = "no background of the face's area within 2 %"


@dataclass(frozen=True, eq=False)
class Encodings:
    """Unit vectors (rows, d), and for each kind of picture and each canvas its row, −1 where there is none."""

    vectors: NDArray[np.float32]
    blurred: NDArray[np.int64]
    """(σ, canvases): the face blurred at each σ, the first row the canvas itself."""
    ring: NDArray[np.int64]
    """(canvases,)"""
    revealed: NDArray[np.int64]
    """(B, canvases); at B = 1 the canvas itself."""
    swapped: NDArray[np.int64]
    """(σ, canvases): another face in the canvas, blurred at each σ."""
    area_difference: NDArray[np.float64]
    """Of the canvases that have a ring."""
    left_out: tuple[LeftOut, ...]


@dataclass(frozen=True, eq=False)
class _Work:
    """What is to be made of one canvas: of a mere donor only the canvas, of a query without donor no swap."""

    number: int
    compared: bool
    donor: int


@dataclass(frozen=True, eq=False)
class _Made:
    """The frames of one canvas, in the order blurred, revealed, swapped, ring; empty or None where there are none."""

    blurred: list[Image]
    revealed: list[Image]
    swapped: list[Image]
    ring: Image | None
    area_difference: float
    failure: str | None

    @property
    def frames(self) -> list[Image]:
        return [*self.blurred, *self.revealed, *self.swapped, *([] if self.ring is None else [self.ring])]


def encode_perturbed(
    canvases: Sequence[Canvas],
    pairing: Pairing,
    reader: Reader,
    swap: FaceSwap,
    axes: Axes,
    *,
    batch: int,
    threads: int,
    progress: Progress | None = None,
) -> Encodings:
    """All that the pairing asks for; swaps that fail and canvases without a ring are named."""
    progress = progress or Silent()
    work = _plan(len(canvases), pairing)
    progress.start("perturbing and encoding", len(work))
    encoder = _Batches(reader, batch)
    rows = {
        kind: np.full((count, len(canvases)), -1, dtype=np.int64)
        for kind, count in (("blurred", len(SIGMAS)), ("revealed", len(REVEALED)), ("swapped", len(SIGMAS)))
    }
    ring = np.full(len(canvases), -1, dtype=np.int64)
    differences: list[float] = []
    left_out: list[LeftOut] = []
    maker = _Maker(canvases, reader, swap, axes)
    # A canvas gives up to 17 pictures; two batches of them and a few.
    with closing(ahead(maker, work, threads, 2 * batch // 17 + 2 * threads)) as ready:
        for item, made in zip(work, ready, strict=True):
            start = encoder.add(made.frames)
            for kind, frames in (("blurred", made.blurred), ("revealed", made.revealed), ("swapped", made.swapped)):
                rows[kind][: len(frames), item.number] = start + np.arange(len(frames))
                start += len(frames)
            if made.ring is not None:
                ring[item.number] = start
                differences.append(made.area_difference)
            elif item.compared:
                left_out.append(LeftOut(canvases[item.number].id, "ring", NO_RING))
            if made.failure is not None:
                left_out.append(LeftOut(canvases[item.number].id, "swap", made.failure))
            progress.advance("perturbing and encoding")
    rows["revealed"][-1] = rows["blurred"][0]
    vectors = encoder.vectors()
    return Encodings(
        vectors, rows["blurred"], ring, rows["revealed"], rows["swapped"], np.array(differences), tuple(left_out)
    )


def _plan(count: int, pairing: Pairing) -> list[_Work]:
    donors = np.full(count, -1, dtype=np.int64)
    donors[pairing.queries] = pairing.donors
    compared = np.zeros(count, dtype=bool)
    compared[pairing.queries] = compared[pairing.references] = True
    needed = compared.copy()
    needed[pairing.donors[pairing.donors >= 0]] = True
    return [_Work(int(n), bool(compared[n]), int(donors[n])) for n in np.flatnonzero(needed)]


@dataclass(frozen=True, eq=False)
class _Maker:
    """Makes the frames of one canvas; called from several threads."""

    canvases: Sequence[Canvas]
    reader: Reader
    swap: FaceSwap
    axes: Axes

    def __call__(self, item: _Work) -> _Made:
        canvas = self.canvases[item.number]
        if not item.compared:
            return _Made(self._seen(canvas, [canvas.image]), [], [], None, 0.0, None)
        masks = masks_of(canvas.face.landmarks, len(canvas.image), self.axes)
        series = blur_series(canvas.image)
        swapped, failure = ([], None) if item.donor < 0 else self._swapped(canvas, self.canvases[item.donor], masks)
        return _Made(
            blurred=self._seen(canvas, face_blurs(series, masks)),
            # Without a swapped picture there is no triplet, and nothing to reveal the background for.
            revealed=self._seen(canvas, revealed(canvas.image, masks)) if swapped else [],
            swapped=self._seen(canvas, swapped),
            ring=None if masks.ring is None else self._seen(canvas, [ring_blur(series, masks.ring)])[0],
            area_difference=masks.area_difference,
            failure=failure,
        )

    def _swapped(self, host: Canvas, donor: Canvas, masks: Masks) -> tuple[list[Image], str | None]:
        swap = self.swap(host.image, host.face.landmarks, donor.image, donor.face.landmarks)
        if not swap.ok:
            return [], swap.reason or "the swap failed"
        if swap.image.shape != host.image.shape or swap.image.dtype != np.uint8:
            raise UnfaceError(
                f"attribute: the swap gave {swap.image.dtype} of {swap.image.shape};"
                f" expected uint8 of {host.image.shape}, the host's"
            )
        return face_blurs(blur_series(swap.image), masks), None

    def _seen(self, canvas: Canvas, images: Sequence[Image]) -> list[Image]:
        return [self.reader.view(image, canvas.face) for image in images]


class _Batches:
    """Collects frames until a batch is full, and then encodes it."""

    def __init__(self, reader: Reader, size: int) -> None:
        self._reader, self._size = reader, size
        self._waiting: list[Image] = []
        self._done: list[NDArray[np.float32]] = []
        self._count = 0

    def add(self, frames: Sequence[Image]) -> int:
        """The row of the first of them."""
        first = self._count
        self._count += len(frames)
        self._waiting += frames
        while len(self._waiting) >= self._size:
            self._encode(self._size)
        return first

    def vectors(self) -> NDArray[np.float32]:
        """All, scaled to length one; a vector of zeros stays one."""
        if self._waiting:
            self._encode(len(self._waiting))
        return np.concatenate(self._done)

    def _encode(self, count: int) -> None:
        frames, self._waiting = self._waiting[:count], self._waiting[count:]
        vectors = np.asarray(self._reader.encode(frames), dtype=np.float64)
        if vectors.ndim != 2 or len(vectors) != count or not np.isfinite(vectors).all():
            raise UnfaceError(
                f"{self._reader.name}: gave {vectors.shape} for {count} pictures, or NaN or Inf;"
                " expected one finite vector for each"
            )
        length = np.linalg.norm(vectors, axis=1, keepdims=True)
        self._done.append(np.divide(vectors, length, where=length > 0, out=np.zeros_like(vectors)).astype(np.float32))
