"""The contract of every eraser: a scikit-learn transformer whose fit leaves a Projection."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import validate_data

from unface.data import EmbeddingSet, Space
from unface.erase.fitted_on import FittedOn
from unface.erase.projection import Projection
from unface.errors import UnfaceError
from unface.fitted import FITTED, Hashes, fewest, hashes_to_remember
from unface.moments import MomentStream
from unface.threads import one_blas_thread

Matrix = NDArray[np.float64]
# NaN and infinity are looked for here: scikit-learn's sentence about them recommends its own classifiers.
_NUMBERS = {"dtype": [np.float32, np.float64], "ensure_all_finite": False}


class FitError(UnfaceError, ValueError):
    """An eraser cannot be fitted as asked; also a ValueError, which is what scikit-learn's tools look for."""

    code = "fit"


@dataclass(frozen=True, eq=False)
class Removal:
    """What a method decided to remove; see Projection for the names."""

    directions: Matrix
    spectrum: NDArray[np.float64]
    readers: Matrix | None = None
    mean: NDArray[np.float64] | None = None
    kept: Matrix | None = None


class Eraser(OneToOneFeatureMixin, TransformerMixin, BaseEstimator, ABC):  # type: ignore[misc] # scikit-learn has no types
    """fit(X, identities=…) learns which directions tell identities apart; transform removes them.

    In a pipeline beside a task, y belongs to the task and ``identities`` is routed here (scikit-learn's metadata
    routing) without a request; where there is no task, fit(X, y) takes y for the identities.
    """

    # Read by scikit-learn: identities that a pipeline or a search is given are wanted here.
    __metadata_request__fit: ClassVar[dict[str, bool]] = {"identities": True}
    __metadata_request__partial_fit: ClassVar[dict[str, bool]] = {"identities": True}

    kind: ClassVar[str]
    uses_identities: ClassVar[bool] = True
    normalise: bool

    _projection: Projection | None
    _rows: Hashes | None = None
    """Of the pictures it was fitted on, until the projection is made."""
    _remembers = True

    @abstractmethod
    def fit(self, X: ArrayLike, y: ArrayLike | None = None, *, identities: ArrayLike | None = None) -> Self:
        """X (n, d) vectors, identities (n,): text or integers; y in their place where identities is None."""

    def transform(self, X: ArrayLike) -> NDArray[np.float32]:
        """The erased vectors, float32."""
        projection = self.projection_
        return projection.apply(self._checked(X, reset=False))

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[np.object_]:
        """The names of the columns that came in; keeper0, keeper1 … where fewer dimensions are released."""
        names: NDArray[np.object_] = super().get_feature_names_out(input_features)
        released = self.projection_.released_dim
        if released == len(names):
            return names
        return np.array([f"{self.kind}{number}" for number in range(released)], dtype=object)

    @property
    def projection_(self) -> Projection:
        """What was learned; of an unknown space, unless ``fit_projection`` named it."""
        projection: Projection | None = getattr(self, "_projection", None)
        if projection is None:
            raise NotFittedError(f"{type(self).__name__} is not fitted yet; call fit first")
        return projection

    def __sklearn_is_fitted__(self) -> bool:
        return getattr(self, "_projection", None) is not None

    def __sklearn_tags__(self) -> object:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self.uses_identities
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags

    def _keep(self, removal: Removal) -> Self:
        space = Space(encoder=None, weights_sha256=None, dim=len(removal.directions), normalised=False)
        self._projection = Projection(
            kind=self.kind,
            directions=np.ascontiguousarray(removal.directions),
            spectrum=np.ascontiguousarray(removal.spectrum),
            space=space,
            readers=None if removal.readers is None else np.ascontiguousarray(removal.readers),
            mean=removal.mean,
            normalise=self.normalise,
            kept=removal.kept,
        )
        if self._rows is not None:
            FITTED.add(self._projection.mark, self._rows)
        return self

    def _checked(self, X: ArrayLike, *, reset: bool, finite: bool = True) -> NDArray[np.floating]:
        try:
            array: NDArray[np.floating] = validate_data(self, X, reset=reset, **_NUMBERS)
        except ValueError as error:
            raise FitError(f"{self.kind}: {_one_line(error)}") from None
        if finite:
            _require_finite(self.kind, array)
        return array

    def _checked_both(
        self, X: ArrayLike, identities: ArrayLike | None, *, reset: bool, finite: bool = True
    ) -> tuple[NDArray[np.floating], NDArray[np.generic]]:
        if not self.uses_identities:
            array = self._checked(X, reset=reset, finite=finite)
            self._remember(array, reset=reset)
            return array, np.zeros(len(array), np.int64)
        try:
            array, labels = validate_data(self, X, identities, reset=reset, **_NUMBERS)
        except ValueError as error:
            advice = "; give identities=" if identities is None else ""
            raise FitError(f"{self.kind}: {_one_line(error)}{advice}") from None
        # NaN is the one value that differs from itself.
        if labels.dtype.kind == "O" and any(name is None or name != name for name in labels):  # noqa: PLR0124
            raise FitError(f"{self.kind}: an identity is missing (None or NaN); drop those rows")
        if finite:
            _require_finite(self.kind, array)
        self._remember(array, reset=reset)
        return array, labels

    def _remember(self, vectors: NDArray[np.floating], *, reset: bool) -> None:
        if not self._remembers:
            return
        rows = hashes_to_remember(vectors)
        self._rows = rows if reset or self._rows is None else fewest(self._rows, rows)


