"""A set of pictures into one Parquet file of vectors: prepared ahead on threads, resumed where a run was cut off.

The output is made in parts: each appears by a rename, a manifest says of what, and they end as one file.
"""

import csv
import json
import math
import shutil
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from unface.data import BadPicture, ImageRef, ImageSet, Space
from unface.data.embeddings import METADATA_KEY
from unface.data.parquet import opened_parquet, read_columns, row_batches
from unface.encode.encoder import Encoder, space_of
from unface.encode.prepare import Prepared, Preparer
from unface.errors import UnfaceError, reason, short_name
from unface.faces import CONTEXT_DIM, Detector, TraitCrop
from unface.faces.face import TINY
from unface.memory import memory_budget
from unface.output.lock import run_lock
from unface.output.manifest import MANIFEST, agree, read_plan
from unface.output.place import Place, place_at
from unface.output.taken import refuse_link, require_new_file
from unface.output.write import SEE_TO_IT, OutputError, folder_for_output, staged, write_file
from unface.progress import Progress, Silent
from unface.threads import available_cores


@dataclass(frozen=True)
class Parts:
    """The folder beside an output in which its parts lie until all are there."""

    out: Path
    folder: Path
    place: Place
    private: bool

    def has(self, number: int) -> bool:
        return (self.folder / _part_name(number)).exists()

    def write(self, number: int, table: pa.Table) -> None:
        """One part, whole or not at all."""
        try:
            with self.place.written(_part_name(number)) as sink:
                pq.write_table(table, sink, use_dictionary=["identity"], write_page_checksum=True)
        except OutputError as error:
            raise UnfaceError(f"{self.place.shown}: {error}; {SEE_TO_IT}") from None

    def tables(self, count: int) -> Iterator[pa.Table]:
        """The parts in order."""
        for number in range(count):
            with opened_parquet(self.folder / _part_name(number), f"{short_name(self.out)} (part {number})") as file:
                batches = list(row_batches(file, short_name(self.out), file.metadata.num_rows + 1))
                table = pa.Table.from_batches(batches, file.schema_arrow)
            yield table

    def join(self, count: int, schema: pa.Schema) -> None:
        """All parts as the output, which appears by a rename; the parts go."""
        with (
            staged(self.out, private=self.private, option="--out") as unfinished,
            pq.ParquetWriter(unfinished, schema, use_dictionary=["identity"], write_page_checksum=True) as writer,
        ):
            for table in self.tables(count):
                if table.num_rows:
                    writer.write_table(table.replace_schema_metadata(schema.metadata))
        self.drop()

    def drop(self) -> None:
        """The parts go."""
        shutil.rmtree(self.folder)


def _part_name(number: int) -> str:
    return f"part-{number:06d}.parquet"


@contextmanager
def opened_parts(out: Path, plan: dict[str, object], *, force: bool, private: bool) -> Iterator[Parts]:
    """Parts to begin, or to continue if an unfinished output has the same plan; held against other processes.

    Parts that are there when the block fails stay for the next run; without any, nothing stays.
    """
    require_free(out, force=force)
    folder = _parts_of(out)
    refuse_link(folder)
    place = replace(place_at(folder, short_name(out)), private=private)
    try:
        with (
            folder_for_output(out.parent, private=private),
            folder_for_output(folder, private=private),
            run_lock(place),
        ):
            try:
                left = [old.name for old in place.listed("") if old.name.startswith("part-")]
                if force or not left or read_plan(place) is None:
                    for old in left:
                        place.drop(old)
                    place.drop(MANIFEST)
                place.drop_unfinished()
                agree(place, plan)
                yield Parts(out, folder, place, private)
            except BaseException:
                if not any(folder.glob("part-*")):
                    shutil.rmtree(folder, ignore_errors=True)
                raise
    except OSError as error:
        raise UnfaceError(f"{out}: cannot be written ({reason(error)}); choose another --out") from None


def _parts_of(out: Path) -> Path:
    return out.with_name(f".{out.name}.parts")


def require_free(out: Path, *, force: bool) -> None:
    """Refuse an output that exists already or cannot be written: before the work, not after it."""
    if out.is_file() and not force:
        _drop_left_parts(out)
    require_new_file(out, force=force, make_folder=True)


def _drop_left_parts(out: Path) -> None:
    """Beside a finished output: of a run that was killed after its last rename. One that is at work holds the lock."""
    folder = _parts_of(out)
    if folder.is_dir() and not folder.is_symlink():
        with suppress(UnfaceError, OSError), run_lock(place_at(folder, short_name(out))):
            shutil.rmtree(folder)


