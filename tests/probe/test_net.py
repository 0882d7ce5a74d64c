"""If these fail, the non-linear attacker is weaker than the linear one it starts from, or learns nothing of its own."""

import sys

import numpy as np
import pytest

from tests.probe.sign_people import best_tar
from tests.probe.small import gaussian_support, people, roles_of, score_matrix
from tests.refusals.table import refused
from unface.data import EmbeddingSet
from unface.pairs import PairSpace
from unface.probe import Panel, Plan, pick_probes, run_panel
from unface.probe.cosine import cosine_of_seen
from unface.probe.lda import Lda
from unface.probe.net import Net
from unface.threads import one_blas_thread

pytest.importorskip("torch")
PLAN = Plan(fars=(0.1, 0.02), ks=(1, 5), everything=5, seeds=2, threads=1)


def panel(embeddings: EmbeddingSet) -> Panel:
    return run_panel(embeddings.vectors, roles_of(embeddings), pick_probes(("lda", "net")), PLAN)


@pytest.mark.parametrize(("seed", "between"), [(0, 1.2), (1, 0.4), (2, 3.0), (3, 0.0)])
def test_on_calibrate_it_is_never_worse_than_lda_at_the_rate_where_settings_are_chosen(
    seed: int, between: float
) -> None:
    found = panel(people(60, 5, 10, seed=seed, between=between))
    for k in PLAN.ks:
        far = found.resolved[k].reference
        lda, net = (found.trials[name, k].calibrate_tar[far] for name in ("lda", "net"))
        assert net >= lda


def test_without_an_epoch_it_is_lda_itself() -> None:
    support, queries = gaussian_support(20, 4, 6), gaussian_support(5, 3, 6, seed=1).vectors
    net, lda = Net().fit(support), Lda().fit(support)
    for setting in Lda().settings:
        ours, ldas = (score_matrix(one.space({**setting, "epochs": 0}, queries)) for one in (net, lda))
        assert np.array_equal(ours, ldas)


def test_it_learns_identities_that_no_linear_probe_can_see() -> None:
    """Whose picture it is lies in which hidden coordinates are large; their signs are drawn for each picture."""
    with one_blas_thread():
        lda, net = best_tar(Lda()), best_tar(Net())
    assert lda < 0.1
    assert net > 0.5


def test_what_it_scores_with_is_what_it_trained() -> None:
    """On the pictures it learned from, the residual layer sets people further apart than the same layer taken off."""
    support = gaussian_support(20, 6, 8)
    scorer = Net().fit(support)
    first, second = scorer._trained[40]
    start = scorer._start(support.vectors)
    same = support.identities[:, None] == support.identities
    pairs = ~np.eye(len(same), dtype=bool)

    def gap(space: PairSpace) -> float:
        scores = score_matrix(space)
        return float(scores[same & pairs].mean() - scores[~same].mean())

    added = gap(scorer.space({"shrinkage": 0.5, "keep": 1.0, "epochs": 40}, support.vectors))
    assert added > 0.1 + gap(cosine_of_seen(start - np.maximum(start @ first, 0) @ second))


def test_without_pytorch_it_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with refused("probe", None, "'net'", "'unface[torch]'"):
        Net().fit(gaussian_support(4, 2, 3))
