"""Can stored vectors be turned back into faces: encoders × attacks × spaces, photographs and generated people.

    python -m studies.inversion run DATA --out OUT [--seconds 500] [--device cuda] [--done ROWS …]
    python -m studies.inversion fit EMBEDDINGS --out FOLDER

DATA holds celeba9k/<person>/<picture>.jpg, enc/<encoder>_celeba9k.parquet as ``unface encode`` writes them, and
projections/<encoder>_<space>.safetensors, which ``fit`` makes. People in order of the hash of their names: 4,000 train,
2,000 fit, 1,000 calibrate, the others test; of those the first are targets, one picture attacked each.

``run`` goes through cells (people, encoder, attack, space, a hundred targets) in the order of their worth, appends each
to OUT/rows.jsonl once it is done, skips what ROWS hold, and ends before ``--seconds`` are over. Rows hold counts alone;
studies.inversion_table makes docs/measured/inversion.json of them. Those behind that record are kept beside it, in
docs/measured/inversion.rows.jsonl.xz, so that ``--done`` can continue them. docs/measured/inversion_whole.json holds
an earlier run with the whole generator, at 256 px (``--prior mobilestylegan``).
"""

import argparse
import hashlib
import json
import lzma
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from unface import EmbeddingSet, read_embeddings
from unface.data import BadPicture, ImageSet, Space, decode, read_images
from unface.encode import Encoder, ahead, aligned, contents, framed, load_encoder, space_of
from unface.erase import Keeper, Projection, copy_covariance, fit_projection, make_eraser, usual_rank, usually_kept
from unface.errors import UnfaceError
from unface.faces import Detector, load_detector, main_face
from unface.invert import Threat, Train, load_attack
from unface.invert.alsuv import Alsuv
from unface.invert.measure import Judged, Juror, People, embed_faces
from unface.invert.run import Case, PoolFaces, run_cell, space_facts
from unface.judge import Recogniser, face_frames, load_recogniser
from unface.judge.template import unit_rows
from unface.result.inversion import InversionCell, TargetPeople
from unface.threads import available_cores, parallel_map

ROLES = {"train": 4000, "fit": 2000, "calibrate": 1000}
RECOGNISERS = ("sface", "edgeface-s", "arcface-mbf")
ENCODERS = ("arcface-mbf", "sscd-int8", "dinov2-s-focus", "mobilenet-v2")
ERASED = ("isp", "keeper", "pca", "random")
BLOCK, TARGETS, CONTROLS = 100, 200, 2000
FAR = 1e-3
GENERATED_SEED = 30
GENERATORS_FRAME = (13.8, 39.3, 149.9)  # left, top, side of a CelebA picture: its face window is the generator's
Roles = dict[str, list[str]]
Row = dict[str, Any]
"""A finished cell, as rows.jsonl holds it."""


