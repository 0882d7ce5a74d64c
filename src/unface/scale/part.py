"""One file of a collection, erased: read, written, renamed, recorded; running it again changes nothing."""

from dataclasses import dataclass
from functools import lru_cache

from pydantic import BaseModel, ConfigDict

from unface.erase import Projection
from unface.erase.file import from_bytes
from unface.errors import UnfaceError
from unface.output.place import OWN, Entry, place_at
from unface.scale.stream import erase_parquet

DONE = f"{OWN}/done"


@dataclass(frozen=True)
class PartJob:
    """One file to erase. Everything in it can be pickled and means the same on another machine that sees the places."""

    projection: bytes
    """As Projection.save writes it."""
    source: str
    """The collection: an absolute path, or a URL."""
    out: str
    """Where its sanitised copy is made: likewise."""
    name: str
    """Of the file inside both, with "/" between folders."""
    vector: str = "vector"
    threads: int = 1


class PartDone(BaseModel):
    """The record of a finished file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    rows: int
    degenerate: int
    named_space: bool
    source_sha256: str
    source_bytes: int
    source_changed_ns: int | None
    """When the source was last written to, where its file system says."""
    sha256: str
    bytes: int


def sanitise_part(job: PartJob) -> PartDone:
    """Read, erase, write, rename, record. Refused with UnfaceError, or OutputError where writing failed."""
    source, out, projection = place_at(job.source), place_at(job.out), loaded(job.projection)
    found = source.look(job.name)
    if found is None:
        raise UnfaceError(f"{job.name}: no such file or directory; was it removed meanwhile?")
    digest = source.sha256(job.name)
    # Where there are files for all cores, reading ahead only helps those who wait for a network.
    ahead = job.threads > 1 or not (source.local and out.local)
    with source.opened(job.name) as file, out.written(job.name) as sink:
        erased = erase_parquet(projection, file, job.name, sink, job.vector, job.threads, ahead=ahead)
        if source.look(job.name) != found:
            raise UnfaceError(f"{job.name}: changed while it was read; run it again when nobody writes to it")
    done = PartDone(
        name=job.name,
        rows=erased.rows,
        degenerate=erased.degenerate,
        named_space=erased.named,
        source_sha256=digest,
        source_bytes=found.bytes,
        source_changed_ns=found.changed_ns,
        sha256=sink.sha256(),
        bytes=sink.bytes,
    )
    out.write(f"{DONE}/{job.name}.json", done.model_dump_json(indent=2).encode())
    return done


def still_done(done: PartDone, job: PartJob, source: Entry, out: Entry | None) -> bool:
    """Whether a record still speaks of these files; a source is read again only if it was touched since."""
    if out is None or out.bytes != done.bytes or source.bytes != done.source_bytes:
        return False
    if source.changed_ns is not None and source.changed_ns == done.source_changed_ns:
        return True
    return place_at(job.source).sha256(job.name) == done.source_sha256


@lru_cache(maxsize=4)
def loaded(projection: bytes) -> Projection:
    """The projection of a job, read once for all jobs of a process."""
    return from_bytes(projection, "projection")
