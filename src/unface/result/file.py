"""What every result file has in common: a strict format, what was used, what the reader must know; and reading it."""

import csv
import json
import time
import tomllib
from dataclasses import dataclass
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from unface._version import __version__
from unface.errors import UnfaceError, reason

FalseAcceptRate = Annotated[float, Field(ge=1e-15, lt=1)]
"""That was asked for; one that was reached may be 0."""
_Model = TypeVar("_Model", bound=BaseModel)
_TOO_LARGE = "holds a whole number of more than 64 bits; write a smaller one"


class Frozen(BaseModel):
    """Any part of a file; a key that the format does not know is an error."""

    # Validators are built when a file is read, once for the whole format, so that commands start quickly.
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, allow_inf_nan=False, defer_build=True)

    def file_text(self) -> str:
        """As the file holds it."""
        return self.model_dump_json(by_alias=True, indent=2) + "\n"


class Finding(Frozen):
    """Something the reader must know before using the numbers."""

    severity: Literal["invalid", "warning", "note"]
    about: str
    text: str


def warning(about: str, text: str) -> Finding:
    """A finding that a policy may forbid."""
    return Finding(severity="warning", about=about, text=text)


def note(about: str, text: str) -> Finding:
    """A finding to keep in mind."""
    return Finding(severity="note", about=about, text=text)


class LeftOut(Frozen):
    """Rows that were read and cannot be measured (``--bad-rows drop``)."""

    rows: int
    of: int = Field(description="rows that were read, these included")
    faults: dict[str, int] = Field(description="rows by what is wrong with them; each counts once")


class Given(Frozen):
    """A set of vectors that was used. No path and no identity name."""

    name: str
    sha256: str
    rows: int
    identities: int
    dim: int
    encoder: str | None
    weights_sha256: str | None
    licence: str | None = Field(default=None, description="of the encoder's weights, where unface has a card for them")
    notes: list[str]
    bad_rows: LeftOut | None = Field(default=None, description="null where no row was left out")
    columns: dict[str, str] = Field(
        default={},
        description="by option (identity, vector, id, group, context): columns with unusual names",
    )
    sample: int | None = Field(default=None, description="people that were asked for; null where everybody was read")


class Run(Frozen):
    """When and with what; the only part that differs between two runs of the same command."""

    unface: str
    started: str
    seconds: float


class Chart(Protocol):
    """An Altair chart, which result files do not import: what is most often asked of one."""

    def to_dict(self) -> dict[str, Any]: ...

    def save(self, fp: str | Path) -> None: ...


class Clock:
    """Runs from the moment it is made."""

    def __init__(self) -> None:
        self._started, self._ticks = datetime.now(UTC), time.monotonic()

    def run(self) -> Run:
        """Up to now."""
        started = self._started.isoformat(timespec="seconds")
        return Run(unface=__version__, started=started, seconds=round(time.monotonic() - self._ticks, 3))


@dataclass(frozen=True)
class Listing:
    """A table that names people or pictures: written beside a result as CSV for its owner alone, never into it."""

    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]
    about: str
    """What the file holds, in a few words."""

    def csv(self) -> str | None:
        """The file; None where there are no rows."""
        if not self.rows:
            return None
        text = StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        # A name that a spreadsheet would take for a formula is marked as text.
        writer.writerows(
            [f"'{cell}" if cell.startswith(("=", "+", "-", "@")) else cell for cell in row] for row in self.rows
        )
        return text.getvalue()


def read_toml(path: Path) -> dict[str, object]:
    """The tables of a TOML file; whole numbers end at 64 bits, as TOML allows."""
    try:
        content = tomllib.loads(path.read_bytes().decode())
    except OSError as error:
        raise UnfaceError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise UnfaceError(f"{path}: is not UTF-8 text; expected a TOML file") from None
    except tomllib.TOMLDecodeError as error:
        text = str(error)
        raise UnfaceError(f"{path}: is not TOML: {text[:1].lower()}{text[1:]}") from None
    except RecursionError:
        raise UnfaceError(f"{path}: is nested too deeply") from None
    except ValueError:  # Python reads no number of more than 4,300 digits
        raise UnfaceError(f"{path}: {_TOO_LARGE}") from None
    waiting: list[object] = [content]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)
        elif isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
            raise UnfaceError(f"{path}: {_TOO_LARGE}")
    return content


def read_json(path: Path, made_by: str) -> object:
    """What a JSON file holds; ``made_by`` is what writes such files."""
    try:
        return cast(object, json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise UnfaceError(f"{path}: cannot be read ({reason(error)})") from None
    except (ValueError, RecursionError):
        raise UnfaceError(f"{path}: is not JSON; give the file that {made_by} wrote") from None


def load_result(path: Path, model: type[_Model], schema: str, made_by: str) -> _Model:
    """Read a result file; ``made_by`` is the command that writes such files."""
    if path.is_dir():
        raise UnfaceError(f"{path}: is a folder; give the file in it that '{made_by}' wrote")
    content = read_json(path, f"'{made_by}'")
    version = content.get("schema") if isinstance(content, dict) else None
    if version is None:
        raise UnfaceError(f"{path}: has no 'schema' key; give the file that '{made_by}' wrote")
    if version != schema:
        raise UnfaceError(f"{path}: has schema {version!r}, this version reads {schema!r}; run '{made_by}' again")
    try:
        return model.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        what = first["msg"].lower().removeprefix("value error, ")
        said = f"{where}: {what}" if where else what
        raise UnfaceError(f"{path}: {said}; was the file changed by hand?") from None
