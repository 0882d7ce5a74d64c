"""``unface synth``: identity-labelled pictures of people who do not exist."""

import json as jsonlib
from importlib.util import find_spec
from pathlib import Path

import typer

from unface.cli.options import QUIET, names
from unface.errors import UnfaceError


def synth(
    identities: int = typer.Option(..., "--identities", help="People to make."),
    images: int = typer.Option(..., "--images", help="Pictures of each."),
    out: Path = typer.Option(..., "--out", help="Folder for <identity>/<image>.jpg and synth.json; new or empty."),
    size: int = typer.Option(256, "--size", help="Height and width of the pictures, 64 to 1024."),
    seed: int = typer.Option(0, "--seed", help="Seed of every random choice."),
    truncation: float = typer.Option(0.8, "--truncation", help="Near 0 faces are clean and alike, at 1 varied."),
    judges: list[str] = typer.Option(
        ["arcface-mbf", "sface"], "--judges", help="Recognisers that must agree, two or more, repeated or with commas."
    ),
    device: str = typer.Option("cpu", "--device", help="cpu or cuda."),
    accept_licence: bool = typer.Option(False, "--accept-licence", help="Accept weights for research use only."),
    threads: int | None = typer.Option(
        None,
        "--threads",
        min=1,
        help="Most cores to use; on a CPU the number may change single grey levels.",
    ),
    json: bool = typer.Option(False, "--json", help="Print synth.json."),
    quiet: bool = QUIET,
) -> None:
    """Make pictures of people who do not exist, kept apart and accepted by face recognisers.

    If a run is interrupted, the same command continues it.
    """
    if find_spec("torch") is None:
        raise UnfaceError("generated faces need torch, not installed; run pip install 'unface[torch]'")
    from unface.cli.show import progress_bars, say
    from unface.faces import load_detector
    from unface.judge import load_panel
    from unface.models import card
    from unface.prior import load_prior, require_device
    from unface.synth import Recipe, origin_of, require_free, synthesise

    recipe = Recipe(identities, images, size, seed, truncation)
    require_free(out)
    require_device(device)
    with progress_bars(quiet=quiet or json) as progress:
        asked = names(judges)
        panel = load_panel(asked, device=device, accept_licence=accept_licence, threads=threads, progress=progress)
        prior = load_prior(device=device, accept_licence=accept_licence, threads=threads, progress=progress)
        detector = load_detector(accept_licence=accept_licence)
        origins = [
            origin_of("prior", prior.name, *(card(f"{prior.name}-{part}") for part in ("mapping", "synthesis"))),
            origin_of("detector", detector.name, card(detector.name)),
            *(origin_of("judge", name, card(name)) for name in asked),
        ]
        made = synthesise(recipe, prior, panel, detector, out, origins=origins, threads=threads, progress=progress)
    if json:
        typer.echo(jsonlib.dumps(made.as_json(), indent=2, ensure_ascii=False))
    elif not quiet:
        for line in made.sentences():
            say(line)
