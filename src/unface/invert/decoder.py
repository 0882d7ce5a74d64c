"""A network from stored vectors to faces, trained on train people and generated faces; ``refine`` then moves its input.

It stands for NbNet (Mai et al. 2018) and Vec2Face (Wu et al. 2025), whose weights cannot be had, and is neither.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from unface.errors import UnfaceError
from unface.invert.ports import Generator, Invert, Ledger, Need, Reconstructions, Targets, Threat, Train
from unface.invert.view import View, as_pictures, frame_size, in_parts
from unface.seeds import stream

_NARROWER = (1, 0.75, 0.5, 0.25, 0.125, 0.0625)  # of the width, at 4, 8, 16, … px
_GROUPS = 8
_AT_ONCE = 100


@dataclass(frozen=True)
class Preset:
    """How the network learns, and how long its input is moved afterwards."""

    size: int = 64
    """64 or 128 px."""
    width: int = 512
    """Channels at 4 px; fewer at larger sizes."""
    steps: int = 2000
    batch: int = 64
    rate: float = 1e-3
    generated: int = 4000
    """Faces of the prior that it learns from beside train people; half of each batch. 0 for none."""
    features: float = 0.5
    """Weight of the cosine distance in a second recogniser, which does not judge."""
    cosine: float = 1.0
    """Weight of the cosine distance in the attacked space."""
    refine: int = 0
    """Steps of Adam on the input, uphill in the attacked cosine."""
    refine_rate: float = 0.01

    def __post_init__(self) -> None:
        if self.size not in (64, 128):
            raise UnfaceError(f"decoder: size is {self.size}; expected 64 or 128")
        if self.width < 64 or self.width % 64:
            raise UnfaceError(f"decoder: width is {self.width}; expected a multiple of 64")
        if min(self.steps, self.batch) < 1 or min(self.generated, self.refine) < 0 or self.rate <= 0:
            raise UnfaceError("decoder: steps and batch are at least 1, the rate is above 0, the others not negative")


class Decoder:
    """``decoder``; ``decoder:refine=100,size=128`` with changes of the preset."""

    batch = _AT_ONCE

    def __init__(self, preset: str = "") -> None:
        self.name = f"decoder:{preset}" if preset else "decoder"
        self.preset = read_preset(preset)

    @property
    def needs(self) -> frozenset[Need]:
        """A prior only where generated faces are learned from."""
        return frozenset({Need.GRADIENTS, Need.TRAIN, *([Need.PRIOR] if self.preset.generated else [])})

    @property
    def settings(self) -> Mapping[str, float | str]:
        """The preset."""
        return asdict(self.preset)

    def prepare(self, threat: Threat, ledger: Ledger) -> Invert:
        """Train the network."""
        view, preset = threat.view, self.preset
        assert view is not None, "require checks"
        network = trained(threat, preset, ledger)

        def invert(targets: Targets, ledger: Ledger) -> Reconstructions:
            wanted = torch.from_numpy(targets.vectors).to(view.device)
            given = refined(network, view, wanted, preset, ledger) if preset.refine else wanted
            with torch.inference_mode():
                pictures = network(given)
                reached = (view(pictures) * wanted).sum(dim=1)
            ledger.count("encoder", forward=len(wanted))
            return Reconstructions(reached.cpu().numpy(), as_pictures(pictures))

        return invert


class Network(nn.Module):
    """(n, d) unit vectors → (n, 3, size, size) RGB from 0 to 1."""

    def __init__(self, dim: int, size: int, width: int = 512) -> None:
        super().__init__()
        widths = [max(round(width * share), _GROUPS) for share in _NARROWER[: size.bit_length() - 2]]
        self.first = nn.Linear(dim, widths[0] * 16)
        self.blocks = nn.ModuleList(_Doubled(given, width) for given, width in pairwise(widths))
        self.norm, self.colours = nn.GroupNorm(_GROUPS, widths[-1]), nn.Conv2d(widths[-1], 3, 3, padding=1)
        self.scale = dim**0.5  # unit vectors have small numbers

    def forward(self, vectors: Tensor) -> Tensor:
        x = self.first(vectors * self.scale).unflatten(1, (-1, 4, 4))
        for block in self.blocks:
            x = block(x)
        pictures: Tensor = torch.sigmoid(self.colours(functional.silu(self.norm(x))))
        return pictures


class _Doubled(nn.Module):
    def __init__(self, given: int, width: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(_GROUPS, given), nn.GroupNorm(_GROUPS, width)
        self.conv1, self.conv2 = nn.Conv2d(given, width, 3, padding=1), nn.Conv2d(width, width, 3, padding=1)
        self.shortcut = nn.Conv2d(given, width, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = functional.interpolate(x, scale_factor=2.0, mode="nearest")
        y = self.conv2(functional.silu(self.norm2(self.conv1(functional.silu(self.norm1(x))))))
        added: Tensor = y + self.shortcut(x)
        return added


def trained(threat: Threat, preset: Preset, ledger: Ledger) -> Network:
    """Pixels (L1), features of a recogniser that does not judge, and the attacked cosine itself."""
    view, train, second = threat.view, threat.train, threat.second
    assert view is not None, "require checks"
    if train is None or train.pictures is None:
        raise UnfaceError(
            "attack 'decoder' needs pictures of train people in the prior's frame, which are not given here; use alsuv"
        )
    device = view.device
    vectors, pictures = _people(train, preset.size)
    vectors, pictures = vectors.to(device), pictures.to(device)
    if preset.generated and threat.prior is not None:
        made = _generated(threat, threat.prior, preset, ledger)
        with torch.inference_mode():
            seen = in_parts(len(made), lambda part: view(_floats(made[part])))
        ledger.count("encoder", forward=len(made))
        sources = [(vectors, pictures), (seen.clone(), made)]
    else:
        sources = [(vectors, pictures)]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(stream(threat.seed, "decoder", "weights").integers(1 << 62)))
        network = Network(vectors.shape[1], preset.size, preset.width)
    network = network.to(device)
    optimiser = torch.optim.Adam(network.parameters(), lr=preset.rate, betas=(0.9, 0.99))
    draw = stream(threat.seed, "decoder", "batches")
    learned_by, own = view, second
    if device.type == "cuda":  # faster to learn by; what is reached is measured in float32
        learned_by, own = view.cast(torch.bfloat16), None if second is None else second.cast(torch.bfloat16)
    for step in range(preset.steps):
        for group in optimiser.param_groups:  # up in a twentieth of the steps, then down to nothing
            group["lr"] = preset.rate * min(20 * (step + 1) / preset.steps, 1 - step / preset.steps)
        each = -(-preset.batch // len(sources))
        rows = [torch.from_numpy(draw.integers(len(known), size=each)).to(device) for known, _ in sources]
        given = torch.cat([known[row] for (known, _), row in zip(sources, rows, strict=True)])
        shown = torch.cat([_floats(held[row]) for (_, held), row in zip(sources, rows, strict=True)])
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            made_now = network(given)
        made_now = made_now.float()
        loss = functional.l1_loss(made_now, shown)
        loss = loss + preset.cosine * (1 - (learned_by(made_now) * given).sum(dim=1)).mean()
        ledger.count("encoder", len(given), len(given))
        if own is not None and preset.features:
            with torch.no_grad():
                known_features = own(shown)
            loss = loss + preset.features * (1 - (own(made_now) * known_features).sum(dim=1)).mean()
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimiser.step()
    return network.eval().requires_grad_(False)


def refined(network: nn.Module, view: View, wanted: Tensor, preset: Preset, ledger: Ledger) -> Tensor:
    """Inputs near the targets whose pictures have a higher cosine; the best of all steps for each target."""
    given = wanted.clone().requires_grad_()
    optimiser = torch.optim.Adam([given], lr=preset.refine_rate)
    best, best_cosines = wanted.clone(), torch.full((len(wanted),), -torch.inf, device=wanted.device)
    for _ in range(preset.refine):
        cosines = (view(network(given)) * wanted).sum(dim=1)
        better = cosines.detach() > best_cosines
        best[better], best_cosines = given.detach()[better], torch.maximum(cosines.detach(), best_cosines)
        (given.grad,) = torch.autograd.grad(-cosines.sum(), given)
        optimiser.step()
    ledger.count("encoder", len(wanted) * preset.refine, len(wanted) * preset.refine)
    return best


def read_preset(text: str) -> Preset:
    """Changes of the preset: ``refine=100,steps=500``."""
    kinds = {field.name: field.type for field in fields(Preset)}
    changes: dict[str, float] = {}
    for word in (word.strip() for word in text.split(",") if word.strip()):
        name, _, value = word.partition("=")
        try:
            changes[name] = float(value) if kinds[name] is float else int(value)
        except (KeyError, ValueError):
            known = ", ".join(kinds)
            raise UnfaceError(f"decoder: {word!r} is not a setting and a number; settings are {known}") from None
    return replace(Preset(), **changes)  # type: ignore[arg-type]


def _people(train: Train, size: int) -> tuple[Tensor, Tensor]:
    """Vectors, and (n, 3, size, size) bytes of the pictures."""
    assert train.pictures is not None, "trained checks"
    rows, parts = np.arange(len(train.vectors)), []
    for start in range(0, len(rows), 1024):
        held = torch.from_numpy(train.pictures(rows[start : start + 1024])).permute(0, 3, 1, 2)
        parts.append(_bytes(_resized(_floats(held), size)))
    return torch.tensor(train.vectors), torch.cat(parts)  # a copy: vectors of a set cannot be written to


def _generated(threat: Threat, prior: Generator, preset: Preset, ledger: Ledger) -> Tensor:
    """(n, 3, size, size) bytes of the prior's pictures, none of those that attacks start from."""
    latents = prior.sample(preset.generated, threat.seed + 1)
    with torch.inference_mode():
        made = in_parts(
            len(latents), lambda part: _bytes(_resized(prior.decode(latents[part], frame_size(prior)), preset.size))
        )
    ledger.count("prior", forward=len(latents))
    return made.clone()


def _resized(pictures: Tensor, size: int) -> Tensor:
    if pictures.shape[-1] == size:
        return pictures
    return functional.interpolate(pictures.float(), (size, size), mode="bilinear", align_corners=False, antialias=True)


def _bytes(pictures: Tensor) -> Tensor:
    return (pictures.float() * 255).round().clamp(0, 255).to(torch.uint8)


def _floats(pictures: Tensor) -> Tensor:
    return pictures.float() / 255
