"""If these fail, an encoder's vectors are not its pictures' own, or not what its card says they are."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from tests.data.pictures import encoded, write_zip
from tests.encode.tiny import noise, write_onnx
from tests.models.tiny import pooling_net
from tests.real import weights_here
from unface.data import read_embeddings, read_images
from unface.encode import Encoder, TorchBacked, encode_images, load_encoder, space_of, tensor_of
from unface.errors import UnfaceError
from unface.models import Card, Description, Input, Licence, add_model, cards

SIZE = 16
GREY = Description(mean=(127.5, 127.5, 127.5), std=(128.0, 128.0, 128.0))
OWN = ["fixed", "mixing", "bytes", "state-dict", "toy"]
"""Small files of each runtime that everybody has, added as a user adds them, and one of another package."""
RUN = {"onnx", "dlib_resnet", "facenet_pb", "tflite", "mobilenet_v2", "efficientnet_lite0", "augnet_r50"}
PACKAGED = [one.name for one in cards() if one.task == "encoder" and one.architecture in RUN and one.sha256]

each = pytest.mark.parametrize("name", OWN)


class Mean:
    """An encoder as another package would bring it: the mean colour."""

    name, dim = "toy", 3
    card = Card(
        name="toy",
        task="encoder",
        architecture="own",
        family="general",
        input=Input(SIZE, "NHWC", "RGB", "uint8", (0.0, 0.0, 0.0), (1.0, 1.0, 1.0), "none", "stretch"),
        output=None,
        pool="none",
        dim=3,
        licence=Licence("CC0", False),
        paper="",
        cautions=(),
        sources=(),
        file="f",
        bytes=0,
        sha256="",
    )

    def encode(self, images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        if not len(images):
            return np.empty((0, self.dim), np.float32)
        return np.asarray(tensor_of(images, self.card.input).mean(axis=(1, 2)), np.float32)


@pytest.fixture(scope="module")
def cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where ``unface models add`` has put a file of each kind."""
    folder, files = tmp_path_factory.mktemp("cache"), tmp_path_factory.mktemp("files")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UNFACE_CACHE", str(folder))
        add_model(write_onnx(files / "fixed.onnx"), "fixed", GREY)
        add_model(write_onnx(files / "mixing.onnx", kind="mixing"), "mixing", GREY)
        add_model(
            pooling_net(files / "bytes.onnx", ("n", "h", "w", 3), kind=2),
            "bytes",
            Description(size=SIZE, resize="letterbox"),
        )
    return folder


@cache
def opened(name: str, folder: Path) -> Encoder:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UNFACE_CACHE", str(folder))
        if name == "state-dict":
            torch = pytest.importorskip("torch")
            from unface.encode.torch_encoder import MobileNetV2

            torch.manual_seed(0)
            torch.save(MobileNetV2().state_dict(), folder / "weights.pth")
            add_model(
                folder / "weights.pth",
                name,
                Description(architecture="mobilenet_v2", dim=1280, size=32, mean=GREY.mean, std=GREY.std),
            )
        return load_encoder(name, threads=1)


def packaged(name: str) -> Encoder:
    weights_here(name)
    try:
        return load_encoder(name, accept_licence=True, threads=1)
    except UnfaceError as error:
        if "install" not in str(error):
            raise
        pytest.skip(str(error))


@pytest.mark.parametrize("name", [*OWN, *PACKAGED])
def test_a_vector_is_its_pictures_own_and_as_its_card_says(name: str, cache_folder: Path) -> None:
    encoder = opened(name, cache_folder) if name in OWN else packaged(name)
    size = encoder.card.input.size
    images = [*noise(2, size=size), np.full((size, 2 * size, 3), 90, dtype=np.uint8)]
    images[2][:, :5] = 200
    before = [image.tobytes() for image in images]
    vectors = encoder.encode(images)
    assert (encoder.name, encoder.dim) == (name, encoder.card.dim)
    assert vectors.shape == (3, encoder.dim)
    assert vectors.dtype == np.float32
    assert np.isfinite(vectors).all()
    assert vectors.any(axis=1).all()
    assert [image.tobytes() for image in images] == before
    near = 1e-3 * np.abs(vectors).max()
    for row, image in enumerate(images):
        np.testing.assert_allclose(encoder.encode([image])[0], vectors[row], atol=near)
    assert np.abs(vectors[0] - vectors[1]).max() > near
    assert encoder.encode([]).shape == (0, encoder.dim)


@each
def test_the_same_pictures_give_the_same_bits_and_their_order_is_kept(name: str, cache_folder: Path) -> None:
    encoder, images = opened(name, cache_folder), noise(5, size=SIZE)
    vectors = encoder.encode(images)
    assert np.array_equal(encoder.encode(images), vectors)
    np.testing.assert_allclose(encoder.encode(images[::-1]), vectors[::-1], atol=1e-5 * np.abs(vectors).max())


@each
def test_its_space_goes_by_its_name_its_weights_and_its_length(name: str, cache_folder: Path) -> None:
    encoder = opened(name, cache_folder)
    space = space_of(encoder)
    assert (space.encoder, space.dim, space.normalised) == (name, encoder.dim, False)
    assert space.weights_sha256 == (encoder.card.sha256 or None)
    assert bool(space.weights_sha256) is (name != "toy")


@each
def test_pictures_of_every_kind_and_size_become_rows(name: str, cache_folder: Path, tmp_path: Path) -> None:
    """Grey, with transparency, of few colours, tall, wide and of one pixel; what shows the same has the same vector."""
    encoder = opened(name, cache_folder)
    grey = Image.fromarray(noise(1, size=SIZE)[0]).convert("L")
    kinds = {"L": grey, "RGB": grey.convert("RGB"), "RGBA": grey.convert("RGBA"), "P": grey.convert("P")}
    sizes = {f"{width}x{height}": grey.resize((width, height)) for width, height in ((1, 1), (31, 7), (5, 90))}
    shown = {f"kinds/{name}": image for name, image in kinds.items()} | {f"sizes/{name}": sizes[name] for name in sizes}
    files = {f"{place}.png": encoded(image, "PNG") for place, image in shown.items()}
    source = read_images(write_zip(tmp_path / "faces.zip", files))
    made = encode_images(source, encoder, tmp_path / "e.parquet", detector=None, batch=3, threads=1)
    assert (made.rows, made.skipped) == (7, {})
    found = read_embeddings(tmp_path / "e.parquet")
    assert np.isfinite(found.vectors).all()
    same = found.vectors[found.identities == found.names.index("kinds")]
    assert len(same) == len(kinds)
    np.testing.assert_allclose(same, np.repeat(same[:1], len(kinds), axis=0), atol=1e-4 * np.abs(same).max())


@pytest.mark.parametrize("name", ["fixed", "state-dict"])
def test_gradients_are_of_the_same_network(name: str, cache_folder: Path) -> None:
    torch = pytest.importorskip("torch")
    encoder = opened(name, cache_folder)
    assert isinstance(encoder, TorchBacked)
    images = noise(2, size=encoder.card.input.size)
    batch = torch.from_numpy(tensor_of(images, encoder.card.input)).requires_grad_()
    found, vectors = encoder.torch_module()(batch), encoder.encode(images)
    np.testing.assert_allclose(found.detach().numpy(), vectors, atol=1e-4 * np.abs(vectors).max())
    found[0].square().sum().backward()
    assert batch.grad[0].any()
    assert not batch.grad[1].any(), "pictures of a batch influence each other"
