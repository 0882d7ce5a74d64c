"""The recipe of a distilled server: its front end is the room's, it learns, and an interrupted run is the whole run."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from studies.ppfr_distil import Channels, DistilledServer, GrownStudent, Lfw, Recipe, Training, train_to  # noqa: E402
from torch import Tensor, nn  # noqa: E402

from tests.encode.tiny import card  # noqa: E402
from unface.judge.template import unit_rows  # noqa: E402
from unface.protect.frequency import SCHEMES, FrontEnd, scheme  # noqa: E402
from unface.seeds import stream  # noqa: E402


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Of two runs, one may get fewer threads on a busy machine, and sums then differ in their last bits."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


TOY = Recipe("dctdp", "as-attacked", "toy", size=16, dim=4, width=8, blocks=(1, 1), batch=16, rate=3e-3, steps=60)


def material() -> tuple[np.ndarray, np.ndarray]:
    """Pictures of two numbers each, and a teacher that sees exactly these."""
    draw = stream(0, "distil")
    told = draw.standard_normal((48, 4))
    patterns = draw.standard_normal((4, 16, 16, 3))
    pixels = np.clip(128 + 20 * np.einsum("nk,kijc->nijc", told, patterns), 0, 255).astype(np.uint8)
    return pixels, unit_rows(told).astype(np.float32)


@pytest.mark.parametrize("name", SCHEMES)
def test_the_channels_are_those_of_the_front_end(name: str) -> None:
    chosen = scheme(name, "as-attacked")
    pixels = material()[0][:3]
    front = FrontEnd(chosen, 16)
    expected = front.channels(front.planes(pixels)).reshape(3, -1, 16, 16)
    found = Channels(chosen, 16)(torch.from_numpy(pixels).permute(0, 3, 1, 2).float(), torch.Generator())
    assert np.abs(found.numpy() - expected).max() < 1e-3


def test_noise_has_its_scale_and_a_drawn_subset_hides_the_others() -> None:
    pictures = torch.full((4, 3, 16, 16), 90.0)
    noise = Channels(scheme("dctdp"), 16)(pictures, torch.Generator()) - Channels(
        replace(scheme("dctdp"), laplace=None), 16
    )(pictures, torch.Generator())
    assert float(noise.abs().mean()) == pytest.approx(0.25, rel=0.02)  # of a Laplace variable: its scale
    drawn = Channels(scheme("partialface"), 16)(torch.rand(4, 3, 16, 16) * 255, torch.Generator())
    shown = (drawn.reshape(4, 3, 54, -1).abs().sum(dim=(1, 3)) > 0).sum(dim=1)
    assert shown.tolist() == [9] * 4


def test_it_learns_goes_on_to_the_bit_and_serves(tmp_path: Path) -> None:
    pictures, taught = material()
    whole = Training(TOY, pictures, taught)
    assert whole.run(60)
    assert whole.losses[-1] < 0.5 * whole.losses[0]
    first = Training(TOY, pictures, taught)
    first.run(20)
    first.save(tmp_path)
    second = Training(TOY, pictures, taught)
    second.resume(tmp_path)
    second.run(60)
    second.save(tmp_path)
    assert all(torch.equal(a, b) for a, b in zip(whole.student.parameters(), second.student.parameters(), strict=True))
    server = DistilledServer(tmp_path, card().input)
    vectors = server.embed(list(pictures))
    assert server.deterministic
    assert float((vectors * taught).sum(axis=1).mean()) == pytest.approx(1 - whole.losses[-1], abs=0.1)


class Watched:
    """Stands for LFW: each look finds the next accuracy, and what the server answers then."""

    def __init__(self, training: Training, found: list[float]) -> None:
        self.training, self.found, self.seen = training, found, list[tuple[int, np.ndarray]]()

    def folds(self, system: Callable[[Tensor], Tensor], device: str) -> np.ndarray:
        assert device == "cpu"
        pictures = torch.from_numpy(material()[0][:2]).permute(0, 3, 1, 2).float()
        self.seen.append((self.training.step, system(pictures).numpy()))
        return np.array([self.found[len(self.seen) - 1]])


def test_the_most_accurate_server_is_kept_and_learning_goes_on_until_it_is_accurate_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("studies.ppfr_distil._MORE", 2)
    training = Training(replace(TOY, steps=2, warm=2), *material())
    watched = Watched(training, [0.90, 0.98, 0.95])
    train_to(training, watched, tmp_path, 1e9, 1e9, 0.97)  # type: ignore[arg-type]
    assert [step for step, _ in watched.seen] == [2, 4], "0.98 is enough, all steps are done"
    served = DistilledServer(tmp_path, card().input).embed(list(material()[0][:2]))
    assert np.abs(served - watched.seen[1][1]).max() < 1e-5
    rows = [json.loads(line) for line in (tmp_path / "distil.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [(row["step"], row["lfw"]) for row in rows] == [(2, 0.90), (4, 0.98)]
    train_to(training, Watched(training, [0.95]), tmp_path, 0, 1e9, 0.97)  # type: ignore[arg-type]
    again = DistilledServer(tmp_path, card().input).embed(list(material()[0][:2]))
    assert np.array_equal(served, again), "a later, worse server does not replace it"


def test_the_rate_rises_and_then_falls() -> None:
    training = Training(replace(TOY, steps=10, warm=4), *material())
    rates = []
    for _ in range(13):
        training.one()
        rates.append(training._adam.param_groups[0]["lr"] / TOY.rate)
    assert rates[:3] == pytest.approx([0.25, 0.5, 0.75])
    assert rates[5] == pytest.approx(0.5)
    assert rates[-1] == pytest.approx(0.02)


def test_accuracy_on_pairs_is_counted_by_hand(tmp_path: Path) -> None:
    """Two folds of one mated and one impostor pair: a system that sees how light a picture is is always right."""
    from PIL import Image

    for name, values in (("A", (9, 12)), ("B", (200, 205)), ("C", (90, 93)), ("D", (150, 155))):
        (tmp_path / "faces" / name).mkdir(parents=True)
        for number, value in enumerate(values, 1):
            Image.new("RGB", (112, 112), (value, value, 0)).save(tmp_path / "faces" / name / f"{name}_{number:04d}.png")
    lines = ["2\t1", "A\t1\t2", "A\t1\tB\t1", "C\t1\t2", "C\t1\tD\t2"]
    (tmp_path / "pairs.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    lfw = Lfw(tmp_path / "faces", tmp_path / "pairs.txt")

    def light(pictures: Tensor) -> Tensor:
        return nn.functional.one_hot((pictures[:, 0].mean(dim=(1, 2)) / 50).long(), 5)

    assert lfw.folds(light, "cpu").tolist() == [1.0, 1.0]
    assert lfw.folds(lambda pictures: torch.ones(len(pictures), 1), "cpu").tolist() == [0.5, 0.5]


def recogniser() -> nn.Module:
    """A convolution whose filters see differences alone, a rectifier and a linear layer, as a graph gives them."""
    from onnx import TensorProto, helper, numpy_helper

    from unface.encode.onnx_torch import module_of

    draw = stream(0, "graph")
    filters = draw.standard_normal((4, 3, 3, 3))
    filters -= filters.mean(axis=(2, 3), keepdims=True)
    held = {
        "w": filters / 20,
        "b": np.zeros(4),
        "slope": np.full((4, 1, 1), 0.2),
        "m": draw.standard_normal((4, 256)),
        "n": np.zeros(4),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
        helper.make_node("PRelu", ["c", "slope"], ["r"]),
        helper.make_node("Flatten", ["r"], ["f"]),
        helper.make_node("Gemm", ["f", "m", "n"], ["y"], transB=1),
    ]
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, 16, 16])
    made = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 4])
    fixed = [numpy_helper.from_array(value.astype(np.float32), name) for name, value in held.items()]
    return module_of(helper.make_model(helper.make_graph(nodes, "g", [given], [made], fixed)), card())


def test_a_student_that_starts_from_its_teacher_is_near_it_before_it_learns_and_learns_in_all_layers() -> None:
    torch.manual_seed(0)  # the first layer starts at random
    network, front = recogniser(), Channels(scheme("dctdp", "as-attacked"), 16)
    pictures = torch.from_numpy(material()[0]).permute(0, 3, 1, 2).float()
    sent, graph = front(pictures, torch.Generator()), network
    ready = pictures - 128
    first = torch.nn.functional.conv2d(ready, graph.constant_4, graph.constant_0, stride=2, padding=1)
    student = GrownStudent(network, len(front.kept))
    wanted = torch.nn.functional.normalize(network(ready), dim=1)
    untaught = float((student(sent) * wanted).sum(dim=1).mean().detach())
    student.fit_first(sent, first)
    near = (student(sent) * wanted).sum(dim=1).mean()
    assert untaught < 0.5
    assert float(near.detach()) > 0.9
    near.backward()
    assert all(one.grad is not None and bool(one.grad.any()) for one in student.parameters())
    assert len(list(student.parameters())) == 2 + 3, "the first layer is new, slope, weights and bias are the teacher's"
