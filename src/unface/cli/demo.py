"""``unface demo``: the whole loop on people who do not exist, by real encoders, from vectors that come with unface."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from unface.cli.options import FORCE, JSON, QUIET, THREADS

if TYPE_CHECKING:
    from rich.console import Console

    from unface.progress import Progress
    from unface.release.run import Released
    from unface.result.audit import AuditResult
    from unface.result.certificate import CertificateResult
    from unface.result.validation import ValidationResult

QUESTIONS, SYNTHETIC, FRONT_END = "questions", "synthetic", "front-end"
VALIDATION_PAGE = "validation.html"
_SCHEME, _SIZE = "dctdp", 48
_FAR = 1e-3
_FARS = (1e-2, _FAR)  # resolved by 96 calibrate people in every space
_KINDS = ("at most", "decisions only")

RECOGNISER = "sface"
IN_ALBUMS, TRANSLATED = "sscd-int8", "dinov2-s-focus"
"""Whose report also compares albums of four pictures, and whose recovers templates: one of each is enough to see."""


def demo(
    out: Path = typer.Option(Path("unface-demo"), "--out", help="Folder for report.html and one for each result."),
    threads: int | None = THREADS,
    force: bool = FORCE,
    json: bool = JSON,
    quiet: bool = QUIET,
) -> None:
    """One result of each kind, on 480 people who do not exist: vectors of three encoders, before and after erasure.

    Then 200 questions to a face system that only answers with a score, a synthetic set with planted copies, and a
    front end that sends frequencies instead of pictures.

    No network, no weights, no torch.
    """
    # Before NumPy is loaded: these matrices are small, and threads of BLAS would mostly wait for each other.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from unface.auditing import Albums, Protocol, Translate, audit
    from unface.cli.show import keep, progress_bars, show_side_by_side
    from unface.data import EMBEDDED_ENCODERS, nobody, things
    from unface.result.audit import require_no_audit
    from unface.result.certificate import CertificateResult
    from unface.result.release import ReleaseResult
    from unface.result.validation import ValidationResult

    results = {}
    further = {IN_ALBUMS: Albums((1, 4)), TRANSLATED: Translate(nobody(RECOGNISER))}
    for folder in (out, *(out / encoder for encoder in EMBEDDED_ENCODERS)):
        require_no_audit(folder, force=force)
    ValidationResult.require_new(out / QUESTIONS, force=force)
    ReleaseResult.require_new(out / SYNTHETIC, force=force)
    CertificateResult.require_new(out / FRONT_END, force=force)
    with progress_bars(quiet=quiet or json) as progress:
        for encoder in EMBEDDED_ENCODERS:
            result = audit(
                nobody(encoder),
                k="all",
                eraser=("isp", "leace"),
                utility=[things(encoder)],
                parts=[further[encoder]] if encoder in further else (),
                protocol=Protocol(far=_FARS, probe=("cosine", "lda", "plda"), threads=threads),
                progress=progress,
            )
            results[encoder] = (result, out / encoder)
            keep(*results[encoder], None, force=force)
        asked = _ask_200_questions(out / QUESTIONS, progress)
        released, planted = _find_copies(out / SYNTHETIC, progress)
        certificate = _certify(out / FRONT_END, progress)
    if not (quiet or json):
        from rich.console import Console

        _title(Console(), f"Vectors of {results[RECOGNISER][0].source.identities} people who do not exist", first=True)
    show_side_by_side(results, out, json=json, quiet=quiet)
    if not (quiet or json):
        console = Console()
        found = sum(name in planted for name in {row[0] for row in released.exposed.rows})
        _title(console, "200 questions to a face system")
        console.print(asked.verdict, highlight=False)
        for line in _limited(asked):
            console.print(line, highlight=False)
        typer.echo(f"{out / QUESTIONS / VALIDATION_PAGE}: the page of these questions")
        _title(console, f"A synthetic set with {len(planted)} planted copies")
        console.print(released.result.verdict, highlight=False)
        console.print(f"Of the {len(planted)} people whose pictures were copied, {found} are listed.", highlight=False)
        typer.echo(f"{ReleaseResult.page_in(out / SYNTHETIC)}: the page of this set")
        _title(console, "A front end that sends frequencies instead of pictures")
        console.print(certificate.verdict, highlight=False)
        typer.echo(f"{CertificateResult.page_in(out / FRONT_END)}: the page of this front end")
        _title(console, "Can stored vectors become faces?")
        for line in _templates(results[TRANSLATED][0]):
            console.print(line, highlight=False)
        console.print(
            "Drawing faces from vectors (unface invert) and pictures without their faces (unface protect facemae) need "
            "PyTorch: pip install 'unface[torch,images]'",
            highlight=False,
            markup=False,
        )


def _title(console: "Console", text: str, *, first: bool = False) -> None:
    console.print(f"{'' if first else chr(10)}{text}", style="bold underline", highlight=False)


def _limited(asked: "ValidationResult") -> list[str]:
    """What the strongest changes to the answers leave: the fewest questions, and decisions instead of scores."""
    from unface.result.words import percent

    words = {one.measure: percent(one.other.value) for one in asked.hardening if one.other is not None}
    chosen = [next((measure for measure in words if measure.startswith(kind)), None) for kind in _KINDS]
    left = [f"{words[measure]} ({measure})" for measure in chosen if measure is not None]
    return [f"What a change to the answers would leave: {', '.join(left)}."] if left else []


def _ask_200_questions(folder: Path, progress: "Progress") -> "ValidationResult":
    """What a face recogniser that only answers with a score reveals; a ledger of an earlier demo is used again."""
    from unface.report.validation import write_validation
    from unface.validate.embedded import embedded_case
    from unface.validate.ledger import LEDGER_FILE
    from unface.validate.run import Plan, validate

    result = validate(embedded_case(), Plan(200), folder / LEDGER_FILE, progress=progress).result
    result.save(folder)
    write_validation(result, folder / VALIDATION_PAGE)
    return result


def _find_copies(folder: Path, progress: "Progress") -> "tuple[Released, set[str]]":
    """A synthetic set with copies of training pictures in it, and whose they are."""
    from unface.release.embedded import COPIES, embedded_view
    from unface.release.run import Plan, measure_release
    from unface.report.release import render_release

    view = embedded_view()
    done = measure_release([view], Plan(), progress=progress)
    done.result.save(folder, render_release(done.result, []), exposed=done.exposed)
    return done, set(view.training.names[:COPIES])


def _certify(folder: Path, progress: "Progress") -> "CertificateResult":
    """What a published front end hides, by algebra: no picture and no network is needed."""
    from unface.protect.certificate import SchemeFrontEnd
    from unface.protect.frequency import scheme
    from unface.protect.measure import measure_certificate
    from unface.report.certificate import render_certificate

    chosen = scheme(_SCHEME, "published")
    front_end = SchemeFrontEnd(chosen, _SIZE)
    result = measure_certificate(front_end, name=_SCHEME, variant=chosen.variant, notes=chosen.notes, progress=progress)
    result.save(folder, render_certificate(result))
    return result


def _templates(result: "AuditResult") -> list[str]:
    """What a linear map recovers of a recogniser's templates, before and after erasure."""
    from unface.auditing import Translate
    from unface.result.words import one_in, percent

    found = Translate.of(result)
    if found is None:
        return []
    at = {one.space: min(one.at, key=lambda point: abs(point.far - _FAR)) for one in found.spaces if not one.control}
    raw, *erased = ((name, percent((point.other or point.same).value)) for name, point in at.items())
    after = "".join(f", {value} after {name.upper()}" for name, value in erased)
    return [
        f"A linear map turns {result.source.encoder} vectors into {found.recogniser.encoder} templates. They match "
        f"other photos of the same person {raw[1]} of the time{after}, at {one_in(at[raw[0]].far)}."
    ]
