"""If these fail, bad input ends in a traceback, in a page of text, or in an audit of something that is not there.

End to end: exit 1, one line on standard error that starts with ``unface: ``, nothing on standard output, and no folder.
"""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.command import Done, unface
from unface import make_identities, write_embeddings
from unface.data import EmbeddingSet

QUICK = ["--eraser", "none", "--far", "0.05", "--probe", "cosine", "--seeds", "1", "--bootstraps", "100"]
PEOPLE = make_identities(40, 6, 4, between=1.5, seed=2)
NAMES = np.array(PEOPLE.names)[PEOPLE.identities]


def refused(source: Path, *options: object, quick: bool = True) -> str:
    """The line without its beginning, after all that must hold for every refusal has been seen to hold."""
    out = source.parent / "out"
    done = unface("audit", source, "--out", out, *(QUICK if quick else []), *options)
    assert not out.exists()
    return line_of(done)


def line_of(done: Done) -> str:
    assert (done.code, done.out) == (1, "")
    assert done.err.endswith("\n")
    assert len(done.err.splitlines()) == 1
    assert done.err.startswith("unface: ")
    return done.err.removeprefix("unface: ").removesuffix("\n")


@pytest.fixture
def faces(tmp_path: Path) -> Path:
    path = tmp_path / "faces.parquet"
    write_embeddings(PEOPLE, path)
    return path


def test_the_file_that_the_others_are_spoilt_from_is_fine(faces: Path) -> None:
    done = unface("audit", faces, "--out", faces.parent / "out", *QUICK, "--quiet")
    assert (done.code, done.out, done.err) == (0, "", "")


def test_a_missing_file(tmp_path: Path) -> None:
    assert refused(tmp_path / "none.parquet") == "none.parquet: no such file or directory"


def test_a_missing_column_is_told_with_those_there_are(faces: Path) -> None:
    told = refused(faces, "--identity-column", "person")
    assert "'person'" in told
    assert all(column in told for column in ("id", "identity", "vector"))
    assert "'emb'" in refused(faces, "--vector-column", "emb")


@pytest.mark.parametrize("option", ["--group", "--context", "--split-column"])
def test_a_missing_label_is_told(faces: Path, option: str) -> None:
    assert "shoot" in refused(faces, option, "shoot")


def test_a_row_with_nan_is_named(faces: Path) -> None:
    table = pq.read_table(faces)
    vectors = table["vector"].to_pylist()
    vectors[7][2] = float("nan")
    kind = pa.list_(pa.float32(), 4)
    spoilt = table.set_column(table.schema.get_field_index("vector"), "vector", pa.array(vectors, type=kind))
    pq.write_table(spoilt, faces)
    expected = "faces.parquet: row 7 (id 'p0002-1') has NaN in 'vector'; drop it or pass --bad-rows drop"
    assert refused(faces) == expected


def test_one_identity(tmp_path: Path) -> None:
    pq.write_table(pa.table({"identity": ["ann"] * 4, "vector": np.eye(4).tolist()}), tmp_path / "ann.parquet")
    expected = "ann.parquet: every row has identity 'ann' in 'identity'; at least two identities are needed"
    assert refused(tmp_path / "ann.parquet") == expected


def test_too_few_identities_for_the_roles_are_told_with_how_many_are_needed(tmp_path: Path) -> None:
    write_embeddings(make_identities(6, 6, 4), tmp_path / "few.parquet")
    told = refused(tmp_path / "few.parquet")
    assert told.startswith("split: 6 identities are too few for fit, train, calibrate, test; at least ")


def test_too_few_images_are_told_with_how_many_there_are(tmp_path: Path) -> None:
    write_embeddings(make_identities(40, 1, 4), tmp_path / "one.parquet")
    expected = "1 image for each identity is too few; 2 are needed: --images 2 or more leaves out identities with fewer"
    assert refused(tmp_path / "one.parquet") == expected
    write_embeddings(make_identities(40, 2, 4), tmp_path / "few.parquet")
    expected = (
        "2 images for each identity are too few; 3 are needed, 1 to learn from and 2 to compare: --images 3 or more "
        "leaves out identities with fewer"
    )
    assert refused(tmp_path / "few.parquet", "--variant", "paper", "--seeds", "2") == expected
    asked = refused(tmp_path / "few.parquet", "--images", "9")
    assert asked == (
        "few.parquet: 0 of 40 identities have at least 9 images, 2 are needed; identities by images: 40 with 2"
    )


def test_an_identity_in_two_roles(tmp_path: Path) -> None:
    roles = np.array(["fit", "train", "calibrate", "test"])[PEOPLE.identities % 4]
    roles[1] = "calibrate"
    both = EmbeddingSet.from_arrays(PEOPLE.vectors, NAMES, labels={"role": roles})
    write_embeddings(both, tmp_path / "faces.parquet")
    expected = "split: identity 'p0001' is in two roles, fit and calibrate; give it one"
    assert refused(tmp_path / "faces.parquet", "--split-column", "role") == expected


