"""If these fail, a file is misread, believed where it lies, or its failure is a traceback instead of a sentence."""

import gzip
import json
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from unface.data import EmbeddingSet, Space, read_embeddings, write_embeddings
from unface.errors import UnfaceError

VECTORS = np.arange(1, 9, dtype=np.float32).reshape(4, 2)
NAMES = ["zoe", "ann", "zoe", "ann"]
STRANGE = ["../../etc/passwd", "<script>alert(1)</script>", "Zoë 張偉 🙂", "a\nb"]
SPACE = {"encoder": "arcface", "weights_sha256": "ab" * 32, "dim": 2, "normalised": True}


def table(names: list[str] = NAMES, metadata: dict[str, str] | None = None, ids: str = "") -> pa.Table:
    columns = {"identity": names, "vector": pa.FixedSizeListArray.from_arrays(pa.array(VECTORS.reshape(-1)), 2)}
    if ids:
        columns["id"] = [f"{ids}{row}" for row in range(4)]
    return pa.table(columns).replace_schema_metadata(metadata)


def refusal(path: Path | str, **options: str) -> str:
    with pytest.raises(UnfaceError) as caught:
        read_embeddings(path, **options)  # type: ignore[arg-type]
    return str(caught.value)


def names_of(found: EmbeddingSet) -> list[str]:
    return [found.names[code] for code in found.identities]


def test_files_are_known_by_content_not_by_suffix(tmp_path: Path) -> None:
    pq.write_table(table(), tmp_path / "a.npz")
    np.savez(tmp_path / "b.npz", vectors=VECTORS, identities=NAMES)
    (tmp_path / "b.npz").rename(tmp_path / "b.parquet")
    for name in ("a.npz", "b.parquet"):
        found = read_embeddings(tmp_path / name)
        assert np.array_equal(found.vectors, VECTORS)
        assert names_of(found) == NAMES
        assert found.source == name
    assert names_of(read_embeddings(str(tmp_path / "a.npz"))) == NAMES


def test_strange_names_are_plain_text(tmp_path: Path) -> None:
    pq.write_table(table(STRANGE), tmp_path / "a.parquet")
    np.savez(tmp_path / "b.npz", vectors=VECTORS, identities=STRANGE)
    for name in ("a.parquet", "b.npz"):
        assert names_of(read_embeddings(tmp_path / name)) == STRANGE


def test_the_space_is_read_from_the_metadata(tmp_path: Path) -> None:
    pq.write_table(table(metadata={"unface.space": json.dumps(SPACE)}), tmp_path / "a.parquet")
    assert read_embeddings(tmp_path / "a.parquet").space == Space("arcface", "ab" * 32, 2, True)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "metadata unface.space is not JSON; write the file again"),
        ("[" * 100_000, "metadata unface.space is not JSON; write the file again"),
        ("[]", "metadata unface.space is not a JSON object; write the file again"),
        (json.dumps({"dim": 2}), "metadata unface.space lacks 'encoder'; write the file again"),
        (json.dumps(SPACE | {"dim": True}), "metadata unface.space has dim = true; write the file again"),
        (json.dumps(SPACE | {"normalised": 1}), "metadata unface.space has normalised = 1; write the file again"),
        (
            json.dumps(SPACE | {"encoder": ["a\nb"]}),
            'metadata unface.space has encoder = ["a\\nb"]; write the file again',
        ),
        (json.dumps(SPACE | {"dim": 512}), "the space has 512 dimensions, 'vector' 2"),
    ],
)
def test_malformed_spaces_are_refused(tmp_path: Path, text: str, sentence: str) -> None:
    pq.write_table(table(metadata={"unface.space": text}), tmp_path / "a.parquet")
    assert refusal(tmp_path / "a.parquet") == f"a.parquet: {sentence}"


def test_a_directory_is_read_in_name_order(tmp_path: Path) -> None:
    pq.write_table(table(["b"] * 4, ids="x"), tmp_path / "part-2.parquet")
    pq.write_table(table(["a"] * 4, ids="y").select(["id", "vector", "identity"]), tmp_path / "part-1.parquet")
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / "notes.txt").write_text("not data")
    found = read_embeddings(tmp_path)
    assert found.ids.tolist() == ["y0", "y1", "y2", "y3", "x0", "x1", "x2", "x3"]
    assert found.source == tmp_path.name


def test_files_of_a_directory_must_agree(tmp_path: Path) -> None:
    pq.write_table(table(metadata={"unface.space": json.dumps(SPACE)}), tmp_path / "a.parquet")
    pq.write_table(table(), tmp_path / "b.parquet")
    expected = "a.parquet says which space it is in, b.parquet does not; two embedding spaces never mix"
    assert refusal(tmp_path) == expected
    pq.write_table(table(metadata={"unface.space": json.dumps(SPACE | {"encoder": "clip"})}), tmp_path / "b.parquet")
    assert "'arcface'" in refusal(tmp_path)
    assert "'clip'" in refusal(tmp_path)
    pq.write_table(table().append_column("age", [[1, 2, 3, 4]]), tmp_path / "b.parquet")
    assert refusal(tmp_path) == "a.parquet and b.parquet differ in column 'age'; files of a directory need one schema"
    np.savez(tmp_path / "b.npz", vectors=VECTORS, identities=NAMES)
    (tmp_path / "b.npz").rename(tmp_path / "b.parquet")
    assert refusal(tmp_path) == "b.parquet: not a Parquet file by its first bytes; move it out of the directory"


