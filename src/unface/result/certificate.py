"""certificate.json: what a front end lets through, and the one sentence that it comes to."""

from typing import Literal

from pydantic import Field

from unface.result.file import FalseAcceptRate, Finding, Frozen, Run
from unface.result.numbers import Estimate, Mean, Share
from unface.result.readings import Reading, ToldFile
from unface.result.words import count, one_in, percent, rate, rough

LOST, CLEAR = 0.01, 30.0
"""A front end that loses at most this share of a picture and leaves at least so many dB hides almost nothing."""


class MapResult(Frozen):
    """One linear map; a front end may draw one of several for each picture."""

    name: str
    outputs: int = Field(description="numbers that are sent")
    rank: int = Field(description="dimensions of a picture that can be solved for")
    condition: float | None = Field(description="largest over smallest singular value that is not null")
    noise_psnr: float | None = Field(
        description="dB of least squares on what is visible under the front end's own noise; null where it adds none"
    )
    psnr: Mean | None = Field(description="dB on the pictures that were protected by this map; null without pictures")


class Identity(Frozen):
    """Whether a recogniser still links people: TAR of a reconstruction, or an original, with other originals."""

    encoder: str
    far: FalseAcceptRate
    cosine: float = Field(description="threshold, set on impostor pairs of originals of people who are not linked here")
    impostors: int
    calibrate_people: int = Field(description="people that set the threshold")
    resolution: Literal["resolved", "coarse"]
    originals: Share
    guesses: Share = Field(description="with the guess in the picture's place: what is linked without seeing anything")
    reconstructions: Share


class PicturesResult(Frozen):
    """Pictures that were protected and solved for. No path and no name of a person."""

    name: str
    sha256: str
    pictures: int
    people: int
    psnr: Mean = Field(description="dB of reconstructions")
    guess_psnr: Mean = Field(description="dB of the guess: the mean picture of all other people")
    identity: Identity | None = Field(description="null without an encoder")


class CertificateResult(ToldFile):
    """certificate.json."""

    schema_: Literal["unface.certificate/1"] = Field(default="unface.certificate/1", alias="schema")
    front_end: str
    variant: str | None = Field(description="published or as-attacked; null for a function")
    kind: Literal["linear", "piecewise linear"] = Field(description="piecewise: around one picture only")
    size: int
    inputs: int = Field(description="numbers of a picture")
    noise: float | None = Field(description="standard deviation of noise on what is sent; null where there is none")
    maps: list[MapResult] = Field(min_length=1)
    pictures: PicturesResult | None
    findings: list[Finding]
    not_measured: list[str] = []
    run: Run

    @property
    def lost(self) -> tuple[int, int]:
        """Least and most dimensions that a map loses."""
        lost = [self.inputs - one.rank for one in self.maps]
        return min(lost), max(lost)

    @property
    def noise_psnr(self) -> float | None:
        """The clearest map's; null where there is no noise."""
        found = [one.noise_psnr for one in self.maps if one.noise_psnr is not None]
        return max(found) if found else None

    @property
    def decision(self) -> Literal["hides almost nothing", "hides part of a picture"]:
        """By algebra alone."""
        clear = self.noise_psnr is None or self.noise_psnr >= CLEAR
        return "hides almost nothing" if clear and self.lost[1] <= LOST * self.inputs else "hides part of a picture"

    @property
    def verdict(self) -> str:
        """The decision in plain words."""
        least, most = self.lost
        lost = f"{most:,}" if least == most else f"{least:,} to {most:,}"
        share = f"all but {lost} of the" if most else "all"
        noise = "it adds no noise" if self.noise_psnr is None else f"its noise leaves them at {self.noise_psnr:.0f} dB"
        said = (
            f"This front end {self.decision}: {share} {count(self.inputs, 'dimension')} of a picture can "
            f"be computed back, and {noise}."
        )
        if self.pictures is None or self.pictures.identity is None:
            return said
        found = self.pictures.identity
        originals, computed = found.originals.value, found.reconstructions
        alike = "about as many, " if computed.low <= originals <= computed.high else ""
        return (
            f"{said} A recogniser links {percent(found.reconstructions.value)} of the photos computed back to other "
            f"photos of the same person, at {one_in(found.far)}. Of the originals it links {alike}{percent(originals)}."
            f"{rough(found.resolution)}"
        )

    @property
    def valid(self) -> bool:
        """Whether its numbers can be used."""
        return all(finding.severity != "invalid" for finding in self.findings)

    @property
    def subject(self) -> str:
        """The front end, by name."""
        return self.front_end if self.variant is None else f"{self.front_end} ({self.variant})"

    def readings(self) -> list[Reading]:
        """What ``unface diff`` compares certificates by: how often reconstructions are recognised, and their PSNR."""
        found = self.pictures
        identity = None if found is None else found.identity
        recognised = None if identity is None else identity.reconstructions
        at = "" if identity is None else f"{identity.encoder}, FAR {rate(identity.far)}"
        quality = (
            None if found is None else Estimate(found.psnr.value, found.psnr.low, found.psnr.high, found.psnr.level)
        )
        return [
            Reading("recognised", "", at or "no recogniser", recognised, headline=True),
            Reading("PSNR of least squares", "", f"{self.size} × {self.size}", quality, is_share=False),
        ]

    def conditions(self) -> dict[str, str]:
        """Settings that have to agree for numbers to be comparable."""
        return {"size": str(self.size), "pictures": "none" if self.pictures is None else self.pictures.sha256[:12]}