def test_an_npz_that_would_have_to_be_unpickled_is_not_opened(tmp_path: Path) -> None:
    class Bomb:
        def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
            return os.mkdir, (str(tmp_path / "exploded"),)

    np.savez(tmp_path / "bomb.npz", vectors=PEOPLE.vectors, identities=np.array([Bomb()] * len(PEOPLE), dtype=object))
    assert refused(tmp_path / "bomb.npz").startswith("bomb.npz: ")
    assert not (tmp_path / "exploded").exists()


@pytest.mark.parametrize("share", [0.1, 0.5, 0.99])
def test_a_truncated_parquet_file(faces: Path, share: float) -> None:
    content = faces.read_bytes()
    faces.write_bytes(content[: int(share * len(content))])
    assert refused(faces).startswith("faces.parquet: ")


@pytest.mark.parametrize("content", [b"", b"id,identity\n1,ann\n", b"PAR1", b"PK\x03\x04", b"\x93NUMPY\x01\x00"])
def test_files_of_no_kind_we_know(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "faces.parquet").write_bytes(content)
    assert refused(tmp_path / "faces.parquet").startswith("faces.parquet: ")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("--probe forest", "probe 'forest' is not known; choose from cosine, ridge, lda, plda, net, mlp"),
        ("--probe cosine,", "probe '' is not known; choose from cosine, ridge, lda, plda, net, mlp"),
        ("--variant mine", "variant 'mine' is not known; use unface or paper"),
        ("--bootstrap jackknife", "bootstrap 'jackknife' is not known; use double-or-nothing or multinomial"),
        ("--device tpu", "device 'tpu' is not known; use 'cpu' or 'cuda'"),
        ("--far one", "--far: 'one' is not a number"),
        ("--far 0.1,,0.2", "--far: '' is not a number"),
        ("--far 0", "a false-accept rate lies between 0 and 1, not 0"),
        ("--far 2", "a false-accept rate lies between 0 and 1, not 2"),
        ("--far nan", "a false-accept rate lies between 0 and 1, not nan"),
        ("--far=-0.1", "a false-accept rate lies between 0 and 1, not -0.1"),
        ("--k 1.5", "--k: 1.5 is not a whole number"),
        ("--k inf", "--k: inf is not a whole number"),
        ("--k nan", "--k: nan is not a whole number"),
        ("--k few", "--k: 'few' is not a number"),
        ("--k 0", "k is the number of support images, at least 1, not 0"),
        (
            "--k 7",
            "k = 7 needs 7 images for each identity, 6 are used; ask for a smaller k, or for more --images of fewer "
            "identities",
        ),
        (  # the paper compares what k images leave
            "--seeds 2 --variant paper --k 5",
            "k = 5 needs 7 images for each identity, 6 are used; ask for a smaller k, or for more --images of fewer "
            "identities",
        ),
        (  # 8 people of 6 images: 28 · 36 pairs; n people have 18 n (n − 1), and 409 is the first n with 3 million
            "--far 1e-6",
            "faces.parquet: FAR 1e-6 needs at least 2,044 people with 6 pictures each; this set has 40. "
            "Use --far 0.01 or add people",
        ),
    ],
)
def test_options_that_make_no_sense(faces: Path, options: str, sentence: str) -> None:
    given = dict(zip(QUICK[::2], QUICK[1::2], strict=True))
    option = options.replace("=", " ").split(" ")[0]
    rest = [word for name, value in given.items() if name != option for word in (name, value)]
    assert refused(faces, *options.split(" "), *rest, quick=False) == sentence


def test_out_that_is_a_file_is_left_alone(faces: Path) -> None:
    out = faces.parent / "taken"
    out.write_text("mine")
    told = line_of(unface("audit", faces, "--out", out, *QUICK))
    assert told == f"{out}: is a file; --out takes a folder"
    assert out.read_text() == "mine"


def test_out_that_cannot_be_made(faces: Path) -> None:
    (faces.parent / "taken").write_text("mine")
    told = line_of(unface("audit", faces, "--out", faces.parent / "taken" / "out", *QUICK))
    taken = faces.parent / "taken"
    assert told == f"{taken / 'out'}: cannot be written, {taken} is a file; choose another --out"


def test_a_finished_audit_is_found_before_any_work_is_done(faces: Path) -> None:
    out = faces.parent / "out"
    assert unface("audit", faces, "--out", out, *QUICK, "--quiet").code == 0
    before = (out / "audit.json").read_bytes()
    faces.unlink()  # not even looked at
    told = line_of(unface("audit", faces, "--out", out, *QUICK))
    assert told == f"{out / 'audit.json'}: exists already; choose another --out or pass --force"
    assert (out / "audit.json").read_bytes() == before


def test_names_with_line_breaks_stay_on_one_line(tmp_path: Path) -> None:
    roles = np.array(["fit", "train", "calibrate", "test"])[PEOPLE.identities % 4]
    roles[0] = "test"
    odd = EmbeddingSet.from_arrays(PEOPLE.vectors, [f"{name}\nsecond line" for name in NAMES], labels={"role": roles})
    write_embeddings(odd, tmp_path / "odd.parquet")
    told = refused(tmp_path / "odd.parquet", "--split-column", "role")
    assert told == "split: identity 'p0001\\nsecond line' is in two roles, test and fit; give it one"
    assert "no column" in refused(tmp_path / "odd.parquet", "--group", "a\nb\tc")
