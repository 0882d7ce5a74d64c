"""If this fails, a file of one's own is described wrongly, or a pickle is run on the way in."""

import hashlib
import pickle
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper
from safetensors.numpy import save_file

from tests.models.conftest import left_behind
from tests.models.tiny import pooling_net
from unface.errors import UnfaceError
from unface.models import Description, add_model, card, cards, weights, whereabouts

IMAGENET = Description(mean=(123.675, 116.28, 103.53), std=(58.395, 57.12, 57.375))


def refused(path: Path, description: Description = IMAGENET, name: str = "mine") -> str:
    with pytest.raises(UnfaceError) as caught:
        add_model(path, name, description)
    assert len(str(caught.value).splitlines()) == 1
    return str(caught.value)


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
    assert refused(path, Description()) == "mine.onnx: takes pictures of any size; give one with --size"
    made = add_model(path, "mine", Description(size=64))
    assert (made.input.size, made.input.layout, made.input.dtype, made.dim) == (64, "NHWC", "uint8", 5)


def test_a_scale_is_refused_where_bytes_are_not_scaled(tmp_path: Path, cache: Path) -> None:
    path = pooling_net(tmp_path / "mine.onnx", ("n", "h", "w", 3), TensorProto.UINT8)
    assert "takes bytes, which are not scaled; leave out --mean, --std" in refused(path, replace(IMAGENET, size=64))
    assert left_behind(cache) == []


@pytest.mark.parametrize("option", [field.name for field in fields(Description)])
def test_a_description_is_refused_for_a_model_that_has_a_card(option: str, tmp_path: Path, cache: Path) -> None:
    given: dict[str, Any] = {option: 1}
    said = refused(pooling_net(tmp_path / "mine.onnx"), Description(**given), name="sface")
    assert said == f"sface: has a card that describes it; leave out --{option}"
    assert left_behind(cache) == []


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
    assert "TorchScript is a program, so it is never loaded; export the model to ONNX" in refused(path, described, name)
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
    assert "give --architecture, --dim and --size" in refused(path)
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
    sentence = refused(path, described, name)
    assert sentence.startswith("mine.pth: holds more than tensors, so loading it could run code; it was not loaded")
    assert not trace.exists()
    assert left_behind(cache) == []
    pickle.loads(pickle.dumps(Writes()))
    assert trace.exists(), "the trap does not work, so the test shows nothing"


def test_a_graph_cannot_take_its_weights_from_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(np.ones(15, np.float32).tobytes())
    path = pooling_net(tmp_path / "mine.onnx", external="secret")
    assert onnx.load(path).graph.initializer[0].name == "w"
    assert "ONNX Runtime cannot load it alone" in refused(path)


@pytest.mark.parametrize(
    ("description", "said"),
    [
        (Description(), "mine.onnx: takes numbers, so give --mean and --std of pixels from 0 to 255"),
        (replace(IMAGENET, std=(0.229, 0.224, 0.225)), "yours times 255 is 58.395,57.12,57.375"),
        (replace(IMAGENET, std=(1.0, 0.0, 1.0)), "--std has 0; expected numbers above 0"),
        (replace(IMAGENET, size=224), "takes pictures of 16 px, --size says 224"),
        (
            replace(IMAGENET, architecture="resnet", dim=5),
            "its graph says that itself; leave out --architecture, --dim",
        ),
    ],
)
def test_what_is_said_must_fit_the_file(description: Description, said: str, tmp_path: Path, cache: Path) -> None:
    assert said in refused(pooling_net(tmp_path / "mine.onnx"), description)
    assert left_behind(cache) == []


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("mine.onnx", b"not a graph", "ONNX Runtime cannot load it alone"),
        ("mine.safetensors", b"\xff" * 20, "not a whole .safetensors file"),
        ("mine.pkl", b"", "expected .onnx, .safetensors"),
        ("mine.pt", b"", "holds more than tensors"),
    ],
)
def test_other_files_are_refused(file: str, content: bytes, said: str, tmp_path: Path, cache: Path) -> None:
    (tmp_path / file).write_bytes(content)
    assert said in refused(tmp_path / file)
    assert left_behind(cache) == []
    assert "no such file" in refused(tmp_path / "missing.onnx")
    assert "is a folder; name the file in it" in refused(tmp_path)


def test_a_picture_sized_output_is_no_vector(tmp_path: Path) -> None:
    node = helper.make_node("Relu", ["picture"], ["map"])
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (1, 3, 8, 8)) for name in ("picture", "map")]
    graph = helper.make_graph([node], "relu", ends[:1], ends[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    (tmp_path / "mine.onnx").write_bytes(model.SerializeToString())
    assert "gives (1, 3, 8, 8) for one picture; expected one vector" in refused(tmp_path / "mine.onnx")


def test_a_bad_name_is_refused(tmp_path: Path, cache: Path) -> None:
    path = pooling_net(tmp_path / "mine.onnx")
    assert "name is '../x'" in refused(path, name="../x")
    assert left_behind(cache) == []


def test_a_listed_model_takes_only_its_own_file(tmp_path: Path, cache: Path) -> None:
    path = pooling_net(tmp_path / "mine.onnx")
    sentence = refused(path, Description(), name="sface")
    assert sentence.startswith("mine.onnx: not sface, face_recognition_sface_2021dec.onnx has")
    assert left_behind(cache) == []


def test_a_listed_model_without_a_pin_takes_a_file_that_fits(tmp_path: Path) -> None:
    assert whereabouts(card("adaface")) == "local file only"
    with pytest.raises(UnfaceError, match="it can only come from a local file"):
        weights(card("adaface"))
    small = pooling_net(tmp_path / "small.onnx", (1, 3, 112, 112))
    assert "gives 5 dimensions from NCHW float32, adaface 512" in refused(small, Description(), name="adaface")
    right = pooling_net(tmp_path / "export.onnx", (1, 3, 112, 112), dim=512)
    add_model(right, "adaface", Description())
    assert weights(card("adaface"), offline=True).read_bytes() == right.read_bytes()
    assert whereabouts(card("adaface")) == "cached"


def test_a_listed_model_for_research_asks_for_consent_here_too(tmp_path: Path) -> None:
    path = pooling_net(tmp_path / "mine.onnx")
    assert "pass --accept-licence" in refused(path, Description(), name="arcface-mbf")
    with pytest.raises(UnfaceError, match="not arcface-mbf"):
        add_model(path, "arcface-mbf", Description(), accept_licence=True)


def test_bare_weights_are_no_graph_for_a_listed_model_that_wants_one(tmp_path: Path, cache: Path) -> None:
    save_file({"w": np.ones((2, 2), np.float32)}, tmp_path / "weights.safetensors")
    said = refused(tmp_path / "weights.safetensors", Description(), name="sscd")
    assert said == "weights.safetensors: is safetensors, sscd is onnx"
    assert left_behind(cache) == []


def test_a_damaged_file_in_the_cache_is_said_to_be_damaged(tmp_path: Path) -> None:
    made = add_model(pooling_net(tmp_path / "mine.onnx"), "mine", IMAGENET)
    weights(made).write_bytes(b"something else")
    with pytest.raises(UnfaceError, match="mine: damaged in the cache, and it can only come from a local file"):
        weights(made)
