"""What a release is good for: a small recogniser (MobileFaceNet) that learns from it with ArcFace's loss."""

import json
import math
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn
from torch.nn import functional

from unface.errors import UnfaceError
from unface.output.write import write_file
from unface.progress import Progress, Silent
from unface.protect.replay import Replayed
from unface.seeds import stream

_HEADER = "recogniser"
_BATCH = 512  # pictures that are embedded together
# (expansion, channels, blocks, stride) of MobileFaceNet, table 1
_STAGES = ((2, 64, 5, 2), (4, 128, 1, 2), (2, 128, 6, 1), (4, 128, 1, 2), (2, 128, 2, 1))


@dataclass(frozen=True)
class RecogniserRecipe:
    """What decides a recogniser, besides the pictures; width 1 is MobileFaceNet's own."""

    size: int = 112
    width: float = 1.0
    dim: int = 128
    epochs: int = 24
    batch: int = 256
    learning_rate: float = 3e-3
    weight_decay: float = 0.05
    scale: float = 32.0
    margin: float = 0.4
    seed: int = 0

    def __post_init__(self) -> None:
        if self.size % 16:
            raise UnfaceError(f"size is {self.size}; a recogniser takes a multiple of 16")


RECOGNISERS = {
    "tiny": RecogniserRecipe(size=64, width=0.5, epochs=30, batch=64, learning_rate=2e-3),
    "small": RecogniserRecipe(),
    "base": RecogniserRecipe(),
}
"""For the pictures of each preset of the autoencoder; 224² are brought to 112², as papers measure them."""


def arcface_loss(cosines: Tensor, people: Tensor, scale: float, margin: Tensor | float) -> Tensor:
    """Cross-entropy of ``scale`` · cosines (n, people), where the own person's angle is made larger by ``margin``.

    Where the angle would pass 180°, the cosine falls on in a line, so that the loss never turns back.
    """
    margin = torch.as_tensor(margin, dtype=cosines.dtype, device=cosines.device)
    own = cosines.gather(1, people[:, None]).clamp(-1, 1)
    sine = (1 - own**2).clamp(min=1e-12).sqrt()
    further = own * margin.cos() - sine * margin.sin()
    further = torch.where(own > (math.pi - margin).cos(), further, own - margin.sin() * margin)
    return functional.cross_entropy(scale * cosines.scatter(1, people[:, None], further.to(cosines.dtype)), people)


