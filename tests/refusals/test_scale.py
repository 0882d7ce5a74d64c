"""If these fail, files that cannot be erased are written anyway, or a folder is left in a state that nobody knows."""

import json
import socket
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.refusals.table import Row, table
from tests.scale.collection import collection
from tests.scale.stored import DIM, PEOPLE, UNNAMED, oblique, projection, written
from tests.scale.stored import table as stored
from unface.data import Space
from unface.erase import Projection
from unface.scale import released_vectors, sanitise_directory, sanitise_file
from unface.scale.cluster import ray_executor
from unface.scale.receipt import Check

Build = Callable[[Path], object]
NAMES = np.array(PEOPLE.names)[PEOPLE.identities]


def file(
    name: str,
    build: Build,
    *names: str,
    code: str = "apply",
    where: str | None = "faces.parquet",
    by: Projection | None = None,
    to: str = "out.parquet",
    source: str = "faces.parquet",
    **options: Any,
) -> Row:
    """One file that cannot be erased."""
    act = lambda _: sanitise_file(by or projection(), Path(source), Path(to), **options)  # noqa: E731
    return Row(f"file-{name}", act, code, where, names, build)


def folder(
    name: str,
    build: Build,
    *names: str,
    code: str = "apply",
    where: str | None = "clean",
    by: Projection | None = None,
    to: str = "clean",
    source: str = "raw",
    **options: Any,
) -> Row:
    """A folder that cannot be erased."""
    act = lambda _: sanitise_directory(by or projection(), Path(source), Path(to), **options)  # noqa: E731
    return Row(f"folder-{name}", act, code, where, names, build)


def faces(vectors: Any = None, **options: Any) -> Build:
    """The file, of other vectors."""
    return lambda at: written(stored(vectors, **options), at / "faces.parquet")


def column(lists: list[Any]) -> Build:
    """The file, of another column of vectors."""
    given = stored()
    changed = given.set_column(given.column_names.index("vector"), "vector", pa.array(lists))
    return lambda at: written(changed, at / "faces.parquet")


def archive(**arrays: Any) -> Build:
    return lambda at: np.savez(at / "faces.npz", **arrays)


def bad(value: float, *rows: int) -> np.ndarray[Any, Any]:
    vectors = PEOPLE.vectors.copy()
    vectors[list(rows), 2] = value
    return vectors


def lacking(row: int, instead: Any = None) -> list[Any]:
    return [instead if at == row else one for at, one in enumerate(PEOPLE.vectors.tolist())]


def erased_once(space: Space | None) -> Build:
    def build(at: Path) -> None:
        written(stored(space=space), at / "raw.parquet")
        sanitise_file(projection(space or UNNAMED), at / "raw.parquet", at / "faces.parquet")

    return build


def linked(at: Path) -> None:
    faces()(at)
    (at / "l").symlink_to("faces.parquet")


def lengthening() -> tuple[Projection, Build]:
    """Obliquely erased, and not brought to length one, vectors may become longer than they were."""
    given = oblique()
    by = replace(given, normalise=False, space=replace(given.space, normalised=False))
    # Along the largest singular vector, each number as large as it can be.
    stretch = np.linalg.svd(by.linear(np.eye(DIM)) - by.linear(np.zeros((1, DIM))))[0][:, 0]
    long = 65_000 * np.stack([stretch / np.abs(stretch).max() / 100, np.sign(stretch)])
    return by, faces(long.astype(np.float16), space=None)


def collected(*changes: Build) -> Build:
    """The folder, and what is changed in it."""

    def build(at: Path) -> None:
        collection(at / "raw")
        for change in changes:
            change(at)

    return build


def erased(*changes: Build) -> Build:
    """The folder and its erased copy, and what is changed in them."""
    return collected(lambda at: sanitise_directory(projection(), at / "raw", at / "clean"), *changes)


def unfinished(*changes: Build) -> Build:
    """As if the run had been killed before its receipt was written."""
    return erased(lambda at: (at / "clean/_unface/receipt.json").unlink(), *changes)


def planned(**changed: object) -> Build:
    """Another plan than the run wrote."""

    def change(at: Path) -> None:
        path = at / "clean/_unface/manifest.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | changed))

    return change


