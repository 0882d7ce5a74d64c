"""The frontier of erasure: what attackers still link against what vectors are still good for, at several strengths.

    python -m studies.frontier EMBEDDINGS OUT [--encoder NAME …] [--sets celeba9k …] [--people 9153] [--processes 16]

EMBEDDINGS holds ``<encoder>_celeba9k.parquet`` (five pictures of each person) and ``<encoder>_copies.parquet`` (altered
copies of some of them, column ``copy_of``: three of each picture of people to fit on, one of each picture of others);
if there, ``<encoder>_tiny.parquet`` (pictures without faces, class as identity) for a face gate and for k-NN,
``<encoder>_hardcopies.parquet`` (harder copies of the same pictures), and ``<encoder>_celeba20.parquet`` and
``<encoder>_lfw.parquet``, other faces for the same erasers. Every space is a cell of its own, OUT/<encoder>_<set>/; a
finished one is not run again, and none is begun after ``--seconds``. ``python -m studies.frontier_record OUT`` keeps
what is there for the pages.
"""

import argparse
import hashlib
import json
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from studies.erasure import objects
from unface import EmbeddingSet, Projection, Protocol, UnfaceError, read_embeddings
from unface.auditing.attack import Attack
from unface.auditing.protocol import prepare
from unface.auditing.search.run import search_by
from unface.auditing.utility.run import UtilityTasks
from unface.data import Role
from unface.erase import Keeper, copy_covariance, fit_projection, make_eraser
from unface.erase.gate import Gate, fit_gate
from unface.moments import class_moments
from unface.probe import Measurement, draw_bootstrap, measure
from unface.probe.album_trial import run_albums
from unface.probe.albums import AlbumSize
from unface.probe.panel import draw_shots
from unface.progress import Silent
from unface.result.numbers import Estimate, Rate
from unface.utility import Outcome, Task, copy_task, labelled_task
from unface.utility.ranking import nearest
from unface.utility.tasks import CopyTask

# Of 512 dimensions; other encoders in proportion. First the strengths at which all are compared, then those between.
REMOVED, BETWEEN = (192, 320, 384), (64, 128, 256, 448)
METHODS = ("isp", "leace", "pca", "random")
KEPT, KEPT_BETWEEN = ((64, 0.1), (64, 0.3), (48, 1.0)), ((96, 0.1), (48, 0.3), (32, 1.0))
SHARES = {Role.FIT: 0.34, Role.TRAIN: 0.22, Role.CALIBRATE: 0.17}
ELSEWHERE = {Role.TRAIN: 0.3, Role.CALIBRATE: 0.3}
PAIRS, RAW, GATED = "1 against 1", "raw", ", gated"

Measured = dict[tuple[str, float], Measurement]  # by album size and rate


@dataclass(frozen=True)
class FaceSet:
    """How people of a set are compared."""

    images: int
    fars: tuple[float, ...]
    albums: tuple[AlbumSize, ...]


FITTED_ON = "celeba9k"
SETS = {
    FITTED_ON: FaceSet(5, (1e-3, 1e-4, 1e-5, 1e-6), (AlbumSize(2, 2), AlbumSize(2, 3))),
    "celeba20": FaceSet(20, (1e-2, 1e-3, 1e-4), tuple(AlbumSize(size, size) for size in (2, 5, 10))),
    "lfw": FaceSet(10, (1e-2, 1e-3, 1e-4), tuple(AlbumSize(size, size) for size in (2, 5))),
}


@dataclass(frozen=True)
class Cell:
    """One space of one encoder on one set of faces."""

    encoder: str
    faces: str
    space: str

    def path(self, out: Path) -> Path:
        """Of what was measured; the replicates, in the order of its rows, lie beside it."""
        name = self.space.replace("μ", "mu").replace(",", "").replace(" ", "-")
        return out / f"{self.encoder}_{self.faces}" / f"{name}.json"


