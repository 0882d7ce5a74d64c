"""Pictures become vectors: frozen encoders by name, and a whole set of pictures encoded into one Parquet file."""

from unface.encode.augment import with_copies
from unface.encode.encoder import Encoder, TorchBacked, gradients_of, load_encoder, space_of
from unface.encode.pipeline import Made, ahead, contents, encode_images, made_of, require_free
from unface.encode.prepare import aligned, framed, tensor_of

__all__ = [
    "Encoder",
    "Made",
    "TorchBacked",
    "ahead",
    "aligned",
    "contents",
    "encode_images",
    "framed",
    "gradients_of",
    "load_encoder",
    "made_of",
    "require_free",
    "space_of",
    "tensor_of",
    "with_copies",
]
