"""If this fails, the generator draws other faces than its weights were trained to, or gradients lie."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional

from tests.prior.gradients import relative_error
from tests.prior.tiny import CHANNELS, LATENT, Constants, mapping, mobile_constants, write_ir
from tests.real import weights_here
from tests.refusals.table import refused
from unface.prior.mobilestylegan import MobileSynthesis, constants, from_haar, read_mapping, read_synthesis
from unface.prior.style import StylePrior
from unface.seeds import stream


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> MobileSynthesis:
    return read_synthesis(write_ir(tmp_path_factory.mktemp("ir"), "SynthesisNetwork", mobile_constants()))


def latents(*shape: int, dim: int = LATENT) -> torch.Tensor:
    return torch.from_numpy(stream(1, "latents").standard_normal((*shape, dim)).astype(np.float32))


def test_bands_become_pixels_as_by_transposed_haar_filters() -> None:
    x = torch.from_numpy(stream(0, "haar").standard_normal((2, 12, 5, 4)))
    sums, differences = torch.tensor([1.0, 1.0]).double() / 2**0.5, torch.tensor([1.0, -1.0]).double() / 2**0.5
    expected = torch.zeros(2, 3, 10, 8, dtype=torch.float64)
    bands = [x[:, :3], x[:, 3::3], x[:, 4::3], x[:, 5::3]]
    filters = [(sums, sums), (differences, sums), (sums, differences), (differences, differences)]
    for band, (down, across) in zip(bands, filters, strict=True):
        kernel = torch.outer(down, across).expand(3, 1, 2, 2)
        expected += functional.conv_transpose2d(band, kernel, stride=2, groups=3)
    torch.testing.assert_close(from_haar(x), expected)


def test_smaller_pictures_are_area_means_of_the_largest(tiny: MobileSynthesis) -> None:
    assert tiny.sizes == (8, 16, 32, 64)
    each = latents(2, 11)
    largest = tiny(each, 64)
    assert largest.std() > 0.01
    for size in (32, 16, 8):
        torch.testing.assert_close(tiny(each, size), functional.avg_pool2d(largest, 64 // size), rtol=0, atol=1e-6)


def test_every_slot_moves_the_picture_and_only_the_first_four_the_first_block(tiny: MobileSynthesis) -> None:
    each = latents(1, 11).requires_grad_()
    for x, moving in ((tiny(each, 64), 11), (tiny.features(each, 1), 4)):
        (gradient,) = torch.autograd.grad(x.square().mean(), each)
        assert (gradient[0].abs().amax(dim=1) > 0).tolist() == [True] * moving + [False] * (11 - moving)


def test_features_grow_by_two_each_block(tiny: MobileSynthesis) -> None:
    each = latents(2, 11)
    assert [tuple(tiny.features(each, blocks).shape) for blocks in (0, 1, 3)] == [
        (2, CHANNELS[0], 4, 4),
        (2, CHANNELS[1], 8, 8),
        (2, CHANNELS[3], 32, 32),
    ]


@pytest.mark.parametrize("shape", [(2,), (2, 11)], ids=["W", "W+"])
def test_gradients_are_those_of_finite_differences(shape: tuple[int, ...]) -> None:
    prior = StylePrior("tiny", mapping(), MobileSynthesis(mobile_constants()).double())
    weights = torch.from_numpy(stream(2, "weights").standard_normal((3, 64, 64)))
    error = relative_error(lambda at: (prior.decode(at, 64) * weights).sum(), latents(*shape).double())
    assert error < 1e-6


def test_of_each_layer_two_pictures_are_kept_for_the_way_back(tiny: MobileSynthesis) -> None:
    """What a search holds of a GPU's memory; with steering, noise and rectifier kept apart it would be 15 times."""
    weights = {weight.untyped_storage().data_ptr() for weight in tiny.parameters()}
    kept: dict[int, torch.Tensor] = {}

    def keep(x: torch.Tensor) -> torch.Tensor:
        kept.setdefault(x.untyped_storage().data_ptr(), x)
        return x

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda x: x):
        each = latents(3, tiny.slots).requires_grad_()
        features = tiny.features(each, tiny.blocks)
    held = sum(x.untyped_storage().nbytes() for place, x in kept.items() if place not in weights)
    assert held < 8 * features.nbytes


def test_another_graph_is_refused(tmp_path: Path) -> None:
    written = mobile_constants()
    del written["m.layers.1.conv2.bias"]
    with refused("prior", "Other.bin", "'s synthesis (KeyError: '", "m.layers.1"):
        read_synthesis(write_ir(tmp_path, "Other", written))


