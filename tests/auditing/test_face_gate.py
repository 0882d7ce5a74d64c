"""If these fail, an audit measures another gate than is shipped, or a gate that was fitted on those it is judged on."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

from tests.auditing.audits import DIM, PEOPLE, RANK, quick, refusal, space
from tests.kit.command import unface
from tests.kit.results import AuditResult
from unface import make_identities
from unface.auditing import Sweeps, fit_certified, fit_streamed
from unface.data import EmbeddingSet, Role, Space, split_identities, write_embeddings
from unface.erase import Projection

# Faces lie far out along one direction in which people do not differ; things do not.
SHIFT = np.eye(DIM, dtype=np.float32)[DIM - 1] * 12
FACES = EmbeddingSet.from_arrays(
    PEOPLE.vectors + SHIFT, [f"face {code}" for code in PEOPLE.identities], source="faces.parquet"
)
THINGS = replace(make_identities(12, 30, DIM, between=0.8, seed=7), source="things.parquet")


def parquet(path: Path, vectors: NDArray[np.float32]) -> None:
    """Vectors and nothing else."""
    pq.write_table(pa.table({"vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), DIM)}), path)


@cache
def gated() -> AuditResult:
    return quick(FACES, gate=THINGS, utility=[THINGS], rank=10, parts=(Sweeps(),))


@cache
def ungated() -> AuditResult:
    return quick(FACES, utility=[THINGS], rank=10)


def test_every_eraser_and_control_of_the_audit_stands_behind_the_same_gate() -> None:
    uses = {one.name: one.erasure.gate for one in gated().spaces if one.erasure}
    assert set(uses) == {"isp", "random", "pca"}
    assert None not in uses.values()
    assert len(set(uses.values())) == 1
    source = gated().gate_source
    assert source is not None
    assert source.sha256 == THINGS.sha256()
    assert all(one.erasure is None or one.erasure.gate is None for one in ungated().spaces)


def test_faces_lose_as_much_as_without_a_gate_and_things_lose_nothing() -> None:
    for name in ("isp", "pca", "random"):
        tars = [[p.tar.value for p in space(result, name).points if p.tar] for result in (gated(), ungated())]
        assert tars[0] == pytest.approx(tars[1], abs=0.02), "but for the odd face that the gate misses"
    kept, lost = ({one.measure: one.retained.value for one in space(r, "random").utility} for r in (gated(), ungated()))
    assert min(kept["knn"], kept["linear"]) > 0.98
    assert lost["knn"] < 0.9


def test_the_ranks_of_a_sweep_are_gated_too() -> None:
    (sweep,) = gated().parts["sweeps"].sweeps
    assert min(one.retained.value for point in sweep.points for one in point.utility if one.measure == "knn") > 0.95


def test_half_of_the_fit_people_set_the_threshold_and_test_people_take_no_part() -> None:
    use = space(gated(), "isp").erasure.gate  # type: ignore[union-attr]
    assert use is not None
    fit = gated().roles.fit
    assert use.certificate.people.denominator == pytest.approx(fit / 2, abs=1)
    assert use.certificate.missed.denominator == use.certificate.people.denominator * 6
    assert use.missed_here.denominator == gated().roles.test * 6
    assert use.missed_here.numerator == 0
    said = [finding.text for finding in gated().findings if finding.about == "face gate"]
    assert said[-1].endswith(f"; of {use.missed_here.denominator:,} pictures of test identities it misses 0")
    assert "needs 2,995 held-out people" in said[0]


def test_a_missed_face_is_measured_as_it_is() -> None:
    """A gate that knows other faces than these: all pass as they are, the audit says so, and nothing is gained."""
    other = fit_certified(
        replace(FACES, vectors=PEOPLE.vectors - SHIFT, source="others"), rank=RANK + 1, gate=THINGS, hold_out=0
    )
    result = quick(FACES, eraser=(), projections=[other])
    found = space(result, "projection")
    assert [point.tar for point in found.points] == [point.tar for point in result.raw.points]
    assert found.erasure is not None
    assert found.erasure.gate is not None
    assert found.erasure.gate.missed_here.value == 1
    assert any("100.0 % of the pictures of test identities pass the gate unerased" in f.text for f in result.findings)
    assert {one.erasure.gate for one in result.spaces if one.erasure} == {found.erasure.gate}, "controls alike"


def test_fit_behind_a_gate_is_the_same_in_memory_and_from_a_folder_but_for_who_sets_the_threshold(
    tmp_path: Path,
) -> None:
    write_embeddings(FACES, tmp_path / "a.parquet")
    whole, streamed = (
        fit_certified(FACES, rank=RANK, gate=THINGS, miss=0.05),
        fit_streamed(tmp_path, rank=RANK, gate=THINGS, miss=0.05),
    )
    assert np.abs(whole.directions - streamed.directions).max() < 1e-6
    assert whole.gate is not None
    assert streamed.gate is not None
    held = split_identities(FACES.names, shares={Role.FIT: 0.8, Role.TEST: 0.2}, seed=0).counts()[Role.TEST]
    assert streamed.gate.certificate.people.denominator == held
    assert whole.gate.weights @ streamed.gate.weights > 0.9
    assert streamed.gate.certificate.taken.value < 0.02


@pytest.mark.parametrize(
    ("gate", "said"),
    [
        (
            replace(THINGS, space=Space("other", None, DIM, normalised=False)),
            "--gate things.parquet: two embedding spaces never mix: unknown encoder",
        ),
        (make_identities(12, 30, DIM + 1), "--gate synthetic: two embedding spaces never mix: "),
        (
            replace(FACES, source="more.parquet"),
            "--gate more.parquet: 720 pairs of nearly the same vector (cosine ≥ 0.999) here and in faces.parquet",
        ),
        (
            replace(make_identities(60, 6, DIM, seed=11), vectors=make_identities(60, 6, DIM, seed=11).vectors + SHIFT),
            "% of the gate set is taken for faces, so the gate would let almost nothing through",
        ),
        (THINGS.take(np.arange(19)), "--gate things.parquet: gate: 19 vectors in the gate set; at least 20 are needed"),
    ],
    ids=["other encoder", "other dimension", "the audited faces", "faces", "too few"],
)
def test_a_gate_set_that_cannot_be_one_is_refused(gate: EmbeddingSet, said: str) -> None:
    assert said in refusal(FACES, gate=gate)


def test_a_gate_without_an_eraser_and_a_miss_rate_without_a_gate_are_refused(tmp_path: Path) -> None:
    assert refusal(FACES, gate=THINGS, eraser=()).startswith("--gate: no eraser is fitted in this audit")
    write_embeddings(FACES, tmp_path / "faces.parquet")
    done = unface("fit", tmp_path / "faces.parquet", "--out", tmp_path / "p", "--miss", "0.01")
    assert (done.code, done.err.startswith("unface: --miss: is about a face gate")) == (1, True)


def test_the_command_line_reads_a_gate_set_without_identities_and_prints_what_it_certifies(tmp_path: Path) -> None:
    write_embeddings(FACES, tmp_path / "faces.parquet")
    parquet(tmp_path / "things.parquet", THINGS.vectors)
    out = tmp_path / "p.safetensors"
    done = unface(
        "fit", tmp_path / "faces.parquet", "--gate", tmp_path / "things.parquet", "--miss", "0.1", "--out", out
    )
    assert (done.code, done.err) == (0, "")
    gate = Projection.load(out).gate
    assert gate is not None
    assert gate.certificate.asked == 0.1
    (line,) = [line for line in done.out.splitlines() if line.startswith("face gate: misses ")]
    assert line.endswith(" % of the gate set for faces")
    applied = unface("apply", out, tmp_path / "things.parquet", tmp_path / "out.parquet", "--verify")
    assert (applied.code, "; 360 are not faces and stay as they are" in applied.out) == (0, True)
    empty = tmp_path / "empty.parquet"
    parquet(empty, THINGS.vectors[:0])
    done = unface("fit", tmp_path / "faces.parquet", "--gate", empty, "--out", tmp_path / "q")
    assert (done.code, done.err) == (1, "unface: empty.parquet: no rows; give some vectors\n")


def test_with_copies_the_gate_lies_lower_and_a_utility_set_that_is_the_gate_set_is_told() -> None:
    faded = EmbeddingSet.from_arrays(
        FACES.vectors - np.float32(0.6) * SHIFT,
        [FACES.names[code] for code in FACES.identities],
        ids=[f"copy of {name}" for name in FACES.ids],
        labels={"copy_of": FACES.ids},
        source="copies.parquet",
    )
    result = quick(FACES, gate=THINGS, copies=faded)
    use, plain = (space(one, "isp").erasure for one in (result, gated()))
    assert use is not None
    assert plain is not None
    assert use.gate is not None
    assert plain.gate is not None
    assert use.gate.certificate.missed.denominator == plain.gate.certificate.missed.denominator
    assert use.gate.certificate.taken.value > plain.gate.certificate.taken.value
    told = [finding.text for finding in gated().findings if finding.about == "utility"]
    assert told == [
        "360 vectors of things.parquet also in the gate set, so utility looks better than it is: measure on "
        "other pictures"
    ]
    fitted = fit_certified(FACES, rank=RANK, gate=THINGS, copies=faded, hold_out=0).gate
    assert fitted is not None
    assert fitted.certificate.missed.numerator == 0
