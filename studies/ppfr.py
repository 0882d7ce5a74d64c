"""Does privacy-preserving face recognition hold against a user who sees only scores: systems × attacks × questions.

    python -m studies.ppfr accuracy LFW pairs.txt SYSTEM --out OUT [--folds 10]
    python -m studies.ppfr encode EMBEDDINGS PICTURES SYSTEM --out OUT [--targets 60]
    python -m studies.ppfr attack EMBEDDINGS SYSTEM --out OUT [--attacker sface]
    python -m studies.ppfr intercept EMBEDDINGS SYSTEM --out OUT
    python -m studies.ppfr climbed EMBEDDINGS PICTURES --out OUT
    python -m studies.ppfr linked EMBEDDINGS SYSTEM --out OUT
    python -m studies.ppfr table OUT [--record WHERE]

SYSTEM is SCHEME/VARIANT/RECOGNISER, as dctdp/as-attacked/arcface-mbf: a front end, least squares, a recogniser
(unface.protect.server); or SCHEME/VARIANT/FOLDER, a server by studies.ppfr_distil. LFW is
github.com/georg-jung/lfw-pairs-aligned; EMBEDDINGS holds <recogniser>_celeba20.parquet as ``unface encode`` writes
them, PICTURES the same pictures. Accuracy comes first: a system below 97 % is refused.

``climbed`` judges what studies.ppfr_climb left in OUT: Map²V on a GPU. ``linked`` shows SYSTEM the faces that were
drawn of answers of any system: is a person who is enrolled in both linked?
Each finished piece is a line of OUT/rows.jsonl and is not repeated; rows hold counts alone.
"""

import argparse
import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open

from studies.counted import Counts, ceiling_counts, people_share
from studies.measured import Cell, Table, Value, markdown, write_findings
from studies.validation import FAR, Sets, Split, percents, read_sets, rounded
from unface import EmbeddingSet, read_embeddings
from unface.data import ImageSet, decode, read_images, write_embeddings
from unface.errors import UnfaceError
from unface.faces import Detector, load_detector
from unface.faces.detect import session_of
from unface.judge import face_frames, load_recogniser
from unface.judge.template import picture_thresholds
from unface.models import card, weights
from unface.protect.frequency import scheme
from unface.protect.pair_sets import read_pairs, ten_fold
from unface.protect.server import ReconstructingServer, Server, require_recognition, same_answers
from unface.seeds import stream
from unface.validate.map2v import IMPROVED, PUBLISHED
from unface.validate.measure import Curve, judge_recovered, pooled
from unface.validate.oracle import Replayed
from unface.validate.ports import Faces, Picture, Recovered, TemplateJudge

BATCH = 32
QUERIES = (20, 50, 100, 200, 500, 900)
SHOWN = (50, 200, 900)
CALIBRATE, PICTURES, ASKED = 40, 4, 10
"""People who set thresholds; pictures of each of them and of each target; pictures of each person to ask with."""
JUDGES = ("sface", "arcface-mbf", "edgeface-s")
BEST_GENERATED = "best of generated"
"""The face of the highest score among as many as a search asks with."""
SEARCHES = {
    "published": PUBLISHED,
    "without an ensemble": dataclasses.replace(PUBLISHED, ensemble=1),
    "without W+": dataclasses.replace(PUBLISHED, space="w"),
    "without either": dataclasses.replace(PUBLISHED, ensemble=1, space="w"),
    "n = 1,000": dataclasses.replace(PUBLISHED, pool=1000),
    "antithetic": dataclasses.replace(PUBLISHED, antithetic=True),
    "improved": IMPROVED,
    BEST_GENERATED: dataclasses.replace(PUBLISHED, pool=PUBLISHED.questions, ensemble=1, steps=0),
}
NEAR = 5.0
"""Years within which two ages match."""
CLIMBED_PEOPLE = 20
CLIMBED = (200, 500, 900, 1900, 3600)
"""Numbers of questions that tables show, besides the last."""
Row = dict[str, Any]
"""A finished piece, as rows.jsonl holds it."""


