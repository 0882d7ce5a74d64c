"""If this fails, a picture reaches an encoder on its side or in wrong colours, or takes the process down with it."""

import struct
import threading
import tracemalloc
import warnings
import zlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from tests.data.pictures import encoded, jpeg
from tests.refusals.table import refused
from unface.data import BadPicture, decode


def half_red(width: int = 40, height: int = 20) -> Image.Image:
    """Left half red, right half blue."""
    image = Image.new("RGB", (width, height), (255, 0, 0))
    image.paste((0, 0, 255), (width // 2, 0, width, height))
    return image


def colour_at(pixels: np.ndarray, row: int, column: int) -> str:
    return "RGB"[int(np.argmax(pixels[row, column]))]


def test_a_plain_picture_comes_as_height_width_rgb() -> None:
    pixels = decode(encoded(half_red(), "PNG"))
    assert pixels.shape == (20, 40, 3)
    assert pixels.dtype == np.uint8
    np.testing.assert_array_equal(pixels, np.asarray(half_red()))


@pytest.mark.parametrize(
    ("orientation", "red_corner", "shape"),
    [
        (1, (0, 0), (20, 40)),
        (2, (0, -1), (20, 40)),
        (3, (0, -1), (20, 40)),
        (4, (0, 0), (20, 40)),
        (5, (0, 0), (40, 20)),
        (6, (0, 0), (40, 20)),
        (7, (-1, 0), (40, 20)),
        (8, (-1, 0), (40, 20)),
    ],
)
def test_exif_orientation_is_applied(orientation: int, red_corner: tuple[int, int], shape: tuple[int, int]) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    pixels = decode(encoded(half_red(), "JPEG", quality=95, exif=exif))
    assert pixels.shape[:2] == shape
    assert colour_at(pixels, *red_corner) == "R"
    opposite = (-1 if red_corner[0] == 0 else 0, -1 if red_corner[1] == 0 else 0)
    assert colour_at(pixels, *opposite) == "B"


def test_unreadable_exif_turns_nothing() -> None:
    plain = encoded(half_red(), "JPEG")
    broken = (
        plain[:2] + b"\xff\xe1" + struct.pack(">H", 2 + 6 + 9) + b"Exif\0\0" + b"II*\0\xff\xff\xff\xff\xff" + plain[2:]
    )
    assert decode(broken).shape == (20, 40, 3)


def test_greyscale_one_bit_and_palette_become_rgb() -> None:
    grey = decode(encoded(Image.new("L", (4, 4), 77), "PNG"))
    assert (grey == 77).all()
    assert (decode(encoded(Image.new("1", (4, 4), 1), "PNG")) == 255).all()
    palette = decode(encoded(half_red().quantize(4), "PNG"))
    assert colour_at(palette, 0, 0) + colour_at(palette, 0, -1) == "RB"


def test_cmyk_keeps_its_colours() -> None:
    pixels = decode(encoded(half_red().convert("CMYK"), "JPEG", quality=95))
    assert colour_at(pixels, 10, 5) + colour_at(pixels, 10, 35) == "RB"


def test_sixteen_bits_are_scaled_and_not_clipped() -> None:
    levels = np.array([[0, 32768, 65535]], dtype=np.uint16)
    assert decode(encoded(Image.fromarray(levels), "PNG"))[0, :, 1].tolist() == [0, 128, 255]


def test_transparent_parts_are_white() -> None:
    clear = Image.new("RGBA", (4, 4), (10, 20, 30, 0))
    assert (decode(encoded(clear, "PNG")) == 255).all()
    assert (decode(encoded(Image.new("LA", (4, 4), (10, 0)), "PNG")) == 255).all()


def test_the_first_frame_of_an_animation_is_taken() -> None:
    frames = [Image.new("RGB", (8, 8), colour) for colour in ("red", "blue", "green")]
    content = encoded(frames[0], "GIF", save_all=True, append_images=frames[1:])
    assert colour_at(decode(content), 4, 4) == "R"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty file"),
        (b"hello, I am a text", "not a picture"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n", "not a picture"),
        (jpeg(size=(200, 200))[:2000], "truncated or damaged"),
        (encoded(half_red(), "PNG")[:60], "truncated or damaged"),
        (jpeg()[:20], "truncated or damaged|not a picture"),
        (encoded(Image.new("F", (4, 4)), "TIFF"), "pixels of 32 bits"),
    ],
)
def test_what_cannot_be_used_has_a_reason(content: bytes, reason: str) -> None:
    with pytest.raises(BadPicture) as caught:
        decode(content)
    assert caught.value.reason in reason.split("|")


def bomb(side: int) -> bytes:
    """A PNG whose header promises side² pixels; a few hundred bytes."""

    def chunk(name: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    pixels = zlib.compress(b"\0" * 100_000)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def test_pillow_says_nothing_beside_the_refusal_whichever_thread_ends_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second thread opens its picture after the first has put the filters of warnings back."""
    content, whole, inside, ended = bomb(9_500), Image.open, threading.Event(), threading.Event()

    def refuse() -> None:
        with refused("bad-picture", None, "many"):
            decode(content)

    def held(*given: Any, **more: Any) -> Any:
        if threading.current_thread() is second:
            inside.set()
            assert ended.wait(60)
        elif not inside.is_set():
            second.start()
            assert inside.wait(60)
        return whole(*given, **more)

    second = threading.Thread(target=refuse)
    monkeypatch.setattr(Image, "open", held)
    with warnings.catch_warnings(record=True) as said:
        refuse()
        ended.set()
        second.join()
    assert said == []


@pytest.mark.parametrize("side", [9_500, 50_000])
def test_a_decompression_bomb_is_refused_by_its_header(side: int) -> None:
    tracemalloc.start()
    with refused("bad-picture", None, "many"):
        decode(bomb(side))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10 << 20


@settings(max_examples=150)
@given(st.data())
def test_flipped_bytes_give_pixels_or_a_reason_and_nothing_else(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(["JPEG", "PNG", "GIF", "BMP", "TIFF", "WEBP"]))
    content = bytearray(encoded(half_red(), kind))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, min(len(content), 400) - 1))] = data.draw(st.integers(0, 255))
    try:
        pixels = decode(bytes(content))
    except BadPicture:
        return
    assert pixels.ndim == 3
    assert pixels.shape[2] == 3
