"""Face-context attribution as a file: a part of audit.json, or for several encoders attribution.json of its own.

``unface.attribute`` builds these models itself, so that a number has one type from its computation to the page.
"""

from os import PathLike
from pathlib import Path
from typing import Literal

from pydantic import Field

from unface.output.taken import require_no_result
from unface.output.write import write_files
from unface.result.file import Frozen, Listing, Run
from unface.result.numbers import Mean, Share

ATTRIBUTION_SCHEMA: Literal["unface.attribution/1"] = "unface.attribution/1"
ATTRIBUTION_FILE = "attribution.json"
ATTRIBUTION_PAGE = "attribution.html"
LEFT_OUT_FILE = "left-out.csv"

Axes = Literal["semi", "full"]
"""How 1.2 × inter-ocular and 1.3 × eye-to-mouth are read: as half or as whole axes of the face's ellipse."""

Step = Literal["picture", "pairing", "ring", "swap"]
"""Where a picture was left out."""


class FaceImportance(Frozen):
    """FII: what blurring the face takes from the similarity of one person's pictures, less what a ring takes."""

    index: Mean
    face_drop: Mean
    background_drop: Mean = Field(description="with a ring of the face's area around it blurred as strongly")
    similarity: Mean = Field(description="before anything is blurred")


class BlurLevel(Frozen):
    """All faces blurred at one σ."""

    sigma: float
    preferred: Share = Field(description="another face in the query's place preferred to its own face elsewhere")


class Crossover(Frozen):
    """σ*: where CPI is one half, on a straight line between levels; null where it never is."""

    value: float | None
    low: float | None = Field(description="of the bootstrap draws that cross at all")
    high: float | None
    crossing: float = Field(description="share of the draws that do")


class ContextPreference(Frozen):
    """CPI: how often place is preferred to person, as faces are blurred."""

    at: list[BlurLevel]
    change: Mean = Field(description="at the strongest blur less without")
    crossover: Crossover
    donor_nearer: Share = Field(description="swapped pictures nearer to the donor's than to the host's")


class RevealLevel(Frozen):
    """The query shows its face and one share of its background."""

    share: float
    preferred: Share
    to_context: Mean
    to_identity: Mean


class BackgroundThreshold(Frozen):
    """B*: how much background has to be seen before place is preferred to person."""

    median: Mean = Field(description="of the smallest share on the grid")
    crossing: Mean = Field(description="median of where both similarities cross between grid points")
    at_zero: Share = Field(description="place preferred with nothing of it in sight")
    at_one: Share = Field(description="person preferred with all of the place in sight")
    at: list[RevealLevel]
    rising: Share = Field(description="triplets whose similarity to the place never falls as more is revealed")
    flat: Share = Field(description="triplets whose similarity to the person stays about as it is")


class AttributedSpace(Frozen):
    """One space; null is not measured: pairs or triplets of two identities are needed."""

    name: str
    projection_sha256: str | None = Field(description="null for the raw space")
    rank: int | None = Field(description="dimensions removed")
    fii: FaceImportance | None
    cpi: ContextPreference | None
    b_star: BackgroundThreshold | None


class Spread(Frozen):
    """Of a number over what it was measured on; all 0 of nothing."""

    mean: float
    std: float
    largest: float
    of: int


class LeftOutCount(Frozen):
    """How many pictures, pairs, rings or swaps could not be used, and why."""

    step: Step
    reason: str
    count: int


class AttributionQuality(Frozen):
    """What the numbers rest on: the checks of the ISP paper, App. D.6."""

    pictures: int
    usable: int
    identities: int = Field(description="with a usable picture")
    padding: Spread
    fcr: Spread = Field(description="share of the canvas that the face's ellipse covers")
    fcr_difference: Spread = Field(description="of the two pictures of a pair, as a share of the query's")
    area_difference: Spread = Field(description="of ring and face, as a share of the face")
    pairs: int = Field(description="one person in two places")
    swaps_tried: int
    swaps: int
    left_out: list[LeftOutCount]


class EncoderAttribution(Frozen):
    """One encoder: its raw space first, then each projection, all from the same encodings."""

    encoder: str
    weights_sha256: str | None
    licence: str
    detector: str
    swap: str = Field(description="how faces were put into other pictures")
    canvas: int = Field(description="side in pixels")
    axes: Axes = Field(description="how the axes of the face's ellipse were read")
    seed: int
    replicates: int
    quality: AttributionQuality
    spaces: list[AttributedSpace] = Field(min_length=1)


class Pictures(Frozen):
    """What was measured on. No path and no identity name."""

    name: str
    sha256: str = Field(description="of which pictures there are and whose, not of their bytes")
    pictures: int
    identities: int
    notes: list[str]


class AttributionResult(Frozen):
    """attribution.json: several encoders on the same pictures."""

    schema_: Literal["unface.attribution/1"] = Field(default=ATTRIBUTION_SCHEMA, alias="schema")
    source: Pictures
    encoders: list[EncoderAttribution] = Field(min_length=1)
    run: Run
    left_out: Listing | None = Field(default=None, exclude=True, repr=False)
    """Pictures that could not be used: kept beside attribution.json, never in it."""

    def save(self, folder: str | PathLike[str], page: str | None = None) -> Path:
        """Write attribution.json, and before it its page and left-out.csv where there is anything to name."""
        left_out = None if self.left_out is None else self.left_out.csv()
        texts = {} if page is None else {ATTRIBUTION_PAGE: page}
        write_files(Path(folder), {**texts, ATTRIBUTION_FILE: self.file_text()}, {LEFT_OUT_FILE: left_out})
        return Path(folder) / ATTRIBUTION_FILE


def require_no_attribution(folder: Path, *, force: bool) -> None:
    """Refuse a folder that holds a finished attribution, before any work is done for it."""
    require_no_result(folder, ATTRIBUTION_FILE, ATTRIBUTION_PAGE, LEFT_OUT_FILE, force=force)
