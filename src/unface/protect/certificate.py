"""What a linear front end lets through, by algebra alone: rank, null space, condition, least squares under its noise.

No question is asked of any system and nothing is trained. A map A that has no null space can be undone; singular values
say how much its noise grows on the way back. Somebody's own front end, ``module:function``, is probed for its matrix,
and refused where it has none.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import eigvals_banded
from scipy.sparse.linalg import SuperLU, splu

from unface.errors import UnfaceError, reason
from unface.functions import imported_function
from unface.memory import require_memory
from unface.protect.frequency import BLOCK, YCBCR, FrontEnd, Scheme
from unface.seeds import stream

WHITE = 255.0
VISIBLE = 1e-6
"""Directions below this share of the largest singular value count as null: float32 cannot carry them."""
_SIGNAL = 50.0**2  # squared grey levels by which a picture differs from the guess, roughly


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Singular values of a map, one for each number of a picture; 0 for what it loses."""

    values: NDArray[np.float64]

    @property
    def inputs(self) -> int:
        """Numbers of a picture."""
        return len(self.values)

    @cached_property
    def visible(self) -> NDArray[np.float64]:
        """Those that are not null."""
        largest = float(self.values.max(initial=0.0))
        return self.values[self.values > VISIBLE * largest]

    @property
    def rank(self) -> int:
        """Dimensions of a picture that can be solved for."""
        return len(self.visible)

    @property
    def condition(self) -> float | None:
        """Largest over smallest singular value that is not null; None for a map that sends nothing."""
        return float(self.visible.max() / self.visible.min()) if self.rank else None

    def psnr(self, deviation: float) -> float | None:
        """dB of least squares on what is visible, for independent noise of this standard deviation on what is sent.

        The mean squared error is σ² Σ 1/s² over the singular values s, spread over all numbers of a picture.
        """
        if not self.rank:
            return None
        error = deviation**2 * float((self.visible**-2).sum()) / self.inputs
        return float(10 * np.log10(WHITE**2 / error))


