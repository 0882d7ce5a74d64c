"""What an output is made of, so that a run that was cut off goes on and one of something else is refused."""

import hashlib
import json
from collections.abc import Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from unface.errors import UnfaceError
from unface.output.place import OWN, Entry, Place
from unface.scale.part import DONE, PartDone
from unface.scale.receipt import Receipt

_MANIFEST = f"{OWN}/manifest.json"
RECEIPT = f"{OWN}/receipt.json"


class Manifest(BaseModel):
    """The plan of an output; ``source`` is a hash, since addresses can tell more than a copy should carry along."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    schema_: Literal["unface.directory/1"] = Field("unface.directory/1", alias="schema")
    projection: str
    source: str
    vector_column: str
    files: dict[str, int]
    """Names and sizes in bytes."""

    @classmethod
    def of(cls, projection: str, source: Place, vector: str, files: list[Entry]) -> "Manifest":
        return cls.model_validate(
            {
                "projection": projection,
                "source": hashlib.sha256(source.whole.encode()).hexdigest(),
                "vector_column": vector,
                "files": {found.name: found.bytes for found in files},
            }
        )

    def difference(self, other: "Manifest") -> str | None:
        """In words, what another plan has that this one has not; sizes are told by each file's own record."""
        for name, word in (("projection", "projection"), ("source", "source"), ("vector_column", "vector column")):
            if getattr(self, name) != getattr(other, name):
                return f"another {word}"
        apart = sorted(self.files.keys() ^ other.files.keys())
        if apart:
            return f"other files ({apart[0]} is {'gone' if apart[0] in self.files else 'new'})"
        return None


def begun(out: Place) -> Manifest | None:
    """The plan of what lies there; None where nothing does."""
    text = out.read(_MANIFEST)
    try:
        return None if text is None else Manifest.model_validate_json(text)
    except ValidationError:
        raise UnfaceError(f"{out.shown}: {_MANIFEST} cannot be read; remove the folder and start again") from None


def finished(out: Place) -> Receipt | None:
    """The receipt of what lies there; None where it is not finished, or its receipt was damaged."""
    text = out.read(RECEIPT)
    try:
        return None if text is None else Receipt.model_validate_json(text)
    except ValidationError:
        return None


def agree(out: Place, plan: Manifest, *, force: bool) -> None:
    """Begin, or go on with what was begun by the same plan; ``force`` drops what is there."""
    old = begun(out)
    if old is not None and force:
        # Only what lies here: a plan is a file, and one that was tampered with could name others.
        ours = [found.name for found in out.parquet_files() if found.name in old.files]
        # The plan goes last: until then the next run still knows which files are ours.
        for name in (RECEIPT, *(f"{DONE}/{found.name}" for found in out.listed(DONE)), *ours, _MANIFEST):
            out.drop(name)
        old = None
    difference = None if old is None else old.difference(plan)
    if difference is not None:
        raise UnfaceError(f"{out.shown}: was begun with {difference}; give the same command, or --force to start over")
    out.drop_unfinished()
    if old != plan:
        out.write(_MANIFEST, (json.dumps(plan.model_dump(by_alias=True), indent=2) + "\n").encode())


def require_ours(out: Place) -> None:
    """Refuse an output beside other people's vectors, which then would lie among erased ones."""
    old = begun(out)
    known: Mapping[str, int] = {} if old is None else old.files
    strangers = [found.name for found in out.parquet_files() if found.name not in known]
    if strangers:
        raise UnfaceError(f"{out.shown}: holds {strangers[0]} already, which is not of this run; choose an empty OUT")


def records(out: Place) -> dict[str, PartDone]:
    """Of the files that are finished, by name; one that cannot be read counts for nothing."""
    found = {}
    for record in out.listed(DONE):
        try:
            done = PartDone.model_validate_json(out.read(f"{DONE}/{record.name}") or b"")
        except ValidationError:
            continue
        found[done.name] = done
    return found
