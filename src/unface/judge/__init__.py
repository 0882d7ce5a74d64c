"""Judges: face recognisers, and what they say of templates that an attack recovered."""

from unface.judge.judge import (
    FEWEST,
    NO_FACE,
    THRESHOLDS,
    EncoderRecogniser,
    PanelJudge,
    Recogniser,
    Thresholds,
    face_frames,
    load_panel,
    load_recogniser,
    threshold_facts,
    verdicts,
)

__all__ = [
    "FEWEST",
    "NO_FACE",
    "THRESHOLDS",
    "EncoderRecogniser",
    "PanelJudge",
    "Recogniser",
    "Thresholds",
    "face_frames",
    "load_panel",
    "load_recogniser",
    "threshold_facts",
    "verdicts",
]
