"""``measure_release``: one synthetic set against training and holdout people, by one encoder or several traits."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from unface.data import EmbeddingSet
from unface.errors import UnfaceError
from unface.metrics import (
    Replicates,
    Scheme,
    accepts_by_identity,
    difference_interval,
    identity_weights,
    rate_interval,
    wilson,
    zero_bound,
)
from unface.pairs import Nearest, all_mated, cosine_space, pair_up
from unface.progress import Progress, Silent
from unface.release.check import Overlap, aligned, require_comparable, with_people
from unface.release.copies import (
    Copies,
    Reached,
    SyntheticPeople,
    as_many_people,
    copied_people,
    count_copies,
    drawn_people,
    share_of_copies,
    stranger_cosine,
    stranger_thresholds,
    synthetic_people,
)
from unface.release.crowding import BLOCK, COHORT, crowding
from unface.release.draws import Draw, compared_pictures, equal_draws
from unface.release.exchangeable import exchangeability
from unface.release.exposure import (
    FDR,
    Enrichment,
    Exposure,
    PersonScores,
    enrichment,
    exposed,
    fused,
    person_scores,
    separation,
)
from unface.release.faces import Faces, Held, compare, faces_of, near_pairs, people_reached
from unface.release.membership import PERMUTATIONS, Membership, Permuted, measure_membership, of_draws
from unface.release.overall import FEWEST_PERMUTATIONS, nearness, overall_test
from unface.release.paper import PaperSet, paper_score
from unface.release.read import MADE_OF
from unface.release.retrieval import Labelled, retrieval_risk
from unface.result.file import Clock, Finding, Listing, note, warning
from unface.result.numbers import Estimate, Interval, Share
from unface.result.release import (
    FEWEST_HOLDOUT,
    CopiesResult,
    EnrichmentResult,
    ExactCopies,
    ExchangeabilityResult,
    ExposureResult,
    Linking,
    MembershipResult,
    PaperResult,
    PermutationTest,
    ReleaseResult,
    RiskResult,
    RiskyPicture,
    SeparationResult,
    SetFacts,
    ViewResult,
)
from unface.result.words import count, percent, rate
from unface.seeds import stream

LINK_FAR, FPR = 1e-2, 1e-2
_MOST_PAPER = 10_000
_COUNTED, _BITS_COUNTED = 10_000, 100_000_000  # faces that copies expected by chance rest on, and faces × people
_REPLICATES, _RISKIEST, _PICTURES_LISTED = 1_000, 20, 10
_ALONE = "all"
_EXACT = "exact copy"


@dataclass(frozen=True)
class Plan:
    """How to measure."""

    far: tuple[float, ...] = (1e-4, 1e-5, 1e-6)
    k: tuple[int, ...] = (1, 2, 5)
    seed: int = 0
    device: str = "cpu"
    threads: int | None = None
    paper: bool = False
    """Also the trait privacy score of paper 003."""


@dataclass(frozen=True, eq=False)
class View:
    """The three sets as one encoder, or one facial trait, sees them."""

    name: str
    synthetic: Faces
    training: Faces
    holdout: Faces


@dataclass(frozen=True, eq=False)
class Released:
    """The result, and the list of exposed people that is written for its owner alone."""

    result: ReleaseResult
    exposed: Listing
    faces: list[tuple[str, str]]
    """(id of a risky synthetic picture, id of the nearest training picture), the riskiest first."""


def release(
    synthetic: EmbeddingSet,
    training: EmbeddingSet,
    holdout: EmbeddingSet,
    *,
    name: str = "face",
    named: bool = False,
    plan: Plan | None = None,
) -> Released:
    """The same for three sets in memory; ``named``: synthetic identities are the names of training people."""
    released = faces_of(synthetic, labelled=named, made_of=MADE_OF)
    return measure_release([View(name, released, faces_of(training), faces_of(holdout))], plan or Plan())


def measure_release(views: Sequence[View], plan: Plan, *, progress: Progress | None = None) -> Released:
    """Refuse what cannot be compared, measure every view, fuse them, and say what it comes to."""
    clock, progress = Clock(), progress or Silent()
    findings: list[Finding] = []
    views, dropped = _same_rows(list(views))
    findings += dropped
    first = views[0]
    if max(plan.k) > len(first.synthetic):
        raise UnfaceError(
            f"k = {max(plan.k)}: {first.synthetic.source} has {count(len(first.synthetic), 'face')}; give a smaller k"
        )
    overlaps = [require_comparable(view.synthetic, view.training, view.holdout) for view in views]
    findings += [note("sets", text) for text in dict.fromkeys(text for one in overlaps for text in one.notes)]
    training, holdout, clustered = with_people(first.training, first.holdout, device=plan.device, threads=plan.threads)
    if clustered is not None:
        findings.append(warning("people", clustered))
    own = _own(first.synthetic, training)
    draws = equal_draws(training.people, holdout.people, seed=plan.seed)
    sides = _Sides(training.people, holdout.people, draws, own)
    findings += _equal_notes(draws, training.people, holdout.people)
    exact = _exact_copies(overlaps[0], training.people)
    findings += _exact_notes(exact)
    if own is not None:
        findings.append(
            note(
                "own identity", "rows that name a training person are not compared with that person; see retrieval risk"
            )
        )
    cosine = stranger_cosine(*_strangers(first, sides, plan), seed=plan.seed, threads=plan.threads)
    same = synthetic_people(first.synthetic, cosine, seed=plan.seed, device=plan.device, threads=plan.threads)
    progress.start("views", len(views))
    every = []
    for view in views:
        every.append(_measure(view, sides, same, plan))
        progress.advance("views")
    measured, not_measured = _that_link(every, findings)
    exchangeable = _exchangeable(first, sides, plan)
    findings += _camera_notes(exchangeable)
    not_measured += _unresolved(measured[0], plan)
    joint = _fused(measured) if len(measured) > 1 else None
    retrieval, unmeasured = _retrieval(first.synthetic, training, own, plan)
    not_measured += unmeasured
    exposures = {one.view.name: one.exposure for one in measured} | ({} if joint is None else {_ALONE: joint})
    exposing = _exposing(measured, joint, sides, plan)
    findings += _holdout_notes((joint or measured[0].exposure).least, *sides.counts)
    result = ReleaseResult(
        synthetic=_facts(first.synthetic, None if not first.synthetic.labelled else len(first.synthetic.names), False),
        training=_facts(training, sides.counts[0], clustered is not None),
        holdout=_facts(holdout, sides.counts[1], clustered is not None),
        exchangeable=exchangeable,
        views=[_view(one, exposing.get(one.view.name, {})) for one in measured],
        fused=None if joint is None else _exposure(joint),
        overall=_overall(measured, sides, plan),
        exact=exact,
        retrieval=retrieval,
        paper=_paper(views, sides, plan) if plan.paper else [],
        findings=findings,
        not_measured=not_measured,
        run=clock.run(),
    )
    listing = _listing(exposures, exposing, measured, training, overlaps[0].training)
    near = measured[0].training
    shown = [(str(first.synthetic.ids[row]), str(training.ids[near.rows[row]])) for row in _riskiest(measured[0])]
    return Released(result, listing, shown)


def _that_link(views: "list[_Measured]", findings: list[Finding]) -> "tuple[list[_Measured], list[str]]":
    """The first view and all others that link real people; which do not, and what that means."""
    measured, not_measured = [], []
    for one in views:
        name = one.view.name
        if one.linking is None:
            findings.append(warning(name, "no real person has two pictures: whether it links people is unknown"))
        elif not one.linking.above_chance:
            said = f"{percent(one.linking.tar.value)} at FAR {rate(LINK_FAR)}"
            not_measured.append(f"{name}: this encoder does not link real people above chance ({said})")
            if one is not views[0]:
                continue
            findings.append(warning(name, "does not link real people: nothing can be concluded from it"))
        measured.append(one)
    return measured, not_measured


@dataclass(frozen=True, eq=False)
class _Measured:
    """One view: what the result says, and what it was made of."""

    view: View
    linking: Linking | None
    training: Nearest
    holdout: Nearest
    usual: NDArray[np.float32]
    """(training pictures,) how crowded the place of each is."""
    scores: list[tuple[PersonScores, PersonScores]]
    """Training and holdout people in each draw of pictures."""
    membership: Membership
    exposure: Exposure
    enrichment: Enrichment
    separation: SeparationResult
    copies: list[Copies]
    copied: list[Share]
    asked: list[list[NDArray[np.int64]]]
    """By draw: for each person, faces that are nearest to them, of all faces and of those that reach a threshold."""


@dataclass(frozen=True, eq=False)
class _Sides:
    """Who is in the pictures of both sides, and which of them are compared."""

    training: NDArray[np.int64]
    holdout: NDArray[np.int64]
    draws: list[Draw]
    own: NDArray[np.int64] | None
    """The training person that each synthetic row names."""

    @property
    def counts(self) -> tuple[int, int]:
        """Training and holdout people."""
        return int(self.training.max()) + 1, int(self.holdout.max()) + 1


def _measure(view: View, sides: _Sides, same: SyntheticPeople, plan: Plan) -> _Measured:
    how = {"device": plan.device, "threads": plan.threads}
    (ours, others), (our_count, other_count) = (sides.training, sides.holdout), sides.counts
    codes = None if sides.own is None else (sides.own, ours)
    near_training, of_training = compare(view.synthetic, view.training, own=codes, **how)  # type: ignore[arg-type]
    near_holdout, of_holdout = compare(view.synthetic, view.holdout, **how)  # type: ignore[arg-type]
    if (near_training.rows < 0).any():
        row = int(np.argmax(near_training.rows < 0))
        raise UnfaceError(
            f"{view.synthetic.source}: {view.synthetic.ids[row]!r} has no other training person to compare"
        )
    usual = _usual(view, sides, plan)
    scores = [
        (
            person_scores(of_training.scores - usual[0], ours, our_count, seed=plan.seed, side="training", draw=number),
            person_scores(
                of_holdout.scores - usual[1], others, other_count, seed=plan.seed, side="holdout", draw=number
            ),
        )
        for number in range(len(sides.draws))
    ]
    near = [_near_drawn(view, draw, (near_training, near_holdout), sides, plan) for draw in sides.draws]
    nearest = np.stack([_nearest_person(one, sides) for one in near])
    strangers = _strangers(view, sides, plan)
    thresholds = stranger_thresholds(*strangers, plan.far, seed=plan.seed, **how)  # type: ignore[arg-type]
    counted = [[np.bincount(people, minlength=our_count + other_count)] for people in nearest]
    copies, copied = [], []
    for threshold in thresholds:
        reached = [
            _reached(threshold.cosine, view, draw, one, sides, plan)
            for draw, one in zip(sides.draws, near, strict=True)
        ]
        for one, pair in zip(counted, reached, strict=True):
            one.append(copied_people(pair, threshold.cosine))
        found = count_copies(threshold, (near_training, near_holdout), reached, same, seed=plan.seed)
        copies.append(found)
        copied.append(share_of_copies(found, near_training.scores >= threshold.cosine, same))
    alike = sides.draws[0].alike
    return _Measured(
        view,
        _linking(*strangers, plan),
        near_training,
        near_holdout,
        usual[0],
        scores,
        measure_membership(nearest, our_count, other_count, alike=alike, seed=plan.seed),
        exposed(*scores[0]),
        enrichment(*scores[0]),
        _separation(*scores[0], plan),
        copies,
        copied,
        counted,
    )


def _near_drawn(
    view: View, draw: Draw, whole: tuple[Nearest, Nearest], sides: _Sides, plan: Plan
) -> tuple[Nearest, Nearest]:
    """The nearest of the drawn pictures of each side, by rows of the whole side."""
    found = []
    for number, (real, rows) in enumerate(zip((view.training, view.holdout), draw.rows, strict=True)):
        if len(rows) == len(real):
            found.append(whole[number])
            continue
        codes = None if sides.own is None or number else (sides.own, sides.training[rows])
        nearest, _ = compare(view.synthetic, real.some(rows), own=codes, device=plan.device, threads=plan.threads)
        found.append(Nearest(nearest.scores, rows[nearest.rows]))
    return found[0], found[1]


def _nearest_person(near: tuple[Nearest, Nearest], sides: _Sides) -> NDArray[np.int64]:
    """(faces,) training people, and then holdout people."""
    better = near[0].scores >= near[1].scores
    return np.where(better, sides.training[near[0].rows], sides.counts[0] + sides.holdout[near[1].rows])


def _reached(
    cosine: float, view: View, draw: Draw, near: tuple[Nearest, Nearest], sides: _Sides, plan: Plan
) -> tuple[Reached, Reached]:
    """Both sides in one draw; where a side has more people, how many of them each face reaches."""
    alike = draw.alike[: sides.counts[0]], draw.alike[sides.counts[0] :]
    drawn, found = as_many_people(*alike), list[Reached]()
    for number, (real, codes) in enumerate(((view.training, sides.training), (view.holdout, sides.holdout))):
        rows, groups = draw.rows[number], np.unique(alike[number], return_counts=True)
        side = Reached(near[number], codes, alike[number])
        faces = side.hits(cosine)
        if len(faces) and any(drawn.get(int(group), 0) < size for group, size in zip(*groups, strict=True)):
            numbers = np.full((len(view.synthetic), len(groups[0])), np.nan)
            most = max(min(_COUNTED, _BITS_COUNTED // len(alike[number])), 1)
            rng = stream(plan.seed, "release copies counted")
            chosen = faces if len(faces) <= most else np.sort(rng.choice(faces, most, replace=False))
            reached = people_reached(
                real.some(rows),
                codes[rows],
                view.synthetic.take(chosen),
                cosine,
                own=None if sides.own is None or number else sides.own[chosen],
                device=plan.device,
                threads=plan.threads,
            )
            numbers[chosen] = np.stack([reached[:, alike[number] == group].sum(axis=1) for group in groups[0]], axis=1)
            side = replace(side, numbers=numbers)
        found.append(side)
    return found[0], found[1]


def _overall(measured: list[_Measured], sides: _Sides, plan: Plan) -> PermutationTest:
    """The one test behind the verdict: faces counted in the first view, and how near people are in each view."""
    tests = []
    for draw in sides.draws:
        groups = [np.stack(measured[0].asked[draw.number]).astype(np.float64)]
        for one in measured:
            scores = [side.capped(draw.most) for side in one.scores[draw.number]]
            groups.append(nearness(np.concatenate(scores)))
        times = PERMUTATIONS if len(sides.draws) == 1 else FEWEST_PERMUTATIONS
        tests.append(overall_test(groups, sides.counts[0], draw.alike, seed=plan.seed, draw=draw.number, times=times))
    dealt = sum(test.permutations or 0 for test in tests)
    return PermutationTest(p=of_draws(tests).p, exact=False, permutations=dealt)


def _exact_copies(overlap: Overlap, people: NDArray[np.int64]) -> ExactCopies:
    return ExactCopies(
        faces=len(overlap.training),
        people=len({int(people[real]) for _, real in overlap.training}),
        holdout=len(overlap.holdout),
    )


def _exact_notes(exact: ExactCopies) -> list[Finding]:
    found = []
    for number, side in ((exact.faces, "training"), (exact.holdout, "holdout")):
        if number:
            said = count(number, "synthetic face has", "synthetic faces have")
            found.append(warning("sets", f"{said} exactly the vector of a {side} picture"))
    return found


def _equal_notes(draws: list[Draw], training: NDArray[np.int64], holdout: NDArray[np.int64]) -> list[Finding]:
    """How many pictures of each person are compared, where people have more."""
    if len(draws) == 1:
        return []
    ours, others = (len(side) / (int(side.max()) + 1) for side in (training, holdout))
    return [
        note(
            "pictures",
            f"people have {ours:.1f} pictures in training and {others:.1f} in the holdout on average, and more "
            f"pictures are nearer to any face: {count(draws[0].most, 'picture')} of each person at most, drawn "
            f"{len(draws)} times, {'is' if draws[0].most == 1 else 'are'} compared",
        )
    ]


def _camera_notes(found: ExchangeabilityResult | None) -> list[Finding]:
    """Whether the holdout is from another source, or whether nobody can tell."""
    if found is None:
        return [note("source", "too few people to test whether holdout and training pictures are of the same source")]
    if not found.holds:
        return [
            warning(
                "holdout",
                f"a classifier separates training from holdout pictures (AUC {found.auc:.2f}, chance is below "
                f"{found.limit:.2f}): another camera, crop or source; its p-values do not hold",
            )
        ]
    if found.testable:
        return []
    return [
        note(
            "source",
            "not testable whether holdout and training pictures are of the same source: with "
            f"{found.people:,} people of each side a difference of AUC 0.6 would be missed too often; "
            f"{found.needed:,} are needed",
        )
    ]


def _holdout_notes(least: int, training: int, holdout: int) -> list[Finding]:
    """From how many exposed people on anybody can be listed."""
    if least > training:
        return [warning("holdout", f"too small to list anybody; at least {FEWEST_HOLDOUT} people are needed")]
    if least == 1:
        return []
    return [
        note(
            "holdout",
            f"with {count(holdout, 'holdout person', 'holdout people')} nobody can be listed before {least:,} are "
            "nearer than all of them; a larger holdout can list fewer people",
        )
    ]


def _unresolved(one: _Measured, plan: Plan) -> list[str]:
    """False-accept rates of copies that need more pairs of strangers than there are."""
    there = {found.threshold.far for found in one.copies}
    missing = [rate(far) for far in plan.far if far not in there]
    if not missing:
        return []
    return [f"copies at FAR {', '.join(missing)}: too few pairs of real strangers; give more people or a higher FAR"]


def _usual(view: View, sides: _Sides, plan: Plan) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """How crowded the place of each training and of each holdout picture is, among as many pictures of all others."""
    ours, others = sides.training, sides.holdout + sides.counts[0]
    rows = sides.draws[0].rows
    whose = np.concatenate([ours[rows[0]], others[rows[1]]])
    drawn = drawn_people(whose, COHORT, plan.seed)  # without a look at who was trained on
    inside = drawn < len(rows[0])
    cohort = np.concatenate(
        [view.training.take(rows[0][drawn[inside]]), view.holdout.take(rows[1][drawn[~inside] - len(rows[0])])]
    )
    blocks = (side.vectors.blocks(BLOCK) for side in (view.training, view.holdout))
    first, second = (
        crowding(side, codes, cohort, whose[drawn]) for side, codes in zip(blocks, (ours, others), strict=True)
    )
    return first, second


def _strangers(view: View, sides: _Sides, plan: Plan) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Real pictures of some thousand people of both sides, and whose they are."""
    vectors, whose, first = [], [], 0
    for side, codes in ((view.training, sides.training), (view.holdout, sides.holdout)):
        rows = drawn_people(codes, 6_000, plan.seed)
        vectors.append(side.take(rows))
        whose.append(codes[rows] + first)
        first += sides.counts[0]
    return np.concatenate(vectors), np.concatenate(whose)


