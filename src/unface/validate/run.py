"""A whole validation: everybody is asked about in stages, attacks work on the ledger's answers, judges count."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unface.data import EmbeddingSet, write_embeddings
from unface.errors import UnfaceError
from unface.judge import threshold_facts
from unface.metrics import wilson
from unface.progress import Progress, Silent
from unface.result.file import NO_RATE, Clock, Finding, note, warning
from unface.result.validation import (
    Asked,
    Attacker,
    AttackResult,
    Ceiling,
    Enrolled,
    Hardening,
    JudgeFacts,
    TargetFacts,
    ValidationResult,
    measured,
)
from unface.result.words import count, percent, rate, times
from unface.seeds import stream
from unface.validate.attacks import load_attack, usual_attacks
from unface.validate.hardening import harden
from unface.validate.ledger import Binding, Ledger, opened_ledger
from unface.validate.material import FEWEST_PEOPLE, sha256_of, taken
from unface.validate.measure import WORST, Curve, Verdicts, ceilings, judge_recovered, shared_fars, worst_curve
from unface.validate.oracle import Asking, Pace, Replayed, Session
from unface.validate.ports import Attack, Faces, Knowledge, NotSent, Picture, Reachable, Refused, TemplateJudge
from unface.validate.targets import Enrollable, OpenedTarget

STAGES = (20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000)
HEADLINE_FAR = 1e-3
_UNLIKE, _NO_RATE = 3, 10
"""Times the false-accept rate that strangers may pass before the reader is warned, and before no rate can be stated."""
_REPEATS = 5
_SAME_ANSWER = 1e-3
"""Change of an answer, as a share of how much scores of different faces differ, that is rounding."""
_AS_HIGH = 0.05
"""Share of other faces that may score as high as the picture somebody is enrolled with, and of people unknown by that
before the result is invalid."""
_SHUFFLED_LIMIT = 5
"""Times the false-accept rate that shuffled answers may reach before the result is invalid."""


@dataclass(frozen=True, eq=False)
class Case:
    """Who is enrolled where, and what the attacker has."""

    opened: OpenedTarget
    enrolled: Faces
    knowledge: Knowledge
    judges: Sequence[TemplateJudge]
    enrolled_source: str
    queries_source: str
    enrolled_generated: bool = False
    queries_generated: bool = False
    authorised_by: str | None = None
    notes: Sequence[str] = ()

    @property
    def binding(self) -> Binding:
        """What the ledger belongs to."""
        asked = Faces(
            self.knowledge.pictures,
            np.zeros(len(self.knowledge.pictures), np.int64),
            ("",),
            {},
        )
        return Binding(
            self.opened.target.name,
            self.opened.sha256,
            sha256_of(self.enrolled),
            sha256_of(asked),
            self.authorised_by,
        )


@dataclass(frozen=True)
class Plan:
    """How it is measured."""

    budget: int
    attacks: Sequence[str] = ()
    """By name; empty: those that make sense for the target."""
    rate: float | None = None
    seed: int = 0
    hardening: bool = True
    pace: Pace | None = field(default=None, repr=False)

    def stages(self, faces: int) -> tuple[int, ...]:
        """Numbers of questions to report, the last the budget or as many faces as there are."""
        last = min(self.budget, faces)
        return (*(stage for stage in STAGES if stage < last), last)


@dataclass(frozen=True, eq=False)
class Validated:
    """The result, and the templates for whoever asks for them: (people, d) of the worst case after all questions."""

    result: ValidationResult
    templates: NDArray[np.float64]
    names: tuple[str, ...]
    pictures: tuple[Picture | None, ...] = ()
    """Of each person the last face that an attack drew; empty where none draws."""
    faces: Faces | None = None

    def save_templates(self, path: Path) -> Path:
        """Write the templates: of the attacker's encoder, one for each person with anything recovered."""
        there = np.asarray(np.isfinite(self.templates).all(axis=1))
        found = EmbeddingSet.from_arrays(
            self.templates[there].astype(np.float32),
            [name for name, known in zip(self.names, there, strict=True) if known],
            source="recovered templates",
        )
        write_embeddings(found, path, private=True)
        return path


