"""FaceMAE against its own recogniser: utility and risk of a protected face set, row by row, as far as the time goes.

    python -m studies.facemae PICTURES KEEP --pairs LFW,pairs.txt [--device cuda] [--seconds 570] [--record WHERE]

PICTURES holds CelebA's aligned pictures as <person>/<picture>. People are taken in the order of sha256(name): the first
train autoencoders, the next are released, the next are the attacker's own. KEEP holds faces, models, recognisers and
one file for each finished row: the same call goes on with the next one. Rows come in this order: FaceMAE, plain MAE,
masks and originals at 75 %, one recogniser each; two more seeds; attackers; mask ratios 50 and 90 %; other baselines;
ablations; other recognisers. At the end KEEP/protection.json and its page have what was reached, and name what was not.
A seed decides a recogniser and the masks it learns from; an autoencoder is trained once.
"""

import argparse
import hashlib
import json
import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from studies.measured import Cell, Table, markdown, write_findings
from unface.data import read_images
from unface.encode import load_encoder
from unface.errors import UnfaceError
from unface.faces import ARCFACE_112, Face
from unface.output.write import write_file
from unface.protect.attackers import Deployed, FineTuning
from unface.protect.baselines import MaskedFaces, contents_of
from unface.protect.facemae import Features, Hidden, Loss, Masking, preset_of
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
    ReadRelease,
    accuracy,
    assembled,
    attacked,
    second_release,
    unchanged,
)
from unface.protect.facemae_frames import Faces, read_faces
from unface.protect.facemae_train import Recipe, Trained, Training, load_facemae, train
from unface.protect.pair_sets import PairSet, read_pair_set
from unface.protect.recogniser import RECOGNISERS, TrainedRecogniser, load_trained, train_recogniser
from unface.report.protection import write_protection
from unface.result.file import Clock
from unface.result.protection import (
    PAPER_K,
    PROTECTION_PAGE,
    AttackerResult,
    MethodResult,
    PairsResult,
    ProtectionResult,
    SecondRelease,
)

# ArcFace's window of a CelebA picture of 178 × 218 (docs/results.md): 117.1 px at (30.2, 57.5), scale only.
_WINDOW, _CORNER = 117.1 / 112, (30.2, 57.5)
ENCODERS = ("arcface-mbf", "sface", "edgeface-s")
RATIO, SEEDS = 0.75, (1, 2, 3)
_RESERVE = 8.0  # seconds for the last files
_GUESS = {"utility": 45.0, "attack": 60.0, "second": 20.0}
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

    @property
    def model(self) -> str | None:
        """The folder of its autoencoder."""
        if self.loss is None or self.ratio is None:
            return None
        parts = [self.loss, f"{self.ratio:g}", *([f"beta{self.beta:g}"] if self.beta != 1 else [])]
        return "-".join([*parts, *([self.hidden] if self.hidden != "none" else [])])

    @property
    def key(self) -> str:
        """In the names of files."""
        words = [self.name.lower().replace(",", "").replace(" ", "-")]
        words += [] if self.ratio is None else [f"{self.ratio:g}"]
        return "-".join([*words, *([self.model] if self.model else [])])


ORIGINAL = Method(ORIGINALS, None)
FIRST = (Method(FACEMAE, loss="irm"), Method(PLAIN, loss="mse"), Method(MASKS), ORIGINAL)
CURVE = (Method(FACEMAE, 0.5, "irm"), Method(FACEMAE, 0.9, "irm"))
OTHERS = (Method(MEAN_COLOUR), Method(LOW_PASS), Method(NOBODY, None))
ABLATIONS = (
    Method("instance matching alone", loss="im"),
    Method("relation matching alone", loss="rm"),
    Method("FaceMAE, β = 0.1", loss="irm", beta=0.1),
    Method("FaceMAE, β = 10", loss="irm", beta=10.0),
    Method("FaceMAE, eyes hidden", loss="irm", hidden="eyes"),
    Method("FaceMAE, mouth hidden", loss="irm", hidden="mouth"),
    Method(FACEMAE, 0.3, "irm"),
)
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
        return f"{self.kind}-{self.method.key}" + (f"-{self.seed}" if self.kind == "utility" else "")


