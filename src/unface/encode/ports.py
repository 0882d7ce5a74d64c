"""What an encoder is to the rest of unface, and to packages that bring their own."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from unface.data import Space
from unface.models import Card

if TYPE_CHECKING:
    import torch


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
    """Where an encoder's vectors live."""
    return Space(encoder.name, encoder.card.sha256 or None, encoder.dim, normalised=False)


@runtime_checkable
class TorchBacked(Protocol):
    """An encoder that gradients can pass through."""

    def torch_module(self) -> "torch.nn.Module":
        """A frozen module from (n, 3, size, size) float32, normalised as the card says, to (n, dim)."""
        ...
