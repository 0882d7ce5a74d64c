"""Readers of weights that unface trains or takes from others, all of them safetensors; and of what lies beside them."""

import json
import shutil
from collections import Counter
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tests.fuzz.mutate import Reader
from unface.errors import UnfaceError
from unface.seeds import stream

if TYPE_CHECKING:
    from unface.protect.facemae_train import Training


def _training() -> "Training":
    """A new FaceMAE that learns twelve pictures in no time."""
    from tests.protect.test_facemae_train import TOY
    from unface.protect import facemae
    from unface.protect.facemae import Masking
    from unface.protect.facemae_frames import Faces
    from unface.protect.facemae_train import Recipe, Training

    facemae.PRESETS["tiny"] = TOY
    frames = stream(0, "faces").integers(0, 256, (12, 16, 16, 3), dtype=np.uint8)
    faces = Faces(frames, tuple(f"p{number % 6}" for number in range(12)), Counter())
    return Training(Recipe(preset="tiny", loss="mse", masking=Masking(0.5), epochs=2), faces, None)


def _trained(folder: Path, steps: int) -> Path:
    place = folder / "facemae"
    shutil.rmtree(place, ignore_errors=True)
    training = _training()
    training.run(steps)
    training.save(place)
    return place


def _models(folder: Path) -> list[bytes]:
    return [(_trained(folder, 6) / "model.safetensors").read_bytes()]


def _read_model(path: Path) -> None:
    from unface.protect.facemae_train import load_facemae

    load_facemae(_placed(path, "facemae-mutant", "model.safetensors"))


def _states(folder: Path) -> list[bytes]:
    return [(_trained(folder, 3) / "state.safetensors").read_bytes()]


def _resume(path: Path) -> None:
    """What a mutant says of the weights is learned on from."""
    training = _training()
    training.resume(_placed(path, "state-mutant", "state.safetensors"))
    training.run(min(training.step + 1, training.steps))


def _recognisers(folder: Path) -> list[bytes]:
    from unface.protect.recogniser import MobileFaceNet, RecogniserRecipe, TrainedRecogniser

    recipe = RecogniserRecipe(size=16, width=0.25, dim=8)
    TrainedRecogniser(recipe, MobileFaceNet(recipe), 1.5, 0.25).save(folder / "recogniser")
    return [(folder / "recogniser").read_bytes()]


def _read_recogniser(path: Path) -> None:
    from unface.protect.recogniser import load_trained

    load_trained(path).embed(np.zeros((1, 16, 16, 3), np.uint8))


@cache
def _diffusion(folder: Path) -> Path:
    from tests.prior.tiny_unet import diffusers_folder

    return diffusers_folder(folder / "diffusion")


_WEIGHTS, _CONFIG, _SCHEDULE = (
    "unet/diffusion_pytorch_model.safetensors",
    "unet/config.json",
    "scheduler/scheduler_config.json",
)


def _diffusion_reader(name: str) -> Reader:
    """One file of the folder is damaged."""

    def read(path: Path) -> None:
        from unface.prior.diffusion import load_diffusion

        whole = _diffusion(path.parent)
        before = (whole / name).read_bytes()
        (whole / name).write_bytes(path.read_bytes())
        try:
            prior = load_diffusion(whole, steps=2)
            prior.decode(prior.sample(1, seed=0))
        finally:
            (whole / name).write_bytes(before)

    def originals(folder: Path) -> list[bytes]:
        from unface.prior.diffusion import Schedule

        whole = (_diffusion(folder) / name).read_bytes()
        return [whole, json.dumps(Schedule().to_diffusers()).encode()] if name == _SCHEDULE else [whole]

    is_weights = name == _WEIGHTS
    return Reader(
        originals,
        read,
        is_text=not is_weights,
        is_json=not is_weights,
        is_safetensors=is_weights,
    )


def _stylegans(folder: Path) -> list[bytes]:
    from safetensors.torch import save

    from tests.prior.tiny import stylegan2_state

    return [save(stylegan2_state())]


def _read_stylegan(path: Path) -> None:
    from unface.prior import load_prior

    file = path.with_name("mutant.safetensors")
    file.write_bytes(path.read_bytes())
    prior = load_prior(str(file))
    prior.decode(prior.sample(1, seed=0), prior.sizes[-1])


def _parts(folder: Path) -> list[bytes]:
    """What a killed inversion leaves for the next run."""
    from unface.invert import Ledger
    from unface.invert.run import Batch
    from unface.judge.template import stranger_thresholds
    from unface.output.place import place_at

    place = place_at(folder)
    seen = {"judge": np.zeros((3, 4), np.float32)}
    draw = np.random.default_rng(0)
    templates, faces = draw.standard_normal((2, 40, 4))
    limits = stranger_thresholds(templates, faces, np.arange(40) // 2)
    for number, recogniser in enumerate(("judge", None)):
        pictures = np.zeros((3, 8, 8, 3), np.uint8)
        batch = Batch(np.ones(3, np.float32), seen, recogniser, limits, Ledger(3), pictures)
        batch.write(place, f"part-{number}.npz")
    return [(folder / f"part-{number}.npz").read_bytes() for number in range(2)]


def _read_part(path: Path) -> None:
    from unface.invert.run import Batch
    from unface.output.place import place_at

    batch = Batch.read(place_at(path.parent), path.name, 3)
    if batch is None:
        raise UnfaceError("made again")
    Batch.joined([batch, batch])


def _placed(path: Path, folder: str, name: str) -> Path:
    place = path.with_name(folder)
    place.mkdir(exist_ok=True)
    (place / name).write_bytes(path.read_bytes())
    return place


CHECKPOINT_READERS = {
    "facemae": Reader(_models, _read_model, is_safetensors=True),
    "facemae-state": Reader(_states, _resume, is_safetensors=True),
    "recogniser": Reader(_recognisers, _read_recogniser, is_safetensors=True),
    "diffusion": _diffusion_reader(_WEIGHTS),
    "diffusion-config": _diffusion_reader(_CONFIG),
    "diffusion-schedule": _diffusion_reader(_SCHEDULE),
    "inversion-part": Reader(_parts, _read_part),
    "stylegan2": Reader(_stylegans, _read_stylegan, is_safetensors=True),
}
