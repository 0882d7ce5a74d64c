"""Vectors as they are released: refused where they cannot be erased, and in a space of their own afterwards."""

import json

import numpy as np
from numpy.typing import NDArray

from unface.data import Space
from unface.erase import Projection
from unface.erase.kernel import ErasedRows
from unface.errors import UnfaceError

_MOST_PEOPLE = 1 << 16


def released_vectors(projection: Projection, vectors: NDArray[np.generic], source: str) -> NDArray[np.float32]:
    """(n, d) numbers of any width through a projection; zero vectors stay zero."""
    return released_rows(projection, vectors, source).vectors


def released_rows(projection: Projection, vectors: NDArray[np.generic], source: str) -> ErasedRows:
    """The same with what was counted on the way."""
    require_dim(projection, vectors.shape[1], source)
    done = projection.kernel.rows(vectors)
    if len(done.bad):
        raise bad_rows(source, int(done.bad[0]), len(done.bad))
    return done


def require_dim(projection: Projection, dim: int, source: str) -> None:
    """Refuse vectors of another length."""
    if dim != projection.dim:
        raise UnfaceError(f"{source}: vectors of {dim} dimensions; this projection is for {projection.dim}: fit one")


def bad_rows(source: str, first: int, count: int, advice: str = "repair or drop such rows") -> UnfaceError:
    """The sentence about rows that are no numbers."""
    return UnfaceError(f"{source}: row {first} has NaN or Inf; {advice} ({count:,} in all)")


def released_space(projection: Projection, given: Space | None) -> Space:
    """What comes out is another space than what went in: it must not be compared with raw vectors, or erased again."""
    space = given or projection.space
    gated = "" if projection.gate is None else "gated "
    encoder = f"{space.encoder or 'unknown encoder'} after {gated}{projection.kind} {projection.rank}"
    return Space(encoder, projection.sha256, projection.released_dim, projection.normalise)


def erased_by(projection: Projection) -> str:
    """What a file of released vectors says of the projection, as JSON: an audit of it reads who that was fitted on."""
    record = projection.fitted_on
    fields = {
        "kind": projection.kind,
        "rank": projection.rank,
        "gated": projection.gate is not None,
        "projection_sha256": projection.sha256,
        # In every file of a collection; of more people only the projection itself tells.
        "fitted_on": None if record is None or record.people > _MOST_PEOPLE else record.to_fields(),
    }
    return json.dumps(fields, sort_keys=True)


def require_raw(projection: Projection, given: Space | None) -> None:
    """A file that names its space must name the projection's; one that says nothing is taken at its user's word."""
    if given is not None and is_named(given):
        if given.weights_sha256 == projection.sha256:
            raise UnfaceError("projection: erased these vectors already; give the raw ones, or leave them as they are")
        projection.require_space(given)


def is_named(given: Space | None) -> bool:
    """Whether anybody said which encoder or weights vectors come from."""
    return given is not None and (given.encoder, given.weights_sha256) != (None, None)
