"""``unface demo``: the whole loop on people who do not exist, by real encoders, from vectors that come with unface."""

from pathlib import Path

import typer

from unface.cli.options import FORCE, JSON, QUIET, THREADS

SWEPT = "sscd-int8"
"""Whose report shows the frontier over ranks: it takes as long as all the rest, and one is enough to see."""


def demo(
    out: Path = typer.Option(Path("unface-demo"), "--out", help="Folder for report.html and one of each encoder."),
    threads: int | None = THREADS,
    force: bool = FORCE,
    json: bool = JSON,
    quiet: bool = QUIET,
) -> None:
    """Measure, erase, measure again: what a face recogniser and two general encoders give away about 480 people.

    Nobody is in the pictures: a generator drew them. No network, no weights, no torch.
    """
    from unface.auditing import Maps, Protocol, Sweeps, audit
    from unface.cli.show import keep, progress_bars, show_side_by_side
    from unface.data import EMBEDDED_ENCODERS, nobody, things
    from unface.result.audit import require_no_audit

    results = {}
    for folder in (out, *(out / encoder for encoder in EMBEDDED_ENCODERS)):
        require_no_audit(folder, force=force)
    with progress_bars(quiet=quiet or json) as progress:
        for encoder in EMBEDDED_ENCODERS:
            result = audit(
                nobody(encoder),
                k="all",
                eraser=("isp", "leace"),
                utility=[things(encoder)],
                parts=(Sweeps(), Maps()) if encoder == SWEPT else (Maps(),),
                protocol=Protocol(probe=("cosine", "ridge", "lda", "plda"), threads=threads),
                progress=progress,
            )
            results[encoder] = (result, out / encoder)
            keep(*results[encoder], force=force)
    show_side_by_side(results, out, json=json, quiet=quiet)
