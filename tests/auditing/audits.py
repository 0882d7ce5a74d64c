"""Audits as quick as can be, of people with a known answer; the costly ones are run once for all tests."""

from dataclasses import fields, replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from tests.kit.results import AuditResult, Point, SpaceResult
from unface import UnfaceError, audit, make_identities
from unface.auditing import AttributeSwap, Maps, Protocol, Sweeps, Transfer
from unface.data import EmbeddingSet, Space
from unface.erase import Projection

FEW = make_identities(40, 5, 4, between=1.5, seed=2)
"""For the raw space alone."""
RANK, DIM = 3, 16
PEOPLE = make_identities(120, 6, DIM, rank=RANK, between=3.0, seed=3)
"""They differ in three directions alone, so that an eraser of rank three leaves nothing of them."""
_BARE: dict[str, Any] = {"eraser": (), "far": 0.05, "probe": "cosine", "seeds": 1}
_QUICK: dict[str, Any] = {"eraser": "isp", "rank": RANK, "far": 0.01, "k": 2, "probe": ("cosine", "lda"), "seeds": 1}
_CHEAP: dict[str, Any] = {"bootstraps": 100, "threads": 1, "parts": ()}
_SETTINGS = {field.name for field in fields(Protocol)} - {"far", "k"}


def run(embeddings: EmbeddingSet, options: dict[str, Any]) -> AuditResult:
    """Settings of the protocol and arguments of ``audit`` in one."""
    settings = {name: value for name, value in options.items() if name in _SETTINGS}
    others = {name: value for name, value in options.items() if name not in _SETTINGS}
    return audit(embeddings, protocol=Protocol(**settings), **others)


def bare(embeddings: EmbeddingSet = FEW, **options: Any) -> AuditResult:
    """The raw vectors of a few people and one attacker."""
    return run(embeddings, _BARE | _CHEAP | options)


def quick(embeddings: EmbeddingSet = PEOPLE, **options: Any) -> AuditResult:
    """An eraser of the planted rank, at one k and one rate."""
    return run(embeddings, _quick_options(options))


@cache
def looped() -> AuditResult:
    return quick()


@cache
def several() -> AuditResult:
    """Two erasers, one of them named twice, with the parts that an audit has by default."""
    return quick(eraser=("leace", "isp", "leace"), parts=None)


class Steps:
    """How many steps of each task were announced, and how many reported."""

    def __init__(self) -> None:
        self.totals: dict[str, int] = {}
        self.done: dict[str, int] = {}

    def start(self, task: str, total: int) -> None:
        self.totals[task] = total

    def advance(self, task: str, steps: int = 1) -> None:
        self.done[task] = self.done.get(task, 0) + steps


STEPS = Steps()
"""Of ``complete``."""


@cache
def complete() -> AuditResult:
    """Every part that needs no picture."""
    parts = (Sweeps(fit_counts=(12, 36)), Maps(), Transfer(others()), AttributeSwap("glasses"))
    things = make_identities(6, 8, DIM, between=2.0, seed=9)
    return quick(wearing_glasses(), parts=parts, utility=[replace(things, source="things.npz")], progress=STEPS)


@cache
def others() -> EmbeddingSet:
    """People of another subspace."""
    return renamed(make_identities(100, 5, DIM, rank=RANK, between=3.0, seed=8), "other")


def wearing_glasses() -> EmbeddingSet:
    """The same people with one more column."""
    glasses = np.where(PEOPLE.vectors[:, 7] > 0, "yes", "no")
    return replace(PEOPLE, labels={"glasses": glasses})


def refusal(embeddings: EmbeddingSet = PEOPLE, **options: Any) -> str:
    """What a quick audit refuses, in one line."""
    return _refused(embeddings, _quick_options(options))


def _quick_options(options: dict[str, Any]) -> dict[str, Any]:
    """A rank goes with an eraser."""
    usual = _QUICK | _CHEAP
    if options.get("eraser", "isp") == ():
        usual.pop("rank")
    return usual | options


def bare_refusal(embeddings: EmbeddingSet = FEW, **options: Any) -> str:
    """The same of a bare one."""
    return _refused(embeddings, _BARE | _CHEAP | options)


def _refused(embeddings: EmbeddingSet, options: dict[str, Any]) -> str:
    with pytest.raises(UnfaceError) as caught:
        run(embeddings, options)
    sentence = str(caught.value)
    assert "\n" not in sentence
    return sentence


def space(result: AuditResult, name: str) -> SpaceResult:
    one = result.space(name)
    assert one is not None
    return one


def worst(one: SpaceResult) -> Point:
    """The one worst case of a quick audit."""
    (point,) = (point for point in one.points if point.worst)
    return point


def tar(one: SpaceResult) -> float:
    estimate = worst(one).tar
    assert estimate is not None
    return estimate.value


def about(result: AuditResult, name: str) -> str:
    """All findings about something."""
    return " ".join(finding.text for finding in result.findings if finding.about == name)


def named(embeddings: EmbeddingSet) -> list[str]:
    """The identity of each row in words."""
    return [embeddings.names[code] for code in embeddings.identities]


def renamed(embeddings: EmbeddingSet, mark: str, **options: Any) -> EmbeddingSet:
    """The same vectors, of people by other names."""
    people = [f"{mark}{name}" for name in named(embeddings)]
    return EmbeddingSet.from_arrays(embeddings.vectors, people, source=f"{mark}.npz", **options)


def axes(*which: int, dim: int = DIM) -> Projection:
    """Removes these axes and nothing else."""
    directions = np.ascontiguousarray(np.eye(dim)[:, list(which)])
    unknown = Space(encoder=None, weights_sha256=None, dim=dim, normalised=True)
    return Projection("axes", directions, np.ones(len(which)), unknown)


SECRET_PEOPLE, SECRET_IDS, SECRET_SHOOTS = "Zaphod", "holiday-photo", "Betelgeuse"


def secret_people() -> EmbeddingSet:
    """Names, ids and shoots that must not leak; one picture is there twice, so that suspects are named."""
    made = make_identities(60, 8, 8, between=1.2, seed=1)
    vectors = made.vectors.copy()
    vectors[5] = vectors[100]
    number = np.arange(len(made))
    return EmbeddingSet.from_arrays(
        vectors,
        [f"{SECRET_PEOPLE} {code}, Jr." for code in made.identities],
        ids=[f"{SECRET_IDS}-{row}" for row in number],
        labels={"shoot": [f"{SECRET_SHOOTS} {row // 4}" for row in number]},
        source="faces.parquet",
    )


@cache
def secret_audit() -> AuditResult:
    """60 identities of 8 images: k = 1, 4 and all are run, 16 is left out; the lower rates are coarse and refused."""
    settings = Protocol(
        far=(1e-2, 1e-3, 5e-4),
        probe=["cosine", "ridge", "lda", "plda"],
        seeds=2,
        bootstraps=200,
        group="shoot",
        threads=1,
    )
    return audit(secret_people(), eraser=(), protocol=settings)
