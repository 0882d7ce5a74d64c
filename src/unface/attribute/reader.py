"""A frozen encoder as a reader of canvases: its card says the canvas's side and how a face is aligned for it."""

from functools import partial

from unface.attribute.ports import Reader, whole
from unface.encode import Encoder, aligned

_SIDE = 224  # pixels (the ISP paper, App. D.2); encoders of whole pictures get their own size, as SSCD its 288


def reader_of(encoder: Encoder) -> Reader:
    """Whole canvases for general encoders, aligned faces for recognisers."""
    wanted = encoder.card.input
    if wanted.alignment == "none":
        return Reader(encoder.name, wanted.size or _SIDE, encoder.encode, whole)
    return Reader(encoder.name, _SIDE, encoder.encode, partial(aligned, wanted=wanted))
