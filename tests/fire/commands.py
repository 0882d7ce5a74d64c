"""Kill commands that write files, give the same command again, and compare what is there with an undisturbed run."""

import hashlib
import json
import os
import re
import shutil
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np

from tests.fire.held_run import Announce, HeldRun
from tests.kit.processes import preload
from tests.progress_line import ProgressLine

OUT = "OUT"
"""Stands for the output in a command's arguments."""
_FINISHED = re.compile(r"exists already|is not empty|finished already")
_TIMES = ("run", "seconds", "started")


_IMPORTED = (
    *("tests.fire.commands", "tests.protect.test_facemae_train", "torch", "onnxruntime", "vl_convert", "altair"),
    *("PIL.Image", "unface.encode", "unface.report.inversion", "unface.report.release", "unface.report.validation"),
    *("unface.invert.run", "unface.release.run", "unface.validate.run"),
)
"""By one command or another, when it runs."""


@dataclass(frozen=True)
class Command:
    """How its inputs are made, and its arguments."""

    prepare: Callable[[Path], list[str]]
    growing: tuple[str, ...] = ()
    """Files that may be there unfinished after a kill: they are what the same command continues from."""
    asks: bool = False
    """It sends questions, each of which may only be sent once."""


@dataclass
class Tally:
    kills: int = 0
    finished: int = 0
    """Kills after which the output was complete."""
    at: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)


def fire_at(name: str, kills: int, seed: int, folder: Path, say: Callable[[str], None] = lambda line: None) -> Tally:
    """So many kills, each in an output of its own."""
    preload(*_IMPORTED)
    command = COMMANDS[name]
    given = folder / "given"
    given.mkdir(parents=True)
    arguments = command.prepare(given)
    steps = _steps(arguments, given, folder)
    reference = _found(folder / "whole")
    tally, line = Tally(), ProgressLine(f"kills of {name}", kills)
    rng = np.random.default_rng([seed, *name.encode()])
    for number in range(kills):
        line.tell(number, len(tally.violations))
        place = folder / f"killed-{number}"
        aimed = int(rng.integers(1, len(steps)))
        pause = float(rng.uniform(0, steps[aimed][1])) if rng.random() < 0.6 else 0.0
        faults = _killed(command, arguments, given, place, aimed, pause, reference, tally)
        tally.at[steps[aimed][0]] += 1
        for fault in faults:
            tally.violations.append(f"kill {number} at step {aimed} ({steps[aimed][0]}, {pause:.3f} s): {fault}")
            say(f"  {name}: {tally.violations[-1]}")
        if not faults:
            shutil.rmtree(place, ignore_errors=True)
    return tally


def _steps(arguments: list[str], given: Path, folder: Path) -> list[tuple[str, float]]:
    """Of an undisturbed run, with how long each took."""
    steps: list[tuple[str, float]] = []
    run = _run(arguments, given, folder / "whole")
    for step in run:
        if steps:
            steps[-1] = (steps[-1][0], time.monotonic() - steps[-1][1])
        steps.append((step.name, time.monotonic()))
    steps[-1] = (steps[-1][0], 0.01)
    ended = run.ended()
    assert ended.code == 0, ended
    return steps


def _killed(
    command: Command,
    arguments: list[str],
    given: Path,
    place: Path,
    aimed: int,
    pause: float,
    reference: dict[str, object],
    tally: Tally,
) -> list[str]:
    run = _run(arguments, given, place)
    for number, _ in enumerate(run):
        if number == aimed:
            if pause:
                run.go()
                run.is_held_or_over(pause)
            run.kill()
            tally.kills += 1
            break
    ended = run.ended()
    faults = [fault for fault in [ended.fault()] if fault]
    there = _found(place)
    faults += [
        f"{name} is there, and is not whole"
        for name, content in there.items()
        if name in reference and content != reference[name] and not _is_of(name, command.growing) and not command.asks
    ]
    again = _run(arguments, given, place).ended()
    faults += [fault for fault in [again.fault()] if fault]
    if again.code and not _FINISHED.search(again.errors):
        faults.append(f"the same command does not finish: {again.errors.strip()[-300:]}")
    tally.finished += bool(again.code)
    found = _found(place)
    if command.asks:
        return faults + _asked_faults(place, reference.keys() - found.keys(), found.keys() - reference.keys())
    missing, more = reference.keys() - found.keys(), found.keys() - reference.keys()
    faults += [f"missing: {', '.join(sorted(missing))}"] * bool(missing)
    faults += [f"left over: {', '.join(sorted(more)[:5])}"] * bool(more)
    faults += [f"{name} differs" for name in reference.keys() & found.keys() if found[name] != reference[name]]
    return faults


