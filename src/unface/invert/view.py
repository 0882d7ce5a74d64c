"""How an encoder sees a generated face, with gradients: window, size, colours, network, unit length, projection."""

from collections.abc import Callable
from copy import copy, deepcopy
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from unface.data import Space
from unface.encode import Encoder, gradients_of, space_of
from unface.erase import Projection
from unface.errors import UnfaceError
from unface.invert.ports import Generator, Ledger
from unface.models import Input
from unface.prior.diffusion import face_in

_AT_ONCE = 64
_COARSEST = 6  # pixels of the encoder for each of the prior's


@dataclass(frozen=True)
class Window:
    """Where the aligned face lies in a prior's picture: left, top and side as shares of the picture's side."""

    left: float
    top: float
    side: float

    def cut(self, pictures: Tensor) -> Tensor:
        """(n, 3, s, s) → the window, to whole pixels."""
        size = pictures.shape[-1]
        left, top, side = round(self.left * size), round(self.top * size), round(self.side * size)
        return pictures[..., top : top + side, left : left + side]


# Of FFHQ's own alignment, which StyleGAN's family was trained on: the face as recognisers of 112 px expect it.
FFHQ = Window(28 / 256, 31 / 256, 200 / 256)
WHOLE = Window(0.0, 0.0, 1.0)


def window_of(prior: str | Path) -> Window:
    """Where a prior shows the face: a diffusion prior's folder says so, every other is of FFHQ's alignment."""
    return Window(*face_in(prior)) if Path(prior).is_dir() else FFHQ


# Share of the 112 px window that encoders of other alignments see of it: their crops are wider.
_WIDER = {"arcface112": 1.0, "chip150": 1.25, "box160": 1.3}


class View(nn.Module):
    """Pictures (n, 3, s, s) RGB from 0 to 1 in a prior's frame → (n, d) unit vectors of the attacked space.

    Recognisers that want an aligned face see the frame's face window, other encoders the whole frame.
    """

    def __init__(
        self,
        encoder: Encoder,
        projection: Projection | None = None,
        *,
        face: Window = FFHQ,
        device: str | torch.device = "cpu",
    ) -> None:
        super().__init__()
        self.name, self.wanted = encoder.name, encoder.card.input
        self.space, self.projection = space_of(encoder), projection
        if projection is not None:
            require_space(projection, self.space)
        self.window = _window(self.wanted, face)
        mean, std = (torch.tensor(values).view(1, 3, 1, 1) / 255 for values in (self.wanted.mean, self.wanted.std))
        self.register_buffer("mean", mean)
        self.register_buffer("std", std)
        self.network, self.dtype = gradients_of(encoder, "use translate, or invert another encoder"), torch.float32
        self.erasure = None if projection is None else projection.torch_module()
        self.requires_grad_(False).eval().to(device)
        self.network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    mean: Tensor
    std: Tensor

    def forward(self, pictures: Tensor) -> Tensor:
        """(n, d) in the attacked space."""
        return self.released(self.encode(pictures))

    def encode(self, pictures: Tensor) -> Tensor:
        """(n, d) unit vectors before any projection, in float32 or better."""
        x = self.window.cut(pictures).to(torch.promote_types(pictures.dtype, torch.float32))
        size = self.wanted.size
        if size not in (0, x.shape[-1]):
            # With a support that grows as pictures shrink, as real pictures are resized.
            x = functional.interpolate(x, (size, size), mode="bilinear", align_corners=False, antialias=True)
        if self.wanted.channels == "BGR":
            x = x.flip(1)
        x = ((x - self.mean) / self.std).to(self.dtype).contiguous(memory_format=torch.channels_last)
        vectors: Tensor = self.network(x)
        return functional.normalize(vectors.to(torch.promote_types(vectors.dtype, torch.float32)), dim=1)

    def released(self, vectors: Tensor) -> Tensor:
        """What the store holds of unit vectors: the erased ones where there is a projection, again of unit length."""
        return vectors if self.erasure is None else functional.normalize(self.erasure(vectors), dim=1)

    def with_projection(self, projection: Projection | None) -> "View":
        """The same encoder before another projection; the network is shared."""
        if projection is not None:
            require_space(projection, self.space)
        other = self._twin()
        other.projection = projection
        other.erasure = None if projection is None else projection.torch_module().requires_grad_(False).to(self.device)
        return other

    def cast(self, dtype: torch.dtype) -> "View":
        """The same with its network in another precision; unit length and projection stay exact."""
        other = self._twin()
        other.network, other.dtype = deepcopy(self.network).to(dtype), dtype
        return other

    def _twin(self) -> "View":
        """A copy that shares every tensor."""
        other = copy(self)
        other._buffers, other._modules = dict(self._buffers), dict(self._modules)
        return other

    @property
    def device(self) -> torch.device:
        """Where pictures have to be."""
        return self.mean.device