def main() -> None:
    """One verb."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = given.add_subparsers(dest="verb", required=True)
    made = {}
    for name, paths in (
        ("accuracy", ("lfw", "pairs")),
        ("encode", ("embeddings", "pictures")),
        ("attack", ("embeddings",)),
        ("intercept", ("embeddings",)),
        ("climbed", ("embeddings", "pictures")),
        ("linked", ("embeddings",)),
    ):
        verb = made[name] = verbs.add_parser(name)
        for path in paths:
            verb.add_argument(path, type=Path)
        if name != "climbed":
            verb.add_argument("system")
        verb.add_argument("--out", type=Path, required=True)
    made["accuracy"].add_argument("--folds", type=int, default=10)
    made["attack"].add_argument("--attacker", default="sface")
    for verb in (made["encode"], made["attack"], made["intercept"], made["climbed"], made["linked"]):
        verb.add_argument("--targets", type=int, default=60)
    table = verbs.add_parser("table")
    table.add_argument("out", type=Path)
    table.add_argument("--record", metavar="WHERE")
    asked = given.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    run = {
        "accuracy": accuracy,
        "encode": encode,
        "attack": attack,
        "intercept": intercept,
        "climbed": climbed,
        "linked": linked,
        "table": print_tables,
    }
    run[asked.verb](asked)


def system_of(text: str, device: str = "cpu") -> Server:
    """A server by SCHEME/VARIANT/RECOGNISER, or SCHEME/VARIANT/FOLDER of studies.ppfr_distil."""
    name, variant, last = parts_of(text)
    chosen, recogniser = scheme(name, variant), load_recogniser(base_of(text), device=device, accept_licence=True)
    if not Path(last).is_dir():
        return ReconstructingServer(chosen, recogniser)
    from studies.ppfr_distil import DistilledServer

    return DistilledServer(Path(last), recogniser.wanted, device)


def parts_of(text: str) -> list[str]:
    parts = text.split("/", 2)
    if len(parts) != 3:
        raise UnfaceError(f"system {text!r}: expected SCHEME/VARIANT/RECOGNISER")
    return parts


def base_of(text: str) -> str:
    """The recogniser that a server is, or was taught by: it may not judge."""
    folder = Path(parts_of(text)[2])
    if not folder.is_dir():
        return str(folder)
    with safe_open(folder / "server.safetensors", framework="numpy") as file:
        return str(json.loads(file.metadata()["recipe"])["teacher"])


def accuracy(asked: argparse.Namespace) -> None:
    """LFW by the 10-fold rule; with fewer folds each threshold comes from the others that are used."""
    pairs, mated, folds = read_pairs(asked.pairs.read_text(encoding="utf-8"))
    used = folds < asked.folds
    wanted = {name for pair, here in zip(pairs, used, strict=True) if here for name in pair}
    images = read_images(asked.lfw)
    images = images.take([row for row, image in enumerate(images) if Path(image.id).stem in wanted])
    server = system_of(asked.system)
    vectors, ids = embedded(server, images, None)
    row = {Path(name).stem: at for at, name in enumerate(ids)}
    places = np.array([(row[a], row[b]) for (a, b), here in zip(pairs, used, strict=True) if here])
    scores = np.einsum("pd,pd->p", vectors[places[:, 0]], vectors[places[:, 1]]).astype(np.float64)
    append(asked.out, measured_accuracy(asked.system, ten_fold(scores, mated[used], folds[used])))


def measured_accuracy(system: str, found: NDArray[np.float64]) -> Row:
    """A row of rows.jsonl, of accuracies by fold."""
    error = float(found.std(ddof=1) / np.sqrt(len(found)))
    print(f"{system}: {found.mean():.4%} ± {error:.4%} on {len(found)} folds", flush=True)
    return {"verb": "accuracy", "system": system, "folds": len(found), "mean": float(found.mean()), "error": error}


def encode(asked: argparse.Namespace) -> None:
    """What the server makes of every picture."""
    require_accuracy(asked.out, asked.system)
    path = server_file(asked.out, asked.system)
    if path.exists():
        return
    cast = Cast(chosen_rows(read_sets(asked.embeddings, "celeba20"), asked.targets), None, 0, targets=asked.targets)
    wanted = {str(one) for one in cast.people["arcface-mbf"].ids}
    images, server = read_images(asked.pictures), system_of(asked.system)
    images = images.take([row for row, image in enumerate(images) if image.id in wanted])
    vectors, ids = embedded(server, images, load_detector(accept_licence=True))
    owner = {image.id: image.identity for image in images}
    found = EmbeddingSet.from_arrays(vectors, [owner[name] for name in ids], ids=ids, source="server")
    write_embeddings(found, path)
    print(f"{asked.system}: {len(ids)} of {len(images)} pictures", flush=True)


# ---- attacks that ask with photographs, worked out on vectors


def attack(asked: argparse.Namespace) -> None:
    """`scores`, best-of-n and shuffled scores."""
    require_accuracy(asked.out, asked.system)
    base = base_of(asked.system)
    cast = cast_of(asked, base)
    for name in ("scores", "best-of-n", "scores, shuffled"):
        key: Row = {"verb": "attack", "system": asked.system, "attacker": asked.attacker, "attack": name}
        if not any(key.items() <= row.items() for row in rows_of(asked.out)):
            append(asked.out, {**key, **attacked([cast], base, asked.attacker, name)})
            print(asked.system, name, flush=True)


@dataclass(frozen=True, eq=False)
class Cast(Split):
    """One split of few pictures, all of which the server has seen."""

    targets: int = 60

    @cached_property
    def roles(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """See ``Split``."""
        order = order_of(self.people)
        last = self.targets + CALIBRATE
        return order[last:], order[self.targets : last], order[: self.targets]


def order_of(sets: Sets) -> NDArray[np.int64]:
    """Identities by lot: targets first, then those who set thresholds, then those to ask with."""
    count = len(next(iter(sets.values())).names)
    return stream(0, "studies", "ppfr", "people").permutation(count)


def chosen_rows(sets: Sets, targets: int) -> Sets:
    """The first pictures of everybody: few of targets, more of those to ask with."""
    some = next(iter(sets.values()))
    few = set(order_of(sets)[: targets + CALIBRATE].tolist())
    kept = [
        row
        for person in range(len(some.names))
        for row in np.flatnonzero(some.identities == person)[: PICTURES if person in few else ASKED]
    ]
    return {name: found.take(np.array(kept)) for name, found in sets.items()}


def cast_of(asked: argparse.Namespace, base: str) -> Cast:
    """With the server in its recogniser's place."""
    sets = chosen_rows(read_sets(asked.embeddings, "celeba20"), asked.targets)
    return Cast(with_server(sets, base, server_file(asked.out, asked.system)), None, 0, targets=asked.targets)