def _asked_faults(place: Path, missing: set[str], more: set[str]) -> list[str]:
    """The server's own account against the ledger: nothing sent twice, nothing sent that was not counted."""
    from unface.result.validation import ValidationResult

    faults = [f"missing: {', '.join(sorted(missing))}"] * bool(missing)
    faults += [f"left over: {', '.join(sorted(more))}"] * bool(more)
    sent = _log(place).read_text(encoding="ascii").splitlines()
    faults += [f"{len(sent) - len(set(sent))} questions were sent twice"] * (len(sent) != len(set(sent)))
    asked = ValidationResult.load(place / "out" / "validation.json").asked
    if not len(sent) <= asked.counted or asked.answered > len(sent):
        faults.append(f"{len(sent)} questions arrived, {asked.counted} are counted, {asked.answered} answered")
    if asked.lost > 64:
        faults.append(f"{asked.lost} questions are lost; a kill can cost one batch")
    return faults


def _is_of(name: str, growing: tuple[str, ...]) -> bool:
    return any(name == each or name.startswith(f"{each}/") for each in growing)


def _run(arguments: list[str], given: Path, place: Path) -> HeldRun:
    place.mkdir(exist_ok=True)
    words = [str(place / "out") + word.removeprefix(OUT) if word.startswith(OUT) else word for word in arguments]
    return HeldRun([*words, "--quiet"], partial(_wrap, given, _log(place)), place.parent)


def _log(place: Path) -> Path:
    return place.with_name(f"{place.name}.asked")


def _wrap(given: Path, log: Path, announce: Announce) -> None:
    """In the process that will run: every change on disk is a step, and models are small enough to train at once."""
    os.environ["UNFACE_FIRE_LOG"] = str(log)
    if (given / "cache").is_dir():
        os.environ["UNFACE_CACHE"] = str(given / "cache")
    if (given / "train").is_dir():
        from tests.protect.test_facemae_train import TOY
        from unface.protect import facemae, facemae_deploy, facemae_train

        facemae.PRESETS["tiny"] = TOY
        facemae_train._SAVED_S = 0.002
        facemae_deploy._CHUNK = 3
    from unface.output.place import Sink

    for name in ("fsync", "replace", "rename", "link", "unlink", "mkdir", "rmdir", "ftruncate"):
        announce.around(os, name)
    announce.around(Sink, "write")


def _found(place: Path) -> dict[str, object]:
    """Every file by its name, without the times in it."""
    return {
        path.relative_to(place).as_posix(): _content(path)
        for path in sorted(place.rglob("*"))
        if path.is_file() and not path.name.endswith(".lock")
    }


def _content(path: Path) -> object:
    data = path.read_bytes()
    if path.suffix == ".html":
        return data.rstrip().endswith(b"</html>")
    if path.suffix == ".json":
        try:
            return _timeless(json.loads(data))
        except ValueError:
            return "damaged"
    if path.suffix == ".safetensors":
        size = 8 + int.from_bytes(data[:8], "little")
        header = json.loads(data[8:size])
        said = {key: _timeless(json.loads(text)) for key, text in header.pop("__metadata__", {}).items()}
        return [said, header, hashlib.sha256(data[size:]).hexdigest()]
    return hashlib.sha256(data).hexdigest()


def _timeless(content: Any) -> Any:
    if isinstance(content, dict):
        return {key: _timeless(value) for key, value in content.items() if key not in _TIMES}
    return [_timeless(one) for one in content] if isinstance(content, list) else content


def compare(person: str, pictures: list[bytes]) -> list[float]:
    """The target of ``validate``: a face system that keeps its own account of the questions that arrived."""
    scores = []
    for picture in pictures:
        digest = hashlib.sha256(person.encode() + picture).digest()
        with Path(os.environ["UNFACE_FIRE_LOG"]).open("a", encoding="ascii") as log:
            log.write(digest.hex() + "\n")
        scores.append(int.from_bytes(digest[:4]) / 2**32)
    return scores


def _tiny_encoder(given: Path) -> None:
    from tests.encode.tiny import write_onnx
    from tests.kit.command import unface

    os.environ["UNFACE_CACHE"], before = str(given / "cache"), os.environ.get("UNFACE_CACHE")
    added = unface("models", "add", write_onnx(given / "t.onnx"), "--name", "tiny", "--mean", 127.5, "--std", 128)
    assert added.code == 0, added
    os.environ.pop("UNFACE_CACHE") if before is None else os.environ.update(UNFACE_CACHE=before)


