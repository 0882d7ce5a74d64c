"""If these fail, an audit measures faces and surroundings on people its erasers know, or names someone in its file."""

import json
import stat
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.attribute.averages import Averages
from tests.attribute.pictured import Drawn, blank, png
from tests.attribute.scenes import exact_swap, people
from tests.auditing.audits import looped
from tests.kit.results import AuditResult, EncoderAttribution, Listing
from unface import UnfaceError, audit
from unface.attribute import LocatedPicture, attribute, reader_of
from unface.auditing import Attribution, Protocol, Subjects, attribute_pictures
from unface.data import EmbeddingSet, ImageRef, ImageSet, Space
from unface.erase import Projection
from unface.models import card
from unface.result.attribution import LEFT_OUT_FILE

ENCODER = Averages(card("mobilenet-v2"), [])
FACELESS = "person 3/=nobody.png"


@cache
def scenes() -> tuple[LocatedPicture, ...]:
    return tuple(people(28, 3))


@cache
def subjects() -> Subjects:
    """Two pictures each of all people, and one without a face."""
    refs = [ImageRef(one.id, one.identity, partial(png, image(one))) for n, one in enumerate(scenes()) if n % 3]
    refs.append(ImageRef(FACELESS, "nobody", blank))
    return Subjects(ImageSet(tuple(refs), "scenes"), ENCODER, Drawn(scenes()), exact_swap, "exact")


def image(picture: LocatedPicture) -> NDArray[np.uint8]:
    assert picture.image is not None
    return picture.image


@cache
def few() -> Subjects:
    """Those of four people and the one without."""
    return subjects().without({f"person {number}" for number in range(4, 28)})


@cache
def embeddings() -> EmbeddingSet:
    vectors = ENCODER.encode([image(one) for one in scenes()])
    names = np.array([one.identity for one in scenes()])
    return EmbeddingSet.from_arrays(vectors, names, space=subjects().space, source="scenes")


@cache
def audited(*erasers: str) -> AuditResult:
    return audit(
        embeddings(),
        eraser=erasers,
        rank=4 if erasers else None,
        parts=(Attribution(subjects() if erasers else few()),),
        protocol=Protocol(far=0.2, k=1, probe="cosine", seeds=1, bootstraps=100, threads=1),
    )


def attributed(result: AuditResult) -> EncoderAttribution:
    section = Attribution.of(result)
    assert section is not None
    return section


def left_out(*rows: tuple[str, ...]) -> AuditResult:
    """An audit that left these pictures out."""
    listing = Listing(("encoder", "id", "step", "reason"), list(rows), "pictures that attribution left out")
    return audited().model_copy(update={"listings": {LEFT_OUT_FILE: listing}})


def test_every_eraser_is_measured_and_no_control() -> None:
    found = attributed(audited("isp"))
    assert [space.name for space in found.spaces] == ["raw", "isp"]
    made = audited("isp").space("isp")
    assert made is not None
    assert made.erasure is not None
    assert found.spaces[1].projection_sha256 == made.erasure.projection_sha256
    assert found.spaces[1].rank == 4
    assert found.spaces[1].fii != found.spaces[0].fii


def test_it_is_measured_on_people_that_no_eraser_was_fitted_on() -> None:
    found = attributed(audited("isp"))
    others = 28 - audited("isp").roles.fit
    assert audited("isp").roles.fit > 0
    assert found.quality.pictures == 2 * others + 1
    assert found.quality.identities == others


def test_the_numbers_are_those_of_attribution_on_its_own() -> None:
    found = attributed(audited())
    alone = attribute([one for n, one in enumerate(scenes()[:12]) if n % 3], reader_of(ENCODER), exact_swap)
    assert found.quality.usable == alone.quality.usable == 8
    assert found.spaces == alone.spaces


def test_numbers_in_the_file_have_their_counts_and_no_empty_keys() -> None:
    found = attributed(audited())
    space = json.loads(found.model_dump_json())["spaces"][0]
    ends = {"value", "low", "high", "level", "identities"}
    assert space["fii"]["index"].keys() == ends | {"of"}
    assert space["cpi"]["donor_nearer"].keys() == ends | {"numerator", "denominator"}


def test_pictures_are_named_beside_the_file_and_only_there(tmp_path: Path) -> None:
    result = audited()
    assert result.listings[LEFT_OUT_FILE].rows == [("mobilenet-v2", FACELESS, "picture", "no face")]
    path = result.save(tmp_path)
    assert FACELESS not in path.read_text(encoding="utf-8")
    assert "person 3" not in path.read_text(encoding="utf-8")
    listed = tmp_path / "left-out.csv"
    assert listed.read_text(encoding="utf-8").splitlines()[1] == f"mobilenet-v2,{FACELESS},picture,no face"
    assert stat.S_IMODE(listed.stat().st_mode) == 0o600
    assert attributed(AuditResult.load(path)) == attributed(result)
    with pytest.raises(UnfaceError, match="exists already"):
        result.save(tmp_path)
    left_out().save(tmp_path, force=True)
    assert not listed.exists()


def test_what_was_measured_is_not_said_to_be_missing() -> None:
    assert "face-context attribution" in looped().not_measured
    assert "face-context attribution" not in audited().not_measured
    assert "template inversion" in audited().not_measured


def test_an_identity_that_looks_like_a_formula_stays_text(tmp_path: Path) -> None:
    left_out(("e", "=1+1/a.png", "picture", "no face")).save(tmp_path)
    assert "e,'=1+1/a.png,picture,no face" in (tmp_path / "left-out.csv").read_text(encoding="utf-8")


def projection(encoder: str) -> Projection:
    space = Space(encoder, subjects().space.weights_sha256, ENCODER.dim, normalised=True)
    return Projection("isp", np.eye(ENCODER.dim)[:, :2], np.ones(2), space)


def test_a_projection_of_no_encoder_given_is_refused_before_any_face_is_looked_for() -> None:
    detector = Drawn(())
    given = Subjects(subjects().images, ENCODER, detector, exact_swap, "exact")
    with pytest.raises(
        UnfaceError, match=r"^mine: fitted in 'other' .*, not in that of an encoder given: 'mobilenet-v2'"
    ):
        attribute_pictures([given], {"mine": projection("other")})
    assert detector.looked == 0


def test_a_projection_with_a_mean_of_vectors_that_were_not_scaled_is_refused_as_in_an_audit() -> None:
    given = few()
    mean = np.full(given.space.dim, 0.1)
    shifted = replace(projection("mobilenet-v2"), mean=mean, space=replace(given.space, normalised=False))
    with pytest.raises(UnfaceError, match=r"^mine: isp subtracts a mean of vectors that were not scaled"):
        attribute_pictures([given], {"mine": shifted})


def test_each_encoder_is_measured_after_the_projections_of_its_space_alone() -> None:
    second = Subjects(few().images, Averages(card("sscd-int8"), []), few().detector, exact_swap, "exact")
    result = attribute_pictures([few(), second], {"mine": projection("mobilenet-v2")}, threads=1)
    assert [[space.name for space in one.spaces] for one in result.encoders] == [["raw", "mine"], ["raw"]]
    assert result.source.pictures == 9
    assert result.left_out is not None
    assert {row[0] for row in result.left_out.rows} == {"mobilenet-v2", "sscd-int8"}
    assert not [one.id for one in scenes() if f'"{one.id}"' in result.model_dump_json()]
