"""What stands beside FaceMAE: the same pictures with the same masks, protected in simpler ways of equal budget."""

import hashlib
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from unface.protect.facemae import MaskedAutoencoder, Masking, Preset, Visible, reconstruct

_BATCH = 256


@dataclass(frozen=True, eq=False)
class MaskedFaces:
    """Faces (n, size, size, 3) and the patches of each that its mask shows (n, shown)."""

    frames: NDArray[np.uint8]
    positions: NDArray[np.int64]
    preset: Preset
    ratio: float

    @classmethod
    def of(
        cls, frames: NDArray[np.uint8], contents: list[bytes], masking: Masking, preset: Preset, key: bytes
    ) -> "MaskedFaces":
        """With the masks that ``key`` and a hash of each picture decide."""
        positions = [masking.positions(preset, key, content) for content in contents]
        return cls(frames, np.stack(positions), preset, masking.ratio)

    @property
    def shown(self) -> NDArray[np.bool_]:
        """(n, size, size): visible pixels."""
        preset = self.preset
        patches = np.zeros((len(self.frames), preset.tokens), bool)
        np.put_along_axis(patches, self.positions, True, axis=1)
        grid = patches.reshape(-1, preset.grid, preset.grid)
        return grid.repeat(preset.patch, axis=1).repeat(preset.patch, axis=2)

    def masks(self) -> NDArray[np.uint8]:
        """Hidden patches are black."""
        return self.frames * self.shown[..., None]

    def mean_colour(self) -> NDArray[np.uint8]:
        """Hidden patches have the mean colour of the visible ones."""
        shown = self.shown[..., None]
        sums = (self.frames * shown).sum(axis=(1, 2), dtype=np.int64)
        means = np.rint(sums / shown.sum(axis=(1, 2))).astype(np.uint8)
        return np.where(shown, self.frames, means[:, None, None])

    def low_pass(self) -> NDArray[np.uint8]:
        """As many numbers as the mask shows, spread evenly: made smaller, then as large as before."""
        size = self.preset.size
        side = max(1, round(size * (1 - self.ratio) ** 0.5))
        made = []
        for start in range(0, len(self.frames), _BATCH):
            batch = torch.from_numpy(self.frames[start : start + _BATCH]).permute(0, 3, 1, 2).float()
            small = functional.interpolate(batch, (side, side), mode="bilinear", align_corners=False, antialias=True)
            large = functional.interpolate(small, (size, size), mode="bilinear", align_corners=False)
            made.append(large.round().clamp(0, 255).to(torch.uint8).permute(0, 2, 3, 1).contiguous().numpy())
        return np.concatenate(made)

    def made_by(self, model: MaskedAutoencoder) -> NDArray[np.uint8]:
        """What an autoencoder makes of the visible patches, and of nothing else."""
        made = []
        for start in range(0, len(self.frames), _BATCH):
            rows = range(start, min(start + _BATCH, len(self.frames)))
            shown = [Visible.of(self.frames[row], self.positions[row], self.preset) for row in rows]
            made.append(reconstruct(model, Visible.stacked(shown)))
        return np.concatenate(made)


def contents_of(frames: NDArray[np.uint8]) -> list[bytes]:
    """A hash of each face, for masks of faces whose pictures are not at hand."""
    return [hashlib.sha256(frame.tobytes()).digest() for frame in frames]
