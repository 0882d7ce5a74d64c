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
FORCE = typer.Option(False, "--force", help="Overwrite what is there.")
JSON = typer.Option(False, "--json", help="Print audit.json on standard output instead of the table.")
QUIET = typer.Option(False, "--quiet", help="Print nothing but errors.")
THREADS = typer.Option(None, "--threads", min=1, help="Threads to use; all cores if not given. Never changes a number.")
RANK = typer.Option(None, "--rank", min=1, help="Dimensions to remove [default: 3/8 of them].")
FIT_ON = typer.Option(None, "--fit-on", help="Fit erasers on this set of other people.")
UTILITY = typer.Option([], "--utility", help="Labelled vectors or copies that must stay useful.")
UTILITY_AWARE = typer.Option(None, "--utility-aware", help="Vectors of the task that a further eraser is to spare.")
SWEEP = typer.Option(True, "--sweep/--no-sweep", help="Measure over ranks, for the frontier.")
FIT_COUNTS = typer.Option([], "--fit-counts", help="Measure over these numbers of fit identities.")
FAR = typer.Option(["1e-3,1e-4"], "--far", help="False-accept rates, repeated or with commas.")
K = typer.Option([], "--k", help="Support images for each identity [default: of 1,4,16 what fits].")
SEEDS = typer.Option(5, "--seeds", min=1, help="Draws of support and query images.")
SEED = typer.Option(0, "--seed", min=0, help="Of every random choice.")
