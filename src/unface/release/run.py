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
from unface.release.copies import Copies, Reached, Threshold, count_copies, drawn_people, stranger_thresholds
from unface.release.crowding import BLOCK, COHORT, crowding
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
from unface.release.membership import Membership, Permuted, measure_membership
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
    people = (training.people, len(training.names)), (holdout.people, len(holdout.names))
    exact = _exact_copies(overlaps[0], training.people)
    findings += _exact_notes(exact)
    own = _own(first.synthetic, training)
    if own is not None:
        findings.append(
            note(
                "own identity", "rows that name a training person are not compared with that person; see retrieval risk"
            )
        )
    measured: list[_Measured] = []
    not_measured: list[str] = []
    progress.start("views", len(views))
    for view in views:
        one = _measure(view, people, own, plan)
        progress.advance("views")
        if one.linking is None:
            findings.append(warning(view.name, "no real person has two pictures: whether it links people is unknown"))
        elif not one.linking.above_chance:
            said = f"{percent(one.linking.tar.value)} at FAR {rate(LINK_FAR)}"
            not_measured.append(f"{view.name}: this encoder does not link real people above chance ({said})")
            if view is not first:
                continue
        measured.append(one)
    if measured[0].linking is not None and not measured[0].linking.above_chance:
        findings.append(
            Finding(
                severity="warning", about=first.name, text="does not link real people: nothing can be concluded from it"
            )
        )
    exchangeable = _exchangeable(first, people, plan)
    if exchangeable is not None and not exchangeable.holds:
        findings.append(
            warning(
                "holdout",
                f"a classifier separates training from holdout pictures (AUC {exchangeable.auc:.2f}, chance is below "
                f"{exchangeable.limit:.2f}): another camera, crop or source; its p-values do not hold",
            )
        )
    not_measured += _unresolved(measured[0], plan)
    joint = _fused(measured) if len(measured) > 1 else None
    retrieval, unmeasured = _retrieval(first.synthetic, training, own, plan)
    not_measured += unmeasured
    exposures = {one.view.name: one.exposure for one in measured} | ({} if joint is None else {_ALONE: joint})
    exposing = _exposing(measured, joint, people[0], own, plan)
    findings += _holdout_notes((joint or measured[0].exposure).least, people[0][1], people[1][1])
    result = ReleaseResult(
        synthetic=_facts(first.synthetic, None if not first.synthetic.labelled else len(first.synthetic.names), False),
        training=_facts(training, people[0][1], clustered is not None),
        holdout=_facts(holdout, people[1][1], clustered is not None),
        exchangeable=exchangeable,
        views=[_view(one, exposing.get(one.view.name, {})) for one in measured],
        fused=None if joint is None else _exposure(joint),
        exact=exact,
        retrieval=retrieval,
        paper=_paper(views, people, plan) if plan.paper else [],
        findings=findings,
        not_measured=not_measured,
        run=clock.run(),
    )
    listing = _listing(exposures, exposing, measured, training, overlaps[0].training)
    near = measured[0].training
    shown = [(str(first.synthetic.ids[row]), str(training.ids[near.rows[row]])) for row in _riskiest(measured[0])]
    return Released(result, listing, shown)


@dataclass(frozen=True, eq=False)
class _Measured:
    """One view: what the result says, and what it was made of."""

    view: View
    linking: Linking | None
    training: Nearest
    holdout: Nearest
    usual: NDArray[np.float32]
    """(training pictures,) how crowded the place of each is."""
    scores: tuple[PersonScores, PersonScores]
    membership: Membership
    exposure: Exposure
    enrichment: Enrichment
    separation: SeparationResult
    copies: list[Copies]


_People = tuple[tuple[NDArray[np.int64], int], tuple[NDArray[np.int64], int]]


