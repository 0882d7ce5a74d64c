"""A new .npy file of which every byte has its place on the disk before the first row is written."""

import os
from pathlib import Path

import numpy as np
from numpy.lib.format import open_memmap


def new_array(
    path: Path, dtype: np.dtype[np.floating], shape: tuple[int, ...], *, column_by_column: bool = False
) -> "np.memmap[tuple[int, ...], np.dtype[np.floating]]":
    """A memory map to write to. One that finds the disk full ends the process; here that is an OSError beforehand."""
    made = open_memmap(path, "w+", dtype, shape, column_by_column)
    if hasattr(os, "posix_fallocate"):
        with path.open("r+b") as file:
            os.posix_fallocate(file.fileno(), 0, path.stat().st_size)
    return made