def ladder() -> list[Row]:
    """All rows, the most important first."""
    rows = [Row("utility", method, 1) for method in FIRST]
    rows += [Row("utility", method, seed) for seed in SEEDS[1:] for method in FIRST]
    rows += [Row("attack", method) for method in FIRST] + [Row("second", FIRST[0])]
    rows += [Row(kind, method) for method in (*CURVE, *OTHERS) for kind in ("utility", "attack")]
    rows += [Row(kind, method) for method in ABLATIONS for kind in ("utility", "attack")]
    rows += [Row("utility", method) for method in BACKBONES]
    return [row for row in rows if (row.kind, row.method.name) != ("attack", NOBODY)]


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
    spent: dict[str, list[float]] = field(default_factory=dict)
    _made: dict[tuple[str, int], Frames] = field(default_factory=dict)
    _loaded: dict[str, Trained] = field(default_factory=dict)

    @property
    def left(self) -> float:
        """Seconds until the last files have to be written."""
        return self.ends - time.monotonic()

    @cached_property
    def plan(self) -> Plan:
        """Recognisers of the preset's size; fewer passes where asked for."""
        recipe = RECOGNISERS[self.asked.preset]
        if self.asked.recogniser_epochs is not None:
            recipe = replace(recipe, epochs=self.asked.recogniser_epochs)
        tuning = FineTuning(steps=self.asked.tuning_steps, people=min(96, self.asked.own))
        return Plan(recipe, SEEDS, tuning, seed=0, device=self.asked.device)

    @cached_property
    def faces(self) -> dict[str, tuple[Frames, NDArray[np.int64], tuple[str, ...]]]:
        """Of the people who train, are released, and are the attacker's own: faces, codes, names."""
        asked, size = self.asked, preset_of(self.asked.preset).size
        counts = {"train": asked.train, "release": asked.release, "own": asked.own}
        file = self.keep / f"faces-{size}-{'-'.join(map(str, counts.values()))}.npz"
        if not file.exists():
            images = read_images(asked.pictures)
            people = sorted(images.identities, key=lambda name: hashlib.sha256(name.encode()).hexdigest())
            if len(people) < sum(counts.values()):
                raise UnfaceError(f"{asked.pictures}: has {len(people):,} people; {sum(counts.values()):,} are needed")
            place = {name: at for at, name in enumerate(people[: sum(counts.values())])}
            chosen = [row for row, image in enumerate(images) if image.identity in place]
            found = read_faces(images.take(chosen), size, CelebaFace())
            codes = np.array([place[name] for name in found.identities])
            order = np.argsort(codes, kind="stable")
            with file.with_suffix(".part").open("wb") as out:
                np.savez(out, frames=found.frames[order], codes=codes[order], names=np.array(people)[codes[order]])
            file.with_suffix(".part").replace(file)
        with np.load(file) as held:
            frames, codes, names = held["frames"], held["codes"], held["names"]
        sides, start = {}, 0
        for side, number in counts.items():
            rows = (codes >= start) & (codes < start + number)
            sides[side] = (frames[rows], codes[rows].astype(np.int64), tuple(names[rows].tolist()))
            start += number
        return sides

    @cached_property
    def contents(self) -> list[bytes]:
        """Hashes of the released faces, which decide their masks."""
        return contents_of(self.faces["release"][0])

    @cached_property
    def nobody(self) -> tuple[Frames, NDArray[np.int64]]:
        """People who do not exist, as a training set."""
        if self.asked.nobody is None:
            raise UnfaceError("no folder of people who do not exist; give --nobody")
        images = read_images(str(self.asked.nobody))
        found = read_faces(images, preset_of(self.asked.preset).size, None)
        return found.frames, np.unique(found.identities, return_inverse=True)[1].astype(np.int64)

    @cached_property
    def pairs(self) -> list[PairSet]:
        """Of other people than all of these."""
        return [read_pair_set(text, self.plan.recogniser.size) for text in self.asked.pairs]

    @cached_property
    def crowd(self) -> Crowd:
        """Attackers."""
        return Crowd([load_encoder(name, accept_licence=True) for name in ENCODERS], self.plan)

    def trained(self, method: Method) -> Trained:
        """Its autoencoder; trained on, or gone on with, where it is not finished."""
        assert method.model is not None
        assert method.loss is not None
        assert method.ratio is not None
        if method.model not in self._loaded:
            folder = self.keep / "models" / method.model
            frames, _, names = self.faces["train"]
            recipe = Recipe(
                self.asked.preset, method.loss, method.beta, Masking(method.ratio, method.hidden), self.asked.epochs
            )
            features = None
            if method.loss != "mse":
                features = Features(load_encoder("sface", accept_licence=True), self.asked.device)
            training = Training(recipe, Faces(frames, names, Counter()), features, self.asked.device)
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
        return lambda frames, contents: make(MaskedFaces.of(frames, contents, masking, preset, key))

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
            made = train_recogniser(frames, people, recipe, self.asked.device)
            file.parent.mkdir(parents=True, exist_ok=True)
            made.save(file)
            speed = recipe.epochs * len(frames) / max(made.seconds, 1e-9)
            say(f"  recogniser: loss {made.loss:.3f}, {speed:,.0f} pictures/s")
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
        if row.kind == "utility":
            recogniser = self.recogniser(method, row.seed)
            return {"pairs": [accuracy(one, {row.seed: recogniser}).model_dump() for one in self.pairs]}
        protect = self.protect(method, key_of(-1))
        attackers = list(self.crowd.against(protect, self.own, {1: self.recogniser(method, 1)}))
        deployed = self.deployed(method)
        if row.kind == "attack":
            return {"attackers": [one.model_dump() for one in attacked(deployed, attackers, self.plan.seed)]}
        done = read_row(self.keep, Row("attack", method))
        found = [AttackerResult.model_validate(one) for one in (done or self.run(Row("attack", method)))["attackers"]]
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