def main() -> None:
    """Run or fit."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = given.add_subparsers(dest="verb", required=True)
    run = verbs.add_parser("run")
    run.add_argument("data", type=Path)
    run.add_argument("--out", type=Path, required=True)
    run.add_argument("--done", type=Path, nargs="*", default=[])
    run.add_argument("--seconds", type=float, default=1e9)
    run.add_argument("--device", default="cpu")
    run.add_argument("--targets", type=int, default=TARGETS)
    run.add_argument("--block", type=int, default=BLOCK)
    run.add_argument("--calibrate", type=int, default=ROLES["calibrate"])
    run.add_argument("--controls", type=int, default=CONTROLS)
    run.add_argument("--only", nargs="*", default=[], help="cells whose name has one of these in it")
    run.add_argument("--attack", default="alsuv", help="the first attack, with its preset")
    run.add_argument("--prior", default="mobilestylegan-128", help="the generator of alsuv and of generated people")
    run.add_argument("--compiled", action="store_true", help="compile the search: pays for thousands of targets")
    run.add_argument("--diffusion", type=Path, help="folder of a diffusion prior, for diffmi")
    run.add_argument("--templates", action="store_true", help="translate alone: no pictures, no generator, no GPU")
    run.add_argument("--list", action="store_true", help="name the cells and stop")
    fit = verbs.add_parser("fit")
    fit.add_argument("embeddings", type=Path)
    fit.add_argument("--out", type=Path, required=True)
    asked = given.parse_args()
    {"run": run_cells, "fit": fit_all}[asked.verb](asked)


def roles_of(names: Sequence[str]) -> Roles:
    """Everybody in one role, by the hash of the name."""
    order = sorted(names, key=lambda name: hashlib.sha256(name.encode()).hexdigest())
    roles, start = dict[str, list[str]](), 0
    for role, count in ROLES.items():
        roles[role] = order[start : start + count]
        start += count
    roles["test"] = order[start:]
    return roles


def of_people(embeddings: EmbeddingSet, names: Sequence[str]) -> EmbeddingSet:
    """The rows of some people, in the order of these names and of their pictures."""
    wanted = {name: place for place, name in enumerate(names)}
    place = np.array([wanted.get(name, -1) for name in embeddings.names])[embeddings.identities]
    rows = np.flatnonzero(place >= 0)
    order = sorted(rows.tolist(), key=lambda row: (place[row], str(embeddings.ids[row])))
    return embeddings.take(np.array(order, np.int64))


def owners(embeddings: EmbeddingSet, names: Sequence[str]) -> NDArray[np.int64]:
    """(n,) whose each row is, as places in ``names``."""
    place = {name: number for number, name in enumerate(names)}
    return np.array([place[embeddings.names[code]] for code in embeddings.identities], np.int64)


# ---- spaces


def fit_all(asked: argparse.Namespace) -> None:
    """Every eraser of every encoder that has vectors, on fit people; the keeper's copies are of train people."""
    asked.out.mkdir(parents=True, exist_ok=True)
    for encoder in ENCODERS:
        embeddings = read_embeddings(asked.embeddings / f"{encoder}_celeba9k.parquet").unit()
        copies = read_embeddings(asked.embeddings / f"{encoder}_copies.parquet", context="copy_of").unit()
        for space, projection in fitted(embeddings, copies).items():
            replace(projection, fitted_on=None).save(asked.out / f"{encoder}_{space}.safetensors")
            print(encoder, space, projection, flush=True)


def fitted(embeddings: EmbeddingSet, copies: EmbeddingSet | None) -> dict[str, Projection]:
    """ISP, label-free PCA and a random subspace of one rank; the keeper at its usual size."""
    roles = roles_of(embeddings.names)
    people = of_people(embeddings, roles["fit"])
    rank = usual_rank(embeddings.space.dim, len(roles["fit"]))
    made = {name: fit_projection(make_eraser(name, rank), people) for name in ("isp", "pca", "random")}
    if copies is not None:
        row = {str(name): number for number, name in enumerate(embeddings.ids)}
        allowed = set(roles["train"]) | set(roles["fit"])
        pairs = [
            (number, row[str(of)])
            for number, of in enumerate(copies.labels["copy_of"])
            if str(of) in row and str(of).partition("/")[0] in allowed
        ]
        first, second = np.array(pairs).T
        nuisance = copy_covariance(embeddings.vectors[second], copies.vectors[first])
        made["keeper"] = fit_projection(Keeper(usually_kept(embeddings.space.dim), nuisance=nuisance), people)
    return made


# ---- people


