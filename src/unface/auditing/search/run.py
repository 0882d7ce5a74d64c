"""Search measured in every space, by the worst case of photo pairs and by plain cosine."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from unface.auditing.albums.run import spaces_of
from unface.auditing.attack import Attack
from unface.auditing.bench import Bench
from unface.auditing.search import HitRates, OpenSearch, SearchResults, SpaceSearch
from unface.metrics import (
    Replicates,
    Resolution,
    allowed_accepts,
    just_above,
    rate_interval,
    resolution,
    tar_replicates,
)
from unface.pairs import pair_up
from unface.probe import Bootstrap, Probe, RoleRows, Scorer, Setting
from unface.probe.panel import draw_shots
from unface.probe.search import Searched, chance_rate, search
from unface.result.audit import Headline
from unface.result.numbers import Mean, Rate, Share
from unface.seeds import stream
from unface.threads import one_blas_thread

FPIR = 1e-2
_COSINE = "cosine"
_AT_ONCE = 256  # replicates


def measure_search(bench: Bench, head: Headline) -> SearchResults:
    """Each space, by the attacker of the first draw."""
    attack, roles = bench.attack, bench.attack.roles
    plan = replace(attack.plan, ks=(head.k,), seeds=1)
    searches = []
    bench.progress.start("search", len(bench.spaces))
    with one_blas_thread():
        for space, vectors in spaces_of(bench):
            shots, _ = draw_shots(vectors, roles, plan, head.k)
            worst = head.of(space)
            at_k = {point.probe: point.setting for point in space.points if point.k == head.k and point.tar}
            names = [name for name in dict.fromkeys((worst.probe if worst else _COSINE, _COSINE)) if name in at_k]
            for name in names:
                probe: Probe = next(one for one in attack.probes if one.name == name)
                scorer = probe.fit(shots[0].support)
                found = search_by(scorer, at_k[name], vectors, attack)
                searches.append(
                    SpaceSearch(space=space.name, probe=name, worst=name == names[0], rates=found[0], open_set=found[1])
                )
            bench.progress.advance("search")
    return SearchResults(k=head.k, people=roles.test.count, searches=searches)


def search_by(
    scorer: Scorer, setting: Setting, vectors: NDArray[np.float32], attack: Attack
) -> tuple[list[HitRates], OpenSearch | None]:
    """Test pictures searched for by one fitted attacker: hit rates at growing galleries, and with strangers refused."""
    searcher, roles = _Searcher(scorer, setting, vectors, attack.plan.device), attack.roles
    rates = _rates(searcher.run(roles.test), roles.test.count, attack.bootstrap)
    return rates, _open(searcher, roles.calibrate, roles.test, attack.bootstrap, attack.plan.seed)


class _Searcher:
    def __init__(self, scorer: Scorer, setting: Setting, vectors: NDArray[np.float32], device: str) -> None:
        self._scorer, self._setting, self._vectors, self._device = scorer, setting, vectors, device

    def run(self, role: RoleRows) -> Searched:
        space = self._scorer.space(self._setting, self._vectors[role.rows])
        return search(pair_up(space, role.identities), self._device)


def gallery_sizes(images: int, all_others: int) -> list[int]:
    """10, 30, 100, 300 … from the first that has room for strangers, and all."""
    steps = [step * 10**power for power in range(1, 12) for step in (1, 3)]
    return [*(size for size in steps if images <= size < all_others), all_others]


def _rates(searched: Searched, people: int, bootstrap: Bootstrap) -> list[HitRates]:
    mates, queries = np.unique(searched.mates, return_counts=True)

    def chance(size: int, first: int) -> float:
        each = [chance_rate(int(number), size, first) for number in mates]
        return float(np.average(each, weights=queries))

    return [
        HitRates(
            gallery=size,
            first=_mean(searched, searched.hit_rates(size, 1), people, bootstrap),
            first_ten=_mean(searched, searched.hit_rates(size, 10), people, bootstrap),
            chance_first=chance(size, 1),
            chance_first_ten=chance(size, 10),
        )
        for size in gallery_sizes(int(mates.max()) + 1, searched.gallery)
    ]


def _mean(searched: Searched, hits: NDArray[np.float64], people: int, bootstrap: Bootstrap) -> Mean:
    """People are resampled as queries; the gallery stays."""
    queries = np.bincount(searched.identities, minlength=people).astype(np.float64)
    of_people = np.bincount(searched.identities, hits, minlength=people)
    drawn = bootstrap.test @ of_people / np.maximum(bootstrap.test @ queries, np.finfo(float).tiny)
    ends = rate_interval(
        float(hits.sum()), float(len(hits)), Replicates(drawn, bootstrap.mirrored), people, bootstrap.level
    )
    return Mean(float(hits.mean()), ends.low, ends.high, ends.level, len(hits), people)


def _open(
    searcher: _Searcher, calibrate: RoleRows, test: RoleRows, bootstrap: Bootstrap, seed: int
) -> OpenSearch | None:
    """The larger the gallery, the more strangers are returned: as many people of either role are searched among."""
    people = min(calibrate.count, test.count)
    how = resolution(FPIR, int(people * calibrate.images().mean()))
    if how is Resolution.REFUSED:
        return None
    here, there = (_some(role, people, seed, name) for role, name in ((calibrate, "calibrate"), (test, "test")))
    known = searcher.run(calibrate.where(here[calibrate.identities]))
    searched = searcher.run(test.where(there[test.identities]))
    order = np.argsort(-known.other, kind="stable")
    threshold = just_above(known.other[order[allowed_accepts(FPIR, len(order))]])
    thresholds = _threshold_replicates(known.other[order], known.identities[order], bootstrap.calibrate)
    drawn = Replicates(
        tar_replicates(searched.identities, searched.mate, thresholds, bootstrap.test), bootstrap.mirrored
    )
    found = int(np.count_nonzero(searched.mate >= threshold))
    ends = rate_interval(found, len(searched.mate), drawn, people, bootstrap.level)
    return OpenSearch(
        fpir=FPIR,
        people=people,
        resolution="resolved" if how is Resolution.RESOLVED else "coarse",
        threshold=threshold,
        found=Share.counted(found, len(searched.mate), ends, people),
        achieved_fpir=Rate.counted(int(np.count_nonzero(searched.other >= threshold)), len(searched.other)),
    )


def _some(role: RoleRows, people: int, seed: int, name: str) -> NDArray[np.bool_]:
    chosen = np.zeros(role.count, np.bool_)
    chosen[stream(seed, "search", name).permutation(role.count)[:people]] = True
    return chosen


def _threshold_replicates(
    falling: NDArray[np.float32], identities: NDArray[np.int64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The threshold of each replicate: at most so many of the weighted queries have a stranger above it."""
    listed = min(len(falling), max(200, len(falling) // 10))
    pieces = []
    for start in range(0, len(weights), _AT_ONCE):
        some = weights[start : start + _AT_ONCE]
        budget = FPIR * some[:, identities].sum(axis=1) * (1 + 1e-12)
        spent = np.cumsum(some[:, identities[:listed]], axis=1)
        affordable = np.minimum((spent <= budget[:, None]).sum(axis=1), listed - 1)
        pieces.append(np.nextafter(falling[affordable], np.float32(np.inf)).astype(np.float64))
    return np.concatenate(pieces)
