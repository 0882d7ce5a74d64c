"""Faces in pictures: finding and aligning them, the mask that covers one, and what lies around it."""

from unface.faces.context import CONTEXT_DIM, context_signature, perceptual_hash
from unface.faces.detect import Detector, Remembered, load_detector
from unface.faces.face import (
    ARCFACE_112,
    DLIB_150,
    TINY,
    Face,
    align_face,
    box_crop,
    face_ellipse,
    main_face,
    similarity,
)

__all__ = [
    "ARCFACE_112",
    "CONTEXT_DIM",
    "DLIB_150",
    "TINY",
    "Detector",
    "Face",
    "Remembered",
    "align_face",
    "box_crop",
    "context_signature",
    "face_ellipse",
    "load_detector",
    "main_face",
    "perceptual_hash",
    "similarity",
]