class ClosedFormEraser(Eraser):
    """An eraser that needs class sums, and perhaps the scatter, and no sample: so it also fits in batches.

    It holds these sums and the identities' labels as long as it lives; the projection holds neither.
    """

    _moments: MomentStream | None

    def fit(self, X: ArrayLike, y: ArrayLike | None = None, *, identities: ArrayLike | None = None) -> Self:
        """As every eraser's; forgets what was fitted before."""
        people = y if identities is None else identities
        self._moments = self._projection = None
        # NaN and Inf show in the sums, which are far fewer than the samples to be looked through.
        self._add(X, people, reset=True, finite=False)
        if not np.isfinite(self._seen().sums().sums).all():
            self._moments = None
            self._checked_both(X, people, reset=True)
            raise FitError(f"{self.kind}: values too large to be summed; scale the vectors")
        return self._solved()

    def partial_fit(self, X: ArrayLike, y: ArrayLike | None = None, *, identities: ArrayLike | None = None) -> Self:
        """One batch more, in any order and size; the projection is worked out when it is next asked for."""
        people = y if identities is None else identities
        return self._add(X, people, reset=getattr(self, "_moments", None) is None)

    def fit_moments(self, seen: MomentStream) -> Self:
        """From sums that were made elsewhere, such as over many files; with their scatter if ``needs_scatter``."""
        self._moments, self._projection, self._rows = seen, None, None
        self.n_features_in_ = seen.dim
        return self._solved()

    @property
    def projection_(self) -> Projection:
        """What was learned from all batches so far; of an unknown space, unless ``fit_projection`` named it."""
        if getattr(self, "_moments", None) is not None and self._projection is None:
            self._solved()
        return super().projection_

    def __sklearn_is_fitted__(self) -> bool:
        return getattr(self, "_moments", None) is not None

    def needs_scatter(self) -> bool:
        """Whether sums alone do not do."""
        return True

    @abstractmethod
    def _remove(self, seen: MomentStream) -> Removal:
        """Decide from what was seen."""

    def _seen(self) -> MomentStream:
        assert self._moments is not None
        return self._moments

    def _add(self, X: ArrayLike, identities: ArrayLike | None, *, reset: bool, finite: bool = True) -> Self:
        vectors, labels = self._checked_both(X, identities, reset=reset, finite=finite)
        if reset:
            self._moments = MomentStream(vectors.shape[1], scatter=self.needs_scatter())
        self._seen().add(vectors, labels)
        self._projection = None
        return self

    def _solved(self) -> Self:
        seen = self._seen()
        if int(seen.sums().counts.sum()) < 2:
            raise FitError(f"{self.kind}: 1 sample; at least two are needed")
        if self.uses_identities and seen.identities < 2:
            raise FitError(f"{self.kind}: one identity (1 class) only; at least two are needed")
        with one_blas_thread():
            return self._keep(self._remove(seen))


def fit_projection(eraser: Eraser, embeddings: EmbeddingSet) -> Projection:
    """Fit on a set; the projection names its space and records its people."""
    eraser._remembers = False  # names say more, and are looked up wherever the projection goes
    eraser.fit(embeddings.vectors, embeddings.identities)
    found = eraser.projection_
    return replace(found, space=embeddings.space, fitted_on=FittedOn.of(embeddings.names, found.directions))


def chosen_rank(
    kind: str, spectrum: NDArray[np.float64], dim: int, identities: int, rank: int | None, energy: float | None
) -> int:
    """``energy`` decides where it is given, then ``rank``; neither means every direction there is."""
    if energy is not None:
        if not 0 < energy <= 1:
            raise FitError(f"{kind}: energy {energy:g}; expected a share of more than 0 and at most 1")
        share = np.cumsum(spectrum**2)
        return int(np.searchsorted(share, energy * share[-1] * (1 - 1e-12))) + 1 if len(share) else 0
    if rank is None:
        return len(spectrum)
    require_rank(kind, rank, dim)
    if rank > identities - 1:
        raise FitError(f"{kind}: rank {rank} with {identities} identities; expected at most {identities - 1}")
    if rank > len(spectrum):
        advice = "lower it" if len(spectrum) else "are vectors and identities the right ones?"
        raise FitError(f"{kind}: rank {rank}, but class means differ in {len(spectrum)} directions only; {advice}")
    return rank


def require_rank(kind: str, rank: int, dim: int) -> None:
    """A whole number from 0 to the number of dimensions."""
    if isinstance(rank, bool) or not isinstance(rank, int | np.integer):
        raise FitError(f"{kind}: rank {rank!r}; expected a whole number")
    if not 0 <= rank <= dim:
        raise FitError(f"{kind}: rank {rank} with {dim} dimensions; expected 0 to {dim}")


def _one_line(error: ValueError) -> str:
    return " ".join(str(error).split())


def _require_finite(kind: str, vectors: NDArray[np.floating]) -> None:
    if np.isfinite(vectors.sum(dtype=np.float64)):
        return
    bad = ~np.isfinite(vectors)
    if not bad.any():
        return  # only their sum is too large
    rows = np.flatnonzero(bad.any(axis=1))
    column = int(np.flatnonzero(bad[rows[0]])[0])
    what = "NaN" if np.isnan(vectors[rows[0], column]) else "infinity"
    others = f" ({len(rows):,} such rows)" if len(rows) > 1 else ""
    raise FitError(f"{kind}: row {rows[0]} of X has {what} in column {column}{others}; drop or repair such rows")
