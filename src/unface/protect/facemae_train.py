"""FaceMAE's training: faces of train people → a model, its loss curve, and all that is needed to go on.

Weights that were trained on faces can show those faces again: keep them as you keep the pictures.
"""

import hashlib
import json
import math
import signal
import time
from dataclasses import asdict, dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor
from torch.nn import functional

from unface.erase.fitted_on import FittedOn
from unface.errors import UnfaceError
from unface.output.lock import run_lock
from unface.output.place import place_at
from unface.output.write import write_file
from unface.prior.steps import BLOCK, STATE, Steps
from unface.progress import Progress, Silent
from unface.protect.baselines import MaskedFaces, contents_of
from unface.protect.facemae import (
    PRESETS,
    Features,
    Loss,
    MaskedAutoencoder,
    Masking,
    Preset,
    feature_loss,
    loss_of,
    patches_of,
    preset_of,
)
from unface.protect.facemae_frames import Faces
from unface.protect.replay import Replayed
from unface.seeds import stream

MODEL = "model.safetensors"
CURVE = "training.json"
SAMPLES = "samples.png"
_MOST_SAMPLES = 8
_HEADER = "facemae"
_SAVED_S = 300.0  # seconds between checkpoints
_WARM_UP = 0.2  # of the steps: 40 of the paper's 200 epochs


@dataclass(frozen=True)
class Recipe:
    """What decides the weights, besides the pictures and the recogniser."""

    preset: str = "small"
    loss: Loss = "irm"
    beta: float = 1.0
    masking: Masking = field(default_factory=Masking)
    epochs: int | None = None
    """Over the pictures; None is the preset's number."""
    weight_decay: float = 0.05
    seed: int = 0
    learning_rate: float | None = None
    """None is the preset's."""

    def __post_init__(self) -> None:
        self.masking.shown(preset_of(self.preset))
        loss_of(self.loss)
        if not 0 <= self.beta < math.inf:
            raise UnfaceError(f"beta is {self.beta:g}; expected 0 or more")
        if self.epochs is not None and self.epochs < 1:
            raise UnfaceError(f"epochs is {self.epochs}; expected at least 1")


