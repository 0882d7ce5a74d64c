"""OpenVINO's intermediate representation, as far as weights go: the float constants of a graph by name."""

import math
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from unface.errors import UnfaceError


def constants(weights: Path) -> dict[str, NDArray[np.float32]]:
    """Of ``<name>.bin``, described by ``<name>.xml`` beside it, in the order of the graph; other types are left out."""
    content = _read(weights)
    found: dict[str, NDArray[np.float32]] = {}
    for layer in _graph(weights.with_suffix(".xml")).iterfind("./layers/layer[@type='Const']"):
        name, data = layer.get("name", ""), layer.find("data")
        if data is None or data.get("element_type") != "f32":
            continue
        try:
            shape = tuple(int(size) for size in data.attrib["shape"].split(",") if size.strip())
            offset, size = int(data.attrib["offset"]), int(data.attrib["size"])
        except (KeyError, ValueError):
            raise UnfaceError(f"{weights.stem}.xml: constant {name!r} has no shape, offset and size") from None
        if min(shape, default=0) < 0 or size != 4 * math.prod(shape) or not 0 <= offset <= len(content) - size:
            raise UnfaceError(
                f"{weights.name}: constant {name!r} is {size} bytes at {offset} for shape {shape}, which do not fit "
                f"in {len(content)} bytes; fetch both files again"
            )
        found[name] = np.frombuffer(content, "<f4", size // 4, offset).reshape(shape).astype(np.float32)
    return found


def _graph(path: Path) -> ElementTree.Element:
    try:
        text = _read(path).decode("utf-8")
        if "<!DOCTYPE" in text:  # entities, which can be made to grow without end, are declared there and nowhere else
            raise UnfaceError(f"{path.name}: has a document type, which no graph needs; fetch it again")
        return ElementTree.fromstring(text)
    except (UnicodeDecodeError, ElementTree.ParseError) as error:
        raise UnfaceError(f"{path.name}: not a readable graph ({type(error).__name__}); fetch it again") from None


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UnfaceError(f"{path.name}: cannot be opened ({error.strerror}); fetch it again") from None
