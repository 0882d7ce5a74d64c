"""If these fail, a picture is asked about in the name of another person, or sets the threshold it is judged by."""

from collections.abc import Sequence
from io import BytesIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from tests.encode.tiny import card
from tests.refusals.table import refused
from unface.data import ImageRef, ImageSet
from unface.data.embeddings import Space
from unface.faces import Face
from unface.models import Input
from unface.validate.material import require_enough_to_ask_with, see, sha256_of, split_attacker, taken, without
from unface.validate.ports import Faces, Picture


class BrightFaces:
    """Finds a face wherever a picture is not black."""

    name = "bright"

    def detect(self, image: NDArray[np.uint8]) -> list[Face]:
        box = np.array([0.0, 0.0, image.shape[1], image.shape[0]])
        return [Face(box, np.zeros((5, 2)), 1.0)] if image.any() else []


class Colours:
    """The mean colour, as a unit vector."""

    def __init__(self, name: str, order: tuple[int, ...]) -> None:
        self.name, self._order, self.asked = name, list(order), list[int]()

    @property
    def wanted(self) -> Input:
        return card().input

    @property
    def space(self) -> Space:
        return Space(self.name, None, 3, True)

    def embed(self, frames: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        self.asked.append(len(frames))
        mean = np.stack([frame.reshape(-1, 3).mean(axis=0) for frame in frames])[:, self._order]
        return np.asarray(mean / np.linalg.norm(mean, axis=1, keepdims=True), np.float32)


def shown(name: str, colour: tuple[int, int, int]) -> ImageRef:
    content = BytesIO()
    Image.new("RGB", (20, 20), colour).save(content, "PNG")
    return ImageRef(name, name.split("/", maxsplit=1)[0], content.getvalue)


def test_every_picture_is_seen_once_by_every_recogniser_and_what_is_left_out_is_named() -> None:
    people = [shown(f"{person}/{at}", (person, 100, 10 * at + 5)) for person in range(1, 36) for at in range(2)]
    black, again = shown("dark/0", (0, 0, 0)), shown("again/0", (1, 100, 5))
    broken = ImageRef("broken/0", "broken", lambda: b"no picture")
    one, other = Colours("one", (0, 1, 2)), Colours("other", (2, 1, 0))
    images = ImageSet((*people[:3], black, *people[3:], again, broken), "people")
    seen = see(images, {"a": one, "b": other}, BrightFaces(), task="look", threads=2)
    assert (seen.without_face, seen.unreadable) == (("dark/0",), ("broken/0",))
    assert seen.notes == ["1 picture left out: no face found", "1 picture left out: cannot be read"]
    faces = seen.faces
    assert [picture.name for picture in faces.pictures] == [image.id for image in people]
    assert [faces.names[person] for person in faces.identities] == [image.identity for image in people]
    assert faces.identities.dtype == np.int64
    expected = np.array([[person, 100, 10 * at + 5] for person in range(1, 36) for at in range(2)], float)
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(faces.vectors["a"], expected, atol=1e-6)
    np.testing.assert_allclose(faces.vectors["b"], expected[:, ::-1], atol=1e-6)
    assert one.asked == other.asked == [32, 32, 6]


def test_of_no_face_there_are_no_vectors_but_their_kind_is_known() -> None:
    seen = see(
        ImageSet((shown("dark/0", (0, 0, 0)),), "dark"), {"a": Colours("one", (0, 1, 2))}, BrightFaces(), task=""
    )
    vectors = seen.faces.vectors["a"]
    assert vectors.shape == (0, 3)
    assert vectors.dtype == np.float32
    assert not seen.faces.names


def crowd(people: int, each: int) -> Faces:
    codes = np.repeat(np.arange(people), each)
    pictures = tuple(Picture(f"p{code}/{at}", f"{code} {at}".encode()) for code in range(people) for at in range(each))
    vectors = np.stack([codes, np.arange(len(codes))], axis=1).astype(np.float32)
    return Faces(pictures, codes, tuple(f"p{code}" for code in range(people)), {"own": vectors})


def test_the_attacker_asks_with_one_face_each_and_nobody_of_them_sets_a_threshold() -> None:
    faces = crowd(9, 3)
    asked, rest = split_attacker(faces, 4, seed=1)
    assert (len(asked.pictures), len(set(asked.names)), len(rest.names), len(rest.pictures)) == (4, 4, 5, 15)
    assert not set(asked.names) & set(rest.names)
    assert asked.identities.tolist() == [0, 1, 2, 3]
    assert [picture.name for picture in asked.pictures] == [f"{name}/0" for name in asked.names]
    for part in (asked, rest):
        rows = [faces.pictures.index(picture) for picture in part.pictures]
        np.testing.assert_array_equal(part.vectors["own"], faces.vectors["own"][rows])
        assert [part.names[code] for code in part.identities] == [faces.pictures[row].name[:2] for row in rows]
    assert asked.names == ("p1", "p3", "p8", "p2"), "in every version the same"
    assert asked.names != split_attacker(faces, 4, seed=2)[0].names
    assert len(split_attacker(faces, 100, seed=1)[0].names) == 6, "a third is left for thresholds"


def test_nobody_is_asked_with_whose_picture_or_name_is_enrolled() -> None:
    faces = crowd(5, 2)
    named = taken(faces, [0])
    same_bytes = Faces(
        (faces.pictures[5],), np.zeros(1, np.int64), ("somebody",), {"own": np.zeros((1, 2), np.float32)}
    )
    assert without(faces, named).names == ("p1", "p2", "p3", "p4")
    assert without(faces, same_bytes).names == ("p0", "p1", "p3", "p4")
    assert len({sha256_of(faces), sha256_of(named), sha256_of(without(faces, named))}) == 3


def folder(people: int, each: int) -> ImageSet:
    names = [f"p{person:03}" for person in range(people) for _ in range(each)]
    return ImageSet(tuple(ImageRef(f"{name}/{at}", name, bytes) for at, name in enumerate(names)), "folder")


def test_too_few_people_to_set_a_threshold_with_are_refused_before_anybody_is_enrolled() -> None:
    """25 people with a picture each make 300 pairs, 3 of them above the threshold of 0.01."""
    with refused("validation", "--queries", "holds 72", "48 questions", "need 73", "least 25", "--budget 47"):
        require_enough_to_ask_with(folder(72, 1), None, 48, 1e-2)
    require_enough_to_ask_with(folder(73, 1), None, 48, 1e-2)
    faces = crowd(73, 1)
    assert len(split_attacker(faces, 500, seed=0)[1].names) == 25
    with refused("validation", "--queries", "holds 1"):
        require_enough_to_ask_with(folder(3, 1), folder(2, 1), 20, 1e-2)
    require_enough_to_ask_with(folder(45, 1), None, 20, 1e-2)
    require_enough_to_ask_with(folder(30, 4), None, 20, 1e-2)
    with refused("validation", "--queries", "holds 30", "FAR of 1e-4"):
        require_enough_to_ask_with(folder(30, 4), None, 20, 1e-4)
    with refused("validation", "--queries", "holds 400", "500 questions", "need 750", "--budget 266"):
        require_enough_to_ask_with(folder(400, 1), None, 500, 1e-2)


def test_people_who_are_all_enrolled_leave_nobody_to_ask_with() -> None:
    faces = crowd(9, 3)
    with refused("validation", "--queries", "0 people", "3 other people"):
        split_attacker(without(faces, faces), 4, seed=1)