class LinearFrontEnd(Protocol):
    """A front end that may draw one of several linear maps for each picture."""

    @property
    def size(self) -> int: ...

    @property
    def outputs(self) -> Sequence[int]:
        """Numbers that each map sends."""
        ...

    @property
    def deviation(self) -> float | None:
        """Standard deviation of the noise on them; None where there is none."""
        ...

    def spectrum(self, number: int) -> Spectrum:
        """Of one of the maps."""
        ...

    def reconstruct(
        self, pictures: NDArray[np.float64], guesses: NDArray[np.float64], random: np.random.Generator
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Protect RGB pictures (n, size, size, 3) and solve for them; and which map was drawn for each.

        What a map does not show is taken from ``guesses``.
        """
        ...


class SchemeFrontEnd:
    """A published scheme. One plane's map serves all three: colours mix by a 3 × 3 matrix beside it."""

    def __init__(self, scheme: Scheme, size: int) -> None:
        self.front, self.size = FrontEnd(scheme, size), size
        self.outputs = [3 * len(kept) * size * size for kept in scheme.subsets]
        self.deviation = None if scheme.laplace is None else float(np.sqrt(2) * scheme.laplace)
        bases = self.front.bases
        self._grams = np.einsum("uba,ubc->uac", bases, bases)  # (8, size, size): B_uᵀB_u
        self._factors: dict[tuple[int, float], SuperLU] = {}

    @property
    def ridge(self) -> float:
        """Noise over signal; 0 without noise."""
        return 0.0 if self.deviation is None else self.deviation**2 / _SIGNAL

    def plane_spectrum(self, number: int) -> Spectrum:
        """Of one colour plane.

        AᵀA = Σ B_uᵀB_u ⊗ B_vᵀB_v commutes with both mirrors of a picture, so it falls into four blocks of a quarter of
        the pixels each; and a block is a narrow band.
        """
        sides = _mirror_bases(self.size)
        across = self._across(number)
        energies = []
        for rows in sides:
            for columns in sides:
                block = sum(
                    sparse.kron(_sparse(rows.T @ self._grams[down] @ rows), _sparse(columns.T @ gram @ columns))
                    for down, gram in across.items()
                ).todia()
                band = np.zeros((max(block.offsets) + 1, block.shape[0]))
                for offset in range(len(band)):
                    band[offset, : block.shape[0] - offset] = block.diagonal(-offset)
                energies.append(eigvals_banded(band, lower=True, check_finite=False))
        return Spectrum(np.sqrt(np.maximum(np.concatenate(energies), 0)))

    def spectrum(self, number: int) -> Spectrum:
        """See ``LinearFrontEnd``."""
        colours = np.linalg.svd(YCBCR, compute_uv=False)
        return Spectrum(np.outer(colours, self.plane_spectrum(number).values).ravel())

    def null_space(self, number: int) -> NDArray[np.float64]:
        """(lost, size²) orthonormal pictures of one plane that a map does not show; by inverse iteration."""
        gram, pixels = self.gram(number), self.size**2
        largest = float(abs(gram).sum(axis=0).max())
        factor, count = self._factor(number, 0.0), 4
        while True:
            basis = stream(0, "protect", "null space").standard_normal((pixels, count))
            for _ in range(4):
                basis = np.linalg.qr(factor.solve(np.linalg.qr(basis)[0]))[0]
            energies, axes = np.linalg.eigh(basis.T @ (gram @ basis))
            null = energies <= VISIBLE**2 * largest
            if count == pixels or not null.all():
                found: NDArray[np.float64] = (basis @ axes[:, null]).T
                return found
            count = min(2 * count, pixels)

    def reconstruct(
        self, pictures: NDArray[np.float64], guesses: NDArray[np.float64], random: np.random.Generator
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """See ``LinearFrontEnd``. With noise, a ridge of noise over signal."""
        sent, drawn = self.front.protect(pictures, random)
        planes = self.front.planes(guesses)
        for number in np.unique(drawn):
            rows = drawn == number
            unexplained = sent[rows].astype(np.float64) - self.front.channels(planes[rows], int(number))
            back = self._adjoint(unexplained, int(number))
            solved = self._factor(int(number), self.ridge).solve(back.reshape(-1, self.size**2).T)
            planes[rows] += solved.T.reshape(planes[rows].shape)
        return self.front.pictures(planes), drawn

    def _across(self, number: int) -> dict[int, NDArray[np.float64]]:
        """Σ B_vᵀB_v over the kept v, for each u that has any."""
        sums: dict[int, NDArray[np.float64]] = {}
        for channel in self.front.scheme.subsets[number]:
            down, across = divmod(channel, BLOCK)
            sums[down] = sums.get(down, np.zeros((self.size, self.size))) + self._grams[across]
        return sums

    def _adjoint(self, sent: NDArray[np.float64], number: int) -> NDArray[np.float64]:
        """Aᵀ of (n, 3, channels, size, size): Σ B_uᵀ Y_uv B_v."""
        bases = self.front.bases
        back = np.zeros((*sent.shape[:2], self.size, self.size))
        lines: dict[int, NDArray[np.float64]] = {}
        for place, channel in enumerate(self.front.scheme.subsets[number]):
            down, across = divmod(channel, BLOCK)
            line = sent[:, :, place] @ bases[across]
            lines[down] = lines[down] + line if down in lines else line
        for down, line in lines.items():
            back += bases[down].T @ line
        return back

    def gram(self, number: int) -> sparse.csr_array:
        """AᵀA of one plane."""
        return sum(
            sparse.kron(_sparse(self._grams[down]), _sparse(sums)) for down, sums in self._across(number).items()
        )

    def _factor(self, number: int, ridge: float) -> SuperLU:
        """AᵀA + ridge, factored: it is sparse, since a block touches three pixels of a line at most."""
        gram = self.gram(number)
        floor = VISIBLE**2 * float(abs(gram).sum(axis=0).max())
        key = number, max(ridge, floor)
        if key not in self._factors:
            self._factors[key] = splu((gram + key[1] * sparse.eye_array(self.size**2)).tocsc())
        return self._factors[key]


class MatrixFrontEnd:
    """One matrix (outputs, 3 size²) and an offset: whatever a function was found to be."""

    deviation = None

    def __init__(self, matrix: NDArray[np.float64], size: int) -> None:
        self.size, self.outputs = size, [len(matrix)]
        self._matrix = matrix
        self._left, self._values, self._right = np.linalg.svd(matrix, full_matrices=False)

    def spectrum(self, number: int = 0) -> Spectrum:
        """See ``LinearFrontEnd``; numbers beyond the outputs are lost."""
        missing = self._matrix.shape[1] - len(self._values)
        return Spectrum(np.concatenate([self._values, np.zeros(missing)]))

    def reconstruct(
        self, pictures: NDArray[np.float64], guesses: NDArray[np.float64], random: np.random.Generator
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """See ``LinearFrontEnd``: the visible part of the picture, and the guess in the null space."""
        del random
        shown = self._right[: self.spectrum().rank]
        missing = (pictures - guesses).reshape(len(pictures), -1)
        solved = guesses + (missing @ shown.T @ shown).reshape(pictures.shape)
        return solved, np.zeros(len(pictures), np.int64)


def _sparse(matrix: NDArray[np.float64]) -> sparse.csr_array:
    """Without what rounding left where a zero belongs."""
    return sparse.csr_array(np.where(np.abs(matrix) > 1e-14 * np.abs(matrix).max(initial=0.0), matrix, 0.0))


def _mirror_bases(size: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Orthonormal lines of pixels that stay the same when mirrored, and those that change their sign."""
    same, opposite = np.zeros((size, (size + 1) // 2)), np.zeros((size, size // 2))
    for number in range(size // 2):
        same[[number, -1 - number], number] = np.sqrt(0.5)
        opposite[[number, -1 - number], number] = np.sqrt(0.5), -np.sqrt(0.5)
    if size % 2:
        same[size // 2, -1] = 1.0
    return same, opposite


Function = Callable[[NDArray[np.float64]], object]
_BATCH = 64
_AGREE = 1e-3  # of the change that is looked at; float32 code passes, JPEG and ReLU across a kink do not
_SAME = 1e-5  # the same, for the same picture: sums in another order may differ
_STEP = 0.5  # grey levels: small enough to stay on one piece of a piecewise-linear map


@dataclass(frozen=True, eq=False)
class Probed:
    """A function's matrix, and whether it holds everywhere or around one picture only."""

    front_end: MatrixFrontEnd
    kind: Literal["linear", "piecewise linear"]


def load_function(text: str) -> Function:
    """The function that ``module:function`` names, in the current folder or installed."""
    module, _, name = text.partition(":")
    if not name.isidentifier() or not all(part.isidentifier() for part in module.split(".")):
        raise UnfaceError(f"--function {text}: expected module:function")
    return imported_function(text)


def probe(function: Function, size: int, *, name: str, seed: int = 0) -> Probed:
    """The matrix of a function of RGB pictures (n, size, size, 3), float64 0 to 255, that returns n rows.

    A basis picture for each number of a picture; around a random picture where the function is only piecewise linear.
    """
    inputs = 3 * size * size
    random = stream(seed, "probe")

    def sent(pictures: NDArray[np.float64]) -> NDArray[np.float64]:
        try:
            answer = np.asarray(function(pictures.reshape(-1, size, size, 3).copy()), np.float64)
        except Exception as error:  # whatever somebody's function raises
            raise UnfaceError(f"{name}: raised {type(error).__name__}: {reason(error)}") from None
        if answer.ndim == 0 or len(answer) != len(pictures):
            raise UnfaceError(
                f"{name}: gave shape {answer.shape} for {len(pictures)} pictures; expected a row for each"
            )
        if not np.isfinite(answer).all():
            raise UnfaceError(f"{name}: gave NaN or infinity for pictures from 0 to 255")
        return answer.reshape(len(pictures), -1)

    pictures = random.uniform(64, 192, (4, inputs))
    first = sent(pictures)
    if not _agree(sent(pictures), first, first[1:] - first[:1], _SAME):
        raise UnfaceError(f"{name}: answers differently when it is given the same pictures; fix its seed or its noise")
    if not _agree(sent(pictures[1:2]), first[1:2], first[1:] - first[:1], _SAME):
        raise UnfaceError(f"{name}: answers for a picture depend on the others in the batch; protect each by itself")
    require_memory(8 * 3 * inputs * max(first.shape[1], inputs), name, "give a smaller --size")
    # A linear map sends the midpoint to the midpoint, wherever the two ends lie.
    ends, middle = first[:2], sent((pictures[:1] + pictures[1:2]) / 2)
    is_linear = _agree(middle[0], ends.mean(axis=0), ends[1] - ends[0])
    origin, step = pictures[0], 32.0 if is_linear else _STEP
    if not is_linear:
        direction = _STEP * random.standard_normal(inputs)
        near = sent(np.stack([origin, origin + direction / 2, origin + direction]))
        if not _agree(near[1], near[[0, 2]].mean(axis=0), near[2] - near[0]):
            raise UnfaceError(
                f"{name}: is not linear, nor piecewise linear around a picture; no certificate is possible"
            )
    matrix = np.empty((first.shape[1], inputs))
    for start in range(0, inputs, _BATCH):
        pixels = np.arange(start, min(start + _BATCH, inputs))
        moved = np.repeat(origin[None], len(pixels), axis=0)
        moved[np.arange(len(pixels)), pixels] += step
        matrix[:, pixels] = ((sent(moved) - first[0]) / step).T
    return Probed(MatrixFrontEnd(matrix, size), "linear" if is_linear else "piecewise linear")


def _agree(
    found: NDArray[np.float64], expected: NDArray[np.float64], change: NDArray[np.float64], share: float = _AGREE
) -> bool:
    """Equal but for a small share of how much the answer changes at all."""
    scale = max(float(np.linalg.norm(change)), 1e-6 * float(np.linalg.norm(expected)), 1e-300)
    return float(np.linalg.norm(found - expected)) <= share * scale