def validate(case: Case, plan: Plan, ledger_path: Path, *, progress: Progress | None = None) -> Validated:
    """Ask, attack, judge. What was asked before is in the ledger and is not asked again."""
    progress, clock = progress or Silent(), Clock()
    target = case.opened.target
    require_authorised(case.opened, case.authorised_by)
    if isinstance(target, Enrollable):
        people = case.enrolled
        target.enrol({name: people.pictures[people.rows(at)[0]] for at, name in enumerate(people.names)})
    attacks = [load_attack(name) for name in plan.attacks or usual_attacks(decisions_only=target.decisions_only)]
    with opened_ledger(ledger_path, case.binding) as ledger:
        session = Session(target, ledger, plan.pace or Pace(plan.rate))
        stages = plan.stages(len(case.knowledge.pictures))
        _ask_in_stages(session, case, stages, progress)
        reached = _reached(session.ledger, case, stages)
        kept, done = _complete(reached, stages)
        if not done or len(kept) < FEWEST_PEOPLE:
            why = session.ended or "the budget is too small"
            raise UnfaceError(
                f"{target.name}: nothing can be measured after {count(ledger.counted, 'question')} ({why}); "
                f"{ledger_path.name} keeps them, so give the same command again once that is put right"
            )
        return _concluded(case, plan, session, attacks, kept, done, reached, clock, progress)


def reach(opened: OpenedTarget) -> None:
    """Refuse a target that cannot be reached, before anything is asked or encoded."""
    if isinstance(opened.target, Reachable):
        try:
            opened.target.reach()
        except (NotSent, Refused) as error:
            raise UnfaceError(
                f"{error}; nothing was asked, so put that right and give the same command again"
            ) from None


def ask_first(opened: OpenedTarget, enrolled: Faces, authorised_by: str | None, ledger_path: Path, pace: Pace) -> None:
    """One question about each person with the enrolled picture, and one with another picture of them.

    They are counted as any other, and asked before faces are drawn or encoded. A wrong key or name is known at once:
    the first question that is refused is the last.
    """
    require_authorised(opened, authorised_by)
    target = opened.target
    binding = Binding(target.name, opened.sha256, sha256_of(enrolled), None, authorised_by)
    with opened_ledger(ledger_path, binding) as ledger:
        session = Session(target, ledger, pace)
        for which in (0, 1):
            rows = [enrolled.rows(at) for at in range(len(enrolled.names))]
            shown = [enrolled.pictures[of[which]] if len(of) > which else None for of in rows]
            session.first(dict(zip(enrolled.names, shown, strict=True)))
    if session.ended is not None:
        raise UnfaceError(f"{session.ended}; nothing else was asked, so put that right and give the same command again")


def require_authorised(opened: OpenedTarget, authorised_by: str | None) -> None:
    """Refuse a system elsewhere that nobody has allowed to be asked."""
    if not opened.local and not (authorised_by or "").strip():
        raise UnfaceError(
            f"{opened.target.name}: is not on this machine; say who allowed this with --authorised-by 'NAME, DATE, HOW'"
        )


def _ask_in_stages(session: Session, case: Case, stages: Sequence[int], progress: Progress) -> None:
    """The first 20 faces for everybody, then up to 50 …: a run that ends early still has something for everybody."""
    oracles = [session.person(at, name, stages[-1]) for at, name in enumerate(case.enrolled.names)]
    progress.start("asking", stages[-1] * len(oracles))
    for before, stage in zip((0, *stages), stages, strict=False):
        for oracle in oracles:
            if session.ended is not None:
                return
            oracle.ask(case.knowledge.pictures[before:stage])
            progress.advance("asking", stage - before)


def _reached(ledger: Ledger, case: Case, stages: Sequence[int]) -> NDArray[np.int64]:
    """(people,): to which of the stages everything was asked about each person."""
    people = range(len(case.enrolled.names))
    asked = np.array(
        [[ledger.was_asked(at, picture.sha256) for picture in case.knowledge.pictures[: stages[-1]]] for at in people]
    )
    return np.array([sum(bool(row[:stage].all()) for stage in stages) for row in asked], dtype=np.int64)


