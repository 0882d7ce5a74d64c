"""What is attacked, what an attacker may do, and what comes out: the ports of ``unface validate``.

A target compares a picture with one enrolled person and answers with a number. An attack sees nothing but an oracle,
which asks the target, counts every question before it is sent, and stops at the budget.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from unface.judge import Threshold

Setting = Mapping[str, float]
"""One choice of hyper-parameters, e.g. ``{"ridge": 0.1}``."""


@dataclass(frozen=True)
class Picture:
    """A picture as it is sent. ``name`` is unique in its set; for embedded vectors the bytes are that name alone."""

    name: str
    content: bytes = field(repr=False)

    @cached_property
    def sha256(self) -> str:
        """Of the bytes: what the ledger knows a question by."""
        return hashlib.sha256(self.content).hexdigest()


@dataclass(frozen=True, eq=False)
class Faces:
    """Pictures, whose they are, and how recognisers see them."""

    pictures: tuple[Picture, ...]
    identities: NDArray[np.int64]
    """(n,) positions in ``names``."""
    names: tuple[str, ...]
    vectors: Mapping[str, NDArray[np.float32]]
    """By recogniser's name: (n, d) unit vectors; zeros where it found no face."""

    def rows(self, person: int) -> NDArray[np.int64]:
        """The pictures of one person. Of an enrolled person the first is enrolled, the others are judged by."""
        return np.flatnonzero(self.identities == person)


@runtime_checkable
class Target(Protocol):
    """A face system in which people are enrolled."""

    @property
    def name(self) -> str:
        """As results show it: no password, no key."""
        ...

    @property
    def decisions_only(self) -> bool:
        """Whether it answers with 1 (accepted) and 0 (rejected) alone."""
        ...

    @property
    def batch(self) -> int:
        """How many pictures ``score`` takes at once at most; 1 for a system that is asked picture by picture."""
        ...

    def score(self, person: str, pictures: Sequence[Picture]) -> NDArray[np.float64]:
        """(n,) similarities of the pictures to one enrolled person; higher is more alike.

        NaN is no answer. Raises ``Refused`` where the target will not answer any more, ``Lost`` where a question may
        have arrived and its answer did not, ``NotSent`` where it certainly did not arrive and may be sent again.
        """
        ...


@runtime_checkable
class Announced(Protocol):
    """A target that says when a question leaves, so that what never left is not counted."""

    def score_announced(
        self, person: str, pictures: Sequence[Picture], leaving: Callable[[], None]
    ) -> NDArray[np.float64]:
        """As ``score``; calls ``leaving`` at the last moment before the first byte is sent."""
        ...


@runtime_checkable
class Reachable(Protocol):
    """A target that can be tried without a question."""

    def reach(self) -> None:
        """Connect, and send nothing. Raises ``NotSent`` or ``Refused`` where that fails."""
        ...


class Oracle(Protocol):
    """One enrolled person of a target, as an attack sees it."""

    @property
    def decisions_only(self) -> bool:
        """See ``Target``."""
        ...

    @property
    def left(self) -> int:
        """Questions that may still be asked about this person; 0 as soon as the target has stopped answering."""
        ...

    def ask(self, pictures: Sequence[Picture]) -> NDArray[np.float64]:
        """(n,) scores; NaN where there is no answer (lost, budget spent, target stopped).

        A picture that was asked before is answered from the ledger, is not sent again and costs nothing.
        """
        ...


class Generator(Protocol):
    """Faces of people who do not exist, by latents that can be moved."""

    @property
    def name(self) -> str:
        """As it appears in results."""
        ...

    def sample(self, count: int, seed: int) -> NDArray[np.float64]:
        """(count, slots, dim) latents; a longer sample of the same seed begins with the shorter one."""
        ...

    def pictures(self, latents: NDArray[np.float64]) -> tuple[Picture, ...]:
        """Of (n, slots, dim), as they are sent; the same latents in the same order always give the same bytes."""
        ...


@dataclass(frozen=True, eq=False)
class Knowledge:
    """What an attacker brings: faces to ask with, none of an enrolled person, and its own encoder's vectors of them."""

    pictures: tuple[Picture, ...]
    """In the order in which an attack that does not adapt asks them; success at n uses the first n."""
    vectors: NDArray[np.float32]
    """(n, d) unit vectors of ``pictures`` by ``encoder``."""
    encoder: str
    """The attacker's own, by name."""
    seed: int = 0
    generator: Generator | None = None
    """For attacks that draw faces of their own."""
    embed: Callable[[Sequence[Picture]], NDArray[np.float32]] | None = None
    """Unit vectors of such faces by ``encoder``; zeros where it finds no face."""


@dataclass(frozen=True, eq=False)
class Recovered:
    """What an attack made of one person's answers, after each of several numbers of questions."""

    queries: tuple[int, ...]
    templates: NDArray[np.float64]
    """(settings, len(queries), d) in the space of the attacker's encoder; any length. NaN: nothing was recovered."""
    pictures: tuple[tuple[Picture | None, ...], ...] = ()
    """(settings, len(queries)): for an attack that ends in a picture. Judges then look at the picture itself."""


@runtime_checkable
class Attack(Protocol):
    """A way to learn a person's face from scores; which of its settings is used is decided on other people."""

    @property
    def name(self) -> str:
        """As it appears in results and on the command line."""
        ...

    @property
    def adaptive(self) -> bool:
        """Whether later questions depend on earlier answers; if not, it asks the first pictures of its knowledge."""
        ...

    @property
    def settings(self) -> tuple[Setting, ...]:
        """At least one; the first wins ties."""
        ...

    def run(self, oracle: Oracle, knowledge: Knowledge, queries: Sequence[int]) -> Recovered:
        """Attack one person; what is recovered after n questions must not depend on later answers."""
        ...


class TemplateJudge(Protocol):
    """Says how alike a recovered template and a picture of an enrolled person are."""

    @property
    def name(self) -> str:
        """As it appears in results."""
        ...

    @property
    def independent(self) -> bool:
        """Whether it is neither the target's encoder nor the attacker's own."""
        ...

    @property
    def thresholds(self) -> tuple[Threshold, ...]:
        """At each false-accept rate, from people who are neither enrolled nor asked with."""
        ...

    def compare(
        self, templates: NDArray[np.float64], pictures: Sequence[Picture | None], faces: Faces
    ) -> NDArray[np.float32]:
        """(m, n) cosines of template i (m, d), or of picture i where there is one, with each picture of ``faces``.

        NaN where nothing was recovered or there is no face.
        """
        ...

    def compare_pictures(self, faces: Faces) -> NDArray[np.float32]:
        """(n, n) cosines of the pictures of ``faces`` with each other, for the ceiling."""
        ...


class NotSent(Exception):
    """The question did not arrive (no connection, or the target asks to come back later)."""

    def __init__(self, why: str, wait: float | None = None) -> None:
        super().__init__(why)
        self.wait = wait
        """Seconds, where the target said how long."""


class PutOff(NotSent):
    """The question arrived, and the target wants it later: the picture left this machine, and may be sent again."""


class Lost(Exception):
    """The question may have arrived, its answer did not: it is spent and never sent again."""


class Refused(Exception):
    """The target answers no more (a ban, no access, an answer that is no score): the run ends."""
