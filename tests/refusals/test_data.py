"""If these fail, vectors or pictures that cannot be used are used, or their owner does not learn which row it is."""

import gzip
import json
import os
import zipfile
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from tests.data.pictures import jpeg, people, write_folder, write_tar, write_zip
from tests.refusals.table import Row, table
from unface.data import (
    EmbeddingSet,
    Role,
    Space,
    curate,
    make_identities,
    nobody,
    read_embeddings,
    read_images,
    require_same_space,
    split_from_column,
    split_identities,
    things,
    write_embeddings,
)
from unface.data.collection import sampled_people
from unface.data.images import ImageRef, ImageSet

GOOD = np.arange(1, 9, dtype=np.float32).reshape(4, 2)
NAMES = ["ann", "bob", "ann", "bob"]
GIVEN: dict[str, Any] = {"vectors": GOOD, "identities": NAMES, "ids": ["a1", "b1", "a2", "b2"], "source": "faces.npz"}
SPACE = {"encoder": "arcface", "weights_sha256": "ab" * 32, "dim": 2, "normalised": True}
COLUMN = pa.FixedSizeListArray.from_arrays(pa.array(GOOD.reshape(-1)), 2)
TABLE = pa.table({"identity": NAMES, "vector": COLUMN})
LAYOUTS: dict[str, Callable[[Path, Mapping[str, bytes]], Path]] = {
    "folder": lambda path, files: write_folder(path / "faces", files),
    "zip": lambda path, files: write_zip(path / "faces.zip", files),
    "tar": lambda path, files: write_tar(path / "faces.tar", files),
}


def arrays(name: str, *names: str, code: str = "vectors", **changed: Any) -> Row:
    """Arrays of which one is no good."""
    return Row(name, lambda _: EmbeddingSet.from_arrays(**GIVEN | changed), code, "faces.npz", names)


def row(value: float, at: int = 2, dtype: str = "float32") -> np.ndarray[Any, Any]:
    """Vectors with one bad row: a number of it, or all of it where the value is 0."""
    vectors = GOOD.astype(dtype)
    vectors[at, slice(None) if value == 0 else 1] = value
    return vectors


def tabled(name: str, source: object, *names: str, code: str = "vectors", where: str | None = "table", **o: Any) -> Row:
    """A table that cannot be read."""
    return Row(name, lambda _: read_embeddings(source, **o), code, where, names)  # type: ignore[arg-type]


def vector(column: pa.Array | pa.ChunkedArray) -> pa.Table:
    return TABLE.set_column(1, "vector", column)


def identity(column: pa.Array) -> pa.Table:
    return TABLE.set_column(0, "identity", column)


def file(name: str, path: str, write: Callable[[Path], object], *names: str, code: str = "file", **o: Any) -> Row:
    """A file that cannot be read."""
    where = path if path.isprintable() else repr(path)
    return Row(name, lambda _: read_embeddings(path, **o), code, where, names, build=lambda at: write(at / path))


def parquet(made: pa.Table = TABLE, metadata: dict[str, str] | None = None) -> Callable[[Path], None]:
    return lambda path: pq.write_table(made.replace_schema_metadata(metadata), path)


def spaced(name: str, text: str, *names: str) -> Row:
    return file(f"space-{name}", "a.parquet", parquet(metadata={"unface.space": text}), *names, code="vectors")


def folder_of(first: pa.Table, second: pa.Table | bytes) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.mkdir()
        pq.write_table(first, path / "a.parquet")
        if isinstance(second, bytes):
            (path / "b.parquet").write_bytes(second)
        else:
            pq.write_table(second, path / "b.parquet")

    return write


def in_space(**changed: object) -> pa.Table:
    return TABLE.replace_schema_metadata({"unface.space": json.dumps(SPACE | changed)})


def npz_promising(shape: str) -> Callable[[Path], None]:
    """An archive whose header has another shape than its bytes."""

    def write(path: Path) -> None:
        stored = BytesIO()
        np.save(stored, GOOD)
        header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}".encode().ljust(117) + b"\n"
        body = stored.getvalue()[:8] + len(header).to_bytes(2, "little") + header + stored.getvalue()[128:]
        write_zip(path, {"vectors.npy": body})

    return write


