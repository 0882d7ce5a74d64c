"""The recipe of a diffusion prior: pictures of train people → a UNet in diffusers' layout, its loss curve, samples.

``python -m unface.prior.train PICTURES OUT``. Weights that were trained on faces can show those faces again: keep them
as you keep the pictures.
"""

import argparse
import hashlib
import json
import signal
import sys
import zipfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor
from torch.nn import functional

from unface.data import BadPicture, decode, read_images
from unface.errors import UnfaceError
from unface.output.write import staged, write_file
from unface.prior.diffusion import (
    CELEBA_FACE,
    TRAINING,
    DiffusionPrior,
    Schedule,
    load_diffusion,
    save_diffusion,
)
from unface.prior.load import require_device
from unface.prior.steps import BLOCK, Steps
from unface.prior.unet import UNet, UNetConfig
from unface.seeds import stream
from unface.threads import available_cores

CELEBA_CROP = (15, 40, 148)
"""Left, top and side of the square of CelebA's aligned 178 × 218 pictures that the recipe learns."""


@dataclass(frozen=True)
class Recipe:
    """What decides the weights, besides the pictures."""

    unet: UNetConfig = field(default_factory=UNetConfig)
    schedule: Schedule = field(default_factory=Schedule)
    batch: int = 128
    learning_rate: float = 4e-4
    warm_up: int = 200
    average: float = 0.999
    """Of the running mean of the weights, which is what is saved; it grows to this from 0.1."""
    flips: bool = False
    seed: int = 0


class Training(Steps):
    """Weights, their running mean and Adam's moments; after each block of steps they can be saved and taken up again.

    What a step draws depends on the seed and its number alone, so a resumed run is the run that was not interrupted: to
    the bit on a CPU.
    """

    def __init__(
        self,
        recipe: Recipe,
        pictures: NDArray[np.uint8],
        device: str = "cpu",
        unet: UNet | None = None,
        face: Sequence[float] = CELEBA_FACE,
    ) -> None:
        size = recipe.unet.size
        if pictures.ndim != 4 or pictures.shape[1:] != (3, size, size) or not len(pictures):
            raise UnfaceError(f"pictures have shape {pictures.shape}; expected (1 or more, 3, {size}, {size})")
        self.recipe, self.face = recipe, list(face)
        self.data = {"pictures": len(pictures), "sha256": hashlib.sha256(pictures.tobytes()).hexdigest()}
        self._pictures = torch.from_numpy(pictures).to(device)
        self._kept = recipe.schedule.kept().float().to(device)
        self._layout = torch.channels_last if device != "cpu" else torch.contiguous_format
        self.unet = (unet or UNet(recipe.unet)).to(device)
        self.unet.to(memory_format=self._layout)  # type: ignore[call-overload]  # missing in its signature
        self.unet.initialise(recipe.seed).requires_grad_(True).train()
        self._weights: list[Tensor] = list(self.unet.parameters())
        adam = torch.optim.Adam(self._weights, recipe.learning_rate, betas=(0.9, 0.99), fused=device != "cpu")
        identity = hashlib.sha256(json.dumps([asdict(recipe), self.data]).encode()).hexdigest()
        super().__init__(self.unet, adam, identity, [weight.detach().clone() for weight in self._weights])
        self._random = torch.Generator(device)

    def averaged(self) -> dict[str, Tensor]:
        """The running mean by name: what a prior is made of."""
        return {name: mean for (name, _), mean in zip(self.unet.named_parameters(), self.average, strict=True)}

    def save(self, folder: Path) -> None:
        """The prior so far, what is needed to go on, and ``training.json``."""
        folder.mkdir(parents=True, exist_ok=True)
        save_diffusion(folder, self.recipe.unet, self.recipe.schedule, self.averaged())
        self.save_state(folder)
        write_file(folder / TRAINING, (json.dumps(self.summary(), indent=2) + "\n").encode())

    def summary(self) -> dict[str, Any]:
        """What ``training.json`` says; no names, no paths."""
        weights = b"".join(mean.detach().cpu().numpy().tobytes() for mean in self.average)
        return {
            "recipe": asdict(self.recipe),
            "data": self.data,
            "face": self.face,
            "steps": self.step,
            "pictures_seen": self.step * self.recipe.batch,
            "seconds": round(self.seconds, 1),
            "weights": sum(mean.numel() for mean in self.average),
            "weights_sha256": hashlib.sha256(weights).hexdigest(),
            "steps_per_loss": BLOCK,
            "losses": [round(loss, 6) for loss in self.losses],
        }

    def one(self) -> Tensor:
        """A batch, its noise and its timesteps are drawn by the number of the step."""
        recipe, count = self.recipe, self.recipe.batch
        self._random.manual_seed(int(stream(recipe.seed, "prior", "train", self.step).integers(2**62)))
        options: dict[str, Any] = {"generator": self._random, "device": self._kept.device}
        pictures = self._pictures[torch.randint(len(self._pictures), (count,), **options)].float() / 127.5 - 1
        if recipe.flips:
            flipped = torch.rand((count, 1, 1, 1), **options) < 0.5
            pictures = torch.where(flipped, pictures.flip(3), pictures)
        # One timestep from each of as many equal parts: the batch's loss is much less noisy.
        parts = (torch.arange(count, device=self._kept.device) + torch.rand(count, **options)) / count
        timesteps = (parts * recipe.schedule.timesteps).long().clamp(max=recipe.schedule.timesteps - 1)
        noise = torch.randn(pictures.shape, **options)
        kept = self._kept[timesteps][:, None, None, None]
        noisy = (kept.sqrt() * pictures + (1 - kept).sqrt() * noise).contiguous(memory_format=self._layout)
        with torch.autocast(noisy.device.type, torch.bfloat16, enabled=noisy.device.type == "cuda"):
            predicted = self.unet(noisy, timesteps)
        loss = functional.mse_loss(predicted.float(), recipe.schedule.target(pictures, noise, kept))
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self._weights, 1.0)
        for group in self._adam.param_groups:
            group["lr"] = recipe.learning_rate * min(1.0, (self.step + 1) / recipe.warm_up)
        self._adam.step()
        self._adam.zero_grad(set_to_none=True)
        self.step += 1
        decay = min(recipe.average, self.step / (self.step + 9))
        with torch.no_grad():
            torch._foreach_lerp_(self.average, self._weights, 1 - decay)
        return loss.detach()


