"""The non-linear attacker: lda first, then a small residual network with an additive-margin softmax, in PyTorch."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from unface.errors import UnfaceError
from unface.pairs import PairSpace
from unface.probe.cosine import cosine_of_seen
from unface.probe.lda import Lda, LdaScorer
from unface.probe.ports import Setting, Support
from unface.seeds import stream
from unface.threads import one_blas_thread

if TYPE_CHECKING:
    import torch

Floats = NDArray[np.float32]
Layers = tuple[Floats, Floats]
"""(d, h) and (h, d): z ↦ z + relu(z A) B."""

# One lda to start from: any of lda's own settings remains a choice, with no epoch of training.
_SHRINKAGE = 0.5
_EPOCHS = (5, 15, 40)
_HIDDEN = 512
_BATCH = 256
_LEARNING_RATE = 1e-3
_DECAY = 1e-2
# Of the additive-margin softmax (Wang et al. 2018): s and m.
_SCALE, _MARGIN = 24.0, 0.2
# Noise as long as the vector itself, anew at each step: few pictures are otherwise learned by heart.
_NOISE = 1.0


@dataclass(frozen=True)
class Net:
    """Scores are cosines of z + relu(z A) B, z the unit vector of lda; epochs are chosen on calibrate, 0 being lda.

    All settings of lda are settings of this probe: on calibrate it cannot be worse than lda.
    """

    name: str = "net"
    settings: tuple[Setting, ...] = (
        *({**setting, "epochs": 0} for setting in Lda().settings),
        *({"shrinkage": _SHRINKAGE, "keep": 1.0, "epochs": epochs} for epochs in _EPOCHS),
    )

    def fit(self, support: Support) -> "NetScorer":
        try:
            import torch  # noqa: F401
        except ImportError:
            raise UnfaceError("probe 'net' needs PyTorch; pip install 'unface[torch]', or leave it out") from None
        return NetScorer(support, Lda().fit(support))


@dataclass(frozen=True, eq=False)
class NetScorer:
    support: Support = field(repr=False)
    lda: LdaScorer

    @property
    def notes(self) -> tuple[str, ...]:
        return self.lda.notes

    @cached_property
    def _trained(self) -> dict[int, Layers]:
        support = self.support
        rng = stream(support.seed, "net", support.k)
        return dict(train(self._start(support.vectors), support.identities, rng, support.device))

    def space(self, setting: Setting, vectors: Floats) -> PairSpace:
        if not setting["epochs"]:
            return self.lda.space(setting, vectors)
        first, second = self._trained[int(setting["epochs"])]
        start = self._start(vectors)
        return cosine_of_seen(start + np.maximum(start @ first, 0) @ second)

    def _start(self, vectors: Floats) -> Floats:
        seen = self.lda.fisher.basis(_SHRINKAGE).apply(vectors)
        lengths = np.linalg.norm(seen, axis=1, keepdims=True)
        return np.asarray(seen / np.maximum(lengths, np.finfo(np.float32).tiny), np.float32)


def train(
    inputs: Floats, identities: NDArray[np.int64], rng: np.random.Generator, device: str = "cpu"
) -> Iterator[tuple[int, Layers]]:
    """AdamW from the identity map on; yields (epochs, layers) at each number of epochs that may be chosen.

    The draws are NumPy's, the arithmetic is torch's.
    """
    import torch
    from torch.nn import functional

    dim, classes = inputs.shape[1], int(identities.max()) + 1
    if not dim:  # nothing tells these people apart
        yield from ((epochs, (np.zeros((0, 1), np.float32), np.zeros((1, 0), np.float32))) for epochs in _EPOCHS)
        return
    first = rng.standard_normal((dim, _HIDDEN), np.float32) * np.float32(np.sqrt(2))
    centres = np.zeros((classes, dim), np.float32)
    np.add.at(centres, identities, inputs)

    def parameter(values: Floats) -> "torch.Tensor":
        return torch.tensor(values, device=device, requires_grad=True)

    # The second layer starts at zero: before the first step the network is lda, and the centres are its class means.
    layers = [parameter(first), parameter(np.zeros((_HIDDEN, dim), np.float32))]
    heads = parameter(centres)
    optimiser = torch.optim.AdamW([*layers, heads], lr=_LEARNING_RATE, weight_decay=_DECAY)
    spread = np.float32(_NOISE / np.sqrt(dim))
    for epoch in range(1, _EPOCHS[-1] + 1):
        order = rng.permutation(len(inputs))
        for start in range(0, len(inputs), _BATCH):
            rows = order[start : start + _BATCH]
            noisy = inputs[rows] + spread * rng.standard_normal((len(rows), dim), np.float32)
            with one_blas_thread():
                seen = torch.from_numpy(noisy).to(device)
                wanted = torch.from_numpy(identities[rows]).to(device)
                out = seen + torch.relu(seen @ layers[0]) @ layers[1]
                cosines = functional.normalize(out, dim=1) @ functional.normalize(heads, dim=1).T
                margin = _MARGIN * functional.one_hot(wanted, classes)
                loss = functional.cross_entropy(_SCALE * (cosines - margin), wanted)
                optimiser.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]  # torch gives it no types
                optimiser.step()
        if epoch in _EPOCHS:
            yield epoch, (layers[0].numpy(force=True).copy(), layers[1].numpy(force=True).copy())
