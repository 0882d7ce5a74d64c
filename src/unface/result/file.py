"""What every result file has in common: a strict format, what was used, what the reader must know; and reading it."""

import csv
import json
import re
import time
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from io import StringIO
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol, Self, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from unface._version import __version__
from unface.errors import UnfaceError, reason
from unface.output.taken import require_no_result
from unface.output.write import write_files

FalseAcceptRate = Annotated[float, Field(ge=1e-15, lt=1)]
"""That was asked for; one that was reached may be 0."""
_MOST_DIGITS = 18
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


def why_unusable(findings: Sequence[Finding]) -> str:
    """The first clause of the first finding that makes a result invalid; what follows it is how to put that right."""
    text = next((finding.text for finding in findings if finding.severity == "invalid"), "a control failed")
    return re.split("[;:]", text)[0]


NO_RATE = "no rate"
"""What a finding is about that leaves success and chance side by side, and no false-accept rate to state them at."""


def lacks_a_rate_alone(findings: Sequence[Finding]) -> bool:
    """Whether nothing but the rate is wrong with a result that cannot be used."""
    return all(one.about == NO_RATE for one in findings if one.severity == "invalid")


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


@dataclass(frozen=True)
class Kind:
    """A format of result files."""

    file: str
    """As the command names it."""
    page: str
    made_by: str
    home: str
    """``module:class``; imported when such a file is read."""

    @property
    def model(self) -> "type[ResultFile]":
        """The class."""
        module, _, name = self.home.partition(":")
        return cast("type[ResultFile]", getattr(import_module(module), name))

    def load(self, path: Path) -> "ResultFile":
        """Read a file of this kind."""
        return self.model.load(path)


AUDIT = Kind("audit.json", "report.html", "unface audit", "unface.result.audit:AuditResult")

KINDS = {
    "unface.audit/2": AUDIT,
    "unface.validation/1": Kind(
        "validation.json", "validation.html", "unface validate", "unface.result.validation:ValidationResult"
    ),
    "unface.release/1": Kind("release.json", "release.html", "unface release", "unface.result.release:ReleaseResult"),
    "unface.inversion/1": Kind(
        "inversion.json", "inversion.html", "unface invert", "unface.result.inversion:InversionResult"
    ),
    "unface.certificate/1": Kind(
        "certificate.json",
        "certificate.html",
        "unface protect frequency certify",
        "unface.result.certificate:CertificateResult",
    ),
    "unface.protection/1": Kind(
        "protection.json",
        "protection.html",
        "unface protect facemae audit",
        "unface.result.protection:ProtectionResult",
    ),
}


class ResultFile(Frozen):
    """A whole file, of one of ``KINDS``; subclasses have the field ``schema_``, which names it."""

    @classmethod
    def schema_name(cls) -> str:
        """unface.audit/2."""
        return cast(str, cls.model_fields["schema_"].default)

    @classmethod
    def file_kind(cls) -> Kind:
        """Its names."""
        return KINDS[cls.schema_name()]

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read a file of this kind."""
        path, schema, made_by = Path(path), cls.schema_name(), cls.file_kind().made_by
        if path.is_dir():
            raise UnfaceError(f"{path}: is a folder; give the file in it that '{made_by}' wrote")
        content = read_json(path, f"'{made_by}'")
        version = content.get("schema") if isinstance(content, dict) else None
        if version is None:
            raise UnfaceError(f"{path}: has no 'schema' key; give the file that '{made_by}' wrote")
        if version != schema:
            raise UnfaceError(f"{path}: has schema {version!r}, this version reads {schema!r}; run '{made_by}' again")
        try:
            result = cls.model_validate(content)
            _require_counts(content)
            return result
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            what = first["msg"].removeprefix("Value error, ")
            said = f"{where}: {what[:1].lower()}{what[1:]}" if where else what
            raise UnfaceError(f"{path}: {said}; was the file changed by hand?") from None
        except ValueError as error:
            raise UnfaceError(f"{path}: {error}; was the file changed by hand?") from None

    def save(self, folder: str | PathLike[str], page: str | None = None) -> Path:
        """Write the file into a folder, and its page before it; returns its path."""
        pages = {} if page is None else {self.file_kind().page: page}
        write_files(Path(folder), {**pages, self.file_kind().file: self.file_text()}, {})
        return Path(folder) / self.file_kind().file

    @classmethod
    def require_new(cls, folder: Path, *, force: bool) -> None:
        """Refuse a folder that holds a finished file or page of this kind, before any work is done for it."""
        require_no_result(folder, cls.file_kind().file, cls.file_kind().page, force=force)

    @classmethod
    def page_in(cls, folder: Path) -> Path:
        """Where the page of such a file lies."""
        return folder / cls.file_kind().page


def find_result(path: Path) -> tuple[Path, Kind]:
    """The file that a path means, itself or the one in a folder, and its kind; an audit if it is no other kind."""
    for schema, kind in KINDS.items():
        file = path / kind.file if path.is_dir() else path
        try:
            with file.open(encoding="utf-8") as opened:
                if f'"{schema}"' in opened.read(200) and kind is not AUDIT:
                    return file, kind
        except (OSError, ValueError):
            continue
    if path.is_dir() and not (path / AUDIT.file).exists():
        names = [kind.file for kind in KINDS.values()]
        raise UnfaceError(f"{path}: no result is in this folder; expected {', '.join(names[:-1])} or {names[-1]}")
    return (path / AUDIT.file if path.is_dir() else path), AUDIT


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
        usual = csv.writer(text, lineterminator="\n")
        quoted = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL)
        usual.writerow(self.columns)
        for row in self.rows:
            # A name that a spreadsheet would take for a formula is marked as text; some skip white space before it.
            cells = [f"'{cell}" if cell.startswith(tuple("=+-@\t\r\n")) else cell for cell in row]
            (quoted if any("\r" in cell for cell in cells) else usual).writerow(cells)
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


def parsed_json(text: str) -> object:
    """As json.loads; a ValueError too: half a character, a key twice, and a whole number that no count can be."""
    content: object = json.loads(text, object_pairs_hook=_each_key_once, parse_int=_count)
    if "\\ud" in text.lower():
        json.dumps(content, ensure_ascii=False).encode()
    return content


def _each_key_once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    held = dict(pairs)
    if len(held) < len(pairs):
        names = [name for name, _ in pairs]
        raise _NoResult(f"holds {next(name for name in names if names.count(name) > 1)!r} twice")
    return held


def _count(digits: str) -> int:
    """Every whole number of a result is a count, a size or a seed."""
    if len(digits) > _MOST_DIGITS:
        raise _NoResult(f"holds a whole number of {len(digits):,} digits, which is no count")
    return int(digits)


def _require_counts(content: object, where: str = "") -> None:
    """Refuse a negative whole number anywhere."""
    if isinstance(content, int) and content < 0:
        raise ValueError(f"{where}: {content} is no count")
    items = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for key, value in items:
        _require_counts(value, f"{where}.{key}".removeprefix("."))


class _NoResult(ValueError):
    """JSON, but nothing that unface writes."""


def read_json(path: Path, made_by: str) -> object:
    """What a JSON file holds; ``made_by`` is what writes such files."""
    try:
        return parsed_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UnfaceError(f"{path}: cannot be read ({reason(error)})") from None
    except _NoResult as error:
        raise UnfaceError(f"{path}: {error}; give the file that {made_by} wrote") from None
    except (ValueError, RecursionError):
        raise UnfaceError(f"{path}: is not JSON; give the file that {made_by} wrote") from None
