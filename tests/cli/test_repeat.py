"""If this fails, the command that a report prints to repeat its audit does not work, or measures something else."""

import shlex
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.kit import documents
from tests.kit.command import unface
from unface import AuditResult, make_identities


@pytest.mark.parametrize("far", [[], ["--far", "0.02,1e-2"]], ids=["default rates", "rates"])
def test_the_command_can_be_pasted_and_measures_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, far: list[str]
) -> None:
    people = make_identities(120, 4, 8, between=1.5, seed=2)
    vectors = people.vectors.copy()
    vectors[5] = np.nan
    columns = {"who": np.array(people.names)[people.identities], "emb": list(vectors), "key": people.ids}
    pq.write_table(pa.table({**columns, "shoot": np.arange(len(people)) % 7}), tmp_path / "my faces.parquet")
    monkeypatch.chdir(tmp_path)
    named = ["--identity-column", "who", "--vector-column", "emb", "--id-column", "key", "--group", "shoot"]
    quick = ["--sample", "110", "--bad-rows", "drop", "--probe", "cosine,lda", "--seeds", "1", "--bootstraps", "100"]
    parts = ["--no-sweep", "--no-maps", "--rank", "3", "--k", "2", "--album", "none", "--seed", "3"]
    done = unface("audit", "my faces.parquet", "--out", "first", "--quiet", *named, *quick, *parts, *far)
    assert (done.code, done.err) == (0, "")
    first = AuditResult.load("first")
    again = unface(*shlex.split(documents.repeated(first)[0].replace("\\\n", " "))[1:], "--quiet")
    assert (again.code, again.err) == (0, "")
    second = AuditResult.load("audit")
    assert second.model_dump(exclude={"run"}) == first.model_dump(exclude={"run"})