def _complete(reached: NDArray[np.int64], stages: Sequence[int]) -> tuple[NDArray[np.int64], tuple[int, ...]]:
    """The people to measure, and the numbers of questions that all of them reached."""
    least = int(reached.min())
    people = np.arange(len(reached)) if least else np.flatnonzero(reached)
    return people, tuple(stages[: max(least, 1)]) if len(people) else ()


def _concluded(
    case: Case,
    plan: Plan,
    session: Session,
    attacks: Sequence[Attack],
    kept: NDArray[np.int64],
    queries: tuple[int, ...],
    reached: NDArray[np.int64],
    clock: Clock,
    progress: Progress,
) -> Validated:
    faces = taken(case.enrolled, np.flatnonzero(np.isin(case.enrolled.identities, kept)))
    asked = case.knowledge.pictures[: queries[-1]]
    ledger = session.ledger
    answers = np.array([[ledger.score(int(person), picture.sha256) for picture in asked] for person in kept])
    decisions_only = session.target.decisions_only
    shuffled = stream(plan.seed, "validate", "shuffled").permuted(answers, axis=1)
    results, controls = list[AttackResult](), list[AttackResult]()
    panel, templates = list[Verdicts](), list[NDArray[np.float64]]()
    drawn: tuple[Picture | None, ...] = ()
    progress.start("attacking", 2 * len(attacks) * len(kept))
    for attack in attacks:
        for given, into in ((answers, results), (shuffled, controls)):
            if attack.adaptive and given is shuffled:
                continue  # its questions follow the answers, so there is nothing to shuffle
            recovered = []
            for at, person in enumerate(kept):
                name = case.enrolled.names[int(person)]
                oracle: Asking | Replayed = (
                    session.person(int(person), name, queries[-1])
                    if attack.adaptive
                    else Replayed(asked, given[at], decisions_only=decisions_only)
                )
                recovered.append(attack.run(oracle, case.knowledge, queries))
                progress.advance("attacking")
            verdicts = judge_recovered(attack.settings, recovered, faces, case.judges)
            into.append(Curve.of(verdicts, plan.seed).result(attack.name, adaptive=attack.adaptive))
            if given is answers:
                panel.append(verdicts)
                if getattr(attack, "generates", False):
                    drawn = tuple(one.pictures[0][-1] for one in recovered)
                templates.append(np.stack([one.templates[:, -1] for one in recovered]))  # (people, settings, d)
    again = _repeated(session, case, kept) if any(attack.adaptive for attack in attacks) else []
    worst = worst_curve(panel, plan.seed)
    by = [attack.name for attack in attacks for _ in attack.settings]
    far = HEADLINE_FAR if HEADLINE_FAR in shared_fars(case.judges) else min(shared_fars(case.judges))
    hardening: list[Hardening] = []
    if plan.hardening and not decisions_only:
        hardening = harden(answers, case.knowledge, faces, case.judges, queries, far, seed=plan.seed)
    ceiling = ceilings(faces, case.judges, plan.seed)
    result = ValidationResult(
        target=TargetFacts(
            name=session.target.name,
            kind=case.opened.kind,
            decisions_only=decisions_only,
            local=case.opened.local,
            authorised_by=case.authorised_by,
        ),
        enrolled=Enrolled(
            source=case.enrolled_source,
            generated=case.enrolled_generated,
            people=len(kept),
            pictures=len(faces.pictures),
            sha256=case.binding.enrolled_sha256,
            notes=list(case.notes),
        ),
        attacker=Attacker(
            encoder=case.knowledge.encoder,
            queries=case.queries_source,
            generated=case.queries_generated,
            pictures=len(case.knowledge.pictures),
        ),
        asked=Asked(
            budget=plan.budget,
            counted=ledger.counted,
            answered=ledger.answered,
            lost=ledger.lost,
            people_finished=int((reached == len(plan.stages(len(case.knowledge.pictures)))).sum()),
            ended=session.ended,
            sha256=ledger.sha256(),
        ),
        judges=[_judge_facts(judge) for judge in case.judges],
        attacks=results,
        worst_case=worst.result(WORST, adaptive=any(attack.adaptive for attack in attacks), attacks=by),
        shuffled=controls,
        ceiling=ceiling,
        hardening=hardening,
        findings=[
            *unrecognised(ceiling),
            *_empty_answers(answers, _own_scores(session, case, kept), decisions_only=decisions_only),
            *_second_photos(answers, _own_scores(session, case, kept, 1), decisions_only=decisions_only),
            *again,
            *_findings(case, plan, session, attacks, results, controls, kept, queries),
        ],
        not_measured=_not_measured(case, plan, attacks, hardening, queries),
        run=clock.run(),
    )
    chosen = np.concatenate(templates, axis=1)[np.arange(len(kept)), worst.chosen[-1]]
    return Validated(result, chosen, faces.names, drawn, faces)


