"""A Projection as a torch module, to stand behind an encoder."""

import torch
from torch import nn

from unface.erase.kernel import UNIT, VANISHED
from unface.erase.projection import Projection
from unface.errors import UnfaceError


class Erasure(nn.Module):
    """Vectors (…, d) of any float type and device to erased ones of the same, as ``Projection.apply`` does.

    Its buffers are in float64, for the reason that LinearMap gives: moving it to a device keeps them, ``half()`` and
    the like would not. Gradients flow; a vector that vanishes has none, and which side of a face gate a vector is on
    has none either.
    """

    left: torch.Tensor
    right: torch.Tensor | None
    offset: torch.Tensor | None
    gate: torch.Tensor | None

    def __init__(self, projection: Projection) -> None:
        super().__init__()
        kernel, linear = projection.kernel, projection.linear
        self.unit_input, self.subtract, self.unit_output = kernel.unit_input, linear.subtract, kernel.unit_output
        self.gate_offset = 0.0 if kernel.gate is None else kernel.gate.offset
        gate = None if kernel.gate is None else kernel.gate.weights
        for name, array in (("left", linear.left), ("right", linear.right), ("offset", linear.offset), ("gate", gate)):
            self.register_buffer(name, None if array is None else torch.tensor(array))

    def forward(self, vectors: torch.Tensor) -> torch.Tensor:
        if not vectors.is_floating_point():
            # Numbers below one, as they come out, would all be zero.
            raise UnfaceError(f"torch_module: vectors of {vectors.dtype}; expected a float type, convert them first")
        given = vectors.to(torch.float64)
        before = given.square().sum(dim=-1, keepdim=True)
        nothing = before == 0
        if self.unit_input:
            as_it_is = nothing | ((before - 1).abs() <= UNIT)
            given = (given / torch.where(as_it_is, 1, before).sqrt()).to(torch.float32).to(torch.float64)
            before = torch.ones_like(before)
        mapped = given @ self.left
        if self.right is not None:
            mapped = mapped @ self.right
        if self.subtract:
            mapped = given - mapped
        if self.offset is not None:
            mapped = mapped + self.offset
        after = mapped.square().sum(dim=-1, keepdim=True)
        vanished = nothing | (after <= VANISHED**2 * before)
        if self.unit_output:
            # Before the root: its slope at zero is infinite, and NaN would come back through what is thrown away.
            mapped = mapped / torch.where(vanished, 1, after).sqrt()
        released = torch.where(vanished, 0, mapped)
        if self.gate is not None:
            face = (given @ self.gate + self.gate_offset > 0)[..., None]
            released = torch.where(face, released, given)
        return released.to(vectors.dtype)