def _linking(vectors: NDArray[np.float32], people: NDArray[np.int64], plan: Plan) -> Linking | None:
    codes = np.unique(people, return_inverse=True)[1].astype(np.int64)
    pairing = pair_up(cosine_space(vectors), codes)
    if not pairing.mated:
        return None
    threshold = stranger_thresholds(vectors, people, (LINK_FAR,), seed=plan.seed, threads=plan.threads)
    if not threshold:
        return None
    mated, number = all_mated(pairing), int(codes.max()) + 1
    accepts = accepts_by_identity(mated.identities, mated.scores, np.array([threshold[0].cosine]), number)[:, 0]
    pairs = np.bincount(mated.identities, minlength=number)
    weights = identity_weights(Scheme.MULTINOMIAL, number, _REPLICATES, plan.seed, "release linking")
    total = weights @ pairs
    values = np.divide(weights @ accepts, total, out=np.zeros(len(total)), where=total > 0)
    people_count = int(np.count_nonzero(pairs))
    interval = rate_interval(accepts.sum(), pairs.sum(), Replicates(values, mirrored=False), people_count)
    tar = Share.counted(int(accepts.sum()), int(pairs.sum()), interval, people_count)
    return Linking(far=LINK_FAR, tar=tar, above_chance=tar.low > LINK_FAR)


