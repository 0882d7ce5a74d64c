"""``unface invert``: whether stored vectors can be turned back into faces, before and after erasure."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from unface.cli.options import ACCEPT_LICENCE, CONFIG, POLICY, QUIET, SEED, THREADS, names
from unface.errors import UnfaceError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from unface.auditing import Protocol
    from unface.data import EmbeddingSet, ImageSet
    from unface.encode import Encoder
    from unface.erase import Projection
    from unface.faces import Detector
    from unface.invert import Attack
    from unface.invert.material import Material
    from unface.invert.run import Case, Inverted
    from unface.progress import Progress
    from unface.result.parts import Part

NOBODY = "nobody"
_PERMISSIVE, _RESTRICTED = "sface", "edgeface-s"
_FOR_THRESHOLDS = 80  # generated people beside the targets
POOL_ON_CPU = 200
_AUDITED_ON_CPU = 4  # people, minutes each in every space
GALLERY = "faces.html"


def invert(
    source: str = typer.Argument(
        ...,
        metavar="SRC",
        help="Pictures as <person>/<picture> (folder, archive, Parquet), or 'nobody': generated ones.",
    ),
    encoder: str = typer.Option(..., "--encoder", help="The encoder whose vectors are stored."),
    attack: list[str] = typer.Option(
        [], "--attack", help="Attacks by name, repeated; alsuv:paper is a preset [default: alsuv]."
    ),
    projection: list[Path] = typer.Option([], "--projection", help="Also invert after this projection; repeated."),
    judge: list[str] = typer.Option(
        [], "--judge", help="Recognisers that judge [default: sface; with --accept-licence also edgeface-s]."
    ),
    own: str | None = typer.Option(
        None, "--own", help="A recogniser of the attacker's own, which does not judge: translate and decoder need one."
    ),
    translate: Path | None = typer.Option(
        None, "--translate", help="For vectors without pictures: a recogniser's vectors of the same pictures."
    ),
    targets: int = typer.Option(20, "--targets", min=2, help="People to attack, at most a third of those given."),
    prior: str = typer.Option(
        "mobilestylegan",
        "--prior",
        help="Generator: its name (mobilestylegan-128 is faster), a StyleGAN2 file, or a diffusion prior's folder.",
    ),
    detector: str = typer.Option("yunet", "--detector", help="yunet or scrfd-500m."),
    accept_licence: bool = ACCEPT_LICENCE,
    device: str = typer.Option("cpu", "--device", help="cpu (generator at 128 px) or cuda (at 256 px)."),
    show_faces: bool = typer.Option(
        False, "--show-faces", help=f"Write {GALLERY}, with the attacked pictures beside what was made of them."
    ),
    out: Path = typer.Option(
        Path("unface-inversion"), "--out", help="Folder for inversion.json and its page; made if missing."
    ),
    policy: Path | None = POLICY,
    config: Path | None = CONFIG,
    seed: int = SEED,
    threads: int | None = THREADS,
    force: bool = typer.Option(False, "--force", help="Overwrite a finished inversion."),
    json: bool = typer.Option(False, "--json", help="Print inversion.json instead of the table."),
    quiet: bool = QUIET,
) -> None:
    """Try to turn stored vectors back into faces, and let recognisers judge whether they show the person.

    For vectors that you hold. If a run is interrupted, the same command continues it. On two CPU cores a target
    takes minutes.
    """
    from functools import partial

    from unface.cli.show import progress_bars, show_decided
    from unface.data import read_images
    from unface.erase import Projection
    from unface.gate import decide, policy_for
    from unface.invert import load_attack
    from unface.invert.material import spaces_of
    from unface.invert.run import finish
    from unface.invert.run import invert as run
    from unface.output.place import place_at
    from unface.report.inversion import print_inversion, render_inversion
    from unface.result.inversion import InversionResult

    if (out / InversionResult.file_kind().file).is_file() and not force:
        finish(place_at(out))  # what a run left that was killed after it had written its result
    InversionResult.require_new(out, force=force)
    rules = policy_for(policy, "unface invert")
    bare = _is_vectors(source)
    chosen = list(attack) or ["translate" if bare else "alsuv" if device != "cpu" else f"alsuv:pool={POOL_ON_CPU}"]
    attacks = [load_attack(name) for name in chosen]
    loaded = {path.stem: Projection.load(path) for path in projection}
    with progress_bars(quiet=quiet or json) as progress:
        if bare:
            case, material = _case_of_vectors(Path(source), encoder, attacks, translate, targets, seed, threads)
            pictures: ImageSet | None = None
        else:
            case, material, pictures = _case(
                None if source == NOBODY else read_images(Path(source)),
                encoder,
                judges_of(judge, encoder, own, accept_licence=accept_licence),
                own,
                attacks,
                loaded,
                prior=prior,
                detector=detector,
                accept_licence=accept_licence,
                device=device,
                out=out,
                targets=targets,
                seed=seed,
                threads=threads,
                force=force,
                progress=progress,
            )
        spaces = spaces_of(loaded, material.train_set)
        place = place_at(out)
        done = run(
            case,
            attacks,
            spaces,
            place,
            seed=seed,
            controls=_controls(attacks, device),
            keep_pictures=show_faces,
            again=force,
            progress=progress,
        )
    decision = None if rules is None else decide(done.result, rules)
    beside = {InversionResult.page_in(out): "the page"}
    if show_faces and pictures is not None:
        beside[_gallery(done, pictures, material, out / GALLERY)] = "faces of people, to be kept at home"
    path = done.result.save(out, render_inversion(done.result, decision))
    finish(place)
    show_decided(partial(print_inversion, done.result), decision, path, beside, json=json, quiet=quiet)


class Inverting:
    """``unface audit --inversion``: one attack on vectors of each encoder, judged as here; nothing for no encoders."""

    def __init__(self, encoders: Sequence[str], *, accept_licence: bool, force: bool) -> None:
        self._accept, self._force = accept_licence, force
        self._by_encoder = {name: judges_of([], name, None, accept_licence=accept_licence) for name in encoders}
        self._loaded: dict[str, tuple[str, Encoder]] = {}

    def beside(self, encoders: Sequence[str], translate: str | None) -> list[str]:
        """Everything to load: the audited encoders first, then what is translated into, then the judges."""
        judges = [judge for several in self._by_encoder.values() for judge in several]
        others = [translate, *judges] if translate else judges
        return [*encoders, *dict.fromkeys(name for name in others if name not in encoders)]

    def load(
        self, encoders: "Mapping[str, tuple[str, Encoder]]", faces: "Detector | None", protocol: "Protocol"
    ) -> None:
        """Everything that can be refused is, before a picture is encoded; encoders come with their folders' names."""
        if not self._by_encoder:
            return
        from unface.invert.view import View, require_size
        from unface.prior import load_prior

        assert faces is not None, "refused without a detector"
        on_cpu = protocol.device == "cpu"
        self._loaded, self._faces, self._device = dict(encoders), faces, protocol.device
        self._views = {name: View(encoders[name][1], device=protocol.device) for name in self._by_encoder}
        self._prior = load_prior(
            device=protocol.device, accept_licence=self._accept, threads=protocol.threads, head=on_cpu
        )
        for view in self._views.values():
            require_size(self._prior, view)
        self._pool, self._targets = (POOL_ON_CPU, _AUDITED_ON_CPU) if on_cpu else (2000, 20)

    def parts(self, folder: str, vectors: "Callable[[str], EmbeddingSet]", out: Path) -> "list[Part]":
        """The part of an audit in ``out``; ``vectors`` encodes the audited pictures, by an encoder's folder."""
        encoder = next((name for name in self._by_encoder if self._loaded[name][0] == folder), None)
        if encoder is None:
            return []
        from unface.auditing import Inversion, Inverter
        from unface.invert import load_attack
        from unface.invert.measure import embed_faces
        from unface.judge import EncoderRecogniser
        from unface.output.place import place_at

        judges = {name: self._loaded[name] for name in self._by_encoder[encoder]}
        recognisers = {name: EncoderRecogniser(one, self._device) for name, (_, one) in judges.items()}
        inverter = Inverter(
            self._views[encoder],
            self._prior,
            load_attack(f"alsuv:pool={self._pool}"),
            {name: vectors(place) for name, (place, _) in judges.items()},
            lambda made: embed_faces(made, recognisers, self._faces),
            place_at(out),
            self._targets,
            self._pool,
            self._force,
        )
        return [Inversion(inverter)]

    def finish(self, folders: Iterable[Path]) -> None:
        """Once audits are written, drop what a killed one would continue from."""
        from unface.invert.run import finish
        from unface.output.place import place_at

        for folder in folders if self._by_encoder else ():
            finish(place_at(folder))


