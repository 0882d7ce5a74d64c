"""Latent search against a bare loop of the same forward and backward passes, and against itself in float32.

On a GPU if there is one, with the whole generator at 256 px and 25 targets; else one target and the low-resolution head
on the CPU, a few steps.
"""

import resource
import time
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from benchmarks.ratios import Ratio
from unface.encode import load_encoder
from unface.invert import Ledger
from unface.invert.alsuv import Preset, Search
from unface.invert.view import View, frame_size
from unface.prior import Prior, load_prior

ENCODER = "arcface-mbf"
WHOLE = 100  # steps that seconds for each target are given for


def run() -> list[Ratio]:
    """Targets are generated people, so that the search has something to find."""
    gpu = torch.cuda.is_available()
    prior = load_prior(device="cuda" if gpu else "cpu", accept_licence=True, head=not gpu)
    view = View(load_encoder(ENCODER, accept_licence=True), device=prior.device)
    targets, steps = (25, 100) if gpu else (1, 12)
    if not gpu:
        return [compared(prior, view, "fp32", targets, steps)[0]]
    found = {name: compared(prior, view, name, targets, steps) for name in ("fp32", "bf16", "bf16 compiled")}
    best = min(found, key=lambda name: found[name][1])
    lost = found["fp32"][2] - found["bf16 compiled"][2]
    return [
        *(ratio for ratio, _, _ in found.values()),
        Ratio(f"seconds a target, {best}", found[best][1], 0.4, detail=f"{targets} targets at once"),
        Ratio("median cosine lost by bfloat16", lost, 0.01, detail="both measured in float32"),
    ]


def compared(prior: Prior, view: View, name: str, targets: int, steps: int) -> tuple[Ratio, float, float]:
    """One precision: the ratio, seconds a target for 100 steps, and the median cosine reached."""
    device, size = prior.device.type, frame_size(prior)
    preset = Preset(steps=steps, drop_at=steps // 2, averaged=max(steps * 7 // 10, 1))
    with torch.inference_mode():
        wanted = view(prior.decode(prior.sample(targets, 5), size)).clone()
    starts = prior.sample(targets * preset.starts, 6).reshape(targets, preset.starts, -1)
    search = Search(prior, view, preset, name.removesuffix(" compiled"), "compiled" in name)
    search.warm(flat(starts, prior.slots), wanted.repeat_interleave(preset.starts, dim=0))
    bare_loop(search, starts, wanted, 1)  # the first pass of a network is slower than the others
    took, cosines = timed(lambda: search(starts, wanted, Ledger())[1], device)
    bare, _ = timed(lambda: bare_loop(search, starts, wanted, steps), device)
    each, alone = (seconds / targets * WHOLE / steps for seconds in (took, bare))
    cosine = float(cosines.amax(dim=1).median())
    detail = f"{each:.2f} against {alone:.2f} s a target for {WHOLE} steps of {preset.starts} starts"
    detail += f", median cosine {cosine:.4f}, {memory(device):.1f} GB"
    return Ratio(f"latent search / bare passes, {name}", each / alone, 1.2, detail=detail), each, cosine


def bare_loop(search: Search, starts: Tensor, wanted: Tensor, steps: int) -> Tensor:
    """The same passes alone: no optimiser, no averaging, no choice."""
    prior, view, dtype, at_once = search.network
    latents = flat(starts, prior.slots)
    targets = wanted.repeat_interleave(starts.shape[1], dim=0)
    gradient = torch.zeros(1)
    for start in range(0, len(latents), at_once):
        part = latents[start : start + at_once].requires_grad_()
        for _ in range(steps):
            cosines = (view(prior.decode(part.to(dtype), search.size)) * targets[start : start + at_once]).sum()
            (gradient,) = torch.autograd.grad(cosines, part)
        with torch.inference_mode():  # what was found is looked at once more, in float32
            search.view(search.prior.decode(part.detach(), search.size))
    return gradient


def flat(starts: Tensor, slots: int) -> Tensor:
    """(n, k, d) of W → (n k, slots, d) of W+."""
    return starts.flatten(0, 1)[:, None].repeat(1, slots, 1)


def timed(work: Callable[[], Tensor], device: str) -> tuple[float, Tensor]:
    """Wall time on a GPU; on the CPU its own time over both cores, so that other work counts for little."""
    if device == "cuda":
        torch.cuda.synchronize()
        began = time.monotonic()
        made = work()
        torch.cuda.synchronize()
        return time.monotonic() - began, made
    cpu = time.process_time()
    made = work()
    return time.process_time() - cpu, made


def memory(device: str) -> float:
    """Most that was used, in GB."""
    if device == "cuda":
        return float(np.float64(torch.cuda.max_memory_allocated()) / 1e9)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