def _separation(training: PersonScores, holdout: PersonScores, plan: Plan) -> SeparationResult:
    most = compared_pictures(training.pictures, holdout.pictures)
    compared = [int(np.count_nonzero(side.pictures >= most)) for side in (training, holdout)]
    ours, others = (
        identity_weights(Scheme.MULTINOMIAL, people, _REPLICATES, plan.seed, f"release separation {name}")
        for name, people in zip(("training", "holdout"), compared, strict=True)
    )
    found = separation(training, holdout, (ours, others), FPR)
    interval = difference_interval(found.auc, Replicates(found.auc_replicates, mirrored=False))
    return SeparationResult(
        auc=Estimate(found.auc, max(interval.low, 0.0), min(interval.high, 1.0), interval.level),
        fpr=FPR,
        tpr=None if found.tpr is None else _people_share(int(found.tpr.sum()), compared[0]),
        average_precision=found.average_precision,
        coin=compared[0] / sum(compared),
    )


def _people_share(listed: int, people: int) -> Share:
    """Of people; each person is one trial."""
    interval = wilson(listed, people) if listed else Interval(0.0, zero_bound(people), 0.95)
    return Share.counted(listed, people, interval, people)


def _exposure(found: Exposure) -> ExposureResult:
    return ExposureResult(
        fdr=FDR,
        exposed=None if found.least > len(found.p) else _people_share(found.people, len(found.p)),
        least=found.least,
        pictures=found.pictures,
        smallest_p=float(found.p.min()),
    )


