"""Code of others, by name: a function as ``module:function``, or what a package registers under an entry point."""

import importlib
import sys
from collections.abc import Callable, Iterable
from importlib.metadata import entry_points
from typing import Any, TypeVar

from unface.errors import UnfaceError, reason

Made = TypeVar("Made")


def registered(
    what: str, name: str, make: Callable[[Any], Made], kind: type | None = None, *, unfit: str | None = None
) -> Made | None:
    """``make`` of what a package registers as ``name`` under ``unface.<what>s``; None where none does.

    One line says what is wrong with a package that fails, or that makes something else than a ``kind``; ``unfit`` is
    that line where something else has a use of its own.
    """
    for found in entry_points(group=f"unface.{what}s", name=name):
        try:
            made = make(found.load())
        except UnfaceError:
            raise
        except Exception as error:  # whatever a package of others does when it is imported
            told = f"{found.value} cannot be loaded ({reason(error)})"
            raise UnfaceError(f"{what} {name!r}: {told}; repair that package") from None
        if kind is not None and not isinstance(made, kind):
            wrong = unfit or f"{found.value} makes no {kind.__module__}.{kind.__qualname__}"
            raise UnfaceError(f"{what} {name!r}: {wrong}")
        return made
    return None


def unknown(what: str, name: str, known: Iterable[str]) -> UnfaceError:
    """The refusal of a name, with those there are: ``known`` ones, and what packages register."""
    every = [*known, *sorted(entry_points(group=f"unface.{what}s").names)]
    return UnfaceError(f"{what} {name!r} is not known; choose from {', '.join(every)}")


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
