"""Whitening and back: what turns an orthogonal projection of whitened vectors into an oblique one of the vectors."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]

# Relative to the largest variance. Below it lie directions in which float32 samples hold little but rounding, and
# whitening them would multiply that rounding by more than a hundred thousand.
_NEGLIGIBLE = 1e-10


@dataclass(frozen=True, eq=False)
class Whitening:
    """x ↦ x @ ``whiten`` has the identity as its covariance; ``restore`` (d, k) leads back: whitenᵀ restore = I."""

    whiten: Matrix
    restore: Matrix

    def oblique(self, basis: Matrix) -> tuple[Matrix, Matrix]:
        """(A, B) of I − A Bᵀ, which removes the orthonormal ``basis`` (k, r) of the whitened space.

        A is made orthonormal, so that B is as short as this projection allows and float32 loses least.
        """
        directions, triangle = np.linalg.qr(self.restore @ basis)
        return directions, self.whiten @ (basis @ triangle.T)


def whitening(covariance: Matrix) -> Whitening | None:
    """From the eigenvectors of a covariance with variance in them; None if there is no variance at all."""
    values, vectors = np.linalg.eigh(covariance)
    real = values > _NEGLIGIBLE * max(values[-1], 0.0)
    if not real.any():
        return None
    scale = np.sqrt(values[real])
    return Whitening(vectors[:, real] / scale, vectors[:, real] * scale)