@dataclass(frozen=True, eq=False)
class Bench:
    """Everything that cells share, made when first needed."""

    data: Path
    out: Path
    device: str
    targets: int
    calibrate: int
    controls: int
    done: Sequence[Path] = ()
    diffusion: Path | None = None
    generator: str = "mobilestylegan-128"
    compiled: bool = False
    templates: bool = False
    """Nobody looks at pictures: the recogniser whose templates are found judges them in its own space."""
    kept: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def detector(self) -> Detector:
        """Finds faces on targets and reconstructions alike."""
        return load_detector(accept_licence=True)

    def recogniser(self, name: str) -> Recogniser:
        """A judge."""
        key = f"recogniser {name}"
        if key not in self.kept:
            self.kept[key] = load_recogniser(name, device=self.device, accept_licence=True)
        found: Recogniser = self.kept[key]
        return found

    def encoder(self, name: str) -> Encoder:
        """The attacked one."""
        key = f"encoder {name}"
        if key not in self.kept:
            self.kept[key] = load_encoder(name, accept_licence=True)
        found: Encoder = self.kept[key]
        return found

    @cached_property
    def images(self) -> ImageSet:
        """All photographs."""
        return read_images(self.data / "celeba9k")

    @cached_property
    def roles(self) -> Roles:
        """By name."""
        return roles_of(self.embeddings("arcface-mbf").names)

    def embeddings(self, encoder: str) -> EmbeddingSet:
        """Unit vectors of all photographs."""
        key = f"embeddings {encoder}"
        if key not in self.kept and encoder in RECOGNISERS and encoder != "arcface-mbf":
            ids, vectors = zip(*self.seen[encoder].items(), strict=True)  # a judge, attacked for once: no train people
            people, space = [one.partition("/")[0] for one in ids], space_of(self.encoder(encoder))
            self.kept[key] = EmbeddingSet.from_arrays(np.stack(vectors), people, ids=ids, space=space).unit()
        elif key not in self.kept:
            self.kept[key] = read_embeddings(self.data / "enc" / f"{encoder}_celeba9k.parquet").unit()
        found: EmbeddingSet = self.kept[key]
        return found

    @cached_property
    def pictures(self) -> list[str]:
        """Ids of the pictures of calibrate and target people."""
        arcface = self.embeddings("arcface-mbf")
        people = [*self.roles["calibrate"][: self.calibrate], *self.roles["test"][: self.targets + 50]]
        return [str(one) for one in of_people(arcface, people).ids]

    @cached_property
    def seen(self) -> dict[str, dict[str, NDArray[np.float32]]]:
        """By recogniser and picture: unit vectors; pictures without a face are not there."""
        names = [name for name in RECOGNISERS if name != "arcface-mbf"]
        for folder in (self.out, *self.done):
            file = (folder if folder.is_dir() else folder.parent) / "judges.npz"
            if file.exists():
                with np.load(file, allow_pickle=False) as kept:
                    if set(self.pictures) <= set(kept["ids"].tolist()) | set(kept["blank"].tolist()):
                        ids = kept["ids"].tolist()
                        return {
                            name: dict(zip(ids, unit_rows(kept[name]).astype(np.float32), strict=True))
                            for name in names
                        }
        began, wanted = time.monotonic(), set(self.pictures)
        rows = [row for row, image in enumerate(self.images) if image.id in wanted]
        images = self.images.take(rows)
        recognisers = {name: self.recogniser(name) for name in names}
        inputs = [one.wanted for one in recognisers.values()]

        def cut(content: bytes | BadPicture) -> tuple[NDArray[np.uint8], ...] | None:
            return None if isinstance(content, BadPicture) else face_frames(decode(content), self.detector, inputs)

        ids, frames = list[str](), list[tuple[NDArray[np.uint8], ...]]()
        with closing(ahead(cut, contents(images), available_cores(), 128)) as prepared:
            for image, frame in zip(images, prepared, strict=True):
                if frame is not None:
                    ids.append(image.id)
                    frames.append(frame)
        made = {}
        for number, (name, recogniser) in enumerate(recognisers.items()):
            parts = [
                recogniser.embed([frame[number] for frame in frames[at : at + 256]])
                for at in range(0, len(frames), 256)
            ]
            made[name] = np.concatenate(parts)
        arrays = {name: vectors.astype(np.float16) for name, vectors in made.items()}
        blank = np.array(sorted(wanted - set(ids)), dtype=str)
        np.savez(self.out / "judges.npz", ids=np.array(ids), blank=blank, **arrays)  # type: ignore[arg-type]
        print(f"judges saw {len(ids)} of {len(wanted)} pictures in {time.monotonic() - began:.0f} s", flush=True)
        return {name: dict(zip(ids, vectors, strict=True)) for name, vectors in made.items()}

    def judged(self, name: str, ids: Sequence[str]) -> NDArray[np.float32]:
        """(n, d) of a recogniser; zeros where it found no face."""
        if name == "arcface-mbf":
            arcface = self.embeddings(name)
            known = self.kept.setdefault("arcface rows", {str(one): row for row, one in enumerate(arcface.ids)})
            return np.stack(
                [
                    arcface.vectors[known[one]] if one in known else np.zeros(arcface.space.dim, np.float32)
                    for one in ids
                ]
            )
        dim = self.recogniser(name).space.dim
        found = self.seen[name]
        return np.stack([found.get(one, np.zeros(dim, np.float32)) for one in ids])

    def juror(self, name: str, *, independent: bool = True) -> Juror:
        """With thresholds of calibrate people."""
        key = f"juror {name} {independent}"
        if key not in self.kept:
            people = self.roles["calibrate"][: self.calibrate]
            rows = of_people(self.embeddings("arcface-mbf"), people)
            ids = [str(one) for one in rows.ids]
            self.kept[key] = Juror.calibrated(
                name, self.judged(name, ids), owners(rows, people), independent=independent
            )
        found: Juror = self.kept[key]
        return found

    def prior(self) -> Any:
        """The generator."""
        if "prior" not in self.kept:
            from unface.prior import load_prior

            self.kept["prior"] = load_prior(self.generator, device=self.device, accept_licence=True)
        return self.kept["prior"]

    def case(self, people: str, encoder: str) -> Case:
        """Photographs or generated people before one encoder."""
        key = f"case {people} {encoder}"
        if key not in self.kept:
            self.kept[key] = self._photographs(encoder) if people == "photographs" else self._generated(encoder)
        found: Case = self.kept[key]
        return found

    def _shell(self, encoder: str, people: People, jury: tuple[Juror, ...], facts: TargetPeople, space: Space) -> Case:
        from unface.invert.view import View

        second = "arcface-mbf" if encoder not in RECOGNISERS else None
        own = {} if second is None else {second: self.juror(second, independent=False)}
        learned = of_people(self.embeddings(encoder), self.roles["train"])
        ids = [str(name) for name in learned.ids]
        features = {} if second is None else {second: self.judged(second, ids)}
        taught = Train(
            learned.vectors,
            owners(learned, self.roles["train"]),
            features,
            lambda rows: self.framed([ids[row] for row in rows]),
        )
        if self.templates:
            return Case(encoder, space, False, people, jury, facts, train=taught, template_jury=own)
        one, prior = self.encoder(encoder), self.prior()
        try:
            view = View(one, device=self.device)
        except UnfaceError as error:
            print(error, flush=True)
            view = None
        judges = {juror.name: self.recogniser(juror.name) for juror in jury}
        return Case(
            encoder,
            space,
            one.card.input.alignment != "none",
            people,
            jury,
            facts,
            embed=lambda made: embed_faces(made, judges, self.detector),
            view=view,
            prior=prior,
            second=None if second is None else View(self.encoder(second), device=self.device),
            train=taught,
            template_jury=own,
        )

    def framed(self, ids: Sequence[str]) -> NDArray[np.uint8]:
        """(n, 128, 128, 3) of photographs, cut as the generator's pictures are."""
        left, top, side = GENERATORS_FRAME

        def cut(name: str) -> NDArray[np.uint8]:
            picture = Image.open(self.data / "celeba9k" / name).convert("RGB")
            return np.asarray(
                picture.resize((128, 128), Image.Resampling.BILINEAR, (left, top, left + side, top + side))
            )

        return np.stack(parallel_map(cut, ids))

    def before_diffusion(self, case: Case) -> Case:
        """The same people before an attacker with the diffusion prior, whose pictures are cut otherwise."""
        from unface.invert.view import View, window_of
        from unface.prior.diffusion import load_diffusion

        if self.diffusion is None:
            raise UnfaceError("a diffusion prior is needed; name its folder with --diffusion")
        if "diffusion" not in self.kept:
            self.kept["diffusion"] = load_diffusion(self.diffusion, self.device)
        key = f"diffusion view {case.encoder}"
        if key not in self.kept:
            self.kept[key] = View(self.encoder(case.encoder), face=window_of(self.diffusion), device=self.device)
        return replace(case, prior=self.kept["diffusion"], view=self.kept[key])

    def _judges(self, encoder: str) -> tuple[str, ...]:
        """Two recognisers that have no part in the attack."""
        if self.templates:
            return ("arcface-mbf",)
        return tuple(name for name in RECOGNISERS if name != encoder)[:2]

    def _photographs(self, encoder: str) -> Case:
        embeddings, judges = self.embeddings(encoder), self._judges(encoder)
        known = {str(one) for one in embeddings.ids}
        chosen, names = list[str](), list[str]()
        rows = list[int]()
        for name in self.roles["test"]:
            ids = [str(one) for one in of_people(self.embeddings("arcface-mbf"), [name]).ids]
            ids = [one for one in ids if one in known]
            shown = [one for one in ids if all(self.judged(judge, [one]).any() for judge in judges)]
            if len(names) == self.targets:
                break
            if len(shown) < 2:
                continue
            attacked = shown[0]
            rows.append(len(chosen) + ids.index(attacked))
            chosen += ids
            names.append(name)
        place = {str(one): row for row, one in enumerate(embeddings.ids)}
        vectors = embeddings.vectors[[place[one] for one in chosen]]
        count = np.array([one.partition("/")[0] for one in chosen])
        codes = np.array([names.index(one) for one in count], np.int64)
        seen = {name: self.judged(name, chosen) for name in {*judges, "arcface-mbf"}}
        people = People(codes, np.array(rows), vectors, seen)
        digest = hashlib.sha256("\n".join(chosen).encode()).hexdigest()
        facts = TargetPeople(
            source="CelebA photographs",
            generated=False,
            targets=len(names),
            pictures=len(chosen),
            train=ROLES["train"],
            calibrate=self.calibrate,
            sha256=digest,
        )
        return self._shell(encoder, people, tuple(self.juror(name) for name in judges), facts, embeddings.space)

    def _generated(self, encoder: str) -> Case:
        """Faces of the prior itself, whose latents are known: one picture each, through the encoder's own pipeline."""
        import torch

        from unface.invert.view import as_pictures, frame_size, in_parts

        prior, one, judges = self.prior(), self.encoder(encoder), self._judges(encoder)
        if "generated" not in self.kept:
            latents, size = prior.sample(self.targets + 50, GENERATED_SEED), frame_size(prior)
            with torch.inference_mode():
                made = as_pictures(in_parts(len(latents), lambda part: prior.decode(latents[part], size)))
            seen = embed_faces(made, {name: self.recogniser(name) for name in RECOGNISERS}, self.detector)
            shown = np.all([vectors.any(axis=1) for vectors in seen.values()], axis=0).nonzero()[0][: self.targets]
            self.kept["generated"] = made[shown], {name: vectors[shown] for name, vectors in seen.items()}
        pictures, seen = self.kept["generated"]
        wanted = one.card.input
        frames = [
            framed(aligned(picture, main_face(self.detector.detect(picture), picture.shape), wanted), wanted)
            for picture in pictures
        ]
        raw = np.concatenate([one.encode(frames[at : at + 32]) for at in range(0, len(frames), 32)])
        count = np.arange(len(pictures))
        people = People(count, count, unit_rows(raw).astype(np.float32), seen)
        facts = TargetPeople(
            source="generated",
            generated=True,
            targets=len(count),
            pictures=len(count),
            train=ROLES["train"],
            calibrate=self.calibrate,
            sha256=hashlib.sha256(pictures.tobytes()).hexdigest(),
        )
        space = replace(space_of(one), normalised=True)
        return self._shell(encoder, people, tuple(self.juror(name) for name in judges), facts, space)

    def projection(self, encoder: str, space: str) -> Projection | None:
        """Fitted before, or here."""
        if space == "raw":
            return None
        file = self.data / "projections" / f"{encoder}_{space}.safetensors"
        if file.exists():
            return Projection.load(file)
        key = f"fitted {encoder}"
        if key not in self.kept:
            self.kept[key] = fitted(self.embeddings(encoder), None)
        chosen: Projection = self.kept[key][space]
        return chosen


