"""What an inversion attack knows, does and returns: the ports of ``unface invert``.

A target is a stored vector of a picture, raw or erased. An attack knows what the threat model says and nothing else,
counts every pass through the encoder and the prior, and returns a picture or a recogniser's template of each target.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from unface.errors import UnfaceError
from unface.score import Threshold

if TYPE_CHECKING:
    import torch

    from unface.invert.view import Pool, View


class Need(StrEnum):
    """What an attack cannot do without."""

    GRADIENTS = "the encoder with gradients"
    PRIOR = "a face prior"
    TRAIN = "pictures of train people"
    SCORES = "scores of probe faces"
    OWN = "a recogniser of the attacker's own"


class Generator(Protocol):
    """A prior as attacks see it: every ``unface.prior.Prior``, and a diffusion prior whose latents are noise."""

    @property
    def name(self) -> str:
        """What it was loaded by."""
        ...

    @property
    def sizes(self) -> tuple[int, ...]:
        """Heights (and widths) that ``decode`` can give, ascending."""
        ...

    @property
    def device(self) -> "torch.device":
        """Where latents and pictures live."""
        ...

    def sample(self, count: int, seed: int) -> "torch.Tensor":
        """(count, …) latents; a longer sample of the same seed begins with the shorter one."""
        ...

    def decode(self, latents: "torch.Tensor", size: int) -> "torch.Tensor":
        """(n, 3, size, size) RGB from 0 to 1; differentiable."""
        ...


@dataclass(frozen=True, eq=False)
class Train:
    """Train people, who are never attacked: what an attacker learns from."""

    vectors: NDArray[np.float32]
    """(n, d) unit vectors of their pictures in the attacked space: erased where the targets are."""
    people: NDArray[np.int64]
    """(n,) whose picture each is."""
    features: Mapping[str, NDArray[np.float32]]
    """By recogniser's name: (n, d') unit vectors of the same pictures; zeros where it found no face."""
    pictures: Callable[[NDArray[np.int64]], NDArray[np.uint8]] | None = None
    """Rows → (k, side, side, 3) RGB in the prior's frame; None where there are only vectors."""


@dataclass(frozen=True, eq=False)
class Threat:
    """What the attacker knows. What is None is not known, and an attack that needs it is refused."""

    space: str
    """The attacked space, in words: raw, isp, keeper, …"""
    encoder: str
    """The attacked encoder, by name."""
    view: "View | None" = None
    """The encoder with gradients, followed by the projection if the targets are erased: the attacker knows both."""
    prior: Generator | None = None
    train: Train | None = None
    second: "View | None" = None
    """A recogniser of the attacker's own, never a judge: translate and bob decode with it, alsuv chooses with it."""
    seed: int = 0
    pools: "dict[tuple[str, str, int, int], Pool]" = field(default_factory=dict)
    """Encoded once for each encoder and prior; threats of other spaces made by ``of_space`` share them."""

    @property
    def knows(self) -> frozenset[Need]:
        """What may be needed and is there."""
        known = {
            Need.GRADIENTS: self.view,
            Need.PRIOR: self.prior,
            Need.TRAIN: self.train,
            Need.SCORES: self.view,
            Need.OWN: self.second,
        }
        return frozenset(need for need, there in known.items() if there is not None)

    def of_space(self, space: str, view: "View | None", train: Train | None) -> "Threat":
        """The same attacker before vectors of another space of the same encoder."""
        return replace(self, space=space, view=view, train=train)

    def pool(self, count: int, ledger: "Ledger") -> "Pool":
        """``count`` faces of the prior and the encoder's vectors of them, before any projection."""
        from unface.invert.view import Pool

        if self.view is None or self.prior is None:
            raise ValueError("a pool needs a view and a prior; require() checks")
        key = (self.encoder, self.prior.name, count, self.seed)
        if key not in self.pools:
            self.pools[key] = Pool.drawn(self.prior, self.view, count, self.seed, ledger)
        return self.pools[key]


