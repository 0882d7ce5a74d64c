"""Where pictures are made, asked for by name."""

import torch

from unface.errors import UnfaceError


def require_device(device: str) -> None:
    """Refuse a device that is not here: before weights are fetched for it."""
    if device.split(":", maxsplit=1)[0] not in ("cpu", "cuda"):
        raise UnfaceError(f"device {device!r} is not known; use 'cpu' or 'cuda'")
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise UnfaceError("device 'cuda': PyTorch finds no GPU here; use 'cpu'")
