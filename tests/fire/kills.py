"""Kill runs under write traffic, give the same command again, and compare what is there with what was committed."""

import json
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.fire.held_run import Ended, HeldRun
from tests.fire.target import Found, Target
from tests.fire.traffic import Pool, Traffic, Truth
from tests.progress_line import ProgressLine
from tests.stores.contract import projection
from unface import Projection
from unface.scale import released_vectors

PROJECTION = projection()
NEAR = 2e-6
_ALREADY = "already sanitised with this projection"


@dataclass
class Tally:
    kills: int = 0
    trials: int = 0
    changes: int = 0
    """That clients made."""
    arrived: int = 0
    """Rows that receipts list as written raw during a run."""
    at: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)


@dataclass
class Attempt:
    """One run of the command."""

    ended: Ended
    receipt: dict[str, Any] | None
    last_look: float
    """When the run last began to look for rows that had arrived raw; infinite if it never did."""
    hits: int = 0
    steps: list[tuple[str, float]] = field(default_factory=list)
    """Names, and how long each took."""


@dataclass(frozen=True)
class Shot:
    """Clients write between two steps of a run, which is hit at step ``aimed`` or within it."""

    traffic: Traffic
    opened: int
    closed: int
    aimed: int | None
    steps: list[tuple[str, float]]
    """Of an undisturbed run."""
    rng: np.random.Generator

    def direct_traffic(self, step: int) -> None:
        if step == 0 < self.opened:
            self.traffic.quiet()
        elif step == self.opened:
            self.traffic.open()
        elif step == self.closed:
            self.traffic.pause()


def fire(
    target: Target,
    kills: int,
    seed: int,
    folder: Path,
    say: Callable[[str], None] = lambda line: None,
    by: Projection = PROJECTION,
) -> Tally:
    """So many kills, at steps and between them. If ``by`` shortens vectors, clients cannot write after the swap."""
    (folder / "p").mkdir(exist_ok=True)
    by.save(folder / "p" / "p.safetensors")
    target.fill(Pool(seed))
    measured = _attempt(target, folder, purge=True)
    assert measured.ended.code == 0, measured.ended
    tally, line = Tally(), ProgressLine("kills", kills)
    for number in range(20 * kills):
        line.tell(tally.kills, len(tally.violations))
        if tally.kills >= kills:
            break
        before = len(tally.violations)
        _trial(target, folder, measured.steps, 1000 * seed + number + 1, tally, by)
        for violation in tally.violations[before:]:
            say(f"  trial {number}: {violation}")
    return tally


def _trial(
    target: Target, folder: Path, steps: list[tuple[str, float]], seed: int, tally: Tally, by: Projection
) -> None:
    rng, pool = np.random.default_rng(seed), Pool(seed)
    target.fill(pool)
    traffic = Traffic(target.connect, pool, target.rows, target.clients, seed, target.pause)
    purge = bool(rng.integers(2))
    attempts: list[Attempt] = []
    swap = next(number for number, (name, _) in enumerate(steps) if name == "swap")
    for most in (1, int(rng.random() < 0.3), 0):
        # Under writes that never pause no run gets through, so most begin when the raw vectors have been staged.
        opened = 0 if rng.random() < 0.25 else int(rng.integers(swap, len(steps)))
        # Steps that only look are many, and harm little.
        weights = np.array(
            [0.0] + [1.0 if name.lstrip().startswith(("SELECT", "WITH")) else 4.0 for name, _ in steps[1:]]
        )
        aimed = int(rng.choice(len(steps), p=weights / weights.sum())) if most else None
        shot = Shot(traffic, opened, opened + int(rng.integers(1, 60)), aimed, steps, rng)
        attempts.append(_attempt(target, folder, purge, shot))
        tally.kills += attempts[-1].hits
        if attempts[-1].hits and aimed is not None:
            tally.at[steps[aimed][0].split(" public.")[0][:40]] += 1
    truth = traffic.stop()
    tally.trials += 1
    tally.changes += truth.changes
    found = list(truth.faults)
    try:
        found += _faults_after_writes(target, pool, truth, attempts[-1])
        attempts.append(_attempt(target, folder, purge))
        found += _faults_at_the_end(target, pool, truth, attempts, purge, by)
    except Exception as error:  # the store cannot be read any more
        found.append(f"{type(error).__name__}: {error}"[:600])
    tally.arrived += sum(int(str(each.receipt["arrived"])) for each in attempts if each.receipt)
    story = " | ".join(f"{each.ended.code} {each.ended.errors.strip()[-160:]}" for each in attempts)
    tally.violations += [f"seed {seed}, purge {purge}: {fault}   [{story}]" for fault in found]