def with_server(sets: Sets, base: str, path: Path) -> Sets:
    """The server's vectors in the place of its recogniser's own, of the pictures that all have."""
    server = read_embeddings(path).unit()
    row = {str(one): at for at, one in enumerate(server.ids)}
    kept = {name: np.array([str(one) in row for one in found.ids]) for name, found in sets.items()}
    sets = {name: found.take(np.flatnonzero(kept[name])) for name, found in sets.items()}
    ids = [str(one) for one in sets[base].ids]
    return {**sets, base: replace(sets[base], vectors=server.vectors[[row[one] for one in ids]])}


def attacked(splits: Sequence[Split], base: str, attacker: str, name: str, queries: Sequence[int] = QUERIES) -> Row:
    """Success at FAR 1e-3 by judges that are neither server nor attacker's target; PSI and PSII by each system."""
    curves, scored, real = list[Curve](), dict[str, list[Score]](), list[tuple[Counts, Counts]]()
    for split in splits:
        knowledge, attacks = split.attacker(attacker)
        answers = split.scores(base)
        if name.endswith("shuffled"):
            order = stream(split.number, "studies", "ppfr", "shuffled").permutation(answers.shape[1])
            answers = answers[:, order]
        made = attacks[name.partition(",")[0]]
        asked = knowledge.pictures[: answers.shape[1]]
        recovered = [made.run(Replayed(asked, row), knowledge, queries) for row in answers]
        everybody = split.judges("", attacker)
        judges = [judge for judge in everybody if judge.name in JUDGES and judge.name != base]
        curve = Curve.of(judge_recovered(made.settings, recovered, split.enrolled, judges), split.number)
        curves.append(curve)
        real.append(ceiling_counts(split.enrolled, judges))
        for judge in everybody:
            scored.setdefault(judge.name, []).append(privacy_scores(split, judge, recovered, curve.chosen))
    whole = pooled(curves)
    at, every = whole.verdicts.fars.index(FAR), list(range(len(whole.verdicts.judges)))
    accepted, compared = (np.concatenate(parts, axis=-1) for parts in zip(*real, strict=True))
    strangers = [np.divide(*whole.strangers(every, at, n)) for n in range(len(queries))]
    return {
        "people": int(whole.verdicts.same.shape[-1]),
        "queries": list(queries),
        "judges": list(whole.verdicts.judges),
        **{
            kind: [percents(whole.share(kind, every, at, n)) for n in range(len(queries))] for kind in ("same", "other")
        },
        "chance": [rounded(100 * one) for one in strangers],
        "ceiling": percents(people_share(accepted[:, at].sum(axis=0), compared.sum(axis=0), 0)),
        "privacy": {judge: summed(parts) for judge, parts in scored.items()},
    }


@dataclass(frozen=True)
class Score:
    """What PSI and PSII are made of, after each number of questions: accepted of compared; and impostors rejected."""

    same: NDArray[np.int64]
    other: NDArray[np.int64]
    compared: tuple[int, int]
    rejected: float


def privacy_scores(
    split: Split, judge: TemplateJudge, recovered: Sequence[Recovered], chosen: NDArray[np.int64]
) -> Score:
    """Map²V's unit: at the threshold with the largest TAR − FAR on calibrate people."""
    threshold, rejected = best_split(*pairs_of(split.calibrate.vectors[judge.name], split.calibrate.identities))
    rows = [split.enrolled.rows(at) for at in range(len(recovered))]
    same, other = np.zeros((2, len(chosen)), np.int64)
    for at in range(len(chosen)):
        picked = [one.templates[chosen[at, person], at] for person, one in enumerate(recovered)]
        pictures = [one.pictures[0][at] if one.pictures else None for one in recovered]
        accepted = judge.compare(np.stack(picked), pictures, split.enrolled) >= threshold
        same[at] = sum(int(accepted[person, mine[0]]) for person, mine in enumerate(rows))
        other[at] = sum(int(accepted[person, mine[1:]].sum()) for person, mine in enumerate(rows))
    return Score(same, other, (len(rows), sum(len(mine) - 1 for mine in rows)), rejected)


def best_split(mated: NDArray[np.float32], impostor: NDArray[np.float32]) -> tuple[float, float]:
    """The threshold argmax(TAR − FAR), and the share of impostor pairs below it."""
    scores = np.concatenate([mated, impostor])
    order = np.argsort(-scores, kind="stable")
    is_mated = order < len(mated)
    gained = np.cumsum(is_mated) / len(mated) - np.cumsum(~is_mated) / len(impostor)
    threshold = float(scores[order[int(np.argmax(gained))]])
    return threshold, float((impostor < threshold).mean())


def summed(parts: Sequence[Score]) -> list[list[float]]:
    """[PSI, PSII] after each number of questions, in percent."""
    rejected = float(np.mean([one.rejected for one in parts]))
    first, second = (sum(one.compared[at] for one in parts) for at in (0, 1))
    same, other = sum(one.same for one in parts), sum(one.other for one in parts)
    return [
        [rounded(50 * (hit / first + rejected)), rounded(50 * (more / second + rejected))]
        for hit, more in zip(same, other, strict=True)  # type: ignore[arg-type]
    ]


# ---- a server that keeps what it receives


