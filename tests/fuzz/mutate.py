"""What a reader is, and how its files are damaged."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Reader:
    """``originals`` are read without an error; ``read`` raises AssertionError where it made nonsense of a mutant."""

    originals: Callable[[Path], list[bytes]]
    read: Callable[[Path], object]
    is_text: bool = False
    is_json: bool = False
    is_lines: bool = False
    """Of JSON, one object each."""
    is_safetensors: bool = False


_TEXT = (
    *("9" * 5000, "0x" + "f" * 5000, "-1", "1e400", "NaN", "null", "true", '""', "[]", "{}", "[" * 3000, '"\\ud800"'),
    *("\x00", "\x1b[2J", "9" * 400, "0x" + "f" * 300, "\n", "=", '"', "'''", "1979-05-27T07:32:00Z", "\u202e"),
)


def mutant_of(reader: Reader, original: bytes, rng: np.random.Generator) -> bytes:
    """Damaged bytes, or for JSON most often a value that is changed and still of the right form."""
    if reader.is_safetensors and rng.integers(4):
        return _changed_header(original, rng)
    if reader.is_lines and rng.integers(4):
        lines = original.splitlines()
        at = int(rng.integers(len(lines)))
        lines[at] = _changed(lines[at], rng)
        return b"\n".join(lines) + b"\n"
    if reader.is_json and rng.integers(4):
        return _changed(original, rng)
    return mutated(original, rng, is_text=reader.is_text)


def _changed(original: bytes, rng: np.random.Generator) -> bytes:
    content = json.loads(original)
    for _ in range(int(rng.integers(1, 3))):
        _change_value(content, rng)
    return json.dumps(content).encode()


def _changed_header(original: bytes, rng: np.random.Generator) -> bytes:
    """Of safetensors: names, shapes and places of tensors, or the JSON that stands in its metadata; or damaged text."""
    length = int.from_bytes(original[:8], "little")
    header = original[8 : 8 + length]
    content = json.loads(header)
    said = content.get("__metadata__", {})
    if said and rng.integers(3):
        key = sorted(said)[int(rng.integers(len(said)))]
        text = said[key].encode()
        nested = text[:1] in b"{[" and rng.integers(4)
        said[key] = (_changed(text, rng) if nested else mutated(text, rng, is_text=True)).decode("utf-8", "replace")
        header = json.dumps(content).encode()
    else:
        header = _changed(header, rng) if rng.integers(4) else mutated(header, rng, is_text=True)
    return len(header).to_bytes(8, "little") + header + original[8 + length :]


def _change_value(content: Any, rng: np.random.Generator) -> None:
    """A value somewhere in a tree: removed, doubled, or replaced by one of its kind."""
    keys: list[Any] = []
    while isinstance(content, dict | list) and content:
        keys = list(content) if isinstance(content, dict) else list(range(len(content)))
        key = keys[int(rng.integers(len(keys)))]
        inner = content[key]
        if not isinstance(inner, dict | list) or not inner or rng.integers(6) == 0:
            break
        content = inner
    if not keys:
        return
    how = int(rng.integers(4))
    if how == 0:
        del content[key]
    elif how == 1 and isinstance(content, list):
        content.append(content[key])
    elif isinstance(inner, bool) or inner is None:
        content[key] = not inner
    elif isinstance(inner, int):
        content[key] = int(rng.choice([0, -1, 1, 2, 2**31, 2**62]))
    elif isinstance(inner, float):
        content[key] = float(rng.choice([0.0, -1.0, 1.0, 1e-320, 1e308, 0.5]))
    elif isinstance(inner, str):
        content[key] = ["", "x", "\x1b[2J", "raw", "\u202e"][int(rng.integers(5))]
    else:
        content[key] = type(inner)()


def mutated(original: bytes, rng: np.random.Generator, *, is_text: bool) -> bytes:
    """Bits flipped, bytes overwritten, a piece cut out, put in or doubled, the end torn off, sizes set to extremes."""
    data = bytearray(original)
    how = int(rng.integers(10 if is_text else 8))
    at, length = int(rng.integers(len(data))), int(rng.integers(1, 17))
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
    elif how == 5:
        # Where the sizes and counts are: zip and Parquet keep their directory at the end.
        tail = len(data) - int(rng.integers(1, min(1200, len(data))))
        data[tail] = int(rng.choice([0x00, 0x7F, 0x80, 0xFF]))
    elif how == 6:
        # The other formats have them in front.
        start = int(rng.integers(min(256, len(data))))
        width = int(rng.choice([1, 2, 4, 8]))
        value = int(rng.choice([0, 1, 2**31 - 1, 2**31, 2**33, 2**40, 2**62, 2**63 - 1])) % (1 << (8 * width))
        data[start : start + width] = value.to_bytes(width, str(rng.choice(["little", "big"])))  # type: ignore[arg-type]
    elif how == 7:
        data[at:at] = data[at : at + 64 * length]
    else:
        # A value replaced by another: half of the time one that the format allows.
        token = str(rng.choice(_TEXT)).encode("utf-8", "surrogatepass")
        ends = [place for place in range(at, min(len(data), at + 200)) if data[place] in b",\n}]"]
        begins = [place for place in range(at, max(0, at - 200), -1) if data[place] in b"=:[ "]
        data[begins[0] + 1 if begins else at : ends[0] if ends else at] = token
    return bytes(data)
