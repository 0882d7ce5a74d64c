"""``unface fit``: an eraser on a set of one's own, certified on identities that it was not fitted on."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from unface.auditing.attack import Attack
from unface.auditing.defender import Defender
from unface.auditing.inputs import prepare
from unface.auditing.ranks import RankRule, choose_rank, parse_target, plain_rank
from unface.data import EmbeddingSet, Role, Source, read_embeddings, require_same_space, split_identities
from unface.erase import UTILITY_AWARE, Projection, certificate
from unface.errors import UnfaceError
from unface.metrics import Scheme
from unface.probe import PROBES, Plan, draw_bootstrap, pick_probes
from unface.progress import Progress, Silent

Task = NDArray[np.float32] | None
# The target is met against attackers in closed form; the audit then measures against all.
_PROBES = tuple(name for name in PROBES if name != "mlp")


def fit_certified(
    embeddings: Source,
    method: str = "isp",
    *,
    rank: int | None = None,
    energy: float | None = None,
    target: str | None = None,
    utility_aware: Source | None = None,
    hold_out: float = 0.2,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Projection:
    """Fit ``method`` on all identities but a share ``hold_out``, on which the projection is certified.

    With a ``target`` such as "0.05@1e-4" the identities are split as in an audit: fitted on fit, attacked by train,
    judged on calibrate, certified on test. ``utility_aware`` are vectors of a task, for the erasers that spare one.
    """
    given = read_embeddings(embeddings)
    rule = RankRule(rank, energy, None if target is None else parse_target(target))
    progress = progress or Silent()
    if utility_aware is not None and method not in UTILITY_AWARE:
        raise UnfaceError(
            f"{method}: spares no task; leave --utility-aware out, or take --method {' or '.join(UTILITY_AWARE)}"
        )
    task = _task(given, utility_aware)
    if rule.target is not None:
        plan = Plan(fars=(rule.target.far,), seed=seed, threads=threads)
        return _to_target(given, task, method, rule, plan, progress)
    people = given.unit()
    if hold_out == 0:
        return _fitted(Defender(people, task), method, rule)
    shares = {Role.FIT: 1 - hold_out, Role.TEST: hold_out}
    split = split_identities(people.names, shares=shares, seed=seed)
    fit, test = (people.take(split.rows(people, role)) for role in (Role.FIT, Role.TEST))
    projection = _fitted(Defender(fit, task), method, rule)
    try:
        return replace(projection, certificate=certificate(projection, test.vectors, test.identities))
    except UnfaceError as error:
        raise UnfaceError(f"{error}; raise --hold-out, or take 0 for no certificate") from None


def _task(given: EmbeddingSet, source: Source | None) -> Task:
    if source is None:
        return None
    task = read_embeddings(source).unit()
    require_same_space(given.unit().space, task.space)
    return task.vectors


def _fitted(defender: Defender, method: str, rule: RankRule) -> Projection:
    return defender.project(method, plain_rank(rule, defender))


def _to_target(
    given: EmbeddingSet, task: Task, method: str, rule: RankRule, plan: Plan, progress: Progress
) -> Projection:
    prepared = prepare(given, variant=plan.variant, seed=plan.seed)
    roles = prepared.roles
    weights = draw_bootstrap(Scheme.DOUBLE_OR_NOTHING, roles.calibrate.count, roles.test.count, 2, plan.seed)
    attack = Attack(roles, pick_probes(_PROBES), replace(plan, ks=prepared.ks), weights)
    defender = Defender(prepared.embeddings.take(prepared.split.rows(prepared.embeddings, Role.FIT)), task)
    rank = choose_rank(rule, method, defender, prepared.embeddings, attack, progress)
    projection = defender.project(method, rank)
    test = roles.test
    return replace(
        projection, certificate=certificate(projection, prepared.embeddings.vectors[test.rows], test.identities)
    )
