"""Forward and backward as one CUDA graph; on a CPU with one thread.

These networks are small: a GPU would wait most of the time for the CPU to launch its kernels.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

_FIRST = 3  # calls that run as they are: libraries choose their kernels and allocate what they keep
RECORDING = True
"""On an NVIDIA H200, replayed steps had the losses of plain ones to four digits, 12 steps of each loss."""


class Replayed:
    """Calls ``gradients``, which leaves gradients in ``weights`` and returns the loss.

    Where recording is on, the fourth call on a GPU is recorded; it and all later ones copy their inputs in and replay
    the recording. So ``gradients`` must read nothing from the CPU that changes between calls, and inputs must keep
    their shapes. On a CPU, and where recording fails, every call runs as it is; on a CPU with one thread.
    """

    def __init__(
        self, gradients: Callable[..., Tensor], weights: Sequence[Tensor], possible: bool | None = None
    ) -> None:
        self._gradients, self._weights = gradients, list(weights)
        self._calls, self.recorded = 0, False
        self._possible = RECORDING if possible is None else possible
        self._graph: torch.cuda.CUDAGraph | None = None
        self._held: list[Tensor] = []
        self._found: list[Tensor | None] = []
        self._loss: Tensor | None = None

    def __call__(self, *inputs: Tensor) -> Tensor:
        """The loss, apart from the graph; gradients are new, not added to those of the call before."""
        if not self._possible or inputs[0].device.type != "cuda":
            return self._fresh(inputs)
        self._calls += 1
        if self._calls <= _FIRST:
            now, side = torch.cuda.current_stream(), torch.cuda.Stream()  # type: ignore[no-untyped-call]
            side.wait_stream(now)
            with torch.cuda.stream(side):  # as PyTorch asks for before a recording
                loss = self._fresh(inputs)
            now.wait_stream(side)
            return loss
        if self._graph is None and not self._record(inputs):
            return self._fresh(inputs)
        assert self._graph is not None
        assert self._loss is not None
        for held, given in zip(self._held, inputs, strict=True):
            held.copy_(given)
        self._graph.replay()
        for weight, gradient in zip(self._weights, self._found, strict=True):
            weight.grad = gradient  # where the recording writes it
        return self._loss.clone()

    def _fresh(self, inputs: Sequence[Tensor]) -> Tensor:
        for weight in self._weights:
            weight.grad = None
        if inputs[0].device.type != "cpu":
            return self._gradients(*inputs).detach()
        with _one_thread():
            return self._gradients(*inputs).detach()

    def _record(self, inputs: Sequence[Tensor]) -> bool:
        now, graph = torch.cuda.current_stream(), torch.cuda.CUDAGraph()
        self._held = [given.clone() for given in inputs]
        torch.cuda.synchronize()
        try:
            with torch.cuda.graph(graph):
                self._loss = self._fresh(self._held)
        except RuntimeError as error:
            torch.cuda.set_stream(now)
            torch.cuda.synchronize()
            warnings.warn(f"steps run without a CUDA graph: {error}", RuntimeWarning, stacklevel=3)
            self._possible, self._held, self._loss = False, [], None
            return False
        self._found = [weight.grad for weight in self._weights]
        self._graph, self.recorded = graph, True
        return True


@contextmanager
def _one_thread() -> Iterator[None]:
    """PyTorch on one thread: sums over a batch are cut up among threads, and their last bits depend on how many.

    Adam divides each gradient by its own size. One that is nothing but rounding, as of a shift that the next
    normalisation takes away again, becomes a full step, so that other last bits become another recogniser.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