# ---- cells


@dataclass(frozen=True)
class Job:
    """One cell: some targets of one kind of people, before one attack on one space of one encoder."""

    people: str
    encoder: str
    attack: str
    space: str
    start: int
    stop: int

    @property
    def name(self) -> str:
        """Unique."""
        return f"{self.people} {self.encoder} {self.attack} {self.space} {self.start}-{self.stop}"

    @property
    def kind(self) -> tuple[str, str]:
        """Cells of one kind take about as long."""
        return self.encoder, self.attack


def jobs(targets: int, block: int, attack: str, *, diffusion: bool) -> Iterator[Job]:
    """In the order of their worth."""
    spaces = ("raw", "isp", "keeper", "pca")
    main = ("arcface-mbf", "sscd-int8", "dinov2-s-focus")
    blocks = [(start, min(start + block, targets)) for start in range(0, targets, block)]
    listed: list[tuple[str, str, str, str, int, int]] = []
    listed += [
        ("photographs", encoder, "translate", space, *ends)
        for encoder in (*main[1:], "mobilenet-v2")
        for space in ("raw", *ERASED)
        for ends in blocks
    ]
    for ends in blocks:
        listed += [("photographs", encoder, attack, space, *ends) for encoder in main for space in spaces]
    # Attackers who learned from other people; a decoder is trained once, whatever the number of targets.
    for some in (("raw",), ("isp", "pca"), ("keeper", "random")):
        listed += [
            ("photographs", encoder, "translate:decode", space, *blocks[0])
            for encoder in (*main[1:], "mobilenet-v2")
            for space in some
        ]
        listed += [("photographs", encoder, "decoder", space, 0, targets) for encoder in main for space in some]
    if diffusion:
        listed += [("photographs", encoder, "diffmi", space, *blocks[0]) for encoder in main for space in spaces]
    listed += [("generated", encoder, attack, space, *blocks[0]) for encoder in main for space in ("raw", "isp")]
    listed += [("photographs", encoder, attack, "random", *blocks[0]) for encoder in main]
    listed += [("photographs", "edgeface-s", attack, "raw", *blocks[0])]
    listed += [("photographs", "mobilenet-v2", attack, space, *blocks[0]) for space in ("raw", *ERASED)]
    listed += [
        ("photographs", encoder, "alsuv:paper", space, *blocks[0]) for encoder in main for space in ("raw", "isp")
    ]
    listed += [("photographs", encoder, "bob", "raw", *blocks[0]) for encoder in main]
    listed += [
        (
            "photographs",
            encoder,
            f"alsuv:steps={steps},drop_at={steps // 2},averaged={-(-7 * steps // 10)}",
            "raw",
            *blocks[0],
        )
        for encoder in main[:2]
        for steps in (10, 30, 300)
    ]
    listed += [
        ("generated", encoder, attack, space, *blocks[0]) for encoder in main for space in ("keeper", "pca", "random")
    ]
    seen = set()
    for one in listed:
        if one not in seen:
            seen.add(one)
            yield Job(*one)