def test_columns_that_cannot_be_labels_are_told(tmp_path: Path) -> None:
    pq.write_table(table().append_column("picture", [[b"png"] * 4]), tmp_path / "a.parquet")
    assert read_embeddings(tmp_path / "a.parquet").notes == ("column 'picture' left out: binary is not a label",)
    assert read_embeddings(tmp_path / "a.parquet").labels == {}


def test_what_is_not_there_or_not_ours_is_one_line(tmp_path: Path) -> None:
    whole = tmp_path / "whole.parquet"
    pq.write_table(table(), whole)
    (tmp_path / "cut.parquet").write_bytes(whole.read_bytes()[:-20])
    (tmp_path / "empty.parquet").touch()
    (tmp_path / "text.parquet").write_text("id,identity\n")
    (tmp_path / "packed.parquet").write_bytes(gzip.compress(whole.read_bytes()))
    (tmp_path / "face.jpg").write_bytes(b"\xff\xd8\xff\xe0 and so on")
    (tmp_path / "folder").mkdir()
    np.save(tmp_path / "one.npy", VECTORS)
    os.mkfifo(tmp_path / "pipe")
    assert refusal(tmp_path / "gone.parquet") == "gone.parquet: no such file or directory"
    assert refusal(tmp_path / "cut.parquet").startswith("cut.parquet: not a readable Parquet file (")
    assert refusal(tmp_path / "empty.parquet") == "empty.parquet: the file is empty; expected Parquet or .npz"
    assert refusal(tmp_path / "text.parquet") == (
        "text.parquet: neither Parquet nor .npz by its first bytes; convert it to one of them"
    )
    assert refusal(tmp_path / "folder") == (
        "folder: no .parquet files in this directory; give the one they are in, or encode pictures first"
    )
    assert refusal(tmp_path / "one.npy").startswith("one.npy: one .npy array; save it with its identities")
    assert "or name it as a store, npy:one.npy" in refusal(tmp_path / "one.npy")
    assert refusal(tmp_path / "packed.parquet") == "packed.parquet: compressed by gzip; unpack it first"
    assert refusal(tmp_path / "face.jpg").startswith("face.jpg: a picture, not vectors; encode pictures first")
    assert refusal(tmp_path / "pipe") == "pipe: neither a file nor a directory"
    assert (
        refusal(whole, vector="face")
        == "whole.parquet: no column 'face'; there is 'identity', 'vector': name yours with --vector-column"
    )
    assert refusal("a\0b") == "'a\\x00b': cannot be opened (embedded null byte)"
    assert refusal("x" * 5000).endswith(": cannot be opened (File name too long)")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_one_may_not_read_is_one_line(tmp_path: Path) -> None:
    pq.write_table(table(), tmp_path / "a.parquet")
    (tmp_path / "a.parquet").chmod(0)
    assert refusal(tmp_path / "a.parquet") == "a.parquet: permission denied; check who may read it"


def test_permission_denied_is_one_line_whoever_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(self: Path, *_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", str(self))

    pq.write_table(table(), tmp_path / "a.parquet")
    monkeypatch.setattr(Path, "open", denied)
    assert refusal(tmp_path / "a.parquet") == "a.parquet: permission denied; check who may read it"


def test_a_file_name_with_a_line_break_stays_on_one_line(tmp_path: Path) -> None:
    (tmp_path / "a\nb").touch()
    assert refusal(tmp_path / "a\nb") == "'a\\nb': the file is empty; expected Parquet or .npz"


def test_a_footer_that_miscounts_its_rows_is_refused(tmp_path: Path) -> None:
    """pyarrow alone returns the 100 rows there are, whatever was promised: data would be lost in silence."""
    path = tmp_path / "a.parquet"
    write_embeddings(EmbeddingSet.from_arrays(np.ones((100, 3), np.float32), ["a", "b"] * 50), path)
    data = path.read_bytes()
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    hundred, one_more = b"\xc8\x01", b"\xca\x01"  # as thrift writes them
    path.write_bytes(data[:footer] + data[footer:].replace(hundred, one_more, 1))
    assert refusal(path) == "a.parquet: the footer promises 101 rows, its row groups 100; copy it again"
    path.write_bytes(data[:footer] + data[footer:].replace(hundred, one_more))
    assert refusal(path) == "a.parquet: the footer promises 101 rows, 100 are there; copy it again"


def test_a_full_read_checks_the_checksums_we_write(tmp_path: Path) -> None:
    """A flipped bit in a vector is a plausible vector; only the checksum can tell."""
    path = tmp_path / "a.parquet"
    write_embeddings(EmbeddingSet.from_arrays(np.full((400, 8), 1.5, np.float32), ["a", "b"] * 200), path)
    data = bytearray(path.read_bytes())
    pages = data.index(np.full(1, 1.5, np.float32).tobytes())
    data[pages + 2] ^= 1
    path.write_bytes(data)
    assert "CRC checksum" in refusal(path)
