"""Encoding pictures from a zip against nothing but ONNX Runtime over tensors that lie ready."""

import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from PIL import Image, ImageDraw

from benchmarks.ratios import Ratio, cpu_seconds
from unface.data import ImageSet, decode, read_images
from unface.encode import encode_images, load_encoder, tensor_of
from unface.encode.onnx import OnnxEncoder
from unface.faces import Detector, load_detector
from unface.seeds import stream

PICTURES, SIDE, BATCH = 96, 250, 32
FACE = (
    ((79, 65, 171, 185), (60, 40, 30)),  # hair
    ((83, 69, 167, 181), (224, 172, 140)),
    ((98, 108, 116, 118), (50, 30, 20)),  # eyes, nose, mouth
    ((134, 108, 152, 118), (50, 30, 20)),
    ((117, 130, 133, 142), (190, 130, 105)),
    ((108, 150, 142, 160), (180, 70, 70)),
)


def run() -> list[Ratio]:
    """96 pictures of 250 × 250, as LFW's are; CPU time, so that what else the machine does counts less."""
    found: list[Ratio] = []
    detector = load_detector("yunet")
    with TemporaryDirectory() as name:
        folder = Path(name)
        images = read_images(archive(folder / "pictures.zip"))
        for model in ("sscd-int8", "dinov2-s-focus"):
            encoder = load_encoder(model, threads=1)
            assert isinstance(encoder, OnnxEncoder)
            bare = cpu_seconds(bare_loop(encoder, images), 2)
            plain = cpu_seconds(whole(encoder, images, folder, None), 2)
            faces = cpu_seconds(whole(encoder, images, folder, detector), 2)
            found += [
                ratio(f"bare ONNX Runtime on ready tensors / `encode` with {model}", bare, plain, 0.9),
                ratio(f"the same with {model}, faces found and context noted", bare, faces, 0.9),
            ]
    return found


def archive(path: Path, pictures: int = PICTURES) -> Path:
    """Pictures of nobody: a drawn face that detectors find, on noise that JPEG packs about as it does a photograph."""
    with zipfile.ZipFile(path, "w") as file:
        for number in range(pictures):
            coarse = stream(number, "picture").integers(0, 256, (40, 40, 3), dtype=np.uint8)
            picture = Image.fromarray(coarse).resize((SIDE, SIDE), Image.Resampling.BICUBIC)
            for box, colour in FACE:
                ImageDraw.Draw(picture).ellipse(box, fill=colour)
            buffer = io.BytesIO()
            picture.save(buffer, "JPEG", quality=85)
            file.writestr(f"p{number % 8}/{number:04d}.jpg", buffer.getvalue())
    return path


def bare_loop(encoder: OnnxEncoder, images: ImageSet) -> Callable[[], None]:
    pictures = [decode(image.read()) for image in images]
    ready = [tensor_of(pictures[start : start + BATCH], encoder.card.input) for start in range(0, len(pictures), BATCH)]

    def work() -> None:
        for batch in ready:
            encoder._session.run(None, {encoder._input: batch})

    return work


def whole(encoder: OnnxEncoder, images: ImageSet, folder: Path, detector: Detector | None) -> Callable[[], None]:
    def work() -> None:
        encode_images(images, encoder, folder / "out.parquet", detector=detector, batch=BATCH, threads=1, force=True)

    return work


def ratio(name: str, bare: float, ours: float, bound: float) -> Ratio:
    detail = f"{1e3 * bare / PICTURES:.1f} against {1e3 * ours / PICTURES:.1f} ms a picture"
    return Ratio(f"{name}, CPU", bare / ours, bound, True, detail)
