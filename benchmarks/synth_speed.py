"""Accepted pictures of people who do not exist: how many a minute on a GPU, and their cost beside decoding alone."""

import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import torch

from benchmarks.ratios import Ratio
from unface.faces import load_detector
from unface.judge import load_panel
from unface.prior import load_prior
from unface.synth import Recipe, synthesise
from unface.synth.make import Studio
from unface.synth.palette import decode_size, decoded, draw, moved, palette_of
from unface.synth.photograph import photographed

JUDGES = ("arcface-mbf", "sface")
# On a GPU what is waited for; on a CPU what it takes, so that other work on the machine counts for little.
CLOCK = time.monotonic if torch.cuda.is_available() else time.process_time

Made = TypeVar("Made")


def run() -> list[Ratio]:
    """480 people × 20 pictures of 256 px on a GPU; where there is none 2 × 3, which says what a CPU takes."""
    gpu = torch.cuda.is_available()
    recipe = Recipe(480, 20) if gpu else Recipe(2, 3)
    device = "cuda" if gpu else "cpu"
    prior, detector = load_prior(device=device, accept_licence=True), load_detector()
    judges = load_panel(JUDGES, device=device, accept_licence=True)
    with ThreadPoolExecutor(1) as pool:
        studio = Studio(recipe, prior, palette_of(prior, recipe, detector), judges, detector, pool)
        alone = stages(studio, tries=32 if gpu else 2)
    with tempfile.TemporaryDirectory() as folder:
        start = CLOCK()
        made = synthesise(recipe, prior, judges, detector, Path(folder) / "people")
        seconds = CLOCK() - start
    rate = 60 * made.accepted / seconds
    detail = f"{made.accepted} in {seconds:.1f} s; {'; '.join(made.sentences()[1:])}; {alone}"
    if gpu:
        return [Ratio("accepted pictures of 256 px a minute, GPU", rate, 8000, at_least=True, detail=detail)]
    shots = made.tries + len(made.identities) + sum(made.refused.values())
    return [Ratio("making a picture / decoding it alone, CPU", seconds / shots / alone.decode, 5, detail=detail)]


@dataclass(frozen=True)
class Stages:
    """Seconds for one try, each stage alone; ``camera`` on one core."""

    decode: float
    photograph: float
    camera: float
    judge: float

    def __str__(self) -> str:
        named = (f"{name} {1e3 * value:.2f}" for name, value in vars(self).items())
        return f"ms a try by stage, each alone (camera on one core): {', '.join(named)}"


def stages(studio: Studio, tries: int) -> Stages:
    recipe, palette = studio.recipe, studio.palette
    drawn = [draw(recipe.seed, 0, number, palette) for number in range(tries)]
    latents = moved(studio.latents([0])[0], drawn, palette, studio.prior.slots)
    faces, decode = timed(lambda: decoded(studio.prior, latents, decode_size(studio.prior, recipe.size)))
    pictures, photograph = timed(lambda: photographed(faces, drawn, palette.backgrounds, recipe.size).cpu().numpy())
    shots, camera = timed(lambda: [studio.shot(picture, 80) for picture in pictures])
    _, judge = timed(lambda: studio.vectors(shots))
    return Stages(decode / tries, photograph / tries, camera / tries, judge / tries)


def timed(work: Callable[[], Made]) -> tuple[Made, float]:
    """What it gives and the seconds of its second time."""
    for last in (False, True):
        start = CLOCK()
        with torch.inference_mode():
            given = work()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        if last:
            break
    return given, CLOCK() - start
