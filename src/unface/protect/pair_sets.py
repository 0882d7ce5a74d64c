"""Pair verification: pictures and lists of pairs as others publish them, and accuracy by the 10-fold rule."""

import pickletools
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unface.data import ImageRef, ImageSet, read_images
from unface.errors import UnfaceError, reason
from unface.faces import Detector
from unface.protect.facemae_frames import each_face

FOLDS = 10
_LARGEST = 2 << 30  # bytes of a pack: AgeDB's has 70 MB


@dataclass(frozen=True, eq=False)
class PairSet:
    """Aligned faces (n, size, size, 3), the rows of each pair (p, 2), whether it shows one person, and its fold."""

    name: str
    frames: NDArray[np.uint8]
    pairs: NDArray[np.int64]
    mated: NDArray[np.bool_]
    folds: NDArray[np.int64]

    def accuracies(self, vectors: NDArray[np.float32]) -> NDArray[np.float64]:
        """(folds,): of unit vectors of the frames."""
        left, right = (vectors[self.pairs[:, side]].astype(np.float64) for side in (0, 1))
        return ten_fold(np.einsum("pd,pd->p", left, right), self.mated, self.folds)


def ten_fold(scores: NDArray[np.float64], mated: NDArray[np.bool_], folds: NDArray[np.int64]) -> NDArray[np.float64]:
    """Accuracy in each fold at the threshold that is best in all others."""
    found = []
    for fold in np.unique(folds):
        here = folds == fold
        threshold = best_threshold(scores[~here], mated[~here])
        found.append(np.mean((scores[here] >= threshold) == mated[here]))
    return np.array(found)


def best_threshold(scores: NDArray[np.float64], mated: NDArray[np.bool_]) -> float:
    """The score at which accepting it and all above makes the fewest mistakes."""
    order = np.argsort(-scores, kind="stable")
    ranked = scores[order]
    hits: NDArray[np.int64] = np.cumsum(mated[order]) - np.cumsum(~mated[order])
    last = np.append(ranked[1:] != ranked[:-1], True)  # equal scores are accepted together
    return float(ranked[np.argmax(np.where(last, hits, np.iinfo(np.int64).min))])


def read_pair_set(text: str, size: int, detector: Detector | None = None) -> PairSet:
    """``PACK.bin`` in insightface's layout, or ``PICTURES,PAIRS.TXT`` in LFW's."""
    pictures, comma, listed = text.rpartition(",")
    if comma:
        try:
            content = Path(listed).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UnfaceError(f"{listed}: cannot be read ({reason(error)}); expected LFW's list of pairs") from None
        return listed_pairs(read_images(pictures), content, size, detector)
    if Path(text).suffix != ".bin":
        raise UnfaceError(f"--pairs {text}: expected PACK.bin, or PICTURES,PAIRS.TXT")
    return packed_pairs(Path(text), size)


def listed_pairs(images: ImageSet, text: str, size: int, detector: Detector | None = None) -> PairSet:
    """LFW's 6,000 pairs, or another list in its format; without a detector the pictures are aligned already."""
    names, mated, folds = read_pairs(text)
    wanted = {name for pair in names for name in pair}
    refs = [image for image in images if Path(image.id).stem in wanted]
    missing = wanted - {Path(ref.id).stem for ref in refs}
    if missing:
        raise UnfaceError(
            f"{images.source}: {len(missing)} of {len(wanted)} listed pictures are not there, such as {min(missing)}"
        )
    frames = _aligned(refs, size, detector, images.source)
    row = {Path(ref.id).stem: number for number, ref in enumerate(refs)}
    pairs = np.array([(row[first], row[second]) for first, second in names])
    return PairSet("lfw", frames, pairs, mated, folds)


def read_pairs(text: str) -> tuple[list[tuple[str, str]], NDArray[np.bool_], NDArray[np.int64]]:
    """Picture names of each pair, whether they are of one person, and the fold; folds are 300 + 300 pairs in order."""
    lines = [line.split() for line in text.splitlines() if line.strip()]
    try:
        folds, half = (int(number) for number in lines[0])
        pairs = []
        for words in lines[1:]:
            first, second = (words[0], words[1]), (words[-2] if len(words) == 4 else words[0], words[-1])
            pairs.append((f"{first[0]}_{int(first[1]):04d}", f"{second[0]}_{int(second[1]):04d}"))
    except (ValueError, IndexError):
        raise UnfaceError("pairs.txt: is not in LFW's format: folds and pairs, then three or four words") from None
    if len(pairs) != 2 * folds * half:
        raise UnfaceError(f"pairs.txt: {len(pairs)} pairs, its first line promises {2 * folds * half}")
    mated = np.array([len(words) == 3 for words in lines[1:]])
    return pairs, mated, np.arange(len(pairs)) // (2 * half)


