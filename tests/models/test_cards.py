"""If this fails, a card says something that cannot be, or a model cannot be found by the name people type."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.models.served import CONTENT, tiny_card
from tests.refusals.table import refused
from unface.models import Card, Hub, Package, card, cards, weights
from unface.models.own import card_json, read_card

SHIPPED = cards()


@pytest.mark.parametrize("one", SHIPPED, ids=lambda one: one.name)
def test_a_shipped_card_is_whole(one: Card) -> None:
    assert card(one.name) is one
    assert one.licence.name
    assert one.paper
    assert one.dim > 0 or one.task == "detector"
    assert all(sentence == sentence.strip() and not sentence.endswith(".") for sentence in one.cautions)
    for source in one.sources:
        assert isinstance(source, Package | Hub)
        member = source.member if isinstance(source, Package) else source.file
        assert member.rpartition("/")[2] == one.file
        assert (len(one.sha256), one.bytes > 0) == (64, True) or isinstance(source, Hub)


def test_these_encoders_have_cards() -> None:
    found = {one.name: one.dim for one in SHIPPED if one.task == "encoder"}
    recognition = {"arcface-mbf": 512, "edgeface-s": 512, "sface": 128, "dlib": 128, "facenet": 512}
    general = {"sscd-int8": 512, "sscd-distilled": 512, "dinov2-s-focus": 384, "mobilenet-v2": 1280}
    more = {"mobilefacenet-tflite": 192, "efficientnet-lite0": 1280, "augnet-r50": 768, "clip-vit-b32": 512}
    assert (recognition | general | more).items() <= found.items()


@pytest.mark.parametrize(
    "name",
    ["arcface-mbf", "edgeface-s", "scrfd-500m", "landmarks-106", "mobilefacenet-tflite", "mobilestylegan-mapping"],
)
def test_weights_for_research_only_or_of_unclear_licence_say_so(name: str) -> None:
    assert card(name).licence.research_only


def test_the_fine_tuned_dinov2_is_not_passed_off_as_the_official_one() -> None:
    (caution,) = card("dinov2-s-focus").cautions
    assert "not the official DINOv2" in caution


def test_a_misspelt_name_gets_near_ones() -> None:
    with refused("weights", "arcface"):
        card("arcface")
    with refused("weights", "qqqq"):
        card("qqqq")


@pytest.mark.parametrize("name", ["", ".", "..", "../sface", "/", "models/sface"])
def test_a_name_is_not_a_way_out_of_the_cache(name: str) -> None:
    with refused("weights", ..., "no model"):
        card(name)


@pytest.mark.parametrize("one", [card("sface"), card("clip-vit-b32"), card("mobilestylegan-mapping")])
def test_a_card_survives_its_json(one: Card, tmp_path: Path) -> None:
    path = tmp_path / "x.card.json"
    path.write_bytes(card_json(one))
    assert read_card(path) == one


def test_a_file_with_its_card_beside_is_used_where_it_lies(tmp_path: Path, cache: Path) -> None:
    path = tmp_path / "mine.onnx"
    path.write_bytes(CONTENT)
    (tmp_path / "mine.onnx.card.json").write_bytes(card_json(replace(tiny_card(), sources=(), file="mine.onnx")))
    assert weights(card(str(path)), offline=True) == path
    assert not cache.exists()
    path.write_bytes(CONTENT + b"!")
    with refused("weights", "mine.onnx", "has sha256"):
        weights(card(str(path)))


def test_a_file_without_a_card_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.onnx"
    path.write_bytes(CONTENT)
    with refused("weights", "mine.onnx", "card.json"):
        card(str(path))


def test_a_model_on_its_way_in_is_not_listed_yet(cache: Path) -> None:
    own = card_json(replace(tiny_card(), sources=()))
    for folder in (".0123.tmp", "tiny"):
        (cache / "models" / folder).mkdir(parents=True)
        (cache / "models" / folder / "card.json").write_bytes(own)
    assert [one.name for one in cards()].count("tiny") == 1


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b"\xff\xfe", b'"x"'])
def test_what_is_not_json_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.card.json"
    path.write_bytes(content)
    with refused("weights", ..., "card.json"):
        read_card(path)
