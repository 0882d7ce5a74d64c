"""A certificate in numbers: every map of a front end, and pictures that are protected, solved for and recognised."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from unface.data import ImageSet
from unface.data.images import decode
from unface.encode import framed
from unface.errors import UnfaceError
from unface.faces import Detector
from unface.judge import EncoderRecogniser, face_frames, threshold_facts
from unface.judge.template import measured, picture_thresholds, tally
from unface.metrics.bootstrap import Scheme as Resampling
from unface.metrics.bootstrap import identity_weights
from unface.models import Input
from unface.progress import Progress
from unface.protect.certificate import WHITE, LinearFrontEnd
from unface.result.certificate import CertificateResult, Identity, MapResult, PicturesResult
from unface.result.file import Clock, Finding, note
from unface.result.numbers import Mean, Share
from unface.result.words import count
from unface.score import Draws
from unface.seeds import stream

FAR = 1e-3
_BATCH, _REPLICATES, _LEVEL = 16, 2000, 0.95
_EXACT = 1e-5  # squared grey levels: 98 dB, and more is rounding
_PLAIN = Input(
    size=0,
    layout="NHWC",
    channels="RGB",
    dtype="uint8",
    mean=(0.0,) * 3,
    std=(1.0,) * 3,
    alignment="none",
    resize="crop",
)


@dataclass(frozen=True, eq=False)
class Portraits:
    """Square pictures of people, as a front end takes them."""

    name: str
    sha256: str
    pixels: NDArray[np.uint8]
    """(n, size, size, 3)"""
    people: NDArray[np.int64]
    without_face: int = 0


def portraits(
    images: ImageSet, size: int, *, recogniser: EncoderRecogniser | None, detector: Detector | None, progress: Progress
) -> Portraits:
    """Pictures cut out as the recogniser takes faces, or their middle where there is none; then ``size`` pixels."""
    names, pixels, people = images.identities, [], []
    wanted = _PLAIN if recogniser is None else recogniser.wanted
    progress.start("pictures", len(images))
    for image in images:
        picture: NDArray[np.uint8] | None = decode(image.read())
        if picture is not None and detector is not None:
            frames = face_frames(picture, detector, [wanted])
            picture = None if frames is None else frames[0]
        if picture is not None:
            pixels.append(framed(picture, replace(_PLAIN, size=size)))
            people.append(names.index(image.identity))
        progress.advance("pictures")
    if not pixels:
        raise UnfaceError(f"{images.source}: no face was found in {count(len(images), 'picture')}")
    kept = np.array(people, np.int64)
    return Portraits(images.source, images.sha256(), np.stack(pixels), kept, len(images) - len(pixels))


def measure_certificate(
    front_end: LinearFrontEnd,
    *,
    name: str,
    variant: str | None = None,
    kind: str = "linear",
    notes: Sequence[Finding] = (),
    given: Portraits | None = None,
    recogniser: EncoderRecogniser | None = None,
    seed: int = 0,
    progress: Progress,
) -> CertificateResult:
    """Everything that certificate.json holds."""
    clock = Clock()
    findings = list(notes)
    missing = [] if given is not None else ["what pictures look like after least squares; give --pictures"]
    solved = None if given is None else _Solved.of(front_end, given, seed, progress)
    progress.start("maps", len(front_end.outputs))
    maps = []
    for number, outputs in enumerate(front_end.outputs):
        spectrum = front_end.spectrum(number)
        maps.append(
            MapResult(
                name="all pictures" if len(front_end.outputs) == 1 else f"subset {number + 1}",
                outputs=outputs,
                rank=spectrum.rank,
                condition=spectrum.condition,
                noise_psnr=None if front_end.deviation is None else spectrum.psnr(front_end.deviation),
                psnr=None if solved is None else solved.psnr_of(number, seed),
            )
        )
        progress.advance("maps")
    shown = None
    if given is not None and solved is not None:
        identity = None
        if recogniser is None:
            missing.append("whether people are still recognised; give --encoder")
        else:
            identity = _identity(given, solved, recogniser, seed)
            if identity is None:
                missing.append(
                    f"whether people are still recognised: one half of {count(len(given.people), 'picture')} has too "
                    f"few pairs of strangers to set a threshold for FAR {FAR:g}, or nobody in the other half has two"
                )
        if given.without_face:
            findings.append(note("pictures", f"{count(given.without_face, 'picture')} without a face left out"))
        shown = PicturesResult(
            name=given.name,
            sha256=given.sha256,
            pictures=len(given.people),
            people=len(np.unique(given.people)),
            psnr=_mean(solved.psnr, given.people, seed),
            guess_psnr=_mean(solved.guess_psnr, given.people, seed),
            identity=identity,
        )
    return CertificateResult(
        front_end=name,
        variant=variant,
        kind="linear" if kind == "linear" else "piecewise linear",
        size=front_end.size,
        inputs=3 * front_end.size**2,
        noise=front_end.deviation,
        maps=maps,
        pictures=shown,
        findings=findings,
        not_measured=missing,
        run=clock.run(),
    )


@dataclass(frozen=True, eq=False)
class _Solved:
    """Reconstructions and guesses of pictures (n, size, size, 3), and their quality in dB."""

    pixels: NDArray[np.uint8]
    guesses: NDArray[np.uint8]
    psnr: NDArray[np.float64]
    guess_psnr: NDArray[np.float64]
    drawn: NDArray[np.int64]
    people: NDArray[np.int64]

    @classmethod
    def of(cls, front_end: LinearFrontEnd, given: Portraits, seed: int, progress: Progress) -> "_Solved":
        """A guess is the mean picture of all other people, or grey where there is nobody else."""
        random = stream(seed, "protect", "noise")
        pixels = given.pixels.astype(np.float64)
        guesses = np.full_like(pixels, 128.0)
        for person in np.unique(given.people):
            others = given.people != person
            if others.any():
                guesses[~others] = pixels[others].mean(axis=0)
        solved, drawn = np.empty_like(pixels), np.empty(len(pixels), np.int64)
        progress.start("least squares", len(pixels))
        for start in range(0, len(pixels), _BATCH):
            rows = slice(start, start + _BATCH)
            solved[rows], drawn[rows] = front_end.reconstruct(pixels[rows], guesses[rows], random)
            progress.advance("least squares", len(pixels[rows]))
        np.clip(solved, 0, WHITE, out=solved)
        return cls(_bytes(solved), _bytes(guesses), _psnr(solved, pixels), _psnr(guesses, pixels), drawn, given.people)

    def psnr_of(self, number: int, seed: int) -> Mean | None:
        """Of the pictures for which this map was drawn."""
        rows = self.drawn == number
        return _mean(self.psnr[rows], self.people[rows], seed) if rows.any() else None


def _identity(given: Portraits, solved: _Solved, recogniser: EncoderRecogniser, seed: int) -> Identity | None:
    """TAR at a threshold of other people's originals; None where there are too few of one or the other.

    Half of the people set the threshold, the others are linked.
    """
    names, codes = np.unique(given.people, return_inverse=True)
    chosen = stream(seed, "protect", "calibrate").permutation(len(names))[: len(names) // 2]
    calibrate = np.isin(codes, chosen)
    wanted = replace(recogniser.wanted, layout="NHWC", channels="RGB", dtype="uint8", mean=(0.0,) * 3, std=(1.0,) * 3)
    originals = recogniser.embed([framed(one, wanted) for one in given.pixels])
    rows = np.flatnonzero(~calibrate)
    people = np.unique(codes[rows], return_inverse=True)[1].astype(np.int64)
    found = picture_thresholds(originals[calibrate], np.unique(codes[calibrate], return_inverse=True)[1], (FAR,))
    if not found or len(np.unique(people)) == len(rows):
        return None
    shares = list[Share]()
    for pixels in (given.pixels, solved.guesses, solved.pixels):
        seen = (
            originals[rows]
            if pixels is given.pixels
            else recogniser.embed([framed(pixels[row], wanted) for row in rows])
        )
        linked = measured([tally(seen, np.arange(len(rows)), originals[rows], people, found)], "other", 0, Draws(seed))
        assert linked is not None, "somebody has two pictures"
        shares.append(linked.share)
    return Identity(
        encoder=recogniser.name,
        far=FAR,
        cosine=found[0].cosine,
        impostors=found[0].impostors,
        calibrate_people=len(chosen),
        resolution=threshold_facts(found[0]).resolution,
        originals=shares[0],
        guesses=shares[1],
        reconstructions=shares[2],
    )


def _mean(values: NDArray[np.float64], people: NDArray[np.int64], seed: int) -> Mean:
    """Over pictures; people are resampled for the interval."""
    names, codes = np.unique(people, return_inverse=True)
    sums, counts = np.bincount(codes, weights=values), np.bincount(codes)
    # Weights that always sum to the people there are, so that few people leave no empty draw.
    weights = identity_weights(Resampling.MULTINOMIAL, len(names), _REPLICATES, seed, "protected")
    drawn = (weights @ sums) / np.maximum(weights @ counts, np.finfo(float).tiny)
    low, high = np.quantile(drawn, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2]) if len(names) > 1 else 2 * [values.mean()]
    value = float(values.mean())
    return Mean(value, min(float(low), value), max(float(high), value), _LEVEL, len(values), len(names))


def _psnr(found: NDArray[np.float64], expected: NDArray[np.float64]) -> NDArray[np.float64]:
    error = ((found - expected) ** 2).reshape(len(found), -1).mean(axis=1)
    ratio: NDArray[np.float64] = 10 * np.log10(WHITE**2 / np.maximum(error, _EXACT))
    return ratio


def _bytes(pixels: NDArray[np.float64]) -> NDArray[np.uint8]:
    return np.rint(pixels).astype(np.uint8)
