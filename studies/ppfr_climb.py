"""Map²V at full length on many people at once, on a GPU: the search of unface.validate.map2v in lockstep.

    python -m studies.ppfr_climb EMBEDDINGS PICTURES --out OUT --system SYSTEM [--system …] --lfw LFW PAIRS
                                 [--cell SYSTEM-NUMBER:SEARCH:FIRST …] [--targets 20] [--device cuda] [--seconds 300]

What differs from ``unface validate --attack map2v``: all people's questions are drawn and scored together, faces are
cut out by one fixed crop (generated faces are aligned; Map²V's code does the same), and the ledger OUT/questions.jsonl
has a line for each batch, written before it is asked. A system whose accuracy on LFW or whose vectors are not in OUT
yet is measured first, as studies.ppfr does. Each cell is a file OUT/climb/*.npz: the server's score, vectors of the
pictures after some numbers of questions by every recogniser, and the last pictures. They are biometric data.
``python -m studies.ppfr climbed`` judges them.
"""

import argparse
import io
import json
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TextIO, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from studies.ppfr import (
    BEST_GENERATED,
    SEARCHES,
    Cast,
    append,
    base_of,
    cast_of,
    chosen_rows,
    measured_accuracy,
    parts_of,
    require_accuracy,
    rows_of,
    server_file,
)
from studies.ppfr_distil import WEIGHTS, Channels, DistilledServer, Lfw, Teacher
from studies.validation import read_sets, rounded
from unface import EmbeddingSet
from unface.data import decode, read_images, write_embeddings
from unface.errors import UnfaceError
from unface.faces import ARCFACE_112, Detector, load_detector, main_face
from unface.faces.face import similarity
from unface.judge import face_frames, load_recogniser
from unface.models import Input
from unface.output.write import write_file
from unface.prior import Prior, load_prior
from unface.prior.style import StylePrior
from unface.protect.certificate import SchemeFrontEnd
from unface.protect.frequency import BLOCK, YCBCR, Scheme, scheme
from unface.protect.server import FACE_COLOUR
from unface.seeds import stream
from unface.threads import available_cores
from unface.validate.map2v import Pool, Search, unit_directions
from unface.validate.ports import Knowledge
from unface.validate.scores import Regressions

SIZE, DRAWN = 112, 128
TRUNCATION = 0.8
JUDGES = ("sface", "arcface-mbf", "edgeface-s")
STAGES = (200, 500, 900, 1900, 3600, 5000, 7300)
ATTACKER = "sface"
_TRIED = 1000
"""Generated faces that the crop is measured on, and that the improved search starts among."""
T = TypeVar("T")
R = TypeVar("R")
Frames = NDArray[np.uint8]
Score = Callable[[Tensor], Tensor]
"""(people, n, slots, dim) latents to (people, n) scores."""


# ---- the search