def run_cells(asked: argparse.Namespace) -> None:
    """As many as fit into the time."""
    began = time.monotonic()
    asked.out.mkdir(parents=True, exist_ok=True)
    if asked.device != "cpu":
        import torch

        torch.backends.cudnn.allow_tf32 = False  # judges and reached cosines are those of float32
    bench = Bench(
        asked.data,
        asked.out,
        asked.device,
        asked.targets,
        asked.calibrate,
        asked.controls,
        asked.done,
        asked.diffusion,
        asked.prior,
        asked.compiled,
        asked.templates,
    )
    file = asked.out / "rows.jsonl"
    done = {row["job"] for path in (file, *asked.done) for row in read_rows(path)}
    wanted = [
        job
        for job in jobs(asked.targets, asked.block, asked.attack, diffusion=asked.diffusion is not None)
        if job.name not in done and (not asked.only or any(word in job.name for word in asked.only))
    ]
    if asked.list:
        print("\n".join(job.name for job in wanted))
        return
    took: dict[tuple[str, str], float] = {}
    threats: dict[str, tuple[Threat, PoolFaces]] = {}
    for job in wanted:
        left = asked.seconds - (time.monotonic() - began)
        if left < 1.1 * took.get(job.kind, 0.0):
            print(f"left out for want of time: {job.name}", flush=True)
            continue
        start = time.monotonic()
        try:
            row = run_job(job, bench, threats)
        except Exception as error:  # one cell that breaks must not cost the others
            print(f"cannot be done: {job.name}: {type(error).__name__}: {error}", flush=True)
            if not isinstance(error, UnfaceError):
                traceback.print_exc()
            continue
        took[job.kind] = time.monotonic() - start
        with file.open("a", encoding="utf-8") as rows:
            rows.write(json.dumps(row) + "\n")
        print(f"{time.monotonic() - began:6.0f} s  {summary(row)}", flush=True)


