"""``unface attribute``: whether an encoder's similarity rests on faces or on what is around them."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from unface.cli import options
from unface.cli.options import QUIET, SEED, THREADS, names
from unface.errors import UnfaceError

if TYPE_CHECKING:
    from unface.attribute import ShownFace
    from unface.auditing import Subjects
    from unface.erase import Projection
    from unface.result.attribution import AttributionResult


def attribute(
    images: Path = typer.Argument(
        ..., metavar="IMAGES", help="Folder, zip or tar of <identity>/<image>, CelebA, or Parquet with pictures."
    ),
    encoder: list[str] = typer.Option(..., "--encoder", help="Name of an encoder, repeated or with commas."),
    projection: list[Path] = typer.Option([], "--projection", help="Also measure after this projection; repeated."),
    inswapper: Path | None = typer.Option(
        None, "--inswapper", help="inswapper_128.onnx, with w600k_r50.onnx beside it, to swap faces with."
    ),
    identity_column: str = options.IDENTITY_COLUMN,
    id_column: str = options.ID_COLUMN,
    detector: str = typer.Option("yunet", "--detector", help="yunet or scrfd-500m."),
    accept_licence: bool = typer.Option(False, "--accept-licence", help="Accept weights for research use only."),
    out: Path = typer.Option(
        Path("unface-attribution"), "--out", help="Folder for attribution.json and attribution.html; made if missing."
    ),
    seed: int = SEED,
    threads: int | None = THREADS,
    show_faces: bool = typer.Option(False, "--show-faces", help="Put a few of the pictures themselves into the page."),
    force: bool = typer.Option(False, "--force", help="Overwrite a finished attribution."),
    json: bool = typer.Option(False, "--json", help="Print attribution.json instead of the table."),
    quiet: bool = QUIET,
) -> None:
    """Measure whether an encoder's similarity rests on the face or on the background, before and after erasure."""
    from unface.attribute import swap_by_inswapper, swap_by_landmarks
    from unface.auditing import Subjects, attribute_pictures
    from unface.cli.pictures import load_all
    from unface.cli.show import progress_bars
    from unface.data import read_images
    from unface.result.attribution import require_no_attribution

    require_no_attribution(out, force=force)
    if detector == "none":
        raise UnfaceError("--detector none: attribution has to find faces; give yunet or scrfd-500m")
    projections = _projections(projection)
    pictures = read_images(images, identity=identity_column, id=id_column)
    with progress_bars(quiet=quiet or json) as progress:
        loaded, found = load_all(
            names(encoder),
            detector,
            again=show_faces,
            accept_licence=accept_licence,
            threads=threads,
            progress=progress,
        )
        assert found is not None, "a detector was asked for"
        swap_name, swap = (
            swap_by_landmarks() if inswapper is None else swap_by_inswapper(inswapper, accept_licence=accept_licence)
        )
        subjects = [Subjects(pictures, one, found, swap, swap_name) for one in loaded.values()]
        result = attribute_pictures(subjects, projections, seed=seed, threads=threads, progress=progress)
        faces = _faces(subjects[0], result) if show_faces else []
    _show(result, out, faces, json=json, quiet=quiet)


def _projections(paths: Sequence[Path]) -> "dict[str, Projection]":
    """By the names of their files."""
    from unface.attribute import RAW
    from unface.erase import Projection

    found: dict[str, Projection] = {}
    for path in paths:
        if path.stem in (RAW, *found):
            raise UnfaceError(f"{path}: another space is called {path.stem!r} already; rename the file")
        found[path.stem] = Projection.load(path)
    return found


def _faces(subjects: "Subjects", result: "AttributionResult") -> "list[list[ShownFace]]":
    from contextlib import closing

    from unface.attribute import locate, shown_faces

    with closing(locate(subjects.images, subjects.detector)) as pictures:
        return shown_faces(pictures, subjects.swap, result.encoders[0].axes)


def _show(result: "AttributionResult", out: Path, faces: "list[list[ShownFace]]", *, json: bool, quiet: bool) -> None:
    """Files first, then the table or the JSON."""
    from functools import partial

    from unface.cli.show import show
    from unface.report.attribution import print_attribution, render_attribution
    from unface.result.attribution import ATTRIBUTION_PAGE, LEFT_OUT_FILE

    path = result.save(out, render_attribution(result, faces))
    beside = {out / ATTRIBUTION_PAGE: "the page, with pictures of people in it" if faces else "the page"}
    if result.left_out is not None and result.left_out.rows:
        beside = {out / LEFT_OUT_FILE: "the pictures meant", **beside}
    show(partial(print_attribution, result), path, beside, json=json, quiet=quiet)
