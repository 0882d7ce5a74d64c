"""A Projection as FAISS transforms, so that raw queries can be put to an index of erased vectors."""

import faiss
import numpy as np

from unface.erase.projection import Projection


def faiss_transforms(projection: Projection) -> list[faiss.VectorTransform]:
    """In the order in which they are applied.

    In float32, as all of FAISS: good for queries, which are searched for and forgotten, and not for vectors that are
    kept (see LinearMap). A query of which nothing is left comes out as noise, not as zero.
    """
    dim, kernel, linear = projection.dim, projection.kernel, projection.linear
    moved = linear(np.eye(dim))
    steps = faiss.LinearTransform(dim, dim, linear.offset is not None)
    if linear.offset is not None:
        moved -= linear.offset
        faiss.copy_array_to_vector(linear.offset.astype(np.float32), steps.b)
    # Rows of the identity come out as rows of the map; FAISS multiplies from the other side.
    faiss.copy_array_to_vector(moved.T.astype(np.float32).ravel(), steps.A)
    steps.is_trained = True
    before, after = (
        [faiss.NormalizationTransform(dim, 2.0)] if scaled else [] for scaled in (kernel.unit_input, kernel.unit_output)
    )
    return [*before, steps, *after]
