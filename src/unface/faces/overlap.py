"""Of the many boxes that a detector puts around one face, the best."""

import numpy as np
from numpy.typing import NDArray

from unface.faces.face import Face


def best_faces(
    scores: NDArray[np.float64],
    boxes: NDArray[np.float64],
    points: NDArray[np.float64],
    scale: NDArray[np.float64],
    most: float,
) -> list[Face]:
    """What is left of boxes (n, 4) with points (n, 5, 2), times ``scale`` (x, y); best score first."""
    return [
        Face(
            np.concatenate([boxes[i, :2] * scale, (boxes[i, 2:] - boxes[i, :2]) * scale]),
            points[i] * scale,
            float(scores[i]),
        )
        for i in suppressed(scores, boxes, most)
    ]


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
