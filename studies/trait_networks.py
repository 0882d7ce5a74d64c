"""Trains a network that encodes one facial trait, and writes it as an ONNX file.

    python -m studies.trait_networks PICTURES --trait eyes --out eyes.onnx --accept-licence
    python -m studies.trait_networks GENERATED --trait eyes --teacher arcface-mbf --out eyes.onnx --accept-licence
    unface models add eyes.onnx --name eyes-vit --mean 127.5 --std 127.5 --resize letterbox
    unface encode faces.zip --encoder eyes-vit --crop eyes --out eyes.parquet --accept-licence

Without a teacher it is the network of paper 003: a ViT with patches of 32 pixels, from scratch, by cross-entropy over
the people of PICTURES who have 5 pictures or more (the paper: 9), SGD, the learning rate cut when the loss stays. The
paper trains it on the very people whose membership it then tests. With a teacher it learns from the trait alone what
the recogniser says of the whole face, on generated people (``unface synth``): it never sees a training person.
``studies.trait_vectors`` trains smaller ones of both kinds, for the tables of docs/release.md.
"""

import argparse
import math
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional

from unface import load_encoder
from unface.data import read_images
from unface.encode.prepare import Preparer
from unface.faces import TRAITS, TraitCrop, load_detector, load_landmarks
from unface.models import Input
from unface.seeds import stream

LEAST_PICTURES = 5
Frames = NDArray[np.uint8]


@dataclass(frozen=True)
class Recipe:
    """ViT-B/32 and the paper's training by default."""

    size: int = 224
    patch: int = 32
    width: int = 768
    depth: int = 12
    heads: int = 12
    out: int = 512
    epochs: int = 25
    batch: int = 512
    learning_rate: float = 0.05
    patience: int = 3
    adam: bool = False
    """AdamW, with a warm-up and a cosine to zero, in place of the paper's SGD: for few steps."""
    seed: int = 0

    @property
    def input(self) -> Input:
        """A trait with bars beside it, as ``unface encode --crop`` shows it to encoders of whole pictures."""
        middle = (127.5, 127.5, 127.5)
        return Input(self.size, "NCHW", "RGB", "float32", middle, middle, "none", "letterbox")


class Vit(nn.Module):
    """(n, 3, size, size) from −1 to 1 → (n, out)."""

    def __init__(self, recipe: Recipe) -> None:
        super().__init__()
        width = recipe.width
        self.patches = nn.Conv2d(3, width, recipe.patch, recipe.patch)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.places = nn.Parameter(0.02 * torch.randn(1, 1 + (recipe.size // recipe.patch) ** 2, width))
        layer = nn.TransformerEncoderLayer(
            width, recipe.heads, 4 * width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, recipe.depth, norm=nn.LayerNorm(width), enable_nested_tensor=False)
        self.head = nn.Linear(width, recipe.out)

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        """The class token, projected."""
        patches = self.patches(pictures).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.token.expand(patches.shape[0], -1, -1), patches], dim=1) + self.places
        vectors: torch.Tensor = self.head(self.layers(tokens)[:, 0])
        return vectors


def train(
    frames: Frames,
    targets: NDArray[np.int64] | NDArray[np.float32],
    recipe: Recipe,
    device: str = "cpu",
    seconds: float = math.inf,
) -> tuple[Vit, list[float]]:
    """The network and the loss of each epoch; ``targets`` are people (n,), or a teacher's vectors (n, recipe.out).

    It ends with the last epoch, or when the time is up. The loss of an epoch that was cut is that of its part.
    """
    torch.manual_seed(recipe.seed)
    network = Vit(recipe).to(device)
    taught = targets.ndim == 2
    classes = nn.Identity() if taught else nn.Linear(recipe.out, int(targets.max()) + 1).to(device)
    wanted, pixels = torch.from_numpy(targets).to(device), torch.from_numpy(frames).to(device)
    weights = [*network.parameters(), *classes.parameters()]
    if recipe.adam:
        optimiser: torch.optim.Optimizer = torch.optim.AdamW(weights, recipe.learning_rate, weight_decay=0.05)
    else:
        optimiser = torch.optim.SGD(weights, recipe.learning_rate, momentum=0.9)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimiser, patience=recipe.patience)
    losses: list[float] = []
    began, steps = time.monotonic(), 0
    all_steps = recipe.epochs * math.ceil(len(frames) / recipe.batch)
    for epoch in range(recipe.epochs):
        parts: list[torch.Tensor] = []
        seen = 0
        for rows in batches(len(frames), recipe.batch, recipe.seed, epoch):
            done = max(steps / all_steps, (time.monotonic() - began) / seconds)
            if done >= 1:
                break
            if recipe.adam:
                for group in optimiser.param_groups:
                    group["lr"] = recipe.learning_rate * min(done / 0.05, 1) * (1 + math.cos(math.pi * done)) / 2
            index = torch.from_numpy(rows).to(device)
            with torch.autocast(device.partition(":")[0], torch.bfloat16, enabled=device != "cpu"):
                said = classes(network(changed(pixels[index], recipe, epoch, int(rows[0]))))
            if taught:
                loss = (1 - functional.cosine_similarity(said.float(), wanted[index])).mean()
            else:
                loss = functional.cross_entropy(said.float(), wanted[index])
            optimiser.zero_grad()
            torch.autograd.backward(loss)
            nn.utils.clip_grad_norm_(weights, 1.0)
            optimiser.step()
            steps += 1
            parts.append(loss.detach() * len(rows))
            seen += len(rows)
        if not parts:
            break
        losses.append(float(torch.stack(parts).sum()) / seen)
        if not recipe.adam:
            plateau.step(losses[-1])
    return network.eval(), losses


