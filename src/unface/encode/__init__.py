"""Pictures become vectors: frozen encoders by name, and a whole set of pictures encoded into one Parquet file."""

from unface.encode.frame import framed, tensor_of
from unface.encode.load import load_encoder
from unface.encode.parts import require_free
from unface.encode.pipeline import contents, encode_images
from unface.encode.ports import Encoder, TorchBacked, space_of
from unface.encode.prepare import aligned
from unface.encode.table import Made, made_of

__all__ = [
    "Encoder",
    "Made",
    "TorchBacked",
    "aligned",
    "contents",
    "encode_images",
    "framed",
    "load_encoder",
    "made_of",
    "require_free",
    "space_of",
    "tensor_of",
]