@dataclass(frozen=True, eq=False)
class Climb:
    """Of ``people`` at once, each from its own start (people, slots, dim)."""

    search: Search
    start: Tensor
    axes: Tensor | None = None
    """(d, dim) principal directions, for ``space = "principal"``."""
    seed: int = 0
    white_box: bool = False
    """Follow the gradient itself; a step then counts as one question."""

    def run(self, score: Score, count: int, budget: int, reached: Callable[[int, Tensor], bool]) -> tuple[int, Tensor]:
        """Ask until the budget is spent or ``reached`` (questions, latents) says stop; what was asked and found."""
        search, people = self.search, len(self.start)
        here = self._origin()
        mean, square = torch.zeros_like(here), torch.zeros_like(here)
        random = stream(self.seed, "map2v", "directions")
        found = self.latents(here[:, None])[:, 0]
        pairs = search.directions // 2 if search.antithetic else search.directions
        for step in range(search.steps):
            cost = 1 if self.white_box else search.per_step
            if count + cost > budget:
                break
            if self.white_box:
                point = here.detach().requires_grad_()
                loss = -score(self.latents(point[:, None])).sum()
                (slope,) = torch.autograd.grad(loss, point)
            else:
                drawn = unit_directions(random, pairs, here.shape[1])
                units = torch.from_numpy(drawn).to(here).expand(people, -1, -1)
                probes = [here[:, None] + search.radius * units]
                probes = (
                    [*probes, here[:, None] - search.radius * units] if search.antithetic else [here[:, None], *probes]
                )
                losses = -score(self.latents(torch.cat(probes, dim=1))).to(here)
                changes = (
                    (losses[:, :pairs] - losses[:, pairs:]) / 2 if search.antithetic else losses[:, 1:] - losses[:, :1]
                )
                slope = (self._factor / search.radius) * torch.einsum("pm,pmd->pd", changes, units) / pairs
            count += cost
            # Adam as torch has it, with decay added to the gradient; see unface.validate.map2v.
            slope = slope + search.decay * here
            mean, square = 0.9 * mean + 0.1 * slope, 0.999 * square + 0.001 * slope**2
            rate = search.rate * (0.1 if search.slower_from is not None and step >= search.slower_from else 1.0)
            lengths = (square / (1 - 0.999 ** (step + 1))).sqrt() + 1e-8
            here = here - rate * (mean / (1 - 0.9 ** (step + 1))) / lengths
            found = self.latents(here[:, None])[:, 0]
            if reached(count, found):
                break
        return count, found

    def latents(self, points: Tensor) -> Tensor:
        """(people, n, slots, dim) as drawn, of (people, n, d)."""
        start = self.start[:, None]
        if self.axes is not None:
            made = start + (points @ self.axes)[:, :, None]
        elif self.search.space == "w":
            made = points[:, :, None].expand(-1, -1, self.start.shape[1], -1)
        else:
            made = points.view(*points.shape[:2], *self.start.shape[1:])
        return start + self.search.truncation * (made - start)

    def _origin(self) -> Tensor:
        if self.axes is not None:
            return self.start.new_zeros(len(self.start), len(self.axes))
        return self.start.mean(dim=1) if self.search.space == "w" else self.start.flatten(1)

    @property
    def _factor(self) -> int:
        return len(self.axes) if self.axes is not None else int(self.start.shape[2])


def best_mean(scores: NDArray[np.float64], latents: Tensor, ensemble: int) -> Tensor:
    """(people, slots, dim): the mean latent of the best of the pool, by scores (people, n)."""
    best = np.argsort(-scores, axis=1, kind="stable")[:, :ensemble]
    return latents[torch.from_numpy(best).to(latents.device)].mean(dim=1)


# ---- the systems, as torch functions of aligned faces (n, 3, 112, 112) from 0 to 255


class Reconstructing:
    """Least squares behind a front end with one map, then a recogniser; see unface.protect.server."""

    def __init__(self, chosen: Scheme, recogniser: nn.Module, device: str, size: int = SIZE) -> None:
        if len(chosen.subsets) > 1:
            raise UnfaceError(f"{chosen.name} {chosen.variant}: draws one of several maps; only one is solved for here")
        self.deterministic = chosen.laplace is None
        self._recogniser = recogniser.to(device).eval()
        self._front = SchemeFrontEnd(chosen, size)
        self._colours = torch.from_numpy(YCBCR).float().to(device)
        self._back = torch.from_numpy(np.linalg.inv(YCBCR)).float().to(device)
        guess = np.broadcast_to(np.array(FACE_COLOUR), (1, size, size, 3))
        self._guess = torch.from_numpy(self._front.front.planes(guess)).float().to(device)
        self._random = torch.Generator(device).manual_seed(0)
        self._channels = Channels(chosen, size).to(device)
        null = torch.from_numpy(self._front.null_space(0)).to(device)
        self._null, self._inverse = null.float(), None if self.deterministic else self._solved(null)

    def _solved(self, null: Tensor) -> Tensor:
        """(AᵀA + ridge)⁻¹ of one plane without its null space: dense, since a GPU has room for it."""
        gram = torch.from_numpy(self._front.gram(0).toarray()).to(null)
        gram.diagonal().add_(self._front.ridge)
        inverse = torch.cholesky_inverse(torch.linalg.cholesky(gram))
        # There it is one over the ridge, which turns float32's rounding into grey levels.
        return (inverse - (inverse @ null.T) @ null).float()

    def __call__(self, pictures: Tensor) -> Tensor:
        """(n, dim) unit vectors."""
        found: Tensor = self._recogniser(self.reconstructed(pictures))
        return found

    def reconstructed(self, pictures: Tensor) -> Tensor:
        """In whole grey levels, through which gradients pass."""
        planes = torch.einsum("cd,ndij->ncij", self._colours, pictures)
        planes = planes - torch.tensor([128.0, 0.0, 0.0], device=planes.device).view(1, 3, 1, 1)
        missing = (planes - self._guess).flatten(2)
        if self._inverse is None:
            solved = planes - ((missing @ self._null.T) @ self._null).view_as(planes)
        else:
            sent = self._channels(pictures, self._random).unflatten(1, (3, -1))
            back = self._adjoint(sent - self._channels.sent(self._guess))
            solved = self._guess + (back.flatten(2) @ self._inverse).view_as(planes)
        solved = solved + torch.tensor([128.0, 0.0, 0.0], device=planes.device).view(1, 3, 1, 1)
        return straight_round(torch.einsum("dc,ncij->ndij", self._back, solved).clamp(0, 255))

    def _adjoint(self, sent: Tensor) -> Tensor:
        """Aᵀ of (n, 3, channels, s, s): Σ B_uᵀ Y_uv B_v."""
        bases = self._channels.bases
        lines: dict[int, Tensor] = {}
        for place, channel in enumerate(self._channels.kept):
            down, across = divmod(channel, BLOCK)
            line = sent[:, :, place] @ bases[across]
            lines[down] = lines[down] + line if down in lines else line
        return torch.stack([bases[down].T @ line for down, line in lines.items()]).sum(dim=0)