def miscounting(every: bool) -> Callable[[Path], None]:
    """A footer that promises 101 rows; pyarrow alone returns the 100 there are, and data would be lost in silence."""

    def write(path: Path) -> None:
        write_embeddings(EmbeddingSet.from_arrays(np.ones((100, 3), np.float32), ["a", "b"] * 50), path)
        data = path.read_bytes()
        footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
        hundred, one_more = b"\xc8\x01", b"\xca\x01"  # as thrift writes them
        path.write_bytes(data[:footer] + data[footer:].replace(hundred, one_more, -1 if every else 1))

    return write


def with_flipped_bit(path: Path) -> None:
    """A flipped bit in a vector is a plausible vector; only the checksum that we write can show it."""
    write_embeddings(EmbeddingSet.from_arrays(np.full((400, 8), 1.5, np.float32), ["a", "b"] * 200), path)
    data = bytearray(path.read_bytes())
    data[data.index(np.full(1, 1.5, np.float32).tobytes()) + 2] ^= 1
    path.write_bytes(data)


def written(name: str, vectors: Any, *names: str, to: str = "a.parquet", labels: Any = None, **options: Any) -> Row:
    """A set that cannot be written."""
    made = EmbeddingSet.from_arrays(vectors, ["a", "b"], labels=labels)
    code = "output" if "/" in to else "file"
    return Row(name, lambda _: write_embeddings(made, Path(to), **options), code, "a.parquet", names)


def sized(*sizes: int) -> EmbeddingSet:
    names = [f"p{at}" for at, size in enumerate(sizes) for _ in range(size)]
    return EmbeddingSet.from_arrays(np.ones((len(names), 3), np.float32), names, source="faces.npz")


def split(name: str, *names: str, where: str | None = "split", **given: Any) -> Row:
    return Row(f"split-{name}", lambda _: split_identities(**given), "split", where, names)


def synthetic(name: str, *names: str, **given: Any) -> Row:
    """People of a law that does not exist."""
    call = partial(make_identities, **{"identities": 3, "images": 2, "dim": 4} | given)
    return Row(f"synthetic-{name}", lambda _: call(), "vectors", "synthetic", names)


def pictures(
    name: str,
    build: Callable[[Path], object],
    *names: str,
    code: str = "pictures",
    path: str = "faces.parquet",
    where: str | None = None,
    **o: Any,
) -> Row:
    return Row(f"pictures-{name}", lambda _: read_images(path, **o), code, where or path, names, build=build)


def layout(kind: str, files: Mapping[str, bytes]) -> Callable[[Path], object]:
    return lambda path: LAYOUTS[kind](path, files)


def laid_out(name: str, files: Mapping[str, bytes], *names: str, code: str = "pictures", **options: Any) -> list[Row]:
    """The same files as a folder and in archives."""
    paths = {"folder": "faces", "zip": "faces.zip", "tar": "faces.tar"}
    return [
        pictures(f"{name}-{kind}", layout(kind, files), *names, code=code, path=path, **options)
        for kind, path in paths.items()
    ]