def _is_vectors(source: str) -> bool:
    """Whether a file holds vectors and no pictures."""
    path = Path(source)
    if path.suffix in (".npz", ".npy"):
        return True
    if path.suffix != ".parquet" or not path.is_file():
        return False
    from unface.data.parquet import opened_parquet

    try:
        with opened_parquet(path, path.name) as file:
            columns = set(file.schema_arrow.names)
    except UnfaceError:
        return False
    return "vector" in columns and "image" not in columns


def judges_of(given: Sequence[str], encoder: str, own: str | None, *, accept_licence: bool) -> list[str]:
    """Never the attacked encoder, never the attacker's own recogniser."""
    asked = names(list(given))
    for name in asked:
        if name in (encoder, own):
            whose = "attacked encoder" if name == encoder else "attacker's own recogniser"
            raise UnfaceError(f"--judge {name}: is the {whose}, and would judge itself; name another recogniser")
    usual = [name for name in (_PERMISSIVE, *([_RESTRICTED] if accept_licence else [])) if name not in (encoder, own)]
    chosen = asked or usual
    if not chosen:
        raise UnfaceError(
            f"{encoder}: no judge is left; pass --accept-licence for {_RESTRICTED}, or name one with --judge"
        )
    return chosen


def _controls(attacks: "Sequence[Attack]", device: str) -> int:
    """As many random faces as the search starts from."""
    pools = [int(one.settings["pool"]) for one in attacks if one.settings.get("pool")]
    return max(pools, default=POOL_ON_CPU if device == "cpu" else 2000)


