"""A training step of FaceMAE against the bare networks' forward and backward passes on the same shapes.

python -m benchmarks.facemae_speed [cpu | cuda]
"""

import resource
import sys
import time
from collections import Counter
from collections.abc import Callable

import numpy as np
import torch

from benchmarks.ratios import Ratio, cpu_seconds
from unface.encode import load_encoder
from unface.protect.facemae import Features, MaskedAutoencoder, feature_loss, patches_of, preset_of
from unface.protect.facemae_frames import Faces
from unface.protect.facemae_train import Recipe, Training
from unface.protect.replay import Replayed
from unface.seeds import stream

REPEATS = 3


def run(device: str = "cpu") -> list[Ratio]:
    """Masks, mirrors, clipping and AdamW are what a step adds: on a CPU its time for four steps of preset tiny, on a
    GPU the wall time of forty of preset small; the least of three.
    """
    cuda = device == "cuda"
    preset, steps, seconds = ("small", 40, gpu_seconds) if cuda else ("tiny", 4, cpu_seconds)
    random, size, batch = stream(0, "facemae_speed"), preset_of(preset).size, preset_of(preset).batch
    frames = random.integers(0, 256, (2 * batch, size, size, 3), dtype=np.uint8)
    faces = Faces(frames, tuple(f"p{number // 2}" for number in range(len(frames))), Counter())
    recogniser = Features(load_encoder("sface", accept_licence=True), device)
    found = []
    for loss in ("mse", "irm"):
        if cuda:
            torch.cuda.reset_peak_memory_stats()
        training = Training(Recipe(preset, loss, epochs=1000), faces, recogniser, device)
        training.warm_up = 0
        network = None if loss == "mse" else recogniser
        passes = Replayed(lambda _, t=training, n=network: _bare(t, n), training._weights)
        beginning = torch.zeros(1, device=device)
        for _ in range(steps if cuda else 1):  # the originals' vectors are made once
            training.one()
            passes(beginning)
        ours = seconds(lambda training=training: [training.one() for _ in range(steps)], REPEATS)  # type: ignore[misc]
        bare = seconds(lambda p=passes, b=beginning: [p(b) for _ in range(steps)], REPEATS)  # type: ignore[misc]
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        if cuda:
            peak = torch.cuda.max_memory_allocated() / 2**20
        found.append(
            Ratio(
                f"FaceMAE training step, loss {loss} / forward and backward alone, {preset} preset, {device.upper()}",
                ours / bare,
                1.25,
                detail=f"{ours / steps:.4f} against {bare / steps:.4f} s for {batch} pictures; peak {peak:,.0f} MB",
                figures={f"peak_mb_{loss}": peak},
            )
        )
    return found


def gpu_seconds(work: Callable[[], object], repeats: int) -> float:
    """The least wall time of a few runs, until the GPU is done."""
    best = float("inf")
    for _ in range(repeats):
        torch.cuda.synchronize()
        start = time.monotonic()
        work()
        torch.cuda.synchronize()
        best = min(best, time.monotonic() - start)
    return best


def _bare(training: Training, recogniser: Features | None) -> torch.Tensor:
    """The networks on one batch, with a loss and its gradients; nothing is drawn, clipped or updated."""
    model: MaskedAutoencoder = training.model
    pictures = training._pictures[: training.preset.batch].float() / 255
    shown, device = training.recipe.masking.shown(training.preset), pictures.device
    positions = torch.arange(shown, device=device).expand(len(pictures), -1)
    seen = patches_of(pictures, training.preset.patch)
    with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda", cache_enabled=False):
        made = model(seen.gather(1, positions[..., None].expand(-1, -1, seen.shape[-1])), positions)
        vectors = None if recogniser is None else recogniser(made)
    if vectors is None:
        loss = torch.nn.functional.mse_loss(made, pictures)
    else:
        loss = feature_loss("irm", training._originals()[: len(pictures), 0], vectors, 1.0)
    loss.backward()  # type: ignore[no-untyped-call]
    return loss


if __name__ == "__main__":
    for ratio in run(sys.argv[1] if len(sys.argv) > 1 else "cpu"):
        print(f"{ratio.value:.3f} (at most {ratio.bound:g}) {ratio.name}: {ratio.detail}", flush=True)
