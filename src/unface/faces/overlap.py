"""Of the many boxes that a detector puts around one face, the best."""

import numpy as np
from numpy.typing import NDArray


def suppressed(scores: NDArray[np.float64], boxes: NDArray[np.float64], most: float) -> list[int]:
    """Indices, best score first, of the boxes (n, 4: left, top, right, bottom) that no better one takes.

    A box takes those of which it shares more than ``most``: intersection over union.
    """
    area = np.prod(boxes[:, 2:] - boxes[:, :2], axis=1)
    waiting = np.argsort(-scores, kind="stable")
    kept: list[int] = []
    while len(waiting):
        best, waiting = int(waiting[0]), waiting[1:]
        kept.append(best)
        low = np.maximum(boxes[waiting, :2], boxes[best, :2])
        high = np.minimum(boxes[waiting, 2:], boxes[best, 2:])
        shared = np.prod(np.clip(high - low, 0, None), axis=1)
        waiting = waiting[shared <= most * (area[waiting] + area[best] - shared)]
    return kept