def _fused(measured: list[_Measured]) -> Exposure:
    training, holdout = ({one.view.name: one.scores[0][side] for one in measured} for side in (0, 1))
    return fused(training, holdout)


def _paper(views: Sequence[View], sides: _Sides, plan: Plan) -> list[PaperResult]:
    """On at most 10,000 pictures of each set: it compares every picture with every other one."""
    people = sides.training, sides.holdout
    rows = [drawn_people(codes, _MOST_PAPER, plan.seed) for codes in people]
    count_synthetic = len(views[0].synthetic)
    drawn = np.sort(stream(plan.seed, "release paper").permutation(count_synthetic)[:_MOST_PAPER])
    sets = {
        view.name: PaperSet(view.training.take(rows[0]), view.synthetic.take(drawn), view.holdout.take(rows[1]))
        for view in views
    }
    ours, others = (
        np.unique(codes[some], return_inverse=True)[1].astype(np.int64)
        for codes, some in zip(people, rows, strict=True)
    )
    return paper_score(sets, ours, others, seed=plan.seed)


def _exchangeable(view: View, sides: _Sides, plan: Plan) -> ExchangeabilityResult | None:
    pictures = []
    for side, codes in ((view.training, sides.training), (view.holdout, sides.holdout)):
        rows = np.sort(np.unique(codes, return_index=True)[1])
        pictures.append(side.take(rows))
    found = exchangeability(pictures[0], pictures[1], seed=plan.seed)
    if found is None:
        return None
    return ExchangeabilityResult(
        auc=found.auc, limit=found.limit, people=found.people, holds=found.holds, needed=found.needed
    )