def _encode(given: Path) -> list[str]:
    from tests.data.pictures import people, write_zip

    _tiny_encoder(given)
    pictures = write_zip(given / "faces.zip", {**people(12, 5), "ann0/empty.jpg": b""})
    return ["encode", str(pictures), "--encoder", "tiny", "--detector", "none", "--batch", "8", "--out", "OUT.parquet"]


def _fit(given: Path) -> list[str]:
    from unface.data import make_identities, write_embeddings

    write_embeddings(make_identities(60, 6, 16, seed=3), given / "people.parquet")
    return ["fit", str(given / "people.parquet"), "--out", "OUT.safetensors", "--onnx", "OUT.onnx", "--rank", "4"]


def _release(given: Path) -> list[str]:
    from tests.release.made import sets
    from unface.data import write_embeddings

    made = sets(10, people=40, holdout=80)
    for name in ("synthetic", "training", "holdout"):
        write_embeddings(getattr(made, name), given / f"{name}.parquet")
    sides = ["--training", str(given / "training.parquet"), "--holdout", str(given / "holdout.parquet")]
    return ["release", str(given / "synthetic.parquet"), *sides, "--far", "1e-2", "--k", "1", "--out", OUT]


def _pictures(given: Path, kinds: dict[str, tuple[int, int]]) -> None:
    """People who do not exist: by name of the folder how many, and pictures of each."""
    with ZipFile(Path(__file__).parents[1] / "pictures" / "nobody.zip") as pack:
        names = sorted(name for name in pack.namelist() if name.endswith(".jpg"))
        people = iter(sorted({name.split("/")[-2] for name in names}))
        for kind, (count, most) in kinds.items():
            for person in [next(people) for _ in range(count)]:
                (given / kind / person).mkdir(parents=True)
                for name in [name for name in names if name.split("/")[-2] == person][:most]:
                    (given / kind / person / name.split("/")[-1]).write_bytes(pack.read(name))


def _validate(given: Path) -> list[str]:
    _pictures(given, {"enrol": (3, 2), "ask": (21, 4)})
    target = ["--target", "tests.fire.commands:compare", "--enrol", str(given / "enrol"), "--continue"]
    return ["validate", *target, "--queries", str(given / "ask"), "--budget", "20", "--threads", "1", "--out", OUT]


def _invert(given: Path) -> list[str]:
    """With a small random generator, whose pictures nobody recognises: files and steps are the same."""
    from safetensors.torch import save_file

    from tests.prior.tiny import stylegan2_state

    _pictures(given, {"people": (24, 3)})
    save_file(stylegan2_state(256, 2), given / "prior.safetensors")
    attack = "alsuv:pool=2,starts=1,steps=1,averaged=1,drop_at=1"
    how = ["--attack", attack, "--prior", str(given / "prior.safetensors"), "--targets", "2", "--threads", "1"]
    who = ["--encoder", "arcface-mbf", "--judge", "sface", "--accept-licence"]
    return ["invert", str(given / "people"), *who, *how, "--show-faces", "--out", OUT]


def _invert_vectors(given: Path) -> list[str]:
    from tests.cli.test_invert import vectors

    stored, recogniser = vectors(given)
    who = ["--encoder", "encoder-0", "--translate", str(recogniser), "--threads", "1"]
    return ["invert", str(stored), *who, "--out", OUT]


def _facemae(given: Path) -> None:
    from PIL import Image

    from unface.seeds import stream

    random = stream(0, "pictures")
    for name in ("train", "publish"):
        for number in range(16):
            path = given / name / f"{name}-{number // 2}" / f"{number % 2}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(random.integers(0, 256, (16, 16, 3), dtype=np.uint8)).save(path)


def _train(given: Path) -> list[str]:
    _facemae(given)
    how = ["--preset", "tiny", "--loss", "mse", "--mask-ratio", "0.5", "--epochs", "2", "--detector", "none"]
    return ["protect", "facemae", "train", str(given / "train"), *how, "--threads", "1", "--out", OUT]


def _deploy(given: Path) -> list[str]:
    train = _train(given)
    assert _run(train, given, given / "model").ended().code == 0
    (given / "seed").write_text("ab" * 32 + "\n", encoding="ascii")
    how = ["--model", str(given / "model" / "out"), "--mask-seed", str(given / "seed"), "--licence", "CC0"]
    return ["protect", "facemae", "deploy", str(given / "publish"), *how, "--detector", "none", "--out", OUT]


COMMANDS = {
    "encode": Command(_encode),
    "fit": Command(_fit),
    "release": Command(_release),
    "validate": Command(_validate, asks=True),
    "invert": Command(_invert),
    "invert vectors": Command(_invert_vectors),
    "train": Command(_train, ("out/model.safetensors", "out/state.safetensors", "out/training.json")),
    "deploy": Command(_deploy),
}
