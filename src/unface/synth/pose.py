"""Which principal direction turns the head: found by where it puts the nose, with nobody saying so."""

import numpy as np
import torch
from numpy.typing import NDArray

from unface.faces import Detector, main_face
from unface.prior import Prior
from unface.synth.decoding import decoded

_TRIED = 8  # leading directions: turning is among the largest differences between faces that are aligned
_FAR = 2.0  # standard deviations
_SMALLEST = 128  # pixels in which landmarks are found well


def turning(prior: Prior, directions: torch.Tensor, detector: Detector) -> torch.Tensor:
    """(dim,): of the leading directions the one along which the mean face's nose leaves the middle of its eyes most."""
    size = next((given for given in prior.sizes if given >= _SMALLEST), prior.sizes[-1])
    faces = decoded(prior, prior.mean_latent() + _FAR * directions[:_TRIED], size)
    pictures = (faces * 255).round().to(torch.uint8).permute(0, 2, 3, 1).cpu().numpy()
    return directions[int(np.argmax([abs(_turned(picture, detector)) for picture in pictures]))]


def _turned(picture: NDArray[np.uint8], detector: Detector) -> float:
    """How far the nose is from between the eyes, in distances between them; 0 where there is no face."""
    face = main_face(detector.detect(picture), picture.shape)
    if face is None:
        return 0.0
    left, right, nose = face.landmarks[:3]
    along = right - left
    return float((nose - (left + right) / 2) @ along / max(float(along @ along), 1e-9))
