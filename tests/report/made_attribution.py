"""Attribution with made-up numbers that agree with each other: a face that counts, and an eraser that takes it away."""

from unface.result.attribution import (
    AttributedSpace,
    AttributionQuality,
    AttributionResult,
    BackgroundThreshold,
    BlurLevel,
    ContextPreference,
    Crossover,
    EncoderAttribution,
    FaceImportance,
    LeftOutCount,
    Pictures,
    RevealLevel,
    Spread,
)
from unface.result.file import Listing, Run
from unface.result.numbers import Mean, Share

PAIRS, TRIPLETS, PEOPLE = 90, 80, 30
SIGMAS, REVEALED = (0, 1, 2, 4, 6, 8), (0, 0.25, 0.5, 0.75, 1)


def result(*names: str) -> AttributionResult:
    return AttributionResult(
        source=Pictures(name="faces.zip", sha256="d" * 64, pictures=120, identities=40, notes=[]),
        encoders=[encoder(name) for name in names or ("made",)],
        run=Run(unface="0.2.0", started="2026-01-02T03:04:05+00:00", seconds=61.5),
        left_out=Listing(
            ("encoder", "picture", "step", "reason"), [("made", "ann/7.jpg", "picture", "no face")], "left out"
        ),
    )


def encoder(name: str = "made", *, swapped: bool = True) -> EncoderAttribution:
    spread = Spread(mean=0.01, std=0.005, largest=0.02, of=100)
    return EncoderAttribution(
        encoder=name,
        weights_sha256="b" * 64,
        licence="MIT",
        detector="yunet",
        swap="landmarks",
        canvas=224,
        axes="semi",
        seed=0,
        replicates=2000,
        quality=AttributionQuality(
            pictures=120,
            usable=100,
            identities=34,
            padding=spread,
            fcr=Spread(mean=0.26, std=0.03, largest=0.4, of=100),
            fcr_difference=spread,
            area_difference=spread,
            pairs=PAIRS,
            swaps_tried=86,
            swaps=TRIPLETS,
            left_out=[
                LeftOutCount(step="picture", reason="no face", count=12),
                LeftOutCount(step="picture", reason="face at the border", count=8),
                LeftOutCount(step="swap", reason="the donor looks away", count=6),
            ],
        ),
        spaces=[_space("raw", 0.4, 0.1, 8, swapped), _space("isp", 0.1, 0.05, 60, swapped)],
    )


def _space(name: str, face: float, ring: float, first: int, swapped: bool) -> AttributedSpace:
    shares = [min(first + 4 * n, TRIPLETS) for n in range(6)]
    cpi = ContextPreference(
        at=[BlurLevel(sigma=s, preferred=share(n)) for s, n in zip(SIGMAS, shares, strict=True)],
        change=averaged(0.25, TRIPLETS),
        crossover=Crossover(value=None, low=None, high=None, crossing=0.0),
        donor_nearer=share(76),
    )
    b_star = BackgroundThreshold(
        median=averaged(0.75, TRIPLETS),
        crossing=averaged(0.62, TRIPLETS),
        at_zero=share(0),
        at_one=share(20),
        at=[
            RevealLevel(
                share=b, preferred=share(20 * n), to_context=averaged(b, TRIPLETS), to_identity=averaged(0.6, TRIPLETS)
            )
            for n, b in enumerate(REVEALED)
        ],
        rising=share(72),
        flat=share(64),
    )
    return AttributedSpace(
        name=name,
        projection_sha256=None if name == "raw" else "c" * 64,
        rank=None if name == "raw" else 16,
        fii=FaceImportance(
            index=averaged(face - ring, PAIRS),
            face_drop=averaged(face, PAIRS),
            background_drop=averaged(ring, PAIRS),
            similarity=averaged(0.7, PAIRS),
        ),
        cpi=cpi if swapped else None,
        b_star=b_star if swapped else None,
    )


def averaged(value: float, of: int) -> Mean:
    return Mean(value=value, low=value - 0.02, high=value + 0.02, level=0.95, of=of, identities=PEOPLE)


def share(count: int) -> Share:
    value = count / TRIPLETS
    low, high = max(value - 0.05, 0.0), min(value + 0.05, 1.0)
    return Share(value=value, numerator=count, denominator=TRIPLETS, low=low, high=high, level=0.95, identities=PEOPLE)
