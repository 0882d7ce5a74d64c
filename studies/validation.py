"""What face systems give away that only answer with a score: targets × attackers' encoders × numbers of questions.

    python -m studies.validation EMBEDDINGS [--record WHERE]

EMBEDDINGS holds <encoder>_celeba20.parquet of recognisers, for general encoders <encoder>_celeba9k.parquet (of which
1,000 people are taken) and, for generated questions, <encoder>_random.parquet, as `unface encode` writes them. All is
computed from vectors: a score is the cosine of the target's vectors of the asked and the enrolled picture. In five
splits a fifth of 190 people is enrolled, each person once; of the others some set thresholds, the rest is asked with
and teaches the maps of judges.
Prints the tables; ``--record`` keeps them for docs/validate.md, with the machine in words.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from studies.counted import Counts, ceiling_counts, people_share
from studies.measured import Cell, Table, Value, markdown, write_findings
from unface import EmbeddingSet, read_embeddings
from unface.result.numbers import Estimate, Share
from unface.seeds import stream
from unface.validate.attacks import ATTACKS, load_attack
from unface.validate.hardening import Measure, judged_measure, usual_measures
from unface.validate.judges import make_judges
from unface.validate.measure import Curve, pooled, worst_curve
from unface.validate.ports import Attack, Faces, Knowledge, Picture, TemplateJudge

RECOGNISERS = ("sface", "arcface-mbf", "edgeface-s", "dlib")
GENERAL = ("sscd-int8", "dinov2-s-focus")
HARDENED = (
    ("sface", "arcface-mbf"),
    ("arcface-mbf", "edgeface-s"),
    ("edgeface-s", "arcface-mbf"),
    ("dlib", "arcface-mbf"),
)
QUERIES = (20, 50, 100, 200, 500, 1000, 2000)
SPLITS, ENROLLED = 5, 190
FAR = 1e-3
AS_IT_IS = Measure("as it is", np.copy)
Sets = dict[str, EmbeddingSet]


def main() -> None:
    """Both tables."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("embeddings", type=Path)
    given.add_argument("--record", metavar="WHERE")
    asked = given.parse_args()
    folder = asked.embeddings
    few, many, random = (read_sets(folder, name) for name in ("celeba20", "celeba9k", "random"))
    many = first_people(many, 1000)
    photographed = [Split(few, None, number) for number in range(SPLITS)]
    generated = [Split(few, random, number) for number in range(SPLITS)]
    others = [Split(many, None, number) for number in range(SPLITS)]
    rows = [
        row
        for splits, targets in ((photographed, few), (generated, random), (others, many))
        for target in targets
        for attacker in targets
        if attacker != target and attacker in RECOGNISERS and (target in GENERAL) == (splits is others)
        for row in attacked(splits, target, attacker)
    ]
    hardening = [row for pair in HARDENED if {*pair} <= set(few) for row in hardened(photographed, *pair)]
    tables = made_tables(rows, hardening)
    for table in tables.values():
        print("\n".join([*markdown(table), ""]))
    if asked.record:
        command = "python -m studies.validation EMBEDDINGS"
        write_findings("validation", command=command, where=asked.record, tables=tables)


def made_tables(rows: list[list[Cell]], hardening: list[list[Cell]]) -> dict[str, Table]:
    """One row for each target, attacker and kind of questions; then each judge alone; then hardening."""
    numbers = {f"n = {n:,}": ".0f/" for n in QUERIES}
    asked = {"target": "", "attacker's encoder": "", "questions": ""}
    key = len(asked)
    by = {(*row[:key], row[key]): row[key + 2 :] for row in rows if row[key + 1] == "all"}
    summary: list[list[Cell]] = []
    for target, attacker, kind, attack in by:
        if attack == "scores":
            scores, best, shuffled = (
                by[target, attacker, kind, name] for name in ("scores", "best-of-n", "scores, shuffled")
            )
            last = len(QUERIES) - 1
            summary.append([target, attacker, kind, *scores[:-3], best[last], shuffled[last], *scores[-3:]])
    n = f"{QUERIES[-1]:,}"
    beside = {f"best of {n}": ".1f/", f"shuffled, {n}": ".1f/"}
    ends = {"interval at 200": ".0f", "strangers": ".2f", "ceiling": ".0f"}
    alone: list[list[Cell]] = [
        [*row[:key], *row[key + 1 :]] for row in rows if row[key] == "scores" and row[key + 1] != "all"
    ]
    half = {"questions until half": ",.0f", f"matched after {n}": ".0f", "note": ""}
    return {
        "attacks": Table(columns={**asked, **numbers, **beside, **ends}, rows=summary),
        "judges": Table(columns={**asked, "judge": "", **numbers, **ends}, rows=alone),
        "hardening": Table(columns={"target": "", "attacker's encoder": "", "answers": "", **half}, rows=hardening),
    }


