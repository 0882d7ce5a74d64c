"""Attribute swap: can a vector be moved so that it shows the other label and still passes for the same person?"""

from unface.swap.classifier import AttributeClassifier, fit_classifier
from unface.swap.given import RowsOf
from unface.swap.inference import swap_inference
from unface.swap.move import Move, fit_move
from unface.swap.result import Share, Swap, SwapResult

__all__ = [
    "AttributeClassifier",
    "Move",
    "RowsOf",
    "Share",
    "Swap",
    "SwapResult",
    "fit_classifier",
    "fit_move",
    "swap_inference",
]
