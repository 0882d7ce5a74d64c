"""The frontier of erasure: what attackers still link against what vectors are still good for, at several strengths.

    python -m studies.frontier EMBEDDINGS OUT [--encoder NAME …] [--people 9153] [--far 1e-3 …]

EMBEDDINGS holds ``<encoder>_celeba9k.parquet`` (five pictures of each person), ``<encoder>_copies.parquet`` (altered
copies of some of them, column ``copy_of``: three of each picture of people to fit on, one of each picture of others)
and, if there, ``<encoder>_tiny.parquet`` (pictures without faces, class as identity). Writes OUT/<encoder>.json; a
finished one is not run again. ``python -m studies.frontier --record OUT`` keeps what is there for the pages.
"""

import argparse
import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
from numpy.typing import NDArray

from studies.erasure import objects
from studies.measured import HOME, Table, write_findings
from unface import EmbeddingSet, Projection, Protocol, read_embeddings
from unface.auditing.attack import Attack
from unface.auditing.protocol import prepare
from unface.auditing.utility.run import UtilityTasks
from unface.data import Role
from unface.erase import Keeper, copy_covariance, fit_projection, make_eraser
from unface.erase.gate import Gate, fit_gate
from unface.moments import class_moments
from unface.probe import Measurement, draw_bootstrap, measure
from unface.probe.album_trial import run_albums
from unface.probe.albums import AlbumSize
from unface.probe.measure import difference
from unface.progress import Silent
from unface.result.numbers import Estimate
from unface.utility import Task, copy_task, labelled_task

# Of 512 dimensions; other encoders in proportion.
REMOVED = {"isp": (64, 192, 320, 384), "leace": (192, 320, 384), "pca": (64, 192, 320, 384), "random": (192, 384, 448)}
KEPT = ((96, 0.1), (64, 0.1), (64, 0.3), (48, 1.0))
GATED = ("isp 192", "isp 384", "pca 192", "pca 384", "keeper 64, μ 0.3")
ALBUMS = (AlbumSize(2, 2), AlbumSize(2, 3))
SHARES = {Role.FIT: 0.34, Role.TRAIN: 0.22, Role.CALIBRATE: 0.17}
_PAIRS = "1 against 1"
COLOURS = ["#0072b2", "#d55e00", "#cc79a7", "#009e73", "#999999", "#000000"]  # told apart by the colour-blind

Measured = dict[tuple[str, float], Measurement]  # by album size and rate


@dataclass(frozen=True, eq=False)
class Setup:
    """One encoder's people in their roles, copies and things."""

    faces: EmbeddingSet
    copies: EmbeddingSet
    things: EmbeddingSet | None
    fit: EmbeddingSet

    @property
    def nuisance(self) -> NDArray[np.float64]:
        """How copies of fit people's pictures differ from their originals."""
        rows = {str(name): row for row, name in enumerate(self.faces.ids)}
        known = set(self.fit.names)
        ours = [
            row
            for row, of in enumerate(self.copies.labels["copy_of"])
            if str(of) in rows and self.copies.names[self.copies.identities[row]] in known
        ]
        originals = self.faces.vectors[[rows[str(self.copies.labels["copy_of"][row])] for row in ours]]
        return copy_covariance(originals, self.copies.vectors[ours])

    def copies_to_find(self) -> EmbeddingSet:
        """Everybody's pictures, and one altered copy of each picture of people whom no eraser was fitted on."""
        known, there = set(self.fit.names), set(map(str, self.faces.ids))
        held = [
            row
            for row, of in enumerate(self.copies.labels["copy_of"])
            if self.copies.names[self.copies.identities[row]] not in known and str(of) in there
        ]
        copies = self.copies.take(np.array(held))
        names = [*self.faces.names]
        code = {name: number for number, name in enumerate(names)}
        return EmbeddingSet.from_arrays(
            np.concatenate([self.faces.vectors, copies.vectors]),
            [*(names[i] for i in self.faces.identities), *(names[code[copies.names[i]]] for i in copies.identities)],
            ids=[*map(str, self.faces.ids), *map(str, copies.ids)],
            labels={"copy_of": [*[""] * len(self.faces), *map(str, copies.labels["copy_of"])]},
            space=self.faces.space,
            source="copies",
        )


