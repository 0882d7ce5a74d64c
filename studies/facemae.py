"""FaceMAE against its own recogniser: utility and risk of a protected face set, row by row, as far as the time goes.

    python -m studies.facemae KEEP PICTURES --pairs LFW,pairs.txt [--device cuda] [--seconds 570]
    python -m studies.facemae KEEP [--record WHERE [--join]]

PICTURES holds CelebA's aligned pictures as <person>/<picture>. People are taken in the order of sha256(name): the first
train autoencoders, the next are released, the next are the attacker's own. KEEP holds faces, models, recognisers and
one file for each finished row: the same call continues with the next one, and several calls can run side by side on
one KEEP. Rows come in this order: FaceMAE, plain MAE, masks and originals at 75 %, one recogniser each; attackers;
two more seeds; mask ratios 50, 90 and 30 %; other baselines; ablations; other recognisers. Without PICTURES, the
finished rows (KEEP/rows alone is enough) become KEEP/protection.json and its page, which list what was not reached.
``--only WORD …`` makes the rows whose names contain a word, and ``--join`` adds them to the record that is there.
A seed decides a recogniser and the masks it learns from; an autoencoder is trained once. All autoencoders start from
one that has learned pixels at 75 %: from random weights, FaceMAE's loss stays at that of strangers for 16 passes.
"""

import argparse
import fcntl
import hashlib
import json
import math
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import torch
from numpy.typing import NDArray

from studies.measured import Cell, Findings, Table, markdown, read_findings, write_findings
from unface.data import read_images
from unface.encode import load_encoder
from unface.errors import UnfaceError
from unface.faces import ARCFACE_112, Face, load_detector
from unface.metrics import Scheme, identity_weights
from unface.output.write import write_file
from unface.protect import replay
from unface.protect.attackers import Deployed, FineTuning, Seen
from unface.protect.baselines import MaskedFaces, contents_of
from unface.protect.facemae import Features, Hidden, Loss, MaskedAutoencoder, Masking, Preset, feature_loss, preset_of
from unface.protect.facemae_audit import (
    FACEMAE,
    LOW_PASS,
    MASKS,
    MEAN_COLOUR,
    NOBODY,
    ORIGINALS,
    PLAIN,
    Crowd,
    OwnPeople,
    Plan,
    Protect,
    accuracy,
    assembled,
    second_release,
    unchanged,
)
from unface.protect.facemae_frames import Faces, read_faces
from unface.protect.facemae_train import CURVE as CURVE_FILE
from unface.protect.facemae_train import MODEL, Recipe, Trained, Training, load_facemae, train
from unface.protect.pair_sets import PairSet, read_pair_set
from unface.protect.recogniser import RECOGNISERS, TrainedRecogniser, load_trained, train_recogniser
from unface.result.file import Clock
from unface.result.protection import (
    PAPER_K,
    AttackerResult,
    MethodResult,
    PairsResult,
    ProtectionResult,
    ReleaseFacts,
    SecondRelease,
)

# ArcFace's window of a CelebA picture of 178 × 218 (docs/results.md): 117.1 px at (30.2, 57.5), scale only.
_WINDOW, _CORNER = 117.1 / 112, (30.2, 57.5)
ENCODERS = ("arcface-mbf", "sface", "edgeface-s")
RATIO, SEEDS = 0.75, (1, 2, 3)
Passes = Literal["start", "full", "short"]
PASSES, PROBE = "passes.json", "probe.json"
_RESERVE = 8.0  # seconds for the last files
_SHARED = 0.6  # of its speed that a model keeps beside recognisers and attackers on the same GPU
_GUESS = {
    "model": 60.0,
    "utility": 20.0,
    "attack": 30.0,
    "second": 20.0,
    "pilot": 40.0,
}  # seconds on a GPU, until a row was timed
FACTS = "facts.json"
Frames = NDArray[np.uint8]


@dataclass(frozen=True)
class Method:
    """A way to protect, and how its autoencoder is trained where it has one."""

    name: str
    ratio: float | None = RATIO
    loss: Loss | None = None
    beta: float = 1.0
    hidden: Hidden = "none"
    width: float = 1.0
    """Of the recogniser that learns from it."""
    passes: Passes = "full"
    """Of its autoencoder over the pictures."""

    @property
    def model(self) -> str | None:
        """The folder of its autoencoder."""
        if self.loss is None or self.ratio is None:
            return None
        parts = [self.loss, f"{self.ratio:g}", *([f"beta{self.beta:g}"] if self.beta != 1 else [])]
        parts += [self.hidden] if self.hidden != "none" else []
        return "-".join([*parts, *([self.passes] if self.passes != "full" else [])])

    @property
    def key(self) -> str:
        """In the names of files."""
        words = [self.name.lower().replace(",", "").replace(" ", "-")]
        words += [] if self.ratio is None else [f"{self.ratio:g}"]
        return "-".join([*words, *([self.model] if self.model else [])])


START = Method("the start of all", loss="mse", passes="start")
ORIGINAL = Method(ORIGINALS, None)
FIRST = (Method(FACEMAE, loss="irm"), Method(PLAIN, loss="mse"), Method(MASKS), ORIGINAL)
CURVE = (Method(FACEMAE, 0.5, "irm"), Method(FACEMAE, 0.9, "irm"), Method(FACEMAE, 0.3, "irm"))
OTHERS = (Method(MEAN_COLOUR), Method(LOW_PASS), Method(NOBODY, None))
ABLATIONS = (
    Method("FaceMAE, a quarter of the passes", loss="irm", passes="short"),
    Method("instance matching alone", loss="im", passes="short"),
    Method("relation matching alone", loss="rm", passes="short"),
    Method("FaceMAE, β = 0.1", loss="irm", beta=0.1, passes="short"),
    Method("FaceMAE, β = 10", loss="irm", beta=10.0, passes="short"),
    Method("FaceMAE, eyes hidden", loss="irm", hidden="eyes", passes="short"),
    Method("FaceMAE, mouth hidden", loss="irm", hidden="mouth", passes="short"),
)
"""After the start a quarter of the passes; the first of them is what the others are compared with."""
BACKBONES = (
    Method("FaceMAE, half as wide a recogniser", loss="irm", width=0.5),
    Method("FaceMAE, twice as wide a recogniser", loss="irm", width=2.0),
)


