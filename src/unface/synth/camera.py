"""A picture as it will lie in the folder, compressed and read again, and the face that judges see on it."""

from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO

import numpy as np
from numpy.typing import NDArray

from unface.data import decode
from unface.encode import aligned, framed
from unface.faces import Detector, main_face
from unface.models import Input


@dataclass(frozen=True, eq=False)
class Shot:
    """``frames`` is the face as each judge takes it; None where no face was found."""

    jpeg: bytes
    frames: tuple[NDArray[np.uint8], ...] | None


@dataclass(frozen=True, eq=False)
class Camera:
    """Safe to call from several threads. Judges see the file's pixels, not those it was made from."""

    detector: Detector
    wanted: Sequence[Input]

    def __call__(self, picture: NDArray[np.uint8], quality: int) -> Shot:
        jpeg = compressed(picture, quality)
        image = decode(jpeg)
        face = main_face(self.detector.detect(image), image.shape)
        if face is None:
            return Shot(jpeg, None)
        cut = {wanted: framed(aligned(image, face, wanted), wanted) for wanted in {_cut(one) for one in self.wanted}}
        return Shot(jpeg, tuple(cut[_cut(one)] for one in self.wanted))


def compressed(picture: NDArray[np.uint8], quality: int) -> bytes:
    """As JPEG."""
    from PIL import Image

    file = BytesIO()
    Image.fromarray(picture).save(file, format="JPEG", quality=quality)
    return file.getvalue()


def _cut(wanted: Input) -> Input:
    """What of an input decides how a face is cut out: judges that agree on that share one."""
    from dataclasses import replace

    return replace(wanted, layout="NHWC", channels="RGB", dtype="uint8", mean=(0.0, 0.0, 0.0), std=(1.0, 1.0, 1.0))
