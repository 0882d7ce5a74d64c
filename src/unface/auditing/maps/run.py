"""t-SNE of a few test identities, the same in every space."""

import numpy as np
from numpy.typing import NDArray

from unface.auditing.maps import Map
from unface.probe import RoleRows
from unface.seeds import stream
from unface.threads import one_blas_thread

_IDENTITIES = 12
_ITERATIONS = 500


def tsne_map(space: str, vectors: NDArray[np.float32], test: RoleRows, seed: int) -> Map | None:
    """The same identities in every space; the exact method, whose result does not depend on threads.

    None where there is nothing to draw: a handful of pictures, or all of them the same.
    """
    from sklearn.manifold import TSNE

    chosen = stream(seed, "map").permutation(test.count)[:_IDENTITIES]
    mask = np.isin(test.identities, chosen)
    number = {int(code): position for position, code in enumerate(np.sort(chosen))}
    perplexity = float(min(20, (int(mask.sum()) - 1) // 3))
    shown = vectors[test.rows[mask]].astype(np.float64)
    if perplexity < 2 or len(np.unique(shown, axis=0)) < 4:
        return None
    state = seed % 2**32  # all that scikit-learn takes
    drawn = TSNE(perplexity=perplexity, method="exact", init="random", max_iter=_ITERATIONS, random_state=state)
    with one_blas_thread():
        points = np.round(drawn.fit_transform(shown), 2)
    return Map(
        space=space,
        perplexity=perplexity,
        x=points[:, 0].tolist(),
        y=points[:, 1].tolist(),
        identity=[number[int(code)] for code in test.identities[mask]],
    )
