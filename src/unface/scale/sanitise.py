"""A file of vectors, or a collection of Parquet files, sanitised into another: vectors change, all else stays.

A collection is checked first, worked on file by file, resumed by the same call, and ends with a receipt.
"""

import hashlib
import os
from collections.abc import Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import ValidationError

from unface.data import opened_archive
from unface.data.embeddings import OnBadRows, on_bad_rows
from unface.data.files import kind_of, without_parquet
from unface.data.parquet import opened_parquet, row_batches
from unface.data.read import VectorArchive
from unface.erase import Projection
from unface.erase.file import to_bytes
from unface.errors import UnfaceError, short_name
from unface.output.lock import run_lock
from unface.output.manifest import MANIFEST, other_job, read_plan, require_same, unreadable, write_plan
from unface.output.place import OWN, Entry, Place, Sink, place_at
from unface.output.write import SEE_TO_IT, OutputError, staged
from unface.progress import Progress, Silent
from unface.scale.executor import Executor, local_executor
from unface.scale.part import DONE, PartDone, PartJob, ReadBackJob, filled, read_back, sanitise_part, still_done
from unface.scale.receipt import Check, Receipt, Verified
from unface.scale.released import bad_rows, require_dim
from unface.scale.stream import Erased, batch_rows, batch_vectors, checked_space, erase_parquet
from unface.threads import available_cores

RECEIPT = f"{OWN}/receipt.json"
_SCHEMA = "unface.directory/1"
_FOOTERS_AT_ONCE = 16


def sanitise_file(
    projection: Projection,
    source: Path,
    out: Path,
    *,
    vector: str = "vector",
    verify: bool = False,
    threads: int | None = None,
    replace: bool = True,
    on_bad: str = "fail",
) -> Receipt:
    """Read, erase, write; ``out`` appears once all of it is written and, with ``verify``, was read back.

    Without ``replace`` an ``out`` that is there by then is refused: another run may have written it meanwhile.
    Rows whose vector is null, NaN or Inf are refused, left out ("drop") or written without a vector ("null").
    """
    kind, bad = kind_of(source), on_bad_rows(on_bad)
    if out.exists() and out.samefile(source):
        raise UnfaceError(f"{short_name(out)}: is the source itself; write to another file")
    if kind == "directory":
        raise UnfaceError(f"{short_name(source)}: is a folder; give one file")
    if {".parquet": "parquet", ".npz": "npz"}.get(out.suffix.lower(), kind) != kind:
        raise UnfaceError(f"{short_name(out)}: {short_name(source)} is {kind}, and so is what is written; name it so")
    check = Check(projection) if verify else None
    with staged(out, replace=replace) as unfinished:
        if kind == "npz":
            if bad != "fail":
                raise UnfaceError(
                    f"--bad-rows {bad}: {short_name(source)} is an archive of arrays; write it as Parquet"
                )
            done = _sanitise_arrays(projection, source, unfinished, vector, check)
        else:
            done = _sanitise_parquet(projection, source, unfinished, short_name(out), vector, threads, check, bad)
        if check is not None:
            check.require(done.rows, short_name(out))
    return Receipt.of(
        projection,
        short_name(out),
        rows=done.rows,
        degenerate=done.degenerate,
        not_faces=None if projection.gate is None else done.not_faces,
        named_space=done.named,
        raw_purged=False,
        verified=None if check is None else Verified.by(check),
        bad_rows=None if bad == "fail" else done.bad,
        on_bad_rows=bad,
    )