def setup(folder: Path, encoder: str, people: int) -> Setup:
    """People in the order of a hash of their names; those with three copies of a picture are there to fit on."""
    faces = read_embeddings(folder / f"{encoder}_celeba9k.parquet").unit()
    copies = read_embeddings(folder / f"{encoder}_copies.parquet").unit()
    order = sorted(faces.names, key=lambda name: hashlib.sha256(name.encode()).hexdigest())
    of, counts = np.unique([str(one) for one in copies.labels["copy_of"]], return_counts=True)
    to_fit = {one.split("/")[0] for one, count in zip(of, counts, strict=True) if count > 1}
    to_find = {one.split("/")[0] for one, count in zip(of, counts, strict=True) if count == 1} - to_fit
    others = [name for name in order if name not in to_fit and name not in to_find][: people - len(to_fit | to_find)]
    chosen = len(others) + len(to_fit) + len(to_find)
    wanted = {role: round(share * chosen) for role, share in SHARES.items()}
    fit = to_fit | set(others[: wanted[Role.FIT] - len(to_fit)])
    left = [name for name in others if name not in fit]
    roles = dict.fromkeys(fit, Role.FIT) | dict.fromkeys(to_find, Role.TEST)
    roles |= dict.fromkeys(left[: wanted[Role.TRAIN]], Role.TRAIN)
    rest = left[wanted[Role.TRAIN] :]
    roles |= dict.fromkeys(rest[: wanted[Role.CALIBRATE]], Role.CALIBRATE)
    roles |= dict.fromkeys(rest[wanted[Role.CALIBRATE] :], Role.TEST)
    faces = faces.take(np.array([row for row, i in enumerate(faces.identities) if faces.names[i] in roles]))
    role = np.array([str(roles[faces.names[i]]) for i in faces.identities])
    faces = replace(faces, labels={"role": role})
    tiny = folder / f"{encoder}_tiny.parquet"
    things = objects(tiny).unit() if tiny.exists() else None
    return Setup(faces, copies, things, faces.take(np.flatnonzero(role == str(Role.FIT))))


def projections(given: Setup) -> dict[str, Projection]:
    """Every eraser and control at its strengths, then some of them behind a face gate."""
    dim = given.faces.space.dim

    def scaled(of_512: int) -> int:
        return max(1, round(of_512 * dim / 512))

    made = {
        f"{name} {scaled(removed)}": fit_projection(make_eraser(name, scaled(removed)), given.fit)
        for name, ranks in REMOVED.items()
        for removed in ranks
    }
    nuisance = given.nuisance
    for kept, mu in KEPT:
        name = f"keeper {scaled(kept)}, μ {mu:g}"
        made[name] = fit_projection(Keeper(scaled(kept), mu=mu, nuisance=nuisance), given.fit)
    if given.things is not None:
        gate = _gate(given)
        names = {_scaled_name(name, scaled) for name in GATED}
        made |= {f"{name}, gated": replace(made[name], gate=gate) for name in made if name in names}
    return made


def _scaled_name(name: str, scaled: Callable[[int], int]) -> str:
    """A name of ``GATED`` with the dimensions of this encoder."""
    method, number, *rest = name.replace(",", " ,").split()
    return " ".join([method, str(scaled(int(number))), *rest]).replace(" ,", ",")


def _gate(given: Setup) -> Gate:
    """Faces of four fifths of the fit people against things; the others set the threshold."""
    assert given.things is not None
    held = given.fit.identities % 5 == 0
    train = given.things.labels["split"] == "train"
    return fit_gate(
        class_moments(given.fit.vectors[~held], given.fit.identities[~held]),
        given.things.vectors[train],
        given.fit.vectors[held],
        given.fit.identities[held],
    )


