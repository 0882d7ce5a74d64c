"""Vectors of test people turned back into faces, raw and after every eraser and control of the audit."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unface.auditing.bench import Bench
from unface.data import EmbeddingSet
from unface.errors import UnfaceError
from unface.invert import Attack, Generator
from unface.invert.material import FEWEST
from unface.invert.measure import Juror, People
from unface.invert.run import Case, Seen, invert
from unface.invert.view import View
from unface.output.place import Place
from unface.probe import RoleRows
from unface.result.inversion import InversionResult, TargetPeople


@dataclass(frozen=True, eq=False)
class Inverter:
    """Who inverts, and who judges."""

    view: View
    prior: Generator
    attack: Attack
    judges: Mapping[str, EmbeddingSet]
    """By name: vectors of the audited pictures by a recogniser that has no part in the attack, where it saw a face."""
    embed: Callable[[NDArray[np.uint8]], Seen]
    """How the judges see pictures."""
    place: Place
    """Keeps finished targets, so that an audit that was cut off goes on."""
    targets: int = 20
    pool: int = 2000
    """Random faces that the best is taken of, as a control."""
    again: bool = False
    """Start over, whatever is in ``place``."""


def case_of(bench: Bench, attacker: Inverter) -> Case:
    """The first test people who have a picture on which every judge sees a face."""
    audited, roles = bench.prepared.embeddings, bench.prepared.roles
    judges = {name: vectors.unit() for name, vectors in attacker.judges.items()}
    chosen, first = _targets(audited, roles.test, judges, attacker.targets)
    rows = np.flatnonzero(np.isin(roles.test.identities, chosen))
    mine, whose = roles.test.rows[rows], np.searchsorted(chosen, roles.test.identities[rows])
    people = People(
        whose.astype(np.int64),
        np.array([mine.tolist().index(row) for row in first], np.int64),
        audited.vectors[mine],
        {name: _seen(found, audited, mine) for name, found in judges.items()},
    )
    threads, calibrate = bench.attack.plan.threads, roles.calibrate
    jury = tuple(
        Juror.calibrated(name, _seen(found, audited, calibrate.rows), calibrate.identities, threads=threads)
        for name, found in judges.items()
    )
    digest = hashlib.sha256("\n".join(str(audited.ids[row]) for row in mine).encode())
    digest.update(people.vectors.tobytes())
    facts = TargetPeople(
        source=bench.given.source,
        generated=False,
        targets=len(chosen),
        pictures=len(mine),
        train=0,
        calibrate=calibrate.count,
        sha256=digest.hexdigest(),
        notes=list(bench.given.notes),
    )
    view = attacker.view
    return Case(
        view.name,
        audited.space,
        view.wanted.alignment != "none",
        people,
        jury,
        facts,
        embed=attacker.embed,
        view=view,
        prior=attacker.prior,
    )


def invert_spaces(bench: Bench, case: Case, attacker: Inverter) -> InversionResult:
    """The raw space, then every eraser's and control's, on the same targets."""
    spaces = {"raw": None, **{defence.name: defence.projection for defence in bench.defences}}
    return invert(
        case,
        [attacker.attack],
        spaces,
        attacker.place,
        seed=bench.attack.plan.seed,
        controls=attacker.pool,
        again=attacker.again,
        progress=bench.progress,
    ).result


def _targets(
    audited: EmbeddingSet, test: RoleRows, judges: Mapping[str, EmbeddingSet], most: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Codes of people, and the row of the picture of each that is attacked."""
    shown = np.all([_seen(found, audited, test.rows).any(axis=1) for found in judges.values()], axis=0)
    chosen, first = np.unique(test.identities[shown], return_index=True)
    if len(chosen) < FEWEST:
        raise UnfaceError(
            f"{audited.source}: the judges see a face on pictures of {len(chosen)} test people; --inversion needs at "
            f"least {FEWEST}"
        )
    return chosen[:most], test.rows[shown][first[:most]]


def _seen(found: EmbeddingSet, audited: EmbeddingSet, rows: NDArray[np.int64]) -> NDArray[np.float32]:
    """(n, d) of these pictures; zeros where the judge has none."""
    place = {str(name): row for row, name in enumerate(found.ids)}
    vectors = np.zeros((len(rows), found.space.dim), np.float32)
    for at, row in enumerate(rows):
        if (there := place.get(str(audited.ids[row]))) is not None:
            vectors[at] = found.vectors[there]
    return vectors
