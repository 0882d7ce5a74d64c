"""Looking into a file of weights without running what it may hide: what it is, what it takes, what it gives."""

import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from safetensors import SafetensorError, safe_open

from unface.errors import UnfaceError
from unface.models.card import Layout, Pixels

Kind = Literal["onnx", "torchscript", "safetensors", "state dict"]


@dataclass(frozen=True)
class Graph:
    """What running a model once on an empty picture told."""

    size: int
    layout: Layout
    dtype: Pixels
    dim: int


def kind_of(path: Path) -> Kind:
    """By its suffix, and by content where a suffix can mean two things; a pickle that would run code is refused."""
    if not path.is_file():
        raise UnfaceError(f"{path.name}: {'is a folder; name the file in it' if path.is_dir() else 'no such file'}")
    if path.suffix == ".onnx":
        return "onnx"
    if path.suffix == ".safetensors":
        _require_safetensors(path)
        return "safetensors"
    if path.suffix in (".pt", ".pth", ".bin"):
        if _is_torchscript(path):
            return "torchscript"
        _require_plain_tensors(path)
        return "state dict"
    raise UnfaceError(f"{path.name}: expected .onnx, .safetensors, .pt, .pth or .bin")


def graph_of(path: Path, kind: Kind, size: int | None) -> Graph:
    """Run an ONNX or TorchScript file once; ``size`` is needed where the file does not fix it."""
    return _run_onnx(path, size) if kind == "onnx" else _run_torchscript(path, size)


def _run_onnx(path: Path, size: int | None) -> Graph:
    try:
        import onnxruntime
    except ImportError:
        raise UnfaceError(f"{path.name}: an .onnx file needs onnxruntime; pip install 'unface[images]'") from None
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        # From bytes, so that a graph cannot name other files of this machine as its weights.
        session = onnxruntime.InferenceSession(path.read_bytes(), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise UnfaceError(f"{path.name}: ONNX Runtime cannot load it alone ({type(error).__name__})") from None
    inputs = session.get_inputs()
    shape = list(inputs[0].shape) if inputs else []
    kinds: dict[str, Pixels] = {"tensor(float)": "float32", "tensor(uint8)": "uint8"}
    if len(inputs) != 1 or len(shape) != 4 or 3 not in (shape[1], shape[3]) or inputs[0].type not in kinds:
        raise UnfaceError(f"{path.name}: takes {[one.shape for one in inputs]}; expected one batch of colour pictures")
    layout: Layout = "NCHW" if shape[1] == 3 else "NHWC"
    dtype = kinds[inputs[0].type]
    side = _agreed(path, shape[2] if layout == "NCHW" else shape[1], size)
    picture = np.zeros((1, 3, side, side) if layout == "NCHW" else (1, side, side, 3), np.dtype(dtype))
    try:
        given = session.run([session.get_outputs()[0].name], {inputs[0].name: picture})[0]
    except Exception as error:
        raise UnfaceError(f"{path.name}: does not run on one {side} px picture ({type(error).__name__})") from None
    return Graph(side, layout, dtype, _dim(path, np.shape(given)))


def _run_torchscript(path: Path, size: int | None) -> Graph:
    torch = _torch(path)
    side = _agreed(path, None, size)
    try:
        module = torch.jit.load(str(path), map_location="cpu").eval()
        with torch.inference_mode():
            given = module(torch.zeros(1, 3, side, side))
        shape = tuple(given.shape)
    except Exception as error:
        raise UnfaceError(f"{path.name}: does not run on one {side} px picture ({type(error).__name__})") from None
    return Graph(side, "NCHW", "float32", _dim(path, shape))


def _agreed(path: Path, fixed: object, size: int | None) -> int:
    if not isinstance(fixed, int):
        if size is None:
            raise UnfaceError(f"{path.name}: takes pictures of any size; say which with --size")
        return size
    if size not in (None, fixed):
        raise UnfaceError(f"{path.name}: takes pictures of {fixed} px, --size says {size}")
    return fixed


def _dim(path: Path, shape: tuple[int, ...]) -> int:
    if len(shape) < 2 or shape[0] != 1 or any(side != 1 for side in shape[2:]):
        raise UnfaceError(f"{path.name}: gives {shape} for one picture; expected one vector, export the model with it")
    return shape[1]


def _require_safetensors(path: Path) -> None:
    try:
        with safe_open(path, framework="numpy") as opened:
            opened.keys()
    except (SafetensorError, OSError) as error:
        told = f"{path.name}: not a whole .safetensors file ({type(error).__name__}); copy it again"
        raise UnfaceError(told) from None


def _is_torchscript(path: Path) -> bool:
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as opened:
        return any(name.endswith("/constants.pkl") for name in opened.namelist())


def _require_plain_tensors(path: Path) -> None:
    torch = _torch(path)
    try:
        torch.load(path, map_location="cpu", weights_only=True)
    except Exception:  # whatever it is, it is not what may be loaded
        raise UnfaceError(
            f"{path.name}: holds more than tensors, so loading it could run code; it was not loaded, "
            "save its state dict as .safetensors"
        ) from None


def _torch(path: Path) -> Any:
    try:
        import torch
    except ImportError:
        raise UnfaceError(f"{path.name}: needs PyTorch to be looked into; pip install 'unface[torch]'") from None
    return torch
