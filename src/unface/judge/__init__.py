"""Judges: face recognisers with thresholds, which say whether two pictures show the same person."""

from unface.judge.judge import (
    Comparison,
    EncoderRecogniser,
    Judge,
    Recogniser,
    Threshold,
    face_frames,
    load_recogniser,
)
from unface.judge.panel import FEWEST, NO_FACE, THRESHOLDS, PanelJudge, Thresholds, load_panel, verdicts

__all__ = [
    "FEWEST",
    "NO_FACE",
    "THRESHOLDS",
    "Comparison",
    "EncoderRecogniser",
    "Judge",
    "PanelJudge",
    "Recogniser",
    "Threshold",
    "Thresholds",
    "face_frames",
    "load_panel",
    "load_recogniser",
    "verdicts",
]