def intercept(asked: argparse.Namespace) -> None:
    """Protected pictures, as the server sees them, against the open recogniser's vectors of other pictures.

    No question is asked. For a distilled system this is the attack `distil`: its student is the attacker's network.
    """
    require_accuracy(asked.out, asked.system)
    base = base_of(asked.system)
    own = chosen_rows(read_sets(asked.embeddings, "celeba20"), asked.targets)
    plain = Cast(own, None, 0, targets=asked.targets)
    seen = Cast(with_server(own, base, server_file(asked.out, asked.system)), None, 0, targets=asked.targets)
    calibrate, people = plain.calibrate, plain.enrolled
    threshold = next(
        one.cosine for one in picture_thresholds(calibrate.vectors[base], calibrate.identities) if one.far == FAR
    )
    rows = [people.rows(at) for at in range(len(people.names))]
    compared = np.array([len(mine) - 1 for mine in rows])
    found: Row = {"verb": "intercept", "system": asked.system, "people": len(rows)}
    for name, cast in (("protected", seen), ("originals", plain)):
        accepted = cast.enrolled.vectors[base] @ people.vectors[base].T >= np.float32(threshold)
        others = np.array([accepted[mine[0], mine[1:]].sum() for mine in rows])
        found[name] = percents(people_share(others, compared, 0))
        strangers = sum(int(accepted[mine[0]].sum()) - int(accepted[mine[0], mine].sum()) for mine in rows)
        found[f"{name}, chance"] = rounded(100 * strangers / sum(accepted.shape[1] - len(mine) for mine in rows))
    own_vectors, seen_vectors = plain.people[base].vectors, seen.people[base].vectors
    found["cosine"] = rounded(float(np.einsum("nd,nd->n", own_vectors, seen_vectors).mean()))
    append(asked.out, found)
    print(found, flush=True)


# ---- Map²V, run by studies.ppfr_climb


Cells = list[tuple[Row, dict[str, NDArray[Any]]]]
"""What they are of, and their arrays."""


def read_cells(out: Path) -> dict[tuple[str, str], Cells]:
    """By system and search. A cell that was cut counts only where none of its kind is whole."""
    cells: dict[tuple[str, str], Cells] = {}
    for path in sorted((out / "climb").glob("*.npz")):
        with np.load(path) as file:
            arrays = {
                name: one.astype(np.float32) if one.dtype == np.float16 else one for name, one in dict(file).items()
            }
        meta = json.loads(str(arrays.pop("meta")))
        cells.setdefault((meta["system"], meta["search"]), []).append((meta, arrays))
    return {key: [one for one in parts if one[0]["whole"]] or parts for key, parts in cells.items()}


def joined(parts: Cells, first: int) -> tuple[list[int], list[int], dict[str, NDArray[Any]]]:
    """People below ``first``, the numbers of questions that all cells reached, and arrays of both."""
    stages = sorted(set.intersection(*(set(meta["queries"]) for meta, _ in parts)))
    people = [person for meta, _ in parts for person in meta["people"] if person < first]
    arrays: dict[str, list[NDArray[Any]]] = {}
    for meta, found in parts:
        kept = [at for at, person in enumerate(meta["people"]) if person < first]
        picked = [meta["queries"].index(n) for n in stages]
        for name in ("score", "server", *JUDGES):
            arrays.setdefault(name, []).append(found[name][kept][:, picked])
        arrays.setdefault("last", []).append(found["last"][kept])
    return people, stages, {name: np.concatenate(some) for name, some in arrays.items()}


def climbed(asked: argparse.Namespace) -> None:
    """A row for each system and search: for all people, and for the people that every search has.

    Then `scores` on the answers about generated faces.
    """
    traits, images = Traits(), {image.id: image for image in read_images(asked.pictures)}
    for (system, search), parts in read_cells(asked.out).items():
        asked.system, base = system, base_of(system)
        cast = cast_of(asked, base)
        ids = [str(one) for one in cast.people[base].ids]
        count = sum(len(meta["people"]) for meta, _ in parts)
        for first in sorted({asked.targets, CLIMBED_PEOPLE if count > CLIMBED_PEOPLE else asked.targets}):
            people, stages, arrays = joined(parts, first)
            key: Row = {"verb": "map2v", "system": system, "attack": search, "people": len(people), "queries": stages}
            if any(key.items() <= row.items() for row in rows_of(asked.out)):
                continue
            rows = [cast.enrolled.rows(at)[:2] for at in people]
            shown = [[ids[int(cast.enrolled.pictures[row].name)] for row in mine_] for mine_ in rows]
            real = [[decode(images[name].read()) for name in names] for names in shown]
            found = judged(cast, base, people, arrays)
            scores = [rounded(float(one)) for one in arrays["score"].mean(axis=0)]
            more = {"score": scores, **found, "traits": traits.matched(list(arrays["last"]), real)}
            append(asked.out, {**key, **more})
            print(system, search, len(people), "people", flush=True)
        if search == BEST_GENERATED:
            scores_on_generated(asked, cast, parts[0][1])


@dataclass(frozen=True, eq=False)
class GeneratedCast(Cast):
    """Asked with generated faces; only their answers and the attacker's vectors of them are known."""

    own: NDArray[np.float32] | None = None
    answers: NDArray[np.float64] | None = None

    @cached_property
    def asked(self) -> Faces:
        """See ``Split``."""
        assert self.own is not None
        count = len(self.own)
        vectors = {name: np.zeros((count, self.people[name].vectors.shape[1]), np.float32) for name in JUDGES}
        pictures = tuple(Picture(f"g{row}", f"g{row}".encode()) for row in range(count))
        return Faces(pictures, np.arange(count), ("nobody",), {**vectors, "sface": self.own})

    def scores(self, target: str) -> NDArray[np.float64]:
        """See ``Split``."""
        assert self.answers is not None
        return self.answers


