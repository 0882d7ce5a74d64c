"""attribute: located pictures and an encoder in, the three measures out, raw and after each projection."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from unface.attribute.canvas import Canvas, canvas_of
from unface.attribute.encoding import Encodings, encode_perturbed
from unface.attribute.inputs import FaceSwap, LocatedPicture, Reader
from unface.attribute.measures import (
    REPLICATES,
    Draws,
    Triplets,
    background_threshold,
    context_preference,
    face_importance,
)
from unface.attribute.pairing import LeftOut, Pairing, paired
from unface.attribute.perturb import coverage, nearer_axes
from unface.erase import Projection
from unface.errors import UnfaceError
from unface.progress import Progress
from unface.result.attribution import AttributedSpace, AttributionQuality, Axes, LeftOutCount, Spread, Step
from unface.threads import available_cores

RAW = "raw"


@dataclass(frozen=True)
class Attribution:
    """One encoder: its raw space first, then each projection, all from the same encodings."""

    encoder: str
    size: int
    """Side of the canvas in pixels."""
    axes: Axes
    quality: AttributionQuality
    spaces: list[AttributedSpace]
    left_out: tuple[LeftOut, ...]
    """By name what ``quality`` counts."""
    seed: int
    replicates: int = REPLICATES


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
    150 kB each at 224 pixels. Pictures, pairs and swaps that could not be used are named in ``left_out``.
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
    spaces = [_space(RAW, None, encodings, pairing, people, seed, level)]
    for name, projection in projections.items():
        erased = replace(encodings, vectors=projection.apply(encodings.vectors))
        spaces.append(_space(name, projection, erased, pairing, people, seed, level))
    left_out = (*rejected, *pairing.left_out, *encodings.left_out)
    quality = _quality(given, canvases, fcr, pairing, encodings, left_out)
    return Attribution(reader.name, reader.size, axes, quality, spaces, left_out, seed)


def _canvases(pictures: Iterable[LocatedPicture], size: int) -> tuple[list[Canvas], list[LeftOut], int]:
    """By id, so that no result depends on the order in which pictures come."""
    canvases: list[Canvas] = []
    rejected: list[LeftOut] = []
    seen: set[str] = set()
    for picture in pictures:
        if picture.id in seen:
            raise UnfaceError(f"attribute: picture {picture.id!r} occurs more than once; make ids unique")
        seen.add(picture.id)
        made = canvas_of(picture, size)
        if isinstance(made, str):
            rejected.append(LeftOut(picture.id, "picture", made))
        else:
            canvases.append(made)
    return sorted(canvases, key=lambda canvas: canvas.id), sorted(rejected, key=lambda one: one.id), len(seen)


def _space(
    name: str,
    projection: Projection | None,
    encodings: Encodings,
    pairing: Pairing,
    people: NDArray[np.int64],
    seed: int,
    level: float,
) -> AttributedSpace:
    triplets = Triplets.of(pairing, encodings)
    owners = people[triplets.query]
    draws = Draws.of(owners, seed, level) if len(np.unique(owners)) >= 2 else None
    return AttributedSpace(
        name=name,
        projection_sha256=None if projection is None else projection.sha256,
        rank=None if projection is None else projection.rank,
        fii=face_importance(encodings, pairing, people, seed, level),
        cpi=None if draws is None else context_preference(encodings, triplets, draws),
        b_star=None if draws is None else background_threshold(encodings, triplets, draws),
    )


def _quality(
    given: int,
    canvases: Sequence[Canvas],
    fcr: NDArray[np.float64],
    pairing: Pairing,
    encodings: Encodings,
    left_out: Sequence[LeftOut],
) -> AttributionQuality:
    return AttributionQuality(
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
        left_out=[
            LeftOutCount(step=step, reason=reason, count=count)
            for step in get_args(Step)
            for reason, count in _by_reason(one for one in left_out if one.step == step).items()
        ],
    )


def _spread(values: NDArray[np.float64]) -> Spread:
    if not values.size:
        return Spread(mean=0.0, std=0.0, largest=0.0, of=0)
    return Spread(mean=float(values.mean()), std=float(values.std()), largest=float(values.max()), of=values.size)


def _why(left_out: Iterable[LeftOut]) -> str:
    counted = ", ".join(f"{count} {reason}" for reason, count in _by_reason(left_out).items())
    return f" ({counted})" if counted else ""


def _by_reason(left_out: Iterable[LeftOut]) -> dict[str, int]:
    return dict(sorted(Counter(one.reason for one in left_out).items()))