def packed_pairs(path: Path, size: int) -> PairSet:
    """A .bin of insightface (``agedb_30.bin``, ``cfp_fp.bin``): pictures two by two, and which two show one person."""
    files, mated = read_pack(path)
    refs = [ImageRef(str(number), "", lambda content=content: content) for number, content in enumerate(files)]  # type: ignore[misc]
    frames = _aligned(refs, size, None, path.name)
    count = len(mated)
    # As scikit-learn's KFold without shuffling, which the packs' own code uses.
    folds = np.concatenate([np.full(len(rows), at) for at, rows in enumerate(np.array_split(np.arange(count), FOLDS))])
    return PairSet(path.stem, frames, np.arange(2 * count).reshape(count, 2), np.array(mated), folds)


def read_pack(path: Path) -> tuple[list[bytes], list[bool]]:
    """The pictures and the answers of a pack.

    Packs are pickles, which can run code. This reads the few opcodes that make lists, tuples, bytes and booleans, and
    refuses any other; nothing is imported or called.
    """
    try:
        if path.stat().st_size > _LARGEST:
            raise UnfaceError(f"{path.name}: has {path.stat().st_size:,} bytes; a pack has at most {_LARGEST:,}")
        value = _plain_value(path.read_bytes())
    except OSError as error:
        raise UnfaceError(f"{path.name}: cannot be read ({reason(error)})") from None
    except (ValueError, IndexError, KeyError, TypeError) as error:
        raise UnfaceError(f"{path.name}: is no pack of pairs ({reason(error)})") from None
    match value:
        case (list() as files, list() as mated) if (
            len(mated) >= FOLDS
            and len(files) == 2 * len(mated)
            and all(type(one) is bytes for one in files)
            and all(type(one) is bool for one in mated)
        ):
            return files, mated
    raise UnfaceError(f"{path.name}: expected a list of pictures, two for each pair, and a list of answers")


def _plain_value(content: bytes) -> object:  # noqa: PLR0912 one branch for each opcode
    stack: list[Any] = []
    marks: list[int] = []
    memo: dict[int, Any] = {}
    for opcode, given, _ in pickletools.genops(BytesIO(content)):
        argument: Any = given
        match opcode.name:
            case "PROTO" | "FRAME":
                pass
            case "EMPTY_LIST":
                stack.append([])
            case "MARK":
                marks.append(len(stack))
            case "BINBYTES" | "SHORT_BINBYTES" | "BINBYTES8":
                stack.append(argument)
            case "BINSTRING" | "SHORT_BINSTRING":  # str of Python 2
                stack.append(argument.encode("latin-1"))
            case "NEWTRUE" | "NEWFALSE":
                stack.append(opcode.name == "NEWTRUE")
            case "BINPUT" | "LONG_BINPUT":
                memo[argument] = stack[-1]
            case "MEMOIZE":
                memo[len(memo)] = stack[-1]
            case "BINGET" | "LONG_BINGET":
                stack.append(memo[argument])
            case "APPEND":
                value = stack.pop()
                stack[-1].append(value)
            case "APPENDS":
                at = marks.pop()
                values = stack[at:]
                del stack[at:]
                stack[-1].extend(values)
            case "TUPLE2":
                stack[-2:] = [(stack[-2], stack[-1])]
            case "TUPLE":
                at = marks.pop()
                stack[at:] = [tuple(stack[at:])]
            case "STOP":
                return stack.pop()
            case other:
                raise ValueError(f"it holds {other}, which a list of pictures does not need")
    raise ValueError("it is cut off")


def _aligned(refs: Sequence[ImageRef], size: int, detector: Detector | None, source: str) -> NDArray[np.uint8]:
    frames = []
    for ref, found in zip(refs, each_face(refs, size, detector, None, lambda frame: frame.pixels), strict=True):
        if isinstance(found, str):
            raise UnfaceError(f"{source}: picture {ref.id} cannot be used ({found})")
        frames.append(found)
    return np.stack(frames)