_PART = 1024  # pictures, whole batches of which are made again after a cut
_SKIPPED = b"unface.skipped"
_ENCODED = b"unface.encoded"

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Encoded:
    """What encoding a set came to."""

    path: Path
    pictures: int
    rows: int
    dim: int
    skipped: Mapping[str, int]
    """Pictures left out, by reason; named in ``<out>.skipped.csv``."""
    notes: Mapping[str, int]
    """Pictures used in spite of something: no face, several faces, a tiny face."""

    def sentences(self) -> tuple[str, ...]:
        """What a person wants to know, in lines."""
        lines = [f"{self.path}: {self.rows} of {self.pictures} pictures, {self.dim} dimensions"]
        if self.skipped:
            counts = ", ".join(f"{count} {reason}" for reason, count in self.skipped.items())
            lines.append(f"{self.path}.skipped.csv: left out {counts}")
        if self.notes:
            lines.append(
                "used all the same: " + ", ".join(f"{count} with {note}" for note, count in self.notes.items())
            )
        return tuple(lines)


def encode_images(
    images: ImageSet,
    encoder: Encoder,
    out: Path,
    *,
    detector: Detector | None,
    crop: TraitCrop | None = None,
    batch: int = 32,
    threads: int | None = None,
    force: bool = False,
    keep: bool = False,
    private: bool = False,
    progress: Progress | None = None,
) -> Encoded:
    """Columns id, identity, vector, context, phash, faces, face_score, face_px; the space in the file's metadata.

    A run that was cut off is resumed by the same call and ends in the same bytes. A finished file is refused; with
    ``force`` it is made again, with ``keep`` it is used if it is of these pictures, weights and detector.
    Pictures that cannot be decoded, and for encoders of aligned faces those without a face, are left out and counted.
    Without a detector pictures are taken to be aligned already, and their surroundings stay unknown.
    With a ``crop`` the vectors are of one trait, in a space of their own (``arcface-mbf:eyes``).
    A ``private`` file, and its folder if it is new, are open to their owner alone.
    """
    if crop is not None and detector is None:
        raise UnfaceError(f"the {crop.trait} cannot be found without a detector; leave out --detector none")
    if keep and not force and out.is_file():
        if not made_of(out).fits(images, encoder, detector, crop):
            raise UnfaceError(f"{out}: is of other pictures, weights or detector; choose another --out or pass --force")
        _drop_left_parts(out)
        return _finished(out, images)
    if batch < 1:
        raise UnfaceError(f"a batch of {batch}; expected at least 1")
    progress = progress or Silent()
    threads = threads or available_cores()
    # A picture and its copies are never in two parts.
    together = math.lcm(batch, 1 + max(Counter(ref.copy_of for ref in images if ref.copy_of).values(), default=0))
    size = max(_PART // together, 1) * together
    plan: dict[str, object] = {
        "pictures": images.sha256(),
        "encoder": encoder.name,
        "weights": encoder.card.sha256,
        "detector": None if detector is None else detector.name,
        "batch": batch,
        "part": _PART,
        **({} if crop is None else {"crop": crop.trait}),
    }
    space = space_of(encoder)
    if crop is not None:
        space = replace(space, encoder=f"{encoder.name}:{crop.trait}")
    with opened_parts(out, plan, force=force, private=private) as parts:
        chunks = [images.images[start : start + size] for start in range(0, len(images), size)]
        missing = [number for number in range(len(chunks)) if not parts.has(number)]
        wanted = [ref for number in missing for ref in chunks[number]]
        progress.start(f"encoding with {encoder.name}", len(images))
        progress.advance(f"encoding with {encoder.name}", len(images) - len(wanted))
        # Two batches and a few: one in the encoder, the next being made.
        preparer = Preparer(encoder.card.input, detector, crop)
        ready = ahead(preparer, contents(wanted), threads, 2 * batch + threads, file_bytes)
        with closing(ready):
            for number in missing:
                parts.write(number, _part(chunks[number], ready, encoder, batch, progress))
        return _finish(parts, len(chunks), images, space, plan)


@dataclass(frozen=True)
class Made:
    """How a finished file says it was made; empty where it does not say."""

    plan: Mapping[str, object]

    def fits(
        self, images: ImageSet, encoder: Encoder, detector: Detector | None, crop: TraitCrop | None = None
    ) -> bool:
        """Whether these pictures, this encoder, this detector and this crop would make the same file."""
        wanted = {
            "pictures": images.sha256(),
            "weights": encoder.card.sha256,
            "detector": None if detector is None else detector.name,
        }
        same = all(name in self.plan and self.plan[name] == value for name, value in wanted.items())
        return same and self.plan.get("crop") == (None if crop is None else crop.trait)

    @property
    def skipped(self) -> Mapping[str, int]:
        """Pictures left out, by reason."""
        skipped = self.plan.get("skipped")
        return skipped if isinstance(skipped, dict) else {}

    @property
    def notes(self) -> tuple[str, ...]:
        """What was left out, for users of the vectors."""
        return tuple(f"pictures left out, {reason}: {number}" for reason, number in self.skipped.items())


def made_of(path: Path) -> Made:
    """Read the metadata of a file that ``encode_images`` finished."""
    try:
        with opened_parquet(path, short_name(path)) as file:
            said = (file.schema_arrow.metadata or {}).get(_ENCODED)
        found = json.loads(said) if said else {}
    except (UnfaceError, ValueError, RecursionError):
        raise UnfaceError(f"{path}: not a readable Parquet file; remove it, or pass --force") from None
    return Made(found if isinstance(found, dict) else {})


def contents(refs: Iterable[ImageRef]) -> Iterator[bytes | BadPicture]:
    """Bytes in order, on one thread: from some sources that is the only fast way."""
    for ref in refs:
        try:
            yield ref.read()
        except BadPicture as bad:
            yield bad


def file_bytes(content: bytes | BadPicture) -> int:
    """Of a picture that waits to be decoded."""
    return 0 if isinstance(content, BadPicture) else len(content)


def ahead(
    work: Callable[[Item], Result],
    items: Iterable[Item],
    threads: int,
    most: int,
    weight: Callable[[Item], int] = lambda _: 0,
) -> Generator[Result, None, None]:
    """``map(work, items)`` with at most ``most`` results begun and not yet taken; items are drawn on this thread.

    ``weight`` is bytes that an item, or what is made of it, holds: together at most a sixteenth of the memory budget,
    or one item alone.
    """
    waiting: deque[tuple[Future[Result], int]] = deque()
    held, room = 0, memory_budget() // 16
    pool = ThreadPoolExecutor(threads, thread_name_prefix="unface-ahead")
    try:
        for item in items:
            heavy = weight(item)
            while waiting and (len(waiting) >= most or held + heavy > room):
                ended, done = waiting.popleft()
                held -= done
                yield ended.result()
            waiting.append((pool.submit(work, item), heavy))
            held += heavy
        while waiting:
            yield waiting.popleft()[0].result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _part(
    refs: Sequence[ImageRef], ready: Iterator[Prepared], encoder: Encoder, batch: int, progress: Progress
) -> pa.Table:
    """The next pictures as a table; batches never reach over the end of a part, so that a part can be made alone."""
    rows: list[tuple[ImageRef, Prepared]] = []
    vectors: list[NDArray[np.float32]] = []
    skipped: list[tuple[str, str]] = []
    frames: list[NDArray[np.uint8]] = []
    missing: set[str | None] = set()
    for ref in refs:
        picture = next(ready)
        if picture.frame is None or ref.copy_of in missing:
            missing.add(ref.id)
            skipped.append((ref.id, picture.reason or "copy of a picture that was left out"))
        else:
            frames.append(picture.frame)
            rows.append((ref, picture.without_frame()))
        if len(frames) == batch:
            vectors.append(encoder.encode(frames))
            frames = []
        progress.advance(f"encoding with {encoder.name}")
    if frames:
        vectors.append(encoder.encode(frames))
    return _part_table(rows, vectors, skipped, encoder.dim, copies=any(ref.copy_of for ref in refs))


def _part_table(
    rows: Sequence[tuple[ImageRef, Prepared]],
    vectors: Sequence[NDArray[np.float32]],
    skipped: Sequence[tuple[str, str]],
    dim: int,
    *,
    copies: bool,
) -> pa.Table:
    """One part; rows whose vector says nothing (not finite, all zeros) join the skipped."""
    matrix = np.concatenate(vectors) if vectors else np.empty((0, dim), dtype=np.float32)
    if matrix.shape != (len(rows), dim):
        raise UnfaceError(f"the encoder gave vectors of shape {matrix.shape}; expected {(len(rows), dim)}")
    good: NDArray[np.bool_] = np.logical_and(np.isfinite(matrix).all(axis=1), matrix.any(axis=1))
    left_out = [
        *skipped,
        *((ref.id, "no usable vector") for (ref, _), fine in zip(rows, good, strict=True) if not fine),
    ]
    kept = [row for row, fine in zip(rows, good, strict=True) if fine]
    seen = [picture for _, picture in kept]
    context = np.stack([picture.context for picture in seen]) if seen else np.empty((0, CONTEXT_DIM), dtype=np.float32)
    columns = [
        pa.array([ref.id for ref, _ in kept], pa.string()),
        pa.array([ref.identity for ref, _ in kept], pa.string()),
        pa.FixedSizeListArray.from_arrays(pa.array(matrix[good].reshape(-1), pa.float32()), dim),
        pa.FixedSizeListArray.from_arrays(pa.array(context.reshape(-1), pa.float32()), CONTEXT_DIM),
        pa.array([picture.phash for picture in seen], pa.uint64()),
        pa.array([picture.faces for picture in seen], pa.int32()),
        pa.array([picture.face_score for picture in seen], pa.float32()),
        pa.array([picture.face_px for picture in seen], pa.float32()),
    ]
    if copies:
        columns.append(pa.array([ref.copy_of for ref, _ in kept], pa.string()))
    schema = _part_schema(dim, copies=copies).with_metadata({_SKIPPED: json.dumps(left_out)})
    return pa.Table.from_arrays(columns, schema=schema)


def _finish(parts: Parts, count: int, images: ImageSet, space: Space, plan: Mapping[str, object]) -> Encoded:
    skipped: list[tuple[str, str]] = []
    rows = 0
    for table in parts.tables(count):
        rows += table.num_rows
        skipped += _skipped_of(table)
    counted = dict(Counter(reason for _, reason in skipped))
    if not rows:
        parts.drop()
        why = ", ".join(f"{number} {reason}" for reason, number in counted.items())
        advice = "; for faces that are cut out already, pass --detector none" if "no face" in counted else ""
        raise UnfaceError(f"{images.source}: none of {len(images)} pictures could be used ({why}){advice}")
    listing = parts.out.with_name(f"{parts.out.name}.skipped.csv")
    if skipped:
        text = StringIO(newline="")
        csv.writer(text, lineterminator="\n").writerows([("id", "reason"), *skipped])
        write_file(listing, text.getvalue().encode(), private=parts.private)
    else:
        listing.unlink(missing_ok=True)
    copies = any(ref.copy_of for ref in images)
    parts.join(count, _part_schema(space.dim, space, json.dumps({**plan, "skipped": counted}), copies=copies))
    return _finished(parts.out, images)


def _finished(path: Path, images: ImageSet) -> Encoded:
    """What a finished file of these pictures holds."""
    with opened_parquet(path, short_name(path)) as file:
        dim = file.schema_arrow.field("vector").type.list_size
    table = read_columns(path, short_name(path), ["faces", "face_px"])
    faces, side = (table.column(name).to_numpy() for name in ("faces", "face_px"))  # unknown is NaN
    notes = {
        "no face": int(np.count_nonzero(faces == 0)),
        "several faces": int(np.count_nonzero(faces > 1)),
        "tiny face": int(np.count_nonzero((faces > 0) & (side < TINY))),
    }
    return Encoded(
        path=path,
        pictures=len(images),
        rows=table.num_rows,
        dim=dim,
        skipped=made_of(path).skipped,
        notes={note: count for note, count in notes.items() if count},
    )


def _part_schema(
    dim: int, space: Space | None = None, encoded: str | None = None, *, copies: bool = False
) -> pa.Schema:
    """The columns; with the space and a count of pictures for a finished file."""
    metadata = {} if space is None else {METADATA_KEY: space.to_json()}
    if encoded is not None:
        metadata[_ENCODED] = encoded
    return pa.schema(
        [
            ("id", pa.string()),
            ("identity", pa.string()),
            ("vector", pa.list_(pa.float32(), dim)),
            ("context", pa.list_(pa.float32(), CONTEXT_DIM)),
            ("phash", pa.uint64()),
            ("faces", pa.int32()),
            ("face_score", pa.float32()),
            ("face_px", pa.float32()),
            *([("copy_of", pa.string())] if copies else []),
        ],
        metadata=metadata or None,
    )


def _skipped_of(table: pa.Table) -> list[tuple[str, str]]:
    """(id, reason) of the pictures that a part had to leave out."""
    return [(str(picture), str(reason)) for picture, reason in json.loads(table.schema.metadata[_SKIPPED])]