System = Reconstructing | DistilledServer


def open_system(text: str, wanted: Input, device: str) -> System:
    """By SCHEME/VARIANT/RECOGNISER or SCHEME/VARIANT/FOLDER, as in studies.ppfr."""
    name, variant, last = parts_of(text)
    if Path(last).is_dir():
        return DistilledServer(Path(last), wanted, device)
    return Reconstructing(scheme(name, variant), Teacher(last), device)


def straight_round(values: Tensor) -> Tensor:
    """Whole numbers, with the gradient of the values themselves."""
    return values + (values.round() - values).detach()


def embedded(network: Callable[[Tensor], Tensor], frames: Frames, device: str, batch: int = 256) -> NDArray[np.float32]:
    """(n, dim) of aligned faces (n, 112, 112, 3)."""
    parts = []
    with torch.no_grad():
        for at in range(0, len(frames), batch):
            pixels = torch.from_numpy(frames[at : at + batch]).to(device).permute(0, 3, 1, 2).float()
            parts.append(network(pixels).float().cpu().numpy())
    return np.concatenate(parts)


# ---- drawn faces


class Drawn:
    """Latents to aligned faces: drawn at 128 pixels, in whole grey levels unless ``tensors``, cut out by one crop."""

    def __init__(self, prior: Prior, detector: Detector, batch: int, count: int, fast: Prior | None) -> None:
        self.prior, self.batch, self.device, self.fast = prior, batch, prior.device, fast
        self.pool = prior.sample(count, 0, TRUNCATION)[:, None].expand(-1, prior.slots, -1).contiguous()
        self.pictures = self.whole(self.pool)
        seen = [main_face(detector.detect(one), one.shape) for one in self.pictures[:60]]
        landmarks = np.median([one.landmarks for one in seen if one is not None], axis=0)
        back = similarity(ARCFACE_112, landmarks)  # from a pixel of the face to one of the picture
        centre = np.array([(SIZE - 1) / 2] * 2)
        shift = (back[:, :2] @ centre + back[:, 2] + 0.5) / (DRAWN / 2) - 1
        matrix = np.concatenate([back[:, :2] * (SIZE / DRAWN), shift[:, None]], axis=1)
        self._grid = functional.affine_grid(
            torch.from_numpy(matrix).float()[None], [1, 3, SIZE, SIZE], align_corners=False
        ).to(self.device)

    def decoded(self, latents: Tensor) -> Tensor:
        """(n, 3, 128, 128) from 0 to 255; a compiled network sees one size of batch alone, and no gradients."""
        if self.fast is None or torch.is_grad_enabled():
            return 255 * self.prior.decode(latents.float(), DRAWN)
        filled = latents.float().new_zeros(self.batch, *latents.shape[1:])
        filled[: len(latents)] = latents
        return 255 * self.fast.decode(filled, DRAWN)[: len(latents)].float()

    def faces(self, latents: Tensor, *, tensors: bool = False) -> Tensor:
        """(n, 3, 112, 112)."""
        pictures = self.decoded(latents)
        pictures = pictures if tensors else straight_round(pictures)
        grid = self._grid.expand(len(pictures), -1, -1, -1)
        cut = functional.grid_sample(pictures, grid, align_corners=False)
        return cut if tensors else straight_round(cut)

    def more(self, count: int) -> Tensor:
        """(count, slots, dim): the pool, longer."""
        drawn = self.prior.sample(count, 0, TRUNCATION)
        return drawn[:, None].expand(-1, self.prior.slots, -1)

    def whole(self, latents: Tensor) -> Frames:
        """(n, 128, 128, 3): what a user sends."""
        with torch.no_grad():
            parts = [self.decoded(some).round().byte() for some in torch.split(latents, self.batch)]
        pictures: Frames = torch.cat(parts).permute(0, 2, 3, 1).cpu().numpy()
        return pictures

    def scores(self, latents: Tensor, system: System, enrolled: Tensor, *, tensors: bool = False) -> Tensor:
        """(people, n) cosines of the server's vectors with those of the enrolled (people, dim)."""
        people, each = latents.shape[:2]
        flat = latents.flatten(0, 1)
        vectors = torch.cat([system(self.faces(some, tensors=tensors)) for some in torch.split(flat, self.batch)])
        found: Tensor = torch.einsum("pnd,pd->pn", vectors.view(people, each, -1), enrolled)
        return found


