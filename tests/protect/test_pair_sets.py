"""If these fail, the accuracy of a release is not the one that papers mean, or a pack of pairs can run code."""

import os
import pickle
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.refusals.table import refused
from unface.data import ImageRef, ImageSet
from unface.protect.pair_sets import (
    PairSet,
    best_threshold,
    listed_pairs,
    packed_pairs,
    read_pack,
    read_pair_set,
    read_pairs,
    ten_fold,
)
from unface.seeds import stream

PAIRS = "2\t1\nAnn\t1\t4\nAnn\t2\tBo_Li\t13\nCy\t2\t3\nCy\t1\tAnn\t1\n"


def test_pairs_are_pictures_of_one_or_two_people_in_folds() -> None:
    pairs, mated, folds = read_pairs(PAIRS)
    assert pairs == [
        ("Ann_0001", "Ann_0004"),
        ("Ann_0002", "Bo_Li_0013"),
        ("Cy_0002", "Cy_0003"),
        ("Cy_0001", "Ann_0001"),
    ]
    assert mated.tolist() == [True, False, True, False]
    assert folds.tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("\n".join(PAIRS.splitlines()[:-1]), "promises 4"),
        ("", "LFW's"),
        ("2 1\nAnn\n", "LFW's"),
    ],
)
def test_a_list_that_was_cut_off_or_is_another_file_is_refused(text: str, words: str) -> None:
    with refused("protection", "pairs.txt", words):
        read_pairs(text)


def test_the_threshold_is_the_one_with_the_fewest_mistakes() -> None:
    scores = np.array([0.9, 0.8, 0.7, 0.6, 0.5])
    assert best_threshold(scores, np.array([True, True, False, True, False])) == 0.8
    assert best_threshold(scores, np.array([True, True, False, True, True])) == 0.5


def test_equal_scores_are_accepted_together() -> None:
    """One score for all: whatever the order of the pairs, no threshold tells them apart."""
    scores = np.full(6, 0.5)
    mated = np.array([True, True, True, False, False, False])
    np.testing.assert_array_equal(ten_fold(scores, mated, np.arange(6) % 3), [0.5, 0.5, 0.5])
    # Accepting both at 0.7 makes one mistake, accepting the mated one alone is impossible; 0.9 alone makes two.
    assert best_threshold(np.array([0.9, 0.7, 0.7, 0.7]), np.array([True, True, True, False])) == 0.7


def test_a_fold_never_chooses_its_own_threshold() -> None:
    scores = np.array([0.9, 0.1, 0.9, 0.1, 0.4, 0.3])  # the last fold would be right at a threshold of its own
    mated = np.array([True, False, True, False, True, False])
    np.testing.assert_array_equal(ten_fold(scores, mated, np.array([0, 0, 1, 1, 2, 2])), [1, 1, 0.5])


def test_accuracy_of_vectors_worked_by_hand() -> None:
    """Cosines are 1, 0, 1, 0 in fold 0 and 1, 1 in fold 1, whose second pair shows strangers: 1 and 0.5."""
    vectors = np.array([[1, 0], [0, 1]], np.float32)
    pairs = np.array([[0, 0], [0, 1], [1, 1], [1, 0], [0, 0], [1, 1]])
    mated = np.array([True, False, True, False, True, False])
    made = PairSet("made", np.zeros((2, 1, 1, 3), np.uint8), pairs, mated, np.array([0, 0, 0, 0, 1, 1]))
    np.testing.assert_array_equal(made.accuracies(vectors), [1, 0.5])


def picture(number: int) -> bytes:
    content = BytesIO()
    Image.fromarray(stream(number, "pair").integers(0, 256, (112, 112, 3), dtype=np.uint8)).save(content, "PNG")
    return content.getvalue()


