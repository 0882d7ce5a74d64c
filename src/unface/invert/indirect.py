"""Attacks by way of a recogniser of the attacker's own: its template is found first, and may then be decoded to a face.

``translate`` learns a linear map from stored vectors to the recogniser's on train people. ``bob`` (Kim et al. 2024, as
paper 001 uses it, App. C.3) solves for the template from scores of a few probe faces.
"""

from collections.abc import Callable, Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.linalg import qr

from unface.errors import UnfaceError
from unface.invert.alsuv import Alsuv, style_prior
from unface.invert.ports import Invert, Ledger, Need, Reconstructions, Targets, Threat, Train
from unface.invert.view import View
from unface.judge.template import learn_translation, stranger_thresholds, unit_rows
from unface.linear import LinearMap
from unface.score import Threshold

_PROBES = 99
_POOL = 2000
_ROUNDING = 1e-5  # of float32 vectors, relative to the largest singular value
FEWEST = 20  # train people
Solve = Callable[[Targets], NDArray[np.float64]]
"""Targets → (n, d') templates."""


class Translate:
    """z → template by ridge regression; ``translate:decode`` turns the template into a face with ``alsuv``."""

    def __init__(self, form: str = "template") -> None:
        self.form = _known_form("translate", form)
        self.name = "translate" if form == "template" else f"translate:{form}"
        decoding = {Need.PRIOR, Need.OWN} if form == "decode" else set()
        self.needs = frozenset({Need.TRAIN, *decoding})
        self.batch = Alsuv().batch if form == "decode" else 1 << 30

    @property
    def settings(self) -> Mapping[str, float | str]:
        """How the template is decoded, if it is."""
        return {} if self.form == "template" else {f"alsuv {name}": value for name, value in Alsuv().settings.items()}

    def refuse_prior(self, prior: object) -> None:
        """Unless it has W+, which templates are decoded in."""
        if self.form == "decode":
            style_prior(prior, self.name)

    def prepare(self, threat: Threat, ledger: Ledger) -> Invert:
        """Learn the map: strength and thresholds come from train people that it was not learned on."""
        train = threat.train
        if train is None or not train.features:
            raise UnfaceError(
                f"attack {self.name!r} needs a recogniser's vectors of train people; encode them with one"
            )
        second = threat.second
        own = second.name if second is not None and second.name in train.features else next(iter(train.features))
        translation, thresholds = learned(train, own)
        if self.form == "decode":
            return _decoding(threat, lambda targets: translation(targets.vectors), ledger)

        def invert(targets: Targets, ledger: Ledger) -> Reconstructions:
            templates = unit_rows(translation(targets.vectors)).astype(np.float32)
            nothing = np.full(len(templates), np.nan, np.float32)
            return Reconstructions(nothing, templates=templates, recogniser=own, thresholds=thresholds)

        return invert


def learned(train: Train, recogniser: str) -> tuple[LinearMap, tuple[Threshold, ...]]:
    """The map into a recogniser's space, and what keeps strangers' templates out; half, a quarter, a quarter of people.

    A template that is drawn to the mean face resembles everybody, so its thresholds are those of templates.
    """
    there = train.features[recogniser].any(axis=1)
    people = np.unique(train.people[there])
    if len(people) < FEWEST:
        raise UnfaceError(
            f"translate: {len(people)} people with a face to learn from; at least {FEWEST} are needed; give more people"
        )
    quarter = np.searchsorted(people, train.people) * 4 // len(people)
    vectors, wanted = train.vectors, train.features[recogniser]
    learn, choose, hold = (there & np.isin(quarter, part) for part in ((0, 1), (2,), (3,)))
    translation = learn_translation((vectors[learn], wanted[learn]), (vectors[choose], wanted[choose])).map
    codes = np.unique(train.people[hold], return_inverse=True)[1].astype(np.int64)
    return translation, stranger_thresholds(translation(vectors[hold]), wanted[hold], codes, role="train")


