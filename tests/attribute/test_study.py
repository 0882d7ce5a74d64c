"""If this fails, the table on real faces mixes up its halves, or its file names someone."""

import json

import numpy as np
import pytest
from studies import attribution
from studies.measured import markdown, read_findings

from tests.attribute.averages import Averages
from tests.attribute.scenes import exact_swap, mixture, people
from unface.attribute import Attribution, attribute, canvas_of, reader_of
from unface.data import ImageRef, ImageSet, Role, split_identities
from unface.models import card


@pytest.fixture(scope="module")
def result() -> Attribution:
    return attribute([*people(3, 2), people(5, 1)[4]], mixture(0.5), exact_swap)


def test_the_file_has_counts_and_no_names(result: Attribution) -> None:
    text = json.dumps(attribution.plain(result))
    assert result.left_out
    assert not any(picture.id in text or picture.identity in text for picture in people(5, 2))
    back = json.loads(text)
    alone = {"step": "pairing", "reason": "the only usable picture of its identity", "count": 1}
    assert alone in back["quality"]["left_out"]
    assert back["spaces"][0]["fii"]["index"]["of"] == 6


def test_the_table_has_a_line_for_each_space(result: Attribution) -> None:
    lines = markdown(attribution.table([result]))
    assert len(lines) == 3
    assert len({line.count("|") for line in lines}) == 1
    assert result.spaces[0].fii is not None
    assert f"{result.spaces[0].fii.index.value:.3f}".replace("-", "−") in lines[2]


def test_nobody_is_in_both_halves() -> None:
    images = ImageSet(tuple(ImageRef(f"{n}", f"p{n % 9}", bytes) for n in range(36)), "made")
    halves = split_identities(images.identities, shares=attribution.HALVES)
    fit, test = (attribution.of_role(images, halves, role) for role in (Role.FIT, Role.TEST))
    assert len(fit) + len(test) == 36
    assert not set(fit.identities) & set(test.identities)


def test_isp_takes_the_means_of_people_apart() -> None:
    encoder = Averages(card("mobilenet-v2"), [])
    reader = reader_of(encoder)
    pictures = people(5, 3)
    projection = attribution.isp_of(encoder, reader, pictures)
    assert projection.rank == 4
    assert projection.space.encoder == "mobilenet-v2"
    canvases = [canvas_of(picture, reader.size) for picture in pictures]
    vectors = reader.encode([canvas.image for canvas in canvases if not isinstance(canvas, str)])
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    means = projection.apply_linear(vectors).reshape(5, 3, -1).mean(axis=1)
    assert np.ptp(means, axis=0).max() < 1e-5 < np.ptp(vectors.reshape(5, 3, -1).mean(axis=1), axis=0).max()


def test_spaces_are_named_as_in_the_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attribution, "locate", lambda pictures, detector: pictures)
    monkeypatch.setattr(attribution, "swap_face", exact_swap)
    encoder, pictures = Averages(card("mobilenet-v2"), []), people(6, 2)
    found = attribution.study(encoder, pictures[:6], pictures[6:], None, 0)  # type: ignore[arg-type]
    named = {row[1] for row in attribution.table([found]).rows}
    assert named == {row[1] for row in read_findings("attribution").tables["spaces"].rows}
