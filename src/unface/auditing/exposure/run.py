"""Exposure measured: accepts of each test person at the audit's own threshold, and the densities behind D_sys."""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, stdtrit

from unface.auditing.albums.run import spaces_of
from unface.auditing.bench import Bench
from unface.auditing.exposure import FEWEST, Exposure, ExposureResults, GroupGap, GroupTar
from unface.metrics import (
    ImpostorTail,
    Replicates,
    accepts_by_identity,
    allowed_accepts,
    difference_interval,
    rate_interval,
)
from unface.metrics.unlinkability import binned, dsys, null_bias, score_bins
from unface.pairs import Pairing, all_mated, highest_impostors, open_screen, pair_up, pool_tails
from unface.probe import Bootstrap, Probe
from unface.probe.panel import draw_shots
from unface.result.audit import Headline, Point
from unface.result.file import Listing
from unface.result.numbers import Estimate, Interval, Share
from unface.result.readings import EXPOSED_FILE
from unface.score import Draws, Mated, Measured, Threshold, rate_at
from unface.threads import one_blas_thread


@dataclass(frozen=True, eq=False)
class _Groups:
    """Of test people: a number from 0, or −1 for those whose group is not known."""

    column: str
    of: NDArray[np.int64]
    names: tuple[str, ...]
    """By number."""


def measure_exposure(bench: Bench, head: Headline) -> ExposureResults:
    """The worst case of each space at the headline's k and rate."""
    groups = _groups(bench)
    few = 0 if groups is None else int(np.count_nonzero(np.bincount(groups.of[groups.of >= 0]) < FEWEST))
    found, rows = [], []
    bench.progress.start("exposure", len(bench.spaces))
    with one_blas_thread():
        for space, vectors in spaces_of(bench):
            worst = head.of(space)
            if worst is not None and worst.threshold is not None:
                one, accepted, pairs = _exposure(bench, space.name, worst, vectors, groups)
                found.append(one)
                rows += [] if space.is_control else _rows(bench, space.name, groups, accepted, pairs)
            bench.progress.advance("exposure")
    columns = ("space", "identity", "group_number", "group", "mated_pairs", "accepted")
    bench.listings[EXPOSED_FILE] = Listing(columns, rows, "how often each test person is linked, by name")
    column = None if groups is None else groups.column
    return ExposureResults(k=head.k, far=head.far, column=column, few=few, spaces=found)


def _groups(bench: Bench) -> _Groups | None:
    given, test = bench.prepared.groups, bench.attack.roles.test
    if given is None:
        return None
    codes = np.full(test.count, -1)
    np.maximum.at(codes, test.identities, given.codes[test.rows])
    known, numbers = np.unique(codes, return_inverse=True)
    row_of = {int(given.codes[row]): int(row) for row in test.rows}
    labels = bench.prepared.embeddings.labels[given.column]
    names = tuple(str(labels[row_of[code]]) for code in known.tolist() if code >= 0)
    return _Groups(given.column, numbers.astype(np.int64) - int(known[0] < 0), names)


