"""FaceMAE (paper 004): a masked autoencoder whose pictures keep what a recogniser learns from, and the masks it uses.

The network receives visible patches and nothing else: hidden pixels cannot reach its output.
"""

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, cast, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from unface.encode import Encoder, gradients_of
from unface.errors import UnfaceError
from unface.faces import ARCFACE_112

Loss = Literal["mse", "im", "rm", "irm"]
Hidden = Literal["none", "eyes", "mouth"]
_ARCFACE = 112
_AROUND = 12.0  # pixels of the template around the eyes or the corners of the mouth


@dataclass(frozen=True)
class Preset:
    """Sizes of the network, and how long the recipe trains it."""

    size: int
    patch: int
    dim: int
    depth: int
    heads: int
    decoder_dim: int
    decoder_depth: int
    decoder_heads: int
    batch: int
    epochs: int
    learning_rate: float

    @property
    def grid(self) -> int:
        """Patches along a side."""
        return self.size // self.patch

    @property
    def tokens(self) -> int:
        return self.grid**2


PRESETS = {
    "tiny": Preset(64, 8, 64, 2, 4, 64, 1, 4, batch=32, epochs=60, learning_rate=4e-3),
    "small": Preset(112, 8, 384, 12, 6, 256, 4, 8, batch=256, epochs=100, learning_rate=4.5e-4),
    "base": Preset(224, 16, 768, 12, 12, 512, 8, 16, batch=256, epochs=200, learning_rate=1.5e-4),
}


def preset_of(name: str) -> Preset:
    """By name, or a refusal."""
    if name not in PRESETS:
        raise UnfaceError(f"preset {name!r} is not known; choose from {', '.join(PRESETS)}")
    return PRESETS[name]


def loss_of(name: str) -> Loss:
    """By name, or a refusal."""
    for loss in get_args(Loss):
        if loss == name:
            return cast(Loss, loss)
    raise UnfaceError(f"loss {name!r} is not known; choose from {', '.join(get_args(Loss))}")


def hidden_of(name: str) -> Hidden:
    """By name, or a refusal."""
    for hidden in get_args(Hidden):
        if hidden == name:
            return cast(Hidden, hidden)
    raise UnfaceError(f"{name!r} cannot be hidden; choose from {', '.join(get_args(Hidden))}")