def _measure(view: View, people: _People, own: NDArray[np.int64] | None, plan: Plan) -> _Measured:
    (ours, our_count), (others, other_count) = people
    how = {"device": plan.device, "threads": plan.threads}
    codes = None if own is None else (own, ours)
    near_training, of_training = compare(view.synthetic, view.training, own=codes, **how)  # type: ignore[arg-type]
    near_holdout, of_holdout = compare(view.synthetic, view.holdout, **how)  # type: ignore[arg-type]
    if (near_training.rows < 0).any():
        row = int(np.argmax(near_training.rows < 0))
        raise UnfaceError(
            f"{view.synthetic.source}: {view.synthetic.ids[row]!r} has no other training person to compare"
        )
    usual = _usual(view, people, plan)
    scores = (
        person_scores(of_training.scores - usual[0], ours, our_count, seed=plan.seed, side="training"),
        person_scores(of_holdout.scores - usual[1], others, other_count, seed=plan.seed, side="holdout"),
    )
    better = near_training.scores >= near_holdout.scores
    nearest = np.where(better, ours[near_training.rows], our_count + others[near_holdout.rows])
    strangers = _strangers(view, people, plan)
    linking = _linking(*strangers, plan)
    thresholds = stranger_thresholds(*strangers, plan.far, seed=plan.seed, **how)  # type: ignore[arg-type]
    return _Measured(
        view,
        linking,
        near_training,
        near_holdout,
        usual[0],
        scores,
        measure_membership(nearest, our_count, other_count, seed=plan.seed),
        exposed(*scores),
        enrichment(*scores),
        _separation(*scores, plan),
        [_copied(one, view, (near_training, near_holdout), people, own, plan) for one in thresholds],
    )


