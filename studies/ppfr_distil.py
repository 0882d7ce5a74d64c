"""A server distilled on what a front end sends: a small network learns a recogniser's vectors from DCT channels alone.

    python -m studies.ppfr_distil PICTURES OUT --scheme dctdp --variant published [--start teacher] [--device cuda]
                                  [--lfw LFW PAIRS]

PICTURES holds <person>/<picture>, aligned faces of 112 pixels or CelebA's of 178 × 218; names and labels are not used.
The loss is one minus the cosine to the teacher's vector of the picture itself, moved and mirrored anew in each step. A
student starts from nothing, or from the teacher's own network with another first layer: a provider who has a recogniser
and adds a front end. A run that ends at ``--seconds`` goes on by the same command. With ``--lfw`` its accuracy is
measured every minute into OUT/distil.jsonl, and OUT holds the most accurate server so far, not the last.
OUT/server.safetensors is then a system of studies.ppfr: SCHEME/VARIANT/OUT. The same network is the attack of a server
that keeps what it receives: it turns protected pictures into templates of an open recogniser. Weights that were
trained on faces stay where the faces are.
"""

import argparse
import hashlib
import json
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save
from torch import Tensor, nn
from torch.nn import functional

from unface.data import ImageRef, Space, decode, read_images
from unface.encode import TorchBacked, load_encoder
from unface.errors import UnfaceError
from unface.faces import ARCFACE_112, align_face
from unface.judge import load_recogniser
from unface.models import Input
from unface.output.write import write_file
from unface.prior import require_device
from unface.prior.steps import Steps
from unface.protect.frequency import BLOCK, YCBCR, Scheme, block_dct_bases, scheme
from unface.protect.pair_sets import read_pairs, ten_fold
from unface.seeds import stream
from unface.threads import available_cores