def _retrieval(
    synthetic: Faces, training: Faces, own: NDArray[np.int64] | None, plan: Plan
) -> tuple[list[RiskResult], list[str]]:
    if own is None:
        return [], ["retrieval risk: synthetic rows name no training person"]
    if len(np.unique(own[own >= 0])) < 2:
        return [], ["retrieval risk: synthetic rows name one training person; two are needed"]
    place = {name: row for row, name in enumerate(training.ids.tolist())}
    sources = (
        np.full(len(synthetic), -1, np.int64)
        if synthetic.made_of is None
        else np.array([place.get(name, -1) for name in synthetic.made_of.tolist()], np.int64)
    )
    queries = Labelled(training.take(np.arange(len(training))), training.people, np.arange(len(training)))
    released = Labelled(synthetic.take(np.arange(len(synthetic))), own, sources)
    most = int(np.count_nonzero(own >= 0))
    k = tuple(one for one in plan.k if one <= most)
    found = retrieval_risk(queries, released, k, seed=plan.seed, threads=plan.threads)
    return [
        RiskResult(
            pictures=one.pictures,
            identities=one.identities,
            released=one.released,
            k=one.k,
            share=one.share,
            chance=one.chance,
        )
        for one in found
    ], []


def _own(synthetic: Faces, training: Faces) -> NDArray[np.int64] | None:
    """The training person that each synthetic row names, −1 for none; None where no row names one."""
    if not (synthetic.labelled and training.labelled):
        return None
    place = {name: code for code, name in enumerate(training.names)}
    codes = np.array([place.get(name, -1) for name in synthetic.names], np.int64)[synthetic.people]
    return codes if (codes >= 0).any() else None