# ---- cells


@dataclass(frozen=True)
class Cell:
    """One search on some people of one system."""

    system: int
    search: str
    first: int

    @classmethod
    def of(cls, text: str) -> "Cell":
        """From SYSTEM-NUMBER:SEARCH:FIRST."""
        number, search, first = text.split(":")
        if search.removesuffix(", tensors") not in (*SEARCHES, "white-box"):
            raise UnfaceError(f"search {search!r} is not known; choose from {', '.join(SEARCHES)}, white-box")
        return cls(int(number), search, int(first))

    def file(self, text: str) -> str:
        """Under which it is kept."""
        return f"{text.replace('/', '_')}__{self.search}__{self.first}.npz".replace(" ", "-")


class Bench:
    """What all cells share."""

    def __init__(self, asked: argparse.Namespace) -> None:
        self.asked, self.device, self.out = asked, asked.device, asked.out
        self.detector = load_detector(accept_licence=True)
        self.recognisers = {name: load_recogniser(name, device=self.device, accept_licence=True) for name in JUDGES}
        prior = load_prior(device=self.device, accept_licence=True, head=True)
        assert isinstance(prior, StylePrior)
        fast = tuned(prior, asked.batch, compiled=asked.tuned == "compiled") if asked.tuned else None
        self.drawn = Drawn(prior, self.detector, asked.batch, min(_TRIED, asked.pool), fast)
        self.images = {image.id: image for image in read_images(asked.pictures)}
        self.systems: dict[str, System] = {}
        self.casts: dict[str, Cast] = {}
        self._lfw: Lfw | None = None
        self._frames: dict[str, Frames] = {}

    def system(self, text: str) -> System:
        """With its accuracy and its vectors of all pictures in OUT."""
        if text not in self.systems:
            made = open_system(text, self.recognisers["arcface-mbf"].wanted, self.device)
            if not any(row["verb"] == "accuracy" and row["system"] == text for row in rows_of(self.out)):
                self._measure(text, made)
            require_accuracy(self.out, text)
            if not server_file(self.out, text).exists():
                self._encode(text, made)
            self.systems[text] = made
            self.casts[text] = cast_of(
                argparse.Namespace(
                    embeddings=self.asked.embeddings, targets=self.asked.all_targets, out=self.out, system=text
                ),
                base_of(text),
            )
        return self.systems[text]

    def _measure(self, text: str, made: System) -> None:
        if self._lfw is None:
            self._lfw = Lfw(*self.asked.lfw)
        append(self.out, measured_accuracy(text, self._lfw.folds(made, self.device)))

    def _encode(self, text: str, made: System) -> None:
        sets = chosen_rows(read_sets(self.asked.embeddings, "celeba20"), self.asked.all_targets)
        ids = [str(one) for one in sets["arcface-mbf"].ids]
        wanted = self.recognisers["arcface-mbf"].wanted

        def frame(name: str) -> Frames | None:
            frames = face_frames(decode(self.images[name].read()), self.detector, [wanted])
            return None if frames is None else frames[0]

        if "celeba20" not in self._frames:
            found = threaded(frame, ids)
            self.kept = [name for name, one in zip(ids, found, strict=True) if one is not None]
            self._frames["celeba20"] = np.stack([one for one in found if one is not None])
        vectors = embedded(made, self._frames["celeba20"], self.device)
        owners = [self.images[name].identity for name in self.kept]
        write_embeddings(
            EmbeddingSet.from_arrays(vectors, owners, ids=self.kept, source="server"), server_file(self.out, text)
        )


