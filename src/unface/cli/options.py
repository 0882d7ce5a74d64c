"""Option values that more than one verb reads the same way."""

import typer

from unface.errors import UnfaceError


def numbers(values: list[str], option: str) -> list[float]:
    """``--far 1e-3 --far 1e-4`` and ``--far 1e-3,1e-4`` alike."""
    found = []
    for part in ",".join(values).split(","):
        try:
            found.append(float(part))
        except ValueError:
            raise UnfaceError(f"{option}: {part!r} is not a number") from None
    return found


def whole_numbers(values: list[str], option: str) -> list[int]:
    """The same for counts."""
    found = numbers(values, option)
    for number in found:
        if not number.is_integer():
            raise UnfaceError(f"{option}: {number:g} is not a whole number")
    return [int(number) for number in found]


def names(values: list[str]) -> list[str]:
    """``--probe cosine --probe ridge`` and ``--probe cosine,ridge`` alike."""
    return [part.strip() for part in ",".join(values).split(",")] if values else []


OUT = typer.Option(..., "--out", help="Folder for audit.json and report.html; made if missing.")
FORCE = typer.Option(False, "--force", help="Overwrite a finished audit.")
JSON = typer.Option(False, "--json", help="Print audit.json on standard output instead of the table.")
QUIET = typer.Option(False, "--quiet", help="Print nothing but errors.")
THREADS = typer.Option(None, "--threads", min=1, help="Threads to use; all cores if not given. Never changes a number.")