def study(folder: Path, encoder: str, people: int, fars: Sequence[float], threads: int | None) -> dict[str, object]:
    """Every space attacked by pairs and by albums, and used."""
    given = setup(folder, encoder, people)
    protocol = Protocol(far=tuple(fars), k="all", split="role", threads=threads)
    prepared = prepare(given.faces, protocol)
    roles = prepared.roles
    bootstrap = draw_bootstrap(
        protocol.scheme(), roles.calibrate.count, roles.test.count, protocol.bootstraps, protocol.seed
    )
    plan = replace(protocol.plan(), ks=prepared.ks, everything=prepared.everything)
    attack = Attack(roles, protocol.probes(), plan, bootstrap)
    tasks: list[Task] = [copy_task(given.copies_to_find())]
    tasks += [] if given.things is None else [labelled_task(given.things, seed=0)]
    utility = UtilityTasks(tuple((task, task.outcomes(task.vectors)) for task in tasks), bootstrap.level)
    measured: dict[str, Measured] = {}
    rows = []
    for name, projection in [("raw", None), *projections(given).items()]:
        vectors = prepared.embeddings.vectors if projection is None else projection.apply(prepared.embeddings.vectors)
        measured[name] = attacked(vectors, attack, name)
        rows += [_tar_row(name, size, far, one) for (size, far), one in measured[name].items()]
        if projection is not None:
            rows += [
                {
                    "space": name,
                    "measure": kept.measure,
                    "on": kept.on,
                    "raw": _ends(kept.raw),
                    "erased": _ends(kept.erased),
                }
                for kept in utility.kept(projection)
            ]
        print(
            f"{encoder} {name}: "
            + ", ".join(f"{size} {far:g} {one.tar:.2%}" for (size, far), one in measured[name].items()),
            flush=True,
        )
    found = {str(row["space"]): row["erased"][0] for row in rows if row.get("measure") == "copy recall@1"}  # type: ignore[index]
    return {
        "encoder": encoder,
        "people": {
            str(role): len(np.unique(given.faces.identities[given.faces.labels["role"] == str(role)]))
            for role in (Role.FIT, Role.TRAIN, Role.CALIBRATE, Role.TEST)
        },
        "level": bootstrap.level,
        "rows": rows,
        "rivals": list(_rivals(measured, found, bootstrap.level)),
    }


def attacked(vectors: NDArray[np.float32], attack: Attack, task: str) -> Measured:
    """The worst case of the panel for pairs and for each album."""
    pairs = attack.run(vectors, Silent(), task)
    (k,) = attack.plan.ks
    numbers: Measured = {}
    for far in attack.plan.fars:
        worst = pairs.worst(k, far)
        if worst is not None:
            numbers[_PAIRS, far] = worst
    probes = [(probe, pairs.panel.trials[probe.name, k].setting) for probe in attack.probes]
    trials = run_albums(vectors, attack.roles, probes, attack.plan, ALBUMS)
    for size in ALBUMS:
        for far in attack.plan.fars:
            able = [trial for (_, of), trial in trials.items() if of == size and far in trial.thresholds]
            if able:
                best = max(able, key=lambda trial: trial.calibrate_tar[far])
                numbers[f"{size.first} against {size.second}", far] = measure(best, far, attack.bootstrap, attack.plan)
    return numbers


def _tar_row(name: str, size: str, far: float, one: Measurement) -> dict[str, object]:
    return {
        "space": name,
        "measure": "TAR",
        "size": size,
        "far": far,
        "probe": one.probe,
        "tar": [one.tar, one.interval.low, one.interval.high],
        "accepted": one.accepted,
        "mated": one.mated,
        "identities": one.identities,
    }


def _ends(estimate: Estimate) -> list[float]:
    return [estimate.value, estimate.low, estimate.high]


def _rivals(measured: dict[str, Measured], found: dict[str, float], level: float) -> Iterator[dict[str, object]]:
    """Each keeper less its neighbours in use on the same people, of every rival method.

    These are the strength that leaks least among those that find at least as many copies, and the one that finds the
    most among those that find fewer.
    """
    for keeper in (name for name in measured if name.startswith("keeper") and not name.endswith("gated")):
        for method in ("isp", "leace", "pca", "random"):
            rivals = [name for name in found if name.startswith(method) and not name.endswith("gated")]
            for key in measured[keeper]:
                able = [name for name in rivals if key in measured[name]]
                above = [name for name in able if found[name] >= found[keeper]]
                below = [name for name in able if found[name] < found[keeper]]
                chosen = [min(above, key=lambda name: measured[name][key].tar)] if above else []
                chosen += [max(below, key=lambda name: found[name])] if below else []
                for rival in chosen:
                    value, ends = difference(measured[rival][key], measured[keeper][key], level)
                    yield {
                        "keeper": keeper,
                        "rival": rival,
                        "size": key[0],
                        "far": key[1],
                        "copies": [found[keeper], found[rival]],
                        "points": [value, ends.low, ends.high],
                    }


