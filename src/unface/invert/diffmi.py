"""Noise search in a diffusion prior: the best of many noises walk uphill in the attacked cosine, in a small ball.

After DiffMI (Wang et al. 2025), as paper 001 uses it (App. C.2). The walk is APGD (Croce and Hein 2020).
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Literal, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unface.errors import UnfaceError
from unface.faces import load_detector
from unface.invert.ports import Invert, Ledger, Need, Reconstructions, Targets, Threat
from unface.invert.view import Pool, View, as_pictures, in_parts, require_size
from unface.seeds import stream

_NOISES_ON_GPU = 96  # decoded at once: 32 targets of three noises
_BLOCK = {"cuda": 1 << 25, "cpu": 1 << 21}  # numbers drawn at once while noises are chosen
_PATIENCE = 200  # times as many noises as expected, before the test is called too strict
Detect = Callable[[NDArray[np.uint8]], NDArray[np.bool_]]
"""(n, s, s, 3) pictures → (n,) whether a face is found."""


class NoisePrior(Protocol):
    """What the search needs of ``unface.prior.diffusion.DiffusionPrior``."""

    name: str
    size: int
    sizes: tuple[int, ...]
    steps: int

    @property
    def device(self) -> torch.device:
        """Where noise and pictures live."""
        ...

    def sample(self, count: int, seed: int) -> Tensor:
        """(count, 3, size, size) noise."""
        ...

    def decode(
        self, noise: Tensor, size: int | None = None, gradient: Literal["true", "straight-through"] = "true"
    ) -> Tensor:
        """(n, 3, size, size) RGB from 0 to 1."""
        ...


@dataclass(frozen=True)
class Preset:
    """How the search goes."""

    pool: int = 1000
    p: float = 0.999
    """Least p-value of D'Agostino's K² test of the noise; uniform for true noise, so one in 1,000 passes."""
    top: int = 3
    radius: float = 35 / 256
    """Of the ball, for each pixel of the picture's side: 35 at 256², as published; 8.75 at 64²."""
    steps: int = 100
    stop: float = 0.99


