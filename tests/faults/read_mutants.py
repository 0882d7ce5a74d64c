"""Run by test_readers_fuzz.py in a process of its own: reads damaged files and tells how each ended.

Usage: read_mutants.py KIND COUNT SEED FOLDER. Prints one JSON object; the case under way is in FOLDER/case,
so that a crash names the file that caused it.
"""

import json
import re
import resource
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from unface.data import EmbeddingSet, make_identities, read_embeddings, write_embeddings
from unface.errors import UnfaceError

# A corrupt header that asks for more than this must be an error, not a machine that swaps.
MEMORY = 6 << 30


def main(kind: str, count: int, seed: int, folder: Path) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    originals = parquet_originals(folder) if kind == "parquet" else npz_originals(folder)
    for original in originals:  # a control: undamaged, every one of them is read
        (folder / "mutant").write_bytes(original)
        read_embeddings(folder / "mutant", bad_rows="drop")
    outcomes = {"read": 0, "refused": 0, "changed": 0}
    wrong: list[str] = []
    for case in range(count):
        rng = np.random.default_rng([seed, case])
        original = originals[case % len(originals)]
        mutant = mutated(original, rng)
        path = folder / "mutant"
        path.write_bytes(mutant)
        (folder / "case").write_text(str(case))
        try:
            found = read_embeddings(path, bad_rows=("fail", "drop")[rng.integers(2)])
            outcomes["read"] += 1
            outcomes["changed"] += mutant != original
            if not isinstance(found, EmbeddingSet) or not np.isfinite(found.vectors).all():
                wrong.append(f"case {case}: read into nonsense")
        except UnfaceError as error:
            outcomes["refused"] += 1
            if len(str(error).splitlines()) != 1 or not str(error).startswith("mutant: "):
                wrong.append(f"case {case}: not our one line: {str(error)!r}")
        except BaseException as error:
            wrong.append(f"case {case}: {type(error).__name__}: {error}")
    print(json.dumps({**outcomes, "wrong": wrong, "peak_mib": _peak_mib()}))


def _peak_mib() -> int:
    """Of this process alone: what getrusage tells is never less than what the parent held when it forked."""
    told = Path("/proc/self/status").read_text(encoding="ascii")
    return int(re.search(r"VmHWM:\s+(\d+)", told)[1]) // 1024  # type: ignore[index]


def mutated(original: bytes, rng: np.random.Generator) -> bytes:
    """One to four bits flipped, bytes overwritten, a piece cut out, put in or doubled, or the end torn off."""
    data = bytearray(original)
    how = rng.integers(6)
    at = int(rng.integers(4, len(data)))
    length = int(rng.integers(1, 17))
    if how == 0:
        for _ in range(int(rng.integers(1, 5))):
            data[int(rng.integers(len(data)))] ^= 1 << int(rng.integers(8))
    elif how == 1:
        data[at : at + length] = rng.bytes(min(length, len(data) - at))
    elif how == 2:
        data[at:at] = rng.bytes(length)
    elif how == 3:
        del data[at : at + length]
    elif how == 4:
        del data[at:]
    else:
        # Where the sizes and counts are: both formats keep their directory at the end.
        tail = len(data) - int(rng.integers(1, min(1200, len(data) - 4)))
        data[tail] = int(rng.choice([0x00, 0x7F, 0x80, 0xFF]))
    return bytes(data)


def parquet_originals(folder: Path) -> list[bytes]:
    embeddings = make_identities(20, 5, 8)
    path = folder / "original"
    write_embeddings(embeddings, path)
    files = [path.read_bytes()]
    write_embeddings(embeddings, path, dtype="float16")
    files.append(path.read_bytes())
    # As others write it: no checksums, variable lists with nulls, dictionaries, several row groups, compression.
    vectors = [row.tolist() if number != 3 else None for number, row in enumerate(embeddings.vectors)]
    names = pa.array([embeddings.names[code] for code in embeddings.identities])
    table = pa.table({"identity": names.dictionary_encode(), "vector": vectors, "age": [20, None] * 50})
    for options in ({"compression": "none"}, {"compression": "zstd", "data_page_version": "2.0", "row_group_size": 30}):
        pq.write_table(table, path, **options)
        files.append(path.read_bytes())
    return files


def npz_originals(folder: Path) -> list[bytes]:
    embeddings = make_identities(20, 5, 8)
    names = np.array([embeddings.names[code] for code in embeddings.identities])
    path = folder / "original.npz"
    files = []
    for save in (np.savez, np.savez_compressed):
        for identities in (names, embeddings.identities, names.astype("S")):
            save(path, vectors=embeddings.vectors, identities=identities, ids=embeddings.ids.astype(str))
            files.append(path.read_bytes())
    return files


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
