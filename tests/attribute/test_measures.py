"""If these fail, a pair, a draw or an interval of attribution is not what its definition says."""

import io
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image

from tests.attribute.averages import Averages
from tests.attribute.scenes import Scene, exact_swap
from unface.attribute import Canvas, attribute, canvas_of, locate, reader_of
from unface.attribute.measures import Draws, _medians, half_crossings, overtaking_points, smallest_levels
from unface.attribute.pairing import NO_DONOR, NO_FCR, ONE_PICTURE, ONE_SHOOT, paired
from unface.data import BadPicture, ImageRef, ImageSet
from unface.faces import ARCFACE_112, DLIB_150, Face, align_face
from unface.models import card
from unface.seeds import stream

BLANK = canvas_of(Scene(0, 0).draw(), 64)


def canvas(name: str, identity: str, context: NDArray[np.float32]) -> Canvas:
    assert isinstance(BLANK, Canvas)
    return replace(BLANK, id=name, identity=identity, context=context)


def somewhere(number: int) -> NDArray[np.float32]:
    direction = stream(number, "context").standard_normal(192)
    return np.asarray(direction / np.linalg.norm(direction), dtype=np.float32)


def test_pairs_keep_every_promise() -> None:
    rng = stream(0, "crowd")
    owners = rng.integers(0, 12, 150)
    canvases = [canvas(f"c{n:03d}", f"p{owner}", somewhere(n % 100)) for n, owner in enumerate(owners)]
    fcr = rng.normal(0.3, 0.015, 150)
    pairing = paired(canvases, fcr, seed=0)
    contexts = np.stack([one.context for one in canvases])
    assert len(pairing.queries) + sum(one.step == "pairing" for one in pairing.left_out) == 150
    assert (owners[pairing.queries] == owners[pairing.references]).all()
    assert (pairing.queries != pairing.references).all()
    assert (np.abs(fcr[pairing.queries] - fcr[pairing.references]) <= 0.02 * fcr[pairing.queries]).all()
    assert (np.einsum("nc,nc->n", contexts[pairing.queries], contexts[pairing.references]) < 0.9).all()
    given = pairing.donors >= 0
    assert (owners[pairing.donors[given]] != owners[pairing.queries[given]]).all()
    assert (np.abs(fcr[pairing.donors] - fcr[pairing.queries]) <= 0.02 * fcr[pairing.queries])[given].all()
    np.testing.assert_array_equal(
        pairing.fcr_difference, np.abs(fcr[pairing.queries] - fcr[pairing.references]) / fcr[pairing.queries]
    )


def test_who_has_no_pair_is_named_with_the_reason() -> None:
    canvases = [
        canvas("alone", "a", somewhere(0)),
        canvas("small", "b", somewhere(1)),
        canvas("large", "b", somewhere(2)),
        canvas("shoot 1", "c", somewhere(3)),
        canvas("shoot 2", "c", somewhere(3)),
        canvas("fine 1", "d", somewhere(4)),
        canvas("fine 2", "d", somewhere(5)),
    ]
    pairing = paired(canvases, np.array([0.3, 0.3, 0.31, 0.3, 0.3, 0.4, 0.4]), seed=0)
    assert {(one.id, one.reason) for one in pairing.left_out} == {
        ("alone", ONE_PICTURE),
        ("small", NO_FCR),
        ("large", NO_FCR),
        ("shoot 1", ONE_SHOOT),
        ("shoot 2", ONE_SHOOT),
        ("fine 1", NO_DONOR),
        ("fine 2", NO_DONOR),
    }
    assert pairing.queries.tolist() == [5, 6]
    assert pairing.references.tolist() == [6, 5]
    assert pairing.donors.tolist() == [-1, -1]


def test_one_person_more_changes_nobody_elses_reference() -> None:
    canvases = [canvas(f"c{n:02d}", f"p{n % 5}", somewhere(n)) for n in range(40)]
    fcr = np.full(40, 0.3)
    whole = paired(canvases, fcr, seed=3)
    more = paired([*canvases, *(canvas(f"d{n}", "new", somewhere(50 + n)) for n in range(2))], np.full(42, 0.3), seed=3)
    other = paired(canvases, fcr, seed=4)
    np.testing.assert_array_equal(whole.references, more.references[:40])
    assert (whole.references != other.references).any()
    assert len(np.unique(whole.references)) > 10