class DiffMI:
    """``diffmi`` takes the gradient straight through the prior, as published; ``diffmi:true`` through every step."""

    needs = frozenset({Need.GRADIENTS, Need.PRIOR})

    def __init__(self, preset: str = "straight-through", *, detect: Detect | None = None) -> None:
        self.name = "diffmi" if preset == "straight-through" else f"diffmi:{preset}"
        self.gradient, self.preset = read_preset(preset)
        self._detect = detect

    @property
    def settings(self) -> Mapping[str, float | str]:
        """The preset and the kind of gradient."""
        return {**asdict(self.preset), "gradient": self.gradient}

    @property
    def batch(self) -> int:
        """Targets."""
        return max(_NOISES_ON_GPU // self.preset.top, 1)

    def refuse_prior(self, prior: object) -> None:
        """Unless its latents are noise."""
        noise_prior(prior, self.name)

    def prepare(self, threat: Threat, ledger: Ledger) -> Invert:
        """Choose the noises, decode and encode them."""
        prior, view, preset = noise_prior(threat.prior, self.name), threat.view, self.preset
        assert view is not None, "require checks"
        require_size(prior, view)
        key = (threat.encoder, f"{prior.name} K² {preset.p}", preset.pool, threat.seed)
        if key not in threat.pools:
            with ledger.timed():
                threat.pools[key] = self._pool(prior, view, threat.seed, ledger)
        pool = threat.pools[key]

        def invert(targets: Targets, ledger: Ledger) -> Reconstructions:
            wanted = torch.from_numpy(targets.vectors).to(prior.device)
            places, _ = pool.best(view, wanted, preset.top)
            count = places.shape[1]
            starts, each = pool.latents[places].flatten(0, 1), wanted.repeat_interleave(count, dim=0)

            def cosines(noise: Tensor) -> Tensor:
                found: Tensor = (view(prior.decode(noise, prior.size, self.gradient)) * each).sum(dim=1)
                return found

            made = apgd(cosines, starts, preset.radius * prior.size, preset.steps, preset.stop)
            ledger.count("prior", made.forward, made.backward if self.gradient == "true" else 0)
            ledger.count("encoder", made.forward, made.backward)
            best = made.values.reshape(-1, count).argmax(dim=1)
            chosen = made.points.reshape(len(wanted), count, *made.points.shape[1:])[range(len(wanted)), best]
            with torch.inference_mode():
                pictures = in_parts(len(chosen), lambda part: prior.decode(chosen[part]))
            ledger.count("prior", forward=len(chosen))
            return Reconstructions(made.values.reshape(-1, count).amax(dim=1).cpu().numpy(), as_pictures(pictures))

        return invert

    def _pool(self, prior: NoisePrior, view: View, seed: int, ledger: Ledger) -> Pool:
        """Noises that pass the test, whose pictures show a face."""
        detect, preset = self._detect or _finds_face(), self.preset
        latents, vectors, round_ = list[Tensor](), list[Tensor](), 0
        while sum(map(len, latents)) < preset.pool:
            if round_ == 20:
                found = sum(map(len, latents))
                raise UnfaceError(f"diffmi: the detector finds {found} faces of {prior.name}; is it a prior of faces?")
            noises = normal_noises(prior, preset.pool, preset.p, seed, round_)
            pictures, shown = self._shown(prior, noises, detect)
            ledger.count("prior", forward=len(noises))
            if len(pictures):
                vectors.append(_encoded(view, pictures))
                latents.append(noises[shown])
            ledger.count("encoder", forward=len(pictures))
            round_ += 1
        return Pool(torch.cat(latents)[: preset.pool], torch.cat(vectors)[: preset.pool].clone(), prior.size)

    @staticmethod
    def _shown(prior: NoisePrior, noises: Tensor, detect: Detect) -> tuple[Tensor, Tensor]:
        """Pictures that show a face, and which noises they are of."""
        with torch.inference_mode():
            pictures = in_parts(len(noises), lambda part: prior.decode(noises[part]))
        shown = torch.from_numpy(detect(as_pictures(pictures))).to(pictures.device)
        return pictures[shown], shown


def _encoded(view: View, pictures: Tensor) -> Tensor:
    with torch.inference_mode():
        return in_parts(len(pictures), lambda part: view.encode(pictures[part])).clone()


@dataclass(frozen=True, eq=False)
class Climbed:
    """Where APGD ended: the best point of each row, its value, and what it cost."""

    points: Tensor
    values: Tensor
    forward: int
    backward: int


def apgd(
    objective: Callable[[Tensor], Tensor], starts: Tensor, radius: float, steps: int, stop: float = math.inf
) -> Climbed:
    """Maximise each row's objective within ``radius`` (L2) of its start: Croce and Hein 2020, algorithm 1.

    ``objective`` gives (n,) values of (n, …) points. A row whose best value is above ``stop`` rests.
    """
    shape = (-1, *[1] * (starts.ndim - 1))

    def norms(x: Tensor) -> Tensor:
        lengths: Tensor = torch.linalg.vector_norm(x.flatten(1), dim=1)
        return lengths.reshape(shape)

    def ascent(x: Tensor) -> tuple[Tensor, Tensor]:
        at = x.detach().requires_grad_()
        values = objective(at)
        (gradient,) = torch.autograd.grad(values.sum(), at)
        return values.detach(), gradient / norms(gradient).clamp_min(torch.finfo(gradient.dtype).tiny)

    def within(x: Tensor) -> Tensor:
        offset = x - starts
        return starts + offset * (radius / norms(offset).clamp_min(radius))

    x = before = starts.detach().clone()
    values, uphill = ascent(x)
    best, best_values, best_uphill = x.clone(), values.clone(), uphill
    pace = torch.full_like(values, 2 * radius)
    improved, kept_pace, last_best = (
        torch.zeros_like(values),
        torch.zeros_like(values, dtype=torch.bool),
        values.clone(),
    )
    checkpoints, passes = checkpoints_of(steps), len(x)
    previous_check = 0
    for step in range(steps):
        active = best_values <= stop
        if not active.any():
            break
        candidate = within(x + pace.reshape(shape) * uphill)
        # The first step has no momentum.
        share = 0.75 if step else 1.0
        moved = within(x + share * (candidate - x) + (1 - share) * (x - before))
        moved = torch.where(active.reshape(shape), moved, x)
        before, x = x, moved
        earlier = values
        values, uphill = ascent(x)
        passes += len(x)
        improved += (values > earlier).to(values.dtype)
        better = (values > best_values) & active
        best = torch.where(better.reshape(shape), x, best)
        best_uphill = torch.where(better.reshape(shape), uphill, best_uphill)
        best_values = torch.where(better, values, best_values)
        if step + 1 in checkpoints:
            few = improved < 0.75 * (step + 1 - previous_check)
            stuck = kept_pace & (best_values <= last_best)
            halve = few | stuck
            pace = torch.where(halve, pace / 2, pace)
            turned = halve.reshape(shape)
            x, before = torch.where(turned, best, x), torch.where(turned, best, before)
            values, uphill = torch.where(halve, best_values, values), torch.where(turned, best_uphill, uphill)
            kept_pace, last_best, previous_check = ~halve, best_values.clone(), step + 1
            improved = torch.zeros_like(improved)
    return Climbed(best, best_values, passes, passes)


def checkpoints_of(steps: int) -> frozenset[int]:
    """After which steps the pace is looked at."""
    shares = [0.0, 0.22]
    while shares[-1] < 1:
        shares.append(shares[-1] + max(shares[-1] - shares[-2] - 0.03, 0.06))
    return frozenset(math.ceil(round(share * steps, 6)) for share in shares[1:] if share <= 1)


def normality(noises: Tensor) -> Tensor:
    """(n,) p-values of D'Agostino and Pearson's K² test over all numbers of each noise, as scipy's ``normaltest``."""
    x = noises.flatten(1).double()
    n = x.shape[1]
    x = x - x.mean(dim=1, keepdim=True)
    square = x * x
    variance = square.mean(dim=1)
    skew = (square * x).mean(dim=1) / variance**1.5
    kurtosis = (square * square).mean(dim=1) / variance**2
    y = skew * math.sqrt((n + 1) * (n + 3) / (6 * (n - 2)))
    beta = 3 * (n * n + 27 * n - 70) * (n + 1) * (n + 3) / ((n - 2) * (n + 5) * (n + 7) * (n + 9))
    w = math.sqrt(2 * (beta - 1)) - 1
    skewed = torch.asinh(y / math.sqrt(2 / (w - 1))) / math.sqrt(0.5 * math.log(w))
    spread = 24 * n * (n - 2) * (n - 3) / ((n + 1) ** 2 * (n + 3) * (n + 5))
    standard = (kurtosis - 3 * (n - 1) / (n + 1)) / math.sqrt(spread)
    root = 6 * (n * n - 5 * n + 2) / ((n + 7) * (n + 9)) * math.sqrt(6 * (n + 3) * (n + 5) / (n * (n - 2) * (n - 3)))
    a = 6 + 8 / root * (2 / root + math.sqrt(1 + 4 / root**2))
    below = 1 + standard * math.sqrt(2 / (a - 4))
    cubic = below.sign() * ((1 - 2 / a) / below.abs()) ** (1 / 3)
    heavy = (1 - 2 / (9 * a) - cubic) / math.sqrt(2 / (9 * a))
    return torch.exp(-(skewed**2 + heavy**2) / 2)


def normal_noises(prior: NoisePrior, count: int, p: float, seed: int, round_: int = 0) -> Tensor:
    """(count, 3, size, size) noises whose p-value is at least ``p``; other devices draw others."""
    shape = (3, prior.size, prior.size)
    drawn = torch.Generator(prior.device)
    drawn.manual_seed(int(stream(seed, "diffmi", "noise", round_).integers(1 << 62)))
    block = max(_BLOCK[prior.device.type] // math.prod(shape), 1)
    found, seen = list[Tensor](), 0
    while sum(map(len, found)) < count:
        if p < 1 and seen * (1 - p) > _PATIENCE * (count + 10):
            raise UnfaceError(f"diffmi: no noise passes the K² test at p ≥ {p}; lower p")
        noises = torch.randn((block, *shape), generator=drawn, device=prior.device)
        found.append(noises[normality(noises) >= p])
        seen += block
    return torch.cat(found)[:count]


def read_preset(text: str) -> tuple[Literal["true", "straight-through"], Preset]:
    """``true``, ``straight-through``, with changes: ``true,steps=50``."""
    gradient: Literal["true", "straight-through"] = "straight-through"
    kinds = {field.name: field.type for field in fields(Preset)}
    changes: dict[str, float] = {}
    for word in (word.strip() for word in text.split(",") if word.strip()):
        name, equals, value = word.partition("=")
        if word in ("true", "straight-through"):
            gradient = "true" if word == "true" else "straight-through"
            continue
        try:
            changes[name] = float(value) if kinds[name] is float else int(value)
        except (KeyError, ValueError):
            known = ", ".join(kinds)
            raise UnfaceError(
                f"diffmi: {word!r} is not true, straight-through, or a setting and a number; settings are {known}"
            ) from None
        del equals
    preset = replace(Preset(), **changes)  # type: ignore[arg-type]
    if min(preset.pool, preset.top, preset.steps) < 1 or not 0 <= preset.p < 1 or preset.radius <= 0:
        raise UnfaceError("diffmi: pool, top and steps are at least 1, p is below 1, the radius above 0")
    return gradient, preset


def noise_prior(prior: object, attack: str) -> NoisePrior:
    """Refuse a prior whose latents are not noise."""
    if hasattr(prior, "slots") or not hasattr(prior, "steps"):
        name = getattr(prior, "name", "none")
        raise UnfaceError(
            f"attack {attack!r} searches the noise of a diffusion prior; {name} is none, use alsuv with it"
        )
    return prior  # type: ignore[return-value]


def _finds_face() -> Detect:
    """YuNet, on pictures enlarged to at least 256 px."""
    import cv2

    detector = load_detector()

    def detect(pictures: NDArray[np.uint8]) -> NDArray[np.bool_]:
        scale = max(-(-256 // pictures.shape[1]), 1)
        large = (cv2.resize(one, None, fx=scale, fy=scale, interpolation=cv2.INTER_CUBIC) for one in pictures)
        return np.array([bool(detector.detect(np.asarray(one, np.uint8))) for one in large])

    return detect