@dataclass(frozen=True, eq=False)
class Targets:
    """Vectors to invert. Random choices depend on a target's number and not on which others are in the batch."""

    vectors: NDArray[np.float32]
    """(n, d) unit vectors in the attacked space."""
    numbers: NDArray[np.int64]
    """(n,) places among all targets of the run."""


@dataclass(frozen=True, eq=False)
class Reconstructions:
    """What an attack made of n targets: pictures, or templates of a recogniser."""

    reached: NDArray[np.float32]
    """(n,) cosine of the reconstruction's vector with the target in the attacked space; NaN for templates."""
    pictures: NDArray[np.uint8] | None = None
    """(n, side, side, 3) RGB, as the prior gives them; judges look for the face themselves."""
    templates: NDArray[np.float32] | None = None
    """(n, d'), any length; NaN where there is none."""
    recogniser: str | None = None
    """Whose templates they are."""
    thresholds: tuple[Threshold, ...] = ()
    """Of templates: what strangers' templates are kept out by, where it is not what keeps out strangers' pictures."""

    def __post_init__(self) -> None:
        if (self.pictures is None) == (self.templates is None) or (self.templates is None) != (self.recogniser is None):
            raise ValueError("reconstructions are pictures, or templates of a named recogniser")


Part = Literal["encoder", "prior"]
_COUNTED = ("encoder forward", "encoder backward", "prior forward", "prior backward")


@dataclass
class Ledger:
    """Passes of single pictures through the encoder and the prior, and seconds, summed over ``targets`` targets."""

    targets: int = 0
    passes: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_COUNTED, 0))
    seconds: float = 0.0

    def count(self, part: Part, forward: int = 0, backward: int = 0) -> None:
        """So many pictures went through ``part``."""
        self.passes[f"{part} forward"] += forward
        self.passes[f"{part} backward"] += backward

    @contextmanager
    def timed(self, targets: int = 0) -> Iterator[None]:
        """Seconds of the work inside, for so many targets; 0 for work that all of them share."""
        began = time.monotonic()
        yield
        self.seconds += time.monotonic() - began
        self.targets += targets

    def add(self, other: "Ledger") -> None:
        """Another ledger's counts on top of these."""
        self.targets += other.targets
        self.seconds += other.seconds
        for name, number in other.passes.items():
            self.passes[name] += number


Invert = Callable[[Targets, Ledger], Reconstructions]


@runtime_checkable
class Attack(Protocol):
    """A way to turn stored vectors into faces or templates."""

    @property
    def name(self) -> str:
        """As it appears in results and on the command line."""
        ...

    @property
    def needs(self) -> frozenset[Need]:
        """What the threat has to hold."""
        ...

    @property
    def settings(self) -> Mapping[str, float | str]:
        """Everything that another run needs to repeat it; a run that was begun with others is not continued."""
        ...

    @property
    def batch(self) -> int:
        """How many targets it takes at once on a GPU; a CPU takes one. A killed run loses at most one batch."""
        ...

    def prepare(self, threat: Threat, ledger: Ledger) -> Invert:
        """Do what all targets share (learn a map, train a network, encode a pool), counted in ``ledger``."""
        ...


def require(attack: Attack, threat: Threat) -> None:
    """Refuse an attack that needs what is not known, in one line."""
    missing = [need for need in Need if need in attack.needs and need not in threat.knows]
    if missing:
        without = "; only translate works on vectors without pictures" if Need.TRAIN not in missing else ""
        raise UnfaceError(f"attack {attack.name!r} needs {' and '.join(missing)}, not given here{without}")
    require_prior(attack, threat.prior)


def require_prior(attack: Attack, prior: Generator | None) -> None:
    """Refuse a prior that an attack cannot search; an attack that can search any has no ``refuse_prior``."""
    refuse: Callable[[object], object] | None = getattr(attack, "refuse_prior", None)
    if refuse is not None and prior is not None and Need.PRIOR in attack.needs:
        refuse(prior)
