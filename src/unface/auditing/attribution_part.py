"""What attribution found, put into the format of audit.json and attribution.json."""

from collections.abc import Mapping

from unface import attribute
from unface.auditing.schema.attribution import (
    AttributedSpace,
    AttributionQuality,
    Averaged,
    BackgroundThreshold,
    BlurLevel,
    ContextPreference,
    Crossover,
    EncoderAttribution,
    FaceImportance,
    LeftOutCount,
    RevealLevel,
    Share,
    Spread,
)
from unface.data import Space
from unface.erase import Projection


def attribution_part(
    found: attribute.Attribution,
    space: Space,
    projections: Mapping[str, Projection],
    *,
    licence: str,
    detector: str,
    swap: str,
) -> EncoderAttribution:
    """One encoder; pictures that were left out become counts by reason."""
    return EncoderAttribution(
        encoder=found.encoder,
        weights_sha256=space.weights_sha256,
        licence=licence,
        detector=detector,
        swap=swap,
        canvas=found.size,
        axes="semi" if found.axes == "semi" else "full",
        seed=found.seed,
        replicates=found.replicates,
        quality=_quality(found.quality),
        spaces=[_space(space, projections.get(space.name)) for space in found.spaces],
    )


def _space(space: attribute.SpaceAttribution, projection: Projection | None) -> AttributedSpace:
    return AttributedSpace(
        name=space.name,
        projection_sha256=None if projection is None else projection.sha256,
        rank=None if projection is None else projection.rank,
        fii=None if space.fii is None else _fii(space.fii),
        cpi=None if space.cpi is None else _cpi(space.cpi),
        b_star=None if space.b_star is None else _b_star(space.b_star),
    )


def _fii(fii: attribute.Fii) -> FaceImportance:
    return FaceImportance(
        index=_averaged(fii.index),
        face_drop=_averaged(fii.face_drop),
        background_drop=_averaged(fii.background_drop),
        similarity=_averaged(fii.similarity),
    )


def _cpi(cpi: attribute.Cpi) -> ContextPreference:
    crossover, interval = cpi.crossover, cpi.crossover.interval
    return ContextPreference(
        at=[BlurLevel(sigma=level.sigma, preferred=_share(level.preferred)) for level in cpi.at],
        change=_averaged(cpi.change),
        crossover=Crossover(
            value=crossover.value,
            low=None if interval is None else interval.low,
            high=None if interval is None else interval.high,
            crossing=crossover.crossing,
        ),
        donor_nearer=_share(cpi.donor_nearer),
    )


def _b_star(b_star: attribute.BStar) -> BackgroundThreshold:
    return BackgroundThreshold(
        median=_averaged(b_star.median),
        crossing=_averaged(b_star.crossing),
        at_zero=_share(b_star.at_zero),
        at_one=_share(b_star.at_one),
        at=[
            RevealLevel(
                share=level.share,
                preferred=_share(level.preferred),
                to_context=_averaged(level.to_context),
                to_identity=_averaged(level.to_identity),
            )
            for level in b_star.at
        ],
        rising=_share(b_star.rising),
        flat=_share(b_star.flat),
    )


def _quality(quality: attribute.Quality) -> AttributionQuality:
    spreads = {name: getattr(quality, name) for name in ("padding", "fcr", "fcr_difference", "area_difference")}
    return AttributionQuality(
        pictures=quality.pictures,
        usable=quality.usable,
        identities=quality.identities,
        **{name: Spread(mean=one.mean, std=one.std, largest=one.largest, of=one.of) for name, one in spreads.items()},
        pairs=quality.pairs,
        swaps_tried=quality.swaps_tried,
        swaps=quality.swaps,
        left_out=[
            LeftOutCount(step=step.value, reason=reason, count=count)
            for step, reasons in quality.counts().items()
            for reason, count in reasons.items()
        ],
    )


def _averaged(found: attribute.Estimate) -> Averaged:
    low, high, level = found.interval.low, found.interval.high, found.interval.level
    return Averaged(value=found.value, low=low, high=high, level=level, of=found.of, identities=found.identities)


def _share(found: attribute.Share) -> Share:
    return Share(
        value=found.value,
        numerator=found.count,
        denominator=found.of,
        low=found.interval.low,
        high=found.interval.high,
        level=found.interval.level,
        identities=found.identities,
    )