def _same_rows(views: list[View]) -> tuple[list[View], list[Finding]]:
    """Views restricted to the rows that all of them have: a trait may be missing where no landmarks were found."""
    if len(views) == 1:
        return views, []
    made: dict[str, dict[str, Faces]] = {}
    dropped = []
    for side in ("synthetic", "training", "holdout"):
        faces: dict[str, Faces] = {view.name: getattr(view, side) for view in views}
        if any(not isinstance(one.vectors, Held) for one in faces.values()):
            raise UnfaceError(f"{side}: several views are compared in memory; give one view, or files that fit")
        rows = aligned(faces)
        lost = max(len(one) for one in faces.values()) - len(rows[views[0].name])
        if lost:
            dropped.append(note(side, f"{count(lost, 'row')} left out: not every view has them"))
        made[side] = {name: _taken(one, rows[name]) for name, one in faces.items()}
    return [View(view.name, *(made[side][view.name] for side in made)) for view in views], dropped


def _taken(faces: Faces, rows: NDArray[np.int64]) -> Faces:
    if len(rows) == len(faces) and np.array_equal(rows, np.arange(len(rows))):
        return faces
    from unface.data.embeddings import without_unused

    assert isinstance(faces.vectors, Held)
    people, names = without_unused(faces.people[rows], faces.names)
    return Faces(
        faces.source,
        Held(np.ascontiguousarray(faces.vectors.array[rows])),
        faces.ids[rows],
        people,
        names,
        faces.space,
        faces.labelled,
        faces.notes,
        None if faces.made_of is None else faces.made_of[rows],
    )


