"""``unface protect``: protections of faces, and whether they hide anything."""

from pathlib import Path

import typer

from unface.cli.facemae import facemae
from unface.cli.options import ACCEPT_LICENCE, QUIET, SEED, THREADS
from unface.errors import UnfaceError

protect = typer.Typer(help="Protect faces, and find out whether a protection hides anything.", no_args_is_help=True)
frequency = typer.Typer(help="Front ends that send frequencies in place of pictures.", no_args_is_help=True)
protect.add_typer(frequency, name="frequency")
protect.add_typer(facemae, name="facemae")

_SIZE, _PROBED_SIZE = 112, 16


@frequency.command()
def certify(
    scheme: str | None = typer.Option(None, "--scheme", help="dctdp, duetface or partialface."),
    variant: str | None = typer.Option(
        None, "--variant", help="As its authors published it, or as-attacked by Map²V's code [default: published]."
    ),
    function: str | None = typer.Option(
        None, "--function", metavar="MODULE:NAME", help="Your own front end: a function of RGB pictures (n, h, w, 3)."
    ),
    size: int | None = typer.Option(
        None, "--size", min=2, max=256, help="Pixels of a side [default: 112; 16 with --function]."
    ),
    pictures: str | None = typer.Option(
        None, "--pictures", help="Pictures to protect and solve for, in a folder for each person."
    ),
    encoder: str | None = typer.Option(
        None, "--encoder", help="With --pictures: a face recogniser that tries to link what was solved for."
    ),
    detector: str = typer.Option("yunet", "--detector", help="Face detector for --encoder, or none."),
    accept_licence: bool = ACCEPT_LICENCE,
    out: Path = typer.Option(Path("unface-certificate"), "--out", help="Folder for certificate.json."),
    seed: int = SEED,
    threads: int | None = THREADS,
    force: bool = typer.Option(False, "--force", help="Overwrite a finished certificate."),
    json: bool = typer.Option(False, "--json", help="Print certificate.json instead of the table."),
    quiet: bool = QUIET,
) -> None:
    """Find out by algebra what a linear front end hides: rank, condition, and the best linear reconstruction.

    Nothing is trained and no system is queried.
    """
    from functools import partial

    from unface.cli.show import progress_bars, show
    from unface.data import read_images
    from unface.faces import load_detector
    from unface.judge import load_recogniser
    from unface.protect.certificate import LinearFrontEnd, SchemeFrontEnd, load_function, probe
    from unface.protect.frequency import scheme as scheme_of
    from unface.protect.measure import measure_certificate, portraits
    from unface.report.certificate import print_certificate, render_certificate
    from unface.result.certificate import CertificateResult

    if (scheme is None) == (function is None):
        raise UnfaceError("give --scheme or --function: one of them names the front end")
    if function is not None and variant is not None:
        raise UnfaceError("--variant: is about --scheme; leave it out")
    if encoder is not None and pictures is None:
        raise UnfaceError("--encoder: needs pictures to recognise; give --pictures")
    CertificateResult.require_new(out, force=force)
    front_end: LinearFrontEnd
    name = scheme or str(function)
    with progress_bars(quiet=quiet or json) as progress:
        images = None if pictures is None else read_images(pictures)
        if scheme is not None:
            chosen = scheme_of(scheme, variant or "published")
            front_end, kind, notes = SchemeFrontEnd(chosen, size or _SIZE), "linear", chosen.notes
            variant = chosen.variant
        else:
            probed = probe(load_function(name), size or _PROBED_SIZE, name=name, seed=seed)
            front_end, kind, notes = probed.front_end, probed.kind, ()
        recogniser = found = given = None
        if encoder is not None:
            recogniser = load_recogniser(encoder, accept_licence=accept_licence, threads=threads, progress=progress)
            found = None if detector == "none" else load_detector(detector, accept_licence=accept_licence)
        if images is not None:
            given = portraits(images, front_end.size, recogniser=recogniser, detector=found, progress=progress)
        result = measure_certificate(
            front_end,
            name=name,
            variant=variant,
            kind=kind,
            notes=notes,
            given=given,
            recogniser=recogniser,
            seed=seed,
            progress=progress,
        )
    path, page = result.save(out, render_certificate(result)), CertificateResult.page_in(out)
    show(partial(print_certificate, result), path, {page: "the page"}, json=json, quiet=quiet)
