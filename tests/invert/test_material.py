"""If these fail, a decoder learns faces at another place than the prior and the attacked encoder have them."""

from io import BytesIO

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from tests.refusals.table import refused
from unface import EmbeddingSet
from unface.data import ImageRef
from unface.faces import ARCFACE_112, Face
from unface.invert.material import assign, in_frame, require_learners
from unface.seeds import stream

FACE = (0.125, 0.25, 0.5)
SIZE = 112
TEMPLATE = ARCFACE_112 * 0.5 + np.array([14.0, 28.0])


class Knows:
    """A detector that knows where the face is."""

    name = "told"

    def __init__(self, *landmarks: NDArray[np.float64]) -> None:
        self.landmarks = landmarks

    def detect(self, image: NDArray[np.uint8]) -> list[Face]:
        return [Face(np.array([20.0, 30.0, 40.0, 50.0]), one, 1.0) for one in self.landmarks]


def shown(picture: NDArray[np.uint8]) -> ImageRef:
    content = BytesIO()
    Image.fromarray(picture).save(content, "PNG")
    return ImageRef("a/0.png", "a", content.getvalue)


def test_a_picture_in_the_priors_frame_stays_as_it_is() -> None:
    picture = stream(0, "frame").integers(0, 256, (SIZE, SIZE, 3), dtype=np.uint8)
    (found,) = in_frame([shown(picture)], Knows(TEMPLATE), FACE, SIZE)
    assert np.array_equal(found, picture)


def test_a_face_elsewhere_is_brought_to_its_place() -> None:
    picture = np.zeros((200, 160, 3), np.uint8)
    picture[40:152, 30:142] = stream(1, "frame").integers(0, 256, (SIZE, SIZE, 3), dtype=np.uint8)
    (found,) = in_frame([shown(picture)], Knows(TEMPLATE + np.array([30.0, 40.0])), FACE, SIZE)
    assert np.array_equal(found, picture[40:152, 30:142])


@pytest.mark.parametrize("shape", [(60, 30), (30, 60)])
def test_without_a_face_it_is_the_middle(shape: tuple[int, int]) -> None:
    picture = np.zeros((*shape, 3), np.uint8)
    picture[shape[0] // 2 - 15 : shape[0] // 2 + 15, shape[1] // 2 - 15 : shape[1] // 2 + 15] = 200
    (found,) = in_frame([shown(picture)], Knows(), FACE, 30)
    assert found.shape == (30, 30, 3)
    assert (found == 200).all()


PEOPLE, EACH = 60, 3


def seen_by(name: str, *, blind: tuple[str, ...] = ()) -> EmbeddingSet:
    """Three pictures of each of 60 people, person p7's second one p7/1; some without a face for this encoder."""
    ids = [f"p{person}/{at}" for person in range(PEOPLE) for at in range(EACH)]
    vectors = stream(0, name).standard_normal((PEOPLE, 1, 8)) + 0.2 * stream(1, name).standard_normal((PEOPLE, EACH, 8))
    kept = [row for row, one in enumerate(ids) if one not in blind]
    whole = EmbeddingSet.from_arrays(
        vectors.reshape(-1, 8).astype(np.float32), [one.split("/")[0] for one in ids], ids=ids, source=f"{name}.parquet"
    )
    return whole.take(np.array(kept)).unit()


def test_everybody_has_one_role_and_vectors_stay_with_their_pictures() -> None:
    attacked, judge = seen_by("attacked"), seen_by("judge", blind=("p3/0", "p4/2"))
    own = seen_by("own", blind=("p5/1",))
    made = assign(attacked, {"judge": judge}, ("own", own), 20, seed=4)
    place = {str(one): row for row, one in enumerate(attacked.ids)}
    targets = [one.split("/")[0] for one in made.attacked]
    assert (len(targets), len(set(targets)), made.facts.targets, made.facts.pictures) == (20, 20, 20, 60)
    assert (made.facts.source, made.facts.train, made.facts.calibrate) == ("attacked.parquet", 20, 20)
    assert made.people.identities.tolist() == np.repeat(np.arange(20), EACH).tolist()
    assert made.people.identities.dtype == np.int64
    # a target's attacked picture is its first that the judge sees a face in
    assert made.attacked == tuple(f"{name}/{1 if name == 'p3' else 0}" for name in targets)
    ids = [f"{name}/{at}" for name in targets for at in range(EACH)]
    np.testing.assert_array_equal(made.people.vectors, attacked.vectors[[place[one] for one in ids]])
    assert [ids[row] for row in made.people.rows] == list(made.attacked)
    for name, found in (("judge", judge), ("own", own)):
        there = {str(one): vector for one, vector in zip(found.ids, found.vectors, strict=True)}
        expected = [there.get(one, np.zeros(8, np.float32)) for one in ids]
        np.testing.assert_array_equal(made.people.seen[name], expected)
    learned = [str(one).split("/")[0] for one in made.train_set.ids]
    assert not set(learned) & set(targets)
    assert len(set(learned)) == 20
    assert made.train.people.tolist() == np.repeat(np.arange(20), EACH).tolist()
    there = {str(one): vector for one, vector in zip(own.ids, own.vectors, strict=True)}
    expected = [there.get(str(one), np.zeros(8, np.float32)) for one in made.train_set.ids]
    np.testing.assert_array_equal(made.train.features["own"], expected)
    assert ([juror.name for juror in made.jury], made.jury[0].independent) == (["judge"], True)
    assert made.own is not None
    assert (made.own.name, made.own.independent) == ("own", False)


def test_at_most_a_third_are_targets_and_without_two_of_them_there_is_no_attack() -> None:
    attacked = seen_by("attacked")
    assert len(assign(attacked, {}, ("own", seen_by("own")), 100).attacked) == PEOPLE // 3
    nobody = seen_by("judge", blind=tuple(str(one) for one in attacked.ids if not str(one).startswith("p7/")))
    with refused("inversion", "attacked.parquet", "60", "give 1", "least 2"):
        assign(attacked, {"judge": nobody}, None, 20)


def test_as_many_people_as_the_refusal_asks_for_are_enough_to_learn_from() -> None:
    # a third of 30 people are targets, and half of the other 20 are learned from
    require_learners(30, 100, 10, "decoder")
    require_learners(35, 100, 12, "decoder")
    require_learners(40, 5, 17, "decoder")  # no more targets than were asked for