@dataclass(frozen=True)
class Masking:
    """How many patches are hidden, and which of them always are."""

    ratio: float = 0.75
    hidden: Hidden = "none"

    def __post_init__(self) -> None:
        if not 0 < self.ratio < 1:
            raise UnfaceError(f"mask ratio is {self.ratio:g}; expected above 0 and below 1")

    def shown(self, preset: Preset) -> int:
        """Visible patches of each picture."""
        count = round(preset.tokens * (1 - self.ratio))
        free = len(self.free(preset))
        if not 1 <= count <= free:
            raise UnfaceError(
                f"mask ratio {self.ratio:g} shows {count} of {free} patches; expected at least 1, not all"
            )
        return count

    def free(self, preset: Preset) -> NDArray[np.int64]:
        """Patches that may be visible, in order: those that no hidden region touches."""
        allowed = np.ones((preset.grid, preset.grid), dtype=bool)
        if self.hidden != "none":
            points = ARCFACE_112[:2] if self.hidden == "eyes" else ARCFACE_112[3:]
            first, last = points.min(axis=0) - _AROUND, points.max(axis=0) + _AROUND
            side = _ARCFACE / preset.grid
            (left, top), (right, bottom) = (first // side).astype(int), (last // side).astype(int)
            allowed[top : bottom + 1, left : right + 1] = False
        return np.flatnonzero(allowed)

    def positions(self, preset: Preset, key: bytes, content: bytes) -> NDArray[np.int64]:
        """(shown,) ascending: the one mask of a picture, which a secret key and a hash of the picture decide.

        By keyed hashes alone, so that no library's generator can change it between two releases.
        """
        free = self.free(preset)
        order = [hashlib.blake2b(content + int(token).to_bytes(4, "little"), key=key).digest() for token in free]
        chosen = sorted(range(len(free)), key=order.__getitem__)[: self.shown(preset)]
        return np.sort(free[chosen])

    def drawn(self, preset: Preset, count: int, random: torch.Generator) -> Tensor:
        """(count, shown) random masks for training."""
        free = _free_on(self, preset, random.device)
        order = torch.rand((count, len(free)), generator=random, device=random.device).argsort(dim=1)
        return free[order[:, : self.shown(preset)]].sort(dim=1).values


@lru_cache(maxsize=8)
def _free_on(masking: Masking, preset: Preset, device: torch.device) -> Tensor:
    """``Masking.free`` where masks are drawn: a training step must not wait for a copy."""
    return torch.from_numpy(masking.free(preset)).to(device)


@dataclass(frozen=True, eq=False)
class Visible:
    """All that is ever seen of masked pictures: the visible patches, copied out, and where they were."""

    patches: NDArray[np.uint8]
    """(n, shown, patch · patch · 3)."""
    positions: NDArray[np.int64]
    """(n, shown), ascending."""

    @classmethod
    def of(cls, frame: NDArray[np.uint8], positions: NDArray[np.int64], preset: Preset) -> "Visible":
        """Of one picture (size, size, 3); nothing here refers to its memory."""
        cells = frame.reshape(preset.grid, preset.patch, preset.grid, preset.patch, 3).swapaxes(1, 2)
        patches = cells.reshape(1, preset.tokens, -1)[:, positions]
        return cls(np.ascontiguousarray(patches), positions[None].copy())

    @classmethod
    def stacked(cls, pictures: "list[Visible]") -> "Visible":
        return cls(np.concatenate([one.patches for one in pictures]), np.concatenate([o.positions for o in pictures]))


def patches_of(pictures: Tensor, patch: int) -> Tensor:
    """(n, 3, s, s) → (n, tokens, patch · patch · 3), pixel after pixel as in ``Visible``."""
    count, _, size, _ = pictures.shape
    cells = pictures.reshape(count, 3, size // patch, patch, size // patch, patch)
    return cells.permute(0, 2, 4, 3, 5, 1).reshape(count, (size // patch) ** 2, -1)


class _Block(nn.Module):
    """Attention, then a perceptron, each after a normalisation and added to what came in."""

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before_attention, self.before_mlp = nn.LayerNorm(dim, eps=1e-6), nn.LayerNorm(dim, eps=1e-6)
        self.query_key_value, self.mixed = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.wide, self.narrow = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        count, tokens, dim = x.shape
        parts = self.query_key_value(self.before_attention(x)).view(count, tokens, 3, self.heads, dim // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        attended = functional.scaled_dot_product_attention(query, key, value)
        x = x + self.mixed(attended.transpose(1, 2).reshape(count, tokens, dim))
        widened: Tensor = self.narrow(functional.gelu(self.wide(self.before_mlp(x))))
        return x + widened


class MaskedAutoencoder(nn.Module):
    """Visible patches and their places → whole pictures (n, 3, size, size) RGB from 0 to 1."""

    def __init__(self, preset: Preset) -> None:
        super().__init__()
        self.preset = preset
        dim, inner, pixels = preset.dim, preset.decoder_dim, 3 * preset.patch**2
        self.embed, self.encoded = nn.Linear(pixels, dim), nn.LayerNorm(dim, eps=1e-6)
        self.encoder = nn.ModuleList([_Block(dim, preset.heads) for _ in range(preset.depth)])
        self.bridge, self.decoded = nn.Linear(dim, inner), nn.LayerNorm(inner, eps=1e-6)
        self.decoder = nn.ModuleList([_Block(inner, preset.decoder_heads) for _ in range(preset.decoder_depth)])
        self.unseen, self.pixels = nn.Parameter(torch.zeros(inner)), nn.Linear(inner, pixels)
        self.register_buffer("places", _places(preset.grid, dim), persistent=False)
        self.register_buffer("decoder_places", _places(preset.grid, inner), persistent=False)

    places: Tensor
    decoder_places: Tensor

    def initialise(self, seed: int) -> "MaskedAutoencoder":
        """Xavier's weights from a seed, as MAE begins; the same whatever else has drawn random numbers."""
        random = torch.Generator().manual_seed(seed)
        for layer in self.modules():
            if isinstance(layer, nn.Linear):
                bound = (6 / (layer.in_features + layer.out_features)) ** 0.5
                drawn = torch.rand(layer.weight.shape, generator=random) * 2 * bound - bound
                layer.weight.data.copy_(drawn)
                layer.bias.data.zero_()
        self.unseen.data.copy_(0.02 * torch.randn(self.unseen.shape, generator=random))
        return self

    def forward(self, patches: Tensor, positions: Tensor) -> Tensor:
        """Of (n, shown, patch · patch · 3) from 0 to 1 and (n, shown); no pixel of any other patch is asked for."""
        preset, count = self.preset, len(patches)
        x = self.embed(patches - 0.5) + self.places[positions]
        for block in self.encoder:
            x = block(x)
        x = self.bridge(self.encoded(x))
        everywhere = positions[..., None].expand(-1, -1, x.shape[-1])
        tokens = self.unseen.to(x.dtype).expand(count, preset.tokens, -1).scatter(1, everywhere, x)
        tokens = tokens + self.decoder_places
        for block in self.decoder:
            tokens = block(tokens)
        pixels = self.pixels(self.decoded(tokens))
        made = torch.sigmoid(pixels.to(torch.promote_types(pixels.dtype, torch.float32)))
        cells = made.view(count, preset.grid, preset.grid, preset.patch, preset.patch, 3)
        return cells.permute(0, 5, 1, 3, 2, 4).reshape(count, 3, preset.size, preset.size)


def _places(grid: int, dim: int) -> Tensor:
    """(tokens, dim): sines and cosines of row and column, a quarter of the numbers each."""
    rates = 1 / 10_000 ** (torch.arange(dim // 4, dtype=torch.float64) / (dim / 4))
    angles = torch.arange(grid, dtype=torch.float64)[:, None] * rates
    along = torch.cat([angles.sin(), angles.cos()], dim=1)
    rows, columns = along[:, None].expand(-1, grid, -1), along[None].expand(grid, -1, -1)
    return torch.cat([rows, columns], dim=2).reshape(grid**2, -1).float()


class Features(nn.Module):
    """Aligned faces (n, 3, s, s) from 0 to 1 → (n, d) unit vectors of a frozen recogniser, with gradients."""

    mean: Tensor
    std: Tensor

    def __init__(self, encoder: Encoder, device: str = "cpu") -> None:
        super().__init__()
        self.name, self.wanted = encoder.name, encoder.card.input
        self.network = gradients_of(encoder)
        mean, std = (torch.tensor(values).view(1, 3, 1, 1) / 255 for values in (self.wanted.mean, self.wanted.std))
        self.register_buffer("mean", mean)
        self.register_buffer("std", std)
        self.requires_grad_(False).eval().to(device)
        # Tensor cores take channels last; on a CPU the order stays, and with it every bit of earlier results.
        self._order = torch.channels_last if torch.device(device).type == "cuda" else torch.contiguous_format
        self.to(memory_format=self._order)  # type: ignore[call-overload]

    def forward(self, pictures: Tensor) -> Tensor:
        size = self.wanted.size
        if size not in (0, pictures.shape[-1]):
            pictures = functional.interpolate(
                pictures, (size, size), mode="bilinear", align_corners=False, antialias=True
            )
        if self.wanted.channels == "BGR":
            pictures = pictures.flip(1)
        vectors: Tensor = self.network(((pictures - self.mean) / self.std).contiguous(memory_format=self._order))
        return functional.normalize(vectors.to(torch.promote_types(vectors.dtype, torch.float32)), dim=1)


def mean_distance(one: Tensor, other: Tensor) -> Tensor:
    """Δ of paper 004, eq. 2: the mean Euclidean distance between rows of the same number; of vectors, IM."""
    distances: Tensor = torch.linalg.vector_norm(one - other, dim=1)
    return distances.mean()


def relation_matching(real: Tensor, made: Tensor) -> Tensor:
    """RM: reconstructions are as similar to each other as their originals are; zero where the Gram matrices agree."""
    return mean_distance(real @ real.T, made @ made.T)


def feature_loss(kind: Loss, real: Tensor, made: Tensor, beta: float) -> Tensor:
    """Of the vectors (n, d) of originals and reconstructions: IM, RM, or IM + β · RM (paper 004, eq. 2)."""
    match kind:
        case "im":
            return mean_distance(real, made)
        case "rm":
            return relation_matching(real, made)
        case "irm":
            return mean_distance(real, made) + beta * relation_matching(real, made)
    raise UnfaceError(f"loss {kind!r} needs no recogniser; choose im, rm or irm")


def reconstruct(model: MaskedAutoencoder, visible: Visible) -> NDArray[np.uint8]:
    """(n, size, size, 3): the whole picture that the decoder makes. The true visible pixels are not pasted in."""
    device = model.unseen.device
    with torch.inference_mode():
        patches = torch.from_numpy(visible.patches).to(device).float() / 255
        made = model(patches, torch.from_numpy(visible.positions).to(device))
    pixels: NDArray[np.uint8] = (made * 255).round().to(torch.uint8).permute(0, 2, 3, 1).contiguous().cpu().numpy()
    return pixels
