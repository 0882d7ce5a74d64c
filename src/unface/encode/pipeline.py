"""A set of pictures into one Parquet file of vectors: prepared ahead on threads, resumed where a run was cut off."""

import csv
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from unface.data import BadPicture, ImageRef, ImageSet, Space
from unface.encode.ahead import ahead
from unface.encode.parts import Parts, opened_parts
from unface.encode.ports import Encoder, space_of
from unface.encode.prepare import Prepared, Preparer
from unface.encode.table import part_schema, part_table, skipped_of
from unface.errors import UnfaceError
from unface.faces import Detector
from unface.faces.face import TINY
from unface.progress import Progress, Silent
from unface.threads import available_cores

_PART = 1024  # pictures, whole batches of which are made again after a cut


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
    batch: int = 32,
    threads: int | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> Encoded:
    """Columns id, identity, vector, context, phash, faces, face_score, face_px; the space in the file's metadata.

    A run that was cut off is gone on with by the same call and ends in the same bytes. Pictures that cannot be
    decoded, and for encoders of aligned faces those without a face, are left out and counted. Without a detector
    pictures are taken to be aligned already, and their surroundings stay unknown.
    """
    if batch < 1:
        raise UnfaceError(f"a batch of {batch}; expected at least 1")
    progress = progress or Silent()
    threads = threads or available_cores()
    size = max(_PART // batch, 1) * batch
    plan: dict[str, object] = {
        "pictures": images.sha256(),
        "encoder": encoder.name,
        "weights": encoder.card.sha256,
        "detector": None if detector is None else detector.name,
        "batch": batch,
        "part": _PART,
    }
    with opened_parts(out, plan, force=force) as parts:
        chunks = [images.images[start : start + size] for start in range(0, len(images), size)]
        missing = [number for number in range(len(chunks)) if not parts.has(number)]
        wanted = [ref for number in missing for ref in chunks[number]]
        progress.start("encoding", len(images))
        progress.advance("encoding", len(images) - len(wanted))
        # Two batches and a few: one in the encoder, the next being made.
        ready = ahead(Preparer(encoder.card.input, detector), contents(wanted), threads, 2 * batch + threads)
        with closing(ready):
            for number in missing:
                parts.write(number, _part(chunks[number], ready, encoder, batch, progress))
        return _finish(parts, len(chunks), images, space_of(encoder), plan)


def contents(refs: Iterable[ImageRef]) -> Iterator[bytes | BadPicture]:
    """Bytes in order, on one thread: from some sources that is the only fast way."""
    for ref in refs:
        try:
            yield ref.read()
        except BadPicture as bad:
            yield bad


def _part(
    refs: Sequence[ImageRef], ready: Iterator[Prepared], encoder: Encoder, batch: int, progress: Progress
) -> pa.Table:
    """The next pictures as a table; batches never reach over the end of a part, so that a part can be made alone."""
    rows: list[tuple[ImageRef, Prepared]] = []
    vectors: list[NDArray[np.float32]] = []
    skipped: list[tuple[str, str]] = []
    frames: list[NDArray[np.uint8]] = []
    for ref in refs:
        picture = next(ready)
        if picture.frame is None:
            skipped.append((ref.id, picture.reason or "unusable"))
        else:
            frames.append(picture.frame)
            rows.append((ref, picture.without_frame()))
        if len(frames) == batch:
            vectors.append(encoder.encode(frames))
            frames = []
        progress.advance("encoding")
    if frames:
        vectors.append(encoder.encode(frames))
    return part_table(rows, vectors, skipped, encoder.dim)


def _finish(parts: Parts, count: int, images: ImageSet, space: Space, plan: Mapping[str, object]) -> Encoded:
    skipped: list[tuple[str, str]] = []
    notes: Counter[str] = Counter()
    rows = 0
    for table in parts.tables(count):
        rows += table.num_rows
        skipped += skipped_of(table)
        faces, side = (table.column(name).to_numpy() for name in ("faces", "face_px"))  # unknown is NaN
        notes["no face"] += int(np.count_nonzero(faces == 0))
        notes["several faces"] += int(np.count_nonzero(faces > 1))
        notes["tiny face"] += int(np.count_nonzero((faces > 0) & (side < TINY)))
    counted = dict(Counter(reason for _, reason in skipped))
    if not rows:
        parts.drop()
        why = ", ".join(f"{number} {reason}" for reason, number in counted.items())
        advice = "; for faces that are cut out already, pass --detector none" if "no face" in counted else ""
        raise UnfaceError(f"{images.source}: none of {len(images)} pictures could be used ({why}){advice}")
    listing = parts.out.with_name(f"{parts.out.name}.skipped.csv")
    if skipped:
        with listing.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([("id", "reason"), *skipped])
    else:
        listing.unlink(missing_ok=True)
    parts.join(count, part_schema(space.dim, space, json.dumps({**plan, "skipped": counted})))
    return Encoded(parts.out, len(images), rows, space.dim, counted, {note: n for note, n in notes.items() if n})
