"""A server distilled on what a front end sends: a small network learns a recogniser's vectors from DCT channels alone.

    python -m studies.ppfr_distil PICTURES OUT --scheme dctdp --variant published [--device cuda] [--seconds 600]

PICTURES holds <person>/<picture> of aligned faces of 112 pixels; names and labels are not used. The loss is one minus
the cosine to the teacher's vector of the picture itself. A run that ends at ``--seconds`` goes on by the same command.
OUT/server.safetensors is then a system of studies.ppfr: SCHEME/VARIANT/OUT. The same network is the attack of a server
that keeps what it receives: it turns protected pictures into templates of an open recogniser. Weights that were
trained on faces stay where the faces are.
"""

import argparse
import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save
from torch import Tensor, nn
from torch.nn import functional

from unface.data import Space, decode, read_images
from unface.errors import UnfaceError
from unface.judge import Recogniser, load_recogniser
from unface.models import Input
from unface.output.write import write_file
from unface.prior import require_device
from unface.prior.steps import Steps
from unface.protect.frequency import BLOCK, YCBCR, Scheme, block_dct_bases, scheme
from unface.seeds import stream

WEIGHTS = "server.safetensors"
_BATCH = 64


@dataclass(frozen=True)
class Recipe:
    """What decides the weights, besides the pictures."""

    scheme: str
    variant: str
    teacher: str
    size: int = 112
    dim: int = 512
    width: int = 64
    blocks: tuple[int, ...] = (2, 4, 6, 2)
    batch: int = 128
    rate: float = 1e-3
    steps: int = 20_000
    seed: int = 0