def batches(count: int, size: int, seed: int, epoch: int) -> Iterator[NDArray[np.int64]]:
    order = stream(seed, "trait batches", epoch).permutation(count)
    for start in range(0, count, size):
        yield order[start : start + size]


def changed(frames: torch.Tensor, recipe: Recipe, epoch: int, number: int) -> torch.Tensor:
    """(n, 3, size, size) from −1 to 1: a shift of up to 4 %, mirrored, brighter or darker."""
    rng = stream(recipe.seed, "trait changes", epoch, number)
    pictures = as_seen(frames, recipe)
    most = max(round(0.04 * pictures.shape[2]), 1)
    down, right = rng.integers(-most, most + 1, 2).tolist()
    pictures = torch.roll(pictures, (down, right), (2, 3))
    if rng.random() < 0.5:
        pictures = pictures.flip(3)
    return pictures * float(rng.uniform(0.8, 1.2))


def as_seen(frames: torch.Tensor, recipe: Recipe) -> torch.Tensor:
    """(n, 3, size, size) from −1 to 1, of frames that may have been kept smaller."""
    pictures = frames.permute(0, 3, 1, 2).float() / 127.5 - 1
    if pictures.shape[2] == recipe.size:
        return pictures
    return functional.interpolate(pictures, size=(recipe.size, recipe.size), mode="bilinear", align_corners=False)


def export(network: Vit, recipe: Recipe, out: Path) -> None:
    """As an ONNX graph that takes any number of pictures."""
    torch.backends.mha.set_fastpath_enabled(False)  # its fused operator is not one of ONNX
    pictures = torch.zeros(2, 3, recipe.size, recipe.size)
    free = {"picture": {0: "batch"}, "vector": {0: "batch"}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the newer exporter needs another package
        torch.onnx.export(
            network.cpu(),
            (pictures,),
            str(out),
            input_names=["picture"],
            output_names=["vector"],
            dynamic_axes=free,
            opset_version=17,
            dynamo=False,
        )


def main() -> None:
    """Read, train, write."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("pictures", type=Path)
    given.add_argument("--trait", choices=TRAITS, required=True)
    given.add_argument("--out", type=Path, required=True)
    given.add_argument("--teacher", help="a recogniser; without it the network learns to tell the people apart")
    given.add_argument("--device", default="cpu")
    given.add_argument("--epochs", type=int, default=25)
    given.add_argument("--accept-licence", action="store_true")
    asked = given.parse_args()
    recipe = Recipe(epochs=asked.epochs)
    detector, images = load_detector(), read_images(asked.pictures)
    crop = TraitCrop(asked.trait, load_landmarks(accept_licence=asked.accept_licence))
    student = Preparer(recipe.input, detector, crop)
    teacher = load_encoder(asked.teacher, accept_licence=asked.accept_licence) if asked.teacher else None
    whole = None if teacher is None else Preparer(teacher.card.input, detector)
    frames, people, vectors = [], [], []
    failed: Counter[str] = Counter()
    for ref in images:
        content = ref.read()
        seen = student(content)
        if seen.frame is None:
            failed[seen.reason or ""] += 1
            continue
        if teacher is not None and whole is not None:
            face = whole(content).frame
            if face is None:
                continue
            vectors.append(teacher.encode([face])[0])
        frames.append(seen.frame)
        people.append(ref.identity)
    if teacher is not None:
        targets: NDArray[np.int64] | NDArray[np.float32] = np.stack(vectors)
        recipe = replace(recipe, out=teacher.dim)
        kept = np.arange(len(frames))
    else:
        often = {name for name, count in Counter(people).items() if count >= LEAST_PICTURES}
        kept = np.array([row for row, name in enumerate(people) if name in often])
        targets = np.unique([people[row] for row in kept], return_inverse=True)[1].astype(np.int64)
    print(f"{len(kept)} of {len(images)} pictures; left out {dict(failed)}")
    network, losses = train(np.stack(frames)[kept], targets, recipe, asked.device)
    print("loss of each epoch:", *(f"{loss:.3f}" for loss in losses))
    export(network, recipe, asked.out)


if __name__ == "__main__":
    main()
