"""Somebody's own front end, ``module:function``, as a matrix: found by probing it, and refused where it is none."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from unface.errors import UnfaceError, reason
from unface.functions import imported_function
from unface.memory import require_memory
from unface.protect.certificate import MatrixFrontEnd
from unface.seeds import stream

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
