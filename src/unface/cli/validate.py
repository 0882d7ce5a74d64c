"""``unface validate``: what a face system that only answers with a score reveals."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from unface.cli.options import CONFIG, POLICY, QUIET, SEED, THREADS, names
from unface.errors import UnfaceError, printable

if TYPE_CHECKING:
    from unface.faces import Detector
    from unface.gate import Policy
    from unface.judge import Recogniser
    from unface.progress import Progress
    from unface.validate import Faces
    from unface.validate.judges import Embed
    from unface.validate.material import Seen
    from unface.validate.ports import Generator
    from unface.validate.run import Case, Validated
    from unface.validate.targets import OpenedTarget

_REMOTE_RATE = 2.0
_PERMISSIVE, _RESTRICTED = "sface", ("arcface-mbf", "edgeface-s")
_BESIDE = 300  # generated faces more than are asked with, to set thresholds: FAR 1e-3 is resolved, 1e-4 coarse


def validate(
    target: str = typer.Option(
        ...,
        "--target",
        help="https://HOST/PATH/{person}, command:PROGRAM {person}, module:function, encoder:NAME or "
        "ppfr:SCHEME/VARIANT/NAME.",
    ),
    enrol: str = typer.Option(
        ..., "--enrol", metavar="nobody|FOLDER", help="People to enrol: generated ones, or <person>/<picture>."
    ),
    budget: int = typer.Option(500, "--budget", min=10, help="Questions for each enrolled person."),
    go_on: bool = typer.Option(False, "--continue", help="The people are enrolled: begin to ask."),
    queries: str = typer.Option(
        "nobody", "--queries", metavar="nobody|FOLDER", help="Faces that the attacker asks with, as <person>/<picture>."
    ),
    authorised_by: str | None = typer.Option(
        None, "--authorised-by", help="Who allowed it; needed for a target elsewhere, and recorded."
    ),
    people: int = typer.Option(
        60, "--people", min=2, help="How many people to generate for --enrol nobody; a limit of 5 % needs 59."
    ),
    attack: list[str] = typer.Option(
        [],
        "--attack",
        help="Attacks by name, repeated or with commas: best-of-n, scores, decisions, map2v, map2v-improved [default: "
        "all that ask with the given faces].",
    ),
    encoder: str | None = typer.Option(
        None, "--encoder", help="The attacker's own [default: arcface-mbf with --accept-licence, else sface]."
    ),
    judge: list[str] = typer.Option(
        [],
        "--judge",
        help="Recognisers that judge [default: sface; with --accept-licence also arcface-mbf and edgeface-s].",
    ),
    decisions_only: bool = typer.Option(False, "--decisions-only", help="The target answers 1 (accepted) or 0."),
    score_path: str = typer.Option("score", "--score-path", help="http: where the score stands, as data.0.similarity."),
    body: str = typer.Option("picture", "--body", help="http: picture (its bytes alone), form or json."),
    field: list[str] = typer.Option(
        [], "--field", metavar="NAME=VALUE", help="http: of a form or json, with {picture} or {person}; repeated."
    ),
    header_env: list[str] = typer.Option(
        [], "--header-env", metavar="NAME=VARIABLE", help="http: header whose value an environment variable holds."
    ),
    timeout: float = typer.Option(30.0, "--timeout", min=0.1, help="Seconds to wait for an answer."),
    rate: float | None = typer.Option(
        None, "--rate", min=0.001, help="Questions a second [default: 2 for a target elsewhere, else no limit]."
    ),
    save_templates: bool = typer.Option(
        False, "--save-templates", help="Write what was recovered to templates.parquet: biometric data."
    ),
    quiz: bool = typer.Option(
        False, "--quiz", help="Write quiz.html: do people recognise the faces that an attack drew? Shows faces."
    ),
    accept_licence: bool = typer.Option(False, "--accept-licence", help="Accept weights for research use only."),
    device: str = typer.Option("cpu", "--device", help="cpu or cuda, to generate people on."),
    out: Path = typer.Option(
        Path("unface-validation"), "--out", help="Folder for validation.json, validation.html and the ledger."
    ),
    policy: Path | None = POLICY,
    config: Path | None = CONFIG,
    seed: int = SEED,
    threads: int | None = THREADS,
    force: bool = typer.Option(False, "--force", help="Overwrite a finished validation; its ledger is kept."),
    json: bool = typer.Option(False, "--json", help="Print validation.json instead of the table."),
    quiet: bool = QUIET,
) -> None:
    """Ask a face system questions as an ordinary user could, and measure what the answers reveal.

    For systems that you run, or were allowed to test. If a run is interrupted, the same command continues it, and
    no question is asked twice.
    """
    from unface.cli.show import progress_bars
    from unface.faces import Remembered, load_detector
    from unface.gate import policy_for
    from unface.result.validation import ValidationResult
    from unface.validate.attacks import load_attack
    from unface.validate.ledger import LEDGER_FILE, is_begun
    from unface.validate.material import embedder, enrolment_of
    from unface.validate.nobody import NOBODY, Drawing
    from unface.validate.oracle import Pace
    from unface.validate.run import Plan, ask_first, reach, require_authorised
    from unface.validate.run import validate as run
    from unface.validate.targets import Enrollable, HttpForm, open_target

    ValidationResult.require_new(out, force=force)
    generates = any(getattr(load_attack(name), "generates", False) for name in names(attack))
    if quiz and not generates:
        raise UnfaceError("--quiz: shows faces that an attack drew; add --attack map2v or --attack map2v-improved")
    rules = policy_for(policy, "unface validate")
    form = HttpForm(score_path, body, _pairs(field, "--field"), _pairs(header_env, "--header-env"), timeout)
    own = encoder or (_RESTRICTED[0] if accept_licence else _PERMISSIVE)
    with progress_bars(quiet=quiet or json) as progress:
        recognisers = _Recognisers(accept_licence, threads, seed, progress)
        opened = open_target(target, decisions_only=decisions_only, form=form, embed=recognisers.built_in)
        require_authorised(opened, authorised_by)
        _require_enough(queries, enrol, budget, rules)
        asks = isinstance(opened.target, Enrollable) or go_on or is_begun(out / LEDGER_FILE)
        if asks:
            reach(opened)
        detector = Remembered(load_detector(accept_licence=accept_licence))
        seeing = {name: recognisers.named(name) for name in [own, *_judges(names(judge), opened, accept_licence)]}
        drawing = Drawing(seed, device, accept_licence, threads, progress)
        enrol_folder = drawing.enrolled(people, out / "enrol") if enrol == NOBODY else Path(enrol)
        pace = Pace(rate or (None if opened.local else _REMOTE_RATE))
        if asks and not isinstance(opened.target, Enrollable):
            faces = enrolment_of(_seen(enrol_folder, {}, detector, "finding enrolled faces", threads, progress), enrol)
            ask_first(opened, faces, authorised_by, out / LEDGER_FILE, pace)
        enrolled = enrolment_of(_seen(enrol_folder, seeing, detector, "enrolled", threads, progress), enrol)
        if not asks:
            _ask_to_enrol(enrolled, enrol_folder, out, opened, budget)
            return
        query_folder = drawing.queries(budget + _BESIDE, out / "queries") if queries == NOBODY else Path(queries)
        asked = _seen(query_folder, seeing, detector, "faces to ask with", threads, progress)
        embed = {name: embedder(one, detector) for name, one in seeing.items()}
        generator = drawing.generator() if generates else None
        case = _case(
            opened, enrolled, asked, own, enrol, queries, authorised_by, budget, seed, threads, embed, generator
        )
        plan = Plan(budget, names(attack), pace.rate, seed, pace=pace)
        done = run(case, plan, out / LEDGER_FILE, progress=progress)
    more = _write_quiz(done, case, out, seed) if quiz else {}
    _show(done, out, rules, more, save_templates=save_templates, json=json, quiet=quiet)


class _Recognisers:
    """Each loaded once, and the systems that unface itself makes of them."""

    def __init__(self, accept_licence: bool, threads: int | None, seed: int, progress: "Progress") -> None:
        self._accept, self._threads, self._seed, self._progress = accept_licence, threads, seed, progress
        self._loaded: dict[str, Recogniser] = {}

    def named(self, name: str) -> "Recogniser":
        from unface.judge import load_recogniser

        if name not in self._loaded:
            self._loaded[name] = load_recogniser(
                name, accept_licence=self._accept, threads=self._threads, progress=self._progress
            )
        return self._loaded[name]

    def built_in(self, text: str) -> "Embed":
        from unface.faces import load_detector
        from unface.protect.server import open_server
        from unface.validate.material import embedder

        kind, _, name = text.partition(":")
        face = self.named(name) if kind == "encoder" else open_server(name, self.named, seed=self._seed)
        return embedder(face, load_detector(accept_licence=self._accept))


def _judges(named: list[str], opened: "OpenedTarget", accept_licence: bool) -> list[str]:
    usual = [name for name in (_PERMISSIVE, *_RESTRICTED) if accept_licence or name == _PERMISSIVE]
    return [name for name in (named or usual) if name != opened.encoder]


def _write_quiz(done: "Validated", case: "Case", out: Path, seed: int) -> dict[Path, str]:
    """The page and its key; both for their owner alone."""
    from unface.output.write import write_files
    from unface.report.validation import render_quiz
    from unface.validate.quiz import make_quiz

    assert done.faces is not None, "a finished run has them"
    made = make_quiz(done.faces, done.pictures, case.knowledge.pictures, case.knowledge.encoder, seed)
    items = [(item.face.content, [one.content for one in item.candidates]) for item in made.items]
    write_files(out, {}, {"quiz.html": render_quiz(made.sha256, items), "quiz-key.json": made.key()})
    return {
        out / "quiz.html": "the quiz; it shows faces",
        out / "quiz-key.json": "its key, for python -m unface.validate.quiz KEY ANSWERS...",
    }


def _pairs(given: list[str], option: str) -> dict[str, str]:
    pairs = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise UnfaceError(f"{option}: {text!r} is not NAME=VALUE")
        pairs[name] = value
    return pairs


def _require_enough(queries: str, enrol: str, budget: int, rules: "Policy | None") -> None:
    """Before anybody is enrolled for a run that could measure nothing, or nothing that the policy asks for."""
    from unface.data import read_images
    from unface.gate.policy import ValidationRule
    from unface.judge.template import FARS
    from unface.validate.material import require_enough_to_ask_with
    from unface.validate.nobody import NOBODY

    if queries != NOBODY:
        enrolled = None if enrol == NOBODY else read_images(Path(enrol))
        asked = [rule.far for rule in rules.require if isinstance(rule, ValidationRule)] if rules is not None else []
        far = min([max(FARS), *(far for far in asked if far in FARS)])
        require_enough_to_ask_with(read_images(Path(queries)), enrolled, budget, far)


def _seen(
    folder: Path,
    seeing: "dict[str, Recogniser]",
    detector: "Detector",
    task: str,
    threads: int | None,
    progress: "Progress",
) -> "Seen":
    from unface.data import read_images
    from unface.validate.material import see

    return see(read_images(folder), seeing, detector, task=task, threads=threads, progress=progress)


def _case(
    opened: "OpenedTarget",
    enrolled: "Faces",
    asked: "Seen",
    own: str,
    enrol: str,
    queries: str,
    authorised_by: str | None,
    budget: int,
    seed: int,
    threads: int | None,
    embed: "dict[str, Embed]",
    generator: "Generator | None",
) -> "Case":
    """What is measured with: judges learn from the faces asked with, thresholds come from everybody else."""
    from unface.validate.judges import make_judges
    from unface.validate.material import split_attacker, without
    from unface.validate.nobody import NOBODY
    from unface.validate.ports import Knowledge
    from unface.validate.run import Case

    faces, calibrate = split_attacker(without(asked.faces, enrolled), budget, seed)
    judges = make_judges(own, opened.encoder, faces, calibrate, faces, embed=embed, threads=threads)
    return Case(
        opened,
        enrolled,
        Knowledge(faces.pictures, faces.vectors[own], own, seed, generator, embed[own]),
        judges,
        enrolled_source=enrol if enrol == NOBODY else Path(enrol).name,
        queries_source=queries if queries == NOBODY else Path(queries).name,
        enrolled_generated=enrol == NOBODY,
        queries_generated=queries == NOBODY,
        authorised_by=authorised_by,
        notes=asked.notes,
    )


def _ask_to_enrol(enrolled: "Faces", folder: Path, out: Path, opened: "OpenedTarget", budget: int) -> None:
    """Say what the operator has to do; nothing was sent."""
    from unface.output.write import write_files
    from unface.result.file import Listing

    rows: list[tuple[str, ...]] = [
        (name, str(folder / enrolled.pictures[enrolled.rows(at)[0]].name)) for at, name in enumerate(enrolled.names)
    ]
    listing = Listing(("person", "picture"), rows, "people to enrol").csv()
    write_files(out, {}, {"enrol.csv": listing})
    several = sum(len(enrolled.rows(at)) > 1 for at in range(len(rows)))
    total = (budget + 1) * len(rows) + several
    typer.echo(
        printable(
            f"Nothing was sent yet. Enrol {len(rows)} people in {opened.target.name}, each with one picture and under "
            f"the name in {out / 'enrol.csv'}.\nEnrol nobody else under these names, and no other picture of them.\n"
            f"Then give the same command with --continue: it asks up to {total:,} questions, {budget} about each "
            "person and, before these, one with their enrolled picture and one with another picture of them, which "
            "show whether the service knows them."
        )
    )


def _show(
    done: "Validated",
    out: Path,
    rules: "Policy | None",
    more: dict[Path, str],
    *,
    save_templates: bool,
    json: bool,
    quiet: bool,
) -> None:
    """Files first, then the table or the JSON; a target that stopped answering is said last."""
    from functools import partial

    from unface.cli.show import show_decided
    from unface.gate import decide
    from unface.report.validation import print_validation, render_validation
    from unface.result.validation import ValidationResult
    from unface.result.words import count
    from unface.validate.ledger import LEDGER_FILE

    result = done.result
    decision = None if rules is None else decide(result, rules)
    page = ValidationResult.page_in(out)
    beside = {out / LEDGER_FILE: "every question, to be kept at home", page: "the page", **more}
    if save_templates:
        beside = {done.save_templates(out / "templates.parquet"): "recovered templates: biometric data", **beside}
    path = result.save(out, render_validation(result, decision=decision))
    stopped = result.asked.ended is not None
    verdict = None if stopped else decision  # an error says more than a verdict on what there is
    show_decided(partial(print_validation, result), verdict, path, beside, json=json, quiet=quiet)
    if stopped:
        asked = count(result.asked.counted, "question")
        raise UnfaceError(
            f"{result.target.name}: stopped answering after {asked} ({result.asked.ended}); "
            f"{path} holds what there is, and the same command with --force continues"
        )
