"""If these fail, a model is fetched from elsewhere than configured, or is not where it is looked for."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.models.served import CONTENT, tiny_card
from tests.refusals.table import refused
from unface.models import Card, Hub, Package, Part, card, cards, weights
from unface.models.index import index_settings
from unface.models.own import card_json, read_card
from unface.models.resolve import is_offline
from unface.models.store import Mismatch, models_folder, place, staging


def test_the_cache_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("UNFACE_CACHE", str(tmp_path / "a"))
    assert place(tiny_card()) == tmp_path / "a" / "models" / "tiny" / "net.onnx"
    monkeypatch.delenv("UNFACE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "b"))
    assert models_folder() == tmp_path / "b" / "unface" / "models"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "c"))
    assert models_folder() == tmp_path / "c" / ".cache" / "unface" / "models"


def test_a_cache_of_an_earlier_version_is_still_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Off Linux the user's cache folder is elsewhere, but models that lie in ~/.cache are not fetched again."""
    for name in ("UNFACE_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("unface.models.store.user_cache_path", lambda *_, **__: tmp_path / "Library")
    assert models_folder() == tmp_path / "Library" / "models"
    (tmp_path / ".cache" / "unface").mkdir(parents=True)
    assert models_folder() == tmp_path / ".cache" / "unface" / "models"


def test_a_cache_that_cannot_be_written_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("UNFACE_CACHE", str(tmp_path / "file"))
    with refused("weights", ..., "directory"), staging():
        pass


def test_a_full_disk_is_told_as_such_and_leaves_nothing(cache: Path) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("there is no /dev/full here")
    with staging() as aside:
        (next(cache.glob("models/.*.tmp")) / "net.onnx").symlink_to(full)
        with refused("weights", ..., "space"):
            aside.write(Part("net.onnx", 0, ""), [b"x" * (1 << 20)])
    assert [path for path in cache.rglob("*") if not path.is_dir()] == []


def test_no_more_is_read_than_was_promised() -> None:
    def endless() -> Iterator[bytes]:
        for _ in range(100):
            yield b"x" * 1000
        raise AssertionError("read on after too much")

    with pytest.raises(Mismatch, match="more than the 1,500 bytes"), staging() as aside:
        aside.write(Part("net.onnx", 1500, ""), endless())


@pytest.mark.parametrize(("value", "offline"), [("1", True), ("true", True), ("0", False), ("", False), ("no", False)])
def test_offline_is_read_from_the_environment(value: str, offline: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNFACE_OFFLINE", value)
    assert is_offline() is offline


KEY = "index-url"
VARIABLE = "PIP_INDEX_URL"
PUBLIC = "https://pypi.org/simple"


@pytest.fixture
def pip_conf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in (VARIABLE, "PIP_CONFIG_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setattr("sys.prefix", str(tmp_path / "prefix"))
    path = tmp_path / ".config" / "pip" / "pip.conf"
    path.parent.mkdir(parents=True)
    return path


@pytest.fixture
def own_file(pip_conf: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The file that PIP_CONFIG_FILE names, which wins over all others."""
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "own.conf"))
    return tmp_path / "own.conf"


def test_with_no_settings_it_is_the_public_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE)
    assert index_settings().addresses == (PUBLIC,)  # the fixture of all tests has taken pip's files away


def test_a_file_is_read_and_the_variable_wins(own_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own_file.write_text(f"[global]\n{KEY} = https://a.example/py/\ncert = /x/ca.pem\n")
    assert index_settings().addresses[0] == "https://a.example/py"
    assert index_settings().certificates == "/x/ca.pem"
    monkeypatch.setenv(VARIABLE, "https://b.example/py")
    assert index_settings().addresses[0] == "https://b.example/py"


def test_the_named_file_wins_over_the_users(own_file: Path, pip_conf: Path) -> None:
    pip_conf.write_text(f"[global]\n{KEY} = https://a.example/py\n")
    assert index_settings().addresses[0] == "https://a.example/py"
    own_file.write_text(f"[install]\n{KEY} = https://b.example/py\n")
    assert index_settings().addresses[0] == "https://b.example/py"


def test_more_indexes_are_asked_after_the_first(own_file: Path) -> None:
    own_file.write_text(
        f"[global]\n{KEY}=https://a.example/p%40ss\nextra-{KEY} =\n  https://b.example\n  https://c.example/\n"
    )
    assert index_settings().addresses == ("https://a.example/p%40ss", "https://b.example", "https://c.example")


def test_a_broken_file_is_passed_over(own_file: Path) -> None:
    own_file.write_text("no section here\n")
    assert index_settings().addresses


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
