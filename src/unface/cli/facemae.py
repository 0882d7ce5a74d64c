"""``unface protect facemae``: train a masked autoencoder, and publish faces that it made from masked pictures."""

import json as jsonlib
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from unface.cli.options import ACCEPT_LICENCE, POLICY, QUIET, SEED
from unface.errors import UnfaceError, printable

if TYPE_CHECKING:
    from unface.faces import Detector
    from unface.protect.facemae_train import Training

facemae = typer.Typer(help="Publish a face set that was made from masked pictures (FaceMAE).", no_args_is_help=True)

_DETECTOR = typer.Option("yunet", "--detector", help="yunet or scrfd-500m; none for faces that are cut out already.")
_THREADS = typer.Option(
    None, "--threads", min=1, help="Most cores to use; a training step on a CPU takes one. Never changes a number."
)
_DEVICE = typer.Option("cpu", "--device", help="cpu or cuda.")


@facemae.command()
def train(
    source: str = typer.Argument(
        ..., metavar="SRC", help="Pictures of people who will not be published: folder, archive or Parquet."
    ),
    out: Path = typer.Option(..., "--out", help="Folder for the model, its checkpoint and training.json."),
    preset: str = typer.Option("small", "--preset", help="tiny (64 px, for a CPU), small (112 px) or base (224 px)."),
    loss: str = typer.Option("irm", "--loss", help="irm, im, rm, or mse for a plain masked autoencoder."),
    beta: float = typer.Option(1.0, "--beta", help="Weight of relation matching in irm."),
    recogniser: str = typer.Option("sface", "--recogniser", help="Encoder whose vectors irm, im and rm compare."),
    mask_ratio: float = typer.Option(0.75, "--mask-ratio", help="Share of each picture that is hidden."),
    hide: str = typer.Option("none", "--hide", help="Always hide eyes or mouth, or none of them."),
    epochs: int | None = typer.Option(None, "--epochs", help="Passes over the pictures [default: the preset's]."),
    start: Path | None = typer.Option(
        None, "--start", help="Begin with the weights of a model trained on the same pictures, for example with mse."
    ),
    seconds: float = typer.Option(float("inf"), "--seconds", help="Stop after this many seconds; repeat to continue."),
    samples: str | None = typer.Option(
        None, "--samples", help="Generated people (unface synth): OUT/samples.png shows what the model makes of them."
    ),
    detector: str = _DETECTOR,
    accept_licence: bool = ACCEPT_LICENCE,
    device: str = _DEVICE,
    seed: int = SEED,
    threads: int | None = _THREADS,
    quiet: bool = QUIET,
) -> None:
    """Train a masked autoencoder whose pictures keep what a face recogniser sees.

    If a run is interrupted, the same command continues it. The model can show the faces that it was trained on: keep it
    as you keep the pictures.
    """
    _require_torch()
    import torch

    from unface.cli.show import progress_bars
    from unface.data import read_images
    from unface.encode import load_encoder
    from unface.output.taken import require_folder
    from unface.prior import require_device
    from unface.protect.facemae import Features, Masking, hidden_of, loss_of, preset_of
    from unface.protect.facemae_frames import read_faces
    from unface.protect.facemae_train import Recipe, Training, load_facemae, require_preset
    from unface.protect.facemae_train import train as run
    from unface.result.words import count

    recipe = Recipe(preset, loss_of(loss), beta, Masking(mask_ratio, hidden_of(hide)), epochs, seed=seed)
    require_folder(out)
    require_preset(out, preset)
    require_device(device)
    begun = None if start is None else load_facemae(start)
    if threads is not None:
        torch.set_num_threads(threads)
    with progress_bars(quiet=quiet) as progress:
        features = None
        if recipe.loss != "mse":
            encoder = load_encoder(recogniser, accept_licence=accept_licence, threads=threads, progress=progress)
            features = Features(encoder, device)
        faces = read_faces(
            read_images(source),
            preset_of(preset).size,
            _detector(detector, accept_licence),
            threads=threads,
            progress=progress,
        )
        shown = None
        if samples is not None:
            given = read_images(samples)
            shown = read_faces(given, preset_of(preset).size, _detector(detector, accept_licence)).frames
        training = Training(recipe, faces, features, device, begun)
        done = run(training, out, seconds=seconds, samples=shown, progress=progress)
    if not quiet:
        seen = f"{count(len(faces.frames), 'face')} of {count(len(training.people), 'person', 'people')}"
        typer.echo(printable(f"{out}: {training.step} of {count(training.steps, 'step')}, on {seen}"))
        _say_losses(training)
        _say_left_out(faces.left_out)
        if not done:
            typer.echo("not finished; give the same command again to continue")


