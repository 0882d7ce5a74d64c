"""Encoders as torch modules: published state dicts in plain modules of ours, TorchScript, transformers."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from unface.encode.frame import tensor_of
from unface.encode.onnx import session_of
from unface.encode.torch_onnx import graph_of
from unface.errors import UnfaceError
from unface.models import Card


class TorchEncoder:
    """A frozen module on the CPU; modules of ours are run by ONNX Runtime, which is several times as fast."""

    def __init__(self, card: Card, path: Path, threads: int | None = None) -> None:
        self.card, self.name, self.dim = card, card.name, card.dim
        if threads is not None:
            torch.set_num_threads(threads)
        self._module = _module(card, path).eval()
        for weight in self._module.parameters():  # TorchScript has no requires_grad_ for all at once
            weight.requires_grad_(False)
        foreign = card.architecture in ("torchscript", "transformers")
        self._session = None if foreign else session_of(graph_of(self._module).SerializeToString(), threads)

    def encode(self, images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        """(n, dim) vectors of RGB pictures."""
        if not len(images):
            return np.empty((0, self.dim), dtype=np.float32)
        vectors = self._run(tensor_of(images, self.card.input))
        if vectors.shape != (len(images), self.dim):
            raise UnfaceError(
                f"{self.name}: gives {vectors.shape[1:]} numbers, its card says {self.dim}; correct 'dim'"
            )
        return vectors

    def torch_module(self) -> torch.nn.Module:
        """The module itself."""
        return self._module

    def _run(self, batch: NDArray[np.uint8] | NDArray[np.float32]) -> NDArray[np.float32]:
        if self._session is not None:
            (vectors,) = self._session.run(None, {self._session.get_inputs()[0].name: batch})
        else:
            with torch.inference_mode():
                vectors = self._module(torch.from_numpy(batch)).float().numpy()
        return np.asarray(vectors, dtype=np.float32)


def _module(card: Card, path: Path) -> torch.nn.Module:
    match card.architecture:
        case "torchscript":
            try:
                # torch gives its loader no types
                script: torch.nn.Module = torch.jit.load(str(path), map_location="cpu")  # type: ignore[no-untyped-call]
                return script
            except RuntimeError:
                raise UnfaceError(f"{path.name}: not a TorchScript file; fetch it again") from None
        case "transformers":
            from unface.encode.transformers_layout import vision_model

            return vision_model(path.parent, card)
        case "mobilenet_v2":
            from unface.encode.mobilenet_v2 import MobileNetV2

            return _filled(MobileNetV2(), path, drop="classifier.")
        case "efficientnet_lite0":
            from unface.encode.efficientnet_lite0 import EfficientNetLite0

            return _filled(EfficientNetLite0(), path, drop="_fc.")
        case _:
            from unface.encode.augnet import AugNet

            return _filled(AugNet(), path, prefix="module.pre.")


def _filled(module: torch.nn.Module, path: Path, *, drop: str | None = None, prefix: str = "") -> torch.nn.Module:
    """The module with a file's weights, every one of which must fit; the classifier on top is dropped."""
    try:
        # weights_only: a pickle that would run code is refused.
        state = torch.load(path, map_location="cpu", weights_only=True)
        wanted = {
            name.removeprefix(prefix): value
            for name, value in state.items()
            if drop is None or not name.startswith(drop)
        }
        module.load_state_dict(wanted)
    except Exception as error:  # torch, zipfile and pickle raise nearly anything
        raise UnfaceError(
            f"{path.name}: not the weights expected here ({type(error).__name__}); fetch it again"
        ) from None
    return module
