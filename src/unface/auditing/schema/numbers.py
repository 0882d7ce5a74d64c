"""Numbers in audit.json: none without what it was counted on or how sure it is."""

import math
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator


class Frozen(BaseModel):
    """Any part of a file; what the format does not know is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, allow_inf_nan=False)

    def file_text(self) -> str:
        """As the file holds it."""
        return self.model_dump_json(by_alias=True, indent=2) + "\n"


class Rate(Frozen):
    """A share as counts; pairs are counted once for each seed that compares them."""

    value: float
    numerator: int
    denominator: int

    @model_validator(mode="after")
    def _is_the_share_of_its_counts(self) -> Self:
        share = f"{self.numerator:,} of {self.denominator:,}"
        if not 0 <= self.numerator <= self.denominator or self.denominator == 0:
            raise ValueError(f"{share} is no share")
        if not math.isclose(self.value, self.numerator / self.denominator, rel_tol=1e-9):
            raise ValueError(f"{self.value:g} is not {share}")
        return self


class Counted(Rate):
    """A rate with its interval."""

    low: float
    high: float
    level: float


class Estimate(Counted):
    """A rate with its interval and what it is worth."""

    method: str
    identities: int = Field(description="test identities behind the pairs")
    effective_n: float = Field(description="independent trials that would spread as much")


class Bounds(Frozen):
    """A value and its interval."""

    value: float
    low: float
    high: float
