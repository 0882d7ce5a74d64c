"""Encoders by name: those with a card, and what other packages register under the entry point ``unface.encoders``."""

from collections.abc import Callable
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

from unface.encode.ports import Encoder
from unface.errors import UnfaceError
from unface.models import Card, card, weights
from unface.progress import Progress

_LIBRARIES = ("PIL", "cv2", "onnx", "onnxruntime")


def load_encoder(
    name: str, *, accept_licence: bool = False, threads: int | None = None, progress: Progress | None = None
) -> Encoder:
    """An encoder with its weights, fetched if they are not here yet; ``threads`` are those of one batch's inference."""
    absent = [library for library in _LIBRARIES if find_spec(library) is None]
    if absent:
        raise UnfaceError(f"pictures need {', '.join(absent)}, not installed; run pip install 'unface[images]'")
    for registered in entry_points(group="unface.encoders", name=name):
        made: Encoder = registered.load()()
        return made
    found = card(name)
    if found.task != "encoder":
        raise UnfaceError(f"{name}: is a {found.task}, not an encoder; 'unface models list' shows the encoders")
    make = _maker(found)
    return make(found, weights(found, accept_licence=accept_licence, progress=progress), threads)


def _maker(wanted: Card) -> Callable[[Card, Path, int | None], Encoder]:
    """Imported one by one: each brings a heavy library of its own."""
    match wanted.architecture:
        case "onnx":
            from unface.encode.onnx import OnnxEncoder

            return OnnxEncoder
        case "dlib_resnet":
            from unface.encode.dlib_resnet import DlibEncoder

            return DlibEncoder
        case "facenet_pb":
            from unface.encode.facenet import FaceNetEncoder

            return FaceNetEncoder
        case "tflite":
            from unface.encode.tflite import TfliteEncoder

            return TfliteEncoder
        case "mobilenet_v2" | "efficientnet_lite0" | "augnet_r50" | "transformers" | "torchscript":
            if find_spec("torch") is None:
                raise UnfaceError(f"{wanted.name}: needs torch, not installed; run pip install 'unface[torch]'")
            from unface.encode.torch_encoder import TorchEncoder

            return TorchEncoder
    raise UnfaceError(f"{wanted.name}: nothing here runs architecture {wanted.architecture!r}; correct its card")