@dataclass(frozen=True, eq=False)
class Setup:
    """One encoder's people in their roles, copies and things."""

    faces: EmbeddingSet
    copies: dict[str, EmbeddingSet]
    """By the name of their file; the first is what a keeper learns from."""
    things: EmbeddingSet | None
    fit: EmbeddingSet

    @cached_property
    def _row(self) -> dict[str, int]:
        return {str(name): row for row, name in enumerate(self.faces.ids)}

    def _copied(self, copies: EmbeddingSet, fitted: bool) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Rows of copies of pictures of people who were fitted on, or of others, and those of their originals."""
        known = set(self.fit.names)
        of = [self._row.get(str(name), -1) for name in copies.labels["copy_of"]]
        ours = [
            row
            for row, original in enumerate(of)
            if original >= 0 and (copies.names[copies.identities[row]] in known) is fitted
        ]
        return np.array(ours, np.int64), np.array([of[row] for row in ours], np.int64)

    @cached_property
    def nuisance(self) -> NDArray[np.float64]:
        """How copies of fit people's pictures differ from their originals."""
        copies = next(iter(self.copies.values()))
        ours, originals = self._copied(copies, fitted=True)
        return copy_covariance(self.faces.vectors[originals], copies.vectors[ours])

    def copies_to_find(self, name: str) -> EmbeddingSet:
        """Everybody's pictures, and one altered copy of each picture of people no eraser was fitted on."""
        copies = self.copies[name].take(self._copied(self.copies[name], fitted=False)[0])
        names = [*self.faces.names]
        return EmbeddingSet.from_arrays(
            np.concatenate([self.faces.vectors, copies.vectors]),
            [*(names[i] for i in self.faces.identities), *(copies.names[i] for i in copies.identities)],
            ids=[*map(str, self.faces.ids), *map(str, copies.ids)],
            labels={"copy_of": [*[""] * len(self.faces), *map(str, copies.labels["copy_of"])]},
            space=self.faces.space,
            source=name,
        )

    @cached_property
    def gate(self) -> Gate:
        """Faces of four fifths of the fit people against things; the others and their copies set the threshold."""
        assert self.things is not None
        held = self.fit.identities % 5 == 0
        place = {str(name): row for row, name in enumerate(self.fit.ids[held])}
        copies = next(iter(self.copies.values()))
        ours = [row for row, of in enumerate(copies.labels["copy_of"]) if str(of) in place]
        of = np.array([place[str(copies.labels["copy_of"][row])] for row in ours], np.int64)
        return fit_gate(
            class_moments(self.fit.vectors[~held], self.fit.identities[~held]),
            self.things.vectors[self.things.identities % 2 == 0],
            self.fit.vectors[held],
            self.fit.identities[held],
            copies=(copies.vectors[ours], of),
        )

    def things_to_tell(self) -> EmbeddingSet | None:
        """The classes that the gate did not see."""
        return None if self.things is None else self.things.take(np.flatnonzero(self.things.identities % 2 == 1))


def setup(folder: Path, encoder: str, people: int, copies: Sequence[str]) -> Setup:
    """People in the order of a hash of their names; those with three copies of a picture are there to fit on."""
    faces = read_embeddings(folder / f"{encoder}_{FITTED_ON}.parquet").unit()
    there = [name for name in copies if (folder / f"{encoder}_{name}.parquet").exists()]
    given = {name: read_embeddings(folder / f"{encoder}_{name}.parquet").unit() for name in there}
    of, counts = np.unique([str(one) for one in given[there[0]].labels["copy_of"]], return_counts=True)
    to_fit = {one.split("/")[0] for one, count in zip(of, counts, strict=True) if count > 1}
    to_find = {one.split("/")[0] for one in of} - to_fit
    order = _by_hash(faces.names)
    wanted = {role: round(share * min(people, len(order))) for role, share in SHARES.items()}
    to_test = [name for name in order if name in to_find][: min(people, len(order)) - sum(wanted.values())]
    others = [name for name in order if name not in to_fit and name not in to_find][: people - len(to_test)]
    fit = [*(name for name in order if name in to_fit), *others][: wanted[Role.FIT]]
    left = [name for name in others if name not in set(fit)][: people - len(to_test) - len(fit)]
    roles = dict.fromkeys(fit, Role.FIT) | dict.fromkeys(to_test, Role.TEST)
    faces = _in_roles(faces, roles | _dealt(left, wanted))
    tiny = folder / f"{encoder}_tiny.parquet"
    things = objects(tiny).unit() if tiny.exists() else None
    return Setup(faces, given, things, faces.take(np.flatnonzero(faces.labels["role"] == str(Role.FIT))))