def bytes_of(content: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(content)


def content(name: str, data: bytes) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes(data)


def image_column(**columns: Any) -> Callable[[Path], None]:
    return lambda folder: pq.write_table(pa.table(columns), folder / "faces.parquet")


def unnamed_column(folder: Path) -> None:
    path = folder / "faces.parquet"
    pq.write_table(pa.table({"image": [jpeg(1)], "identity": ["a"], "others": [1]}), path, store_schema=False)
    path.write_bytes(path.read_bytes().replace(b"others", b"oth\xf4rs"))


def twice_in_a_tar(folder: Path) -> None:
    import tarfile

    path = write_tar(folder / "faces.tar", people())
    with tarfile.open(path, "a") as archive:
        archive.add(write_folder(folder / "more", {"x.jpg": b"x"}) / "x.jpg", "ann0/0001.jpg")


def damaged_zip(folder: Path) -> None:
    path = write_zip(folder / "faces.zip", people())
    with zipfile.ZipFile(path) as archive:
        offset = archive.infolist()[0].header_offset + 60
    whole = bytearray(path.read_bytes())
    whole[offset] ^= 0xFF
    path.write_bytes(whole)


LEFT = ["ann", "bob", "ann", "ann"]
VANISHING = np.array([[1, 2], [1e-300, 1e-300], [1, 2], [1, 2]])
TWO_BAD = np.array([[1, 2], [0, 0], [1, 2], [np.nan, 1]], np.float32)
LISTED = "identity_CelebA.txt"
NULLS = [pa.list_(pa.float32()), pa.list_(pa.float32(), 2), pa.list_(pa.int16())]

test_refused = table(
    "data",
    # rows
    arrays("nan", "row 2 (id 'a2')", "NaN", vectors=row(np.nan)),
    arrays("infinity", "row 2 (id 'a2')", "Inf", vectors=row(np.inf)),
    arrays("minus-infinity-float16", "row 2 (id 'a2')", "Inf", vectors=row(-np.inf, dtype="float16")),
    arrays("too-large-for-float32", "row 2 (id 'a2')", "Inf", vectors=row(1e300, dtype="float64")),
    arrays("zeros", "row 2 (id 'a2')", "only zeros", vectors=row(0)),
    arrays("zeros-int16", "row 2 (id 'a2')", "only zeros", vectors=row(0, dtype="int16")),
    arrays("zeros-in-float32", "row 1 (id 'b1')", "only zeros", vectors=VANISHING),
    arrays("first-bad-row", "row 1 (id 'b1')", "only zeros", vectors=TWO_BAD),
    *(arrays(f"no-identity-{said}", "row 3 (id 'b2')", identities=[*NAMES[:3], said]) for said in (None, "", np.nan)),
    arrays("no-id", "row 1", ids=["a1", None, "a2", "b2"]),
    arrays("no-usable-rows", "4 of 4", vectors=np.full((4, 2), np.nan), bad_rows="drop"),
    arrays("id-with-line-break", r"'c\nd'", vectors=row(np.nan), ids=["a", "b", "c\nd", "e"]),
    arrays("id-twice", "'a1'", ids=["a1", "b1", "a1", "b2"]),
    arrays("one-identity", "'ann'", code="too-few-identities", identities=["ann"] * 4),
    arrays(
        "one-identity-left", "'ann'", code="too-few-identities", vectors=row(0, at=1), identities=LEFT, bad_rows="drop"
    ),
    Row(
        "no-rows",
        lambda _: EmbeddingSet.from_arrays(np.empty((0, 2)), [], source="faces.npz"),
        "too-few-identities",
        "faces.npz",
    ),
    arrays("no-dimensions", vectors=np.empty((4, 0))),
    arrays("one-array", "(4,)", vectors=np.ones(4)),
    arrays("one-number", "()", vectors=np.float32(1)),
    arrays("bool", "bool", vectors=GOOD > 2),
    arrays("complex", "complex64", vectors=GOOD * 1j),
    arrays("text", "<U3", vectors=GOOD.astype("U3")),
    arrays("objects", "object", vectors=GOOD.astype(object)),
    arrays("rows-of-two-lengths", vectors=[[1.0, 2.0], [3.0]]),
    arrays("more-identities-than-vectors", "'identity'", "4", "3", vectors=GOOD[:3]),
    arrays("identities-float", "float64", identities=np.array([0.5, 1, 2, 3])),
    arrays("identities-bool", "bool", identities=np.array([True, False] * 2)),
    arrays("identities-mixed", "float", identities=["a", 1.5, "b", "c"]),
    arrays("identities-nested", "(4, 1)", identities=[["a"], ["b"], ["c"], ["d"]]),
    arrays("identities-half-a-letter", "'identity'", identities=["a", "\ud800", "b", "c"]),
    arrays("ids-too-few", "'id'", "1", "4", ids=["a"]),
    arrays("labels-too-few", "'age'", "2", "4", labels={"age": [1, 2]}),
    arrays("space-of-other-dimension", "512", "2", space=Space("arcface", None, 512, True)),
    Row(
        "spaces-never-mix",
        lambda _: require_same_space(Space("arcface", "01" * 32, 512, True), Space(None, None, 512, False)),
        "vectors",
        None,
        ("'arcface'", "'010101010101'", "unknown"),
    ),
    # files
    spaced("no-json", "{"),
    spaced("too-deep", "[" * 100_000),
    spaced("no-object", "[]"),
    spaced("without-encoder", json.dumps({"dim": 2}), "'encoder'"),
    spaced("dim-true", json.dumps(SPACE | {"dim": True}), "dim = true"),
    spaced("normalised-1", json.dumps(SPACE | {"normalised": 1}), "normalised = 1"),
    spaced("encoder-list", json.dumps(SPACE | {"encoder": ["a\nb"]}), r'encoder = ["a\nb"]'),
    spaced("other-dimension", json.dumps(SPACE | {"dim": 512}), "512", "2"),
    Row(
        "folder-one-file-without-space",
        lambda _: read_embeddings("d"),
        "file",
        None,
        ("a.parquet", "b.parquet"),
        lambda at: folder_of(in_space(), TABLE)(at / "d"),
    ),
    Row(
        "folder-two-spaces",
        lambda _: read_embeddings("d"),
        "vectors",
        None,
        ("'arcface'", "'clip'"),
        lambda at: folder_of(in_space(), in_space(encoder="clip"))(at / "d"),
    ),
    Row(
        "folder-two-schemas",
        lambda _: read_embeddings("d"),
        "file",
        None,
        ("a.parquet", "b.parquet", "'age'"),
        lambda at: folder_of(TABLE, TABLE.append_column("age", [[1, 2, 3, 4]]))(at / "d"),
    ),
    Row(
        "folder-of-other-files",
        lambda _: read_embeddings("d"),
        "file",
        "b.parquet",
        (),
        lambda at: folder_of(TABLE, b"PK\x03\x04")(at / "d"),
    ),
    file("gone", "gone.parquet", lambda path: None),
    file("cut", "cut.parquet", lambda path: (parquet()(path), path.write_bytes(path.read_bytes()[:-20]))),
    file("empty", "empty.parquet", bytes_of(b"")),
    file("words", "text.parquet", bytes_of(b"id,identity\n")),
    file("empty-folder", "folder", Path.mkdir),
    file("npy", "one.npy", lambda path: np.save(path, GOOD), "npy:one.npy"),
    file("gzip", "packed.parquet", bytes_of(gzip.compress(b"x")), "gzip"),
    file("a-picture", "face.jpg", bytes_of(b"\xff\xd8\xff\xe0 and so on"), "encode"),
    file("pipe", "pipe", os.mkfifo),
    file("no-column", "whole.parquet", parquet(), "'face'", "--vector-column", code="missing-column", vector="face"),
    Row("zero-in-name", lambda _: read_embeddings("a\0b"), "file", r"'a\x00b'"),
    Row("endless-name", lambda _: read_embeddings("x" * 300), "file", "x" * 300),
    file("line-break-in-name", "a\nb", bytes_of(b"")),
    file("footer-miscounts", "a.parquet", miscounting(every=False), "101", "100"),
    file("row-groups-miscount", "a.parquet", miscounting(every=True), "101", "100"),
    file("bit-flipped", "a.parquet", with_flipped_bit, "CRC"),
    *(
        file(f"npz-promises-{shape}", "a.npz", npz_promising(shape), shape, code="vectors")
        for shape in ("(1000000000000, 2)", "(4, -2)", "(3, 2)", "(5, 2)")
    ),
    file("npz-no-arrays", "none.npz", np.savez, code="missing-column"),
    file(
        "npz-other-names",
        "a.npz",
        lambda path: np.savez(path, face=GOOD, who=NAMES),
        "'face', 'who'",
        code="missing-column",
    ),
    file(
        "npz-of-a-text", "zip.npz", lambda path: write_zip(path, {"readme.txt": b"hello"}), "--encoder", code="vectors"
    ),
    *(
        file(
            f"npz-misspelt-{what}",
            "a.npz",
            lambda path: np.savez(path, vectors=GOOD, identities=NAMES),
            "'typo'",
            "'vectors', 'identities'",
            code="missing-column",
            **{what: "typo"},
        )
        for what in ("vector", "identity", "id")
    ),
    # tables
    *(
        tabled(
            f"table-null-{at}", vector(pa.array([[1, 2], None, [3, 4], [5, 6]], type=kind)), "row 1 (id '1')", "null"
        )
        for at, kind in enumerate(NULLS)
    ),
    *(
        tabled(
            f"table-null-number-{at}",
            vector(pa.array([[1, 2], [5, None], [3, 4], [5, 6]], type=kind)).slice(1),
            "row 0",
        )
        for at, kind in enumerate(NULLS)
    ),
    tabled("table-only-nulls", vector(pa.array([None] * 4, type=NULLS[0])), "row 0", "null"),
    tabled("table-only-nulls-dropped", vector(pa.array([None] * 4, type=NULLS[0])), "4 of 4", bad_rows="drop"),
    *(
        tabled(
            f"table-ragged-{bad}",
            vector(pa.array([None, [1.0, 2.0], [3.0], [4.0, 5.0]])),
            "row 2",
            "row 1",
            bad_rows=bad,
        )
        for bad in ("error", "drop")
    ),
    tabled("table-null-identity", identity(pa.array(["a", None, "b", "a"])), "row 1 (id '1')"),
    tabled("table-null-number-as-identity", identity(pa.array([1, None, 2, 1])), "row 1 (id '1')"),
    tabled("table-null-identity-code", identity(pa.array(["a", None, "b", "a"]).dictionary_encode()), "row 1 (id '1')"),
    tabled(
        "null-in-renamed",
        identity(pa.array([None] * 4, pa.string())).rename_columns(["who", "vector"]),
        "'who'",
        identity="who",
    ),
    *(
        tabled(f"table-vector-of-{at}", vector(pa.array(values)), held)
        for at, (values, held) in enumerate(
            [
                ([1.0, 2.0, 3.0, 4.0], "double"),
                ([["a"]] * 4, "list<item: string>"),
                ([[True]] * 4, "list<item: bool>"),
                (["x"] * 4, "string"),
                ([[[1.0]]] * 4, "list<item: list<item: double>>"),
            ]
        )
    ),
    tabled("table-identity-of-floats", identity(pa.array([0.5, 1.0, 2.0, 3.0])), "double"),
    tabled("table-no-vector", TABLE, "'face'", "'vector'", "vector=…", code="missing-column", vector="face"),
    tabled("table-no-identity", TABLE, "'who'", "identity=…", code="missing-column", identity="who"),
    tabled("table-no-id", TABLE, "'typo'", "id=…", code="missing-column", id="typo"),
    tabled("table-no-columns", pa.table({}), "vector=…, identity=…", code="missing-column"),
    tabled("table-column-twice", pa.Table.from_arrays([pa.array(NAMES)] * 2, names=["identity"] * 2), "'identity'"),
    tabled("table-a-number", 5, "int", where=None),
    tabled("table-three-arrays", (GOOD, NAMES, NAMES), "3", where="arrays"),
    tabled("table-no-arrow", pd.DataFrame({"vector": [1, "x"]})),
    tabled(
        "table-tensors", vector(pa.FixedShapeTensorArray.from_numpy_ndarray(np.ones((4, 3, 2), np.float32))), "(3, 2)"
    ),
    # what is made of them
    Row("curate-too-few", lambda _: curate(sized(20, 3, 3, 2), 20, 0), "vectors", "faces.npz", ("1 of 4", "2 with 3")),
    Row("curate-many-sizes", lambda _: curate(sized(*range(1, 9)), 9, 0), "vectors", "faces.npz", "1 with 8"),
    Row("curate-none", lambda _: curate(sized(2, 2), 0, 0), "vectors", "faces.npz", "0"),
    *(split(f"of-{count}", str(count), "at least 8", names=map(str, range(count))) for count in (0, 1, 7)),
    split(
        "at-small-shares", "at least 36", names="abcd", shares={Role.TRAIN: 0.9, Role.CALIBRATE: 0.05, Role.TEST: 0.05}
    ),
    split("shares-of-a-half", names="abcdefgh", shares={Role.TEST: 0.5}),
    split("share-below-0", names="abcdefgh", shares={Role.TEST: 1.5, Role.FIT: -0.5}),
    split("share-nan", names="abcdefgh", shares={Role.TEST: np.nan}),
    Row("split-stranger", lambda _: split_identities("abcdefgh").role_of("eve"), "split", None, "'eve'"),
    Row(
        "split-stranger-in-rows",
        lambda _: split_identities("abcdefgh").rows(EmbeddingSet.from_arrays(np.eye(2), ["a", "eve"]), Role.FIT),
        "split",
        None,
        "'eve'",
    ),
    Row(
        "split-two-roles",
        lambda _: split_from_column(["ann", "bob", "ann"], ["fit", "test", "train"]),
        "split",
        "split",
        ("'ann'", "fit and train"),
    ),
    Row(
        "split-role",
        lambda _: split_from_column(["a", "b"], ["fit", "valid"]),
        "split",
        "split",
        ("row 1", "'valid'"),
    ),
    Row("split-lengths", lambda _: split_from_column(["a", "b"], ["fit"]), "split", "split", ("2", "1")),
    synthetic("one-identity", "1", identities=1),
    synthetic("no-images", "0", images=0),
    synthetic("one-image-unequal", "1", images=1, unequal=True),
    synthetic("no-dimensions", "0", dim=0),
    synthetic("rank-too-high", "rank 5", rank=5),
    synthetic("rank-0", "rank 0", rank=0),
    synthetic("between-below-0", "between -1", between=-1.0),
    synthetic("within-nan", "within nan", within=np.nan),
    synthetic("tails-0", "tails 0.0", tails=0.0),
    Row("embedded-people", lambda _: nobody("clip"), "vectors", None, ("'clip'", "sface, sscd-int8, dinov2-s-focus")),
    Row("embedded-things", lambda _: things("clip"), "vectors", None, ("'clip'", "sface, sscd-int8, dinov2-s-focus")),
    Row(
        "sample-of-one-person",
        lambda _: sampled_people(lambda: iter([Counter({"a": 2, "b": 1})]), 5, 0, "x"),
        "vectors",
        "x",
        "1 people",
    ),
    Row(
        "sample-1",
        lambda _: sampled_people(lambda: iter([Counter({"a": 2, "b": 2})]), 1, 0, "x"),
        "vectors",
        "--sample 1",
    ),
    file("sample-without-identities", "x.parquet", parquet(), "--sample", code="vectors", identity=None, sample=3),
    written("float16-too-large", np.array([[1, 2], [1e5, 1e5]], np.float32), "65504", "100000", dtype="float16"),
    written("float16-zeros", np.array([[1, 2], [1e-9, 1e-9]], np.float32), "row 1", dtype="float16"),
    written("to-no-folder", np.eye(2), to="gone/a.parquet"),
    written("label-called-vector", np.eye(2), "'vector'", labels={"vector": [1, 2]}),
    written("label-of-two-kinds", np.eye(2), "'mixed'", labels={"mixed": np.array([1, "a"], dtype=object)}),
    # pictures
    pictures("parquet-column-no-text", unnamed_column, code="file"),
    pictures("url", lambda _: None, "s3:", code="file", path="s3://bucket/x", where="x"),
    *(
        row
        for at, member in enumerate(["../up.jpg", "a/../../up.jpg", "/etc/up.jpg", "C:/up.jpg", "..\\up.jpg"])
        for row in laid_out(f"out-of-the-archive-{at}", people(1, 1) | {member: b"x"}, repr(member))[1:]
    ),
    *laid_out("of-nobody", {"1.jpg": b"x", "2.jpg": b"x"}, "'1.jpg'", "2", code="no-identities"),
    *laid_out("none", {"a/readme.md": b"x"}),
    *laid_out("list-of-three-words", {"c/1.jpg": b"", LISTED: b"1.jpg 2 3\n"}, "line 1", "3", where=LISTED),
    *laid_out("list-twice", {"c/1.jpg": b"", LISTED: b"1.jpg 2\n1.jpg 3"}, "line 2", "'1.jpg'", where=LISTED),
    *laid_out("list-of-others", {"c/1.jpg": b"", LISTED: b"9.jpg 2\n"}),
    *(
        row
        for column in ("image", "identity", "id")
        for row in laid_out(f"{column}-without-columns", people(), f"--{column}-column", **{column: "person"})
    ),
    pictures("missing", lambda _: None, code="file", path="missing.zip"),
    *(
        pictures(
            name,
            content("faces.bin", start),
            path="faces.bin",
            code="file" if name == "no-parquet" else "pictures",
        )
        for name, start in {
            "empty": b"",
            "gif": b"GIF89a",
            "no-zip": b"PK\x03\x04rest",
            "no-parquet": b"PAR1rest",
        }.items()
    ),
    pictures("twice-in-a-tar", twice_in_a_tar, "'ann0/0001.jpg'", path="faces.tar"),
    pictures("of-numbers", image_column(image=[1.0], identity=["a"]), "'image'", "double"),
    pictures(
        "no-column",
        image_column(image=[b"x"], identity=["a"]),
        "'photo'",
        "'identity'",
        image="photo",
    ),
    pictures("no-id-column", image_column(image=[b"x"], identity=["a"]), "'key'", id="key"),
    Row(
        "pictures-name-not-utf8",
        lambda _: ImageSet((ImageRef("caf\udce9.png", "a", bytes),), "faces"),
        "pictures",
        "faces",
        r"'caf\udce9.png'",
    ),
    Row(
        "picture-damaged-in-zip", lambda _: read_images("faces.zip").images[0].read(), "bad-picture", build=damaged_zip
    ),
)
