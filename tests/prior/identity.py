"""How alike a recogniser finds the head's pictures and the whole generator's, of the same people and of others."""

from dataclasses import dataclass

import cv2
import numpy as np
import torch
from numpy.typing import NDArray

from unface.encode import Encoder, aligned, load_encoder
from unface.faces import Detector, load_detector, main_face
from unface.prior import Prior, load_prior


@dataclass(frozen=True)
class Likeness:
    """Cosines: of one person by head and generator, and of different people, both by the generator."""

    mated: NDArray[np.float64]
    impostor: NDArray[np.float64]


def likeness(people: int, seed: int, truncation: float = 0.7, size: int = 512) -> Likeness:
    """Of ``people`` sampled; those without a face that is found are left out. ``size`` is the generator's."""
    detector, encoder = load_detector("yunet"), load_encoder("sface")
    whole, low = (load_prior(name, accept_licence=True) for name in ("mobilestylegan", "mobilestylegan-128"))
    latents = whole.sample(people, seed, truncation)
    pairs = []
    for latent in latents:
        full = vector(shown(whole, latent, size), detector, encoder)
        cheap = vector(shown(low, latent, 128), detector, encoder)
        if full is not None and cheap is not None:
            pairs.append((full, cheap))
    first, second = np.stack([full for full, _ in pairs]), np.stack([cheap for _, cheap in pairs])
    return Likeness((first * second).sum(axis=1), (first @ first.T)[np.triu_indices(len(pairs), 1)])


def shown(prior: Prior, latent: torch.Tensor, size: int) -> NDArray[np.uint8]:
    with torch.inference_mode():
        picture = prior.decode(latent[None], size)[0].movedim(0, -1).numpy()
    # Detectors are made for larger faces than those of 128 px.
    large = cv2.resize(picture, (512, 512), interpolation=cv2.INTER_LINEAR)
    return np.asarray(np.round(255 * large), dtype=np.uint8)


def vector(image: NDArray[np.uint8], detector: Detector, encoder: Encoder) -> NDArray[np.float64] | None:
    face = main_face(detector.detect(image), image.shape)
    if face is None:
        return None
    (raw,) = encoder.encode([aligned(image, face, encoder.card.input)]).astype(np.float64)
    unit: NDArray[np.float64] = raw / np.linalg.norm(raw)
    return unit
