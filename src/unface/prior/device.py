"""Where pictures are made, asked for by name."""

import torch

from unface.errors import UnfaceError


def require_device(device: str) -> None:
    """Refuse a device that is not here: before weights are fetched for it."""
    kind, colon, number = device.partition(":")
    if kind not in ("cpu", "cuda") or (colon and not number.isdecimal()):
        raise UnfaceError(f"device {device!r} is not known; use 'cpu' or 'cuda'")
    if kind == "cuda" and not torch.cuda.is_available():
        raise UnfaceError(f"device {device!r}: PyTorch finds no GPU here; use 'cpu'")
    there = torch.cuda.device_count() if kind == "cuda" else 1
    if colon and int(number) >= there:
        raise UnfaceError(f"device {device!r}: there are {there} of that kind here, counted from 0")