@dataclass(frozen=True)
class Row:
    """One thing to do; ``name`` is its file."""

    kind: str
    method: Method
    seed: int = 1

    @property
    def name(self) -> str:
        """Of its file."""
        if self.kind == "pilot":
            return "pilot"
        if self.kind == "model":
            return f"model-{self.method.model}"
        return f"{self.kind}-{self.method.key}" + (f"-{self.seed}" if self.kind == "utility" else "")

    @property
    def needs(self) -> "Row | None":
        """The row that has to be finished before."""
        match self.kind:
            case "pilot":
                return Row("model", START)
            case "model" if self.method != START:
                return PILOT if self.method.loss != "mse" else Row("model", START)
            case "utility":
                return Row("model", self.method) if self.method.model else None
            case "attack":
                return Row("utility", self.method)
            case "second":
                return Row("attack", self.method)
        return None


PILOT = Row("pilot", FIRST[0])
"""The learning rate of all feature losses: the one with which few steps keep most of unseen people."""
RATES, PILOT_STEPS = (3e-5, 1e-4, 3e-4), 200


def ladder() -> list[Row]:
    """All rows, the most important first; an autoencoder just before the first row that needs it."""
    rows = [Row("model", START), PILOT, *(Row("utility", method, 1) for method in FIRST)]
    rows += [Row("attack", method) for method in FIRST]
    rows += [Row("utility", method, seed) for seed in SEEDS[1:] for method in FIRST] + [Row("second", FIRST[0])]
    rows += [Row(kind, method) for method in (*CURVE, *OTHERS) for kind in ("utility", "attack")]
    rows += [Row(kind, method) for method in ABLATIONS for kind in ("utility", "attack")]
    rows += [Row("utility", method) for method in BACKBONES]
    found: dict[str, Row] = {}
    for row in rows:
        if (row.kind, row.method.name) != ("attack", NOBODY):
            steps = (row.needs, row) if row.kind == "utility" and row.needs else (row,)
            found |= {one.name: one for one in steps if one.name not in found}
    return list(found.values())


class CelebaFace:
    """Not looked for: the five points of CelebA's aligned pictures."""

    name = "celeba aligned"

    def detect(self, image: NDArray[np.uint8]) -> list[Face]:
        """One face where CelebA's alignment put it."""
        scale = image.shape[0] / 218
        points = (ARCFACE_112 * _WINDOW + np.array(_CORNER)) * scale
        box = np.array([*_CORNER, _CORNER[0] + 117.1, _CORNER[1] + 117.1]) * scale
        return [Face(box, points, 1.0)]


