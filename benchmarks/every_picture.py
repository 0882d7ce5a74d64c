"""What is lost when learning stops at the median number of pictures, on people of known covariance.

    python benchmarks/every_picture.py [runs]     sums in results/, a table in every-picture.txt

Half of 200 people have 40 pictures, half 3. Pictures of one person differ far more along some directions than along
others. Who knows that covariance divides by it, and compares by cosine: an attacker to be measured by. Identity lies
in 16 of 64 dimensions, so that what an eraser leaves of it is known exactly. Each run draws everybody anew and learns
once from every picture and once from three of each; the same pairs are judged. Runs are numbered and sums kept, so that
the command, given again, goes on where it stopped; 400 runs by default.
"""

import json
import math
import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.ratios import Ratio
from unface import ISP, EmbeddingSet
from unface.auditing import Protocol
from unface.auditing.protocol import prepare
from unface.data import Role
from unface.probe import Plan, pick_probes, run_panel
from unface.seeds import stream
from unface.threads import one_blas_thread

PEOPLE, MANY, FEW, DIM, RANK, FAR, AT_ONCE = 200, 40, 3, 64, 16, 1e-2, 20
HERE = Path(__file__).resolve().parent
SUMS = HERE / "results" / "every-picture.json"
MEASURED = {
    "told": "TAR % of cosine after whitening by the true covariance",
    "every": "TAR % of lda that learns from every picture",
    "few": "TAR % of lda that learns from three of each",
    "every left": "% of identity that ISP leaves, fitted on every picture",
    "few left": "% of identity that ISP leaves, fitted on three of each",
    "attack gain": "TAR, every picture less three",
    "eraser gain": "identity left, three less every picture",
}


def draw(number: int) -> dict[str, float]:
    """One draw of everybody: shares, and what more pictures gain."""
    rng = stream(number, "every picture")
    who = np.repeat(np.arange(PEOPLE), np.where(np.arange(PEOPLE) % 2, MANY, FEW))
    basis = np.linalg.qr(rng.standard_normal((DIM, DIM)))[0]
    identity = np.linalg.qr(rng.standard_normal((DIM, RANK)))[0]
    spread = 0.25 * np.exp(np.linspace(-0.7, 0.7, DIM))
    noise = rng.standard_normal((len(who), DIM)) * spread @ basis.T
    vectors = 0.3 * (rng.standard_normal((PEOPLE, RANK)) @ identity.T)[who] + noise
    names = [f"p{one:04d}" for one in who]
    prepared = prepare(EmbeddingSet.from_arrays(vectors, names), Protocol(far=FAR, k=(FEW, "all"), probe="lda"))
    roles, unit = prepared.roles, prepared.embeddings.vectors
    plan = Plan(fars=(FAR,), ks=prepared.ks, everything=prepared.everything, seeds=1, seed=number, threads=1)
    learned = run_panel(unit, roles, pick_probes(["lda"]), plan).trials
    white = unit @ basis / spread
    white /= np.linalg.norm(white, axis=1, keepdims=True)
    told = run_panel(white.astype(np.float32), roles, pick_probes(["cosine"]), plan).trials["cosine", FEW]
    found = {"told": told, "every": learned["lda", MANY], "few": learned["lda", FEW]}
    tars = {name: float(np.mean(one.mated[0].scores >= one.thresholds[FAR])) for name, one in found.items()}
    fit = prepared.embeddings.take(prepared.split.rows(prepared.embeddings, Role.FIT))
    place = np.arange(len(fit)) - np.searchsorted(fit.identities, fit.identities)
    left = {}
    for name, some in (("every left", fit), ("few left", fit.take(place < FEW))):
        removed = ISP(RANK).fit(some.vectors, some.identities).projection_.directions
        left[name] = 1 - float(((identity.T @ removed) ** 2).sum()) / RANK
    gains = {"attack gain": tars["every"] - tars["few"], "eraser gain": left["few left"] - left["every left"]}
    return tars | left | gains


def table(sums: Mapping[str, float]) -> list[str]:
    """Means over runs, with 95 % intervals."""
    runs = int(sums["runs"])
    lines = [f"Means of {runs} runs [95 % interval of the mean]", ""]
    for name, words in MEASURED.items():
        mean = sums[name] / runs
        error = 1.96 * math.sqrt(max(sums[f"{name}, squared"] / runs - mean**2, 0) / runs)
        lines.append(f"{100 * mean:6.1f} [{100 * (mean - error):.1f}, {100 * (mean + error):.1f}]  {words}")
    return lines


def run() -> list[Ratio]:
    """What ``make bench`` asks for: more pictures of the same people help both sides."""
    sums = sum_up(400)
    return [
        Ratio("lda, TAR of every picture ÷ of three", sums["every"] / sums["few"], 1.2, at_least=True),
        Ratio("ISP, identity left by every picture ÷ by three", sums["every left"] / sums["few left"], 0.9),
    ]


def sum_up(wanted: int) -> Mapping[str, float]:
    """Go on until there are so many runs."""
    SUMS.parent.mkdir(exist_ok=True)
    sums: dict[str, float] = defaultdict(float, json.loads(SUMS.read_text(encoding="utf-8")) if SUMS.exists() else {})
    while sums["runs"] < wanted:
        with one_blas_thread():
            for number in range(int(sums["runs"]), min(int(sums["runs"]) + AT_ONCE, wanted)):
                for name, value in draw(number).items():
                    sums[name] += value
                    sums[f"{name}, squared"] += value**2
                sums["runs"] += 1
        written = SUMS.with_suffix(".new")
        written.write_text(json.dumps(sums, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        written.replace(SUMS)
    return sums


def main() -> None:
    """Print and write the table."""
    lines = table(sum_up(int(sys.argv[1]) if len(sys.argv) > 1 else 400))
    print("\n".join(lines))
    (HERE / "every-picture.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
