"""If these fail, a Parquet file of some kilobytes with a long text takes far more memory than its budget."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.refusals.table import refused
from tests.test_memory import projection
from unface import read_embeddings
from unface.data import read_images
from unface.scale.executor import overlapped
from unface.scale.part import _same

# No fork of a process that has imported everything: what a command imports is part of what its budget has room for.
TELLS_ITS_PEAK = """
import sys
from unface.cli import main

sys.argv[0] = "unface"
try:
    main()
finally:  # not ru_maxrss, which starts from the peak of the process that forked it: this one, after other tests
    print(open("/proc/self/status").read().split("VmHWM:")[1].split()[0])
"""
ROWS = 400
LONG = 200_000_000
"""Letters of a text: a run takes it twice, as a page and as a value."""


def vectors(rows: int) -> pa.Array:
    numbers = np.random.default_rng(0).standard_normal(8 * ROWS).astype(np.float32)
    return pa.FixedSizeListArray.from_arrays(pa.array(np.resize(numbers, 8 * rows)), 8)


def shared(words: list[str], rows: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(np.arange(rows, dtype=np.int32) % len(words)), pa.array(words))


def people(rows: int) -> pa.Array:
    return pa.array([f"p{row // 4}" for row in range(rows)])


def write(path: Path, columns: dict[str, pa.Array], **options: object) -> None:
    usual = {"compression": "zstd", "store_schema": False, "write_statistics": False}
    pages = {"dictionary_pagesize_limit": 1 << 30, "data_page_size": 1 << 30}
    pq.write_table(pa.table({"vector": vectors(len(columns["identity"])), **columns}), path, **usual | pages | options)
    assert path.stat().st_size < 200_000


def text_of_all_rows(path: Path) -> None:
    write(path, {"identity": people(ROWS), "text": shared(["\0" * LONG], ROWS)})


def plain_page(path: Path) -> None:
    write(path, {"identity": people(ROWS), "text": pa.array(["x" * LONG] + ["y"] * (ROWS - 1))}, use_dictionary=False)


def prefix_of_the_value_before(path: Path) -> None:
    texts = pa.array(["x" * (LONG // 1000)] * 2000)
    how = {"use_dictionary": False, "column_encoding": {"text": "DELTA_BYTE_ARRAY"}}
    write(path, {"identity": pa.array(np.arange(2000)), "text": texts}, **how)


def identities(path: Path) -> None:
    write(path, {"identity": shared([letter * (LONG // 4) for letter in "abcd"], ROWS)})


def short_identities_of_many_rows(path: Path) -> None:
    write(path, {"identity": shared(["a" * 20_000, "b" * 20_000], 12_000)})


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (text_of_all_rows, ["audit", "IN", "--out", "out"]),
        (plain_page, ["apply", "P", "IN", "out.parquet"]),
        (prefix_of_the_value_before, ["apply", "P", "IN", "out.parquet"]),
        (identities, ["release", "IN", "--training", "IN", "--holdout", "IN", "--out", "out"]),
        (short_identities_of_many_rows, ["fit", "folder", "--out", "out.safetensors"]),
    ],
    ids=lambda value: value.__name__ if callable(value) else value[0],
)
def test_a_command_refuses_a_long_text_within_its_budget(tmp_path: Path, make: object, words: list[str]) -> None:
    path = tmp_path / "folder" / "faces.parquet"
    path.parent.mkdir()
    make(path)  # type: ignore[operator]
    projection(8).save(tmp_path / "P")
    given = ["--memory", "512M", *(str(path) if word == "IN" else word for word in words)]
    child = subprocess.run(
        [sys.executable, "-c", TELLS_ITS_PEAK, *given], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    refused = "faces.parquet: needs more memory than the budget of 512 MB; raise --memory"
    assert (child.returncode, child.stderr) == (1, f"unface: {refused}\n")
    assert int(child.stdout) << 10 < 512 << 20
    assert sorted(one.name for one in tmp_path.iterdir()) == ["P", "folder"]


def test_a_long_text_beside_vectors_is_no_label_and_no_name(tmp_path: Path) -> None:
    path, long = tmp_path / "faces.parquet", "é" * 40_000
    write(path, {"identity": people(ROWS), "text": shared([long, "b"], ROWS), "note": shared(["a" * 65_536], ROWS)})
    read = read_embeddings(path)
    assert set(read.labels) == {"note"}
    assert read.notes == ("column 'text' left out: its texts are too long for labels",)
    for column in ("identity", "id"):
        write(path, {"identity": people(ROWS), column: shared(["a" * 65_537, "b"], ROWS)})
        with refused("vectors", "faces.parquet", f"'{column}'", "65,537", "65,536"):
            read_embeddings(path)


def test_pictures_that_share_a_long_name_share_the_text(tmp_path: Path) -> None:
    path = tmp_path / "pictures.parquet"
    columns = {"image": pa.array([b"picture"] * ROWS), "identity": shared(["a" * 60_000, "b"], ROWS)}
    pq.write_table(pa.table(columns), path, store_schema=False)
    assert len({id(one.identity) for one in read_images(path)}) == 2


@pytest.mark.parametrize("threads", [1, 3])
def test_large_pieces_are_worked_on_one_at_a_time_and_in_order(threads: int) -> None:
    made: list[int] = []
    held = []

    def items() -> Iterator[int]:
        for number in range(20):
            made.append(number)
            yield number

    for number in overlapped(items(), lambda item: item, threads, lambda item: item >= 10):
        held.append(len(made) - number - 1)
    assert made == list(range(20))
    assert held[11:] == [0] * 9
    assert max(held[:10]) > 0


def test_columns_with_dictionaries_are_the_same_where_their_texts_are() -> None:
    def column(codes: list[int | None], words: list[str]) -> pa.Array:
        return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), words)

    one = column([0, 1, None, 2, 0], ["x", "y", "x"])
    assert _same(one, column([1, 0, None, 1, 1], ["y", "x"]))
    assert not _same(one, column([1, 0, None, 1, 0], ["y", "x"]))
    assert not _same(one, column([1, 0, 1, 1, 1], ["y", "x"]))
    assert not _same(one, column([1, 0, None, 1, 1], ["y", "z"]))