def _by_hash(names: Sequence[str]) -> list[str]:
    return sorted(names, key=lambda name: hashlib.sha256(name.encode()).hexdigest())


def _dealt(names: Sequence[str], wanted: dict[Role, int]) -> dict[str, Role]:
    """So many to train and to calibrate, the others to test."""
    train, calibrate = wanted[Role.TRAIN], wanted[Role.TRAIN] + wanted[Role.CALIBRATE]
    parts = {Role.TRAIN: names[:train], Role.CALIBRATE: names[train:calibrate], Role.TEST: names[calibrate:]}
    return {name: role for role, part in parts.items() for name in part}


def _in_roles(faces: EmbeddingSet, roles: dict[str, Role]) -> EmbeddingSet:
    faces = faces.take(np.array([row for row, i in enumerate(faces.identities) if faces.names[i] in roles]))
    return replace(faces, labels={"role": np.array([str(roles[faces.names[i]]) for i in faces.identities])})


def spaces(dim: int, gated: bool) -> list[str]:
    """Every eraser and control at the common strengths, those of other strengths, then what lies behind a face gate."""
    common = [_removed(method, rank, dim) for rank in REMOVED for method in METHODS]
    common += [_keeper(kept, mu, dim) for kept, mu in KEPT]
    between = [_keeper(kept, mu, dim) for kept, mu in KEPT_BETWEEN]
    between += [_removed(method, rank, dim) for rank in BETWEEN for method in METHODS]
    behind = [f"{name}{GATED}" for name in common] if gated else []
    return [RAW, *common, *behind, *between]


def _scaled(of_512: int, dim: int) -> int:
    return max(1, round(of_512 * dim / 512))


def _removed(method: str, rank: int, dim: int) -> str:
    return f"{method} {_scaled(rank, dim)}"


def _keeper(kept: int, mu: float, dim: int) -> str:
    return f"keeper {_scaled(kept, dim)}, μ {mu:g}"


def projection(given: Setup, space: str) -> Projection | None:
    """The eraser that a name stands for, fitted."""
    if space == RAW:
        return None
    name = space.removesuffix(GATED)
    method, strength, *mu = name.replace(",", "").split()
    if method == "keeper":
        made = fit_projection(Keeper(int(strength), mu=float(mu[1]), nuisance=given.nuisance), given.fit)
    else:
        made = fit_projection(make_eraser(method, int(strength)), given.fit)
    return replace(made, gate=given.gate) if space.endswith(GATED) else made


@dataclass(frozen=True, eq=False)
class Bench:
    """What all cells of one encoder and set share."""

    given: Setup
    people: dict[str, int]
    vectors: NDArray[np.float32]
    attack: Attack
    albums: tuple[AlbumSize, ...]
    utility: UtilityTasks | None

    def measured(self, space: str) -> tuple[dict[str, object], Measured]:
        """A space attacked by pairs, by albums and by search, and used."""
        made = projection(self.given, space)
        vectors = self.vectors if made is None else made.apply(self.vectors)
        numbers, found = attacked(vectors, self.attack, self.albums, space)
        rows = [_tar_row(size, far, one) for (size, far), one in numbers.items()]
        kept = [] if made is None or self.utility is None else self.utility.kept(made)
        uses = [
            {"measure": one.measure, "on": one.on, "raw": _ends(one.raw), "erased": _ends(one.erased)} for one in kept
        ]
        gate = None if made is None or made.gate is None else made.gate.certificate
        return {
            "people": self.people,
            "level": self.attack.bootstrap.level,
            "TAR": rows,
            "search": found,
            "uses": uses,
            "gate": gate and {"missed": _counted(gate.missed), "taken": _counted(gate.taken), "bound": gate.bound},
        }, numbers


def _counted(rate: Rate) -> list[int]:
    return [rate.numerator, rate.denominator]