def read_pictures(
    source: str | Path, size: int = 64, crop: tuple[int, int, int] | None = None, people: int | None = None
) -> NDArray[np.uint8]:
    """(n, 3, size, size) of a folder or archive: the square ``crop`` (left, top, side), or the largest in the middle.

    ``people`` keeps the first so many identities in the order of the sha256 of their names, which is nobody's choice.
    """
    images = read_images(source)
    chosen = sorted(images.identities, key=lambda name: hashlib.sha256(name.encode()).hexdigest())
    if people is not None and not 1 <= people <= len(chosen):
        raise UnfaceError(f"{images.source}: {people} people were asked for; it has {len(chosen)}")
    order = {name: place for place, name in enumerate(chosen[:people])}
    kept = sorted((image for image in images if image.identity in order), key=lambda one: (order[one.identity], one.id))

    def one(read: Callable[[], bytes]) -> NDArray[np.uint8] | None:
        try:
            picture = Image.fromarray(decode(read()))
        except BadPicture:
            return None
        side = min(picture.size)
        left, top, side = crop or ((picture.width - side) // 2, (picture.height - side) // 2, side)
        if left + side > picture.width or top + side > picture.height:
            raise UnfaceError(
                f"{images.source}: a picture of {picture.width} × {picture.height} does not hold the crop of {side} px "
                f"at ({left}, {top})"
            )
        box = (left, top, left + side, top + side)
        return np.asarray(picture.resize((size, size), Image.Resampling.BILINEAR, box=box)).transpose(2, 0, 1)

    with ThreadPoolExecutor(available_cores()) as pool:
        made = [picture for picture in pool.map(one, [image.read for image in kept]) if picture is not None]
    if not made:
        raise UnfaceError(f"{images.source}: no picture could be decoded")
    return np.ascontiguousarray(np.stack(made))


def sampled(prior: DiffusionPrior, count: int, seed: int = 0, batch: int = 256) -> NDArray[np.uint8]:
    """(count, 3, size, size) pictures of the prior; a longer sample of the same seed begins with the shorter one."""
    made = []
    for start in range(0, count, batch):
        # Whole batches: how many others are asked for changes nobody, and a compiled network sees one shape.
        with torch.no_grad():
            pictures = prior.decode(prior.sample(batch, seed, start))
        made.append((pictures.float() * 255).round().byte().cpu().numpy())
    return np.concatenate(made)[:count]


def write_samples(path: Path, pictures: NDArray[np.uint8], jpeg: int | None = None) -> None:
    """A zip of ``generated/00000.png``, …; or of JPEG of that quality, without colour subsampling."""

    def encoded(picture: NDArray[np.uint8]) -> bytes:
        content = BytesIO()
        image = Image.fromarray(picture.transpose(1, 2, 0))
        if jpeg is None:
            image.save(content, "PNG")
        else:
            image.save(content, "JPEG", quality=jpeg, subsampling=0)
        return content.getvalue()

    suffix = "png" if jpeg is None else "jpg"
    with staged(path) as unfinished, zipfile.ZipFile(unfinished, "w") as archive, ThreadPoolExecutor() as pool:
        for number, content in enumerate(pool.map(encoded, pictures)):
            archive.writestr(zipfile.ZipInfo(f"generated/{number:05d}.{suffix}"), content)


def main(arguments: Sequence[str] | None = None) -> int:
    """Train until the steps are done or the time is up, save, and sample; the same command continues."""
    parser = argparse.ArgumentParser(prog="python -m unface.prior.train", description=__doc__)
    parser.add_argument("pictures", help="folder, zip or tar of <identity>/<image>")
    parser.add_argument("out", type=Path, help="folder of the prior")
    parser.add_argument("--people", type=int, help="only the first so many, in the order of their names' sha256")
    parser.add_argument(
        "--crop", type=int, nargs=3, metavar=("LEFT", "TOP", "SIDE"), help="CelebA 178 × 218: 15 40 148"
    )
    parser.add_argument(
        "--face",
        type=float,
        nargs=3,
        metavar=("LEFT", "TOP", "SIDE"),
        default=CELEBA_FACE,
        help="where ArcFace's crop lies in the pictures, as shares of their side [default: as in CelebA's crop]",
    )
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop training after so many")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--learning-rate", type=float, default=4e-4)
    parser.add_argument("--flips", action="store_true", help="learn mirrored pictures too")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--samples", type=int, default=0, help="pictures to write to OUT/samples.zip")
    parser.add_argument("--device", default="cpu")
    given = parser.parse_args(arguments)
    stopped: list[int] = []
    previous = signal.signal(signal.SIGTERM, lambda number, _: stopped.append(number))
    try:
        require_device(given.device)
        recipe = Recipe(batch=given.batch, learning_rate=given.learning_rate, flips=given.flips, seed=given.seed)
        crop = None if given.crop is None else tuple(given.crop)
        pictures = read_pictures(given.pictures, recipe.unet.size, crop, given.people)
        training = Training(recipe, pictures, given.device, face=given.face)
        training.resume(given.out)
        if given.device != "cpu":
            training.unet.compile(dynamic=False)
        done = training.run(given.steps, given.seconds, lambda: bool(stopped))
        training.save(given.out)
        print(f"{training.step} steps, {training.seconds:.0f} s, loss {training.losses[-1]:.4f}")
        if given.samples and not stopped:
            write_samples(
                given.out / "samples.zip", sampled(load_diffusion(given.out, given.device, steps=50), given.samples)
            )
    except UnfaceError as error:
        print(f"unface: {error}", file=sys.stderr)
        return 1
    finally:
        signal.signal(signal.SIGTERM, previous)
    return 0 if done else 75  # EX_TEMPFAIL: give the same command again


if __name__ == "__main__":
    sys.exit(main())