def _say_losses(training: "Training") -> None:
    first, after = training.staged_losses()
    if len(after) > 1:
        before = f" (before that {first[-1]:.4f} on pixels alone)" if first else ""
        typer.echo(f"loss {after[0]:.4f} at first, {after[-1]:.4f} at last{before}; curve: training.json")


def _say_left_out(left_out: Mapping[str, int]) -> None:
    if left_out:
        typer.echo("left out: " + ", ".join(f"{number:,} ({why})" for why, number in left_out.items()))


@facemae.command()
def deploy(
    source: str = typer.Argument(..., metavar="SRC", help="Pictures to publish: a folder, archive or Parquet."),
    model: Path = typer.Option(..., "--model", help="Folder that 'unface protect facemae train' made."),
    out: Path = typer.Option(..., "--out", help="Folder of the release; new or empty."),
    licence: str = typer.Option(..., "--licence", help="Terms of the pictures in SRC, for the manifest."),
    mask_seed: Path | None = typer.Option(
        None, "--mask-seed", help="Secret file that fixes every mask, made if missing [default: OUT.mask-seed]."
    ),
    detector: str = _DETECTOR,
    accept_licence: bool = ACCEPT_LICENCE,
    device: str = _DEVICE,
    threads: int | None = _THREADS,
    json: bool = typer.Option(False, "--json", help="Print manifest.json."),
    quiet: bool = QUIET,
) -> None:
    """Write a release: faces that the model made from a few visible patches of each picture, without names.

    If a run is interrupted, the same command continues it. Keep the mask seed: a second release with another
    seed shows other pixels of the same pictures.
    """
    _require_torch()
    import torch

    from unface.cli.show import progress_bars
    from unface.data import read_images
    from unface.prior import require_device
    from unface.protect import facemae_deploy
    from unface.protect.facemae_train import load_facemae
    from unface.result.words import count

    facemae_deploy.require_free(out)
    require_device(device)
    if threads is not None:
        torch.set_num_threads(threads)
    trained = load_facemae(model, device)
    images = read_images(source)
    found = _detector(detector, accept_licence)
    secret = mask_seed or out.with_name(f"{out.name}.mask-seed")
    key = facemae_deploy.mask_seed(secret)
    with progress_bars(quiet=quiet or json) as progress:
        manifest = facemae_deploy.deploy(
            images, trained, out, key=key, licence=licence, detector=found, threads=threads, progress=progress
        )
    shared = facemae_deploy.shared_people(images, trained)
    if shared.certain:
        line = f"{images.source}: people of it are in the model's training set; the release protects them less"
        typer.echo(printable(line), err=True)
    if json:
        typer.echo(jsonlib.dumps(manifest, indent=2, ensure_ascii=False))
    elif not quiet:
        people = count(manifest["people"], "person", "people")
        typer.echo(printable(f"{out}: {count(manifest['pictures'], 'picture')} of {people}"))
        typer.echo(printable(f"{secret}: the secret that fixes the masks; keep it, and do not publish it"))
        _say_left_out(manifest["left_out"])


