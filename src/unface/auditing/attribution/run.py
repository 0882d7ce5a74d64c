"""Where identity lives, as a part of an audit or on its own: one encoder's pictures measured."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from unface.attribute import FaceSwap, attribute, locate, reader_of
from unface.auditing.defence import require_unit_vectors
from unface.data import ImageSet, Space
from unface.encode import Encoder, space_of
from unface.erase import Projection
from unface.errors import UnfaceError
from unface.faces import Detector
from unface.progress import Progress
from unface.result.attribution import AttributionResult, EncoderAttribution, Pictures
from unface.result.file import Clock, Listing


@dataclass(frozen=True, eq=False)
class Subjects:
    """The pictures behind vectors, and how their faces are seen, found and swapped."""

    images: ImageSet
    encoder: Encoder
    detector: Detector
    swap: FaceSwap
    swap_name: str

    @property
    def space(self) -> Space:
        """Where the encoder's vectors live."""
        return space_of(self.encoder)

    def without(self, identities: set[str]) -> "Subjects":
        """The pictures of other people than these."""
        rows = [row for row, image in enumerate(self.images) if image.identity not in identities]
        return replace(self, images=self.images.take(rows))


def attribute_pictures(
    subjects: Sequence[Subjects],
    projections: Mapping[str, Projection],
    *,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> AttributionResult:
    """Several encoders on the same pictures, each raw and after the projections of its space."""
    clock = Clock()
    chosen = _by_space([one.space for one in subjects], projections)
    encoders = [
        attributed(one, fitting, seed=seed, threads=threads, progress=progress)
        for one, fitting in zip(subjects, chosen, strict=True)
    ]
    images = subjects[0].images
    return AttributionResult(
        source=Pictures(
            name=images.source,
            sha256=images.sha256(),
            pictures=len(images),
            identities=len(images.identities),
            notes=list(images.notes),
        ),
        encoders=[one.part for one in encoders],
        run=clock.run(),
        left_out=left_out_listing([row for one in encoders for row in one.left_out]),
    )


def left_out_listing(rows: list[tuple[str, ...]]) -> Listing:
    """Pictures that attribution could not use."""
    return Listing(("encoder", "id", "step", "reason"), rows, "pictures that attribution left out")


@dataclass(frozen=True)
class Attributed:
    """What goes into the file, and what may only lie beside it."""

    part: EncoderAttribution
    left_out: list[tuple[str, ...]]
    """(encoder, id, step, reason)"""


def attributed(
    subjects: Subjects,
    projections: Mapping[str, Projection],
    *,
    seed: int,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Attributed:
    """One encoder, raw and after each projection."""
    for projection in projections.values():
        projection.require_space(subjects.space)
    measured = attribute(
        locate(subjects.images, subjects.detector, threads=threads, progress=progress),
        reader_of(subjects.encoder),
        subjects.swap,
        projections=projections,
        seed=seed,
        threads=threads,
        progress=progress,
    )
    part = EncoderAttribution(
        encoder=measured.encoder,
        weights_sha256=subjects.space.weights_sha256,
        licence=subjects.encoder.card.licence.name,
        detector=subjects.detector.name,
        swap=subjects.swap_name,
        canvas=measured.size,
        axes=measured.axes,
        seed=measured.seed,
        replicates=measured.replicates,
        quality=measured.quality,
        spaces=measured.spaces,
    )
    return Attributed(part, [(measured.encoder, one.id, one.step, one.reason) for one in measured.left_out])


def _by_space(spaces: Sequence[Space], projections: Mapping[str, Projection]) -> list[dict[str, Projection]]:
    """For each space the projections fitted in it; one that fits none is a mistake, and nothing to be passed over."""
    chosen: list[dict[str, Projection]] = [{} for _ in spaces]
    for name, projection in projections.items():
        require_unit_vectors(projection, name)
        fitting = [place for place, space in zip(chosen, spaces, strict=True) if _is_of(projection, space)]
        if not fitting:
            given = "; ".join(map(str, spaces))
            raise UnfaceError(f"{name}: fitted in {projection.space}, not in that of an encoder given: {given}")
        for place in fitting:
            place[name] = projection
    return chosen


def _is_of(projection: Projection, space: Space) -> bool:
    try:
        projection.require_space(space)
    except UnfaceError:
        return False
    return True