class Training(Steps):
    """The autoencoder and how far it is: MSE of whole pictures while the learning rate rises, then the recipe's loss.

    A run that starts from another model has the recipe's loss from its first step.

    Pixels are not normalised patch by patch. Originals and their mirror images are learned, as the recogniser sees
    both. On a GPU the networks run in bfloat16; sums and losses stay in float32.
    """

    def __init__(
        self,
        recipe: Recipe,
        faces: Faces,
        recogniser: Features | None,
        device: str = "cpu",
        start: "Trained | None" = None,
    ) -> None:
        if recipe.loss != "mse" and recogniser is None:
            raise UnfaceError(f"loss {recipe.loss!r} needs a recogniser; name one with --recogniser")
        self.recipe, self.preset = recipe, preset_of(recipe.preset)
        self.people = tuple(sorted(set(faces.identities)))
        self.data = {
            "people": len(self.people),
            "pictures": len(faces.frames),
            "sha256": hashlib.sha256(faces.frames.tobytes()).hexdigest(),
            "left_out": dict(faces.left_out),
        }
        self.recogniser = None if recipe.loss == "mse" or recogniser is None else recogniser
        self.steps = math.ceil((recipe.epochs or self.preset.epochs) * len(faces.frames) / self.preset.batch)
        self.warm_up = math.ceil(_WARM_UP * self.steps)
        self._pictures = torch.from_numpy(faces.frames).permute(0, 3, 1, 2).contiguous().to(device)
        self._real: Tensor | None = None
        self.model = MaskedAutoencoder(self.preset).initialise(recipe.seed)
        self.start = None if start is None else start.sha256
        if start is not None:
            if start.preset != self.preset:
                name = start.header["recipe"]["preset"]
                raise UnfaceError(f"the model to start from is of preset {name}, not {recipe.preset}; choose another")
            if start.header["data"]["sha256"] != self.data["sha256"]:  # a model names all people it has learned from
                raise UnfaceError("the model to start from was trained on other pictures; choose one trained on these")
            self.model.load_state_dict(start.model.state_dict())
        self.model = self.model.to(device).train()
        self._weights: list[Tensor] = list(self.model.parameters())
        self._learning_rate = recipe.learning_rate or self.preset.learning_rate
        adam = torch.optim.AdamW(
            self._weights,
            self._learning_rate,
            betas=(0.9, 0.95),
            weight_decay=recipe.weight_decay,
            fused=device != "cpu",
        )
        name = None if self.recogniser is None else self.recogniser.name
        decided = [asdict(recipe), asdict(self.preset), self.data, name, *([self.start] if self.start else [])]
        super().__init__(self.model, adam, hashlib.sha256(json.dumps(decided).encode()).hexdigest())
        self._random = torch.Generator(device)
        self._pixels, self._features = (
            Replayed(self._of_pixels, self._weights),
            Replayed(self._of_features, self._weights),
        )

    def one(self) -> Tensor:
        """Pictures, mirrors and masks are drawn by the number of the step."""
        recipe, preset, count = self.recipe, self.preset, self.preset.batch
        self._random.manual_seed(int(stream(recipe.seed, "facemae", "train", self.step).integers(2**62)))
        device = self._pictures.device
        chosen = torch.randint(len(self._pictures), (count,), generator=self._random, device=device)
        mirrored = torch.rand(count, generator=self._random, device=device) < 0.5
        positions = recipe.masking.drawn(preset, count, self._random)
        if self.recogniser is None or self.step < self.pixels_until:
            loss = self._pixels(chosen, mirrored, positions)
        else:
            loss = self._features(chosen, mirrored, positions, self._originals()[chosen, mirrored.long()])
        for group in self._adam.param_groups:
            group["lr"] = self._learning_rate * self._rate()
        self._adam.step()
        self.step += 1
        return loss

    def _of_pixels(self, chosen: Tensor, mirrored: Tensor, positions: Tensor) -> Tensor:
        pictures = self._drawn(chosen, mirrored)
        with self._halved():
            made = self._made(pictures, positions)
        return self._learn(functional.mse_loss(made, pictures))

    def _of_features(self, chosen: Tensor, mirrored: Tensor, positions: Tensor, real: Tensor) -> Tensor:
        assert self.recogniser is not None
        with self._halved():
            vectors = self.recogniser(self._made(self._drawn(chosen, mirrored), positions))
        return self._learn(feature_loss(self.recipe.loss, real, vectors, self.recipe.beta))

    def _drawn(self, chosen: Tensor, mirrored: Tensor) -> Tensor:
        pictures = self._pictures[chosen].float() / 255
        return torch.where(mirrored[:, None, None, None], pictures.flip(3), pictures)

    def _made(self, pictures: Tensor, positions: Tensor) -> Tensor:
        seen = patches_of(pictures, self.preset.patch)
        made: Tensor = self.model(seen.gather(1, positions[..., None].expand(-1, -1, seen.shape[-1])), positions)
        return made

    def _halved(self) -> torch.autocast:
        kind = self._pictures.device.type
        return torch.autocast(kind, torch.bfloat16, enabled=kind == "cuda", cache_enabled=False)

    def _learn(self, loss: Tensor) -> Tensor:
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self._weights, 1.0)
        return loss

    @property
    def pixels_until(self) -> int:
        """The step from which the recipe's loss is learned; a model to start from knows pixels already."""
        return 0 if self.start else self.warm_up

    def _rate(self) -> float:
        """Of the learning rate: up in a line, then down along a cosine, as MAE's."""
        if self.step < self.warm_up:
            return (self.step + 1) / self.warm_up
        return 0.5 * (1 + math.cos(math.pi * (self.step - self.warm_up) / max(self.steps - self.warm_up, 1)))

    def _originals(self) -> Tensor:
        """(n, 2, d): the recogniser's vectors of the originals and of their mirror images, made once."""
        if self._real is None:
            assert self.recogniser is not None
            rows = []
            with torch.no_grad(), self._halved():
                for start in range(0, len(self._pictures), self.preset.batch):
                    pictures = self._pictures[start : start + self.preset.batch].float() / 255
                    rows.append(torch.stack([self.recogniser(pictures), self.recogniser(pictures.flip(3))], dim=1))
            self._real = torch.cat(rows)
        return self._real

    @property
    def recorded(self) -> bool:
        """Whether steps are replayed by the GPU."""
        return self._pixels.recorded or self._features.recorded

    def resume(self, folder: Path) -> None:
        """Continue where the same recipe stopped; a checkpoint of another preset is named."""
        require_preset(folder, self.recipe.preset)
        super().resume(folder)

    def save(self, folder: Path) -> None:
        """The model so far, what is needed to go on, and ``training.json`` with the loss curve."""
        folder.mkdir(parents=True, exist_ok=True)
        tensors = {name: value.detach().cpu().contiguous() for name, value in self.model.named_parameters()}
        people = FittedOn.of(self.people, tensors["pixels.weight"].double().numpy())
        header = {**self.summary(), "trained_on": people.to_fields()}
        header.pop("losses")
        write_file(folder / MODEL, save(tensors, {_HEADER: json.dumps(header)}))
        write_file(folder / CURVE, (json.dumps(self.summary(), indent=2) + "\n").encode())
        self.save_state(folder)  # last: a run that finds it has nothing to write again

    def staged_losses(self) -> tuple[list[float], list[float]]:
        """Losses on pixels, with which a run begins, and by the recipe; they cannot be compared with each other."""
        pixels = 0 if self.recogniser is None else -(-self.pixels_until // BLOCK)
        return self.losses[:pixels], self.losses[pixels:]

    def summary(self) -> dict[str, Any]:
        """What ``training.json`` says; no names, no paths."""
        return {
            "recipe": asdict(self.recipe),
            "recogniser": None if self.recogniser is None else self.recogniser.name,
            **({"started_from": self.start} if self.start else {}),
            "data": self.data,
            "step": self.step,
            "steps": self.steps,
            "mse_until_step": self.steps if self.recogniser is None else self.pixels_until,
            "seconds": round(self.seconds, 1),
            "weights": sum(weight.numel() for weight in self._weights),
            "steps_per_loss": BLOCK,
            "losses": [round(loss, 6) for loss in self.losses],
        }


def train(
    training: Training,
    out: Path,
    *,
    seconds: float = math.inf,
    samples: NDArray[np.uint8] | None = None,
    progress: Progress | None = None,
) -> bool:
    """Train until all steps are done, the time is up or SIGTERM comes; checkpoints every five minutes and at the end.

    The same call continues an interrupted run. Returns whether all steps are done. ``samples`` are faces of generated
    people: each checkpoint shows what the model makes of them.
    """
    progress, task = progress or Silent(), "training FaceMAE"
    stopped: list[int] = []
    with run_lock(place_at(out)):
        training.resume(out)
        progress.start(task, training.steps)
        told = 0

        def stop() -> bool:
            nonlocal told
            progress.advance(task, training.step - told)
            told = training.step
            return bool(stopped)

        previous = signal.signal(signal.SIGTERM, lambda number, _: stopped.append(number))
        try:
            ends = time.monotonic() + seconds
            done = training.step >= training.steps and (out / MODEL).exists()
            while not done and not stopped:
                done = training.run(training.steps, min(_SAVED_S, ends - time.monotonic()), stop)
                if samples is not None:
                    write_file(out / SAMPLES, samples_png(training, samples))
                training.save(out)
                if time.monotonic() >= ends:
                    break
        finally:
            signal.signal(signal.SIGTERM, previous)
        stop()
    return done


def samples_png(training: Training, frames: NDArray[np.uint8]) -> bytes:
    """Faces (n, size, size, 3), what a mask shows of each, and what the model makes of that: three rows."""
    from PIL import Image

    chosen = frames[:_MOST_SAMPLES]
    masked = MaskedFaces.of(chosen, contents_of(chosen), training.recipe.masking, training.preset, bytes(32))
    rows = [np.concatenate(list(row), axis=1) for row in (chosen, masked.masks(), masked.made_by(training.model))]
    content = BytesIO()
    Image.fromarray(np.concatenate(rows)).save(content, "PNG")
    return content.getvalue()


def require_preset(folder: Path, name: str) -> None:
    """Refuse a checkpoint of another preset, and a folder that holds anything else."""
    inside = {entry.name for entry in folder.iterdir()} if folder.is_dir() else set()
    if MODEL not in inside and any(not name.startswith((".", "_")) for name in inside - {CURVE, SAMPLES, STATE}):
        raise UnfaceError(f"{folder}: is not empty; choose another --out")
    if MODEL in inside:
        preset = _header(folder)["recipe"]["preset"]
        if preset != name:
            raise UnfaceError(f"{folder.name}: is a checkpoint of preset {preset}, not {name}; choose another --out")


@dataclass(frozen=True, eq=False)
class Trained:
    """A finished model, and what its file says of how it was made."""

    model: MaskedAutoencoder
    preset: Preset
    masking: Masking
    sha256: str
    header: dict[str, Any]
    trained_on: FittedOn


def load_facemae(folder: Path, device: str = "cpu") -> Trained:
    """The model that ``train`` left in a folder; one whose training is not finished is refused."""
    header = _header(folder)
    if header["step"] < header["steps"]:
        raise UnfaceError(
            f"{folder.name}: {header['step']} of {header['steps']} steps are done; give the train command again"
        )
    preset = preset_of(header["recipe"]["preset"])
    model = MaskedAutoencoder(preset)
    try:
        with safe_open(folder / MODEL, framework="pt") as file:
            model.load_state_dict({name: file.get_tensor(name) for name in file.keys()})  # noqa: SIM118
        masking, trained_on = Masking(**header["recipe"]["masking"]), FittedOn.from_fields(header["trained_on"])
    except (OSError, SafetensorError, RuntimeError, KeyError, TypeError, ValueError, OverflowError, UnfaceError):
        raise UnfaceError(f"{folder.name}/{MODEL}: does not fit preset {header['recipe']['preset']}") from None
    digest = hashlib.sha256((folder / MODEL).read_bytes()).hexdigest()
    return Trained(model.to(device).eval().requires_grad_(False), preset, masking, digest, header, trained_on)


def _header(folder: Path) -> dict[str, Any]:
    try:
        with safe_open(folder / MODEL, framework="pt") as file:
            header = json.loads(file.metadata()[_HEADER])
        if header["recipe"]["preset"] not in PRESETS or not header["step"] <= header["steps"]:
            raise ValueError
    except (OSError, SafetensorError, KeyError, TypeError, ValueError, RecursionError):
        raise UnfaceError(
            f"{folder.name}: holds no FaceMAE model; expected {MODEL} of unface protect facemae train"
        ) from None
    return dict(header)
