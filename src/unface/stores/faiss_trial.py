"""Run as a script by ``faiss_index``: reads an index in a process of its own, which a damaged file may end.

FAISS reads past the end of a file that is cut inside a header, and allocates whatever size a header declares.
It imports nothing of unface, so that it starts in a fraction of a second. Prints why a file cannot be read.
"""

import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import faiss

# Times the file: the map of the file, and what is built from it. IDMap2 builds some 60 bytes for each id of eight.
_GROWTH = 10
_SPARE = 256 << 20


def main(path: str) -> int:
    """0 if the index can be read in memory that the size of its file accounts for."""
    # Neither exists on every system; there only the death of this process protects the one that started it.
    with suppress(ImportError, OSError):
        import resource

        used = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
        most = used + _GROWTH * Path(path).stat().st_size + _SPARE
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        index = faiss.read_index(path, faiss.IO_FLAG_MMAP_IFC)
        if not all(_is_sound(part, Path(path).stat().st_size) for part in _parts(index)):
            print("it declares more than the file holds, or numbers of no known kind")
            return 1
    except MemoryError:
        print("it declares more than the file holds")
        return 1
    except RuntimeError as error:
        # FAISS puts function and file in front of its message.
        print(str(error).rpartition(": ")[2])
        return 1
    return 0


def _parts(index: Any) -> Iterator[Any]:
    """The index and those inside it."""
    index = faiss.downcast_index(index)
    yield index
    for name in ("index", "quantizer", "base_index", "refine_index", "storage"):
        inner = getattr(index, name, None)
        if isinstance(inner, faiss.Index):
            yield from _parts(inner)


def _is_sound(index: Any, size: int) -> bool:
    """What FAISS believes when it reads, and ends the process over when the index is built again."""
    quantizer = getattr(index, "sq", None)
    known = vars(faiss.ScalarQuantizer).items()
    types, ranges = ([value for name, value in known if name.startswith(kind)] for kind in ("QT_", "RS_"))
    # A vector takes a byte at least.
    return 0 <= index.ntotal <= size and (
        quantizer is None or (quantizer.qtype in types and quantizer.rangestat in ranges)
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
