"""Functions that a user names as ``module:function``: imported from the current folder or from what is installed."""

import importlib
import sys
from collections.abc import Callable
from typing import Any

from unface.errors import UnfaceError, reason


def imported_function(text: str) -> Callable[..., Any]:
    """The function; one line says what is wrong where there is none."""
    module, _, name = text.partition(":")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        found: object = getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        raise UnfaceError(f"{text}: no module {error.name!r} here; run in the folder that holds it") from None
    except AttributeError:
        raise UnfaceError(f"{text}: {module} has no {name!r}") from None
    except Exception as error:  # whatever somebody's module does when it is imported
        raise UnfaceError(f"{text}: cannot be imported ({type(error).__name__}: {reason(error)})") from None
    if not callable(found):
        raise UnfaceError(f"{text}: is not a function")
    return found
