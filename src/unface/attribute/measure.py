"""attribute: located pictures and an encoder in, the three measures out, raw and after each projection."""

from collections.abc import Iterable, Mapping
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from unface.attribute.b_star import background_threshold
from unface.attribute.canvas import Canvas, canvas_of
from unface.attribute.cpi import context_preference
from unface.attribute.draws import REPLICATES, Draws
from unface.attribute.encoding import Encodings, encode_perturbed
from unface.attribute.fii import face_importance
from unface.attribute.mask import Axes, coverage, nearer_axes
from unface.attribute.pairing import Pairing, paired
from unface.attribute.ports import FaceSwap, LocatedPicture, Reader
from unface.attribute.result import Attribution, LeftOut, Quality, SpaceAttribution, Spread, Step
from unface.attribute.triplets import triplets_of
from unface.erase import Projection
from unface.errors import UnfaceError
from unface.progress import Progress
from unface.threads import available_cores

RAW = "raw"


def attribute(
    pictures: Iterable[LocatedPicture],
    reader: Reader,
    swap: FaceSwap,
    *,
    projections: Mapping[str, Projection] | None = None,
    axes: Axes | None = None,
    seed: int = 0,
    level: float = 0.95,
    batch: int = 32,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Attribution:
    """Where an encoder's similarity lives: in the face or around it.

    ``axes`` None takes the reading of the ellipse that comes nearer to the target FCR. Canvases are held in memory,
    150 kB each at 224 pixels. Pictures, pairs and swaps that could not be used are named in ``quality.left_out``.
    """
    if batch < 1:
        raise UnfaceError(f"attribute: a batch of {batch}; expected at least 1")
    projections = projections or {}
    for name, projection in projections.items():
        if projection.space.encoder not in (None, reader.name):
            raise UnfaceError(f"{name}: fitted in {projection.space}, not for {reader.name}; fit one for it")
    canvases, rejected, given = _canvases(pictures, reader.size)
    if not canvases:
        raise UnfaceError(f"attribute: none of {given} pictures can be used{_why(rejected)}")
    axes = axes or nearer_axes(canvases)
    fcr = np.array([coverage(canvas, axes) for canvas in canvases])
    pairing = paired(canvases, fcr, seed)
    people = np.unique([canvas.identity for canvas in canvases], return_inverse=True)[1]
    if len(np.unique(people[pairing.queries])) < 2:
        why = _why((*rejected, *pairing.left_out))
        raise UnfaceError(f"attribute: fewer than two identities have a pair{why}; give several pictures of each")
    encodings = encode_perturbed(
        canvases, pairing, reader, swap, axes, batch=batch, threads=threads or available_cores(), progress=progress
    )
    spaces = [_measured(RAW, encodings, pairing, people, seed, level)]
    for name, projection in projections.items():
        erased = encodings.replaced(projection.apply(encodings.vectors))
        spaces.append(_measured(name, erased, pairing, people, seed, level))
    quality = _quality(given, canvases, rejected, fcr, pairing, encodings)
    return Attribution(reader.name, reader.size, axes.value, quality, tuple(spaces), seed, level, REPLICATES)


def _canvases(pictures: Iterable[LocatedPicture], size: int) -> tuple[list[Canvas], list[LeftOut], int]:
    """By id, so that no result depends on the order in which pictures come."""
    found: list[Canvas] = []
    rejected: list[LeftOut] = []
    seen: set[str] = set()
    for picture in pictures:
        if picture.id in seen:
            raise UnfaceError(f"attribute: picture {picture.id!r} occurs more than once; make ids unique")
        seen.add(picture.id)
        made = canvas_of(picture, size)
        if isinstance(made, str):
            rejected.append(LeftOut(picture.id, Step.PICTURE, made))
        else:
            found.append(made)
    return sorted(found, key=lambda canvas: canvas.id), sorted(rejected, key=lambda one: one.id), len(seen)


def _measured(
    name: str, encodings: Encodings, pairing: Pairing, people: NDArray[np.int64], seed: int, level: float
) -> SpaceAttribution:
    fii = face_importance(encodings, pairing, people, seed, level)
    triplets = triplets_of(pairing, encodings)
    if len(np.unique(people[triplets.query])) < 2:
        return SpaceAttribution(name, fii, None, None)
    draws = Draws.of(people[triplets.query], seed, level)
    return SpaceAttribution(
        name,
        fii,
        context_preference(encodings, triplets, draws),
        background_threshold(encodings, triplets, draws),
    )


def _quality(
    given: int,
    canvases: list[Canvas],
    rejected: list[LeftOut],
    fcr: NDArray[np.float64],
    pairing: Pairing,
    encodings: Encodings,
) -> Quality:
    return Quality(
        pictures=given,
        usable=len(canvases),
        identities=len({canvas.identity for canvas in canvases}),
        padding=_spread(np.array([canvas.padding for canvas in canvases])),
        fcr=_spread(fcr),
        fcr_difference=_spread(pairing.fcr_difference),
        area_difference=_spread(encodings.area_difference),
        pairs=len(pairing.queries),
        swaps_tried=int(np.count_nonzero(pairing.donors >= 0)),
        swaps=int(np.count_nonzero(encodings.swapped[0] >= 0)),
        left_out=tuple(chain(rejected, pairing.left_out, encodings.left_out)),
    )


def _spread(values: NDArray[np.float64]) -> Spread:
    if not values.size:
        return Spread(0.0, 0.0, 0.0, 0)
    return Spread(float(values.mean()), float(values.std()), float(values.max()), values.size)


def _why(left_out: Iterable[LeftOut]) -> str:
    reasons = [one.reason for one in left_out]
    counted = ", ".join(f"{reasons.count(reason)} {reason}" for reason in sorted(set(reasons)))
    return f" ({counted})" if counted else ""
