"""Attribution, from pictures to its three measures, against nothing but encoding the pictures that it perturbs."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from benchmarks.ratios import Ratio, cpu_seconds
from unface.attribute import LocatedPicture, Reader, attribute, reader_of
from unface.encode import load_encoder
from unface.faces import ARCFACE_112, Face
from unface.faces.face_swap import swap_face
from unface.seeds import stream

IDENTITIES, PICTURES, SIDE = 4, 3, 250


def run() -> list[Ratio]:
    """12 pictures of 250 × 250, as LFW's are, and the 204 that are made of them; CPU time, so with no core to spare."""
    pictures = [picture(who, number) for who in range(IDENTITIES) for number in range(PICTURES)]
    return [ratio(pictures, model) for model in ("sscd-int8", "mobilenet-v2")]


def ratio(pictures: list[LocatedPicture], model: str) -> Ratio:
    reader = reader_of(load_encoder(model, threads=1))
    batches = batches_of(pictures, reader)
    count = sum(map(len, batches))
    assert count == 17 * len(pictures), "a swap failed, and less is measured than is said"
    bare = cpu_seconds(lambda: [reader.encode(batch) for batch in batches], 2)
    whole = cpu_seconds(lambda: attribute(pictures, reader, swap_face, threads=1), 2)
    detail = f"{1e3 * whole / count:.1f} against {1e3 * bare / count:.1f} ms for each of {count} pictures"
    return Ratio(
        f"attribution / encoding its perturbed pictures alone with {model}, CPU", whole / bare, 1.2, detail=detail
    )


def picture(who: int, number: int) -> LocatedPicture:
    """Of nobody: coarse noise made smooth, with a face said to be in its middle."""
    coarse = stream(number, "picture", who).integers(0, 256, (40, 40, 3), dtype=np.uint8)
    image = np.asarray(Image.fromarray(coarse).resize((SIDE, SIDE), Image.Resampling.BICUBIC))
    face = Face(np.array([88.0, 92.0, 74.0, 98.0]), ARCFACE_112 + 69, 1.0)
    return LocatedPicture(f"{who}/{number}", str(who), image, face)


def batches_of(pictures: list[LocatedPicture], reader: Reader) -> list[list[NDArray[np.uint8]]]:
    """What attribution gives to the encoder."""
    seen: list[list[NDArray[np.uint8]]] = []

    def kept(images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        seen.append(list(images))
        return reader.encode(images)

    attribute(pictures, replace(reader, encode=kept), swap_face)
    return seen