WEIGHTS = "server.safetensors"
_BATCH = 64
_MORE = 100
"""Steps between two looks at a server that is not accurate enough after all of its own."""
_CELEBA = np.array([[69.2, 112.0], [107.6, 112.0], [88.3, 134.6], [72.3, 151.4], [104.9, 152.1]])
"""Where CelebA's own alignment puts eyes, nose and corners of the mouth."""


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
    start: Literal["nothing", "teacher"] = "nothing"
    warm: int = 0
    """Steps in which the rate rises."""


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
        sent = self.sent(planes - torch.tensor([128.0, 0.0, 0.0], device=planes.device).view(1, 3, 1, 1))
        if self.scheme.laplace is not None:
            # The difference of two exponential variables is Laplace's.
            first, second = (torch.empty_like(sent).exponential_(generator=random) for _ in range(2))
            sent = sent.add(first.sub_(second), alpha=self.scheme.laplace)
        if len(self.scheme.subsets) > 1:
            masks = torch.tensor(
                [[channel in subset for channel in self.kept] for subset in self.scheme.subsets], device=sent.device
            )
            drawn = torch.randint(len(masks), (len(sent),), generator=random, device=sent.device)
            sent = sent * masks[drawn][:, None, :, None, None]
        return sent.flatten(1, 2)

    def sent(self, planes: Tensor) -> Tensor:
        """(n, 3, channels, s, s) of planes (n, 3, s, s), without noise."""
        half = torch.einsum("uai,ncij->nucaj", self.bases, planes)
        return torch.stack([half[:, channel // BLOCK] @ self.bases[channel % BLOCK].T for channel in self.kept], dim=2)


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


class GrownStudent(nn.Module):
    """The teacher's network behind another first layer, which sees channels: all weights are learned further."""

    def __init__(self, teacher: nn.Module, channels: int) -> None:
        super().__init__()
        rest: Any = deepcopy(teacher)  # a graph of unface.encode.onnx_torch
        colours = rest._steps[0]
        weight: Tensor = getattr(rest, rest._names[colours.inputs[1]])
        self.register_buffer("scale", torch.ones(3 * channels, 1, 1))
        self.first = nn.Conv2d(3 * channels, len(weight), 3, stride=2, padding=1)
        rest._input, rest._steps, rest._spent = colours.outputs[0], rest._steps[1:], rest._spent[1:]
        for name in colours.inputs[1:]:
            delattr(rest, rest._names.pop(name))
        for name, buffer in list(rest.named_buffers()):
            if buffer.is_floating_point() and "features" not in next(k for k, v in rest._names.items() if v == name):
                delattr(rest, name)
                rest.register_parameter(name, nn.Parameter(buffer.clone()))
        self.rest: nn.Module = rest

    scale: Tensor

    @torch.no_grad()
    def fit_first(self, sent: Tensor, wanted: Tensor) -> None:
        """Least squares from channels (n, c, s, s) to what the teacher's own first layer makes of the pictures."""
        self.scale.copy_(1 / sent.square().mean(dim=(0, 2, 3))[:, None, None].sqrt().clamp(min=1e-3))
        side = sent.shape[1] * 9
        gram, moment = sent.new_zeros(side + 1, side + 1), sent.new_zeros(side + 1, wanted.shape[1])
        for one, aim in zip(sent, wanted, strict=True):
            columns = functional.unfold((self.scale * one)[None], 3, padding=1, stride=2)[0].T
            rows = functional.pad(columns, (0, 1), value=1.0)
            gram += rows.T @ rows
            moment += rows.T @ aim.flatten(1).T
        gram.diagonal().add_(1e-3 * gram.diagonal().mean())
        solved = torch.linalg.solve(gram, moment)
        self.first.weight.copy_(solved[:-1].T.reshape(self.first.weight.shape))
        assert self.first.bias is not None
        self.first.bias.copy_(solved[-1])

    def forward(self, sent: Tensor) -> Tensor:
        """(n, dim) unit vectors."""
        return functional.normalize(self.rest(self.first(self.scale * sent)), dim=1)


def student_of(recipe: Recipe, channels: int, teacher: nn.Module | None) -> nn.Module:
    """Without its weights; one that starts from the teacher needs the teacher's graph."""
    if recipe.start == "nothing":
        return Student(recipe, channels)
    if teacher is None:
        raise UnfaceError(f"{recipe.teacher}: a student that starts from it needs its network")
    return GrownStudent(teacher, channels)


class Teacher(nn.Module):
    """A recogniser as a torch module: RGB (n, 3, s, s) 0 to 255 → (n, dim) unit vectors, with gradients."""

    def __init__(self, name: str) -> None:
        super().__init__()
        encoder = load_encoder(name, accept_licence=True)
        if not isinstance(encoder, TorchBacked):
            raise UnfaceError(f"{name}: cannot be read into torch, so it cannot teach; use arcface-mbf or sface")
        self.network = encoder.torch_module()
        wanted = encoder.card.input
        self.reverse = wanted.channels == "BGR"
        for part, values in (("mean", wanted.mean), ("std", wanted.std)):
            self.register_buffer(part, torch.tensor(values).view(3, 1, 1), persistent=False)

    mean: Tensor
    std: Tensor

    def ready(self, pictures: Tensor) -> Tensor:
        """As its network takes them."""
        return ((pictures.flip(1) if self.reverse else pictures) - self.mean) / self.std

    def forward(self, pictures: Tensor) -> Tensor:
        return functional.normalize(self.network(self.ready(pictures)).float(), dim=1)

    def first(self, pictures: Tensor) -> Tensor:
        """What its first layer makes of them."""
        graph: Any = self.network
        weight, bias = (getattr(graph, graph._names[name]) for name in graph._steps[0].inputs[1:])
        return functional.conv2d(self.ready(pictures), weight, bias, stride=2, padding=1)


def moved(pictures: Tensor, random: torch.Generator) -> Tensor:
    """Mirrored, turned, scaled, shifted, lit otherwise: what the student has to follow the teacher on."""
    n, device = len(pictures), pictures.device

    def drawn(width: float, *shape: int) -> Tensor:
        return width * (2 * torch.rand((n, *shape), generator=random, device=device) - 1)

    angle, scale, shift = drawn(0.15), 1 + drawn(0.1), drawn(0.09, 2)
    mirror = drawn(1.0).sign()
    across, along = scale * torch.cos(angle), scale * torch.sin(angle)
    matrix = torch.stack([mirror * across, -along, shift[:, 0], mirror * along, across, shift[:, 1]], dim=1)
    grid = functional.affine_grid(matrix.view(n, 2, 3), list(pictures.shape), align_corners=False)
    turned = functional.grid_sample(pictures, grid, padding_mode="border", align_corners=False)
    contrast, light = 1 + drawn(0.25, 1, 1, 1), drawn(25.0, 1, 1, 1)
    return (128 + contrast * (turned - 128) + light).clamp(0, 255).round()


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
        self,
        recipe: Recipe,
        pictures: NDArray[np.uint8],
        taught: NDArray[np.float32] | Teacher,
        device: str = "cpu",
    ) -> None:
        """``taught`` are vectors of the pictures as they are, or a teacher who sees them moved anew in each step."""
        fixed = None if isinstance(taught, Teacher) else taught
        if pictures.shape[1:] != (recipe.size, recipe.size, 3) or (fixed is not None and len(pictures) != len(fixed)):
            raise UnfaceError(f"pictures have shape {pictures.shape}; expected (n, {recipe.size}, {recipe.size}, 3)")
        self.recipe, self.device = recipe, device
        self.front = Channels(scheme(recipe.scheme, recipe.variant), recipe.size).to(device)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(stream(recipe.seed, "distil", "weights").integers(2**62)))
            network = taught.network if isinstance(taught, Teacher) else None
            self.student = student_of(recipe, len(self.front.kept), network).to(device)
        self._pictures = torch.from_numpy(pictures).to(device)
        self._taught = None if fixed is None else torch.from_numpy(fixed).to(device)
        self._teacher = taught.to(device).eval() if isinstance(taught, Teacher) else None
        self._random = torch.Generator(device)
        if isinstance(self.student, GrownStudent) and self._teacher is not None:
            some = self._pictures[:: max(len(pictures) // 64, 1)][:64].permute(0, 3, 1, 2).float()
            with torch.no_grad():
                self.student.fit_first(self.front(some, self._random.manual_seed(0)), self._teacher.first(some))
        adam = torch.optim.Adam(self.student.parameters(), recipe.rate)
        data = hashlib.sha256(pictures.tobytes()).hexdigest()
        identity = hashlib.sha256(json.dumps([asdict(recipe), data]).encode()).hexdigest()
        super().__init__(self.student, adam, identity)

    def one(self) -> Tensor:
        """See ``Steps``; the rate rises in ``warm`` steps and falls by a half cosine, to no less than a fiftieth."""
        recipe = self.recipe
        draw = stream(recipe.seed, "distil", self.step)
        self._random.manual_seed(int(draw.integers(2**62)))
        rows = torch.from_numpy(draw.integers(len(self._pictures), size=recipe.batch)).to(self.device)
        for group in self._adam.param_groups:
            fallen = max(0.5 * (1 + np.cos(np.pi * min(self.step / recipe.steps, 1.0))), 0.02)
            group["lr"] = recipe.rate * min(fallen, (self.step + 1) / max(recipe.warm, 1))
        pictures = self._pictures[rows].permute(0, 3, 1, 2).float()
        with torch.no_grad():
            if self._teacher is None:
                assert self._taught is not None
                taught = self._taught[rows]
            else:
                pictures = moved(pictures, self._random)
                taught = self._teacher(pictures)
            sent = self.front(pictures, self._random)
        with torch.autocast(sent.device.type, torch.bfloat16, enabled=sent.is_cuda and recipe.start == "nothing"):
            found = self.student(sent)
        loss = (1 - (found * taught).sum(dim=1)).mean()
        self._adam.zero_grad(set_to_none=True)
        loss.backward()
        self._adam.step()
        self.step += 1
        found_loss: Tensor = loss.detach()
        return found_loss

    def save(self, folder: Path) -> None:
        """The server so far, and what is needed to go on."""
        self.save_server(folder)
        self.save_state(folder)

    def save_server(self, folder: Path) -> None:
        """The server so far."""
        folder.mkdir(parents=True, exist_ok=True)
        weights = {name: value.detach().cpu().contiguous() for name, value in self.student.state_dict().items()}
        recipe = {"recipe": json.dumps(asdict(self.recipe)), "steps": str(self.step)}
        write_file(folder / WEIGHTS, save(weights, recipe))

    @torch.no_grad()
    def served(self, pictures: Tensor) -> Tensor:
        """(n, dim) of (n, 3, size, size) RGB 0 to 255, by the server so far."""
        found: Tensor = self.student(self.front(pictures, self._random))
        return found


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
        network = Teacher(self.recipe.teacher).network if self.recipe.start == "teacher" else None
        self._student = student_of(self.recipe, len(self._front.kept), network).to(device).eval()
        self._student.load_state_dict(load_file(folder / WEIGHTS))
        self._device, self._random = device, torch.Generator(device).manual_seed(seed)

    def embed(self, frames: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        """(n, dim) unit vectors of faces cut out as ``wanted`` says."""
        vectors = np.zeros((len(frames), self.recipe.dim), np.float32)
        for start in range(0, len(frames), _BATCH):
            pixels = torch.from_numpy(np.stack(frames[start : start + _BATCH])).to(self._device)
            with torch.inference_mode():
                vectors[start : start + _BATCH] = self(pixels.permute(0, 3, 1, 2).float()).cpu().numpy()
        return vectors

    def __call__(self, pictures: Tensor) -> Tensor:
        """(n, dim) of (n, 3, size, size) RGB 0 to 255; with gradients."""
        found: Tensor = self._student(self._front(pictures, self._random))
        return found


def read_faces(folder: Path, size: int, most: int | None = None) -> NDArray[np.uint8]:
    """(n, size, size, 3), in the folder's order: the first ``most``."""

    def one(image: ImageRef) -> NDArray[np.uint8]:
        picture = decode(image.read())
        if picture.shape == (218, 178, 3):
            return align_face(picture, _CELEBA, ARCFACE_112 * (size / 112), size)
        if picture.shape != (size, size, 3):
            raise UnfaceError(f"{image.id}: has shape {picture.shape}; expected {size} × {size}, or CelebA's 178 × 218")
        return picture

    with ThreadPoolExecutor(available_cores()) as pool:
        return np.stack(list(pool.map(one, list(read_images(folder))[:most])))


class Lfw:
    """Pairs of aligned faces of LFW, read once: how often a system is right about them, by the 10-fold rule."""

    def __init__(self, folder: Path, pairs: Path) -> None:
        names, mated, folds = read_pairs(pairs.read_text(encoding="utf-8"))
        wanted = {name for pair in names for name in pair}
        images = [image for image in read_images(folder) if Path(image.id).stem in wanted]
        with ThreadPoolExecutor(available_cores()) as pool:
            self._frames = np.stack(list(pool.map(lambda image: decode(image.read()), images)))
        row = {Path(image.id).stem: at for at, image in enumerate(images)}
        used = np.array([a in row and b in row for a, b in names])  # all, but in a trial on few pictures
        self._places = np.array([(row[a], row[b]) for (a, b), here in zip(names, used, strict=True) if here])
        self._mated, self._folds = mated[used], folds[used]

    def folds(self, system: Callable[[Tensor], Tensor], device: str, batch: int = 256) -> NDArray[np.float64]:
        """(folds,) shares of pairs that the system is right about."""
        parts = []
        with torch.no_grad():
            for at in range(0, len(self._frames), batch):
                pixels = torch.from_numpy(self._frames[at : at + batch]).to(device).permute(0, 3, 1, 2).float()
                parts.append(system(pixels).float().cpu().numpy())
        vectors = np.concatenate(parts)
        scores = np.einsum("pd,pd->p", vectors[self._places[:, 0]], vectors[self._places[:, 1]]).astype(np.float64)
        return ten_fold(scores, self._mated, self._folds)


def train_to(training: Training, lfw: Lfw, out: Path, seconds: float, every: float, enough: float) -> None:
    """Until all steps are done and the server is accurate enough, or the time is up; OUT keeps the most accurate."""
    out.mkdir(parents=True, exist_ok=True)
    log, ends = out / "distil.jsonl", time.monotonic() + seconds
    before = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    best = max((json.loads(line)["lfw"] for line in before), default=0.0)
    while True:
        left = max(ends - time.monotonic(), 0.0)
        steps = training.recipe.steps if training.step < training.recipe.steps else training.step + _MORE
        training.run(steps, min(every, left))
        accuracy = float(lfw.folds(training.served, training.device).mean())
        if accuracy >= best:
            best = accuracy
            training.save_server(out)
        training.save_state(out)
        loss = training.losses[-1] if training.losses else None
        row = {"step": training.step, "seconds": round(training.seconds, 1), "loss": loss, "lfw": accuracy}
        with log.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        print(row, flush=True)
        if time.monotonic() >= ends or (training.step >= training.recipe.steps and best >= enough):
            return


def main() -> None:
    """Train until the steps are done or the time is up."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("pictures", type=Path)
    given.add_argument("out", type=Path)
    given.add_argument("--scheme", default="dctdp")
    given.add_argument("--variant", default="published")
    given.add_argument("--teacher", default="arcface-mbf")
    given.add_argument("--start", choices=["nothing", "teacher"], default="nothing")
    given.add_argument("--steps", type=int, default=Recipe.steps)
    given.add_argument("--batch", type=int, default=Recipe.batch)
    given.add_argument("--rate", type=float, default=Recipe.rate)
    given.add_argument("--pictures", dest="most", type=int, help="so many of them")
    given.add_argument("--warm", type=int, default=0, help="steps in which the rate rises")
    given.add_argument("--seconds", type=float, default=1e9)
    given.add_argument("--lfw", type=Path, nargs=2, metavar=("LFW", "PAIRS"))
    given.add_argument("--every", type=float, default=60, help="seconds between two looks at LFW")
    given.add_argument("--enough", type=float, default=0.973, help="below it, learning goes on after all steps")
    given.add_argument("--device", default="cpu")
    asked = given.parse_args()
    require_device(asked.device)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    teacher = Teacher(asked.teacher)
    recipe = Recipe(
        asked.scheme,
        asked.variant,
        asked.teacher,
        dim=load_recogniser(asked.teacher, accept_licence=True).space.dim,
        batch=asked.batch,
        rate=asked.rate,
        steps=asked.steps,
        start=asked.start,
        warm=asked.warm,
    )
    pictures = read_faces(asked.pictures, recipe.size, asked.most)
    print(f"{len(pictures)} pictures", flush=True)
    training = Training(recipe, pictures, teacher, asked.device)
    training.resume(asked.out)
    if asked.lfw:
        train_to(training, Lfw(*asked.lfw), asked.out, asked.seconds, asked.every, asked.enough)
        return
    done = training.run(recipe.steps, asked.seconds)
    training.save(asked.out)
    print(f"{training.step} steps, loss {training.losses[-1]:.4f}, {'done' if done else 'to go on with'}", flush=True)


if __name__ == "__main__":
    main()