def _repeated(session: Session, case: Case, kept: NDArray[np.int64]) -> list[Finding]:
    """The first question about some people once more, for attacks that follow small differences between answers."""
    first = case.knowledge.pictures[:1]
    some = [int(person) for person in kept[:_REPEATS]]
    before = np.array([session.ledger.score(person, first[0].sha256) for person in some])
    after = np.array([session.repeat(person, case.enrolled.names[person], first)[0] for person in some])
    both = np.isfinite(before) & np.isfinite(after)
    if not both.any():
        return [warning("repeats", "no question could be asked a second time; whether answers changed is not known")]
    changed = float(np.abs(after - before)[both].max())
    asked = np.array(
        [[session.ledger.score(person, one.sha256) for one in case.knowledge.pictures[:50]] for person in some]
    )
    spread = float(np.nanstd(asked))
    if changed <= _SAME_ANSWER * spread:
        return []
    text = (
        f"of {count(int(both.sum()), 'question')} asked again at the end the answer changed by up to {changed:.2g}; "
        f"scores of different faces differ by {spread:.2g}"
    )
    if changed >= spread:
        return [Finding(severity="invalid", about="repeats", text=f"{text}: the target was changed during the run")]
    return [warning("repeats", f"{text}: the target adds noise or changed, and attacks that follow scores lose by it")]


def _judge_facts(judge: TemplateJudge) -> JudgeFacts:
    return JudgeFacts(
        name=judge.name,
        independent=judge.independent,
        thresholds=[threshold_facts(one) for one in judge.thresholds],
        template_thresholds=[threshold_facts(one) for one in judge.template_thresholds]
        if judge.template_thresholds is not judge.thresholds
        else [],
        notes=list(getattr(judge, "notes", ())),
    )


def unrecognised(ceiling: Sequence[Ceiling]) -> list[Finding]:
    """Judges that do not accept a real second photo cannot accept a recovered template either."""
    here = [one.other for one in ceiling if one.far == HEADLINE_FAR]
    if not here or any(share.low > HEADLINE_FAR for share in here):
        return []
    text = (
        f"at FAR {rate(HEADLINE_FAR)} a real second photo passes for {percent(max(one.value for one in here))}, no "
        "more than chance: the judges do not recognise these people, so a failed attack says nothing"
    )
    return [Finding(severity="invalid", about="ceiling", text=text)]


def _own_scores(session: Session, case: Case, kept: NDArray[np.int64], which: int = 0) -> NDArray[np.float64] | None:
    """(people,) answers to the first questions, asked with the enrolled pictures or others; None if none was asked."""
    rows = [(int(person), case.enrolled.rows(int(person))) for person in kept]
    own = {person: case.enrolled.pictures[of[which]] for person, of in rows if len(of) > which}
    if not any(session.own_was_asked(person, picture) for person, picture in own.items()):
        return None
    return np.array([session.own_score(person, own[person]) if person in own else np.nan for person in kept.tolist()])


