"""FII: whether the face or as much background around it carries the similarity of one person's pictures."""

import numpy as np
from numpy.typing import NDArray

from unface.attribute.draws import Draws
from unface.attribute.encoding import Encodings
from unface.attribute.pairing import Pairing
from unface.attribute.result import Fii
from unface.attribute.triplets import cosine


def face_importance(
    encodings: Encodings, pairing: Pairing, people: NDArray[np.int64], seed: int, level: float
) -> Fii | None:
    """Δ_face − Δ_bg over pairs (the ISP paper, eq. 17 and 18); None where fewer than two identities have a pair.

    ``people`` (canvases,) says whose each canvas is.
    """
    ringed = (encodings.ring[pairing.queries] >= 0) & (encodings.ring[pairing.references] >= 0)
    query, reference = pairing.queries[ringed], pairing.references[ringed]
    if len(np.unique(people[query])) < 2:
        return None
    plain, face, ring = (
        cosine(encodings.vectors, rows[query], rows[reference])
        for rows in (encodings.blurred[0], encodings.blurred[-1], encodings.ring)
    )
    draws = Draws.of(people[query], seed, level)
    return Fii(
        index=draws.mean((plain - face) - (plain - ring)),
        face_drop=draws.mean(plain - face),
        background_drop=draws.mean(plain - ring),
        similarity=draws.mean(plain),
    )