def _copied(
    threshold: Threshold,
    view: View,
    near: tuple[Nearest, Nearest],
    people: _People,
    own: NDArray[np.int64] | None,
    plan: Plan,
) -> Copies:
    """Of the side with more pictures: how many people each face reaches."""
    sides = [Reached(nearest, codes, number) for nearest, (codes, number) in zip(near, people, strict=True)]
    larger = int(len(view.training) <= len(view.holdout))
    real, side = (view.training, view.holdout)[larger], sides[larger]
    numbers = np.full(len(view.synthetic), np.nan)
    faces = side.hits(threshold.cosine)
    if len(faces) and len(view.training) != len(view.holdout):  # equal sides are compared as they are
        most = max(min(_COUNTED, _BITS_COUNTED // side.count), 1)
        rng = stream(plan.seed, "release copies counted")
        chosen = faces if len(faces) <= most else np.sort(rng.choice(faces, most, replace=False))
        numbers[chosen] = people_reached(
            real,
            side.people,
            view.synthetic.take(chosen),
            threshold.cosine,
            own=None if own is None or larger else own[chosen],
            device=plan.device,
            threads=plan.threads,
        )
    sides[larger] = replace(side, numbers=numbers)
    return count_copies(threshold, sides[0], sides[1], seed=plan.seed)


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


def _usual(view: View, people: _People, plan: Plan) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """How crowded the place of each training and of each holdout picture is, among both."""
    (ours, count_ours), (others, _) = people
    whose = np.concatenate([ours, others + count_ours])
    drawn = drawn_people(whose, COHORT, plan.seed)  # without a look at who was trained on
    sides = (view.training, drawn[drawn < len(ours)]), (view.holdout, drawn[drawn >= len(ours)] - len(ours))
    cohort = np.concatenate([side.take(rows) for side, rows in sides])
    blocks = (side.vectors.blocks(BLOCK) for side in (view.training, view.holdout))
    first, second = (
        crowding(side, codes, cohort, whose[drawn])
        for side, codes in zip(blocks, (ours, others + count_ours), strict=True)
    )
    return first, second


def _strangers(view: View, people: _People, plan: Plan) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Real pictures of some thousand people of both sides, and whose they are."""
    vectors, whose, first = [], [], 0
    for side, (codes, number) in zip((view.training, view.holdout), people, strict=True):
        rows = drawn_people(codes, 6_000, plan.seed)
        vectors.append(side.take(rows))
        whose.append(codes[rows] + first)
        first += number
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
    ours, others = (
        identity_weights(Scheme.MULTINOMIAL, len(side.pictures), _REPLICATES, plan.seed, f"release separation {name}")
        for name, side in (("training", training), ("holdout", holdout))
    )
    found = separation(training, holdout, (ours, others), FPR)
    interval = difference_interval(found.auc, Replicates(found.auc_replicates, mirrored=False))
    people = len(training.pictures)
    return SeparationResult(
        auc=Estimate(found.auc, max(interval.low, 0.0), min(interval.high, 1.0), interval.level),
        fpr=FPR,
        tpr=None if found.tpr is None else _people_share(int(found.tpr.sum()), people),
        average_precision=found.average_precision,
        coin=people / (people + len(holdout.pictures)),
    )


def _people_share(listed: int, people: int) -> Share:
    """Of people; each person is one trial."""
    interval = wilson(listed, people) if listed else Interval(0.0, zero_bound(people), 0.95)
    return Share.counted(listed, people, interval, people)


def _exposure(found: Exposure) -> ExposureResult:
    return ExposureResult(
        fdr=FDR,
        exposed=_people_share(found.people, len(found.p)),
        least=found.least,
        pictures=found.pictures,
        smallest_p=float(found.p.min()),
    )


def _fused(measured: list[_Measured]) -> Exposure:
    sides = [{one.view.name: one.scores[side] for one in measured} for side in (0, 1)]
    return fused(sides[0], sides[1])


def _paper(views: Sequence[View], people: _People, plan: Plan) -> list[PaperResult]:
    """On at most 10,000 pictures of each set: it compares every picture with every other one."""
    rows = [drawn_people(codes, _MOST_PAPER, plan.seed) for codes, _ in people]
    count_synthetic = len(views[0].synthetic)
    drawn = np.sort(stream(plan.seed, "release paper").permutation(count_synthetic)[:_MOST_PAPER])
    sets = {
        view.name: PaperSet(view.training.take(rows[0]), view.synthetic.take(drawn), view.holdout.take(rows[1]))
        for view in views
    }
    ours, others = (
        np.unique(codes[some], return_inverse=True)[1].astype(np.int64)
        for (codes, _), some in zip(people, rows, strict=True)
    )
    return paper_score(sets, ours, others, seed=plan.seed)


def _exchangeable(view: View, people: _People, plan: Plan) -> ExchangeabilityResult | None:
    sides = []
    for side, (codes, _) in zip((view.training, view.holdout), people, strict=True):
        rows = np.sort(np.unique(codes, return_index=True)[1])
        sides.append(side.take(rows))
    found = exchangeability(sides[0], sides[1], seed=plan.seed)
    if found is None:
        return None
    return ExchangeabilityResult(auc=found.auc, limit=found.limit, people=found.people, holds=found.holds)


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
    people: tuple[NDArray[np.int64], int],
    own: NDArray[np.int64] | None,
    plan: Plan,
) -> _Exposing:
    """Synthetic faces that are nearer to a listed person than the person's p-value needs."""
    made: _Exposing = {}
    anyone = np.zeros(people[1], bool) if joint is None else joint.listed
    for one in measured:
        listed = np.flatnonzero(one.exposure.listed | anyone)
        made[one.view.name] = {}
        if not len(listed):
            continue
        rows = np.flatnonzero(np.isin(people[0], listed))
        # As near as the least near person who is listed. Who is listed by all views together may have none in one.
        lowest = one.exposure.listed if one.exposure.listed.any() else one.exposure.p <= one.exposure.p.min()
        cut = float(one.exposure.scores[lowest].min())
        usual = one.usual[rows]
        lowest_cosine = cut + float(usual.min()) - 1e-5
        i, j, scores = near_pairs(one.view.synthetic, one.view.training.take(rows), lowest_cosine, threads=plan.threads)
        near = scores - usual[j] >= cut - 1e-5  # of float32 sums
        i, j, scores = i[near], j[near], scores[near]
        if own is not None:
            other = own[i] != people[0][rows[j]]
            i, j, scores = i[other], j[other], scores[other]
        for person in listed.tolist():
            here = people[0][rows[j]] == person
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
        copies=[_copies(found, one.view.training) for found in one.copies],
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


def _copies(found: Copies, training: Faces) -> CopiesResult:
    interval = _copy_share(found)
    return CopiesResult(
        far=found.threshold.far,
        cosine=found.threshold.cosine,
        strangers=found.threshold.strangers,
        false_accepts=found.threshold.false_accepts,
        resolution="resolved" if found.threshold.resolution == "resolved" else "coarse",
        copies=interval,
        holdout=found.holdout,
        expected=found.expected,
        excess=found.excess,
        test=_test(found.permuted),
    )


def _copy_share(found: Copies) -> Share:
    interval = (
        wilson(found.training, found.synthetic) if found.training else Interval(0.0, zero_bound(found.synthetic), 0.95)
    )
    return Share.counted(found.training, found.synthetic, interval, found.synthetic)


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
