"""Vectors that several files give to the commands."""

from pathlib import Path

import pytest

from tests.cli.quick import PEOPLE
from unface import write_embeddings


@pytest.fixture(scope="module")
def faces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("given") / "faces.parquet"
    write_embeddings(PEOPLE, path)
    return path
