"""People with everything known: Gaussian identities, seen by three recognisers through a rotation and noise each."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unface.data import make_identities
from unface.judge.template import unit_rows
from unface.seeds import stream
from unface.validate.judges import VectorJudge, make_judges
from unface.validate.oracle import Replayed
from unface.validate.ports import Attack, Faces, Knowledge, Picture, Recovered

DIM = 24
RECOGNISERS = ("own", "target", "second")
QUERIES = (10, 50, 160)


@dataclass(frozen=True, eq=False)
class World:
    """Faces to ask with and to learn maps from, to set thresholds with, and enrolled people."""

    asked: Faces
    calibrate: Faces
    enrolled: Faces
    judges: tuple[VectorJudge, ...]

    @property
    def knowledge(self) -> Knowledge:
        return Knowledge(self.asked.pictures, self.asked.vectors["own"], "own")

    @property
    def scores(self) -> NDArray[np.float64]:
        """(people, n): the target's cosines of each asked face with the enrolled pictures."""
        first = [self.enrolled.rows(person)[0] for person in range(len(self.enrolled.names))]
        enrolled, asked = self.enrolled.vectors["target"][first], self.asked.vectors["target"]
        return (enrolled @ asked.T).astype(np.float64)

    def run(self, attack: Attack, answers: NDArray[np.float64], *, decisions_only: bool = False) -> list[Recovered]:
        knowledge = self.knowledge
        oracles = [Replayed(knowledge.pictures, row, decisions_only=decisions_only) for row in answers]
        return [attack.run(oracle, knowledge, QUERIES) for oracle in oracles]


def world(noise: float = 0.02, people: int = 30) -> World:
    drawn = make_identities(200 + people, 6, DIM, between=1.0, within=0.35, seed=5)
    seen = {name: _seen(drawn.vectors, name, noise) for name in RECOGNISERS}
    asked, calibrate, enrolled = (
        _faces(seen, drawn.identities, start, stop) for start, stop in ((0, 100), (100, 200), (200, 200 + people))
    )
    return World(asked, calibrate, enrolled, make_judges("own", "target", asked, calibrate, asked))


def _seen(vectors: NDArray[np.float32], name: str, noise: float) -> NDArray[np.float32]:
    draw = stream(0, "world", name)
    rotation = np.linalg.qr(draw.standard_normal((DIM, DIM)))[0]
    unit = unit_rows(vectors)
    return unit_rows(unit @ rotation + noise * draw.standard_normal(unit.shape)).astype(np.float32)


def _faces(seen: dict[str, NDArray[np.float32]], identities: NDArray[np.int64], start: int, stop: int) -> Faces:
    rows = np.flatnonzero((identities >= start) & (identities < stop))
    rows = stream(0, "world", "order", start).permutation(rows) if start == 0 else rows
    pictures = tuple(Picture(f"{row}", f"{row}".encode()) for row in rows)
    names = tuple(f"p{code}" for code in range(start, stop))
    return Faces(pictures, identities[rows] - start, names, {name: vectors[rows] for name, vectors in seen.items()})
