"""If this fails, ``unface models`` misleads about a licence, or cannot be followed."""

from pathlib import Path

import pytest

from tests.kit.command import unface
from tests.models.conftest import Use
from tests.models.served import CONTENT, Index, serving, tiny_card, wheel
from tests.models.tiny import pooling_net
from tests.refusals.table import require_refusal
from unface.models import Card, card, cards, weights

WHEEL = "tiny_net-1.0-py3-none-any.whl"


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "400")


@pytest.fixture
def research(monkeypatch: pytest.MonkeyPatch) -> Card:
    """A listed model whose licence is for research only."""
    model = tiny_card(research_only=True)
    monkeypatch.setattr("unface.models.own.shipped", lambda: (model,))
    return model


def row(out: str, name: str) -> str:
    return next(line for line in out.splitlines() if line.startswith(f"{name} "))


@pytest.mark.parametrize("words", [("models",), ("models", "list")])
def test_the_list_shows_size_licence_place_and_caution(words: tuple[str, ...]) -> None:
    done = unface(*words)
    assert (done.code, done.err) == (0, "")
    table, _, notes = done.out.partition("* research only")
    assert " ".join(row(table, "  sface").split()) == "sface 128 38.7 MB to fetch (index) see below"
    assert row(notes, "sface").split()[1].startswith("Apache-2.0")
    assert card("sface").cautions[0] in row(notes, "sface")
    assert " research *" in row(table, "  edgeface-s")
    assert "CC BY-NC-SA 4.0" in row(notes, "edgeface-s")
    assert "not the official DINOv2" in row(notes, "dinov2-s-focus")
    assert "to fetch (hub)" in row(table, "  clip-vit-b32")
    assert "to add by hand" in row(table, "  sscd")
    assert "* research only" in done.out


def test_the_list_breaks_no_row_at_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    out = unface("models").out
    assert max(map(len, out.splitlines())) <= 80
    table = [
        line for line in out.partition("* research only")[0].splitlines() if line.startswith("  ") and line.strip()
    ]
    assert [line.split()[0] for line in table] == [card.name for card in cards()], "one line each"


def test_a_research_licence_is_shown_and_has_to_be_accepted(research: Card, use: Use) -> None:
    with serving(Index({WHEEL: wheel()})) as index:
        use(index)
        refused = unface("models", "pull", "tiny")
        assert (refused.code, refused.out) == (1, "")
        assert refused.err.startswith("unface: tiny: its licence is Apache-2.0 (OpenCV Zoo)")
        assert refused.err.endswith("pass --accept-licence\n")
        assert index.asked == []
        done = unface("models", "pull", "tiny", "--accept-licence")
    assert (done.code, done.err) == (0, "")
    assert "licence: Apache-2.0" in done.out
    assert weights(research, offline=True).read_bytes() == CONTENT
    assert " here " in row(unface("models").out, "  tiny")


def test_offline_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNFACE_OFFLINE", "1")
    done = unface("models", "pull", "sface")
    assert (done.code, done.out) == (1, "")
    assert done.err == (
        "unface: sface: not in the cache, and UNFACE_OFFLINE or offline=True forbids to fetch it; try again online, "
        "or get face_recognition_sface_2021dec.onnx (sha256 0ba9fbfa01b5…) elsewhere and run "
        "`unface models add FILE --name sface`\n"
    )


def test_a_misspelt_name_fetches_nothing(research: Card, use: Use) -> None:
    with serving(Index({WHEEL: wheel()})) as index:
        use(index)
        done = unface("models", "pull", research.name, "tinny", "--accept-licence")
        require_refusal(done, "weights", "tinny", "tiny?")
        assert index.asked == []


def test_quiet_says_nothing(research: Card, use: Use) -> None:
    with serving(Index({WHEEL: wheel()})) as index:
        use(index)
        done = unface("models", "pull", research.name, "--accept-licence", "--quiet")
    assert (done.code, done.out, done.err) == (0, "", "")


def test_adding_makes_a_model_that_is_listed(tmp_path: Path) -> None:
    path = pooling_net(tmp_path / "net.onnx")
    done = unface(
        "models", "add", path, "--name", "mine", "--mean", "127.5", "--std", "127,128,129", "--licence", "CC0"
    )
    assert (done.code, done.err) == (0, "")
    assert done.out == "mine: 5 dimensions, 0.0 MB, licence: CC0\n"
    assert card("mine").input.mean == (127.5, 127.5, 127.5)
    assert card("mine").input.std == (127.0, 128.0, 129.0)
    assert " here " in row(unface("models").out, "  mine")


def test_an_option_without_effect_is_refused(tmp_path: Path) -> None:
    done = unface("models", "add", pooling_net(tmp_path / "net.onnx"), "--name", "sface", "--channels", "RGB")
    assert (done.code, done.out) == (1, "")
    require_refusal(done, "weights", "sface", "--channels")


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--mean", "1,2", "--mean: has 2 numbers; expected one, or one for each channel"),
        ("--std", "x", "--std: 'x' is not a number"),
        ("--alignment", "tight", "--alignment: 'tight'; expected none, arcface112, chip150, box160"),
        ("--channels", "rgb", "--channels: 'rgb'; expected RGB, BGR"),
    ],
)
def test_a_wrong_option_is_told(option: str, value: str, said: str, tmp_path: Path) -> None:
    done = unface("models", "add", pooling_net(tmp_path / "net.onnx"), "--name", "mine", option, value)
    assert (done.code, done.out, done.err) == (1, "", f"unface: {said}\n")