def _empty_answers(
    answers: NDArray[np.float64], own: NDArray[np.float64] | None, *, decisions_only: bool
) -> list[Finding]:
    """Whether (people, questions) answers tell people apart: where they do not, a failed attack says nothing.

    Rejecting every face is what a strict service does too; accepting every face is not.
    """
    same = np.array([len(np.unique(row[np.isfinite(row)])) == 1 for row in answers])
    people = f"{len(same):,} people"
    if decisions_only and same.all() and np.nanmin(answers) > 0:
        text = "the target accepted every face as every person, so no attack could learn anything"
        return [Finding(severity="invalid", about="answers", text=f"{text}; check that it compares at all")]
    if same.all() and not decisions_only:
        text = (
            f"the target gave the same answer to every question about each of {people}, so no attack could learn "
            "anything; check that they are enrolled and that the answer holds the score, then use another --out"
        )
        return [Finding(severity="invalid", about="answers", text=text)]
    if own is not None and (unknown := _not_known(answers, own, decisions_only=decisions_only)):
        return [unknown]
    if decisions_only and own is None and same.all() and np.nanmax(answers) <= 0:
        text = "the target rejected every question, as it would if nobody were enrolled"
        return [warning("answers", f"{text}; check that a photo of an enrolled person is accepted")]
    if decisions_only or not same.any():
        return []
    text = f"about {int(same.sum()):,} of {people} the target gave the same answer to every question"
    return [warning("answers", f"{text}; check that they are enrolled")]


def _second_photos(
    answers: NDArray[np.float64], second: NDArray[np.float64] | None, *, decisions_only: bool
) -> list[Finding]:
    """How many people the service recognises by a picture that it has not seen; of nobody, it recognises none."""
    if second is None:
        return []
    asked = [at for at in range(len(second)) if np.isfinite(second[at]) and np.isfinite(answers[at]).any()]
    known = sum(not _unknown(answers[at], second[at], decisions_only=decisions_only) for at in asked)
    if not asked:
        return []
    people = count(len(asked), "enrolled person", "enrolled people")
    text = f"asked with a second photo of each, the service recognised {known:,} of {people}"
    if not known:
        nothing = f"{text}: it recognises nobody, so a failed attack says nothing"
        return [Finding(severity="invalid", about="second photos", text=nothing)]
    if 2 * known < len(asked):
        return [warning("second photos", f"{text}; of the others a failed attack says nothing")]
    return [note("second photos", text)]


def _unknown(answers: NDArray[np.float64], own: float, *, decisions_only: bool) -> bool:
    """Whether a picture of the person was rejected, or other faces score as high."""
    heard = answers[np.isfinite(answers)]
    return own <= 0 if decisions_only else float(np.mean(heard >= own)) > _AS_HIGH


def _not_known(answers: NDArray[np.float64], own: NDArray[np.float64], *, decisions_only: bool) -> Finding | None:
    """What to say if the pictures that people are enrolled with have no higher scores than other faces."""
    asked = [at for at in range(len(own)) if np.isfinite(own[at]) and np.isfinite(answers[at]).any()]
    if not asked:
        text = (
            "the target did not answer when asked with enrolled pictures, so whether it knows these people is unknown"
        )
        return Finding(severity="invalid", about="enrolment", text=f"{text}; use another --out")
    unknown = [at for at in asked if _unknown(answers[at], own[at], decisions_only=decisions_only)]
    if not unknown:
        return None
    first = unknown[0]
    as_high = float(np.mean(answers[first][np.isfinite(answers[first])] >= own[first]))
    answer, checks = "was rejected", "that these people are enrolled"
    if not decisions_only:
        answer = f"scored no higher than other faces (one scored {own[first]:.3g}, and {percent(as_high)} of "
        answer += "other faces as high)"
        checks += " and that a higher score means more alike"
    text = (
        f"the service does not know {len(unknown):,} of {count(len(asked), 'enrolled person', 'enrolled people')}: the "
        f"very picture that they are enrolled with {answer}. A failed attack on them says nothing; check {checks}, "
        "then use another --out"
    )
    few = len(unknown) <= _AS_HIGH * len(asked)
    return Finding(severity="warning" if few else "invalid", about="enrolment", text=text)


