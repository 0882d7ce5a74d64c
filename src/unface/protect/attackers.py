"""Attackers of a release: who links a real picture of somebody to the released pictures that were made of them.

The attacker holds real pictures and the release. People of the release are split in two: thresholds, and which attacker
is worst, come from one half, the numbers from the other.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from unface.encode import Encoder
from unface.errors import UnfaceError
from unface.judge.template import measured, stranger_thresholds, tally
from unface.metrics.rates import COARSE_ACCEPTS
from unface.progress import Progress, Silent
from unface.protect.facemae import Features
from unface.protect.recogniser import TrainedRecogniser, pictures_of
from unface.protect.replay import Replayed
from unface.release.retrieval import Labelled, retrieval_risk
from unface.result.protection import AttackerKind, AttackerResult
from unface.result.release import RiskResult
from unface.score import Draws, Measured, Threshold
from unface.seeds import stream

FAR = 1e-3
_BATCH, _REPLICATES = 512, 1_000

Frames = NDArray[np.uint8]
Embed = Callable[[Frames], NDArray[np.float32]]


@dataclass(frozen=True, eq=False)
class Attacker:
    """How an attacker looks at real pictures and at released ones: faces (n, s, s, 3) → unit vectors."""

    name: str
    kind: AttackerKind
    real: Embed
    released: Embed


@dataclass(frozen=True, eq=False)
class Deployed:
    """Real pictures and what was released of each, row by row, and whose they are."""

    real: Frames
    released: Frames
    people: NDArray[np.int64]

    def half(self, seed: int) -> NDArray[np.bool_]:
        """Rows of the people who set thresholds and choose the worst attacker; the others are measured."""
        names = np.unique(self.people)
        chosen = stream(seed, "protect", "calibrate").permutation(names)[: len(names) // 2]
        return np.isin(self.people, chosen)


def registry_attacker(encoder: Encoder, device: str = "cpu") -> Attacker:
    """A published recogniser as it is."""
    embed = embedding(_features(encoder, device))
    seen: dict[bytes, NDArray[np.float32]] = {}

    def real(frames: Frames) -> NDArray[np.float32]:
        # The same real pictures stand beside every method.
        key = hashlib.blake2b(np.ascontiguousarray(frames).data).digest()
        if key not in seen:
            seen.clear()
            seen[key] = embed(frames)
        return seen[key]

    return Attacker(encoder.name, "recogniser", real, embed)


def release_attacker(recogniser: TrainedRecogniser, name: str = "trained on the release") -> Attacker:
    """The recogniser that the release is good for: it has learned to tell the released people apart."""
    return Attacker(name, "trained on the release", recogniser.embed, recogniser.embed)


def imitating_attacker(encoder: Encoder, protect: Callable[[Frames], Frames], device: str = "cpu") -> Attacker:
    """Protects their own real pictures with the public model first, so that both sides look alike (paper 004, 4.5)."""
    embed = embedding(_features(encoder, device))
    return Attacker(f"{encoder.name}, protected query", "imitation", lambda frames: embed(protect(frames)), embed)


@dataclass(frozen=True)
class FineTuning:
    """How long an attacker learns from pairs of their own."""

    steps: int = 400
    people: int = 96
    """In a step, a real and a released picture of each."""
    learning_rate: float = 1e-4
    temperature: float = 0.05
    seed: int = 0


def fine_tuned_attacker(
    encoder: Encoder,
    own: Deployed,
    tuning: FineTuning,
    device: str = "cpu",
    *,
    progress: Progress | None = None,
) -> Attacker:
    """A published recogniser whose weights learn that a real picture and a released one show the same person.

    ``own`` are people of the attacker, who protected their pictures with the public model and masks of their own.
    """
    network = _features(encoder, device)
    weights = _unfrozen(network)
    names = np.unique(own.people)
    if len(names) < 2:
        raise UnfaceError("an attacker who fine-tunes needs pictures of at least two people; give more")
    rows = [np.flatnonzero(own.people == name) for name in names]
    pictures = [torch.from_numpy(np.ascontiguousarray(side)).to(device) for side in (own.real, own.released)]
    adam = torch.optim.AdamW(weights, tuning.learning_rate, weight_decay=1e-4)
    progress, task = progress or Silent(), f"fine-tuning {encoder.name}"
    progress.start(task, tuning.steps)
    kind = torch.device(device).type

    def gradients(places: Tensor) -> Tensor:
        with torch.autocast(kind, torch.bfloat16, enabled=kind == "cuda", cache_enabled=False):
            seen = torch.cat([side[place] for side, place in zip(pictures, places, strict=True)])
            real, released = network(pictures_of(seen, seen.shape[1])).float().chunk(2)
        scores = real @ released.T / tuning.temperature
        own_place = torch.arange(len(scores), device=device)
        loss = functional.cross_entropy(scores, own_place) + functional.cross_entropy(scores.T, own_place)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        return loss

    learn = Replayed(gradients, weights)
    for step in range(tuning.steps):
        random = stream(tuning.seed, "protect", "fine-tuning", step)
        chosen = random.permutation(len(rows))[: tuning.people]
        # Of two different pictures where there are two: the attacker has another one than was released.
        both = [random.permutation(rows[at])[:2] for at in chosen]
        learn(torch.from_numpy(np.array([[two[0] for two in both], [two[-1] for two in both]])).to(device))
        for group in adam.param_groups:
            group["lr"] = tuning.learning_rate * (1 - step / tuning.steps)
        adam.step()
        progress.advance(task)
    network.requires_grad_(False)
    embed = embedding(network)
    return Attacker(f"{encoder.name}, fine-tuned", "fine-tuned", embed, embed)


def embedding(network: Features) -> Embed:
    """Faces of any size → unit vectors, in batches on the network's device."""

    def embed(frames: Frames) -> NDArray[np.float32]:
        device = network.mean.device
        rows = []
        with torch.inference_mode(), torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            for start in range(0, len(frames), _BATCH):
                batch = torch.from_numpy(np.ascontiguousarray(frames[start : start + _BATCH])).to(device)
                rows.append(network(pictures_of(batch, batch.shape[1])).float())
            vectors: NDArray[np.float32] = torch.cat(rows).cpu().numpy()
        return vectors

    return embed


