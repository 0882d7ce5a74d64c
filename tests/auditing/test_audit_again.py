"""If these fail, the same audit gives other numbers on another day, machine or order of rows."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from tests.auditing.bare import PEOPLE, quick
from unface.data import EmbeddingSet
from unface.probe import PROBES


def test_the_order_of_rows_decides_nothing() -> None:
    order = np.random.default_rng(0).permutation(len(PEOPLE))
    names = np.array(PEOPLE.names)[PEOPLE.identities]
    ids = np.array([f"i{row}" for row in range(len(PEOPLE))])
    one = EmbeddingSet.from_arrays(PEOPLE.vectors, names, ids=ids)
    other = EmbeddingSet.from_arrays(PEOPLE.vectors[order], names[order], ids=ids[order])
    assert quick(one).spaces == quick(other).spaces


CODE = """
import sys
from unface import audit, make_identities

result = audit(
    make_identities(120, 5, 40, between=0.8, seed=4),
    fars=(1e-2, 1e-3), ks=(1,), seeds=2, bootstraps=500, sweep=False, fit_counts=(20,), threads=int(sys.argv[1]),
)
print(result.model_dump_json(by_alias=True, exclude={"run"}))
"""


@pytest.mark.slow
def test_neither_threads_nor_those_of_blas_change_a_byte() -> None:
    """All probes, in processes of their own, since BLAS reads its number of threads once."""
    shown = [
        subprocess.run(
            [sys.executable, "-c", CODE, threads],
            env=os.environ | {"OPENBLAS_NUM_THREADS": blas, "OMP_NUM_THREADS": blas, "MKL_NUM_THREADS": blas},
            capture_output=True,
            check=True,
            timeout=300,
        ).stdout
        for threads, blas in (("1", "1"), ("2", "2"))
    ]
    assert shown[0] == shown[1]
    assert list(PROBES) == json.loads(shown[0])["protocol"]["probes"]


def test_the_seed_decides_everything() -> None:
    first, again, other = (quick(seed=seed).model_dump(exclude={"run"}) for seed in (0, 0, 1))
    assert first == again
    assert first["spaces"] != other["spaces"]