@dataclass(frozen=True, eq=False)
class Split:
    """A fifth of the people enrolled; ``random`` are generated faces to ask with instead of the others' pictures."""

    people: Sets
    random: Sets | None
    number: int
    attackers: dict[str, tuple[Knowledge, dict[str, Attack]]] = field(default_factory=dict)

    @cached_property
    def roles(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Identities that are asked with, that set thresholds, that are enrolled."""
        count = len(next(iter(self.people.values())).names)
        order = stream(0, "studies", "validation", "people").permutation(count)
        enrolled = np.array_split(order[:ENROLLED], SPLITS)[self.number]
        others = np.setdiff1d(order, enrolled)
        others = stream(self.number, "studies", "validation", "others").permutation(others)
        quarter = len(others) // 4
        return others[quarter:], others[:quarter], enrolled

    @cached_property
    def train(self) -> Faces:
        """In the order in which they are asked with."""
        return faces_of(self.people, self.roles[0], shuffled=self.number)

    @cached_property
    def asked(self) -> Faces:
        """Of generated faces other ones in each split."""
        if self.random is None:
            return self.train
        rows = stream(self.number, "studies", "validation", "random").permutation(len(self.random["sface"]))
        sets = {name: found.vectors[rows] for name, found in self.random.items()}
        return Faces(tuple(Picture(f"g{row}", f"g{row}".encode()) for row in rows), rows, ("nobody",), sets)

    @cached_property
    def calibrate(self) -> Faces:
        """For thresholds."""
        return faces_of(self.people, self.roles[1])

    @cached_property
    def enrolled(self) -> Faces:
        """By one picture each; the others are judged by."""
        return faces_of(self.people, self.roles[2])

    def attacker(self, encoder: str) -> tuple[Knowledge, dict[str, Attack]]:
        """Made once, so that nothing is decomposed twice."""
        if encoder not in self.attackers:
            knowledge = Knowledge(self.asked.pictures, self.asked.vectors[encoder], encoder)
            self.attackers[encoder] = knowledge, {name: load_attack(name) for name in ATTACKS}
        return self.attackers[encoder]

    def judges(self, target: str, attacker: str) -> tuple[TemplateJudge, ...]:
        """Recognisers but the target, of those that have seen the faces to ask with."""
        able = set(RECOGNISERS) & set(self.asked.vectors)

        def only(faces: Faces) -> Faces:
            kept = {name: vectors for name, vectors in faces.vectors.items() if name in able}
            return Faces(faces.pictures, faces.identities, faces.names, kept)

        return make_judges(attacker, target, only(self.train), only(self.calibrate), only(self.asked))

    def scores(self, target: str) -> NDArray[np.float64]:
        """(people, n) cosines."""
        first = [self.enrolled.rows(person)[0] for person in range(len(self.enrolled.names))]
        scores = self.enrolled.vectors[target][first] @ self.asked.vectors[target][: QUERIES[-1]].T
        return scores.astype(np.float64)


def attacked(splits: Sequence[Split], target: str, attacker: str) -> list[list[Cell]]:
    """Rows of one target and one attacker: scores by each judge and by all, best-of-n and shuffled scores by all."""
    curves: dict[str, list[Curve]] = {}
    real: list[tuple[Counts, Counts]] = []
    for split in splits:
        knowledge, attacks = split.attacker(attacker)
        judges, scores = split.judges(target, attacker), split.scores(target)
        order = stream(split.number, "studies", "validation", "shuffled").permutation(scores.shape[1])
        for name, attack, answers in (
            ("scores", "scores", scores),
            ("best-of-n", "best-of-n", scores),
            ("scores, shuffled", "scores", scores[:, order]),
        ):
            found = judged_measure(attacks[attack], AS_IT_IS, answers, knowledge, split.enrolled, judges, QUERIES)
            curves.setdefault(name, []).append(Curve.of(found, split.number))
        real.append(ceiling_counts(split.enrolled, judges))
    accepted, compared = (np.concatenate(parts, axis=-1) for parts in zip(*real, strict=True))
    rows: list[list[Cell]] = []
    kind = "photographs" if splits[0].random is None else "generated"
    for name, parts in curves.items():
        whole = pooled(parts)
        at, everybody = whole.verdicts.fars.index(FAR), list(range(len(whole.verdicts.judges)))
        benches = [([one], whole.verdicts.judges[one]) for one in everybody] if name == "scores" else []
        for judges_, judge in [*benches, (everybody, "all")]:
            points: list[Cell] = [
                [shown(whole.share(kind_, judges_, at, n)) for kind_ in ("same", "other")] for n in range(7)
            ]
            accepted_strangers, strangers = whole.strangers(judges_, at, -1)
            ceiling = people_share(accepted[judges_, at].sum(axis=0), compared[judges_].sum(axis=0), 0)
            interval = percents(whole.share("other", judges_, at, QUERIES.index(200)))[1:]
            last: list[Cell] = [interval, rounded(100 * accepted_strangers / strangers), shown(ceiling)]
            rows.append([target, attacker, kind, name, judge, *points, *last])
    print(f"{kind}: {attacker} attacks {target}", flush=True)
    return rows


def hardened(splits: Sequence[Split], target: str, attacker: str) -> list[list[Cell]]:
    """Questions until half of other pictures are matched, and the share at the most questions, by all judges."""
    curves: dict[str, list[Curve]] = {}
    for split in splits:
        knowledge, attacks = split.attacker(attacker)
        judges, scores = split.judges(target, attacker), split.scores(target)
        for measure in (AS_IT_IS, *usual_measures(scores, seed=split.number)):
            panel = [
                judged_measure(attacks[name], measure, scores, knowledge, split.enrolled, judges, QUERIES)
                for name in measure.attacks
            ]
            curves.setdefault(measure.words, []).append(worst_curve(panel, split.number))
        print(f"hardening {target} against {attacker}: split {split.number + 1}", flush=True)
    rows: list[list[Cell]] = []
    for words, parts in curves.items():
        whole = pooled(parts)
        half, note = whole.queries_to_half(FAR)
        everybody, at = list(range(len(whole.verdicts.judges))), whole.verdicts.fars.index(FAR)
        last = percents(whole.share("other", everybody, at, len(QUERIES) - 1))
        rows.append([target, attacker, words, questions(half), last, note])
    return rows


def read_sets(folder: Path, name: str) -> Sets:
    """Unit vectors of the pictures that every encoder has, in one order."""
    paths = {encoder: folder / f"{encoder}_{name}.parquet" for encoder in (*RECOGNISERS, *GENERAL)}
    found = {encoder: read_embeddings(path).unit() for encoder, path in paths.items() if path.exists()}
    if not found:
        return {}
    shared = sorted(set.intersection(*({str(one) for one in people.ids} for people in found.values())))
    rows = {encoder: {str(one): row for row, one in enumerate(people.ids)} for encoder, people in found.items()}
    return {encoder: people.take(np.array([rows[encoder][one] for one in shared])) for encoder, people in found.items()}


def first_people(sets: Sets, count: int) -> Sets:
    """Some of a large set."""
    return {name: found.take(found.identities < count) for name, found in sets.items()}


def faces_of(sets: Sets, people: NDArray[np.int64], shuffled: int | None = None) -> Faces:
    """All pictures of some identities."""
    any_set = next(iter(sets.values()))
    rows = np.flatnonzero(np.isin(any_set.identities, people))
    if shuffled is not None:
        rows = stream(shuffled, "studies", "validation", "asked").permutation(rows)
    codes = np.unique(any_set.identities[rows], return_inverse=True)[1].astype(np.int64)
    pictures = tuple(Picture(str(row), f"p{row}".encode()) for row in rows)
    names = tuple(str(number) for number in range(len(people)))
    return Faces(pictures, codes, names, {name: found.vectors[rows] for name, found in sets.items()})


def shown(share: Share | None) -> Value:
    return None if share is None else rounded(100 * share.value)


def percents(share: Share | None) -> list[Value]:
    return [] if share is None else [rounded(100 * end) for end in (share.value, share.low, share.high)]


def questions(half: Estimate | None) -> Cell:
    return f"more than {QUERIES[-1]:,}" if half is None else [rounded(end) for end in (half.value, half.low, half.high)]


def rounded(number: float) -> float:
    return float(f"{number:.4g}")


if __name__ == "__main__":
    main()