@dataclass(frozen=True, eq=False)
class FirstHits:
    """Copies that find their original first; micro average precision, which ranks every pair, would cost ten times."""

    task: CopyTask

    @property
    def on(self) -> str:
        return self.task.on

    @property
    def notes(self) -> tuple[str, ...]:
        return self.task.notes

    @property
    def vectors(self) -> NDArray[np.float32]:
        return self.task.vectors

    def outcomes(self, vectors: NDArray[np.float32]) -> tuple[Outcome, ...]:
        """``copy recall@1`` of the task."""
        asked, named = vectors[self.task.queries], self.task.named
        first = nearest(asked, vectors[self.task.references], 1)[:, 0]
        found = (first == named)[named >= 0].astype(np.float64)
        return (Outcome("copy recall@1", self.on, found, self.task.groups[named >= 0]),)


@lru_cache(maxsize=1)
def bench(folder: Path, encoder: str, faces: str, asked: "Asked") -> Bench:
    """Made once in a process and kept while its cells follow each other."""
    given = _setup(folder, encoder, asked.people, asked.copies)
    compared, how = given.faces, SETS[faces]
    if faces != FITTED_ON:
        compared = read_embeddings(folder / f"{encoder}_{faces}.parquet").unit()
        order = _by_hash(compared.names)
        wanted = {role: round(share * len(order)) for role, share in ELSEWHERE.items()}
        compared = _in_roles(compared, _dealt(order, wanted))
    protocol = Protocol(far=how.fars, k="all", split="role", images=how.images, threads=1)
    prepared = prepare(compared, protocol)
    roles = prepared.roles
    bootstrap = draw_bootstrap(
        protocol.scheme(), roles.calibrate.count, roles.test.count, protocol.bootstraps, protocol.seed
    )
    plan = replace(protocol.plan(), ks=prepared.ks, everything=prepared.everything)
    utility = None
    if faces == FITTED_ON:
        tasks: list[Task] = [FirstHits(copy_task(given.copies_to_find(name))) for name in given.copies]
        things = given.things_to_tell()
        tasks += [] if things is None else [labelled_task(things, seed=0)]
        utility = UtilityTasks(tuple((task, task.outcomes(task.vectors)) for task in tasks), bootstrap.level)
    people = {"fit": len(given.fit.names), "train": roles.train.count}
    people |= {"calibrate": roles.calibrate.count, "test": roles.test.count}
    attack = Attack(roles, protocol.probes(), plan, bootstrap)
    return Bench(given, people, prepared.embeddings.vectors, attack, how.albums, utility)


_setup = lru_cache(maxsize=1)(setup)


def attacked(
    vectors: NDArray[np.float32], attack: Attack, albums: Sequence[AlbumSize], task: str
) -> tuple[Measured, dict[str, object]]:
    """The worst case of the panel for pairs and for each album, and that of pairs as a search."""
    pairs = attack.run(vectors, Silent(), task)
    (k,) = attack.plan.ks
    numbers: Measured = {}
    for far in attack.plan.fars:
        worst = pairs.worst(k, far)
        if worst is not None:
            numbers[PAIRS, far] = worst
    settings = {probe.name: pairs.panel.trials[probe.name, k].setting for probe in attack.probes}
    probes = [(probe, settings[probe.name]) for probe in attack.probes]
    trials = run_albums(vectors, attack.roles, probes, attack.plan, albums)
    for size in albums:
        for far in attack.plan.fars:
            able = [trial for (_, of), trial in trials.items() if of == size and far in trial.thresholds]
            if able:
                best = max(able, key=lambda trial: trial.calibrate_tar[far])
                numbers[f"{size.first} against {size.second}", far] = measure(best, far, attack.bootstrap, attack.plan)
    searching = numbers[PAIRS, min(far for size, far in numbers if size == PAIRS and far >= 1e-4)].probe
    probe = next(one for one in attack.probes if one.name == searching)
    shots, _ = draw_shots(vectors, attack.roles, attack.plan, k)
    rates, strangers = search_by(probe.fit(shots[0].support), settings[searching], vectors, attack)
    found: dict[str, object] = {"probe": searching, "rates": []}
    found["rates"] = [
        {
            "gallery": one.gallery,
            "first": [one.first.value, one.first.low, one.first.high],
            "first ten": [one.first_ten.value, one.first_ten.low, one.first_ten.high],
            "chance": one.chance_first,
        }
        for one in rates
    ]
    if strangers is not None:
        found["at FPIR 1e-2"] = [strangers.found.value, strangers.found.low, strangers.found.high]
        found["people"] = strangers.people
    return numbers, found