def put(name: str, content: pa.Table | bytes) -> Build:
    def change(at: Path) -> None:
        (at / name).parent.mkdir(exist_ok=True)
        if isinstance(content, bytes):
            (at / name).write_bytes(content)
        else:
            pq.write_table(content, at / name)

    return change


def flipped(at: Path) -> None:
    path = at / "clean/a.parquet"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def ray(name: str, address: str, *names: str, shown: str | None = None) -> Row:
    """A cluster that cannot be joined."""

    def act(_: Path) -> None:
        with ray_executor(address):
            pass

    return Row(f"ray-{name}", act, "apply", f"--ray {address if shown is None else shown}", names)


def without_ray(_: Path) -> None:
    with patch.dict(sys.modules, {"ray": None}), ray_executor("auto"):
        pass


def silent_head(_: Path) -> None:
    with patch.object(socket, "create_connection", side_effect=TimeoutError("timed out")), ray_executor("head:6379"):
        pass


def from_environment(_: Path) -> None:
    with patch.dict("os.environ", {"RAY_ADDRESS": "somewhere"}), ray_executor("auto"):
        pass


def checked(name: str, *names: str, **seen: float) -> Row:
    """Vectors read back that are not those that were written."""
    first = Projection("isp", np.eye(4)[:, :1].copy(), np.ones(1), Space(None, None, 4, normalised=True))
    check = Check(first, allowed=4e-6, **seen)  # type: ignore[arg-type]  # options of several types
    return Row(f"check-{name}", lambda _: check.require(1201, "a.parquet"), "apply", "a.parquet", names)


OTHER = Projection("isp", np.eye(DIM)[:, :2].copy(), np.ones(2), projection().space)
CLIP = Space("clip", None, DIM, normalised=False)
LENGTHENS, LONG = lengthening()
ODD = PEOPLE.vectors.astype(np.float64)
ODD[[0, 13, 14, 119], 5] = [np.nan, np.inf, -np.inf, 1e39]

