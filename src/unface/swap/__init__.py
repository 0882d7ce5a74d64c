"""Attribute swap: can a vector be moved so that it shows the other label and still passes for the same person?"""

from unface.swap.attack import Move, RowsOf, fit_classifier, fit_move
from unface.swap.inference import Swap, SwapResult, swap_inference

__all__ = [
    "Move",
    "RowsOf",
    "Swap",
    "SwapResult",
    "fit_classifier",
    "fit_move",
    "swap_inference",
]