class Channels(nn.Module):
    """(n, 3, s, s) RGB 0 to 255 → (n, 3 · channels, s, s): the front end of unface.protect, with its noise."""

    def __init__(self, chosen: Scheme, size: int) -> None:
        super().__init__()
        self.scheme = chosen
        self.register_buffer("bases", torch.from_numpy(block_dct_bases(size)).float(), persistent=False)
        self.register_buffer("colours", torch.from_numpy(YCBCR).float(), persistent=False)
        # Where each channel goes; one that is not sent stays zero, so that every subset has the same shape.
        self.kept = sorted({channel for subset in chosen.subsets for channel in subset})

    bases: Tensor
    colours: Tensor

    def forward(self, pictures: Tensor, random: torch.Generator) -> Tensor:
        planes = torch.einsum("cd,ndij->ncij", self.colours, pictures)
        planes = planes - torch.tensor([128.0, 0.0, 0.0], device=planes.device).view(1, 3, 1, 1)
        half = torch.einsum("uai,ncij->nucaj", self.bases, planes)
        sent = torch.stack([half[:, channel // BLOCK] @ self.bases[channel % BLOCK].T for channel in self.kept], dim=2)
        if self.scheme.laplace is not None:
            flat = torch.rand(sent.shape, generator=random, device=sent.device) - 0.5
            sent = sent - self.scheme.laplace * flat.sign() * torch.log1p(-2 * flat.abs().clamp(max=0.4999999))
        if len(self.scheme.subsets) > 1:
            masks = torch.tensor(
                [[channel in subset for channel in self.kept] for subset in self.scheme.subsets], device=sent.device
            )
            drawn = torch.randint(len(masks), (len(sent),), generator=random, device=sent.device)
            sent = sent * masks[drawn][:, None, :, None, None]
        return sent.flatten(1, 2)


class Student(nn.Module):
    """Depthwise-separable residual blocks at half, quarter, eighth and sixteenth size, then one vector."""

    def __init__(self, recipe: Recipe, channels: int) -> None:
        super().__init__()
        width = recipe.width
        # What channels of a natural picture are worth differs by a factor of a thousand: a scale for each is learned.
        self.scale = nn.Parameter(torch.full((3 * channels, 1, 1), 0.1))
        layers: list[nn.Module] = [nn.Conv2d(3 * channels, width, 1)]
        inside = width
        for stage, count in enumerate(recipe.blocks):
            outside = width * 2 ** min(stage, 2)
            layers.append(_Block(inside, outside, 2))
            layers += [_Block(outside, outside, 1) for _ in range(count - 1)]
            inside = outside
        side = -(-recipe.size // 2 ** len(recipe.blocks))
        self.layers = nn.Sequential(*layers)
        self.gather = nn.Conv2d(inside, inside, side, groups=inside)
        self.out = nn.Linear(inside, recipe.dim)

    def forward(self, sent: Tensor) -> Tensor:
        """(n, dim) unit vectors."""
        found: Tensor = self.out(self.gather(self.layers(torch.asinh(self.scale * sent))).flatten(1))
        return functional.normalize(found.float(), dim=1)


class _Block(nn.Module):
    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__()
        wide = 2 * outside
        self.first, self.middle = nn.Conv2d(inside, wide, 1), nn.Conv2d(wide, wide, 3, stride, 1, groups=wide)
        self.norm, self.last = nn.GroupNorm(8, wide), nn.Conv2d(wide, outside, 1)
        self.skips = inside == outside and stride == 1

    def forward(self, x: Tensor) -> Tensor:
        made: Tensor = self.last(functional.silu(self.norm(self.middle(functional.silu(self.first(x))))))
        return x + made if self.skips else made


class Training(Steps):
    """One step: a batch by its number, protected anew, towards the teacher's vectors of the pictures."""

    def __init__(
        self, recipe: Recipe, pictures: NDArray[np.uint8], taught: NDArray[np.float32], device: str = "cpu"
    ) -> None:
        if pictures.shape[1:] != (recipe.size, recipe.size, 3) or len(pictures) != len(taught):
            raise UnfaceError(f"pictures have shape {pictures.shape}; expected (n, {recipe.size}, {recipe.size}, 3)")
        self.recipe, self.device = recipe, device
        self.front = Channels(scheme(recipe.scheme, recipe.variant), recipe.size).to(device)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(stream(recipe.seed, "distil", "weights").integers(2**62)))
            self.student = Student(recipe, len(self.front.kept)).to(device)
        self._pictures, self._taught = torch.from_numpy(pictures), torch.from_numpy(taught).to(device)
        adam = torch.optim.Adam(self.student.parameters(), recipe.rate)
        data = hashlib.sha256(pictures.tobytes()).hexdigest()
        identity = hashlib.sha256(json.dumps([asdict(recipe), data]).encode()).hexdigest()
        super().__init__(self.student, adam, identity)
        self._random = torch.Generator(device)

    def one(self) -> Tensor:
        """See ``Steps``; the rate falls by a half cosine."""
        recipe = self.recipe
        draw = stream(recipe.seed, "distil", self.step)
        self._random.manual_seed(int(draw.integers(2**62)))
        rows = torch.from_numpy(draw.integers(len(self._pictures), size=recipe.batch))
        for group in self._adam.param_groups:
            group["lr"] = recipe.rate * 0.5 * (1 + np.cos(np.pi * min(self.step / recipe.steps, 1.0)))
        pictures = self._pictures[rows].to(self.device).permute(0, 3, 1, 2).float()
        with torch.no_grad():
            sent = self.front(pictures, self._random)
        with torch.autocast(sent.device.type, torch.bfloat16, enabled=sent.is_cuda):
            found = self.student(sent)
        loss = (1 - (found * self._taught[rows.to(self.device)]).sum(dim=1)).mean()
        self._adam.zero_grad(set_to_none=True)
        loss.backward()
        self._adam.step()
        self.step += 1
        found_loss: Tensor = loss.detach()
        return found_loss

    def save(self, folder: Path) -> None:
        """The server so far, and what is needed to go on."""
        folder.mkdir(parents=True, exist_ok=True)
        weights = {name: value.detach().cpu().contiguous() for name, value in self.student.state_dict().items()}
        recipe = {"recipe": json.dumps(asdict(self.recipe)), "steps": str(self.step)}
        write_file(folder / WEIGHTS, save(weights, recipe))
        self.save_state(folder)


class DistilledServer:
    """A trained student behind its front end; see ``Recogniser``. The same picture is protected anew every time."""

    def __init__(self, folder: Path, wanted: Input, device: str = "cpu", seed: int = 0) -> None:
        from safetensors import safe_open

        with safe_open(folder / WEIGHTS, framework="pt") as file:
            given = json.loads(file.metadata()["recipe"])
        self.recipe = Recipe(**{**given, "blocks": tuple(given["blocks"])})
        chosen = scheme(self.recipe.scheme, self.recipe.variant)
        self.name = f"{chosen.name} {chosen.variant} {folder.name}"
        self.wanted, self.space = wanted, Space(self.name, None, self.recipe.dim, True)
        self.deterministic = chosen.laplace is None and len(chosen.subsets) == 1
        self._front = Channels(chosen, self.recipe.size).to(device)
        self._student = Student(self.recipe, len(self._front.kept)).to(device).eval()
        self._student.load_state_dict(load_file(folder / WEIGHTS))
        self._device, self._random = device, torch.Generator(device).manual_seed(seed)

    def embed(self, frames: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        """(n, dim) unit vectors of faces cut out as ``wanted`` says."""
        vectors = np.zeros((len(frames), self.recipe.dim), np.float32)
        for start in range(0, len(frames), _BATCH):
            pixels = torch.from_numpy(np.stack(frames[start : start + _BATCH])).to(self._device)
            with torch.inference_mode():
                found = self._student(self._front(pixels.permute(0, 3, 1, 2).float(), self._random))
            vectors[start : start + _BATCH] = found.cpu().numpy()
        return vectors


def taught_by(teacher: Recogniser, pictures: NDArray[np.uint8]) -> NDArray[np.float32]:
    """(n, dim) the teacher's vectors of the pictures themselves."""
    parts = [teacher.embed(list(pictures[at : at + _BATCH])) for at in range(0, len(pictures), _BATCH)]
    return np.concatenate(parts)


def main() -> None:
    """Train until the steps are done or the time is up."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("pictures", type=Path)
    given.add_argument("out", type=Path)
    given.add_argument("--scheme", default="dctdp")
    given.add_argument("--variant", default="published")
    given.add_argument("--teacher", default="arcface-mbf")
    given.add_argument("--steps", type=int, default=Recipe.steps)
    given.add_argument("--seconds", type=float, default=1e9)
    given.add_argument("--device", default="cpu")
    asked = given.parse_args()
    require_device(asked.device)
    teacher = load_recogniser(asked.teacher, device=asked.device, accept_licence=True)
    recipe = Recipe(asked.scheme, asked.variant, asked.teacher, dim=teacher.space.dim, steps=asked.steps)
    pictures = np.stack([decode(image.read()) for image in read_images(asked.pictures)])
    training = Training(recipe, pictures, taught_by(teacher, pictures), asked.device)
    training.resume(asked.out)
    done = training.run(recipe.steps, asked.seconds)
    training.save(asked.out)
    print(f"{training.step} steps, loss {training.losses[-1]:.4f}, {'done' if done else 'to go on with'}", flush=True)


if __name__ == "__main__":
    main()
