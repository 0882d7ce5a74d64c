"""The folder that pictures are made in: a person appears whole, and an interrupted run continues."""

import json
import shutil
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from unface._version import __version__
from unface.errors import UnfaceError, reason, short_name
from unface.output.lock import run_lock
from unface.output.manifest import MANIFEST, read_plan, require_same, write_plan
from unface.output.place import OWN, UNFINISHED, Place, place_at
from unface.output.taken import require_folder
from unface.output.write import SEE_TO_IT, OutputError, publish
from unface.synth.people import Candidates

RESULT = "synth.json"
_VERSION = "unface"  # in the result and in the plan that is kept until it is there


@dataclass(frozen=True)
class Record:
    """Of a person who is finished."""

    tries: int
    rejected: Counter[str]


@dataclass(frozen=True, eq=False)
class Folder:
    """``_unface`` in it holds the plan, candidates and records until all is there; ``synth.json`` comes last."""

    out: Path
    place: Place

    def candidates(self, number: int) -> Candidates | None:
        """A chunk that was looked at before."""
        content = self.place.read(f"{OWN}/candidates/{number:06d}.npz")
        if content is None:
            return None
        try:
            with np.load(BytesIO(content), allow_pickle=False) as stored:
                judges = sum(name.startswith("vectors_") for name in stored.files)
                return Candidates(stored["found"], tuple(stored[f"vectors_{n}"] for n in range(judges)))
        except (KeyError, OSError, ValueError, EOFError, BadZipFile, zlib.error):
            return None  # damaged: looked at again

    def keep_candidates(self, number: int, candidates: Candidates) -> None:
        content = BytesIO()
        # Of Any: the types of savez take the names of arrays for its own options.
        arrays: dict[str, Any] = {f"vectors_{place}": rows for place, rows in enumerate(candidates.vectors)}
        np.savez(content, found=candidates.found, **arrays)
        self.place.write(f"{OWN}/candidates/{number:06d}.npz", content.getvalue())

    def record(self, identity: str, images: int) -> Record | None:
        """Of a person who is there already, with all pictures."""
        content = self.place.read(f"{OWN}/people/{identity}.json")
        if content is None or sum(1 for _ in (self.out / identity).glob("*.jpg")) != images:
            return None
        try:
            found = json.loads(content)
            return Record(int(found["tries"]), Counter(found["rejected"]))
        except (KeyError, TypeError, ValueError, RecursionError):
            return None  # damaged: photographed again

    def keep_person(self, identity: str, pictures: Sequence[bytes], record: Record) -> None:
        """The folder of a person by one rename, then the record that says so."""
        unfinished, whole = self.out / UNFINISHED / identity, self.out / identity
        digits = len(str(len(pictures) - 1))
        for name in (f"{UNFINISHED}/{identity}", identity):
            self.place.require_no_links(name)
        try:
            if unfinished.exists():  # left by a run that was killed
                shutil.rmtree(unfinished)
            unfinished.mkdir(parents=True)
            for number, picture in enumerate(pictures):
                (unfinished / f"{number:0{max(digits, 2)}d}.jpg").write_bytes(picture)
            publish(unfinished, whole)
        except OSError as error:
            raise OutputError(f"{short_name(self.out)}: cannot be written ({reason(error)})") from None
        text = json.dumps({"tries": record.tries, "rejected": dict(sorted(record.rejected.items()))})
        self.place.write(f"{OWN}/people/{identity}.json", text.encode())

    def finish(self, result: Mapping[str, object]) -> None:
        self.place.write(RESULT, (json.dumps(result, indent=2, ensure_ascii=False) + "\n").encode())
        shutil.rmtree(self.out / OWN)


def require_free(out: Path) -> None:
    """Refuse a folder that holds anything but an unfinished run: before the work, not after it."""
    require_folder(out)
    inside = {entry.name for entry in out.iterdir()} if out.is_dir() else set()
    if RESULT in inside and OWN not in inside:
        raise UnfaceError(f"{out}: is finished already; choose another --out, or remove it first")
    if inside - {OWN} and not (out / MANIFEST).is_file() and RESULT not in inside:
        raise UnfaceError(f"{out}: is not empty; choose another --out")


@contextmanager
def opened_folder(out: Path, plan: Mapping[str, object]) -> Iterator[Folder]:
    """A new folder, or one that the same plan began; held against other processes."""
    require_free(out)
    place = place_at(out)
    with run_lock(place):
        try:
            _agree(place, plan)
            yield Folder(out, place)
        except OutputError as error:
            raise UnfaceError(f"{error}; {SEE_TO_IT}") from None


def _agree(place: Place, plan: Mapping[str, object]) -> None:
    """Begin with this plan, or check that the folder was begun with it."""
    begun = _begun(place)
    if begun is None:
        write_plan(place, {_VERSION: __version__, **plan})
        return
    require_same(place.shown, begun, plan, otherwise="another --out")
    if begun.get(_VERSION) != __version__:
        raise UnfaceError(
            f"{place.shown}: was begun by unface {begun.get(_VERSION, 'of before')}, whose pictures may be others than"
            f" those of {__version__}; continue that one, or give another --out"
        )


def _begun(place: Place) -> dict[str, object] | None:
    """From the result if there is one: a run that is killed while it tidies up may have no manifest left."""
    result = read_plan(place, RESULT)
    if result is None:
        return read_plan(place)
    plan = result.get("plan")
    return {_VERSION: result.get(_VERSION), **plan} if isinstance(plan, dict) else {}