def _case(
    images: "ImageSet | None",
    encoder: str,
    judges: Sequence[str],
    own: str | None,
    attacks: "Sequence[Attack]",
    projections: "Mapping[str, Projection]",
    *,
    prior: str,
    detector: str,
    accept_licence: bool,
    device: str,
    out: Path,
    targets: int,
    seed: int,
    threads: int | None,
    force: bool,
    progress: "Progress",
) -> "tuple[Case, Material, ImageSet]":
    """Everything that can be refused is, before a picture is encoded, or drawn where ``images`` is None."""
    from unface.cli.pictures import FOLDER, encoded, load_all
    from unface.data import read_images
    from unface.encode import space_of
    from unface.invert import Generator, Need, require_prior
    from unface.invert.indirect import FEWEST, Translate
    from unface.invert.material import assign, in_frame, require_learners
    from unface.invert.measure import embed_faces
    from unface.invert.run import Case
    from unface.invert.view import View, require_size, require_space, window_of
    from unface.judge import EncoderRecogniser
    from unface.prior import load_prior
    from unface.prior.load import WHOLE
    from unface.validate.nobody import Drawing

    for one in attacks:
        if own is None and one.needs & {Need.OWN, Need.TRAIN}:
            raise UnfaceError(f"attack {one.name!r} needs a recogniser of the attacker's own; name one with --own")
        if isinstance(one, Translate):
            people = targets + _FOR_THRESHOLDS if images is None else len(images.identities)
            require_learners(people, targets, FEWEST, one.name)
    every = list(dict.fromkeys([encoder, *judges, *([] if own is None else [own])]))
    encoders, found = load_all(
        every, detector, again=False, accept_licence=accept_licence, threads=threads, progress=progress
    )
    by_name = dict(zip(every, encoders.values(), strict=True))
    for projection in projections.values():
        require_space(projection, space_of(by_name[encoder]))
    needs = frozenset[Need]().union(*(one.needs for one in attacks))
    face = window_of(prior)
    view = View(by_name[encoder], face=face, device=device) if needs & {Need.GRADIENTS, Need.SCORES} else None
    second = View(by_name[own], face=face, device=device) if own is not None and Need.PRIOR in needs else None
    drawn: Generator | None = None
    if Need.PRIOR in needs:
        if Path(prior).is_dir():
            from unface.prior.diffusion import load_diffusion

            drawn = load_diffusion(prior, device)
        else:
            head = device == "cpu" and prior == "mobilestylegan"
            drawn = load_prior(
                prior, device=device, accept_licence=accept_licence, threads=threads, progress=progress, head=head
            )
        for seeing in (view, second):
            if seeing is not None:
                require_size(drawn, seeing)
        for one in attacks:
            require_prior(one, drawn)
    pictures = images
    if pictures is None:
        drawing = Drawing(seed, device, accept_licence, threads, progress)
        pictures = read_images(drawing.enrolled(targets + _FOR_THRESHOLDS, out / "people"))
    sets = {
        name: encoded(
            pictures,
            one,
            out / FOLDER / f"{folder}.parquet",
            detector=found,
            threads=threads,
            force=force,
            progress=progress,
        ).unit()
        for (name, one), folder in zip(by_name.items(), encoders, strict=True)
    }
    material = assign(
        replace(sets[encoder], source=pictures.source),  # what was given, not the file that keeps the vectors
        {name: sets[name] for name in judges},
        None if own is None else (own, sets[own]),
        targets,
        generated=images is None,
        seed=seed,
        threads=threads,
    )
    by_id, taught = {image.id: image for image in pictures}, [str(one) for one in material.train_set.ids]
    recognisers = {name: EncoderRecogniser(by_name[name], device) for name in judges}
    assert found is not None, "none is refused by the recognisers that judge"
    window = (face.left, face.top, face.side)
    case = Case(
        encoder,
        sets[encoder].space,
        by_name[encoder].card.input.alignment != "none",
        material.people,
        material.jury,
        material.facts,
        embed=lambda made: embed_faces(made, recognisers, found),
        view=view,
        prior=drawn,
        drawn_by=WHOLE if images is None else None,
        second=second,
        train=replace(
            material.train, pictures=lambda rows: in_frame([by_id[taught[row]] for row in rows], found, window)
        ),
        template_jury={} if material.own is None else {material.own.name: material.own},
    )
    return case, material, pictures