def require_space(projection: Projection, space: Space) -> None:
    """Refuse a projection of another encoder, other weights or another dimension."""
    projection.require_space(Space(space.encoder, space.weights_sha256, space.dim, projection.space.normalised))


def _window(wanted: Input, face: Window) -> Window:
    if wanted.alignment == "none":
        return WHOLE
    wider = face.side * _WIDER[wanted.alignment]
    side = min(wider, 1.0)
    left = min(max(face.left - (side - face.side) / 2, 0.0), 1.0 - side)
    top = min(max(face.top - (side - face.side) / 2, 0.0), 1.0 - side)
    return Window(left, top, side)


@dataclass(frozen=True, eq=False)
class Pool:
    """Random faces of a prior, and the encoder's unit vectors of them before any projection."""

    latents: Tensor
    vectors: Tensor
    """(n, d) on the prior's device."""
    size: int

    @classmethod
    def drawn(cls, prior: Generator, view: View, count: int, seed: int, ledger: Ledger) -> "Pool":
        """The first ``count`` faces of a seed, each encoded once."""
        size = frame_size(prior)
        latents = prior.sample(count, seed)
        with torch.inference_mode(), ledger.timed():
            vectors = in_parts(count, lambda part: view.encode(prior.decode(latents[part], size)))
        ledger.count("prior", forward=count)
        ledger.count("encoder", forward=count)
        return cls(latents, vectors.clone(), size)

    def best(self, view: View, targets: Tensor, count: int) -> tuple[Tensor, Tensor]:
        """(n, count) places of the faces nearest to each target in the attacked space, nearest first; their cosines."""
        cosines = targets @ view.released(self.vectors).T
        found = cosines.topk(min(count, len(self.vectors)), dim=1)
        return found.indices, found.values


def require_size(prior: Generator, view: View) -> None:
    """Refuse a prior whose pictures are too small to show the encoder a face."""
    seen = round(view.window.side * frame_size(prior))
    if seen * _COARSEST < view.wanted.size:
        least = -(-view.wanted.size // _COARSEST)
        raise UnfaceError(f"prior {prior.name!r}: shows {view.name} a face of {seen} px, at least {least} are needed")


def frame_size(prior: Generator) -> int:
    """256 px where the prior has it, else the nearest that it has."""
    return min(prior.sizes, key=lambda size: (abs(size - 256), -size))


def as_pictures(decoded: Tensor) -> NDArray[np.uint8]:
    """(n, s, s, 3) RGB of (n, 3, s, s) from 0 to 1."""
    pixels = (decoded.detach().float() * 255).round().clamp(0, 255).to(torch.uint8)
    pictures: NDArray[np.uint8] = pixels.permute(0, 2, 3, 1).contiguous().cpu().numpy()
    return pictures


def in_parts(count: int, function: Callable[[slice], Tensor], at_once: int = _AT_ONCE) -> Tensor:
    """``function`` of slices of 0 … count, joined; smaller ones from where a GPU's memory does not suffice."""
    done: list[Tensor] = []
    start = 0
    while start < count:
        part = slice(start, min(start + at_once, count))
        try:
            done.append(function(part))
            start = part.stop
            continue
        except torch.cuda.OutOfMemoryError:
            if part.stop - start == 1:
                raise UnfaceError(
                    "the GPU has not enough free memory for one picture; end what else runs on it, or use --device cpu"
                ) from None
        # Here, since the exception held on to what it was raised over.
        at_once = (part.stop - start) // 2
        torch.cuda.empty_cache()
    return torch.cat(done)
