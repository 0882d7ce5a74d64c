"""If these fail, a name in somebody else's file moves the cursor, retitles the window or floods the terminal."""

import re
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.kit.command import unface
from tests.stores.contract import projection, raw_vectors
from unface import UnfaceError
from unface.errors import printable

ESCAPE = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e\u2028"
LONG = "x" * 5_000_000
CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufeff]")
HOSTILE = pytest.mark.parametrize(
    "name", [f"a{ESCAPE}z", f"[red]a{ESCAPE}z[/red]", LONG], ids=["escape", "markup", "long"]
)


def require_harmless(text: str, most: int = 60_000) -> None:
    assert CONTROL.findall(text) == []
    assert 0 < len(text) < most


@HOSTILE
def test_a_column_of_a_strangers_file_is_named_without_them(name: str, tmp_path: Path) -> None:
    pq.write_table(pa.table({name: [1], "vector": [1]}), tmp_path / "faces.parquet")
    done = unface("audit", tmp_path / "faces.parquet", "--out", tmp_path / "out")
    assert done.code == 1
    require_harmless(done.err, 3_000)
    assert done.err.startswith("unface: faces.parquet")
    assert done.err.count("\n") == 1


@HOSTILE
def test_the_kind_of_a_strangers_projection_is_printed_without_them(name: str, tmp_path: Path) -> None:
    np.save(tmp_path / "faces.npy", raw_vectors())
    replace(projection(), kind=name[:50_000]).save(tmp_path / "p.safetensors")
    done = unface("apply", tmp_path / "p.safetensors", "--store", f"npy:{tmp_path / 'faces.npy'}")
    assert done.code == (1 if name == LONG else 0)  # a header of that size is refused
    require_harmless(done.out + done.err, 3_000)


def test_a_long_line_keeps_its_beginning_and_its_advice() -> None:
    with patch("unface.cli.app.app", side_effect=UnfaceError(f"faces.parquet: {LONG} is no column; name one")):
        done = unface("schema")
    assert done.err.startswith("unface: faces.parquet: xxx")
    assert done.err.endswith("xxx is no column; name one\n")
    require_harmless(done.err, 3_000)


def test_what_people_write_stays_as_it_is() -> None:
    text = "Zoë’s 図書館\u202f/\u00a0faces: 12\u2009% → −3 [−4, −2] ◂ ✗ · …"
    assert printable(text) == text
    assert printable("a\x1b[31m\udcff\n") == "a\\x1b[31m\\udcff\n"