@given(st.lists(st.tuples(st.integers(-5, 5), st.integers(0, 3)), min_size=1, max_size=30))
def test_a_weighted_median_is_that_of_the_values_repeated(rows: list[tuple[int, int]]) -> None:
    values, weights = np.array(sorted(rows), dtype=float).T
    if not weights.any():
        return
    expected = np.median(np.repeat(values, weights.astype(int)))
    assert _medians(values, weights[None])[0] == expected


def test_intervals_come_from_identities_and_not_from_pairs() -> None:
    rng = stream(0, "pairs")
    identities = np.repeat(np.arange(40), 25)
    values = rng.standard_normal(40)[identities] + 0.1 * rng.standard_normal(1000)
    draws = Draws.of(identities, seed=0, level=0.95)
    found = draws.mean(values)
    assert found.value == values.mean()
    assert (found.of, found.identities) == (1000, 40)
    standard_error = values.reshape(40, 25).mean(axis=1).std() / np.sqrt(40)
    assert found.high - found.low == pytest.approx(2 * 1.96 * standard_error, rel=0.08)
    middle = draws.median(values)
    assert middle.value == np.median(values)
    assert middle.low < middle.value < middle.high
    assert middle.high - middle.low > 2 * standard_error


def test_identities_that_are_named_otherwise_get_the_same_interval() -> None:
    values = stream(1, "pairs").standard_normal(60)
    codes = np.repeat(np.arange(20), 3)
    assert Draws.of(codes, 0, 0.95).mean(values) == Draws.of(7 * codes + 3, 0, 0.95).mean(values)


def test_a_share_of_none_or_all_is_not_sure() -> None:
    draws = Draws.of(np.repeat(np.arange(30), 4), seed=0, level=0.95)
    none, every = draws.share(np.zeros(120, dtype=bool)), draws.share(np.ones(120, dtype=bool))
    assert (none.numerator, none.denominator, none.identities, none.value) == (0, 120, 30, 0)
    assert none.high == pytest.approx(1 - 0.05 ** (1 / 30))
    assert every.low == pytest.approx(0.05 ** (1 / 30))
    change = draws.change(np.zeros(120, dtype=bool), np.zeros(120, dtype=bool))
    assert (change.value, change.low, change.high) == (0, -none.high, none.high)


def test_a_change_is_paired() -> None:
    identities = np.repeat(np.arange(30), 4)
    before = stream(2, "hits").random(120) < 0.5
    after = before.copy()
    after[::15] = True
    draws = Draws.of(identities, seed=0, level=0.95)
    found = draws.change(before, after)
    assert found.value == pytest.approx(after.mean() - before.mean())
    apart = draws.share(before)
    assert found.high - found.low < (apart.high - apart.low) / 2


@pytest.mark.parametrize(
    ("curve", "sigma"),
    [
        ([0.0, 0.0, 0.25, 0.75, 1.0, 1.0], 3.0),  # halfway between 2 and 4
        ([1.0, 0.75, 0.0, 0.0, 0.0, 0.0], 1 + 1 / 3),
        ([0.0, 0.5, 1.0, 0.0, 1.0, 1.0], 1.0),
        ([0.5, 1.0, 1.0, 1.0, 1.0, 1.0], 0.0),
        ([0.0, 0.1, 0.2, 0.3, 0.4, 0.5], 8.0),
        ([0.0, 0.1, 0.2, 0.3, 0.4, 0.49], np.nan),
        ([1.0, 0.9, 0.9, 0.9, 0.9, 0.9], np.nan),
    ],
)
def test_the_crossover_lies_between_levels(curve: list[float], sigma: float) -> None:
    np.testing.assert_allclose(half_crossings(np.array([curve])), [sigma])