def _tar_row(size: str, far: float, one: Measurement) -> dict[str, object]:
    return {
        "size": size,
        "far": far,
        "probe": one.probe,
        "tar": [one.tar, one.interval.low, one.interval.high],
        "resolution": str(one.resolution),
        "accepted": one.accepted,
        "mated": one.mated,
        "false accepts": one.false_accepts,
        "impostors": one.impostors,
        "identities": one.identities,
    }


def _ends(estimate: Estimate) -> list[float]:
    return [estimate.value, estimate.low, estimate.high]


@dataclass(frozen=True)
class Asked:
    """Options that every cell needs."""

    people: int
    copies: tuple[str, ...]


def run(cell: Cell, folder: Path, out: Path, asked: Asked, until: float) -> str:
    """Measure a cell, unless time is up; the file of numbers comes last and marks it as finished."""
    path = cell.path(out)
    if time.time() > until:
        return f"{cell.encoder} {cell.faces} {cell.space}: no time left"
    began = time.process_time()
    try:
        result, numbers = bench(folder, cell.encoder, cell.faces, asked).measured(cell.space)
    except UnfaceError as error:
        return f"{cell.encoder} {cell.faces} {cell.space}: not run: {error}"
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path.with_suffix(".npy"), np.array([one.replicates.values for one in numbers.values()], np.float32))
    mirrored = next(iter(numbers.values())).replicates.mirrored
    named = {"encoder": cell.encoder, "faces": cell.faces, "space": cell.space, "mirrored": mirrored}
    text = json.dumps({**named, **result}, indent=1, ensure_ascii=False)
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(path)
    shown = ", ".join(f"{size} {far:g} {one.tar:.2%}" for (size, far), one in numbers.items())
    return f"{cell.encoder} {cell.faces} {cell.space} ({time.process_time() - began:.0f} s of CPU): {shown}"


def cells(folder: Path, encoders: Sequence[str], sets: Sequence[str]) -> Iterator[Cell]:
    """All that the files allow: sets after each other, in each the common strengths of all encoders first."""
    for faces in sets:
        listed = {}
        for encoder in encoders:
            if (folder / f"{encoder}_{faces}.parquet").exists():
                dim = _dimensions(folder / f"{encoder}_{FITTED_ON}.parquet")
                listed[encoder] = spaces(dim, (folder / f"{encoder}_tiny.parquet").exists())
        first = 1 + len(REMOVED) * len(METHODS) + len(KEPT)
        for part in (slice(0, first), slice(first, None)):
            yield from (Cell(encoder, faces, space) for encoder, names in listed.items() for space in names[part])


def _dimensions(path: Path) -> int:
    from pyarrow.parquet import read_schema

    return int(read_schema(path).field("vector").type.list_size)


def main() -> None:
    """Run what is not there yet."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("embeddings", type=Path)
    given.add_argument("out", type=Path)
    given.add_argument("--encoder", nargs="*", default=None)
    given.add_argument("--sets", nargs="*", default=list(SETS), choices=list(SETS))
    given.add_argument("--people", type=int, default=9153)
    given.add_argument("--copies", nargs="*", default=["hardcopies", "copies"])
    given.add_argument("--only", nargs="*", default=None, help="spaces by name, such as raw 'isp 192'")
    given.add_argument("--processes", type=int, default=1)
    given.add_argument("--seconds", type=float, default=float("inf"), help="after these no cell is begun")
    asked = given.parse_args()
    until = time.time() + asked.seconds
    there = sorted(path.name.removesuffix("_copies.parquet") for path in asked.embeddings.glob("*_copies.parquet"))
    options = Asked(asked.people, tuple(asked.copies))
    wanted = [
        cell
        for cell in cells(asked.embeddings, asked.encoder or there, asked.sets)
        if not cell.path(asked.out).exists() and (asked.only is None or cell.space in asked.only)
    ]
    with ProcessPoolExecutor(asked.processes) as pool:
        runs = [pool.submit(run, cell, asked.embeddings, asked.out, options, until) for cell in wanted]
        for done in runs:
            print(done.result(), flush=True)


if __name__ == "__main__":
    main()