def _exposure(
    bench: Bench, name: str, worst: Point, vectors: NDArray[np.float32], groups: _Groups | None
) -> tuple[Exposure, NDArray[np.float64], NDArray[np.int64]]:
    attack, roles = bench.attack, bench.attack.roles
    plan, bootstrap = replace(attack.plan, ks=(worst.k,)), attack.bootstrap
    probe: Probe = next(one for one in attack.probes if one.name == worst.probe)
    shots, _ = draw_shots(vectors, roles, plan, worst.k)
    people, threshold = roles.test.count, worst.threshold
    assert threshold is not None
    tails = []
    scorers = [probe.fit(shot.support) for shot in shots]
    spaces = [scorer.space(worst.setting, vectors[roles.test.rows]) for scorer in scorers]
    tests = [pair_up(space, roles.test.identities) for space in spaces]
    mated = [all_mated(pairing) for pairing in tests]
    for scorer in scorers:
        pairing = pair_up(scorer.space(worst.setting, vectors[roles.calibrate.rows]), roles.calibrate.identities)
        keep = int(5 * allowed_accepts(worst.far, pairing.impostors)) + 300
        tails.append(highest_impostors(pairing, keep, open_screen(pairing.space, plan.device), threads=1))
    tail = pool_tails(tails)
    images = np.stack([roles.calibrate.images()] * len(tails))
    listed = ImpostorTail(tail.scores, tail.first, tail.second, images, tail.floor)
    false_accepts = int(np.count_nonzero(tail.scores >= np.float32(threshold)))
    limit = Threshold(worst.far, threshold, tail.impostors, false_accepts, listed)
    draws = Draws(plan.seed, len(bootstrap.test), bootstrap.level, bootstrap.scheme)
    thresholds = limit.replicates(draws)
    codes = np.concatenate([part.identities for part in mated])
    scores = np.concatenate([part.scores for part in mated])
    pairs = np.bincount(codes, minlength=people)
    accepted = accepts_by_identity(codes, scores, np.array([threshold]), people)[:, 0]
    drawn = accepts_by_identity(codes, scores, thresholds, people)

    half = accepts_share(drawn, pairs) >= 0.5
    halves = np.einsum("bi,ib->b", bootstrap.test, half) / bootstrap.test.sum(axis=1)
    linked = int(np.count_nonzero(accepts_share(accepted[:, None], pairs) >= 0.5))
    ends = rate_interval(linked, people, Replicates(halves, bootstrap.mirrored), people, bootstrap.level)
    tenth = float(worst_tenth(accepts_share(accepted[:, None], pairs).T, np.ones((1, people)))[0])
    tenths = worst_tenth((drawn / pairs[:, None]).T, bootstrap.test)
    edges = score_bins(scores)
    impostors = [impostor_bins(pairing, edges, people) for pairing in tests]
    linkable = _dsys(codes, scores, edges, np.sum(impostors, axis=0), bootstrap, people)
    of_groups, gap = ([], None) if groups is None else group_tars(groups.of, Mated(codes, scores, people), limit, draws)
    exposure = Exposure(
        space=name,
        probe=worst.probe,
        half_linked=Share.counted(linked, people, ends, people),
        worst_tenth=Estimate.within(tenth, _bounded(tenth, tenths, bootstrap)),
        dsys=linkable,
        dsys_bias=null_bias(len(scores) // len(tests), len(edges)),
        groups=of_groups,
        gap=gap,
    )
    return exposure, accepted, pairs


def accepts_share(accepted: NDArray[np.float64], pairs: NDArray[np.int64]) -> NDArray[np.float64]:
    """TAR of each person, (people, thresholds)."""
    return np.asarray(accepted / np.maximum(pairs, 1)[:, None])


def worst_tenth(tar: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean TAR of the tenth of people, by weight, who are linked most; a person may belong to it in part.

    Both are (draws, people).
    """
    order = np.argsort(-tar, axis=1, kind="stable")
    tar, weights = np.take_along_axis(tar, order, 1), np.take_along_axis(weights, order, 1)
    wanted = weights.sum(axis=1, keepdims=True) / 10
    taken = np.clip(wanted - (np.cumsum(weights, axis=1) - weights), 0, weights)
    mean: NDArray[np.float64] = (taken * tar).sum(axis=1) / wanted[:, 0]
    return mean


def impostor_bins(pairing: Pairing, edges: NDArray[np.float64], people: int) -> NDArray[np.float64]:
    """(people, bins): impostor pairs that each person takes part in, a block at a time."""
    screen, bins = open_screen(pairing.space), len(edges) + 1
    counts = np.zeros(people * bins)
    for block in pairing.blocks(screen.block_rows, screen.block_columns):
        scores, mask = screen.scores(block), pairing.impostor_mask(block)
        at = binned(edges, scores)
        for codes in (pairing.identities[block.rows, None], pairing.identities[None, block.columns]):
            cells = codes * bins + at
            counts += np.bincount((cells if mask is None else cells[mask]).ravel(), minlength=people * bins)
    return counts.reshape(people, bins)


def _dsys(
    codes: NDArray[np.int64],
    scores: NDArray[np.float32],
    edges: NDArray[np.float64],
    impostors: NDArray[np.float64],
    bootstrap: Bootstrap,
    people: int,
) -> Estimate:
    """A pair (i, j) of strangers weighs w_i + w_j − 1, which is w_i w_j to first order."""
    bins = len(edges) + 1
    mated = np.bincount(codes * bins + binned(edges, scores), minlength=people * bins).reshape(people, bins)
    whole = impostors.sum(axis=0) / 2
    value = float(dsys(mated.sum(axis=0).astype(np.float64), whole))
    drawn = dsys(bootstrap.test @ mated, np.maximum(bootstrap.test @ impostors - whole, 0))
    return Estimate.within(value, _bounded(value, drawn, bootstrap))


def _bounded(value: float, drawn: NDArray[np.float64], bootstrap: Bootstrap) -> Interval:
    ends = difference_interval(value, Replicates(drawn, bootstrap.mirrored), bootstrap.level)
    return Interval(max(ends.low, 0.0), min(ends.high, 1.0), ends.level)


def group_tars(
    of: NDArray[np.int64], mated: Mated, limit: Threshold, draws: Draws
) -> tuple[list[GroupTar], GroupGap | None]:
    """TAR of each group that has people enough, given the group of each person; all have the one threshold."""
    found: dict[int, Measured] = {}
    for group in np.flatnonzero(np.bincount(of[of >= 0]) >= FEWEST).tolist():
        inside = of[mated.people] == group
        found[group] = rate_at(
            [(replace(mated, people=mated.people[inside], scores=mated.scores[inside]), limit)], draws
        )
    tars = [
        GroupTar(group=group + 1, people=one.people, tar=Share.counted(one.hits, one.trials, one.interval, one.people))
        for group, one in found.items()
    ]
    if len(found) < 2:
        return tars, None
    high, low = (pick(found, key=lambda group: found[group].value) for pick in (max, min))
    # One of so many differences was chosen for being the largest: each has its share of the error.
    ends = gap_interval(found[high], found[low], 1 - (1 - draws.level) / math.comb(len(found), 2))
    value = found[high].value - found[low].value
    gap = GroupGap(higher=high + 1, lower=low + 1, value=value, low=ends.low, high=ends.high, level=draws.level)
    return tars, gap


def gap_interval(higher: Measured, lower: Measured, level: float) -> Interval:
    """The difference of two groups' rates from the intervals of both (Newcombe 1998, method 10, with a correlation).

    Their threshold is common, so that their replicates are correlated. The people of a group are few enough for their
    variance to be uncertain: Student's quantile at Welch's degrees of freedom takes the place of the normal one.
    """
    parts = (higher, lower)
    variances = [one.replicates.variance() for one in parts]
    spread = sum(variance**2 / (one.people - 1) for one, variance in zip(parts, variances, strict=True))
    freedom = sum(variances) ** 2 / spread if spread else min(one.people for one in parts) - 1
    wider = float(2 * ndtr(stdtrit(freedom, 0.5 + level / 2)) - 1)
    ends = [rate_interval(one.hits, one.trials, one.replicates, one.people, wider) for one in parts]
    both = higher.replicates.less(lower.replicates).variance()
    scale = 2 * math.sqrt(variances[0] * variances[1])
    correlation = min(max((sum(variances) - both) / scale, 0.0), 1.0) if scale else 0.0

    def apart(one: float, other: float) -> float:
        return math.sqrt(max(one**2 + other**2 - 2 * correlation * one * other, 0.0))

    value = higher.value - lower.value
    below, above = (
        apart(higher.value - ends[0].low, ends[1].high - lower.value),
        apart(ends[0].high - higher.value, lower.value - ends[1].low),
    )
    return Interval(max(value - below, -1.0), min(value + above, 1.0), level)


def _rows(
    bench: Bench, space: str, groups: _Groups | None, accepted: NDArray[np.float64], pairs: NDArray[np.int64]
) -> list[tuple[str, ...]]:
    embeddings, test = bench.prepared.embeddings, bench.attack.roles.test
    first = {int(code): int(row) for code, row in zip(test.identities[::-1], test.rows[::-1], strict=True)}
    rows: list[tuple[str, ...]] = []
    for person in range(test.count):
        row = first[person]
        named = ("", "")
        if groups is not None:
            number = int(groups.of[person])
            named = (str(number + 1), groups.names[number]) if number >= 0 else named
        identity = embeddings.names[embeddings.identities[row]]
        rows.append((space, identity, *named, str(int(pairs[person])), str(int(accepted[person]))))
    return rows