class Bob:
    """ẑ = A⁺s from the scores s of near-orthogonal probe faces, decoded with ``alsuv``; ``bob:template`` stops before.

    A holds the attacker's own recogniser's vectors of the probes; without one of its own, those of the attacked space.
    """

    def __init__(self, form: str = "decode", *, probes: int = _PROBES) -> None:
        self.form, self.probes = _known_form("bob", form), probes
        self.name = "bob" if form == "decode" else f"bob:{form}"
        self.needs = frozenset({Need.SCORES, Need.PRIOR})
        self.batch = Alsuv().batch

    @property
    def settings(self) -> Mapping[str, float | str]:
        """The number of probes."""
        return {"probes": self.probes, "pool": _POOL}

    def refuse_prior(self, prior: object) -> None:
        """Unless it has W+, which templates are decoded in."""
        if self.form == "decode":
            style_prior(prior, self.name)

    def prepare(self, threat: Threat, ledger: Ledger) -> Invert:
        """Choose the probes and decompose A."""
        view, prior = threat.view, threat.prior
        assert view is not None, "require checks"
        assert prior is not None, "require checks"
        own = threat.second or view
        pool, count = threat.pool(_POOL, ledger), min(self.probes, _POOL)
        mine = pool if own.name == view.name else _own_threat(threat, own).pool(_POOL, ledger)
        seen = own.released(mine.vectors).double().cpu().numpy()
        chosen = near_orthogonal(seen, count)
        asked = view.released(pool.vectors[torch.from_numpy(chosen).to(pool.vectors.device)]).double().cpu().numpy()
        inverse = np.linalg.pinv(seen[chosen], rcond=_ROUNDING)

        def solved(targets: Targets) -> NDArray[np.float64]:
            scores: NDArray[np.float64] = targets.vectors.astype(np.float64) @ asked.T
            return np.asarray(scores @ inverse.T)

        if self.form == "decode":
            return _decoding(threat, solved, ledger, own)

        def invert(targets: Targets, ledger: Ledger) -> Reconstructions:
            templates = unit_rows(solved(targets)).astype(np.float32)
            return Reconstructions(
                np.full(len(templates), np.nan, np.float32), templates=templates, recogniser=own.name
            )

        return invert


def near_orthogonal(vectors: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    """(count,) rows of (n, d) that are as little alike as can be: column-pivoted QR, as long as new directions come."""
    left = vectors.copy()
    chosen: list[int] = []
    while len(chosen) < count:
        pivots = qr(left.T, mode="r", pivoting=True)[1]
        fresh = [int(row) for row in pivots[: min(count - len(chosen), vectors.shape[1])] if int(row) not in chosen]
        if not fresh:
            break
        chosen.extend(fresh)
        left[chosen] = 0
    return np.array(chosen, np.int64)


def _decoding(threat: Threat, solve: Solve, ledger: Ledger, own: View | None = None) -> Invert:
    """Templates → faces: alsuv on the attacker's own recogniser; the cosine reached is that in the attacked space."""
    view = own or threat.second
    assert view is not None, "require checks"
    decode = Alsuv().prepare(_own_threat(threat, view), ledger)

    def invert(targets: Targets, ledger: Ledger) -> Reconstructions:
        templates = unit_rows(solve(targets)).astype(np.float32)
        made = decode(Targets(templates, targets.numbers), ledger)
        return Reconstructions(_reached(threat, made, targets, ledger), made.pictures)

    return invert


def _own_threat(threat: Threat, own: View) -> Threat:
    return Threat(threat.space, own.name, own, threat.prior, seed=threat.seed, pools=threat.pools)


def _reached(threat: Threat, made: Reconstructions, targets: Targets, ledger: Ledger) -> NDArray[np.float32]:
    """Of decoded pictures in the attacked space; in the recogniser's own where the attacked encoder is not at hand."""
    if threat.view is None or made.pictures is None:
        return made.reached
    pixels = torch.from_numpy(made.pictures).to(threat.view.device).permute(0, 3, 1, 2) / 255
    with torch.inference_mode():
        vectors = threat.view(pixels).cpu().numpy()
    ledger.count("encoder", forward=len(pixels))
    cosines: NDArray[np.float32] = (vectors * targets.vectors).sum(axis=1)
    return cosines


def _known_form(attack: str, form: str) -> str:
    if form not in ("template", "decode"):
        raise UnfaceError(f"{attack}: no form {form!r}; choose from template, decode")
    return form
