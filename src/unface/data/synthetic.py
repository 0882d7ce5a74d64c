"""Sets of people who do not exist: the Gaussian identity model, and encoded portraits that a generator drew."""

from dataclasses import replace
from importlib.resources import as_file, files

import numpy as np
from numpy.typing import NDArray

from unface.data.embeddings import EmbeddingSet
from unface.data.read import read_embeddings
from unface.errors import UnfaceError
from unface.seeds import stream

EMBEDDED_ENCODERS = ("sface", "sscd-int8", "dinov2-s-focus")
"""A face recogniser and two general encoders."""


def make_identities(
    identities: int,
    images: int,
    dim: int,
    rank: int | None = None,
    between: float = 1.0,
    within: float = 1.0,
    seed: int = 0,
    *,
    tails: float | None = None,
    unequal: bool = False,
) -> EmbeddingSet:
    """Vectors z = mu_i + eps of nobody, not normalised.

    mu_i ~ N(0, between² B Bᵀ) with B = ``identity_basis(dim, rank, seed)``, or N(0, between² I) without a rank;
    eps ~ N(0, within² I), or with ``tails`` a multivariate Student-t of that many degrees of freedom and scale
    ``within`` (covariance within² tails / (tails − 2)), one mixing draw for each image.
    Every identity has ``images`` images; with ``unequal``, 1 + Geometric(1 / (images − 1)) of them, which is at least 2
    and ``images`` on average.
    """
    _require_model(
        identities=identities, images=images, dim=dim, between=between, within=within, tails=tails, unequal=unequal
    )
    sizes = np.full(identities, images, dtype=np.int64)
    if unequal:
        sizes = 1 + stream(seed, "synthetic", "sizes").geometric(1 / (images - 1), size=identities)
    means = stream(seed, "synthetic", "means").standard_normal((identities, dim if rank is None else rank))
    if rank is not None:
        means = means @ identity_basis(dim, rank, seed).T
    rows = np.repeat(np.arange(identities), sizes)
    vectors = stream(seed, "synthetic", "images").standard_normal((len(rows), dim), dtype=np.float32)
    vectors *= np.float32(within)
    if tails is not None:
        mixing = stream(seed, "synthetic", "tails").chisquare(tails, size=len(rows)) / tails
        vectors /= np.sqrt(mixing)[:, None].astype(np.float32)
    vectors += (between * means).astype(np.float32)[rows]
    width = max(4, len(str(identities)))
    names = np.array([f"p{number:0{width}d}" for number in range(1, identities + 1)])
    first = np.cumsum(sizes) - sizes
    ids = [f"{names[i]}-{row - first[i]}" for row, i in enumerate(rows)]
    return EmbeddingSet.from_arrays(vectors, names[rows], ids=ids, source="synthetic")


def identity_basis(dim: int, rank: int, seed: int) -> NDArray[np.float64]:
    """An orthonormal basis (dim, rank) of the subspace ``make_identities`` confines identities to; uniformly random."""
    if not 1 <= rank <= dim:
        raise UnfaceError(f"synthetic: rank {rank} with {dim} dimensions; expected 1 to {dim}")
    draw = stream(seed, "synthetic", "basis", dim, rank).standard_normal((dim, rank))
    basis, triangle = np.linalg.qr(draw)
    # QR leaves the signs to LAPACK; a positive diagonal makes them ours.
    signed: NDArray[np.float64] = basis * np.sign(np.diag(triangle))
    return signed


def nobody(encoder: str) -> EmbeddingSet:
    """480 people × 12 portraits as one of ``EMBEDDED_ENCODERS`` sees them (docs/data.md)."""
    return _embedded("people", encoder, "people who do not exist")


def things(encoder: str) -> EmbeddingSet:
    """CIFAR-10's ten classes × 100 pictures by the same encoder, column ``split``: what vectors are good for."""
    return _embedded("things", encoder, "CIFAR-10")


def _embedded(what: str, encoder: str, source: str) -> EmbeddingSet:
    if encoder not in EMBEDDED_ENCODERS:
        raise UnfaceError(f"no embedded vectors of {encoder!r}; choose from {', '.join(EMBEDDED_ENCODERS)}")
    with as_file(files("unface.data") / "nobody" / f"{what}-{encoder}.parquet") as path:
        return replace(read_embeddings(path), source=source)


def _require_model(
    *, identities: int, images: int, dim: int, between: float, within: float, tails: float | None, unequal: bool
) -> None:
    wrong = {
        f"{identities} identities; expected at least 2": identities < 2,
        f"{images} images; expected at least {2 if unequal else 1}": images < (2 if unequal else 1),
        f"{dim} dimensions; expected at least 1": dim < 1,
        f"between {between:g}; expected 0 or more": not between >= 0,
        f"within {within:g}; expected 0 or more": not within >= 0,
        f"tails {tails}; expected more than 0, or None": tails is not None and not tails > 0,
    }
    for sentence, is_wrong in wrong.items():
        if is_wrong:
            raise UnfaceError(f"synthetic: {sentence}")