@pytest.mark.parametrize(
    ("margin", "level", "point"),
    [
        ([-1, -1, 1, 1, 1], 0.5, 0.375),
        ([-1, 3, 1, 1, 1], 0.25, 0.0625),
        ([1, -1, -1, -1, -1], 0.0, 0.0),  # the smallest B, whatever comes after it
        ([0, 0, 0, 1, 1], 0.75, 0.5),  # a tie is not overtaken
        ([-1, -1, -1, -1, 1], 1.0, 0.875),
        ([-1, -1, -1, -1, -1], 1.0, 1.0),
        ([0, 0, 0, 0, 0], 1.0, 1.0),
    ],
)
def test_b_star_by_hand(margin: list[float], level: float, point: float) -> None:
    margins = np.array([margin], dtype=float)
    assert smallest_levels(margins > 0).tolist() == [level]
    assert overtaking_points(margins).tolist() == [point]


@pytest.mark.parametrize(
    ("name", "canvas", "seen"),
    [("sscd-int8", 288, 288), ("mobilenet-v2", 224, 224), ("arcface-mbf", 224, 112), ("dlib", 224, 150)],
)
def test_each_encoder_is_given_what_its_card_wants(name: str, canvas: int, seen: int) -> None:
    encoder = Averages(card(name), [])
    pictures = [Scene(who, 10 * who + n).draw() for who in range(2) for n in range(2)]
    result = attribute(pictures, reader_of(encoder), exact_swap)
    assert (result.encoder, result.size) == (name, canvas)
    assert set(encoder.shapes) == {(seen, seen, 3)}


@pytest.mark.parametrize(("name", "template"), [("sface", ARCFACE_112), ("dlib", DLIB_150)])
def test_recognisers_see_the_face_where_their_template_has_it(name: str, template: NDArray[np.float64]) -> None:
    picture = Scene(0, 0).draw()
    canvas = canvas_of(picture, 224)
    assert isinstance(canvas, Canvas)
    assert picture.image is not None
    assert picture.face is not None
    encoder = Averages(card(name), [])
    seen = reader_of(encoder).view(canvas.image, canvas.face)
    direct = align_face(picture.image, picture.face.landmarks, template, len(seen))
    middle = slice(20, -20)
    assert np.corrcoef(seen[middle, middle].reshape(-1), direct[middle, middle].reshape(-1))[0, 1] > 0.95


def test_facenet_sees_the_box_with_its_margin() -> None:
    canvas = canvas_of(Scene(0, 0).draw(), 224)
    assert isinstance(canvas, Canvas)
    seen = reader_of(Averages(card("facenet"), [])).view(canvas.image, canvas.face)
    assert seen.shape[0] == seen.shape[1] == round(1.25 * float(canvas.face.box[2:].max()))


class InTheMiddle:
    """Finds one face in the middle of every picture that is not black."""

    name = "middle"

    def detect(self, image: NDArray[np.uint8]) -> list[Face]:
        half = np.array(image.shape[1::-1]) / 2
        points = half + np.array([(-9, -9), (9, -9), (0, 0), (-7, 9), (7, 9)], dtype=float)
        return [Face(np.concatenate([half - 20, [40.0, 40.0]]), points, 0.9)] if image.any() else []


def encoded(grey: int) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (120, 100), (grey, grey, grey)).save(buffer, "PNG")
    return buffer.getvalue()


def test_every_picture_is_located_or_says_why_not_in_order() -> None:
    def lost() -> bytes:
        raise BadPicture("cannot be read")

    refs = (
        ImageRef("a", "x", lambda: encoded(90)),
        ImageRef("b", "x", lambda: b"nonsense"),
        ImageRef("c", "y", lost),
        ImageRef("d", "y", lambda: encoded(0)),
    )
    found = list(locate(ImageSet(refs, "made"), InTheMiddle(), threads=2))
    assert [(one.id, one.identity, one.reason) for one in found] == [
        ("a", "x", None),
        ("b", "x", "not a picture"),
        ("c", "y", "cannot be read"),
        ("d", "y", None),
    ]
    assert [one.face is not None for one in found] == [True, False, False, False]
    assert found[3].image is not None
