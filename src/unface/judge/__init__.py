"""Judges: face recognisers with thresholds, which say whether two pictures show the same person."""

from unface.judge.judge import (
    FEWEST,
    NO_FACE,
    THRESHOLDS,
    Comparison,
    EncoderRecogniser,
    Judge,
    PanelJudge,
    Recogniser,
    Threshold,
    Thresholds,
    face_frames,
    load_panel,
    load_recogniser,
    verdicts,
)

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