def _features(encoder: Encoder, device: str) -> Features:
    if encoder.card.input.alignment not in ("arcface112", "none"):
        raise UnfaceError(
            f"encoder {encoder.name!r} wants faces aligned as {encoder.card.input.alignment!r}; released ones are "
            "aligned as ArcFace's: choose another"
        )
    return Features(encoder, device)


def _unfrozen(network: nn.Module) -> list[nn.Parameter]:
    """Make the matrices and filters of a frozen network learn; what a graph holds as buffers becomes parameters."""
    for module in network.modules():
        for name, value in list(module._buffers.items()):
            if value is not None and value.is_floating_point() and value.ndim >= 2 and value.shape[:1] != (1,):
                del module._buffers[name]
                module.register_parameter(name, nn.Parameter(value.clone()))
    weights = [weight for weight in network.parameters() if weight.ndim >= 2]
    for weight in weights:
        weight.requires_grad_()
    if not weights:
        raise UnfaceError("the recogniser has no weights that could learn; choose another")
    return weights


@dataclass(frozen=True, eq=False)
class Seen:
    """What one attacker makes of a release: unit vectors of real and released pictures, row by row."""

    attacker: Attacker
    real: NDArray[np.float32]
    released: NDArray[np.float32]
    people: NDArray[np.int64]
    calibrate: NDArray[np.bool_] = field(repr=False)

    @classmethod
    def of(cls, attacker: Attacker, deployed: Deployed, seed: int) -> "Seen":
        return cls(
            attacker,
            attacker.real(deployed.real),
            attacker.released(deployed.released),
            deployed.people,
            deployed.half(seed),
        )

    def threshold(self, far: float = FAR) -> Threshold:
        """The lowest cosine that at most this share of the calibrate people's stranger pairs reaches."""
        rows = np.flatnonzero(self.calibrate)
        codes = np.unique(self.people[rows], return_inverse=True)[1].astype(np.int64)
        found = stranger_thresholds(self.real[rows], self.released[rows], codes, (far,))
        if not found:
            impostors = len(rows) ** 2 - int((np.bincount(codes) ** 2).sum())
            raise UnfaceError(
                f"FAR {far:g} cannot be resolved: {impostors:,} pairs of strangers lead to fewer than "
                f"{COARSE_ACCEPTS} false accepts; release more people"
            )
        return found[0]

    def linked(self, threshold: Threshold, seed: int, *, calibrate: bool) -> tuple[Measured, Measured | None, float]:
        """TAR with the release of the same picture and of another one, and the share of strangers who are accepted."""
        rows = np.flatnonzero(self.calibrate == calibrate)
        codes = np.unique(self.people[rows], return_inverse=True)[1].astype(np.int64)
        judged = tally(self.real[rows], np.arange(len(rows)), self.released[rows], codes, [threshold])
        same, other = (measured([judged], kind, 0, Draws(seed, _REPLICATES)) for kind in ("same", "other"))
        assert same is not None, "every picture has its release"
        return same, other, int(judged.stranger.sum()) / max(int(judged.stranger_of.sum()), 1)

    def result(self, seed: int, ks: Sequence[int] = (1, 2, 5), far: float = FAR) -> AttackerResult:
        """All that is said of this attacker."""
        threshold = self.threshold(far)
        _, chosen, _ = self.linked(threshold, seed, calibrate=True)
        same, other, achieved = self.linked(threshold, seed, calibrate=False)
        rows = np.flatnonzero(~self.calibrate)
        sides = [Labelled(side[rows], self.people[rows], rows) for side in (self.real, self.released)]
        usable = [k for k in ks if k <= len(rows)]
        risks = retrieval_risk(sides[0], sides[1], usable, seed=seed)
        retrieval = [
            RiskResult(
                pictures=one.pictures, identities=one.identities, released=one.released, k=one.k, share=one.share,
                chance=one.chance,
            )
            for one in risks
        ]  # fmt: skip
        return AttackerResult(
            name=self.attacker.name,
            kind=self.attacker.kind,
            far=far,
            cosine=threshold.cosine,
            achieved_far=achieved,
            same=same.share,
            other=None if other is None else other.share,
            calibrate_other=None if chosen is None else chosen.value,
            retrieval=retrieval,
        )