def tuned(prior: StylePrior, batch: int, *, compiled: bool) -> StylePrior:
    """For many passes: compiled, or the faster of the two ways to lay out its numbers."""
    fast = prior.tuned(torch.float32, compiled=compiled)
    latents = torch.zeros(batch, prior.slots, prior.latent_dim, device=prior.device)
    took = {}
    with torch.no_grad():
        for one in (prior, fast):
            one.decode(latents, DRAWN)
            began = time.monotonic()
            took[one] = float(sum(one.decode(latents, DRAWN).mean() for _ in range(3))), time.monotonic() - began
    print(f"a batch of {batch}: {took[prior][1] / 3:.3f} s, tuned {took[fast][1] / 3:.3f} s", flush=True)
    return fast if took[fast][1] < took[prior][1] else prior


def threaded(work: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """In order, on all cores."""
    with ThreadPoolExecutor(available_cores()) as pool:
        return list(pool.map(work, items))


def run_cell(bench: Bench, text: str, cell: Cell, deadline: float) -> None:
    """Climb, and keep what was reached when time is up."""
    system, cast, drawn = bench.system(text), bench.casts[text], bench.drawn
    began, name = time.monotonic(), cell.search.removesuffix(", tensors")
    white_box = name == "white-box"
    tensors = white_box or cell.search.endswith(", tensors")
    search = SEARCHES["published" if white_box else name]
    search = replace(search, pool=min(search.pool, bench.asked.pool), steps=min(search.steps, bench.asked.steps))
    each = bench.asked.all_targets if name == BEST_GENERATED else bench.asked.targets
    people = range(cell.first, min(cell.first + each, len(cast.enrolled.names)))
    firsts = [cast.enrolled.rows(person)[0] for person in people]
    enrolled = torch.from_numpy(cast.enrolled.vectors[base_of(text)][firsts]).to(bench.device)
    torch.backends.cudnn.allow_tf32 = not tensors  # products of matrices stay exact: styles and least squares
    key = {"system": text, "search": cell.search, "first": cell.first, "people": len(people)}
    with (bench.out / "questions.jsonl").open("a", encoding="utf-8") as file:
        ledger = Ledger(file, key)
        first = search.from_scores or search.pool
        ledger.count(first)
        pool, own = drawn.pool[: search.pool], list[NDArray[np.float16]]()
        if search.from_scores:
            ranks, axes = from_scores(bench, text, search, firsts)
        else:  # everybody's pool is the same: drawn once, and asked about each person
            pool = drawn.more(search.pool) if search.pool > len(drawn.pool) else pool
            parts = list[Tensor]()
            with torch.no_grad():
                for some in torch.split(pool, drawn.batch):
                    faces = drawn.faces(some, tensors=tensors)
                    parts.append(enrolled @ system(faces).T)
                    if name == BEST_GENERATED:
                        own.append(own_vectors(bench, faces))
            ranks, axes = torch.cat(parts, dim=1).double().cpu().numpy(), None
        stages = {
            n: best_mean(ranks[:, :n], pool, search.ensemble)
            for n in (*(n for n in STAGES if n < first and not search.from_scores), first)
        }
        every = 1 if white_box else search.per_step
        budget = first + search.steps * every

        def score(latents: Tensor) -> Tensor:
            ledger.count(latents.shape[1])
            with torch.set_grad_enabled(white_box):
                return drawn.scores(latents, system, enrolled, tensors=tensors)

        def reached(n: int, latents: Tensor) -> bool:
            stages.update({mark: latents for mark in STAGES if n <= mark < n + every})
            return time.monotonic() > deadline

        climb = Climb(search, stages[first], axes, white_box=white_box)
        total, stages[total] = climb.run(score, first, budget, reached)
    assert total == ledger.asked, f"the ledger counts {ledger.asked}, the search {total}"
    # What `scores` needs to be fitted to the same answers later.
    more = {"own": np.concatenate(own), "answers": np.rint(ranks * 32767).astype(np.int16)} if own else {}
    keep(bench, text, cell, list(people), dict(sorted(stages.items())), system, enrolled, total == budget, more)
    took = time.monotonic() - began
    speed = len(people) * total / took
    append(bench.out, {"verb": "climb", **key, "asked": total, "seconds": rounded(took), "a second": rounded(speed)})
    print(key, total, f"{took:.1f} s, {speed:.0f} questions a second", flush=True)


def own_vectors(bench: Bench, faces: Tensor) -> NDArray[np.float16]:
    """(n, dim) of faces as cut out, by the attacker's encoder."""
    frames = faces.round().clamp(0, 255).byte().permute(0, 2, 3, 1).cpu().numpy()
    return bench.recognisers[ATTACKER].embed(list(frames)).astype(np.float16)


class Ledger:
    """A line for each batch, on disk before it is asked: how many questions about each person so far."""

    def __init__(self, file: TextIO, key: Mapping[str, object]) -> None:
        self.asked, self._file, self._key = 0, file, key

    def count(self, each: int) -> None:
        """So many more."""
        self.asked += each
        self._file.write(json.dumps({**self._key, "asked": self.asked}) + "\n")
        self._file.flush()


def from_scores(bench: Bench, text: str, search: Search, firsts: Sequence[int]) -> tuple[NDArray[np.float64], Tensor]:
    """(people, pool) nearness to the templates that photographs find, and the pool's principal directions."""
    cast, base, drawn = bench.casts[text], base_of(text), bench.drawn
    photographs = slice(0, search.from_scores)
    answers = cast.enrolled.vectors[base][firsts] @ cast.asked.vectors[base][photographs].T
    knowledge = Knowledge(cast.asked.pictures[photographs], cast.asked.vectors[ATTACKER][photographs], ATTACKER)
    latents = drawn.pool[: search.pool].double().cpu().numpy()
    vectors = vectors_of(bench, [ATTACKER], drawn.pictures[: search.pool])[ATTACKER]
    pool = Pool(knowledge, search, None, latents, (), vectors, Regressions(knowledge))
    axes = pool.chart(pool.mean).axes
    assert axes is not None, "a search from scores moves along principal directions"
    return np.stack([pool.nearness(row.astype(np.float64)) for row in answers]), torch.from_numpy(axes).to(drawn.pool)


def keep(
    bench: Bench,
    text: str,
    cell: Cell,
    people: list[int],
    stages: dict[int, Tensor],
    system: System,
    enrolled: Tensor,
    whole: bool,
    more: Mapping[str, NDArray[Any]],
) -> None:
    """Judges see what a user would send: whole pictures, in which the detector finds the face."""
    latents = torch.stack(list(stages.values()), dim=1)
    pictures = bench.drawn.whole(latents.flatten(0, 1))
    with torch.no_grad():
        own = bench.drawn.scores(latents, system, enrolled).cpu().numpy()
        crops = [system(bench.drawn.faces(some)) for some in torch.split(latents.flatten(0, 1), bench.drawn.batch)]
    shape = (len(people), len(stages))
    kept = {name: one.reshape(*shape, -1) for name, one in vectors_of(bench, JUDGES, pictures).items()}
    kept["server"] = torch.cat(crops).cpu().numpy().reshape(*shape, -1)
    meta = {"system": text, "search": cell.search, "people": people, "queries": list(stages), "whole": whole}
    last = pictures.reshape(*shape, *pictures.shape[1:])[:, -1]
    vectors = {name: one.astype(np.float16) for name, one in kept.items()}
    save_arrays(bench.out / "climb" / cell.file(text), meta, {"score": own, "last": last, **vectors, **more})


def save_arrays(path: Path, meta: Mapping[str, object], arrays: Mapping[str, NDArray[Any]]) -> None:
    """All or nothing, whenever the machine stops."""
    path.parent.mkdir(exist_ok=True)
    made = io.BytesIO()
    given: dict[str, Any] = {"meta": np.array(json.dumps(meta)), **arrays}
    np.savez_compressed(made, **given)
    write_file(path, made.getvalue())


def vectors_of(bench: Bench, names: Sequence[str], pictures: Frames) -> dict[str, NDArray[np.float32]]:
    """(n, dim) by each recogniser, zeros where the detector finds no face."""
    wanted = [bench.recognisers[name].wanted for name in names]
    frames = threaded(lambda picture: face_frames(picture, bench.detector, wanted), list(pictures))
    there = [frame is not None for frame in frames]
    found = {}
    for at, name in enumerate(names):
        one = bench.recognisers[name]
        found[name] = np.zeros((len(pictures), one.space.dim), np.float32)
        if any(there):
            found[name][there] = one.embed([frame[at] for frame in frames if frame is not None])
    return found


def noise(bench: Bench, text: str) -> None:
    """How far scores of neighbours lie apart, and how much of it is rounding, arithmetic or the scheme's noise."""
    system, cast = bench.system(text), bench.casts[text]
    enrolled = torch.from_numpy(cast.enrolled.vectors[base_of(text)][[cast.enrolled.rows(0)[0]]]).to(bench.device)
    start = bench.drawn.pool[:5].mean(dim=0, keepdim=True)
    units = torch.from_numpy(unit_directions(stream(1, "noise"), 3 * bench.asked.targets, start[0].numel())).to(start)
    points = start[:, None] + 0.8 * 0.1 * units.view(1, -1, *start.shape[1:])
    found = {}
    with torch.no_grad():
        for name, tf32, tensors in (
            ("exact", False, True),
            ("tf32", True, True),
            ("grey", True, False),
            ("again", True, False),
        ):
            torch.backends.cudnn.allow_tf32 = tf32
            found[name] = bench.drawn.scores(points, system, enrolled, tensors=tensors)[0].double().cpu().numpy()
    row = {"verb": "noise", "system": text, "neighbours": float(found["exact"].std())}
    row |= {
        name: float((found[first] - found[second]).std())
        for name, first, second in (
            ("tf32", "tf32", "exact"),
            ("grey levels", "grey", "tf32"),
            ("repeat", "again", "grey"),
        )
    }
    append(bench.out, row)
    print(row, flush=True)


def main() -> None:
    """All cells that time allows, in the order given; a finished one is not repeated."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("embeddings", type=Path)
    given.add_argument("pictures", type=Path)
    given.add_argument("--out", type=Path, required=True)
    given.add_argument("--system", action="append", required=True)
    given.add_argument("--lfw", type=Path, nargs=2, required=True)
    given.add_argument("--cell", action="append", required=True)
    given.add_argument("--targets", type=int, default=20, help="people climbed at once")
    given.add_argument("--all-targets", type=int, default=60)
    given.add_argument("--pool", type=int, default=10**9)
    given.add_argument("--steps", type=int, default=10**9)
    given.add_argument("--batch", type=int, default=340)
    given.add_argument("--tuned", choices=["plain", "compiled"])
    given.add_argument("--device", default="cpu")
    given.add_argument("--seconds", type=float, default=1e9)
    asked = given.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + asked.seconds
    bench = Bench(asked)
    print(f"ready, {deadline - time.monotonic():.0f} s left", flush=True)
    cells, said = list(map(Cell.of, asked.cell)), set[int]()
    while time.monotonic() < deadline:
        cell = next((one for one in cells if ready(asked, one) and claim(asked, one)), None)
        if cell is None and any(not there(asked, one) for one in cells):
            time.sleep(2)  # for a server that another process trains
            continue
        if cell is None:
            break
        cells.remove(cell)
        text = asked.system[cell.system]
        try:
            if cell.system not in said:
                said.add(cell.system)
                if not any(row["verb"] == "noise" and row["system"] == text for row in rows_of(asked.out)):
                    noise(bench, text)
            run_cell(bench, text, cell, deadline)
        except UnfaceError as error:
            cells = [one for one in cells if one.system != cell.system]
            print(f"left out: {error}", flush=True)


def there(asked: argparse.Namespace, cell: Cell) -> bool:
    """Whether the cell's server is there; one that is still trained is not."""
    last = parts_of(asked.system[cell.system])[2]
    return last in JUDGES or (Path(last) / WEIGHTS).exists()


def ready(asked: argparse.Namespace, cell: Cell) -> bool:
    """Whether there is a server, and nobody has finished the cell."""
    return there(asked, cell) and not (asked.out / "climb" / cell.file(asked.system[cell.system])).exists()


def claim(asked: argparse.Namespace, cell: Cell) -> bool:
    """Take a cell that no other process of this run has taken; a new run removes the folder of claims first."""
    folder = asked.out / "claims"
    folder.mkdir(exist_ok=True)
    try:
        (folder / cell.file(asked.system[cell.system])).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


if __name__ == "__main__":
    main()