@pytest.mark.parametrize("biases", [(), (4, 4), (3,)])
def test_layers_that_do_not_fit_are_no_mapping(tmp_path: Path, biases: tuple[int, ...]) -> None:
    written: Constants = {f"bias-{place}": np.ones(size, dtype=np.float32) for place, size in enumerate(biases)}
    layer: Constants = {"weight": np.ones((4, 4), dtype=np.float32)}
    for weights in ({}, layer):
        with refused("prior", "Other.bin", "mapping"):
            read_mapping(write_ir(tmp_path, "Other", {**weights, **written}))


@pytest.mark.slow
def test_the_real_generator_equals_its_graph_run_by_openvino() -> None:
    openvino = pytest.importorskip("openvino", reason="OpenVINO, the peer, is not installed")
    z_to_w, w_to_pixels = weights_here("mobilestylegan-mapping"), weights_here("mobilestylegan-synthesis")
    core, exact = openvino.Core(), {"INFERENCE_PRECISION_HINT": "f32"}
    mapped, drawn = (
        core.compile_model(core.read_model(path.with_suffix(".xml")), "CPU", exact) for path in (z_to_w, w_to_pixels)
    )

    z = stream(0, "peer").standard_normal((2, 512)).astype(np.float32)
    expected = np.concatenate([mapped(one[None])[0] for one in z])
    w = read_mapping(z_to_w).requires_grad_(False)(torch.from_numpy(z))
    np.testing.assert_allclose(w.numpy(), expected, atol=1e-4)
    picture = drawn(expected[:1])[0]
    ours = read_synthesis(w_to_pixels)(w[:1, None].expand(-1, 23, -1), 1024).numpy()
    np.testing.assert_allclose(ours, picture, atol=1e-3)
    assert picture.std() > 0.2


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(1,), (1, 16)], ids=["W", "W+"])
def test_the_real_generators_gradients_are_those_of_finite_differences(shape: tuple[int, ...]) -> None:
    synthesis = read_synthesis(weights_here("mobilestylegan-synthesis")).double()
    w = read_mapping(weights_here("mobilestylegan-mapping")).requires_grad_(False)(latents(1, dim=512))
    at = w.double().expand(*shape, 512) if len(shape) == 2 else w.double()
    weights = torch.from_numpy(stream(2, "weights").standard_normal((256, 64, 64)))

    def scalar(given: torch.Tensor) -> torch.Tensor:
        each = given if given.ndim == 3 else given[:, None].expand(-1, 16, -1)
        return (functional.avg_pool2d(synthesis.features(each, 5), 2) * weights).sum()

    # Millions of leaky rectifiers: a larger step passes the kinks of some, and the difference is of two slopes.
    assert relative_error(scalar, at, directions=2, step=1e-8) < 1e-5


WRITTEN = {
    "one": np.arange(6, dtype=np.float32).reshape(2, 3),
    "axis": np.array([7]),
    "scalar": np.array(0.5, dtype=np.float32),
    "two": -np.arange(4, dtype=np.float32),
}


def test_float_constants_come_by_name_in_the_order_of_the_graph(tmp_path: Path) -> None:
    found = constants(write_ir(tmp_path, "net", WRITTEN))
    assert list(found) == ["one", "scalar", "two"]
    for name, array in found.items():
        np.testing.assert_array_equal(array, WRITTEN[name])
        assert array.dtype == np.float32


@pytest.mark.parametrize("left", [0, 20, 47])
def test_weights_cut_short_are_refused(tmp_path: Path, left: int) -> None:
    path = write_ir(tmp_path, "net", WRITTEN)
    path.write_bytes(path.read_bytes()[:left])
    with refused("prior", "net.bin", "constant"):
        constants(path)


def test_a_graph_in_another_encoding_is_refused(tmp_path: Path) -> None:
    path = write_ir(tmp_path, "net", WRITTEN)
    graph = path.with_suffix(".xml")
    graph.write_bytes(graph.read_text().encode("utf-16"))
    with refused("prior", "net.xml", "readable"):
        constants(path)


@pytest.mark.parametrize("gone", ["net.bin", "net.xml"])
def test_half_of_the_two_files_is_told_by_its_name(tmp_path: Path, gone: str) -> None:
    path = write_ir(tmp_path, "net", WRITTEN)
    (tmp_path / gone).unlink()
    with refused("prior", ..., "cannot"):
        constants(path)
