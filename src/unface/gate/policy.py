"""A policy: what an audit must show before its embeddings may be released, one rule for each ``[[require]]``."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

# A limit of 1 would let everything pass, and is more likely meant as one percent.
Share = Annotated[float, Field(gt=0, lt=1)]
Count = Annotated[int, Field(ge=1)]
Name = Annotated[str, Field(min_length=1)]

_SPACE = "the name of a space of the audit, such as 'raw' or 'isp'"
_FAR = "a false-accept rate above 0 and below 1, such as 1e-4"
_K = "a whole number of support images, from 1"
_COARSE = "'allow', or left out"


class _Part(BaseModel):
    """A table of the file; a field's description says what is expected there, and is shown when something else is."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class LeakageRule(_Part):
    """The upper end of TAR, or of its multiple of chance, is at most a limit."""

    far: Share = Field(description=_FAR)
    tar_max: Share | None = Field(default=None, description="a share above 0 and below 1, such as 0.01 for 1 %")
    times_chance_max: float | None = Field(default=None, gt=0, description="a number above 0, such as 10")
    space: Name | None = Field(default=None, description=_SPACE)
    probe: Name = Field(default="worst", description="the name of a probe, or 'worst'")
    k: Count | None = Field(default=None, description=_K)
    coarse: Literal["allow"] | None = Field(default=None, description=_COARSE)
    context_adjusted: bool = Field(default=False, description="true or false")


class UtilityRule(_Part):
    """The lower end of what is kept of a measure of usefulness is at least a limit."""

    utility: Name = Field(description="the name of a measure, such as 'knn'")
    retained_min: Annotated[float, Field(gt=0, le=1)] = Field(description="a share above 0, such as 0.9 for 90 %")
    on: Name | None = Field(default=None, description="the name of the set it was measured on")
    space: Name | None = Field(default=None, description=_SPACE)


class ImprovementRule(_Part):
    """Worst-case TAR is lower than in another space, by an interval over the same pairs that stays below 0."""

    beats: Name = Field(description="the name of the other space, such as 'random', 'pca' or 'raw'")
    far: Share = Field(description=_FAR)
    space: Name | None = Field(default=None, description=_SPACE)
    k: Count | None = Field(default=None, description=_K)
    coarse: Literal["allow"] | None = Field(default=None, description=_COARSE)


Rule = LeakageRule | UtilityRule | ImprovementRule


class Gate(_Part):
    """What holds for the audit as a whole."""

    findings: Literal["allow", "no-warnings"] = Field(default="allow", description="'allow' or 'no-warnings'")


class Policy(_Part):
    """All rules must pass."""

    gate: Gate
    require: tuple[Rule, ...]