class OutOfTime(Exception):
    """The time is up; what is done is kept."""


def key_of(seed: int) -> bytes:
    """Mask seeds of a study are no secret."""
    return hashlib.sha256(f"study mask seed {seed}".encode()).digest()


def read_row(keep: Path, row: Row) -> dict[str, Any] | None:
    """What a finished row found."""
    try:
        return dict(json.loads((keep / "rows" / f"{row.name}.json").read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return None


def result_of(bench: Bench, clock: Clock) -> ProtectionResult:
    """All finished rows as one file."""
    rows = {row: found for row in ladder() if (found := read_row(bench.keep, row)) is not None}
    methods = []
    for method in dict.fromkeys(row.method for row in rows):
        learned = [row for row in rows if (row.kind, row.method) == ("utility", method)]
        attack = rows.get(Row("attack", method), {"attackers": []})
        frames = bench.nobody[0] if method.name == NOBODY else bench.faces["release"][0]
        people = bench.nobody[1] if method.name == NOBODY else bench.faces["release"][1]
        methods.append(
            MethodResult(
                name=method.name,
                ratio=method.ratio,
                audited=method == FIRST[0],
                pictures=len(frames),
                people=len(np.unique(people)),
                utility=merged({row.seed: pairs_of(rows[row]) for row in learned}),
                attackers=[AttackerResult.model_validate(one) for one in attack["attackers"]],
            )
        )
    second = rows.get(Row("second", FIRST[0]))
    trained, place = bench.trained(FIRST[0]), bench.attack_rows()
    given = ReadRelease(
        name="the CelebA release of the study",
        manifest={
            "files_sha256": hashlib.sha256(b"".join(bench.contents)).hexdigest(),
            "model": {"preset": bench.asked.preset, "loss": "irm", "recogniser": "sface", "sha256": trained.sha256},
        },
        real=bench.faces["release"][0][place],
        released=bench.faces["release"][0][place],
        contents=[],
        people=bench.faces["release"][1][place],
        left_out={},
    )
    missing = [_words(row) for row in ladder() if row not in rows]
    plan = replace(bench.plan, seeds=tuple(seed for seed in SEEDS if Row("utility", FIRST[0], seed) in rows))
    held = None if second is None else SecondRelease.model_validate(second["second"])
    return assembled(given, methods, held, missing, plan, clock)


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


def _words(row: Row) -> str:
    at = "" if row.method.ratio is None else f" at {row.method.ratio:.0%}"
    what = {"utility": f"recogniser {row.seed} of", "attack": "attackers of", "second": "two releases of"}[row.kind]
    return f"{what} {row.method.name}{at}"


def tables(result: ProtectionResult) -> dict[str, Table]:
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
                None if method.ratio is None else method.ratio,
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
            attackers.append([*cells, one.achieved_far])
    columns = {
        "method": "", "hidden": ".0%", "seeds": "", "accuracy": ".1%", "worst attacker": "",
        "TAR, another picture": ".1%", f"R(K = {PAPER_K})": ".1%", "chance": ".2%",
    }  # fmt: skip
    each = {
        "method": "", "hidden": ".0%", "attacker": "", "TAR, same picture": ".1%", "TAR, another picture": ".1%",
        "chance": ".2%",
    }  # fmt: skip
    return {"methods": Table(columns=columns, rows=main), "attackers": Table(columns=each, rows=attackers)}


def say(*words: object) -> None:
    """With the time."""
    print(f"[{time.monotonic() - _BEGAN:6.1f}]", *words, flush=True)


_BEGAN = time.monotonic()


def main() -> None:
    """Rows until the time is up, then the file and its page."""
    asked = _options()
    asked.keep.mkdir(parents=True, exist_ok=True)
    (asked.keep / "rows").mkdir(exist_ok=True)
    bench, clock = Bench(asked, asked.keep, _BEGAN + asked.seconds), Clock()
    bench.faces  # noqa: B018 read before anything is timed
    say("faces", {side: len(found[0]) for side, found in bench.faces.items()}, "on", asked.device)
    for row in ladder():
        if read_row(asked.keep, row) is not None:
            continue
        if row.method.name == NOBODY and asked.nobody is None:
            continue
        guess = max(bench.spent.get(row.kind, [_GUESS[row.kind] if asked.device != "cpu" else 0.0]))
        if bench.left < guess + _RESERVE:
            say(f"stopping before {row.name}: {bench.left:.0f} s left, {guess:.0f} needed")
            break
        began = time.monotonic()
        try:
            say(row.name)
            found = bench.run(row)
        except OutOfTime:
            break
        write_file(asked.keep / "rows" / f"{row.name}.json", (json.dumps(found) + "\n").encode())
        bench.spent.setdefault(row.kind, []).append(time.monotonic() - began)
        say(f"  {row.name}: {time.monotonic() - began:.1f} s {_short(found)}")
    if read_row(asked.keep, Row("utility", FIRST[0])) is None:
        say("not one row is done; give the same command again")
        return
    bench.ends = math.inf
    result = result_of(bench, clock)
    path = result.save(asked.keep)
    write_protection(result, asked.keep / PROTECTION_PAGE)
    for name, table in tables(result).items():
        print(f"\n{name}", *markdown(table), sep="\n")
    say(result.verdict)
    say(f"{path}: {len(result.not_measured)} rows were not reached")
    if asked.record:
        write_findings("facemae", command="python -m studies.facemae PICTURES KEEP --pairs LFW,pairs.txt",
                       where=asked.record, tables=tables(result))  # fmt: skip


def _short(found: dict[str, Any]) -> str:
    if "pairs" in found:
        return ", ".join(f"{one.name} {one.accuracy.value:.2%}" for one in pairs_of(found))
    if "attackers" in found:
        shown = [AttackerResult.model_validate(one) for one in found["attackers"]]
        return ", ".join(f"{one.name} {one.other.value:.2%}" for one in shown if one.other is not None)
    second = SecondRelease.model_validate(found["second"])
    return f"{second.attacker}: one {second.one.value:.2%}, both {second.both.value:.2%}"


def _options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("pictures", help="CelebA's aligned pictures, by person")
    given.add_argument("keep", type=Path, help="folder for everything that is kept")
    given.add_argument("--pairs", action="append", default=[], help="PICTURES,PAIRS.TXT or PACK.bin; repeated")
    given.add_argument("--nobody", type=Path, help="folder that 'unface synth' made")
    given.add_argument("--preset", default="small")
    given.add_argument("--device", default="cpu")
    given.add_argument("--seconds", type=float, default=math.inf, help="of this call")
    given.add_argument("--train", type=int, default=4_000, help="people who train autoencoders")
    given.add_argument("--release", type=int, default=2_000, help="people who are released")
    given.add_argument("--own", type=int, default=1_000, help="people of the attacker")
    given.add_argument("--attacked", type=int, default=1_000, help="released people who are attacked")
    given.add_argument("--epochs", type=int, help="of autoencoders [default: the preset's]")
    given.add_argument("--recogniser-epochs", type=int, help="[default: the recipe's]")
    given.add_argument("--tuning-steps", type=int, default=400, help="of the attacker who fine-tunes")
    given.add_argument("--record", metavar="WHERE", help="keep the tables in docs/measured, with the machine in words")
    return given.parse_args(arguments)


if __name__ == "__main__":
    main()
