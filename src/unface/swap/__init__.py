"""Attribute swap: can a vector be moved so that it shows the other label and still passes for the same person?"""

from unface.swap.classifier import fit_classifier
from unface.swap.given import RowsOf
from unface.swap.inference import swap_inference
from unface.swap.move import Move, fit_move
from unface.swap.result import Share, SwapResult

__all__ = [
    "Move",
    "RowsOf",
    "Share",
    "SwapResult",
    "fit_classifier",
    "fit_move",
    "swap_inference",
]
