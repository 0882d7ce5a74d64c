"""If these fail, a file of one's own is described wrongly, or weights are used that are not those of their card."""

import json
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto, helper
from safetensors.numpy import save_file

from tests.models.served import tiny_card
from tests.models.tiny import pooling_net
from tests.prior.test_mobilestylegan import WRITTEN
from tests.prior.tiny import write_ir
from tests.refusals.table import Row, table
from unface.models import Description, add_model, card, weights
from unface.models.own import card_json, read_card
from unface.prior import load_prior
from unface.prior.mobilestylegan import constants

IMAGENET = Description(mean=(123.675, 116.28, 103.53), std=(58.395, 57.12, 57.375))


def added(
    name: str,
    description: Description,
    *names: str,
    build: Callable[[Path], object] = lambda folder: pooling_net(folder / "mine.onnx"),
    file: str = "mine.onnx",
    model: str = "mine",
    where: str | None = "mine.onnx",
) -> Row:
    """A file of one's own that is not added."""
    act = lambda _: add_model(Path(file), model, description)  # noqa: E731
    return Row(f"add-{name}", act, "weights", where, names, build=build)


def described(option: str) -> Row:
    """A model of which a card says everything."""
    given: dict[str, Any] = {option: 1}
    return added(f"described-{option}", Description(**given), f"--{option}", model="sface", where="sface")


def with_bytes(folder: Path) -> object:
    return pooling_net(folder / "mine.onnx", ("n", "h", "w", 3), TensorProto.UINT8)


def of_a_picture(folder: Path) -> None:
    node = helper.make_node("Relu", ["picture"], ["map"])
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (1, 3, 8, 8)) for name in ("picture", "map")]
    graph = helper.make_graph([node], "relu", ends[:1], ends[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    (folder / "mine.onnx").write_bytes(model.SerializeToString())


def with_weights_elsewhere(folder: Path) -> None:
    (folder / "secret").write_bytes(np.ones(15, np.float32).tobytes())
    pooling_net(folder / "mine.onnx", external="secret")


def content(name: str, data: bytes) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes(data)


def carded(name: str, /, *names: str, **change: Any) -> Row:
    """A card that is wrong."""
    written = json.dumps(json.loads(card_json(replace(tiny_card(), sources=()))) | change)
    return Row(
        f"card-{name}",
        lambda folder: read_card(folder / "x.card.json"),
        "weights",
        "folder/x.card.json",
        names,
        content("x.card.json", written.encode()),
    )


def graph(name: str, old: str, new: str, *names: str, where: str) -> Row:
    """A graph of OpenVINO that cannot be."""

    def build(folder: Path) -> None:
        path = write_ir(folder, "net", WRITTEN).with_suffix(".xml")
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new, 1))

    return Row(f"graph-{name}", lambda folder: constants(folder / "net.bin"), "prior", where, names, build)


def prior(name: str, given: str, *names: str, where: str | None = None, **settings: Any) -> Row:
    return Row(f"prior-{name}", lambda _: load_prior(given, **settings), "prior", where, names)


SOURCE = {"kind": "hub", "repo": "a/b", "revision": "main", "file": "net.onnx"}
SIZED = replace(IMAGENET, size=8)

test_refused = table(
    "models",
    added("bytes-of-any-size", Description(), "--size", build=with_bytes),
    added("bytes-with-a-scale", replace(IMAGENET, size=64), "--mean, --std", build=with_bytes),
    *(described(field.name) for field in fields(Description)),
    added("numbers-without-a-scale", Description(), "--mean", "--std"),
    added("scale-of-one", replace(IMAGENET, std=(0.229, 0.224, 0.225)), "58.395,57.12,57.375"),
    added("scale-0", replace(IMAGENET, std=(1.0, 0.0, 1.0)), "--std", "0"),
    added("other-size", replace(IMAGENET, size=224), "16 px", "--size", "224"),
    added("architecture-of-a-graph", replace(IMAGENET, architecture="resnet", dim=5), "--architecture, --dim"),
    added("no-graph", IMAGENET, build=content("mine.onnx", b"not a graph")),
    added(
        "no-safetensors",
        IMAGENET,
        build=content("m.safetensors", b"\xff" * 20),
        file="m.safetensors",
        where="m.safetensors",
    ),
    added("pickle", IMAGENET, ".onnx, .safetensors", build=content("mine.pkl", b""), file="mine.pkl", where="mine.pkl"),
    added("empty-pt", IMAGENET, build=content("mine.pt", b""), file="mine.pt", where="mine.pt"),
    added("missing", IMAGENET, file="missing.onnx", where="missing.onnx"),
    added("a-folder", IMAGENET, build=lambda folder: (folder / "f").mkdir(), file="f", where="f"),
    added("of-a-picture", SIZED, "(1, 3, 8, 8)", build=of_a_picture),
    added("with-weights-elsewhere", SIZED, build=with_weights_elsewhere),
    added("name", IMAGENET, "'../x'", model="../x"),
    added("research-only", Description(), "--accept-licence", model="arcface-mbf", where="arcface-mbf"),
    added(
        "of-another-kind",
        Description(),
        "sscd",
        "onnx",
        build=lambda at: save_file({"w": np.ones(3)}, at / "w.safetensors"),
        file="w.safetensors",
        model="sscd",
        where="w.safetensors",
    ),
    added(
        "without-a-graph",
        IMAGENET,
        "--architecture, --dim and --size",
        build=lambda at: save_file({"w": np.ones(3)}, at / "w.safetensors"),
        file="w.safetensors",
        where="w.safetensors",
    ),
    Row("local-file-only", lambda _: weights(card("adaface")), "weights", "adaface"),
    carded("schema", "'unface.card/1'", schema="unface.card/2"),
    carded("owner", "owner", owner="ann"),
    carded("task", "task", task="oracle"),
    carded("name", "'../x'", name="../x"),
    carded("file", "'../net.onnx'", file="../net.onnx"),
    carded("file-with-a-backslash", "file", file="a\\net.onnx"),
    carded("sha256", "'abc'", sha256="abc"),
    carded("dim-below-0", "dim", "-1", dim=-1),
    carded("dim-of-text", "dim", dim="many"),
    carded("branch", "main", sources=[SOURCE]),
    prior("name", "stylegan9", "mobilestylegan, mobilestylegan-128", where="stylegan9"),
    prior("head", "x.safetensors", "mobilestylegan", where="x.safetensors", head=True),
    prior("device", "mobilestylegan", "'abacus'", device="abacus"),
    prior("device-of-a-word", "mobilestylegan", "'cpu:x'", device="cpu:x"),
    prior("device-that-is-not-there", "mobilestylegan", "1", where="device 'cpu:1'", device="cpu:1"),
    graph("offset-below-0", 'offset="0"', 'offset="-8"', "'one'", "-8", where="net.bin"),
    graph("shape-too-large", 'shape="2, 3"', 'shape="2, 4"', "'one'", "24 bytes", where="net.bin"),
    graph("shape-below-0", 'shape="2, 3"', 'shape="-2, -3"', "'one'", where="net.bin"),
    graph("shape-of-a-word", 'shape="2, 3"', 'shape="two"', "'one'", where="net.xml"),
    graph("no-offset", 'offset="0"', "", "'one'", where="net.xml"),
    graph("cut", "</net>", "", where="net.xml"),
    graph("document-type", "<net>", '<!DOCTYPE net [<!ENTITY a "aa">]><net>', where="net.xml"),
)