def scores_on_generated(asked: argparse.Namespace, cast: Cast, arrays: Mapping[str, NDArray[Any]]) -> None:
    """`scores` with the questions of the best generated face."""
    base = base_of(asked.system)
    key: Row = {"verb": "generated", "system": asked.system, "attack": "scores, generated"}
    if any(key.items() <= row.items() for row in rows_of(asked.out)):
        return
    answers = arrays["answers"] / 32767
    queries = [n for n in (*CLIMBED, PUBLISHED.questions) if n <= answers.shape[1]]
    made = GeneratedCast(cast.people, None, 0, targets=asked.targets, own=arrays["own"], answers=answers)
    append(asked.out, {**key, **attacked([made], base, "sface", "scores", queries)})
    print(asked.system, "scores on generated faces", flush=True)


# ---- linkage across systems (S_T, S_V of paper 002)


def linked(asked: argparse.Namespace) -> None:
    """The last pictures of every search, before SYSTEM: PSI / PSII, and accepted at FAR 1e-3."""
    require_accuracy(asked.out, asked.system)
    base, server = base_of(asked.system), system_of(asked.system)
    cast, detector = cast_of(asked, base), load_detector(accept_licence=True)
    calibrate, enrolled = cast.calibrate, cast.enrolled
    threshold, rejected = best_split(*pairs_of(calibrate.vectors[base], calibrate.identities))
    strict = next(
        one.cosine for one in picture_thresholds(calibrate.vectors[base], calibrate.identities) if one.far == FAR
    )
    for (system, search), parts in read_cells(asked.out).items():
        if search not in ("published", "improved", BEST_GENERATED):
            continue
        people, stages, arrays = joined(parts, asked.targets)
        key: Row = {"verb": "linked", "system": system, "attack": search, "validated": asked.system}
        key |= {"people": len(people), "questions": stages[-1]}
        if any(key.items() <= row.items() for row in rows_of(asked.out)):
            continue
        frames = [face_frames(picture, detector, [server.wanted]) for picture in arrays["last"]]
        there = np.array([frame is not None for frame in frames])
        vectors = np.zeros((len(frames), server.space.dim), np.float32)
        faces = [frame[0] for frame in frames if frame is not None]
        vectors[there] = np.concatenate([server.embed(faces[at : at + 16]) for at in range(0, len(faces), 16)])
        cosines = (vectors @ enrolled.vectors[base].T)[:, None]
        rows = [enrolled.rows(person) for person in people]
        found: Row = {}
        for name, limit in (("split", threshold), ("far", strict)):
            first, rest = mine(cosines >= np.float32(limit), rows)
            of = np.array([len(one) - 1 for one in rows])
            if name == "split":
                shares = first.mean(), rest.sum() / of.sum()
                found["privacy"] = [rounded(50 * (float(share) + rejected)) for share in shares]
            else:
                found["same"] = percents(people_share(first[:, 0], np.ones(len(rows), np.int64), 0))
                found["other"] = percents(people_share(rest[:, 0], of, 0))
        append(asked.out, {**key, **found})
        print(key, found, flush=True)


def judged(cast: Cast, base: str, people: Sequence[int], found: Mapping[str, NDArray[np.float32]]) -> Row:
    """Success at FAR 1e-3 by judges other than the server, and PSI / PSII by each system; of vectors (people, n, d)."""
    rows = [cast.enrolled.rows(person) for person in people]
    stages = found["score"].shape[1]
    same, other, strangers, compared = *np.zeros((2, len(rows), stages), np.int64), 0, 0
    privacy: dict[str, list[list[float]]] = {}
    for name in JUDGES:
        calibrate, enrolled = cast.calibrate.vectors[name], cast.enrolled.vectors[name]
        vectors = found["server" if name == base else name]
        cosines = vectors @ enrolled.T
        threshold, rejected = best_split(*pairs_of(calibrate, cast.calibrate.identities))
        first, rest = mine(cosines >= np.float32(threshold), rows)
        of = sum(len(one) - 1 for one in rows)
        privacy[name] = [
            [rounded(50 * (one / len(rows) + rejected)), rounded(50 * (two / of + rejected))]
            for one, two in zip(first.sum(axis=0).tolist(), rest.sum(axis=0).tolist(), strict=True)
        ]
        if name == base:
            continue
        cosine = next(one.cosine for one in picture_thresholds(calibrate, cast.calibrate.identities) if one.far == FAR)
        accepted = cosines >= np.float32(cosine)
        first, rest = mine(accepted, rows)
        same, other = same + first, other + rest
        strangers += int(accepted[:, -1].sum()) - int((first[:, -1] + rest[:, -1]).sum())
        compared += sum(accepted.shape[2] - len(one) for one in rows)
    judges = len(JUDGES) - (base in JUDGES)
    each = np.array([len(one) - 1 for one in rows]) * judges
    return {
        "judges": [name for name in JUDGES if name != base],
        "same": [percents(people_share(hits, np.full(len(rows), judges), 0)) for hits in same.T],
        "other": [percents(people_share(hits, each, 0)) for hits in other.T],
        "chance": rounded(100 * strangers / compared),
        "hits": other[:, -1].tolist(),
        "of": each.tolist(),
        "privacy": privacy,
    }


