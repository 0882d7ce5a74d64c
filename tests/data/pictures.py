"""Pictures of nobody: plain colours and noise, in every layout that faces come in."""

import io
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from PIL import Image

from unface.seeds import stream


def jpeg(seed: int = 0, size: tuple[int, int] = (24, 32)) -> bytes:
    """A small noisy JPEG of (width, height)."""
    width, height = size
    return encoded(Image.fromarray(stream(seed, "jpeg").integers(0, 256, (height, width, 3), dtype=np.uint8)))


def encoded(image: Image.Image, kind: str = "JPEG", **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def people(identities: int = 3, images: int = 2) -> dict[str, bytes]:
    """Paths ``ann0/0001.jpg`` and their bytes."""
    return {
        f"ann{i}/{number + 1:04d}.jpg": jpeg(10 * i + number) for i in range(identities) for number in range(images)
    }


def write_folder(root: Path, files: Mapping[str, bytes]) -> Path:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
    return root


def write_zip(path: Path, files: Mapping[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def write_tar(path: Path, files: Mapping[str, bytes], mode: str = "w") -> Path:
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path
