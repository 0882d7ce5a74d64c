"""Networks of this room on ONNX Runtime: one thread each, since pictures are worked on in parallel already."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnxruntime


def session_of(model: bytes | str) -> "onnxruntime.InferenceSession":
    """A model's bytes, or the path of its file, on the CPU."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