def sanitise_directory(
    projection: Projection,
    source: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    vector: str = "vector",
    verify: bool = False,
    force: bool = False,
    threads: int | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
    on_bad: str = "fail",
) -> Receipt:
    """Every Parquet file below ``source`` with erased vectors below ``out``, under the same name.

    Killed at any point, it continues when called again with the same arguments. A file that cannot be read is reported
    at the end; the others are done by then. With ``verify`` everything is read back before the receipt is written.
    ``on_bad`` is that of ``sanitise_file``.
    """
    bad = on_bad_rows(on_bad)
    given, made = place_at(source), place_at(out)
    _require_apart(given, made)
    made.require_folder()
    files = given.parquet_files()
    if not files:
        raise without_parquet(given.shown)
    _require_unfinished(made, verify=verify, force=force)
    _require_ours(made)
    _require_usable(projection, given, files, vector)
    settings = {
        "schema": _SCHEMA,
        "projection": projection.sha256,
        # A hash: an address can reveal more than a copy should carry.
        "source": hashlib.sha256(given.whole.encode()).hexdigest(),
        "vector_column": vector,
        "bad_rows": bad,
    }
    run = executor or local_executor(threads)
    # A cluster gives a file one core, whatever this machine has.
    cores = 1 if executor else threads or available_cores()
    progress = progress or Silent()
    with run_lock(made, "OUT") as still_held:
        _require_unfinished(made, verify=verify, force=force)  # by a run that held the lock until now
        _agree(made, settings, {entry.name: entry.bytes for entry in files}, force=force)
        content = to_bytes(projection)
        # Few files leave cores for the rows of each.
        each = max(1, cores // len(files))
        jobs = [PartJob(content, given.address, made.address, entry.name, vector, each, bad) for entry in files]
        done = _all_done(jobs, files, made, run, progress)
        check = _read_back(projection, jobs, done, made, run, progress) if verify else None
        made.drop_unfinished()  # of workers that were lost on the way
        receipt = Receipt.of(
            projection,
            made.shown,
            rows=sum(one.rows for one in done.values()),
            degenerate=sum(one.degenerate for one in done.values()),
            not_faces=None if projection.gate is None else sum(one.not_faces for one in done.values()),
            named_space=all(one.named_space for one in done.values()),
            raw_purged=False,
            verified=None if check is None else Verified.by(check),
            files=len(files),
            bad_rows=None if bad == "fail" else sum(one.bad for one in done.values()),
            on_bad_rows=bad,
        )
        still_held()
        made.write(RECEIPT, receipt.content())
    return receipt


def _all_done(
    jobs: Sequence[PartJob], files: Sequence[Entry], made: Place, run: Executor, progress: Progress
) -> dict[str, PartDone]:
    known, written = records(made), {entry.name: entry for entry in made.parquet_files(links=False)}
    done, todo = {}, []
    for job, source in zip(jobs, files, strict=True):
        record = known.get(job.name)
        if record is not None and still_done(record, job, source, written.get(job.name)):
            done[job.name] = record
        else:
            todo.append(job)
    if todo:
        made.drop(RECEIPT)  # it is about the files as they were
    progress.start("files", len(jobs))
    progress.advance("files", len(done))
    failed: list[UnfaceError] = []
    ending = run(sanitise_part, todo)
    for index, result in ending:
        if isinstance(result, OutputError):
            if isinstance(ending, Generator):
                ending.close()
            raise UnfaceError(f"{result}; {len(done)} of {len(jobs)} files are done, {SEE_TO_IT}")
        if isinstance(result, UnfaceError):
            failed.append(result)
            continue
        done[todo[index].name] = result
        progress.advance("files")
    if failed:
        more = f" (and {len(failed) - 1} more like it)" if len(failed) > 1 else ""
        progressed = f"{len(done)} of {len(jobs)} files are done, the same command then does the rest"
        raise UnfaceError(f"{failed[0]}{more}; {progressed}")
    return done


def _read_back(
    projection: Projection,
    jobs: Sequence[PartJob],
    done: dict[str, PartDone],
    made: Place,
    run: Executor,
    progress: Progress,
) -> Check:
    progress.start("read back", len(jobs))
    total = Check(projection)
    for _, result in run(read_back, [ReadBackJob(job, done[job.name].sha256, done[job.name].bad) for job in jobs]):
        if isinstance(result, UnfaceError):
            raise result
        total.rows += result.rows
        total.largest_left = max(total.largest_left, result.largest_left)
        total.worst_length = max(total.worst_length, result.worst_length)
        total.allowed = max(total.allowed, result.allowed)
        progress.advance("read back")
    total.require(sum(one.rows for one in done.values()), made.shown)
    return total


def _require_apart(given: Place, made: Place) -> None:
    if given.local != made.local:
        return
    a, b = ((os.path.realpath(one.root) if one.local else one.whole).rstrip("/") + "/" for one in (given, made))
    if a.startswith(b) or b.startswith(a):
        raise UnfaceError(f"{made.shown}: lies in the source or around it; write to another folder")


def _require_usable(projection: Projection, given: Place, files: Sequence[Entry], vector: str) -> None:
    """Before a byte is written: refuse a collection if the projection is for another space than that of any file."""

    def schema(entry: Entry) -> pa.Schema | None:
        try:
            with given.opened(entry.name) as file, opened_parquet(file, entry.name) as opened:
                return opened.schema_arrow
        except UnfaceError:
            # A file that cannot be read is reported when its turn comes, and blocks nothing until then.
            return None

    with ThreadPoolExecutor(_FOOTERS_AT_ONCE) as pool:
        for entry, read in zip(files, pool.map(schema, files), strict=True):
            if read is not None:
                checked_space(projection, read, vector, entry.name)


def _receipt(out: Place) -> Receipt | None:
    """Of a finished output; None if it is not finished, or its receipt was damaged."""
    text = out.read(RECEIPT)
    try:
        return None if text is None else Receipt.model_validate_json(text)
    except ValidationError:
        return None


def _require_unfinished(out: Place, *, verify: bool, force: bool) -> None:
    receipt = None if force else _receipt(out)
    if receipt is not None and not (verify and receipt.verified is None):
        raise UnfaceError(f"{out.shown}: is finished already; choose another OUT or pass --force")


def _begun(out: Place) -> tuple[dict[str, object], dict[str, int]] | None:
    """The settings and files (with sizes in bytes) that an output was begun with; None if there are none."""
    plan = read_plan(out)
    if plan is None:
        return None
    files = plan.pop("files", None)
    if plan.get("schema") != _SCHEMA or not isinstance(files, dict):
        raise unreadable(out)
    return plan, files


def _agree(out: Place, settings: Mapping[str, object], files: Mapping[str, int], *, force: bool) -> None:
    """Begin, or continue what was begun with the same settings and files; ``force`` drops what is there.

    A run that finished no file is begun again: its error may have asked for another setting.
    """
    begun = _begun(out)
    if begun is not None and (force or not out.listed(DONE)):
        # Only what lies here: a plan is a file, and one that was tampered with could name others.
        ours = [entry.name for entry in out.parquet_files(links=False) if entry.name in begun[1]]
        # The plan goes last: until then the next run still knows which files are ours.
        for name in (RECEIPT, *(f"{DONE}/{entry.name}" for entry in out.listed(DONE)), *ours, MANIFEST):
            out.drop(name)
        begun = None
    if begun is not None:
        require_same(out.shown, begun[0], settings)
        # Sizes may differ: each file's own record tells whether it is still done.
        apart = sorted(begun[1].keys() ^ files.keys())
        if apart:
            raise other_job(out.shown, [f"files: {apart[0]} is {'gone' if apart[0] in begun[1] else 'new'}"])
    out.drop_unfinished()
    if begun != (settings, files):
        write_plan(out, {**settings, "files": files})


def _require_ours(out: Place) -> None:
    """Refuse an output beside other vectors, which then would lie among erased ones."""
    begun = _begun(out)
    written = out.parquet_files(links=False)
    others = [entry.name for entry in written if begun is None or entry.name not in begun[1]]
    if others:
        raise UnfaceError(f"{out.shown}: holds {others[0]} already, which is not of this run; choose an empty OUT")


def records(out: Place) -> dict[str, PartDone]:
    """Of the files that are finished, by name; a record that cannot be read counts for nothing."""
    done = {}
    for entry in out.listed(DONE):
        try:
            record = PartDone.model_validate_json(out.read(f"{DONE}/{entry.name}") or b"")
        except ValidationError:
            continue
        done[record.name] = record
    return done


def _sanitise_parquet(
    projection: Projection,
    source: Path,
    unfinished: Path,
    out: str,
    vector: str,
    threads: int | None,
    check: Check | None,
    on_bad: OnBadRows,
) -> Erased:
    with unfinished.open("wb") as file:
        try:
            done = erase_parquet(
                projection,
                source,
                short_name(source),
                Sink(file, out),
                vector,
                threads or available_cores(),
                on_bad=on_bad,
            )
        except OutputError as error:
            raise UnfaceError(f"{error}; {SEE_TO_IT}") from None
    if check is not None:
        with opened_parquet(unfinished, out) as opened:
            dim = projection.released_dim
            for batch in row_batches(opened, out, batch_rows(dim), [vector]):
                check.add(batch_vectors(filled(batch, vector), vector, dim, out, check.rows))
    return done


def _sanitise_arrays(
    projection: Projection, source: Path, unfinished: Path, vector: str, check: Check | None
) -> Erased:
    with opened_archive(source, vector) as archive:
        require_dim(projection, archive.dim, short_name(source))
        done = _ErasedBlocks(projection, archive, short_name(source))
        archive.write(unfinished, iter(done), projection.released_dim)
    if check is not None:
        with opened_archive(unfinished, archive.name) as written:
            for block in written.blocks(batch_rows(projection.dim)):
                check.add(block)
    return Erased(archive.rows, done.degenerate, False, done.not_faces)


class _ErasedBlocks:
    """The erased vectors of an archive, counted on the way; refused at the end if some are no numbers."""

    def __init__(self, projection: Projection, archive: VectorArchive, source: str) -> None:
        self._projection, self._archive, self._source = projection, archive, source
        self.degenerate = self.not_faces = 0

    def __iter__(self) -> Iterator[NDArray[np.float32]]:
        rows = bad = first_bad = 0
        for block in self._archive.blocks(batch_rows(self._archive.dim)):
            done = self._projection.kernel.rows(block)
            if len(done.bad):
                first_bad = first_bad if bad else rows + int(done.bad[0])
                bad += len(done.bad)
            rows += len(block)
            self.degenerate += done.degenerate
            self.not_faces += done.not_faces
            yield done.vectors
        if bad:
            raise bad_rows(self._source, first_bad, bad)