@facemae.command()
def audit(
    release: Path = typer.Argument(..., metavar="RELEASE", help="Folder that 'unface protect facemae deploy' made."),
    originals: str = typer.Option(..., "--originals", help="The pictures that it was made of."),
    mask_seed: Path = typer.Option(..., "--mask-seed", help="The secret file of deploy: which picture became which."),
    model: Path = typer.Option(..., "--model", help="Folder of the model, which the attacker has too."),
    pairs: list[str] = typer.Option(
        [], "--pairs", help="Pairs of other people: PACK.bin, or PICTURES,PAIRS.TXT; aligned, repeated."
    ),
    attacker_people: str | None = typer.Option(
        None, "--attacker-people", help="Pictures of other people, for an attacker who fine-tunes."
    ),
    plain: Path | None = typer.Option(
        None, "--plain", help="Model trained alike with --loss mse: a plain masked autoencoder beside it."
    ),
    nobody: str | None = typer.Option(None, "--nobody", help="People who do not exist (unface synth) beside it."),
    encoder: list[str] = typer.Option(
        ["arcface-mbf,sface,edgeface-s"], "--encoder", help="Published recognisers that attack; the first fine-tunes."
    ),
    recogniser_epochs: int | None = typer.Option(
        None, "--recogniser-epochs", min=1, help="Passes of the recogniser that learns [default: the preset's]."
    ),
    tuning_steps: int = typer.Option(400, "--tuning-steps", min=1, help="Steps of the attacker who fine-tunes."),
    seeds: int = typer.Option(3, "--seeds", min=1, max=10, help="Recognisers that learn from each set."),
    policy: Path | None = POLICY,
    detector: str = _DETECTOR,
    accept_licence: bool = ACCEPT_LICENCE,
    device: str = _DEVICE,
    out: Path = typer.Option(Path("unface-protection"), "--out", help="Folder for protection.json and its page."),
    seed: int = SEED,
    threads: int | None = _THREADS,
    force: bool = typer.Option(False, "--force", help="Overwrite a finished result."),
    json: bool = typer.Option(False, "--json", help="Print protection.json instead of the tables."),
    quiet: bool = QUIET,
) -> None:
    """Measure what a release is good for, and who can be linked to it.

    Recognisers learn from the release and verify pairs of other people. Attackers look for released people with real
    pictures. Originals, masks, mean-colour masks and a low-pass filter stand beside it.
    """
    _require_torch()
    from dataclasses import replace
    from functools import partial

    import torch

    from unface.cli.options import names
    from unface.cli.show import progress_bars, show_decided
    from unface.data import read_images
    from unface.encode import load_encoder
    from unface.gate import decide, policy_for
    from unface.prior import require_device
    from unface.protect import facemae_deploy
    from unface.protect.attackers import FineTuning
    from unface.protect.facemae_audit import Plan, own_people, read_release
    from unface.protect.facemae_audit import audit as measure
    from unface.protect.facemae_train import load_facemae
    from unface.protect.pair_sets import read_pair_set
    from unface.protect.recogniser import RECOGNISERS
    from unface.report.protection import print_protection, render_protection
    from unface.result.protection import ProtectionResult

    ProtectionResult.require_new(out, force=force)
    require_device(device)
    if threads is not None:
        torch.set_num_threads(threads)
    rules = policy_for(policy, "unface protect facemae audit")
    facemae_deploy.read_manifest(release)
    key = facemae_deploy.read_mask_seed(mask_seed)
    trained = load_facemae(model, device)
    recipe = RECOGNISERS[trained.header["recipe"]["preset"]]
    if recogniser_epochs is not None:
        recipe = replace(recipe, epochs=recogniser_epochs)
    plan = Plan(recipe, tuple(range(1, seeds + 1)), FineTuning(steps=tuning_steps, seed=seed), seed, device)
    beside = None if plain is None else load_facemae(plain, device)
    found = _detector(detector, accept_licence)
    size = trained.preset.size
    with progress_bars(quiet=quiet or json) as progress:
        encoders = [
            load_encoder(name, accept_licence=accept_licence, threads=threads, progress=progress)
            for name in names(encoder)
        ]
        given = read_release(release, read_images(originals), key, found, threads=threads, progress=progress)
        result = measure(
            given,
            trained,
            key,
            encoders=encoders,
            pairs=[read_pair_set(text, recipe.size) for text in pairs],
            plan=plan,
            own=None if attacker_people is None else own_people(read_images(attacker_people), size, found, threads),
            plain=beside,
            nobody=None if nobody is None else own_people(read_images(nobody), size, found, threads),
            progress=progress,
        )
    verdict = None if rules is None else decide(result, rules)
    path, page = result.save(out, render_protection(result, verdict)), ProtectionResult.page_in(out)
    show_decided(partial(print_protection, result), verdict, path, {page: "the page"}, json=json, quiet=quiet)


def _require_torch() -> None:
    if find_spec("torch") is None:
        raise UnfaceError("FaceMAE needs torch, not installed; run pip install 'unface[torch]'")


def _detector(name: str, accept_licence: bool) -> "Detector | None":
    from unface.faces import load_detector

    return None if name == "none" else load_detector(name, accept_licence=accept_licence)