def record(out: Path) -> None:
    """Tables of docs/measured/frontier.json and the chart of all encoders."""
    results = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(out.glob("*.json"))]
    tables = {}
    for result in results:
        found = [row for row in result["rows"] if row["measure"] == "copy recall@1"]
        copies = {"raw": found[0]["raw"], **{row["space"]: row["erased"] for row in found}}
        tars = {
            (row["space"], row["size"], row["far"]): row["tar"] for row in result["rows"] if row["measure"] == "TAR"
        }
        sizes = [("pairs", _PAIRS, 1e-4), ("2 against 2", "2 against 2", 1e-4), ("2 against 3", "2 against 3", 1e-4)]
        tables[result["encoder"]] = Table(
            columns={"space": "", **{name: ".1%" for name, *_ in sizes}, "copies found": ".2%"},
            rows=[[space, *(tars[space, size, far] for _, size, far in sizes), copies[space]] for space in copies],
        )
        shown = [
            one for one in result["rivals"] if (one["size"], one["far"]) in ((_PAIRS, 1e-4), ("2 against 3", 1e-4))
        ]
        tables[f"{result['encoder']}, keeper against rivals"] = Table(
            columns={
                "keeper": "",
                "rival": "",
                "copies found by both": ".2%/",
                "pictures": "",
                "keeper − rival": "+.2%",
            },
            rows=[[one["keeper"], one["rival"], one["copies"], one["size"], one["points"]] for one in shown],
        )
    people = {f"{result['encoder']}, {role}": count for result in results for role, count in result["people"].items()}
    command = "python -m studies.frontier EMBEDDINGS OUT"
    write_findings("frontier", command=command, where="two cores of a shared machine", tables=tables, figures=people)
    _chart(results).save(HOME.parent / "frontier.svg")


def _chart(results: list[dict[str, Any]]) -> alt.FacetChart:
    """Albums of two against three pictures that attackers link, over the copies that are found."""
    points = []
    for result in results:
        found = [row for row in result["rows"] if row["measure"] == "copy recall@1"]
        copies = {"raw": found[0]["raw"], **{row["space"]: row["erased"] for row in found}}
        for row in result["rows"]:
            if row["measure"] == "TAR" and (row["size"], row["far"]) == ("2 against 3", 1e-4):
                method, _, strength = row["space"].partition(" ")
                value, low, high = (100 * one for one in row["tar"])
                at = {"missed": 100 * (1 - copies[row["space"]][0]), "TAR": value, "low": low, "high": high}
                points.append({"encoder": result["encoder"], "eraser": method, "strength": strength, **at})
    kind = alt.Legend(orient="top", symbolOpacity=1)
    colour = alt.Color("eraser:N", title=None, legend=kind, scale=alt.Scale(range=COLOURS))
    across = alt.X("missed:Q", title="copies missed, %", scale=alt.Scale(type="log"))
    drawn = alt.Chart(alt.InlineData(points)).encode(x=across, color=colour)
    marks = drawn.mark_point(filled=True, size=60, opacity=1).encode(
        y=alt.Y("TAR:Q", title="albums linked at FAR 1e-4, %", scale=alt.Scale(type="log")),
        shape=alt.Shape("eraser:N", legend=None),
    )
    ends = drawn.mark_rule().encode(y=alt.Y("low:Q", scale=alt.Scale(type="log")), y2="high:Q")
    names = drawn.mark_text(align="left", dx=6, dy=-4, fontSize=9).encode(y="TAR:Q", text="strength:N")
    drawn_together: alt.FacetChart = (
        alt.layer(ends, marks, names)
        .properties(width=420, height=320)
        .facet(alt.Facet("encoder:N", title=None), columns=2)
    )
    return drawn_together


def main() -> None:
    """Run what is not there yet."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("embeddings", type=Path, nargs="?")
    given.add_argument("out", type=Path)
    given.add_argument("--record", action="store_true")
    given.add_argument("--encoder", nargs="*", default=None)
    given.add_argument("--people", type=int, default=9153)
    given.add_argument("--far", nargs="*", type=float, default=[1e-3, 1e-4, 1e-5, 1e-6])
    given.add_argument("--threads", type=int, default=None)
    asked = given.parse_args()
    if asked.record:
        record(asked.out)
        return
    if asked.embeddings is None:
        given.error("name the folder of embeddings, then the one to write to")
    asked.out.mkdir(parents=True, exist_ok=True)
    there = sorted(path.name.removesuffix("_copies.parquet") for path in asked.embeddings.glob("*_copies.parquet"))
    for encoder in asked.encoder or there:
        path = asked.out / f"{encoder}.json"
        if not path.exists():
            result = study(asked.embeddings, encoder, asked.people, asked.far, asked.threads)
            path.write_text(json.dumps(result, indent=1, ensure_ascii=False), encoding="utf-8")


if __name__ == "__main__":
    main()