@dataclass
class Bench:
    """Faces, models and recognisers, made when a row asks for them and kept."""

    asked: argparse.Namespace
    keep: Path
    ends: float
    _made: dict[tuple[str, int], Frames] = field(default_factory=dict)
    _loaded: dict[str, Trained] = field(default_factory=dict)

    @property
    def left(self) -> float:
        """Seconds until the last files have to be written."""
        return self.ends - time.monotonic()

    def guess(self, row: Row) -> float:
        """Seconds that a row takes: the longest of its kind so far."""
        known = []
        for one in ladder():
            found = _read(self.keep, one.name) if one.kind == row.kind else None
            if found is not None and row.kind != "model":
                known.append(found["seconds"])
            elif found is not None and (one.method.loss == "mse") == (row.method.loss == "mse"):
                known.append(found["seconds"] * self.passes[row.method.passes] / self.passes[one.method.passes])
        if row.kind == "model" and row.method != START:  # a model of which nothing is measured is of no use
            known.append(
                max(known, default=0.0) + sum(self.guess(Row(kind, row.method)) for kind in ("utility", "attack"))
            )
        return max(known, default=0.0 if self.asked.device == "cpu" else _GUESS[row.kind])

    @cached_property
    def passes(self) -> dict[str, int]:
        """Of autoencoders over the pictures; the same for all calls."""
        file = self.keep / "rows" / PASSES
        with locked(self.keep / "passes.lock"):
            if not file.exists():
                full = self.asked.epochs or preset_of(self.asked.preset).epochs
                start = full if self.asked.start_epochs is None else self.asked.start_epochs
                passes = {"start": start, "full": full, "short": max(full // 4, 1)}
                write_file(file, (json.dumps(passes) + "\n").encode())
        return dict(json.loads(file.read_text(encoding="utf-8")))

    @cached_property
    def plan(self) -> Plan:
        """Recognisers of the preset's size; fewer passes where asked for."""
        recipe = RECOGNISERS[self.asked.preset]
        if self.asked.recogniser_epochs is not None:
            recipe = replace(recipe, epochs=self.asked.recogniser_epochs)
        tuning = FineTuning(steps=self.asked.tuning_steps, people=min(96, self.asked.own))
        return Plan(recipe, SEEDS, tuning, seed=0, device=self.asked.device)

    @property
    def settings(self) -> dict[str, Any]:
        """What rows of one KEEP have in common."""
        asked = self.asked
        words = ("preset", "train", "release", "own", "attacked", "recogniser_epochs", "tuning_steps")
        return {word: getattr(asked, word) for word in words}

    def prepare(self) -> None:
        """Faces and pairs once for all calls, and what a page has to know besides the rows."""
        with locked(self.keep / "prepare.lock"):
            file = self.keep / "rows" / FACTS
            if file.exists():
                held = json.loads(file.read_text(encoding="utf-8"))["settings"]
                if held != self.settings:
                    raise UnfaceError(f"{self.keep.name}: was begun with {held}, not {self.settings}; choose another")
            _, people, _ = self.faces["release"]
            facts: dict[str, Any] = {
                "settings": self.settings,
                "pictures": {side: len(found[0]) for side, found in self.faces.items()},
                "attacked_pictures": len(self.attack_rows()),
                "released_people": len(np.unique(people)),
                "sha256": hashlib.sha256(b"".join(self.contents)).hexdigest(),
                "pairs": {one.name: len(one.pairs) for one in self.pairs},
                "recogniser": asdict(self.plan.recogniser),
            }
            if not file.exists():
                facts["strangers_loss"] = strangers_loss(*self.faces["train"][:2], self.features, "irm", 1.0)
            if self.asked.nobody is not None:
                frames, codes = self.nobody
                facts |= {"nobody_pictures": len(frames), "nobody_people": len(np.unique(codes))}
            if not file.exists():
                write_file(file, (json.dumps(facts) + "\n").encode())

    @cached_property
    def faces(self) -> dict[str, tuple[Frames, NDArray[np.int64], tuple[str, ...]]]:
        """Of the people who train, are released, and are the attacker's own: faces, codes, names."""
        asked, size = self.asked, preset_of(self.asked.preset).size
        counts = {"train": asked.train, "release": asked.release, "own": asked.own}

        def read() -> dict[str, NDArray[Any]]:
            images = read_images(asked.pictures)
            people = sorted(images.identities, key=lambda name: hashlib.sha256(name.encode()).hexdigest())
            if len(people) < sum(counts.values()):
                raise UnfaceError(f"{asked.pictures}: has {len(people):,} people; {sum(counts.values()):,} are needed")
            place = {name: at for at, name in enumerate(people[: sum(counts.values())])}
            chosen = [row for row, image in enumerate(images) if image.identity in place]
            found = read_faces(images.take(chosen), size, CelebaFace())
            codes = np.array([place[name] for name in found.identities])
            order = np.argsort(codes, kind="stable")
            return {"frames": found.frames[order], "codes": codes[order], "names": np.array(people)[codes[order]]}

        held = self._kept(f"faces-{size}-{'-'.join(map(str, counts.values()))}", read)
        sides, start = {}, 0
        for side, number in counts.items():
            first, last = np.searchsorted(held["codes"], (start, start + number))
            codes, names = held["codes"][first:last].astype(np.int64), held["names"][first:last]
            sides[side] = (held["frames"][first:last], codes, tuple(names.tolist()))
            start += number
        return sides

    def _kept(self, name: str, make: Callable[[], dict[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
        """Arrays of a file in KEEP, made where it is not there."""
        file = self.keep / f"{name}.npz"
        if not file.exists():
            made = make()
            with file.with_suffix(".part").open("wb") as out:
                np.savez(out, allow_pickle=False, **made)
            file.with_suffix(".part").replace(file)
        with np.load(file) as held:
            return {key: held[key] for key in held.files}

    @cached_property
    def contents(self) -> list[bytes]:
        """Hashes of the released faces, which decide their masks."""
        return contents_of(self.faces["release"][0])

    @cached_property
    def nobody(self) -> tuple[Frames, NDArray[np.int64]]:
        """People who do not exist, as a training set."""

        def read() -> dict[str, NDArray[Any]]:
            size = preset_of(self.asked.preset).size
            found = read_faces(read_images(str(self.asked.nobody)), size, load_detector(accept_licence=True))
            return {"frames": found.frames, "codes": np.unique(found.identities, return_inverse=True)[1]}

        held = self._kept("nobody", read)
        return held["frames"], held["codes"].astype(np.int64)

    @cached_property
    def pairs(self) -> list[PairSet]:
        """Of other people than all of these."""

        def read(text: str) -> dict[str, NDArray[Any]]:
            one = read_pair_set(text, self.plan.recogniser.size)
            return {"name": np.array(one.name), "frames": one.frames, "pairs": one.pairs, "mated": one.mated,
                    "folds": one.folds}  # fmt: skip

        found = []
        for number, text in enumerate(self.asked.pairs):
            held = self._kept(f"pairs-{number}", lambda text=text: read(text))  # type: ignore[misc]
            found.append(PairSet(str(held["name"]), *(held[key] for key in ("frames", "pairs", "mated", "folds"))))
        return found

    @cached_property
    def features(self) -> Features:
        """The recogniser of FaceMAE's loss."""
        return Features(load_encoder("sface", accept_licence=True), self.asked.device)

    @cached_property
    def crowd(self) -> Crowd:
        """Attackers."""
        return Crowd([load_encoder(name, accept_licence=True) for name in ENCODERS], self.plan)

    def trained(self, method: Method) -> Trained:
        """Its autoencoder; trained on, or gone on with, where it is not finished."""
        assert method.model is not None
        assert method.loss is not None
        assert method.ratio is not None
        folder = self.keep / "models" / method.model
        if method.model not in self._loaded and read_row(self.keep, Row("model", method)) is not None:
            self._loaded[method.model] = load_facemae(folder, self.asked.device)
        if method.model not in self._loaded:
            frames, _, names = self.faces["train"]
            masking, passes = Masking(method.ratio, method.hidden), self.passes[method.passes]
            pilot = None if method.loss == "mse" else read_row(self.keep, PILOT)
            rate = None if pilot is None else pilot["learning_rate"]
            recipe = Recipe(self.asked.preset, method.loss, method.beta, masking, passes, learning_rate=rate)
            features = None if method.loss == "mse" else self.features
            start = None if method == START or not self.passes["start"] else self.trained(START)
            training = Training(recipe, Faces(frames, names, Counter()), features, self.asked.device, start)
            with searched_convolutions():
                done = train(training, folder, seconds=max(self.left - _RESERVE, 0))
            speed = training.step * training.preset.batch / max(training.seconds, 1e-9)
            say(f"  {method.model}: step {training.step} of {training.steps}, {speed:,.0f} pictures/s")
            if not done:
                raise OutOfTime
            self._loaded[method.model] = load_facemae(folder, self.asked.device)
        return self._loaded[method.model]

    def protect(self, method: Method, key: bytes) -> Protect:
        """What the method makes of faces with masks of this key."""
        if method.name == ORIGINALS:
            return unchanged
        assert method.ratio is not None
        masking, preset = Masking(method.ratio, method.hidden), preset_of(self.asked.preset)
        how: dict[str, Callable[[MaskedFaces], Frames]] = {
            MASKS: MaskedFaces.masks, MEAN_COLOUR: MaskedFaces.mean_colour, LOW_PASS: MaskedFaces.low_pass,
        }  # fmt: skip
        make = how.get(method.name) or (lambda masked: masked.made_by(self.trained(method).model))

        def protected(frames: Frames, contents: list[bytes]) -> Frames:
            positions = np.stack([positions_of(masking, preset, key, content) for content in contents])
            return make(MaskedFaces(frames, positions, preset, masking.ratio))

        return protected

    def released(self, method: Method, seed: int) -> tuple[Frames, NDArray[np.int64]]:
        """What a recogniser learns from."""
        if method.name == NOBODY:
            return self.nobody
        frames, people, _ = self.faces["release"]
        place = (method.key, seed)
        if place not in self._made:
            self._made.clear()  # one at a time: they are large
            self._made[place] = self.protect(method, key_of(seed))(frames, self.contents)
        return self._made[place], people

    def recogniser(self, method: Method, seed: int) -> TrainedRecogniser:
        """That learned from it; kept."""
        file = self.keep / "recognisers" / f"{method.key}-{seed}.safetensors"
        if not file.exists():
            frames, people = self.released(method, seed)
            recipe = replace(self.plan.recogniser, seed=seed, width=self.plan.recogniser.width * method.width)
            with searched_convolutions():
                made = train_recogniser(frames, people, recipe, self.asked.device)
            file.parent.mkdir(parents=True, exist_ok=True)
            made.save(file)
            speed = recipe.epochs * len(frames) / max(made.seconds, 1e-9)
            say(f"  recogniser {method.key}-{seed}: loss {made.loss:.3f}, {speed:,.0f} pictures/s")
        return load_trained(file, self.asked.device)

    def attack_rows(self) -> NDArray[np.int64]:
        """Of the released people who are attacked: the first of them."""
        people = self.faces["release"][1]
        return np.flatnonzero(np.isin(people, np.unique(people)[: self.asked.attacked]))

    def deployed(self, method: Method) -> Deployed:
        """Real and released pictures of the people who are attacked."""
        rows = self.attack_rows()
        made, people = self.released(method, 1)
        return Deployed(self.faces["release"][0][rows], made[rows], people[rows])

    @cached_property
    def own(self) -> OwnPeople:
        """People of the attacker."""
        frames, people, _ = self.faces["own"]
        return OwnPeople(frames, contents_of(frames), people)

    def run(self, row: Row) -> dict[str, Any]:
        """What a row found, as JSON has it."""
        method = row.method
        if not self.passes["start"] and (row == PILOT or method == START):
            return {"learning_rate": None}  # autoencoders begin with random weights
        if row.kind == "pilot":
            return self.pilot()
        if row.kind == "model":
            trained = self.trained(method)
            curve = json.loads((self.keep / "models" / str(method.model) / CURVE_FILE).read_text(encoding="utf-8"))
            about = {"sha256": trained.sha256, "batch": trained.preset.batch, "training": curve}
            return {**about, **self.unseen(method, trained.model)}
        if row.kind == "utility":
            recogniser = self.recogniser(method, row.seed)
            return {
                "pairs": [accuracy(one, {row.seed: recogniser}).model_dump() for one in self.pairs],
                "learned_in": recogniser.seconds,
                "loss": recogniser.loss,
            }
        protect = self.protect(method, key_of(-1))
        attackers = list(self.crowd.against(protect, self.own, {1: self.recogniser(method, 1)}))
        deployed = self.deployed(method)
        if row.kind == "attack":
            seen = [Seen.of(attacker, deployed, self.plan.seed) for attacker in attackers]
            results = [one.result(self.plan.seed) for one in seen]
            links = [hits_of(one, result.cosine) for one, result in zip(seen, results, strict=True)]
            return {"attackers": [one.model_dump() for one in results], "hits": links}
        done = read_row(self.keep, Row("attack", method))
        assert done is not None
        found = [AttackerResult.model_validate(one) for one in done["attackers"]]
        worst = max(found, key=lambda one: one.calibrate_other or 0.0).name
        attacker = next(one for one in attackers if one.name == worst)
        rows, preset = self.attack_rows(), preset_of(self.asked.preset)
        assert method.ratio is not None
        masked, again, other = (
            MaskedFaces.of(deployed.real, [self.contents[row] for row in rows], Masking(method.ratio), preset, key)
            for key in (key_of(1), key_of(1), key_of(2))
        )
        made = other.made_by(self.trained(method).model)
        return {"second": second_release(attacker, deployed, masked, again, other, made, self.plan.seed).model_dump()}

    def unseen(self, method: Method, model: MaskedAutoencoder) -> dict[str, Any]:
        """FaceMAE's loss on a picture each of up to 256 people who trained nothing, beside that of strangers."""
        (frames, people, _), preset = self.faces["release"], preset_of(self.asked.preset)
        first = np.unique(people, return_index=True)[1][:256]
        contents = [self.contents[row] for row in first]
        masked = MaskedFaces.of(
            frames[first], contents, Masking(method.ratio or RATIO, method.hidden), preset, key_of(1)
        )
        real, made = (vectors_of(side, self.features) for side in (frames[first], masked.made_by(model)))
        kind: Loss = "irm" if method.loss in ("mse", None) else method.loss
        beta = method.beta
        return {
            "unseen_loss": float(feature_loss(kind, real, made, beta)),
            "unseen_cosine": float((real * made).sum(dim=1).mean()),
            "strangers_loss": strangers_loss(*self.faces["train"][:2], self.features, kind, beta),
            "strangers_cosine": float((real * made.roll(1, dims=0)).sum(dim=1).mean()),
        }

    def pilot(self) -> dict[str, Any]:
        """A few steps of FaceMAE with each learning rate."""
        (frames, _, names), start = self.faces["train"], self.trained(START)
        steps, found = PILOT_STEPS if self.asked.device != "cpu" else 2, dict[str, Any]()
        for rate in RATES:
            recipe = Recipe(self.asked.preset, "irm", epochs=1, learning_rate=rate)
            training = Training(recipe, Faces(frames, names, Counter()), self.features, self.asked.device, start)
            training.steps, training.warm_up = steps, steps // 5
            with searched_convolutions():
                training.run(steps)
            found[f"{rate:g}"] = {"losses": training.losses, **self.unseen(FIRST[0], training.model.eval())}
            say(f"  learning rate {rate:g}", found[f"{rate:g}"])

        def kept(rate: float) -> float:  # of a person; the loss alone can fall because strangers become less alike
            tried = found[f"{rate:g}"]
            return float(tried["unseen_cosine"]) - float(tried["strangers_cosine"])

        best = max(RATES, key=kept)
        return {"learning_rate": best, "steps": steps, "rates": found}


class OutOfTime(Exception):
    """The time is up; what is done is kept."""


@contextmanager
def searched_convolutions() -> Iterator[None]:
    """cuDNN tries three ways for each convolution: some for one channel each are slow. Longer searches cost minutes."""
    torch.backends.cudnn.benchmark, torch.backends.cudnn.benchmark_limit = True, 3
    try:
        yield
    finally:
        torch.backends.cudnn.benchmark = False


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Wait for the lock of a file; the system drops it when its process ends."""
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def claimed(keep: Path, row: Row) -> Iterator[bool]:
    """Whether this call is the one that makes a row."""
    with (keep / "locks" / row.name).open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
        else:
            yield read_row(keep, row) is None


@cache
def positions_of(masking: Masking, preset: Preset, key: bytes, content: bytes) -> NDArray[np.int64]:
    """A mask; methods share them."""
    return masking.positions(preset, key, content)


def strangers_loss(frames: Frames, people: NDArray[np.int64], features: Features, kind: Loss, beta: float) -> float:
    """A loss if the first pictures of 256 people were answered by those of 256 others: no identity is kept."""
    first = np.unique(people, return_index=True)[1]
    half = min(256, len(first) // 2)
    vectors = vectors_of(frames[first[: 2 * half]], features)
    return float(feature_loss(kind, vectors[:half], vectors[half:], beta))


def vectors_of(frames: Frames, features: Features) -> torch.Tensor:
    """(n, d) unit vectors of faces (n, s, s, 3)."""
    with torch.no_grad():
        batches = torch.split(torch.from_numpy(np.ascontiguousarray(frames)).permute(0, 3, 1, 2), 64)
        return torch.cat([features(batch.to(features.mean.device).float() / 255) for batch in batches])


def hits_of(seen: Seen, threshold: float) -> list[list[int]]:
    """Of each measured person: accepted pairs of a real picture and what was made of another one, and all of them."""
    rows = np.flatnonzero(~seen.calibrate)
    codes = np.unique(seen.people[rows], return_inverse=True)[1]
    own = (codes[:, None] == codes) & ~np.eye(len(rows), dtype=bool)
    accepted = (seen.real[rows] @ seen.released[rows].T >= np.float32(threshold)) & own
    return [np.bincount(codes, pairs.sum(axis=1)).astype(int).tolist() for pairs in (accepted, own)]


def key_of(seed: int) -> bytes:
    """Mask seeds of a study are no secret."""
    return hashlib.sha256(f"study mask seed {seed}".encode()).digest()


def read_row(keep: Path, row: Row) -> dict[str, Any] | None:
    """What a finished row found."""
    return _read(keep, row.name)


def _read(keep: Path, name: str) -> dict[str, Any] | None:
    try:
        return dict(json.loads((keep / "rows" / f"{name}.json").read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return None


def result_of(keep: Path, clock: Clock) -> ProtectionResult:
    """All finished rows as one file; neither faces nor models are needed."""
    facts = json.loads((keep / "rows" / FACTS).read_text(encoding="utf-8"))
    rows = {row.name: found for row in ladder() if (found := read_row(keep, row)) is not None}
    methods = []
    for method in dict.fromkeys(row.method for row in ladder() if row.kind not in UNSEEN and row.name in rows):
        learned = {seed: rows[name] for seed in SEEDS if (name := Row("utility", method, seed).name) in rows}
        attack = rows.get(Row("attack", method).name, {"attackers": []})
        nobody = method.name == NOBODY
        methods.append(
            MethodResult(
                name=method.name,
                ratio=method.ratio,
                audited=method == FIRST[0],
                pictures=facts["nobody_pictures"] if nobody else facts["pictures"]["release"],
                people=facts["nobody_people"] if nobody else facts["released_people"],
                utility=merged({seed: pairs_of(found) for seed, found in learned.items()}),
                attackers=[AttackerResult.model_validate(one) for one in attack["attackers"]],
            )
        )
    second = rows.get(Row("second", FIRST[0]).name)
    release = ReleaseFacts(
        name="the CelebA release of the study",
        sha256=facts["sha256"],
        people=facts["released_people"],
        pictures=facts["pictures"]["release"],
        preset=facts["settings"]["preset"],
        loss="irm",
        recogniser="sface",
        model_sha256=rows[Row("model", FIRST[0]).name]["sha256"],
    )
    missing = not_reached([row for row in ladder() if row.name not in rows and row.kind not in UNSEEN])
    seeds = tuple(seed for seed in SEEDS if Row("utility", FIRST[0], seed).name in rows)
    held = None if second is None else SecondRelease.model_validate(second["second"])
    plan = Plan(RECOGNISERS[release.preset], seeds)
    return assembled(release, methods, held, missing, plan, clock, {}, facts["settings"]["attacked"])


def pairs_of(found: dict[str, Any]) -> list[PairsResult]:
    """Of a finished row."""
    return [PairsResult.model_validate(one) for one in found["pairs"]]


def merged(by_seed: dict[int, list[PairsResult]]) -> list[PairsResult]:
    """One result for each set of pairs, of all seeds."""
    names = dict.fromkeys(one.name for found in by_seed.values() for one in found)
    made = []
    for name in names:
        here = [one for seed in sorted(by_seed) for one in by_seed[seed] if one.name == name]
        seeds, folds = [one.seeds[0] for one in here], [one.by_seed[0] for one in here]
        made.append(PairsResult(name=name, pairs=here[0].pairs, seeds=seeds, by_seed=folds))
    return made


def not_reached(rows: Sequence[Row]) -> list[str]:
    """In words; a method of which no row is finished is one line."""
    found = []
    for method in dict.fromkeys(row.method for row in rows):
        at = method.name + ("" if method.ratio is None else f" at {100 * method.ratio:g} %")
        kinds = {row.kind for row in rows if row.method == method}
        seeds = [row.seed for row in rows if row.method == method and row.kind == "utility"]
        if 1 in seeds:
            found.append(at)
            continue
        if seeds:
            found.append(f"recogniser{'s' * (len(seeds) > 1)} {' and '.join(map(str, seeds))} of {at}")
        words = {"attack": "attackers", "second": "two releases"}
        found += [f"{word} of {at}" for kind, word in words.items() if kind in kinds]
    return found


def tables(keep: Path, result: ProtectionResult) -> dict[str, Table]:
    """What pages show."""
    main: list[list[Cell]] = []
    attackers: list[list[Cell]] = []
    for method in result.methods:
        worst, found = method.worst, method.accuracy
        risk = None if worst is None else worst.risk(PAPER_K, "other")
        tar = None if worst is None else worst.other
        main.append(
            [
                method.name,
                method.ratio,
                len(method.utility[0].seeds) if method.utility else 0,
                None if found is None else [found.value, found.low, found.high],
                None if worst is None else worst.name,
                None if tar is None else [tar.value, tar.low, tar.high],
                None if risk is None else [risk.share.value, risk.share.low, risk.share.high],
                None if risk is None else risk.chance,
            ]
        )
        for one in method.attackers:
            cells: list[Cell] = [method.name, method.ratio, one.name]
            for share in (one.same, one.other):
                cells.append(None if share is None else [share.value, share.low, share.high])
            nearest = one.risk(PAPER_K, "other")
            cells.append(None if nearest is None else [nearest.share.value, nearest.share.low, nearest.share.high])
            attackers.append([*cells, one.achieved_far])
    columns = {
        "method": "", "hidden": ".0%", "seeds": "", "accuracy": ".1%", "worst attacker": "",
        "TAR, another picture": ".1%", f"R(K = {PAPER_K})": ".1%", "chance": ".2%",
    }  # fmt: skip
    each = {
        "method": "", "hidden": ".0%", "attacker": "", "TAR, same picture": ".1%", "TAR, another picture": ".1%",
        f"R(K = {PAPER_K})": ".1%", "strangers accepted": ".2%",
    }  # fmt: skip
    places = {(method.name, method.ratio): row for method, row in zip(result.methods, main, strict=True)}
    groups = {"methods": (*FIRST, *OTHERS), "curve": sorted((FIRST[0], *CURVE), key=lambda one: one.ratio or 0),
              "ablations": ABLATIONS, "backbones": (FIRST[0], *BACKBONES)}  # fmt: skip
    made = {
        name: Table(columns=columns, rows=[line for one in group if (line := places.get((one.name, one.ratio)))])
        for name, group in groups.items()
    }
    made["attackers"] = Table(columns=each, rows=attackers)
    made["by attacker"] = _by_attacker(result)
    made["differences"] = _differences(keep, result, FIRST[0], (*FIRST[1:], *CURVE, *OTHERS, *BACKBONES))
    made["ablation differences"] = _differences(keep, result, ABLATIONS[0], ABLATIONS[1:])
    curves: list[list[Cell]] = []
    for row in ladder():
        found_row = read_row(keep, row) if row.kind == "model" else None
        if found_row is not None and "training" in found_row:
            told = found_row["training"]
            speed = told["steps"] * found_row["batch"] / max(told["seconds"], 1e-9)
            begins = -(-told["mse_until_step"] // told["steps_per_loss"]) if told["recipe"]["loss"] != "mse" else 0
            ends = [told["losses"][begins], told["losses"][-1]]  # the first whole block with the loss of the recipe
            unseen = [
                found_row.get(name) for name in ("unseen_loss", "strangers_loss", "unseen_cosine", "strangers_cosine")
            ]
            curves.append([str(row.method.model), told["steps"], told["seconds"], speed, ends, *unseen])
    shown = {"model": "", "steps": ",", "seconds": ".0f", "pictures/s": ",.0f", "loss": ".4f",
             "FaceMAE's loss, unseen people": ".2f", "strangers": ".2f", "cosine, unseen people": ".2f",
             "cosine, strangers": ".2f"}  # fmt: skip
    made["training"] = Table(columns=shown, rows=curves)
    return made


def _by_attacker(result: ProtectionResult) -> Table:
    """Retrieval risk at the audited mask ratio: a row for each attacker, a column for each method."""
    columns = {(one.name, one.ratio) for one in (*FIRST, *OTHERS)}
    methods = [one for one in result.methods if one.attackers and (one.name, one.ratio) in columns]
    names = list(dict.fromkeys(attacker.name for one in methods for attacker in one.attackers))
    rows: list[list[Cell]] = []
    for name in names:
        cells: list[Cell] = [name]
        for method in methods:
            found = next((one.risk(PAPER_K, "other") for one in method.attackers if one.name == name), None)
            cells.append(None if found is None else [found.share.value, found.share.low, found.share.high])
        rows.append(cells)
    return Table(columns={"attacker": ""} | {one.name: ".1%" for one in methods}, rows=rows)


def _differences(keep: Path, result: ProtectionResult, base: Method, others: Sequence[Method]) -> Table:
    """A method less each of others: accuracy by seeds and folds, TAR of the worst attackers by people."""
    places, rows = {(one.name, one.ratio): one for one in result.methods}, list[list[Cell]]()
    first, mine = places.get((base.name, base.ratio)), _worst_hits(keep, base)
    for method in others:
        other, theirs = places.get((method.name, method.ratio)), _worst_hits(keep, method)
        if first is None or other is None:
            continue
        gain = first.utility[0].less(other.utility[0]) if first.utility and other.utility else None
        risk = None
        if mine is not None and theirs is not None:
            weights = identity_weights(Scheme.DOUBLE_OR_NOTHING, len(mine[0]), 1_000, 0, "protected, paired")
            drawn = weights @ mine[1]
            values = (weights @ (mine[0] - theirs[0]))[drawn > 0] / drawn[drawn > 0]
            value = float((mine[0] - theirs[0]).sum() / mine[1].sum())
            half = 1.96 * float(values.std(ddof=1))
            risk = [value, value - half, value + half]
        seeds = len(set(first.utility[0].seeds) & set(other.utility[0].seeds)) if gain is not None else 0
        shown: Cell = None if gain is None else [100 * gain.value, 100 * gain.low, 100 * gain.high]
        rows.append([method.name, method.ratio, seeds, shown, None if risk is None else [100 * one for one in risk]])
    name = base.name if base in ABLATIONS else f"{base.name}, {base.ratio:.0%} hidden".replace("%", " %")
    columns = {f"{name}, less": "", "hidden": ".0%", "seeds": "", "accuracy, points": "+.1f",
               "TAR of the worst attacker, points": "+.1f"}  # fmt: skip
    return Table(columns=columns, rows=rows)


def _worst_hits(keep: Path, method: Method) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """Of each measured person: pairs that the worst attacker accepts, and all pairs."""
    row = read_row(keep, Row("attack", method))
    if row is None:
        return None
    chosen = [one["calibrate_other"] or 0.0 for one in row["attackers"]]
    hits, pairs = np.array(row["hits"][int(np.argmax(chosen))])
    return hits, pairs


def say(*words: object) -> None:
    """With the time."""
    print(f"[{time.monotonic() - _BEGAN:6.1f}]", *words, flush=True)


_BEGAN = time.monotonic()


def main() -> None:
    """Rows until the time is up; without pictures the file and its page."""
    asked = _options()
    for folder in ("rows", "locks"):
        (asked.keep / folder).mkdir(parents=True, exist_ok=True)
    if asked.pictures is None:
        write_result(asked)
        return
    bench = Bench(asked, asked.keep, _BEGAN + asked.seconds)
    bench.prepare()
    say("faces", {side: len(found[0]) for side, found in bench.faces.items()}, "on", asked.device)
    if asked.prepare:
        return
    if asked.probe:
        probe(bench)
        return
    probed = _read(asked.keep, "probe")
    replay.RECORDING = probed is None or probed["graphs"]
    failed: set[str] = set()
    while (row := step(bench, failed)) is not None:
        if row is WAIT:
            time.sleep(2)
    say("no more rows" if bench.left > _RESERVE else "the time is up", f"{len(failed)} failed")
    if failed:
        raise SystemExit(3)


def probe(bench: Bench) -> None:
    """Passes that fit: four models with FaceMAE's loss and two of pixels in two fifths of the time.

    Steps are timed as they are and as CUDA graphs; graphs are used where they give the same losses in less time.
    """
    frames, _, names = bench.faces["train"]
    some = Faces(frames[:2_048], names[:2_048], Counter())
    on_gpu = bench.asked.device != "cpu"
    speeds, curves = dict[tuple[str, bool], float](), dict[tuple[str, bool], list[float]]()
    for loss, recording in ((loss, recording) for loss in ("mse", "irm") for recording in (False, True)):
        replay.RECORDING = recording
        recipe = Recipe(bench.asked.preset, cast(Loss, loss), epochs=1_000)
        training = Training(recipe, some, bench.features, bench.asked.device)
        training.warm_up = 0
        with searched_convolutions():
            losses = [training.one() for _ in range(12 if on_gpu else 1)]
        curves[loss, recording] = [float(one) for one in losses]
        began = time.monotonic()
        last = [training.one() for _ in range(40 if on_gpu else 1)]
        float(last[-1])
        speeds[loss, recording] = len(last) * training.preset.batch / (time.monotonic() - began)
        shown = [round(one, 4) for one in curves[loss, recording]]
        say(f"{loss}, recorded: {training.recorded}", shown, f"{speeds[loss, recording]:,.0f} pictures/s")
    same = all(np.allclose(curves[loss, False], curves[loss, True], rtol=0.02) for loss in ("mse", "irm"))
    graphs = same and all(speeds[loss, True] > speeds[loss, False] for loss in ("mse", "irm"))
    each = len(frames) * (4 / speeds["irm", graphs] + 2 / speeds["mse", graphs])
    full = min(max(round(0.4 * _SHARED * bench.asked.seconds / each), 8), 60)
    passes = {"start": full, "full": full, "short": max(full // 4, 2)}
    speed = {f"{loss}, graphs {'on' if on else 'off'}": round(found) for (loss, on), found in speeds.items()}
    say("passes", passes, "graphs", graphs)
    write_file(bench.keep / "rows" / PASSES, (json.dumps(passes) + "\n").encode())
    content = {"graphs": graphs, "same losses": same, "pictures/s": speed}
    write_file(bench.keep / "rows" / PROBE, (json.dumps(content) + "\n").encode())


UNSEEN = ("model", "pilot")
"""Rows that no page lists."""
WAIT = Row("wait", ORIGINAL)
"""All rows that can be made are being made by other calls."""


def step(bench: Bench, failed: set[str]) -> Row | None:
    """Make the first row that is not made, that nobody is making, and for which there is time."""
    waiting = False
    for row in ladder():
        if row.name in failed or read_row(bench.keep, row) is not None:
            continue
        if row.method.name == NOBODY and bench.asked.nobody is None:
            continue
        if bench.asked.only and not any(word in row.name for word in bench.asked.only):
            continue
        if bench.left < bench.guess(row) + _RESERVE:
            continue
        if row.needs is not None and read_row(bench.keep, row.needs) is None:
            waiting |= row.needs.name not in failed
            continue
        with claimed(bench.keep, row) as mine:
            if not mine:
                waiting = True
                continue
            began = time.monotonic()
            say(row.name)
            try:
                found = bench.run(row)
            except OutOfTime:
                return None
            except torch.OutOfMemoryError as error:  # another process may give memory back
                say(f"  {row.name}: {str(error).split('.')[0]}; tried again later")
                torch.cuda.empty_cache()
                return WAIT
            except Exception:  # the other rows are still worth having
                traceback.print_exc()
                failed.add(row.name)
                return row
            if row.kind == "model" and "training" in found:
                halve(bench.keep / "models" / str(row.method.model), bench.keep / "half")
            seconds = time.monotonic() - began
            content = json.dumps({**found, "seconds": round(seconds, 1)}) + "\n"
            write_file(bench.keep / "rows" / f"{row.name}.json", content.encode())
            say(f"  {row.name}: {seconds:.1f} s {_short(found)}")
            return row
    return WAIT if waiting else None


def halve(model: Path, out: Path) -> None:
    """A copy in half precision, to bring away; its header stays."""
    from safetensors import safe_open
    from safetensors.torch import save

    with safe_open(model / MODEL, framework="pt") as file:
        header, tensors = file.metadata(), {name: file.get_tensor(name).half() for name in file.keys()}  # noqa: SIM118
    out.mkdir(exist_ok=True)
    write_file(out / f"{model.name}.safetensors", save(tensors, header))


def write_result(asked: argparse.Namespace) -> None:
    """protection.json, its page, and the tables for docs/measured."""
    if read_row(asked.keep, Row("utility", FIRST[0])) is None:
        say("FaceMAE's first row is not done; give PICTURES and the same settings again")
        return
    result = result_of(asked.keep, Clock())
    path = result.save(asked.keep)
    found = tables(asked.keep, result)
    for name, table in found.items():
        print(f"\n{name}", *markdown(table), sep="\n")
    say(result.verdict)
    say(f"{path}: {len(result.not_measured)} rows were not reached")
    if asked.record:
        facts = json.loads((asked.keep / "rows" / FACTS).read_text(encoding="utf-8"))
        passes, settings = json.loads((asked.keep / "rows" / PASSES).read_text(encoding="utf-8")), facts["settings"]
        command = (
            f"python -m studies.facemae KEEP PICTURES --pairs LFW,pairs.txt --start-epochs {passes['start']} --epochs "
            f"{passes['full']} --recogniser-epochs {settings['recogniser_epochs']} --tuning-steps "
            f"{settings['tuning_steps']}"
        )
        figures = _figures(asked.keep, facts, result)
        if asked.join:
            found, figures = joined(read_findings("facemae"), found, figures)
        write_findings("facemae", command=command, where=asked.record, tables=found, figures=figures)
    from unface.report.protection import write_protection  # here: machines that train need no charts

    write_protection(result, result.page_in(asked.keep))


KEYS = {"attackers": 3, "methods": 2, "curve": 2, "differences": 2}
"""How many cells name a line of a table, where it is not the first alone."""


def joined(
    before: Findings, found: dict[str, Table], figures: dict[str, Cell]
) -> tuple[dict[str, Table], dict[str, Cell]]:
    """Lines of an earlier record as they are, and those of methods, shares and models that it did not have.

    Methods that were measured again are in a table of their own, ``repeated``.
    """
    tables = {}
    for name, table in found.items():
        old, key = before.tables.get(name), KEYS.get(name, 1)
        known = [] if old is None else [line[:key] for line in old.rows]
        rows = [*([] if old is None else old.rows), *(line for line in table.rows if line[:key] not in known)]
        if name == "curve":
            rows.sort(key=lambda line: cast(float, line[1]))
        tables[name] = Table(columns=table.columns if old is None else old.columns, rows=rows)
        if name == "methods":
            again = [line for line in table.rows if line[:key] in known]
            tables["repeated"] = Table(columns=table.columns, rows=again)
    missing = [
        one for one in cast(list[str], before.figures["not_reached"]) if one in cast(list[str], figures["not_reached"])
    ]
    return tables, {**figures, **before.figures, "not_reached": list(missing)}


def _figures(keep: Path, facts: dict[str, Any], result: ProtectionResult) -> dict[str, Cell]:
    """How the study was made, and what sentences quote."""
    second = result.second
    figures: dict[str, Cell] = dict(facts["settings"])
    passes = {f"{name}_passes": count for name, count in json.loads((keep / "rows" / PASSES).read_text()).items()}
    figures |= {"released_people": facts["released_people"], "released_pictures": facts["pictures"]["release"],
                "train_pictures": facts["pictures"]["train"], **passes, "measured_people": result.measured_people,
                "lfw_pairs": facts["pairs"].get("lfw"), "recogniser_passes": facts["recogniser"]["epochs"],
                "strangers_loss": facts.get("strangers_loss"), "not_reached": list(result.not_measured),
                "verdict": result.verdict}  # fmt: skip
    for step, speed in (_read(keep, "probe") or {"pictures/s": {}})["pictures/s"].items():
        figures[f"pictures/s, {step}"] = speed
    if second is not None:
        figures |= {"second_attacker": second.attacker, "second_same_shown": second.same_seed_shown,
                    "second_other_shown": second.other_seed_shown,
                    "second_one": [second.one.value, second.one.low, second.one.high],
                    "second_both": [second.both.value, second.both.low, second.both.high]}  # fmt: skip
    return figures


def _short(found: dict[str, Any]) -> str:
    if "training" in found:
        return (
            f"loss {found['training']['losses'][-1]:.4f}, unseen people {found['unseen_loss']:.3f} "
            f"(strangers {found['strangers_loss']:.3f}), cosine {found['unseen_cosine']:.3f} "
            f"(strangers {found['strangers_cosine']:.3f})"
        )
    if "pairs" in found:
        return ", ".join(f"{one.name} {one.accuracy.value:.2%}" for one in pairs_of(found))
    if "attackers" in found:
        shown = [AttackerResult.model_validate(one) for one in found["attackers"]]
        return ", ".join(f"{one.name} {one.other.value:.2%}" for one in shown if one.other is not None)
    if "learning_rate" in found:
        return f"learning rate {found['learning_rate']}"
    second = SecondRelease.model_validate(found["second"])
    return f"{second.attacker}: one {second.one.value:.2%}, both {second.both.value:.2%}"


def _options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("keep", type=Path, help="folder for everything that is kept")
    given.add_argument("pictures", nargs="?", help="CelebA's aligned pictures, by person")
    given.add_argument("--prepare", action="store_true", help="read faces and pairs, and stop")
    given.add_argument("--pairs", action="append", default=[], help="PICTURES,PAIRS.TXT or PACK.bin; repeated")
    given.add_argument("--nobody", type=Path, help="folder that 'unface synth' made")
    given.add_argument("--preset", default="small")
    given.add_argument("--device", default="cpu")
    given.add_argument("--seconds", type=float, default=math.inf, help="of this call")
    given.add_argument("--train", type=int, default=3_500, help="people who train autoencoders")
    given.add_argument("--release", type=int, default=3_000, help="people who are released")
    given.add_argument("--own", type=int, default=1_000, help="people of the attacker")
    given.add_argument("--attacked", type=int, default=1_000, help="released people who are attacked")
    given.add_argument("--start-epochs", type=int, help="of the model that all start from; 0: none")
    given.add_argument("--epochs", type=int, help="of autoencoders [default: the preset's]")
    given.add_argument("--probe", action="store_true", help="measure the speed, fit both to --seconds, and stop")
    given.add_argument("--recogniser-epochs", type=int, help="[default: the recipe's]")
    given.add_argument("--tuning-steps", type=int, default=400, help="of the attacker who fine-tunes")
    given.add_argument("--only", nargs="*", default=[], help="rows whose name has one of these in it")
    given.add_argument("--record", metavar="WHERE", help="keep the tables in docs/measured, with the machine in words")
    given.add_argument("--join", action="store_true", help="add to the record that is there, in place of a new one")
    return given.parse_args(arguments)


if __name__ == "__main__":
    main()
