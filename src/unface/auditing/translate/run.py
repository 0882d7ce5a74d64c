"""Templates of a recogniser made of audited vectors: a linear map learned on train people, judged on test people."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unface.auditing.attack import resolution_word
from unface.auditing.bench import Bench, describe_given
from unface.auditing.translate import TranslateCeiling, TranslatedAt, TranslatedSpace, TranslateResults
from unface.data import EmbeddingSet, Source, read_embeddings
from unface.errors import UnfaceError
from unface.judge.judge import Threshold
from unface.judge.template import Tally, learn_translation, stranger_thresholds, tally, template_thresholds
from unface.metrics import Replicates, Scheme, identity_weights, paired_interval
from unface.probe import RoleRows
from unface.result.numbers import Estimate, Share

_FARS = (1e-2, 1e-3, 1e-4)
_FEWEST_PICTURES = 10


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pictures that both sets have, by role: rows of the audited vectors, people, and the recogniser's vectors."""

    recogniser: EmbeddingSet
    train: "Half"
    calibrate: "Half"
    test: "Half"
    thresholds: tuple[Threshold, ...]


@dataclass(frozen=True, eq=False)
class Half:
    """The pictures of one role."""

    rows: NDArray[np.int64]
    people: NDArray[np.int64]
    """Codes 0 … k − 1."""
    vectors: NDArray[np.float32]


def match_pictures(bench: Bench, source: Source) -> Pairs:
    """By id; a picture that the recogniser has no vector of (it found no face) is left out on both sides."""
    recogniser = read_embeddings(source).unit()
    audited = bench.prepared.embeddings
    place = {str(name): row for row, name in enumerate(recogniser.ids)}
    partner = np.array([place.get(str(name), -1) for name in audited.ids])
    shared = np.flatnonzero(partner >= 0)
    if not len(shared):
        raise UnfaceError(
            f"{recogniser.source}: no id of it is in {audited.source}; --translate needs vectors of the same pictures"
        )
    named = np.array(recogniser.names)[recogniser.identities[partner[shared]]]
    wrong = np.flatnonzero(named != np.array(audited.names)[audited.identities[shared]])
    if len(wrong):
        row = int(shared[wrong[0]])
        raise UnfaceError(
            f"{recogniser.source}: id {str(audited.ids[row])!r} belongs to {str(named[wrong[0]])!r}, but in "
            f"{audited.source} to {audited.names[audited.identities[row]]!r}; give vectors of the same pictures"
        )
    roles = bench.prepared.roles
    train, calibrate, test = (_half(role, partner, recogniser) for role in (roles.train, roles.calibrate, roles.test))
    for name, half in (("train", train), ("calibrate", calibrate), ("test", test)):
        if len(half.rows) < _FEWEST_PICTURES:
            raise UnfaceError(
                f"{recogniser.source}: {len(half.rows)} pictures of {name} people are in both sets; at least "
                f"{_FEWEST_PICTURES} are needed for --translate"
            )
    thresholds = template_thresholds(calibrate.vectors, calibrate.people, _FARS, threads=bench.attack.plan.threads)
    if not thresholds:
        raise UnfaceError(
            f"{recogniser.source}: {len(calibrate.rows)} pictures of calibrate people do not resolve FAR 0.01; "
            "--translate needs more people"
        )
    return Pairs(recogniser, train, calibrate, test, thresholds)


def _half(role: RoleRows, partner: NDArray[np.int64], recogniser: EmbeddingSet) -> Half:
    there = partner[role.rows] >= 0
    rows = role.rows[there]
    people = np.unique(role.identities[there], return_inverse=True)[1].astype(np.int64)
    return Half(rows, people, recogniser.vectors[partner[rows]])


def translate_spaces(bench: Bench, pairs: Pairs) -> TranslateResults:
    """The raw space, then every eraser's and control's, each with a map and thresholds of its own."""
    vectors, test = bench.prepared.embeddings.vectors, pairs.test
    raw = _translated(vectors, pairs)
    spaces = [TranslatedSpace(space="raw", control=False, strength=raw.strength, at=_points(raw, None))]
    bench.progress.start("translate", len(bench.defences))
    for defence in bench.defences:
        found = _translated(defence.apply(vectors), pairs)
        at = _points(found, raw)
        spaces.append(TranslatedSpace(space=defence.name, control=defence.control, strength=found.strength, at=at))
        bench.progress.advance("translate")
    cosines = [threshold.cosine for threshold in pairs.thresholds]
    real = tally(test.vectors, np.arange(len(test.rows)), test.vectors, test.people, cosines)
    return TranslateResults(
        recogniser=describe_given(pairs.recogniser),
        train_pictures=len(pairs.train.rows),
        spaces=spaces,
        ceiling=[
            TranslateCeiling(far=threshold.far, other=_other(real, at)) for at, threshold in enumerate(pairs.thresholds)
        ],
    )


@dataclass(frozen=True, eq=False)
class Translated:
    """One space."""

    strength: float
    thresholds: tuple[Threshold, ...]
    test: Tally


def _translated(vectors: NDArray[np.float32], pairs: Pairs) -> Translated:
    train, calibrate, test = pairs.train, pairs.calibrate, pairs.test
    learned = learn_translation((vectors[train.rows], train.vectors), (vectors[calibrate.rows], calibrate.vectors))

    # Relative to the mean face, which is nobody: the best that an attacker can do with cosines.
    def compared(half: Half) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return learned.map(vectors[half.rows]) - learned.mean, half.vectors - learned.mean

    fars = [threshold.far for threshold in pairs.thresholds]
    thresholds = stranger_thresholds(*compared(calibrate), calibrate.people, fars)
    cosines = [threshold.cosine for threshold in thresholds]
    templates, pictures = compared(test)
    judged = tally(templates, np.arange(len(test.rows)), pictures, test.people, cosines)
    return Translated(learned.strength, thresholds, judged)


def _points(found: Translated, raw: Translated | None) -> list[TranslatedAt]:
    return [
        TranslatedAt(
            far=threshold.far,
            resolution=resolution_word(threshold.resolution),
            threshold=threshold.cosine,
            same=found.test.share("same", at),
            other=_other(found.test, at),
            chance=found.test.chance(at),
            change=None if raw is None else _change(found.test, raw.test, at),
        )
        for at, threshold in enumerate(found.thresholds)
    ]


def _other(found: Tally, at: int) -> Share | None:
    return found.share("other", at) if found.other_of.sum() else None


def _change(found: Tally, raw: Tally, at: int) -> Estimate | None:
    """The same people are resampled on both sides."""
    if not found.other_of.sum():
        return None
    weights = identity_weights(Scheme.DOUBLE_OR_NOTHING, len(found.other_of), 2000, 0, "templates")
    total = np.maximum(weights @ found.other_of, np.finfo(float).tiny)
    more = found.other[at] - raw.other[at]
    values, changes = weights @ more / total, more / found.other_of.sum()
    ends = paired_interval(changes, Replicates(values, mirrored=True), int(np.count_nonzero(found.other_of)))
    return Estimate.within(found.rate("other", at) - raw.rate("other", at), ends)