class _Unit(nn.Module):
    """Convolution, batch normalisation and, where it is not linear, PReLU."""

    def __init__(
        self, given: int, made: int, kernel: int = 1, stride: int = 1, padding: int = 0, groups: int = 1,
        linear: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.filter = nn.Conv2d(given, made, kernel, stride, padding, groups=groups, bias=False)
        self.norm = nn.BatchNorm2d(made)
        self.bend = nn.Identity() if linear else nn.PReLU(made)

    def forward(self, x: Tensor) -> Tensor:
        bent: Tensor = self.bend(self.norm(self.filter(x)))
        return bent


class _Bottleneck(nn.Module):
    def __init__(self, given: int, made: int, expansion: int, stride: int) -> None:
        super().__init__()
        inner = given * expansion
        self.added = stride == 1 and given == made
        self.units = nn.Sequential(
            _Unit(given, inner),
            _Unit(inner, inner, 3, stride, 1, groups=inner),
            _Unit(inner, made, linear=True),
        )

    def forward(self, x: Tensor) -> Tensor:
        made: Tensor = self.units(x)
        return x + made if self.added else made


class MobileFaceNet(nn.Module):
    """Faces (n, 3, size, size) from 0 to 1 → (n, dim), not yet of unit length."""

    def __init__(self, recipe: RecogniserRecipe) -> None:
        super().__init__()
        first = _channels(64, recipe.width)
        layers: list[nn.Module] = [_Unit(3, first, 3, 2, 1), _Unit(first, first, 3, 1, 1, groups=first)]
        given = first
        for expansion, channels, blocks, stride in _STAGES:
            made = _channels(channels, recipe.width)
            for block in range(blocks):
                layers.append(_Bottleneck(given, made, expansion, stride if block == 0 else 1))
                given = made
        last, side = _channels(512, recipe.width), recipe.size // 16
        layers += [_Unit(given, last), _Unit(last, last, side, groups=last, linear=True)]
        self.layers = nn.Sequential(*layers)
        self.out, self.norm = nn.Linear(last, recipe.dim, bias=False), nn.BatchNorm1d(recipe.dim)

    def forward(self, pictures: Tensor) -> Tensor:
        vectors: Tensor = self.norm(self.out(self.layers(2 * pictures - 1).flatten(1)))
        return vectors


def _channels(count: int, width: float) -> int:
    return max(8, round(count * width / 8) * 8)


@dataclass(frozen=True, eq=False)
class TrainedRecogniser:
    """A recogniser, how it was made, and how long that took."""

    recipe: RecogniserRecipe
    network: MobileFaceNet
    seconds: float
    loss: float
    """Of the last epoch."""

    def embed(self, frames: NDArray[np.uint8]) -> NDArray[np.float32]:
        """(n, dim) unit vectors of faces (n, s, s, 3)."""
        device = self.network.out.weight.device
        rows = []
        with torch.inference_mode(), torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            for start in range(0, len(frames), _BATCH):
                batch = torch.from_numpy(np.ascontiguousarray(frames[start : start + _BATCH])).to(device)
                rows.append(functional.normalize(self.network(pictures_of(batch, self.recipe.size)).float(), dim=1))
            vectors: NDArray[np.float32] = torch.cat(rows).cpu().numpy()
        return vectors

    def save(self, path: Path) -> None:
        """Weights and recipe; they can show the faces that they were learned from."""
        tensors = {name: value.detach().cpu().contiguous() for name, value in self.network.state_dict().items()}
        header = {"recipe": asdict(self.recipe), "seconds": self.seconds, "loss": self.loss}
        write_file(path, save(tensors, {_HEADER: json.dumps(header)}))


def load_trained(path: Path, device: str = "cpu") -> TrainedRecogniser:
    """What ``TrainedRecogniser.save`` wrote."""
    try:
        with safe_open(path, framework="pt") as file:
            header = json.loads(file.metadata()[_HEADER])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 it is no mapping
        recipe = RecogniserRecipe(**header["recipe"])
        with torch.device("meta"):  # shapes are compared before anything of the declared size is allocated
            MobileFaceNet(recipe).load_state_dict({name: value.to("meta") for name, value in tensors.items()})
        network = MobileFaceNet(recipe)
        network.load_state_dict(tensors)
        seconds, loss = float(header["seconds"]), float(header["loss"])
    except (OSError, SafetensorError, RuntimeError, KeyError, TypeError, ValueError, ArithmeticError, UnfaceError):
        raise UnfaceError(f"{path.name}: holds no recogniser; remove it") from None
    return TrainedRecogniser(recipe, network.to(device).eval().requires_grad_(False), seconds, loss)


def pictures_of(frames: Tensor, size: int) -> Tensor:
    """(n, 3, size, size) from 0 to 1 of faces (n, s, s, 3), where they lie."""
    pictures = frames.permute(0, 3, 1, 2).float() / 255
    if pictures.shape[-1] != size:
        pictures = functional.interpolate(pictures, (size, size), mode="bilinear", align_corners=False, antialias=True)
    return pictures.contiguous(memory_format=torch.channels_last)


def train_recogniser(
    frames: NDArray[np.uint8],
    people: NDArray[np.int64],
    recipe: RecogniserRecipe,
    device: str = "cpu",
    *,
    progress: Progress | None = None,
) -> TrainedRecogniser:
    """Learn to tell the people of faces (n, s, s, 3) apart. Mirror images are learned too; the margin grows for the
    first fifth of the steps. On a GPU the network runs in bfloat16.
    """
    names, labels = np.unique(people, return_inverse=True)
    if len(names) < 2:
        raise UnfaceError("a recogniser needs pictures of at least two people; check the folders of the release")
    began = time.monotonic()
    progress, task = progress or Silent(), "training a recogniser"
    network, head = MobileFaceNet(recipe), nn.Parameter(torch.empty(len(names), recipe.dim))
    _initialise(network, head, recipe.seed)
    network = network.to(device).train()
    network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    head = nn.Parameter(head.data.to(device))
    cuda = torch.device(device).type == "cuda"
    weights = [*network.parameters(), head]
    adam = torch.optim.AdamW(weights, recipe.learning_rate, weight_decay=recipe.weight_decay, fused=cuda)
    each = max(len(frames) // recipe.batch, 1)
    steps = recipe.epochs * each
    held = torch.split(torch.from_numpy(np.ascontiguousarray(frames)), _BATCH)
    pictures = torch.cat([(pictures_of(some.to(device), recipe.size) * 255).round().to(torch.uint8) for some in held])
    targets = torch.from_numpy(labels.astype(np.int64)).to(device)
    random = torch.Generator(device)
    progress.start(task, steps)
    losses: list[Tensor] = []

    def gradients(chosen: Tensor, mirrored: Tensor, margin: Tensor) -> Tensor:
        batch = pictures[chosen].float() / 255
        batch = torch.where(mirrored[:, None, None, None], batch.flip(3), batch)
        with torch.autocast(torch.device(device).type, torch.bfloat16, enabled=cuda, cache_enabled=False):
            vectors = network(batch.contiguous(memory_format=torch.channels_last))
        cosines = functional.normalize(vectors.float(), dim=1) @ functional.normalize(head, dim=1).T
        loss = arcface_loss(cosines, targets[chosen], recipe.scale, margin)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(weights, 5.0)
        return loss

    learn = Replayed(gradients, weights)
    margins = recipe.margin * (5 * torch.arange(steps, device=device) / steps).clamp(max=1)
    for step in range(steps):
        if step % each == 0:
            random.manual_seed(int(stream(recipe.seed, "recogniser", "epoch", step // each).integers(2**62)))
            order, losses = torch.randperm(len(frames), generator=random, device=device), []
        chosen = order[step % each * recipe.batch : (step % each + 1) * recipe.batch]
        mirrored = torch.rand(len(chosen), generator=random, device=device) < 0.5
        loss = learn(chosen, mirrored, margins[step])
        for group in adam.param_groups:
            group["lr"] = recipe.learning_rate * _rate(step, steps)
        adam.step()
        losses.append(loss)
        progress.advance(task)
    last = float(torch.stack(losses).mean())
    if not math.isfinite(last):
        raise UnfaceError(f"the recogniser's loss is {last}; lower its learning rate")
    network = network.eval().requires_grad_(False)
    return TrainedRecogniser(recipe, network, round(time.monotonic() - began, 1), last)


def _rate(step: int, steps: int) -> float:
    """Up in a line for a tenth of the steps, then down along a cosine."""
    rising = max(steps // 10, 1)
    if step < rising:
        return (step + 1) / rising
    return 0.5 * (1 + math.cos(math.pi * (step - rising) / max(steps - rising, 1)))


def _initialise(network: MobileFaceNet, head: nn.Parameter, seed: int) -> None:
    """He's weights from a seed, whatever else has drawn random numbers."""
    random = torch.Generator().manual_seed(int(stream(seed, "recogniser", "weights").integers(2**62)))
    with torch.no_grad():
        for layer in network.modules():
            if isinstance(layer, nn.Conv2d | nn.Linear):
                fan = layer.weight[0].numel()
                layer.weight.copy_(torch.randn(layer.weight.shape, generator=random) * math.sqrt(2 / fan))
        head.copy_(torch.randn(head.shape, generator=random) * 0.05)
