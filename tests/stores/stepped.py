"""A step of somebody else's library at which the process ends."""

from collections.abc import Callable
from typing import Any


def killing(whole: Callable[..., object], before: bool) -> Callable[..., None]:
    """As if the process ended right before or right after."""

    def killed(*given: Any, **more: Any) -> None:
        if not before:
            whole(*given, **more)
        raise KeyboardInterrupt

    return killed