def run_job(job: Job, bench: Bench, threats: "dict[str, tuple[Threat, PoolFaces]]") -> Row:
    """One cell as a row: the cell of the result file, and counts for each target so that cells can be joined."""
    whole = bench.case(job.people, job.encoder)
    if job.attack.startswith("diffmi"):
        whole = bench.before_diffusion(whole)
    if job.start >= len(whole.people.rows):
        raise UnfaceError(f"there are {len(whole.people.rows)} targets")
    case = replace(whole, people=whole.people.between(job.start, min(job.stop, len(whole.people.rows))))
    projection = bench.projection(job.encoder, job.space)
    if projection is not None:
        projection = replace(projection, space=case.space)
    attack = load_attack(job.attack)
    if isinstance(attack, Alsuv):
        attack.compiled = bench.compiled
    began = time.monotonic()
    templates = job.attack == "translate"
    if templates:
        threat, controls = case.threat(job.space, projection, None, 0), None
    else:
        assert whole.prior is not None, "translate alone does without"
        kind = f"{job.encoder} {whole.prior.name}"
        key = f"{kind} {job.people} {job.start}-{job.stop}"
        if key not in threats:
            shared = next((threat for name, (threat, _) in threats.items() if name.startswith(f"{kind} ")), None)
            first = case.threat("raw", None, shared, 0)
            threats[key] = first, PoolFaces(first, case, bench.controls)
        first, pool = threats[key]
        threat = case.threat(job.space, projection, first, 0)
        controls = pool.controls(threat, projection)
    made = run_cell(attack, threat, case, projection, None, controls=controls)
    return {
        "job": job.name,
        "people": job.people,
        "encoder": job.encoder,
        "prior": None if templates or case.prior is None else case.prior.name,
        "start": job.start,
        "seconds": round(time.monotonic() - began, 2),
        "cell": json.loads(made.cell.model_dump_json()),
        "space": json.loads(space_facts(job.space, projection, case).model_dump_json()),
        "judges": [json.loads(one.facts().model_dump_json()) for one in case.jury],
        "ceiling": tallies(ceiling_of(case, templates=templates)),
        "tally": tallies(made.judged),
    }