def test_listed_pictures_are_found_by_name_and_missing_ones_are_named() -> None:
    names = ["Ann_0001", "Ann_0002", "Ann_0004", "Bo_Li_0013", "Cy_0001", "Cy_0002", "Cy_0003", "Unused_0001"]
    refs = tuple(
        ImageRef(f"x/{name}.jpg", "x", lambda at=at: picture(at))  # type: ignore[misc]
        for at, name in enumerate(names)
    )
    found = listed_pairs(ImageSet(refs, "lfw"), PAIRS, 16)
    assert found.frames.shape == (7, 16, 16, 3)
    assert found.pairs.tolist() == [[0, 2], [1, 3], [5, 6], [4, 0]]
    with refused("protection", "lfw", "1", "of 7", "as Cy_0003"):
        listed_pairs(ImageSet(refs[:6], "lfw"), PAIRS, 16)


PICTURES = [picture(number) for number in range(20)]
ANSWERS = [number % 3 == 0 for number in range(10)]


@pytest.mark.parametrize("protocol", [3, 4, 5])
def test_a_pack_is_read_as_pickle_would(tmp_path: Path, protocol: int) -> None:
    path = tmp_path / "agedb_30.bin"
    path.write_bytes(pickle.dumps((PICTURES, ANSWERS), protocol))
    assert read_pack(path) == (PICTURES, ANSWERS)
    found = read_pair_set(str(path), 112)
    assert (found.name, found.folds.tolist()) == ("agedb_30", list(range(10)))
    np.testing.assert_array_equal(found.pairs[3], [6, 7])
    np.testing.assert_array_equal(found.frames[7], np.asarray(Image.open(BytesIO(PICTURES[7]))))
    assert found.mated.tolist() == ANSWERS


def test_a_pack_of_python_2_is_read(tmp_path: Path) -> None:
    """Its str are SHORT_BINSTRING (U) and BINSTRING (T); the answers are NEWTRUE and NEWFALSE."""
    files = b"".join(b"U\x02\xff" + bytes([n]) if n % 2 else b"T\x02\0\0\0\xfe" + bytes([n]) for n in range(20))
    content = b"\x80\x02]q\0(" + files + b"e]q\x01(" + b"\x88\x89" * 5 + b"e\x86q\x02."
    path = tmp_path / "old.bin"
    path.write_bytes(content)
    assert pickle.loads(content, encoding="bytes") == read_pack(path)
    assert read_pack(path)[0][3] == b"\xff\x03"


class Harm:
    """What a hostile pack would do."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, ("harmed",)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (pickle.dumps((PICTURES, [*ANSWERS[:-1], Harm()])), "does not need"),
        (pickle.dumps(Harm(), 0), "does not need"),
        (pickle.dumps((PICTURES, ANSWERS))[:-50], "pairs"),
        (b"", "pairs"),
        (b"\x80\x04e.", "pairs"),
        (pickle.dumps((PICTURES[1:], ANSWERS)), "each"),
        (pickle.dumps((PICTURES, PICTURES[:10])), "each"),
        (pickle.dumps((PICTURES[:2], ANSWERS[:1])), "each"),
    ],
)
def test_a_hostile_or_damaged_pack_is_refused_and_runs_nothing(
    content: bytes, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pack.bin").write_bytes(content)
    with refused("protection", "pack.bin", words):
        packed_pairs(Path("pack.bin"), 16)
    assert not Path("harmed").exists()


def test_other_files_are_refused_in_one_line(tmp_path: Path) -> None:
    with refused("protection", "--pairs x.npz", "PACK.bin"):
        read_pair_set("x.npz", 16)
    with refused("protection", "no.bin"):
        read_pair_set(str(tmp_path / "no.bin"), 16)
    with refused("protection", ..., "expected LFW's"):
        read_pair_set(f"{tmp_path},{tmp_path / 'pairs.txt'}", 16)
    bad = tmp_path / "bad.bin"
    bad.write_bytes(pickle.dumps(([b"no picture"] * 20, ANSWERS)))
    with refused("protection", "bad.bin", "picture 0"):
        read_pair_set(str(bad), 16)
