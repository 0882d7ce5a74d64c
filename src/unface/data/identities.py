"""Identity names and ids as text, and names as codes that do not depend on the order of rows."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unface.errors import UnfaceError


def codes_of(identities: Iterable[str]) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Each row's identity as a number into the sorted names."""
    rows = list(identities)
    names = tuple(sorted(set(rows)))
    code = {name: number for number, name in enumerate(names)}
    return np.fromiter((code[name] for name in rows), dtype=np.int64, count=len(rows)), names


def without_unused(codes: NDArray[np.int64], names: tuple[str, ...]) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Drop the names no row has; the remaining ones stay sorted."""
    used = np.unique(codes)
    return np.searchsorted(used, codes), tuple(names[code] for code in used)


def as_text(values: ArrayLike, what: str) -> NDArray[np.object_]:
    """(n,) names or ids as str; None where missing. ``what`` begins the error: "faces.npz: 'identities'"."""
    # A list goes in as objects: numpy would make ["ann", nan] a text array with somebody called "nan".
    array = np.asarray(values, dtype=None if hasattr(values, "dtype") else object)
    if array.ndim != 1:
        raise UnfaceError(f"{what} has shape {array.shape}; expected one value for each row")
    if array.dtype.kind not in "UTSiuO":
        raise UnfaceError(f"{what} holds {array.dtype}; expected text or integers")
    try:
        if array.dtype.kind == "S":
            array = np.char.decode(array, "utf-8")
        texts = [_one_text(value, what) for value in array.tolist()]
        "".join(text for text in texts if text is not None).encode()
    except ValueError:  # undecodable bytes, code points beyond Unicode, lone surrogates
        raise UnfaceError(f"{what} holds text that is not valid Unicode; save it again as UTF-8") from None
    return object_array(texts)


def object_array(values: list[str | None]) -> NDArray[np.object_]:
    """An object array of exactly these values; ``np.array`` alone would make an empty list float."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def row_numbers(count: int) -> NDArray[np.object_]:
    """The ids of rows that came without any."""
    return object_array([str(row) for row in range(count)])


def _one_text(value: object, what: str) -> str | None:
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return str(value)
    # NaN is how data frames say "missing" in a column of objects.
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return None
    raise UnfaceError(f"{what} holds a value of type {type(value).__name__}; expected text or integers")