def _facts(faces: Faces, people: int | None, clustered: bool) -> SetFacts:
    return SetFacts(
        name=faces.source,
        sha256=faces.sha256(),
        rows=len(faces),
        people=people,
        clustered=clustered,
        dim=faces.vectors.dim,
        encoder=faces.space.encoder,
        weights_sha256=faces.space.weights_sha256,
        notes=list(faces.notes),
    )


_Exposing = dict[str, dict[int, list[tuple[int, float]]]]
"""By view and training person: the synthetic rows that expose them, nearest first."""


def _exposing(
    measured: list[_Measured],
    joint: Exposure | None,
    sides: _Sides,
    plan: Plan,
) -> _Exposing:
    """Synthetic faces that are nearer to a listed person than the person's p-value needs."""
    made: _Exposing = {}
    people, own = sides.training, sides.own
    anyone = np.zeros(sides.counts[0], bool) if joint is None else joint.listed
    for one in measured:
        listed = np.flatnonzero(one.exposure.listed | anyone)
        made[one.view.name] = {}
        if not len(listed):
            continue
        rows = np.flatnonzero(np.isin(people, listed))
        # As near as the least near person who is listed. Who is listed by all views together may have none in one.
        lowest = one.exposure.listed if one.exposure.listed.any() else one.exposure.p <= one.exposure.p.min()
        cut = float(one.exposure.scores[lowest].min())
        usual = one.usual[rows]
        lowest_cosine = cut + float(usual.min()) - 1e-5
        i, j, scores = near_pairs(one.view.synthetic, one.view.training.take(rows), lowest_cosine, threads=plan.threads)
        near = scores - usual[j] >= cut - 1e-5  # of float32 sums
        i, j, scores = i[near], j[near], scores[near]
        if own is not None:
            other = own[i] != people[rows[j]]
            i, j, scores = i[other], j[other], scores[other]
        for person in listed.tolist():
            here = people[rows[j]] == person
            best: dict[int, float] = {}
            for row, score in zip(i[here].tolist(), scores[here].tolist(), strict=True):
                best[row] = max(best.get(row, -1.0), score)
            made[one.view.name][person] = sorted(best.items(), key=lambda pair: (-pair[1], pair[0]))
    return made


