"""Judges of what an attack recovered: the attacker's own encoder, and recognisers that had no part in the attack."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from unface.errors import UnfaceError
from unface.judge.template import (
    FARS,
    learn_translation,
    picture_thresholds,
    stranger_thresholds,
    tally,
    unit_rows,
)
from unface.linear import LinearMap
from unface.result.words import percent, rate
from unface.score import Threshold
from unface.validate.ports import Faces, Picture

_TOLD_FAR = 1e-3
Embed = Callable[[Sequence[Picture]], NDArray[np.float32]]


@dataclass(frozen=True, eq=False)
class VectorJudge:
    """A recogniser that sees pictures as its own vectors, and templates through a map into its space."""

    name: str
    independent: bool
    thresholds: tuple[Threshold, ...]
    """Of pictures."""
    template_thresholds: tuple[Threshold, ...]
    translation: LinearMap | None
    """None for the attacker's own encoder, whose space templates are in."""
    asked: Mapping[str, NDArray[np.float32]]
    """Its vectors of the faces that are asked with, by hash: where an attack ends in one of them."""
    notes: tuple[str, ...] = ()
    embed: Embed | None = None
    """For pictures that an attack drew itself."""

    def compare(
        self, templates: NDArray[np.float64], pictures: Sequence[Picture | None], faces: Faces
    ) -> NDArray[np.float32]:
        """(m, n) cosines of template i, or of picture i where there is one, with each picture of ``faces``."""
        inside = unit_rows(templates)
        recovered = inside if self.translation is None else unit_rows(self.translation(inside))
        new = {one.sha256: one for one in pictures if one is not None and one.sha256 not in self.asked}
        if new and self.embed is None:
            raise UnfaceError(f"judge {self.name!r}: sees vectors alone, and an attack ended in a picture of its own")
        drawn = dict(zip(new, self.embed(list(new.values())), strict=True)) if new and self.embed else {}
        for at, picture in enumerate(pictures):
            if picture is not None:
                seen = self.asked[picture.sha256] if picture.sha256 in self.asked else drawn[picture.sha256]
                recovered[at] = unit_rows(seen) if seen.any() else np.nan
        shown = unit_rows(faces.vectors[self.name])
        cosines: NDArray[np.float32] = recovered.astype(np.float32) @ shown.astype(np.float32).T
        return cosines

    def compare_pictures(self, faces: Faces) -> NDArray[np.float32]:
        """(n, n) cosines of the pictures of ``faces`` with each other."""
        vectors = unit_rows(faces.vectors[self.name]).astype(np.float32)
        return vectors @ vectors.T


def make_judges(
    attacker: str,
    target: str | None,
    train: Faces,
    calibrate: Faces,
    asked: Faces,
    far: Sequence[float] = FARS,
    *,
    embed: Mapping[str, Embed] | None = None,
    threads: int | None = None,
) -> tuple[VectorJudge, ...]:
    """The attacker's encoder, then every other recogniser that ``calibrate`` has vectors of; never the target's own.

    Maps into their spaces are learned on ``train`` people, thresholds and the strength of maps on ``calibrate`` people;
    nobody of either is enrolled. ``asked`` are the faces that attacks ask with; by ``embed`` judges see what attacks
    draw themselves. Where the attacker has the target's own encoder and nobody else is there to judge, it judges alone,
    and is not independent.
    """
    if attacker not in calibrate.vectors:
        raise UnfaceError(f"attacker's encoder {attacker!r}: no vectors of the calibrate people; encode them with it")
    others = [name for name in calibrate.vectors if name not in (attacker, target)]
    return tuple(
        replace(_judge(name, attacker, train, calibrate, asked, far, threads=threads), embed=(embed or {}).get(name))
        for name in ([attacker] if attacker != target or not others else []) + others
    )


def _judge(
    name: str,
    attacker: str,
    train: Faces,
    calibrate: Faces,
    asked: Faces,
    far: Sequence[float],
    *,
    threads: int | None,
) -> VectorJudge:
    vectors, inside = calibrate.vectors[name], calibrate.vectors[attacker]
    there = np.asarray(vectors.any(axis=1) & inside.any(axis=1))
    vectors = np.where(there[:, None], vectors, np.float32(0))  # people keep their codes, which all judges share
    thresholds = picture_thresholds(vectors, calibrate.identities, far, threads=threads)
    if not thresholds:
        raise UnfaceError(
            f"judge {name!r}: {int(there.sum()):,} pictures of calibrate people are too few for a FAR of "
            f"{rate(max(far))}; give more people in --queries"
        )
    known = {picture.sha256: row for picture, row in zip(asked.pictures, asked.vectors[name], strict=True)}
    if name == attacker:
        return VectorJudge(name, False, thresholds, thresholds, None, known)
    learned = train.vectors[name].any(axis=1) & train.vectors[attacker].any(axis=1)
    pictures = train.vectors[attacker][learned], train.vectors[name][learned]
    translation = learn_translation(pictures, (inside[there], vectors[there])).map
    notes = [f"sees templates through a linear map from {attacker}, learned on {int(learned.sum()):,} pictures"]
    templates = np.where(there[:, None], translation(inside), 0.0)
    of_templates = stranger_thresholds(templates, vectors, calibrate.identities, far)
    told = next((threshold for threshold in of_templates if threshold.far == _TOLD_FAR), of_templates[-1])
    codes = np.unique(calibrate.identities[there], return_inverse=True)[1]
    perfect = tally(templates[there], np.arange(len(codes)), vectors[there], codes, [told])
    others = len(perfect.other.scores)
    if others:
        passed = perfect.other.accepts(told.cosine).sum() / others
        matches = f"{percent(float(passed))} of other pictures at FAR {rate(told.far)}"
        notes.append(f"through it a perfect template matches {matches}, on calibrate people")
    return VectorJudge(name, True, thresholds, of_templates, translation, known, tuple(notes))