def _case_of_vectors(
    source: Path,
    encoder: str,
    attacks: "Sequence[Attack]",
    translate: Path | None,
    targets: int,
    seed: int,
    threads: int | None,
) -> "tuple[Case, Material]":
    """Vectors without pictures: nothing can be drawn or judged by looking."""
    from unface.data import read_embeddings
    from unface.invert.material import assign
    from unface.invert.run import Case

    if translate is None or [one.name for one in attacks] != ["translate"]:
        raise UnfaceError(
            f"{source}: holds vectors without pictures, on which only translate works; give the pictures, or "
            "--attack translate and --translate with a recogniser's vectors of the same pictures"
        )
    stored, recogniser = read_embeddings(source).unit(), read_embeddings(translate).unit()
    if stored.space.encoder not in (None, encoder):
        raise UnfaceError(f"{source}: holds vectors of {stored.space.encoder}, not of {encoder}; correct --encoder")
    _require_shared(stored, recogniser)
    own = recogniser.space.encoder or translate.stem
    material = assign(stored, {}, (own, recogniser), targets, seed=seed, threads=threads)
    case = Case(
        encoder,
        stored.space,
        False,
        material.people,
        material.jury,
        material.facts,
        train=material.train,
        template_jury={own: material.jury[0]},
    )
    return case, material


def _require_shared(stored: "EmbeddingSet", recogniser: "EmbeddingSet") -> None:
    if not {str(one) for one in stored.ids} & {str(one) for one in recogniser.ids}:
        raise UnfaceError(
            f"{recogniser.source}: no id of it is in {stored.source}; --translate needs vectors of the same pictures"
        )


def _gallery(done: "Inverted", pictures: "ImageSet", material: "Material", path: Path) -> Path:
    """One row for each target: the attacked picture, then what each attack made of each space. No names."""
    from html import escape

    from unface.data import decode
    from unface.output.write import write_file

    by_id = {image.id: image for image in pictures}
    heads = "".join(f"<th>{escape(f'{attack}, {space}')}</th>" for attack, space in done.pictures)
    rows = []
    for at, name in enumerate(material.attacked):
        shown = [decode(by_id[name].read()), *(made[at] for made in done.pictures.values())]
        rows.append("<tr>" + "".join(f'<td><img alt="" src="{_inline(one)}"></td>' for one in shown) + "</tr>")
    style = "body{font-family:sans-serif}img{height:160px}th{font-weight:normal;text-align:left}"
    page = (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Attacked and reconstructed faces</title>'
        f"<style>{style}</style><h1>Attacked and reconstructed faces</h1><p>Keep this file at home.</p>"
        f"<table><tr><th>attacked</th>{heads}</tr>{''.join(rows)}</table></html>\n"
    )
    write_file(path, page.encode(), private=True)
    return path


def _inline(picture: "NDArray[np.uint8]") -> str:
    import base64
    from io import BytesIO

    from PIL import Image

    content = BytesIO()
    Image.fromarray(picture).save(content, "JPEG", quality=90)
    return f"data:image/jpeg;base64,{base64.b64encode(content.getvalue()).decode()}"
