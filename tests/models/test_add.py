"""If these fail, a user's own model is taken otherwise than described, or ``unface models`` says another thing."""

import hashlib
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from onnx import TensorProto
from safetensors.numpy import save_file

from tests.kit.command import unface
from tests.models.conftest import Use, left_behind
from tests.models.served import CONTENT, Index, serving, tiny_card, wheel
from tests.models.tiny import pooling_net
from tests.refusals.table import refused, require_refusal
from unface.models import Card, Description, add_model, card, cards, weights, whereabouts

IMAGENET = Description(mean=(123.675, 116.28, 103.53), std=(58.395, 57.12, 57.375))


def test_an_onnx_file_gets_a_card_that_finds_it_again(tmp_path: Path, cache: Path) -> None:
    path = pooling_net(tmp_path / "mine.onnx")
    made = add_model(path, "mine", replace(IMAGENET, alignment="arcface112", licence="CC0"))
    assert (made.dim, made.input.size, made.input.layout, made.input.dtype) == (5, 16, "NCHW", "float32")
    assert made.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert card("mine") == made
    assert made in cards()
    assert whereabouts(made) == "cached"
    assert weights(made, offline=True).read_bytes() == path.read_bytes()
    assert left_behind(cache) == ["models/mine/card.json", "models/mine/mine.onnx"]


def test_bytes_as_input_need_no_mean_but_a_size(tmp_path: Path) -> None:
    path = pooling_net(tmp_path / "mine.onnx", ("n", "h", "w", 3), TensorProto.UINT8)
    with refused("weights", "mine.onnx", "--size", "give"):
        add_model(path, "mine", Description())
    made = add_model(path, "mine", Description(size=64))
    assert (made.input.size, made.input.layout, made.input.dtype, made.dim) == (64, "NHWC", "uint8", 5)


@pytest.mark.parametrize("name", ["mine", "sscd"])
@pytest.mark.parametrize("suffix", [".pt", ".pth", ".bin"])
def test_torchscript_is_a_program_and_never_run(suffix: str, name: str, tmp_path: Path, cache: Path) -> None:
    trace, path = tmp_path / "trace", tmp_path / f"mine{suffix}"

    class Writes(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.where = str(trace)

        def forward(self, pictures: torch.Tensor) -> torch.Tensor:
            touched = torch.from_file(self.where, True, 1, dtype=torch.uint8)  # shared, so the file is made
            return pictures.mean([2, 3]) + touched.sum()

    # torch gives its scripts no types
    torch.jit.save(torch.jit.script(Writes()), str(path))
    described = replace(IMAGENET, size=8) if name == "mine" else Description()
    with refused("weights", ..., "TorchScript"):
        add_model(path, name, described)
    assert not trace.exists()
    assert left_behind(cache) == []
    torch.jit.load(str(path))(torch.zeros(1, 3, 8, 8))  # type: ignore[no-untyped-call]
    assert trace.exists(), "the trap does not work, so the test shows nothing"


@pytest.mark.parametrize("suffix", [".safetensors", ".pth"])
def test_weights_without_a_graph_have_to_be_described(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"mine{suffix}"
    if suffix == ".pth":
        torch.save({"w": torch.ones(3)}, path)
    else:
        save_file({"w": np.ones(3)}, path)
    with refused("weights", ..., "--architecture", "--dim", "--size"):
        add_model(path, "mine", IMAGENET)
    made = add_model(path, "mine", replace(IMAGENET, size=224, architecture="mobilenet_v2", dim=1280))
    assert (made.architecture, made.dim) == ("mobilenet_v2", 1280)


@pytest.mark.parametrize("name", ["mine", "sscd"])
@pytest.mark.parametrize("how", ["torch", "pickle"])
def test_a_pickle_that_runs_code_is_never_run(how: str, name: str, tmp_path: Path, cache: Path) -> None:
    trace, path = tmp_path / "trace", tmp_path / "mine.pth"

    class Writes:
        def __reduce__(self) -> tuple[object, tuple[Path]]:
            return Path.touch, (trace,)

    if how == "torch":
        torch.save({"w": torch.ones(3), "trap": Writes()}, path)
    else:
        path.write_bytes(pickle.dumps(Writes()))
    described = replace(IMAGENET, size=224, architecture="mobilenet_v2", dim=1280) if name == "mine" else Description()
    with refused("weights", "mine.pth", "more"):
        add_model(path, name, described)
    assert not trace.exists()
    assert left_behind(cache) == []
    pickle.loads(pickle.dumps(Writes()))
    assert trace.exists(), "the trap does not work, so the test shows nothing"


def test_a_listed_model_takes_only_its_own_file(tmp_path: Path, cache: Path) -> None:
    path = pooling_net(tmp_path / "mine.onnx")
    with refused("weights", "mine.onnx", "face_recognition_sface_2021dec.onnx"):
        add_model(path, "sface", Description())
    assert left_behind(cache) == []


def test_a_listed_model_without_a_pin_takes_a_file_that_fits(tmp_path: Path) -> None:
    assert whereabouts(card("adaface")) == "local file only"
    with refused("weights", "adaface"):
        weights(card("adaface"))
    small = pooling_net(tmp_path / "small.onnx", (1, 3, 112, 112))
    with refused("weights", "small.onnx", "gives 5", "float32", "adaface 512"):
        add_model(small, "adaface", Description())
    right = pooling_net(tmp_path / "export.onnx", (1, 3, 112, 112), dim=512)
    add_model(right, "adaface", Description())
    assert weights(card("adaface"), offline=True).read_bytes() == right.read_bytes()
    assert whereabouts(card("adaface")) == "cached"


def test_a_listed_model_for_research_asks_for_consent_here_too(tmp_path: Path) -> None:
    path = pooling_net(tmp_path / "mine.onnx")
    with refused("weights", "arcface-mbf", "--accept-licence"):
        add_model(path, "arcface-mbf", Description())
    with refused("weights", "mine.onnx", "arcface-mbf"):
        add_model(path, "arcface-mbf", Description(), accept_licence=True)


def test_bare_weights_are_no_graph_for_a_listed_model_that_wants_one(tmp_path: Path, cache: Path) -> None:
    save_file({"w": np.ones((2, 2), np.float32)}, tmp_path / "weights.safetensors")
    with refused("weights", "weights.safetensors"):
        add_model(tmp_path / "weights.safetensors", "sscd", Description())
    assert left_behind(cache) == []


def test_a_damaged_file_in_the_cache_is_said_to_be_damaged(tmp_path: Path) -> None:
    made = add_model(pooling_net(tmp_path / "mine.onnx"), "mine", IMAGENET)
    weights(made).write_bytes(b"something else")
    with refused("weights", "mine"):
        weights(made)


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
