"""A collection of Parquet files sanitised into another: checked first, file by file, restartable, with a receipt."""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

from unface.data.files import SEE_TO_IT, without_parquet
from unface.data.parquet import opened_parquet
from unface.erase import Projection
from unface.erase.file import to_bytes
from unface.errors import UnfaceError
from unface.output.lock import run_lock
from unface.output.place import Entry, Place, place_at
from unface.output.write import OutputError
from unface.progress import Progress, Silent
from unface.scale.check import Check
from unface.scale.executor import Executor, local_executor
from unface.scale.manifest import RECEIPT, Manifest, agree, finished, records, require_ours
from unface.scale.part import PartDone, PartJob, sanitise_part, still_done
from unface.scale.readback import ReadBackJob, read_back
from unface.scale.receipt import Receipt, Verified
from unface.scale.stream import checked_space
from unface.threads import available_cores

_FOOTERS_AT_ONCE = 16


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
) -> Receipt:
    """Every Parquet file below ``source`` with erased vectors below ``out``, under the same name.

    Killed at any point and called again with the same arguments it goes on. A file that cannot be read is told at the
    end; the others are done by then. With ``verify`` everything is read back before the receipt is written.
    """
    given, made = place_at(source), place_at(out)
    _require_apart(given, made)
    made.require_folder()
    files = given.parquet_files()
    if not files:
        raise without_parquet(given.shown)
    receipt = None if force else finished(made)
    if receipt is not None and not (verify and receipt.verified is None):
        raise UnfaceError(f"{made.shown}: is finished already; choose another OUT or pass --force")
    require_ours(made)
    _require_usable(projection, given, files, vector)
    plan = Manifest.of(projection.sha256, given, vector, files)
    run = executor or local_executor(threads)
    # A cluster gives a file one core, whatever this machine has.
    cores = 1 if executor else threads or available_cores()
    progress = progress or Silent()
    with run_lock(made, "OUT"):
        agree(made, plan, force=force)
        jobs = _jobs(to_bytes(projection), given, made, files, vector, cores)
        done = _all_done(jobs, files, made, run, progress)
        check = _read_back(projection, jobs, done, made, run, progress) if verify else None
        made.drop_unfinished()  # of workers that were lost on the way
        receipt = Receipt.of(
            projection,
            made.shown,
            rows=sum(one.rows for one in done.values()),
            degenerate=sum(one.degenerate for one in done.values()),
            named_space=all(one.named_space for one in done.values()),
            raw_purged=False,
            verified=None if check is None else Verified.by(check),
            files=len(files),
        )
        made.write(RECEIPT, (receipt.model_dump_json(by_alias=True, indent=2) + "\n").encode())
    return receipt


def _jobs(
    projection: bytes, given: Place, made: Place, files: Sequence[Entry], vector: str, cores: int
) -> list[PartJob]:
    # Few files leave cores for the rows of each.
    threads = max(1, cores // len(files))
    return [PartJob(projection, given.address, made.address, found.name, vector, threads) for found in files]


def _all_done(
    jobs: Sequence[PartJob], files: Sequence[Entry], made: Place, run: Executor, progress: Progress
) -> dict[str, PartDone]:
    known, there = records(made), {found.name: found for found in made.parquet_files()}
    done, todo = {}, []
    for job, found in zip(jobs, files, strict=True):
        record = known.get(job.name)
        if record is not None and still_done(record, job, found, there.get(job.name)):
            done[job.name] = record
        else:
            todo.append(job)
    if todo:
        made.drop(RECEIPT)  # it speaks of files as they were
    progress.start("files", len(jobs))
    progress.advance("files", len(done))
    failed: list[UnfaceError] = []
    ending = run(sanitise_part, todo)
    for index, result in ending:
        if isinstance(result, OutputError):
            _stop(ending)
            raise UnfaceError(f"{result}; {_count(done, jobs)}, {SEE_TO_IT}")
        if isinstance(result, UnfaceError):
            failed.append(result)
            continue
        done[todo[index].name] = result
        progress.advance("files")
    if failed:
        more = f" (and {len(failed) - 1} more like it)" if len(failed) > 1 else ""
        raise UnfaceError(f"{failed[0]}{more}; {_count(done, jobs)}, the same command then does the rest")
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
    for _, result in run(read_back, [ReadBackJob(job, done[job.name].sha256) for job in jobs]):
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
    """Before a byte is written: a projection of another space is for none of the files, so not for the first either."""

    def schema(found: Entry) -> pa.Schema | None:
        try:
            with given.opened(found.name) as file, opened_parquet(file, found.name) as opened:
                return opened.schema_arrow
        except UnfaceError:
            # A file that cannot be read is told when its turn comes, and holds nobody up until then.
            return None

    with ThreadPoolExecutor(_FOOTERS_AT_ONCE) as pool:
        for found, read in zip(files, pool.map(schema, files), strict=True):
            if read is not None:
                checked_space(projection, read, vector, found.name)


def _stop(ending: object) -> None:
    close = getattr(ending, "close", None)
    if close is not None:
        close()


def _count(done: dict[str, PartDone], jobs: Sequence[PartJob]) -> str:
    return f"{len(done)} of {len(jobs)} files are done"