def mine(accepted: NDArray[np.bool_], rows: Sequence[NDArray[np.int64]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(people, n) of (people, n, pictures): whether the enrolled picture is accepted, and how many others."""
    first = np.stack([one[:, own[0]] for one, own in zip(accepted, rows, strict=True)]).astype(np.int64)
    rest = np.stack([one[:, own[1:]].sum(axis=1) for one, own in zip(accepted, rows, strict=True)])
    return first, rest.astype(np.int64)


def pairs_of(
    vectors: NDArray[np.float32], identities: NDArray[np.int64]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Cosines of mated and of impostor pairs."""
    cosines = vectors @ vectors.T
    upper = np.triu(np.ones(cosines.shape, bool), 1)
    same = identities[:, None] == identities
    return cosines[upper & same], cosines[upper & ~same]


class Traits:
    """Age and gender, as two classifiers of dlib-models read them from a picture."""

    def __init__(self) -> None:
        self._cards = {name: card(name) for name in ("gender", "age")}
        self._sessions = {name: session_of(str(weights(one, accept_licence=True))) for name, one in self._cards.items()}
        self._detector = load_detector(accept_licence=True)

    def read(self, picture: NDArray[np.uint8]) -> dict[str, float]:
        """Gender as 0 or 1, age as the mean in years; NaN where there is no face."""
        wanted = {name: one.input for name, one in self._cards.items()}
        frames = face_frames(picture, self._detector, list(wanted.values()))
        if frames is None:
            return dict.fromkeys(wanted, np.nan)
        found = {}
        for (name, given), frame in zip(wanted.items(), frames, strict=True):
            ready = ((frame - np.array(given.mean)) / np.array(given.std)).astype(np.float32)
            session = self._sessions[name]
            first = {session.get_inputs()[0].name: ready.transpose(2, 0, 1)[None]}
            chances = np.asarray(session.run(None, first)[0]).ravel()
            found[name] = float(chances[1] > chances[0]) if name == "gender" else float(chances @ np.arange(81))
        return found

    def matched(self, drawn: Sequence[NDArray[np.uint8]], real: Sequence[Sequence[NDArray[np.uint8]]]) -> Row:
        """Of each: matched with the enrolled picture, chance, p by permuted people, and a real second picture."""
        seen = [self.read(one) for one in drawn]
        enrolled, second = ([self.read(pair[at]) for pair in real] for at in (0, 1))
        result: Row = {}
        for name, far in (("gender", 0.5), ("age", NEAR)):
            given, truth, other = (np.array([one[name] for one in some]) for some in (seen, enrolled, second))
            result[name] = agreement(given, truth, other, far)
        return result


def agreement(
    given: NDArray[np.float64], truth: NDArray[np.float64], other: NDArray[np.float64], far: float
) -> tuple[list[Value], float, float, float]:
    """Share of ``given`` within ``far`` of the truth; mean and p over permuted people; the share of ``other``."""
    random, ones = stream(0, "studies", "ppfr", "traits"), np.ones(len(truth), np.int64)
    hits = np.abs(given - truth) <= far
    by_chance = np.array([(np.abs(given - random.permutation(truth)) <= far).mean() for _ in range(5000)])
    return (
        percents(people_share(hits.astype(np.int64), ones, 0)),
        rounded(100 * float(by_chance.mean())),
        rounded(float((1 + np.count_nonzero(by_chance >= hits.mean() - 1e-12)) / (1 + len(by_chance)))),
        rounded(100 * float((np.abs(other - truth) <= far).mean())),
    )


# ---- tables


def print_tables(asked: argparse.Namespace) -> None:
    """Of all rows; ``--record`` keeps them for docs/validate.md."""
    tables = made_tables(rows_of(asked.out))
    for table in tables.values():
        print("\n".join([*markdown(table), ""]))
    if asked.record:
        found = {row["system"]: row for row in rows_of(asked.out) if row["verb"] == "noise"}
        first = next(iter(found.values()), {})
        kept = ("neighbours", "grey levels", "tf32")
        figures: dict[str, Cell] = {name: rounded(1e4 * first[name]) for name in kept if name in first}  # 1/10,000
        figures |= {f"repeat {name}": rounded(1e4 * row["repeat"]) for name, row in found.items()}
        figures |= {f"step {name}": rounded(1e4 * row["neighbours"]) for name, row in found.items()}
        log = asked.out / "distil.jsonl"
        if log.exists():
            looks = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
            best = max(looks, key=lambda row: (row["lfw"], row["step"]))  # the server that was kept
            accuracies = [rounded(100 * row["lfw"]) for row in looks]
            figures |= {"distilled steps": best["step"], "distilled seconds": rounded(best["seconds"])}
            figures |= {"distilled looks": len(looks), "distilled accuracy": [min(accuracies), max(accuracies)]}
            figures |= {"distilled first look": rounded(looks[0]["seconds"])}
        write_findings("ppfr", command="python -m studies.ppfr", where=asked.record, tables=tables, figures=figures)


def made_tables(rows: Sequence[Row]) -> dict[str, Table]:
    """Accuracy, success of attacks that ask with photographs, PSI / PSII by system, and Map²V."""
    newest = {row["system"]: row for row in rows if row["verb"] == "accuracy"}
    accuracies: list[list[Cell]] = [
        [row["system"], row["folds"], rounded(100 * row["mean"]), rounded(100 * row["error"])]
        for row in newest.values()
    ]
    attacks = [row for row in rows if row["verb"] == "attack"]
    success: list[list[Cell]] = [
        [row["system"], row["attack"], *row["other"], row["chance"][-1], row["ceiling"][0]] for row in attacks
    ]
    privacy: list[list[Cell]] = [
        [row["system"], row["attack"], judge, *(scores[QUERIES.index(n)] for n in SHOWN)]
        for row in attacks
        for judge, scores in row["privacy"].items()
    ]
    intercepted: list[list[Cell]] = [
        [row["system"], row["people"], row.get("cosine"), row["protected"], row["originals"], row["protected, chance"]]
        for row in {row["system"]: row for row in rows if row["verb"] == "intercept"}.values()
    ]
    questions = {f"n = {n:,}": ".0f" for n in QUERIES}
    tables = {
        "accuracy": Table(columns={"system": "", "folds": "", "LFW, %": ".2f", "±": ".2f"}, rows=accuracies),
        "success": Table(
            columns={"system": "", "attack": "", **questions, "chance": ".2f", "ceiling": ".0f"}, rows=success
        ),
        "privacy": Table(
            columns={
                "system attacked": "",
                "attack": "",
                "system validated": "",
                **{f"n = {n:,}": ".1f/" for n in SHOWN},
            },
            rows=privacy,
        ),
        "intercepted": Table(
            columns={
                "system": "",
                "people": "",
                "cosine": ".3f",
                "protected, %": ".1f",
                "originals, %": ".1f",
                "chance, %": ".2f",
            },
            rows=intercepted,
        ),
        **map2v_tables(rows),
    }
    return {name: table for name, table in tables.items() if table.rows}


def map2v_tables(rows: Sequence[Row]) -> dict[str, Table]:
    """The newest row of each system, search and number of people: our measure, the paper's, and attributes."""
    newest = {(row["system"], row["attack"], row["people"]): row for row in rows if row["verb"] == "map2v"}.values()
    most = {key: max(row["people"] for row in newest if kind_of(row) == key) for key in map(kind_of, newest)}
    success, traits = list[list[Cell]](), list[list[Cell]]()
    for row in newest:
        if row["people"] != most[kind_of(row)]:
            continue
        key = [row["system"], row["attack"], row["people"]]
        for at, n in enumerate(row["queries"]):
            if n not in CLIMBED and at != len(row["queries"]) - 1:
                continue
            success.append([*key, n, row["score"][at], row["same"][at], row["other"][at], row["chance"]])
        if row["attack"] in ("published", "improved", "white-box"):
            traits += [[*key, trait, *values] for trait, values in row["traits"].items()]
    # Searches are compared on the people that all of them were run on (Table 4 of the paper).
    order = (*SEARCHES, "white-box")
    alike = sorted(
        (row for row in newest if row["people"] <= CLIMBED_PEOPLE),
        key=lambda row: (row["system"], order.index(row["attack"])),
    )
    searches: list[list[Cell]] = [
        [
            *(row["system"], row["attack"], row["people"], row["queries"][-1]),
            *(row[name][-1] for name in ("score", "same", "other")),
            *(row["privacy"].get(judge, [[]])[-1] for judge in JUDGES),
        ]
        for row in alike
    ]
    key_columns = {"system": "", "search": "", "people": ""}
    measured = {"questions": ",", "server's score": ".2f", "enrolled picture, %": ".0f", "other pictures, %": ".0f"}
    return {
        "map2v": Table(columns={**key_columns, **measured, "chance, %": ".2f"}, rows=success),
        "searches": Table(columns={**key_columns, **measured, **dict.fromkeys(JUDGES, ".1f/")}, rows=searches),
        "paired": Table(columns={**key_columns, "more than published": "+.0f"}, rows=paired(alike)),
        "budgets": Table(
            columns={
                "system": "",
                "attack": "",
                "people": "",
                **{f"n = {n:,}": ".0f" for n in CLIMBED},
                "at the end": ".0f",
            },
            rows=equal_budgets(rows, list(newest)),
        ),
        "efficiency": Table(
            columns={"system": "", "people": "", "published, %": ".0f", "questions": ",", "improved from": ","},
            rows=efficiency(list(newest)),
        ),
        **linked_tables(rows, [row for row in newest if row["people"] == most[kind_of(row)]]),
        "traits": Table(
            columns={
                **key_columns,
                "attribute": "",
                "matched, %": ".0f",
                "chance, %": ".0f",
                "p": ".3f",
                "real picture, %": ".0f",
            },
            rows=traits,
        ),
    }


def kind_of(row: Row) -> tuple[str, str]:
    """What is run on one number of people or another."""
    return row["system"], row["attack"]


def linked_tables(rows: Sequence[Row], climbs: Sequence[Row]) -> dict[str, Table]:
    """System attacked against system validated, after the last question: Table 5 of the paper; and at FAR 1e-3."""
    by = {(*kind_of(row), row["people"], row["validated"]): row for row in rows if row["verb"] == "linked"}
    servers = sorted({key[-1] for key in by})
    unit, ours = list[list[Cell]](), list[list[Cell]]()
    for climb in climbs:
        seen = [by.get((*kind_of(climb), climb["people"], server)) for server in servers]
        if any(seen):
            key = [*kind_of(climb), climb["people"], climb["queries"][-1]]
            judges = [climb["privacy"][name][-1] for name in JUDGES if name in climb["judges"]]
            unit.append([*key, *(one["privacy"] if one else None for one in seen), *judges])
            ours.append([*key, *(one["other"] if one else None for one in seen)])
    others = [name for name in JUDGES if climbs and name in climbs[0].get("judges", [])]
    key_columns = {"system attacked": "", "search": "", "people": "", "questions": ","}
    return {
        "linked": Table(columns={**key_columns, **dict.fromkeys([*servers, *others], ".1f/")}, rows=unit),
        "linked_success": Table(columns={**key_columns, **dict.fromkeys(servers, ".0f")}, rows=ours),
    }


def equal_budgets(rows: Sequence[Row], climbs: Sequence[Row]) -> list[list[Cell]]:
    """Other pictures accepted after equal numbers of questions, attack by attack, of as many people as there are."""
    found: dict[tuple[str, str], Row] = {}
    for row in (*(row for row in rows if row["verb"] in ("attack", "generated")), *climbs):
        if "shuffled" in row["attack"]:
            continue
        if row["people"] >= found.get(kind_of(row), {"people": 0})["people"]:
            found[kind_of(row)] = row
    order = ("scores", "best-of-n", "scores, generated", BEST_GENERATED, "published", "improved")
    shown = sorted((key for key in found if key[1] in order), key=lambda key: (key[0], order.index(key[1])))
    table = list[list[Cell]]()
    for key in shown:
        row = found[key]
        shares = dict(zip(row["queries"], row["other"], strict=True))
        last = row["other"][-1] if row["queries"][-1] > CLIMBED[-1] else None
        table.append([*key, row["people"], *(shares.get(n) for n in CLIMBED), last])
    return table


def paired(climbs: Sequence[Row]) -> list[list[Cell]]:
    """Other pictures accepted, less those of the published search on the same people; intervals resample people."""
    found = list[list[Cell]]()
    base = {row["system"]: row for row in climbs if row["attack"] == "published"}
    for row in climbs:
        other = base.get(row["system"])
        if other is None or row is other or row["people"] != other["people"]:
            continue
        people = row["people"]
        drawn = stream(0, "studies", "ppfr", "paired").integers(people, size=(10_000, people))
        gained, of = np.array(row["hits"]) - np.array(other["hits"]), np.array(row["of"])
        spread = gained[drawn].sum(axis=1) / of[drawn].sum(axis=1)
        ends = np.quantile(spread, [0.025, 0.975])
        shares: list[Value] = [rounded(100 * float(one)) for one in (gained.sum() / of.sum(), *ends)]
        found.append([row["system"], row["attack"], people, shares])
    return found


def efficiency(climbs: Sequence[Row]) -> list[list[Cell]]:
    """After how many questions the improved search accepts as many other pictures as the published one at its end."""
    found = list[list[Cell]]()
    for row in climbs:
        same = [one for one in climbs if one["attack"] == "improved" and one["people"] == row["people"]]
        other = next((one for one in same if one["system"] == row["system"]), None)
        if row["attack"] != "published" or other is None:
            continue
        goal = row["other"][-1][0]
        reached = (n for n, share in zip(other["queries"], other["other"], strict=True) if share[0] >= goal)
        found.append([row["system"], row["people"], row["other"][-1], row["queries"][-1], next(reached, None)])
    return found


# ---- pictures and rows


def embedded(server: Server, images: ImageSet, detector: Detector | None) -> tuple[NDArray[np.float32], list[str]]:
    """(n, d) vectors and ids of pictures with a face; without a detector pictures are faces already."""
    ids, vectors = list[str](), list[NDArray[np.float32]]()
    for group in grouped(framed(server, images, detector)):
        if not vectors:
            same_answers(server, [group[0][1]])
        ids += [name for name, _ in group]
        vectors.append(server.embed([frame for _, frame in group]))
    return np.concatenate(vectors), ids


def framed(server: Server, images: ImageSet, detector: Detector | None) -> Iterator[tuple[str, NDArray[np.uint8]]]:
    for image in images:
        picture = decode(image.read())
        frames = (picture,) if detector is None else face_frames(picture, detector, [server.wanted])
        if frames is not None:
            yield image.id, frames[0]


def grouped(items: Iterable[tuple[str, NDArray[np.uint8]]]) -> Iterator[list[tuple[str, NDArray[np.uint8]]]]:
    group = []
    for item in items:
        group.append(item)
        if len(group) == BATCH:
            yield group
            group = []
    if group:
        yield group


def server_file(out: Path, system: str) -> Path:
    return out / f"{system.replace('/', '_')}.parquet"


def append(out: Path, row: Row) -> None:
    with (out / "rows.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


def rows_of(out: Path) -> list[Row]:
    path = out / "rows.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def require_accuracy(out: Path, system: str) -> float:
    """Of the newest row; refused without one, or below 97 %."""
    found = [row["mean"] for row in rows_of(out) if row["verb"] == "accuracy" and row["system"] == system]
    if not found:
        raise UnfaceError(f"{system}: its accuracy on LFW is not known; run python -m studies.ppfr accuracy first")
    require_recognition(system, found[-1])
    return float(found[-1])


if __name__ == "__main__":
    main()
