"""A training step of FaceMAE against the bare networks' forward and backward passes on the same shapes."""

import resource
from collections import Counter

import numpy as np
import torch

from benchmarks.ratios import Ratio, cpu_seconds
from unface.encode import load_encoder
from unface.protect.facemae import Features, MaskedAutoencoder, feature_loss, patches_of
from unface.protect.facemae_frames import Faces
from unface.protect.facemae_train import Recipe, Training
from unface.seeds import stream

PICTURES, STEPS, REPEATS = 64, 4, 3


def run() -> list[Ratio]:
    """Preset tiny; masks, mirrors, clipping and AdamW are what a step adds. CPU time of four steps, least of three."""
    random = stream(0, "facemae_speed")
    frames = random.integers(0, 256, (PICTURES, 64, 64, 3), dtype=np.uint8)
    faces = Faces(frames, tuple(f"p{number // 2}" for number in range(PICTURES)), Counter())
    recogniser = Features(load_encoder("sface", accept_licence=True))
    found = []
    for loss in ("mse", "irm"):
        training = Training(Recipe("tiny", loss, epochs=1000), faces, recogniser)
        training.warm_up = 0
        training.one()  # the originals' vectors are made once
        network = None if loss == "mse" else recogniser
        ours = cpu_seconds(lambda training=training: [training.one() for _ in range(STEPS)], REPEATS)  # type: ignore[misc]
        bare = cpu_seconds(lambda t=training, n=network: [_bare(t, n) for _ in range(STEPS)], REPEATS)  # type: ignore[misc]
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        batch = training.preset.batch
        found.append(
            Ratio(
                f"FaceMAE training step, loss {loss} / forward and backward alone, tiny preset, CPU",
                ours / bare,
                1.25,
                detail=f"{ours / STEPS:.3f} against {bare / STEPS:.3f} s for {batch} pictures; peak {peak:,.0f} MB",
                figures={f"peak_mb_{loss}": peak},
            )
        )
    return found


def _bare(training: Training, recogniser: Features | None) -> torch.Tensor:
    """The networks on one batch, with a loss and its gradients; nothing is drawn, clipped or updated."""
    model: MaskedAutoencoder = training.model
    pictures = training._pictures[: training.preset.batch].float() / 255
    positions = torch.arange(training.recipe.masking.shown(training.preset)).expand(len(pictures), -1)
    seen = patches_of(pictures, training.preset.patch)
    made = model(seen.gather(1, positions[..., None].expand(-1, -1, seen.shape[-1])), positions)
    if recogniser is None:
        loss = torch.nn.functional.mse_loss(made, pictures)
    else:
        loss = feature_loss("irm", training._originals()[: len(pictures), 0], recogniser(made), 1.0)
    loss.backward()  # type: ignore[no-untyped-call]
    model.zero_grad(set_to_none=True)
    return loss.detach()
