"""Faces in pictures: finding and aligning them, their landmarks and traits, their mask, and what lies around it."""

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
from unface.faces.landmarks import Landmarks106, five_of, load_landmarks
from unface.faces.traits import TRAITS, Region, TraitCrop, cut_out, keep_only, trait_region

__all__ = [
    "ARCFACE_112",
    "CONTEXT_DIM",
    "DLIB_150",
    "TINY",
    "TRAITS",
    "Detector",
    "Face",
    "Landmarks106",
    "Region",
    "Remembered",
    "TraitCrop",
    "align_face",
    "box_crop",
    "context_signature",
    "cut_out",
    "face_ellipse",
    "five_of",
    "keep_only",
    "load_detector",
    "load_landmarks",
    "main_face",
    "perceptual_hash",
    "similarity",
    "trait_region",
]