def _view(one: _Measured, exposing: dict[int, list[tuple[int, float]]]) -> ViewResult:
    exposes: dict[int, int] = {}
    for pictures in exposing.values():
        for row, _ in pictures:
            exposes[row] = exposes.get(row, 0) + 1
    strictest = min(one.copies, key=lambda copies: copies.threshold.far, default=None)
    return ViewResult(
        name=one.view.name,
        linking=one.linking,
        membership=MembershipResult(
            share=one.membership.share, null=one.membership.null, test=_test(one.membership.permuted)
        ),
        exposure=_exposure(one.exposure),
        enrichment=EnrichmentResult(
            nearest=one.enrichment.nearest,
            training=one.enrichment.training,
            expected=one.enrichment.expected,
            p=one.enrichment.p,
        ),
        separation=one.separation,
        copies=[_copies(found, share) for found, share in zip(one.copies, one.copied, strict=True)],
        riskiest=[
            RiskyPicture(
                id=str(one.view.synthetic.ids[row]),
                training=float(one.training.scores[row]),
                holdout=float(one.holdout.scores[row]),
                people=exposes.get(row, 0),
                is_copy=strictest is not None and float(one.training.scores[row]) >= strictest.threshold.cosine,
            )
            for row in _riskiest(one)
        ],
    )


def _riskiest(one: _Measured) -> list[int]:
    """Rows by how much nearer they are to training than to the holdout."""
    ahead = one.training.scores.astype(np.float64) - one.holdout.scores
    order = np.lexsort((np.arange(len(ahead)), -ahead))[:_RISKIEST]
    return [int(row) for row in order if ahead[row] > 0]


def _copies(found: Copies, share: Share) -> CopiesResult:
    return CopiesResult(
        far=found.threshold.far,
        cosine=found.threshold.cosine,
        strangers=found.threshold.strangers,
        false_accepts=found.threshold.false_accepts,
        resolution="resolved" if found.threshold.resolution == "resolved" else "coarse",
        copies=share,
        holdout=found.holdout,
        expected=found.expected,
        excess=found.excess,
        test=_test(found.permuted),
    )


def _test(permuted: Permuted) -> PermutationTest:
    return PermutationTest(p=permuted.p, exact=permuted.exact, permutations=permuted.permutations)


def _listing(
    exposures: dict[str, Exposure],
    exposing: _Exposing,
    measured: list[_Measured],
    training: Faces,
    copies: list[tuple[int, int]],
) -> Listing:
    """People with an exact copy, then exposed people, by name, the smallest p-value first."""
    rows: list[tuple[str, ...]] = []
    drawn: dict[int, list[str]] = {}
    for row, real in copies:
        drawn.setdefault(int(training.people[real]), []).append(str(measured[0].view.synthetic.ids[row]))
    for person, faces in drawn.items():
        some = " ".join(faces[:_PICTURES_LISTED])
        rows.append((training.names[person], _EXACT, "0", "1.0000", str(len(faces)), some))
    for name, exposure in exposures.items():
        for person in np.flatnonzero(exposure.listed).tolist():
            pictures: list[str] = []
            more = 0
            for one in measured:
                if name in (_ALONE, one.view.name):
                    found = exposing[one.view.name].get(person, [])
                    ids = one.view.synthetic.ids
                    pictures += [str(ids[row]) for row, _ in found[:_PICTURES_LISTED]]
                    more += max(len(found) - _PICTURES_LISTED, 0)
            distinct = list(dict.fromkeys(pictures))
            rows.append(
                (
                    training.names[person],
                    name,
                    f"{exposure.p[person]:.6g}",
                    f"{exposure.scores[person]:.4f}",
                    str(len(distinct) + more),
                    " ".join(distinct),
                )
            )
    rows.sort(key=lambda row: (float(row[2]), row[0], row[1]))
    columns = ("person", "view", "p", "score", "pictures", "synthetic")
    return Listing(columns, rows, "exposed training people and the pictures that expose them, to be kept at home")