def _findings(
    case: Case,
    plan: Plan,
    session: Session,
    attacks: Sequence[Attack],
    results: Sequence[AttackResult],
    controls: Sequence[AttackResult],
    kept: NDArray[np.int64],
    queries: tuple[int, ...],
) -> list[Finding]:
    found = []
    if session.ended is not None:
        everybody = len(case.enrolled.names)
        text = f"{session.ended}. {count(len(kept), 'person', 'people')} of {everybody} and {queries[-1]} questions for"
        found.append(warning("the run ended early", f"{text} each are in this result"))
    if not any(judge.independent for judge in case.judges):
        text = "only the attacker's own encoder judged, and success may be particular to it; name others with --judge"
        found.append(warning("judges", text))
    elif len(case.judges) == 1:
        found.append(note("judges", f"one judge alone, {case.judges[0].name}"))
    for control in controls:
        for point in control.at:
            share = measured(point)
            if point.queries == queries[-1] and share is not None and share.low > _SHUFFLED_LIMIT * point.far:
                text = (
                    f"{control.name} on shuffled answers still succeeds for {percent(share.value)} "
                    f"at FAR {rate(point.far)}: the thresholds do not fit these people, so no number here can be used"
                )
                found.append(Finding(severity="invalid", about="control", text=text))
                break
    if case.enrolled_generated and any(getattr(attack, "generates", False) for attack in attacks):
        text = (
            "the enrolled people were drawn by the generator that the attack searches; enrol photographed people, or "
            "leave that attack out"
        )
        found.append(Finding(severity="invalid", about=NO_RATE, text=text))
    strangers = [point for one in results for point in one.at if point.queries == queries[-1]]
    unlike = max((point.chance / point.far for point in strangers if point.far >= HEADLINE_FAR), default=0.0)
    pairs = len(kept) * (len(kept) - 1)
    beyond = [
        point
        for point in strangers
        if point.far >= HEADLINE_FAR and wilson(point.chance * pairs, pairs).low > _NO_RATE * point.far
    ]
    if beyond:
        text = (
            f"what was recovered passes for strangers among the enrolled in {percent(beyond[0].chance)}, more than "
            f"{_NO_RATE} times the FAR of {rate(beyond[0].far)}; judges' thresholds do not fit these faces"
        )
        found.append(Finding(severity="invalid", about=NO_RATE, text=text))
    elif unlike > _UNLIKE:
        text = (
            f"recovered templates match strangers among the enrolled {times(unlike)} as often as the FAR says: the "
            "enrolled people and the faces to ask with are of different kinds, and success may be overstated"
        )
        found.append(warning("thresholds", text))
    if session.ledger.lost > 0.1 * max(session.ledger.counted, 1):
        share_lost = percent(session.ledger.lost / session.ledger.counted)
        found.append(warning("lost answers", f"{share_lost} of the questions have no answer"))
    if not case.enrolled_generated:
        found.append(
            note("enrolled people", "real people, as far as unface knows: keep the ledger and this file at home")
        )
    return found


def _not_measured(
    case: Case, plan: Plan, attacks: Sequence[Attack], hardening: Sequence[Hardening], queries: tuple[int, ...]
) -> list[str]:
    missing = [f"{attack.name} on shuffled answers: its questions follow them" for attack in attacks if attack.adaptive]
    if queries[-1] < plan.budget:
        why = "the run ended before"
        if queries[-1] >= len(case.knowledge.pictures):
            why = "one picture of each person is asked with, and a third of the people set thresholds; "
            why += f"{plan.budget:,} questions need {(3 * plan.budget + 1) // 2:,} people in --queries"
        missing.append(f"more than {queries[-1]} questions for each person: {why}")
    if plan.hardening and not hardening:
        missing.append("hardening: the target answers with decisions, and there is nothing left to take away")
    if all(len(case.enrolled.rows(at)) == 1 for at in range(len(case.enrolled.names))):
        missing.append("other pictures of the people: only one picture of each was given")
    return missing
