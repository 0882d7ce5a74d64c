"""Ledgers as a killed ``validate`` leaves them: made by ``killed_states.py``, and continued here.

A ledger is one file that only grows, so what a kill leaves is a beginning of it, also one that ends within a line. The
recognisers and the system that is asked are vectors in a file: no weights are needed.
"""

from collections.abc import Sequence
from pathlib import Path
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from tests.golden.killed_states import Entry, pack
from unface.validate.judges import make_judges
from unface.validate.ledger import Ledger
from unface.validate.ports import Faces, Knowledge, Picture, Refused
from unface.validate.run import Case, Plan, Validated, validate
from unface.validate.targets import OpenedTarget

_RECOGNISERS = ("own", "target", "second")
_VECTORS, LEDGER = Path("in/vectors.npz"), Path("ledger.jsonl")
_ASKED, _CALIBRATE, _ENROLLED = (0, 30), (30, 65), (65, 70)
BUDGET, BATCH = 20, 7


class Service:
    """Answers with cosines, until it has had ``limit`` questions; ``sent`` are those that arrived."""

    name = "toy"
    decisions_only = False
    batch = BATCH

    def __init__(self, asked: Faces, enrolled: Faces, limit: int | None) -> None:
        self.sent: list[tuple[str, str]] = []
        self._limit = limit
        first = [enrolled.rows(at)[0] for at in range(len(enrolled.names))]
        self._people = dict(zip(enrolled.names, enrolled.vectors["target"][first], strict=True))
        self._faces = {
            picture.sha256: vector
            for faces in (asked, enrolled)
            for picture, vector in zip(faces.pictures, faces.vectors["target"], strict=True)
        }

    def score(self, person: str, pictures: Sequence[Picture]) -> NDArray[np.float64]:
        if self._limit is not None and len(self.sent) + len(pictures) > self._limit:
            raise Refused("banned")
        self.sent += [(person, picture.sha256) for picture in pictures]
        return np.array([float(self._faces[picture.sha256] @ self._people[person]) for picture in pictures])


def run(limit: int | None = None) -> tuple[Validated, Service]:
    """Begin or continue the ledger of the present folder."""
    with np.load(_VECTORS) as arrays:
        identities, vectors = arrays["identities"], {name: arrays[name] for name in _RECOGNISERS}
    asked, calibrate, enrolled = (_faces(identities, vectors, *span) for span in (_ASKED, _CALIBRATE, _ENROLLED))
    service = Service(asked, enrolled, limit)
    case = Case(
        OpenedTarget(service, "function", True, "sha"),
        enrolled,
        Knowledge(asked.pictures, asked.vectors["own"], "own"),
        make_judges("own", "target", asked, calibrate, asked),
        "nobody",
        "nobody",
        enrolled_generated=True,
    )
    return validate(case, Plan(BUDGET, hardening=False), LEDGER), service


def _faces(identities: NDArray[np.int64], vectors: dict[str, NDArray[np.float32]], start: int, stop: int) -> Faces:
    rows = np.flatnonzero((identities >= start) & (identities < stop))
    pictures = tuple(Picture(f"{row}", f"{row}".encode()) for row in rows)
    names = tuple(f"p{code}" for code in range(start, stop))
    return Faces(pictures, identities[rows] - start, names, {name: of[rows] for name, of in vectors.items()})


def make() -> dict[str, str]:
    """Write the archives, in the present folder; returns the step of each by the name of its archive."""
    from unface.data import make_identities

    drawn = make_identities(70, 3, 6, between=1.0, within=0.35, seed=5)
    vectors = {}
    for name in _RECOGNISERS:
        random = np.random.default_rng([5, *name.encode()])
        turned = drawn.vectors @ np.linalg.qr(random.standard_normal((6, 6)))[0]
        noisy = turned + 0.02 * np.linalg.norm(turned, axis=1, keepdims=True) * random.standard_normal(turned.shape)
        vectors[name] = (noisy / np.linalg.norm(noisy, axis=1, keepdims=True)).astype(np.float32)
    _VECTORS.parent.mkdir()
    np.savez(_VECTORS, identities=drawn.identities, **vectors)
    pack("ledger-inputs", [Entry("in", 0o755, 0), Entry(str(_VECTORS), 0o644, 0, _VECTORS.read_bytes())])
    beginnings = _beginnings(None)
    banned = _beginnings(45)
    whole = beginnings[-1]
    chosen = {
        "begun": beginnings[0],
        "first batch counted": beginnings[1],
        "first batch answered": beginnings[2],
        "within a question": beginnings[3][:-40],
        "within an answer": beginnings[6][:-5],
        "half of them counted": beginnings[len(beginnings) // 2 // 2 * 2 + 1],
        "half of them answered": beginnings[len(beginnings) // 2 // 2 * 2 + 2],
        "all answered": whole,
        "banned": banned[-1],
        "banned and within its last line": banned[-1][:-10],
    }
    made = {}
    for number, (step, content) in enumerate(chosen.items(), 1):
        archive = f"ledger-{number:02d}-{step.replace(' ', '-')}"
        pack(archive, [Entry(str(LEDGER), 0o600, 0, content)])
        made[archive] = step
    return made


def _beginnings(limit: int | None) -> list[bytes]:
    """The ledger after each of its writes."""
    LEDGER.unlink(missing_ok=True)
    seen: list[bytes] = []
    write = Ledger._write

    def watched(self: Ledger, *given: object, **more: object) -> None:
        write(self, *given, **more)  # type: ignore[arg-type]
        seen.append(LEDGER.read_bytes())

    with patch.object(Ledger, "_write", watched):
        run(limit)
    return seen