test_refused = table(
    "scale",
    file("half-precision", LONG, "row 1", by=LENGTHENS),
    *(
        file(
            f"erased-once-{name}",
            erased_once(space),
            where="projection",
            by=projection(space or UNNAMED),
        )
        for name, space in {"named": projection().space, "unnamed": UNNAMED, "silent": None}.items()
    ),
    file(
        "erased-by-another",
        erased_once(UNNAMED),
        code="projection",
        where="projection",
        by=replace(projection(UNNAMED), kind="sal"),
    ),
    file(
        "other-space",
        faces(),
        "'clip'",
        "'arcface'",
        "'abababababab'",
        code="projection",
        where="projection",
        by=projection(CLIP),
    ),
    file("other-dimensions", faces(PEOPLE.vectors[:, :8], space=None), "8", "16"),
    file("nan", faces(bad(np.nan, 3, 40)), "row 3", "2 in all", "--bad-rows"),
    file("infinity", faces(bad(np.inf, 3, 40)), "row 3", "2 in all"),
    file("no-vector", column(lacking(9)), "row 9", "--bad-rows"),
    file("row-of-five", column(lacking(57, [1.0] * 5)), "row 57", "5", "16"),
    file("no-column", faces(), "'emb'", "taken, id, vector, tags, price, kind", "--vector-column", vector="emb"),
    file("column-of-text", faces(), "'kind'", "dictionary", vector="kind", code="vectors"),
    file("column-twice", put("faces.parquet", stored().append_column("id", stored().column("id"))), "'id'"),
    file("is-the-source", faces(), to="faces.parquet"),
    file("is-the-source-by-a-link", linked, to="l", where="l"),
    file("csv", put("faces.csv", b"id,vector\n1,2\n"), code="file", source="faces.csv", where="faces.csv"),
    file("a-folder", lambda at: (at / "faces").mkdir(), source="faces", where="faces"),
    file("missing", lambda at: None, code="file", source="none", where="none"),
    file(
        "npz-one-array",
        archive(vectors=PEOPLE.vectors[0], names=NAMES),
        "(16,)",
        source="faces.npz",
        where="faces.npz",
        to="out.npz",
        code="vectors",
    ),
    file(
        "npz-no-array",
        archive(vectors=PEOPLE.vectors, names=NAMES),
        "'emb'",
        "'vectors', 'names'",
        source="faces.npz",
        where="faces.npz",
        to="out.npz",
        vector="emb",
        code="missing-column",
    ),
    file(
        "npz-has-no-nulls",
        archive(vectors=PEOPLE.vectors),
        "faces.npz",
        source="faces.npz",
        where="--bad-rows null",
        to="out.npz",
        on_bad="null",
    ),
    file(
        "npz-called-parquet",
        archive(vectors=PEOPLE.vectors),
        "npz",
        source="faces.npz",
        where="out.PARQUET",
        to="out.PARQUET",
    ),
    file("parquet-called-npz", faces(), "parquet", where="out.npz", to="out.npz"),
    file("bad-rows-word", faces(), "fail, drop or null", where="--bad-rows skip", on_bad="skip", code="vectors"),
    folder("finished", erased(), "--force"),
    folder(
        "plan-of-another-schema", unfinished(planned(schema="somebody's/1")), "_unface/manifest.json", code="output"
    ),
    folder("plan-of-other-files", unfinished(planned(files=["a.parquet"])), "_unface/manifest.json", code="output"),
    folder("begun-with-another-projection", unfinished(), "projection", "--force", by=OTHER, code="output"),
    folder(
        "begun-with-another-source",
        unfinished(lambda at: collection(at / "other")),
        "source",
        source="other",
        code="output",
    ),
    folder(
        "begun-with-a-file-more",
        unfinished(lambda at: (at / "raw/empty.parquet").unlink()),
        "empty.parquet is gone",
        code="output",
    ),
    folder(
        "begun-with-a-file-less", unfinished(put("raw/more.parquet", stored())), "more.parquet is new", code="output"
    ),
    folder(
        "other-space",
        collected(put("raw/z.parquet", stored(space=CLIP))),
        "'arcface'",
        "'clip'",
        code="projection",
        where="projection",
    ),
    folder(
        "other-dimensions",
        collected(put("raw/z.parquet", stored(PEOPLE.vectors[:, :8], None))),
        "8",
        "16",
        where="z.parquet",
    ),
    folder(
        "no-column",
        collected(put("raw/z.parquet", pa.table({"id": ["a"]}))),
        "'vector'",
        "--vector-column",
        where="z.parquet",
    ),
    folder("holds-others", collected(put("clean/theirs.parquet", stored())), "theirs.parquet"),
    folder("holds-others-forced", collected(put("clean/theirs.parquet", stored())), "theirs.parquet", force=True),
    folder("is-the-source", collected(), to="raw", where="raw"),
    folder("in-the-source", collected(), to="raw/in", where="in"),
    folder("around-the-source", collected(), to=".", where="folder"),
    folder(
        "is-the-source-by-a-link", collected(lambda at: (at / "link").symlink_to(at / "raw")), to="link", where="link"
    ),
    folder("empty", lambda at: (at / "raw").mkdir(), where="raw", code="file"),
    folder("missing", lambda at: None, where="raw", code="file"),
    folder("changed-after-it-was-written", erased(flipped), where="a.parquet", verify=True),
    folder(
        "verified-already",
        erased(lambda at: sanitise_directory(projection(), at / "raw", at / "clean", verify=True)),
        verify=True,
    ),
    Row(
        "released-other-dimensions",
        lambda _: released_vectors(projection(), PEOPLE.vectors[:, :8], "faces"),
        "apply",
        "faces",
        ("8", "16"),
    ),
    Row(
        "released-nan", lambda _: released_vectors(projection(), ODD, "faces"), "apply", "faces", ("row 0", "4 in all")
    ),
    checked("rows-lost", "1,200", "1,201", rows=1200),
    checked("not-erased", "0.12", "4e-06", rows=1201, largest_left=0.123),
    checked("lengths", "0.12", "4e-06", rows=1201, worst_length=0.123),
    *(
        ray(f"address-{at}", address, "HOST:PORT", shown=shown)
        for at, (address, shown) in enumerate(
            {
                "": "",
                "head": "head",
                "head:": "head:",
                "head:port": "head:…",
                ":6379": ":6379",
                "head:99999": "head:…",
                "ray://": "ray://",
                "http://head:80": "http://head:80",
            }.items()
        )
    ),
    Row("ray-not-installed", without_ray, "apply", "--ray", "unface[ray]"),
    Row("ray-silent-head", silent_head, "apply", "--ray head:6379", "timed out"),
    Row("ray-address-of-the-environment", from_environment, "apply", "--ray somewhere"),
)