def ceiling_of(case: Case, *, templates: bool) -> Judged:
    """Other real pictures against the attacked one, to those who judge pictures or to those who judge templates."""
    jury = tuple(case.template_jury.values()) if templates else case.jury
    itself = {juror.name: case.people.seen[juror.name][case.people.rows] for juror in jury}
    return Judged.of(itself, case.people, jury)


def tallies(judged: Judged) -> Row:
    """Counts for each target, for any joining later."""
    by = {}
    for name, found in judged.by.items():
        counts = {}
        for kind in ("same", "other"):
            mated = getattr(found, kind)
            counts[kind] = [mated.accepts(one.cosine).tolist() for one in found.thresholds]
            counts[f"{kind}_of"] = np.bincount(mated.people, minlength=mated.count).tolist()
        strangers = {"stranger": found.stranger.tolist(), "stranger_of": found.stranger_of.tolist()}
        by[name] = {**counts, **strangers}
    return {"fars": list(judged.fars), "by": by}


def summary(row: Row) -> str:
    """A line for the log."""
    cell = InversionCell.model_validate(row["cell"])
    point = cell.point(FAR) or cell.at[0]
    other = "-" if point.other is None else f"{100 * point.other.value:.1f}"
    reached = "-" if cell.reached is None else f"{cell.reached.value:.3f}"
    pool = next(
        (
            one
            for control in cell.controls
            if control.name == "best of pool"
            for one in control.at
            if one.far == point.far
        ),
        None,
    )
    best = "-" if pool is None else f"{100 * pool.same.value:.1f}"
    return (
        f"{row['job']}: same {100 * point.same.value:.1f} other {other} chance {100 * point.derangement.value:.2f} "
        f"pool {best} cosine {reached}; {cell.each.seconds:.2f} s a target, {row['seconds']} s in all"
    )


def read_rows(path: Path) -> list[Row]:
    """Finished cells of a file, or of the rows.jsonl in a folder; a last line that was cut off is left out."""
    file = path / "rows.jsonl" if path.is_dir() else path
    rows = []
    if file.exists():
        content = lzma.decompress(file.read_bytes()) if file.suffix == ".xz" else file.read_bytes()
        for line in content.decode("utf-8").splitlines():
            try:
                rows.append(json.loads(line))
            except ValueError:
                continue
    return rows


if __name__ == "__main__":
    main()
