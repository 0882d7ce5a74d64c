"""A face system made of the embedded vectors, for the demo: nobody's pictures, no weights, no network."""

import numpy as np

from unface import data
from unface.data import EmbeddingSet
from unface.validate.judges import make_judges
from unface.validate.material import taken
from unface.validate.ports import Faces, Knowledge, Picture
from unface.validate.run import Case
from unface.validate.targets import EncoderTarget, OpenedTarget

ENCODER = "sface"
_ENROLLED, _PICTURES, _ASKED = 50, 4, 200


def embedded_case() -> Case:
    """50 people enrolled, 200 others to ask with; everybody else sets the judge's thresholds.

    The one recogniser among the embedded vectors is target, attacker's encoder and judge at once: an attacker with the
    same open weights. Success against other pictures of the person is what counts.
    """
    people = _faces(data.nobody(ENCODER))
    number = np.concatenate([np.arange(len(people.rows(at))) for at in range(len(people.names))])
    first, asked_until = min(_ENROLLED, len(people.names) // 4), min(_ENROLLED + _ASKED, len(people.names) * 3 // 4)
    enrolled = taken(people, np.flatnonzero((people.identities < first) & (number < _PICTURES)))
    is_asked = (people.identities >= first) & (people.identities < asked_until) & (number == 0)
    asked = taken(people, np.flatnonzero(is_asked))
    calibrate = taken(people, np.flatnonzero(people.identities >= asked_until))
    rows = dict(zip((picture.sha256 for picture in people.pictures), people.vectors[ENCODER], strict=True))
    target = EncoderTarget(f"encoder:{ENCODER}", lambda given: np.stack([rows[picture.sha256] for picture in given]))
    return Case(
        OpenedTarget(target, "built-in", True, "embedded", ENCODER),
        enrolled,
        Knowledge(asked.pictures, asked.vectors[ENCODER], ENCODER),
        make_judges(ENCODER, ENCODER, calibrate, calibrate, asked),
        enrolled_source="nobody",
        queries_source="nobody",
        enrolled_generated=True,
        queries_generated=True,
    )


def _faces(embeddings: EmbeddingSet) -> Faces:
    """In the order of people; a picture's bytes are its name."""
    order = np.argsort(embeddings.identities, kind="stable")
    vectors = embeddings.vectors[order]
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    pictures = tuple(Picture(str(embeddings.ids[row]), str(embeddings.ids[row]).encode()) for row in order)
    return Faces(pictures, embeddings.identities[order], tuple(map(str, embeddings.names)), {ENCODER: unit})
