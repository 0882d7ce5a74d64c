"""What every result file has in common."""

from pydantic import BaseModel, ConfigDict


class Frozen(BaseModel):
    """Any part of a file; what the format does not know is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, allow_inf_nan=False)

    def file_text(self) -> str:
        """As the file holds it."""
        return self.model_dump_json(by_alias=True, indent=2) + "\n"


class Run(Frozen):
    """When and with what; the only part that differs between two runs of the same audit."""

    unface: str
    started: str
    seconds: float
