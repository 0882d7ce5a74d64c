"""``unface demo``: the whole loop on people who never were, on data made on the spot."""

from dataclasses import replace
from pathlib import Path

import typer

from unface.cli.options import FORCE, JSON, QUIET, THREADS


def demo(
    out: Path = typer.Option(Path("unface-demo"), "--out", help="Folder for audit.json and report.html."),
    threads: int | None = THREADS,
    force: bool = FORCE,
    json: bool = JSON,
    quiet: bool = QUIET,
) -> None:
    """Measure, erase, measure again: 480 made-up people of 20 pictures each, whose vectors leak who they are."""
    from unface.auditing import audit, require_free
    from unface.cli.bars import progress_bars
    from unface.cli.tell import tell
    from unface.data import make_identities

    require_free(out, force=force)
    people = make_identities(480, 20, 128, rank=48, between=0.7, seed=0)
    # What the vectors are for: telling 40 kinds of things apart, in directions that are not the people's.
    things = replace(make_identities(40, 40, 128, rank=48, between=0.7, seed=1), source="made-up things")
    with progress_bars(quiet=quiet or json) as progress:
        result = audit(people, utility=[things], ks=(4,), seeds=2, threads=threads, progress=progress)
    tell(result, out, force=force, json=json, quiet=quiet)
