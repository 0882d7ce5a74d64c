"""What an encoder is to the rest of unface, and encoders by name: from a card, or registered by another package.

Below them those whose weights only one library runs: dlib's own, OpenCV for a TensorFlow graph, LiteRT for TFLite.
"""

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from unface.data import Space
from unface.encode.prepare import framed, tensor_of
from unface.errors import UnfaceError
from unface.functions import registered
from unface.models import Card, card, cards, weights
from unface.progress import Progress
from unface.threads import available_cores

if TYPE_CHECKING:
    import torch

_LIBRARIES = ("PIL", "cv2", "onnx", "onnxruntime")


class Encoder(Protocol):
    """A frozen encoder. ``card`` says what pictures it takes and under which licence its weights are."""

    @property
    def name(self) -> str: ...

    @property
    def dim(self) -> int: ...

    @property
    def card(self) -> Card: ...

    def encode(self, images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        """(n, dim) vectors of RGB pictures (h, w, 3), not normalised beyond what the model does itself.

        A picture of another size than the model's is resized as the card says. Encoders that want an aligned face
        expect one: ``encode_images`` finds and aligns it, this method does not.
        """
        ...


def space_of(encoder: Encoder) -> Space:
    """The space of an encoder's vectors."""
    return Space(encoder.name, encoder.card.sha256 or None, encoder.dim, normalised=False)


@runtime_checkable
class TorchBacked(Protocol):
    """An encoder that gradients can pass through."""

    def torch_module(self) -> "torch.nn.Module":
        """A frozen module from (n, 3, size, size) float32, normalised as the card says, to (n, dim)."""
        ...


def gradients_of(encoder: Encoder, advice: str = "choose another") -> "torch.nn.Module":
    """Its torch form, or a refusal that gives the advice and names encoders which have one."""
    if not isinstance(encoder, TorchBacked):
        raise _without_gradients(encoder.name, "runs in a library of its own", advice)
    try:
        return encoder.torch_module()
    except UnfaceError as error:
        raise _without_gradients(encoder.name, str(error).removeprefix(f"{encoder.name}: "), advice) from None


def _without_gradients(name: str, why: str, advice: str) -> UnfaceError:
    runtimes = ("onnx", "mobilenet_v2", "efficientnet_lite0", "augnet_r50", "transformers")
    usable = [card.name for card in cards() if card.task == "encoder" and card.architecture in runtimes]
    choices = ", ".join(one for one in usable if one != name)
    return UnfaceError(f"encoder {name!r} has no gradients ({why}); {advice}: {choices}")


def load_encoder(
    name: str, *, accept_licence: bool = False, threads: int | None = None, progress: Progress | None = None
) -> Encoder:
    """An encoder with its weights, fetched if they are not here yet; ``threads`` are those of one batch's inference.

    Other packages register encoders under the entry point ``unface.encoders``.
    """
    absent = [library for library in _LIBRARIES if find_spec(library) is None]
    if absent:
        raise UnfaceError(f"pictures need {', '.join(absent)}, not installed; run pip install 'unface[images]'")
    others: Encoder | None = registered("encoder", name, lambda make: make())
    if others is not None:
        return others
    wanted = card(name)
    if wanted.task != "encoder":
        raise UnfaceError(f"{name}: is a {wanted.task}, not an encoder; 'unface models list' shows the encoders")
    make = _maker(wanted)
    return make(wanted, weights(wanted, accept_licence=accept_licence, progress=progress), threads)


def _maker(wanted: Card) -> Callable[[Card, Path, int | None], Encoder]:
    """Imported one by one: each brings a heavy library of its own."""
    match wanted.architecture:
        case "onnx":
            from unface.encode.onnx import OnnxEncoder

            return OnnxEncoder
        case "dlib_resnet":
            return DlibEncoder
        case "facenet_pb":
            return FaceNetEncoder
        case "tflite":
            return TfliteEncoder
        case "mobilenet_v2" | "efficientnet_lite0" | "augnet_r50" | "transformers":
            if find_spec("torch") is None:
                raise UnfaceError(f"{wanted.name}: needs torch, not installed; run pip install 'unface[torch]'")
            from unface.encode.torch_encoder import TorchEncoder

            return TorchEncoder
        case "torchscript":
            raise UnfaceError(f"{wanted.name}: TorchScript is a program, so it is never loaded; export it to ONNX")
    raise UnfaceError(f"{wanted.name}: nothing here runs architecture {wanted.architecture!r}; correct its card")


class DlibEncoder:
    """dlib_face_recognition_resnet_model_v1, on 150-pixel chips."""

    def __init__(self, card: Card, path: Path, threads: int | None = None) -> None:
        try:
            import dlib
        except ImportError:
            raise UnfaceError(f"{card.name}: needs dlib; pip install 'unface[dlib]'") from None
        del threads  # dlib decides by itself
        self.card, self.name, self.dim = card, card.name, card.dim
        self._network = dlib.face_recognition_model_v1(str(path))

    def encode(self, images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        """(n, 128) vectors of RGB chips."""
        if not len(images):
            return np.empty((0, self.dim), dtype=np.float32)
        chips = [np.ascontiguousarray(framed(image, self.card.input)) for image in images]
        return np.asarray(self._network.compute_face_descriptor(chips), dtype=np.float32)


class FaceNetEncoder:
    """FaceNet (Sandberg's Inception-ResNet-v1), one picture at a time: OpenCV fixes the batch when it reads a graph."""

    def __init__(self, card: Card, path: Path, threads: int | None = None) -> None:
        import cv2

        del threads  # OpenCV's are set for the whole process
        self.card, self.name, self.dim = card, card.name, card.dim
        try:
            self._network = cv2.dnn.readNetFromTensorflow(str(path))
        except cv2.error:
            raise UnfaceError(f"{path.name}: not a TensorFlow graph that OpenCV reads; fetch it again") from None

    def encode(self, images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        """(n, 512) vectors of RGB crops."""
        vectors = np.empty((len(images), self.dim), dtype=np.float32)
        for row, image in enumerate(images):
            self._network.setInput(tensor_of([image], self.card.input))
            vectors[row] = self._network.forward()[0]
        return vectors


class TfliteEncoder:
    """A TensorFlow Lite file, one picture at a time, as such files are made."""

    def __init__(self, card: Card, path: Path, threads: int | None = None) -> None:
        try:
            from ai_edge_litert.interpreter import Interpreter
        except ImportError:
            raise UnfaceError(f"{card.name}: needs a TensorFlow Lite runtime; pip install 'unface[tflite]'") from None
        self.card, self.name, self.dim = card, card.name, card.dim
        self._network = Interpreter(str(path), num_threads=threads or available_cores())
        self._network.allocate_tensors()
        self._input = self._network.get_input_details()[0]["index"]
        self._output = self._network.get_output_details()[0]["index"]

    def encode(self, images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        """(n, dim) vectors of RGB pictures."""
        vectors = np.empty((len(images), self.dim), dtype=np.float32)
        for row, image in enumerate(images):
            self._network.set_tensor(self._input, tensor_of([image], self.card.input))
            self._network.invoke()
            vectors[row] = self._network.get_tensor(self._output)[0]
        return vectors