def _attempt(target: Target, folder: Path, purge: bool, shot: Shot | None = None) -> Attempt:
    """One run, and its receipt."""
    receipt = folder / "p" / "receipt.json"
    receipt.unlink(missing_ok=True)
    arguments = ["apply", str(folder / "p" / "p.safetensors"), "--store", target.url(), "--receipt", str(receipt)]
    run = HeldRun([*arguments, "--quiet", *(["--purge"] if purge else [])], target.wrap, folder)
    made = Attempt(Ended(None, "", ""), None, np.inf)
    for number, step in enumerate(run):
        if made.steps:
            name, begun = made.steps[-1]
            made.steps[-1] = (name, time.monotonic() - begun)
        made.steps.append((step.name, time.monotonic()))
        if step.name == "erase_arrivals":
            made.last_look = time.monotonic()
        if shot is not None:
            shot.direct_traffic(number)
            if number == shot.aimed:
                made.hits = 1
                longest = shot.steps[number][1]
                seconds = float(shot.rng.uniform(0, longest)) if shot.rng.random() < 0.6 else 0.0
                target.hit(run, step, shot.rng, _pause(run, seconds))
    made.ended = run.ended()
    if receipt.exists():
        made.receipt = json.loads(receipt.read_bytes())
    return made


def _pause(run: HeldRun, seconds: float) -> Callable[[], None]:
    def pause() -> None:
        if seconds:
            run.go()
            run.is_held_or_over(seconds)

    return pause


def _faults_after_writes(target: Target, pool: Pool, truth: Truth, last: Attempt) -> list[str]:
    """Right after a run that ended well, while clients wrote: raw is only what came after its last look."""
    if last.receipt is None:
        return []
    faults = []
    for row, found in target.read().items():
        written = truth.written.get((row, found.version), 0.0)
        if _is_raw(found, pool, row) and written < last.last_look:
            faults.append(f"row {row} was committed before the last look, and the receipt leaves it raw")
    return faults[:3]


def _faults_at_the_end(
    target: Target, pool: Pool, truth: Truth, attempts: list[Attempt], purge: bool, by: Projection
) -> list[str]:
    """After the same command was given once more, and nobody wrote."""
    faults = [fault for attempt in attempts if (fault := attempt.ended.fault())]
    last = attempts[-1]
    if last.ended.code != 0 and _ALREADY not in last.ended.errors:
        faults.append(f"the same command does not finish: {last.ended.errors.strip()}")
    there = target.read()
    wanted = {row: version for row, version in truth.versions.items() if version is not None}
    erased = _erased(pool, wanted, by)
    for row in sorted(wanted.keys() | there.keys()):
        if row not in there:
            faults.append(f"row {row} is lost")
        elif row not in wanted:
            faults.append(f"row {row} was deleted and is back")
        elif there[row].version != wanted[row]:
            faults.append(f"row {row} has version {there[row].version}, {wanted[row]} was committed")
        elif not _is_near(there[row].vector, erased[row]):
            faults.append(f"row {row} is {'raw' if _is_raw(there[row], pool, row) else 'neither raw nor erased'}")
    if not purge:
        kept = target.kept()
        raw = {row: pool.raw(row, version) for row, version in wanted.items()}
        lost = [row for row in wanted if kept is not None and not (row in kept and np.array_equal(kept[row], raw[row]))]
        faults += [f"the raw vector of row {row} is not kept" for row in lost[:3]]
    return faults[:6] + target.faults(purge) + _raw_bytes(target, pool, truth, attempts)


def _raw_bytes(target: Target, pool: Pool, truth: Truth, attempts: list[Attempt]) -> list[str]:
    """Files with raw vectors that were there when the last receipt was written, and that it does not list."""
    purged = [each for each in attempts if each.receipt and each.receipt["raw_purged"]]
    if not purged:
        return []
    notes = " ".join(map(str, purged[-1].receipt["notes"] if purged[-1].receipt else []))
    rows = range(0, target.rows, target.rows // 8)
    written = [pair for pair, when in truth.written.items() if when < purged[-1].last_look]
    vectors = [pool.raw(row, 0) for row in rows] + [pool.raw(*pair) for pair in written[:: len(written) // 8 + 1]]
    patterns = [vector.astype("<f4").tobytes() for vector in vectors]
    found = [path for path in target.files() if any(pattern in path.read_bytes() for pattern in patterns)]
    return [
        f"raw vectors in {path}, which the receipt does not list" for path in found if not target.lists(notes, path)
    ]


def _erased(pool: Pool, wanted: dict[int, int], by: Projection) -> dict[int, NDArray[np.float32]]:
    raw = np.stack([pool.raw(row, version) for row, version in wanted.items()])
    return dict(zip(wanted, released_vectors(by, raw, "here"), strict=True))


def _is_raw(found: Found, pool: Pool, row: int) -> bool:
    return _is_near(found.vector, pool.raw(row, found.version))


def _is_near(one: NDArray[np.float32], other: NDArray[np.float32]) -> bool:
    return one.shape == other.shape and np.allclose(one, other, rtol=0, atol=NEAR)
