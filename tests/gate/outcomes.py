"""Every way in which a rule of a policy can end: the result, the rule, and its verdict. The words are a snapshot."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

from tests.kit.gating import FAILS, PASSES, UNKNOWN, Rule, ruled
from tests.kit.results import (
    INVALID,
    Readable,
    attacker,
    audited,
    cell,
    certificate,
    change,
    counted,
    erased,
    exact_copies,
    exposure,
    in_context,
    inversion,
    kept,
    of_400,
    point,
    protection,
    raw,
    refused,
    release,
    share,
    validation,
    view,
)
from unface.gate import RuleResult, Verdict
from unface.result.inversion import InversionWorst
from unface.result.release import PermutationTest

PASSED, FAILED, OPEN = Verdict.PASSED, Verdict.FAILED, Verdict.INCONCLUSIVE
TIMES: Rule = {"far": 1e-4, "times_chance_max": 6}
BEATS: Rule = {"far": 1e-4, "beats": "random"}
USEFUL: Rule = {"utility": "knn", "retained_min": 0.9}
ASKED: Rule = {"success_max": 0.05, "far": 1e-2, "queries": 100}
INVERTED: Rule = {"inverted_max": 0.05, "far": 1e-3}
RECOGNISED: Rule = {"recognised_max": 0.05}


@dataclass(frozen=True)
class Outcome:
    """``measured`` is the value and the ends of the number that decides, where there is one to check."""

    result: Readable
    rule: Rule
    verdict: Verdict
    measured: tuple[float, float, float] | None = None

    @property
    def found(self) -> RuleResult:
        return ruled(self.result, **self.rule)


def _tar(*tar: float, **more: object) -> Readable:
    return audited(raw(point(*tar, **more)))  # type: ignore[arg-type]


def _at_level(level: float, *tar: float) -> Readable:
    made = point(*tar)
    assert made.tar is not None
    return audited(raw(made.model_copy(update={"tar": replace(made.tar, level=level)})))


def _coarse_judges() -> Readable:
    """60 % [55, 65] by the worst attack."""
    made = validation(0.6)
    judges = [
        judge.model_copy(
            update={"thresholds": [one.model_copy(update={"resolution": "coarse"}) for one in judge.thresholds]}
        )
        for judge in made.judges
    ]
    return made.model_copy(update={"judges": judges})


def _copied(low: float) -> Readable:
    """Copies beyond the holdout's, from ``low`` on, at every rate."""
    one = view()
    copies = [
        found.model_copy(update={"excess": replace(found.excess, value=low + 0.01, low=low, high=low + 0.02)})
        for found in one.copies
    ]
    return release(one.model_copy(update={"copies": copies}))


def _adjusted(overlap: float, value: float | None = 0.005) -> Readable:
    context = in_context(0.005, 0.003, 0.008, overlap=overlap).model_copy(update={"value": value})
    return audited(raw(point(0.03, 0.02, 0.04, context_adjusted=context)))


def _apart(value: float) -> Readable:
    context = in_context(0.005, 0.003, 0.008, apart=share(value, value - 0.001, value + 0.001))
    return audited(raw(point(0.03, 0.02, 0.04, context_adjusted=context)))


def _changed(value: float, low: float, high: float) -> Readable:
    return audited(raw(), erased(changes=[change(value, low, high), change(0.5, 0.4, 0.6, against="pca")]))


def _useful(*ends: float) -> Readable:
    other = kept(0.1, 0.1, 0.1, measure="linear")
    return audited(raw(), erased(utility=[kept(*ends), other, kept(0.95, 0.93, 0.97, on="birds")]))


def _without_others() -> Readable:
    one = cell("alsuv", 0)
    return inversion(one.model_copy(update={"at": [one.at[0].model_copy(update={"other": None})]}))


def _of_both_pictures(made: str) -> Readable:
    """Other pictures are recovered in 1 %, the same ones in 90 %."""
    shares = {"other": of_400(0.01), "same": of_400(0.9)}
    if made == "inversion":
        one = cell("alsuv", 0)
        return inversion(one.model_copy(update={"at": [at.model_copy(update=shares) for at in one.at]}))
    asked = validation()
    attacks = [one.model_copy(update={"at": [at.model_copy(update=shares) for at in one.at]}) for one in asked.attacks]
    return asked.model_copy(update={"attacks": attacks})


def _chosen_worst_case() -> Readable:
    made = validation()
    at = made.attacks[0].at[1].model_copy(update={"attacks": ["scores", "best-of-n"], "other": of_400(0.01)})
    chosen = made.attacks[0].model_copy(update={"name": "worst case", "at": [at]})
    return made.model_copy(update={"worst_case": chosen})


def _chosen_inversion() -> Readable:
    """Of two attacks the one that other targets chose is the worse, and the lucky one is not quoted."""
    chosen = InversionWorst(space="raw", attacks=["steady"], at=cell("steady", 1).at[0])
    return inversion(cell("lucky", 9), cell("steady", 1)).model_copy(update={"worst_case": [chosen]})


def _of_originals(low: float, guesses: float) -> Readable:
    """A recogniser that links originals at least this often, and guesses at most so often."""
    made = certificate(0.02)
    assert made.pictures is not None
    assert made.pictures.identity is not None
    shares = {
        "originals": counted(500, 1000, low, 1.0),
        "guesses": counted(500, 1000, 0.0, guesses),
        "reconstructions": counted(0, 1000, 0.0, 0.003),
    }
    seen = made.pictures.identity.model_copy(update=shares)
    return made.model_copy(update={"pictures": made.pictures.model_copy(update={"identity": seen})})


def _bare_protection() -> Readable:
    made = protection()
    return made.model_copy(update={"methods": [made.methods[0].model_copy(update={"attackers": [], "utility": []})]})


def _audits() -> dict[str, Outcome]:
    good, better, bad = point(0.008, 0.006, 0.009, k=1), point(0.001, 0, 0.002, k=4), point(0.02, 0.01, 0.03, k=16)
    weak = point(0.001, 0, 0.002, probe="cosine", worst=False)
    strong = point(0.03, 0.02, 0.04)
    coarse = point(0.008, 0.006, 0.009, resolution="coarse", needed=210)
    above_chance = point(0.004, 0.002, 0.006, chance=1e-3)
    two_ks = [point(0.008, 0.006, 0.009, k=k) for k in (1, 4)]
    of_two_ks = erased("isp", *two_ks, changes=[change(-0.03, -0.04, -0.02)])
    coarse_change = erased("isp", coarse, changes=[change(-0.03, -0.04, -0.02)])
    among = kept(0.9, 0.8, 0.99, measure="neighbour overlap@10")
    return {
        "upper end within": Outcome(_tar(0.008, 0.006, 0.009), FAILS, PASSED, (0.008, 0.006, 0.009)),
        "upper end on the limit": Outcome(_tar(0.008, 0.006, 0.01), FAILS, PASSED),
        "upper end just above": Outcome(_tar(0.008, 0.006, 0.010001), FAILS, FAILED),
        "value above": Outcome(_tar(0.03, 0.02, 0.04), FAILS, FAILED, (0.03, 0.02, 0.04)),
        "interval straddles": Outcome(_tar(0.008, 0.006, 0.014), FAILS, FAILED),
        "value above its own interval": Outcome(_tar(0.02, 0.006, 0.009), FAILS, FAILED, (0.02, 0.006, 0.02)),
        "the k nearest to failing": Outcome(audited(raw(better, good)), FAILS, PASSED, (0.008, 0.006, 0.009)),
        "one k fails": Outcome(audited(raw(good, better, bad)), FAILS, FAILED, (0.02, 0.01, 0.03)),
        "a k by name": Outcome(audited(raw(good, better, bad)), {**FAILS, "k": 4}, PASSED, (0.001, 0, 0.002)),
        "worst probe": Outcome(audited(raw(strong, weak)), FAILS, FAILED, (0.03, 0.02, 0.04)),
        "worst probe, listed last": Outcome(audited(raw(weak, strong)), FAILS, FAILED),
        "a probe by name": Outcome(audited(raw(strong, weak)), {**FAILS, "probe": "cosine"}, PASSED),
        "no such rate": Outcome(audited(raw()), UNKNOWN, OPEN),
        "no such k": Outcome(audited(raw()), {**FAILS, "k": 64}, OPEN),
        "no such probe": Outcome(audited(raw()), {**FAILS, "probe": "svm"}, OPEN),
        "no such space": Outcome(audited(raw()), {**FAILS, "space": "leace"}, OPEN),
        "no worst case": Outcome(_tar(0.001, 0, 0.002, worst=False), FAILS, OPEN),
        "refused": Outcome(audited(raw(refused(far=1e-4))), FAILS, OPEN),
        "refused, allowing coarse": Outcome(
            audited(raw(refused(far=1e-4))), {**FAILS, "probe": "lda", "coarse": "allow"}, OPEN
        ),
        "one k refused, the other passes": Outcome(audited(raw(better, refused(k=16, far=1e-4))), FAILS, OPEN),
        "one k refused, the other fails": Outcome(audited(raw(strong, refused(k=16, far=1e-4))), FAILS, FAILED),
        "one k refused, the other named": Outcome(
            audited(raw(better, refused(k=16, far=1e-4))), {**FAILS, "k": 4}, PASSED
        ),
        "coarse": Outcome(audited(raw(coarse)), FAILS, OPEN),
        "coarse, allowed": Outcome(audited(raw(coarse)), {**FAILS, "coarse": "allow"}, PASSED),
        "coarse, its whole interval above": Outcome(
            _tar(0.983, 0.9, 0.99, resolution="coarse"), FAILS, FAILED, (0.983, 0.9, 0.99)
        ),
        "coarse, its lower end on the limit": Outcome(_tar(0.03, 0.01, 0.04, resolution="coarse"), FAILS, OPEN),
        "coarse, its interval above and its value within": Outcome(
            _tar(0.008, 0.02, 0.04, resolution="coarse"), FAILS, OPEN
        ),
        "coarse, refused at another k": Outcome(
            audited(raw(point(0.03, 0.02, 0.04, resolution="coarse"), refused(k=16, far=1e-4))), FAILS, FAILED
        ),
        "at a level below 95 %, within": Outcome(_at_level(0.9, 0.008, 0.006, 0.009), FAILS, OPEN),
        "at a level below 95 %, above": Outcome(_at_level(0.9, 0.03, 0.02, 0.04), FAILS, OPEN),
        "at a level above 95 %": Outcome(_at_level(0.99, 0.008, 0.006, 0.009), FAILS, PASSED),
        "coarse, allowed, above": Outcome(
            _tar(0.03, 0.02, 0.04, resolution="coarse"), {**FAILS, "coarse": "allow"}, FAILED
        ),
        "times chance within": Outcome(audited(raw(above_chance)), TIMES, PASSED, (4, 2, 6)),
        "times chance above": Outcome(audited(raw(above_chance)), {**TIMES, "times_chance_max": 5}, FAILED),
        "times chance without a chance": Outcome(
            audited(raw(point().model_copy(update={"chance": None}))), TIMES, OPEN
        ),
        "times a chance of zero": Outcome(audited(raw(point().model_copy(update={"chance": 0.0}))), TIMES, OPEN),
        "both limits hold": Outcome(audited(raw(above_chance)), {**FAILS, "times_chance_max": 10}, PASSED),
        "the second limit fails": Outcome(audited(raw(above_chance)), {**FAILS, "times_chance_max": 3}, FAILED),
        "the first limit fails": Outcome(
            audited(raw(above_chance)), {**TIMES, "times_chance_max": 10, "tar_max": 0.003}, FAILED
        ),
        "adjusted for context": Outcome(
            _adjusted(1.0), {**FAILS, "context_adjusted": True}, PASSED, (0.005, 0.003, 0.008)
        ),
        "not adjusted unless asked": Outcome(_adjusted(1.0), FAILS, FAILED),
        "context overlaps enough": Outcome(_adjusted(0.5), {**FAILS, "context_adjusted": True}, PASSED),
        "context hardly overlaps": Outcome(_adjusted(0.499), {**FAILS, "context_adjusted": True}, OPEN),
        "context without a value": Outcome(_adjusted(0.9, None), {**FAILS, "context_adjusted": True}, OPEN),
        "no context": Outcome(audited(raw()), {**FAILS, "context_adjusted": True}, OPEN),
        "different groups": Outcome(_apart(0.006), {**FAILS, "different_groups": True}, PASSED, (0.006, 0.005, 0.007)),
        "different groups above": Outcome(_apart(0.02), {**FAILS, "different_groups": True}, FAILED),
        "different groups are not all pairs": Outcome(_apart(0.006), FAILS, FAILED),
        "different groups, not measured": Outcome(_adjusted(1.0), {**FAILS, "different_groups": True}, OPEN),
        "different groups and adjusted": Outcome(
            _apart(0.006), {**FAILS, "different_groups": True, "context_adjusted": True}, OPEN
        ),
        "the raw space by name": Outcome(audited(raw(), erased()), {**FAILS, "space": "raw"}, FAILED),
        "the one eraser": Outcome(audited(raw(), erased()), FAILS, PASSED),
        "everything named": Outcome(
            audited(raw(), erased()), {**FAILS, "k": 4, "probe": "lda", "space": "isp", "times_chance_max": 100}, PASSED
        ),
        "an eraser's long name": Outcome(
            audited(raw(), erased("erased by isp 4", utility=[kept(0.95, 0.9, 0.99)])), USEFUL, PASSED
        ),
        "invalid": Outcome(audited(raw(), findings=[INVALID]), PASSES, OPEN),
        "invalid without saying why": Outcome(audited(raw()).model_copy(update={"valid": False}), PASSES, OPEN),
        "paper variant": Outcome(audited(raw(), variant="paper"), PASSES, OPEN),
        "no k at all": Outcome(_without_k(), PASSES, OPEN),
        "useful enough": Outcome(_useful(0.95, 0.93, 0.97), USEFUL, PASSED),
        "useful, lower end on the limit": Outcome(_useful(0.95, 0.9, 0.97), USEFUL, PASSED, (0.95, 0.9, 0.97)),
        "useful, lower end below": Outcome(_useful(0.91, 0.88, 0.94), USEFUL, FAILED, (0.91, 0.88, 0.94)),
        "too little use": Outcome(_useful(0.6, 0.5, 0.95), USEFUL, FAILED),
        "less use than nothing": Outcome(_useful(0.02, -0.01, 0.05), USEFUL, FAILED),
        "use below its own interval": Outcome(_useful(0.8, 0.91, 0.95), USEFUL, FAILED),
        "use on a set by name": Outcome(_useful(0.6, 0.5, 0.7), {**USEFUL, "on": "birds"}, PASSED),
        "use on no such set": Outcome(_useful(0.95, 0.93, 0.97), {**USEFUL, "on": "cars"}, OPEN),
        "use by no such measure": Outcome(_useful(0.95, 0.93, 0.97), {**USEFUL, "utility": "copy µAP"}, OPEN),
        "use in the raw space": Outcome(_useful(0.95, 0.93, 0.97), {**USEFUL, "space": "raw"}, OPEN),
        "neighbours are no use": Outcome(
            audited(raw(), erased(utility=[among])), {**USEFUL, "utility": "neighbour overlap@10"}, OPEN
        ),
        "beats a control": Outcome(_changed(-0.03, -0.04, -0.02), BEATS, PASSED, (-0.03, -0.04, -0.02)),
        "beats it, but the interval reaches beyond": Outcome(_changed(-0.01, -0.03, 0.004), BEATS, FAILED),
        "beats it, but the interval reaches 0": Outcome(_changed(-0.01, -0.03, 0.0), BEATS, FAILED),
        "leaves more than a control": Outcome(_changed(0.02, 0.01, 0.03), BEATS, FAILED),
        "leaves as much as a control": Outcome(_changed(0.0, -0.04, -0.01), BEATS, FAILED),
        "leaves more than its own interval": Outcome(_changed(0.001, -0.03, -0.02), BEATS, FAILED),
        "beats a control at a k by name": Outcome(audited(raw(), of_two_ks), {**BEATS, "k": 4}, PASSED),
        "was compared at one k of two": Outcome(audited(raw(), of_two_ks), BEATS, OPEN),
        "was not compared with that": Outcome(audited(raw(), of_two_ks), {**BEATS, "beats": "pca", "k": 4}, OPEN),
        "was not compared at that rate": Outcome(audited(raw(), of_two_ks), {**BEATS, "far": 1e-3, "k": 4}, OPEN),
        "was compared at a coarse rate": Outcome(audited(raw(), coarse_change), BEATS, OPEN),
        "is worse at a coarse rate": Outcome(
            audited(raw(), erased("isp", coarse, changes=[change(0.03, 0.02, 0.04)])), BEATS, FAILED
        ),
        "may be worse at a coarse rate": Outcome(
            audited(raw(), erased("isp", coarse, changes=[change(0.03, 0.0, 0.04)])), BEATS, OPEN
        ),
        "was compared at a coarse rate, allowed": Outcome(
            audited(raw(), coarse_change), {**BEATS, "coarse": "allow"}, PASSED
        ),
        "was compared with a coarse side": Outcome(
            audited(
                raw(),
                erased(changes=[change(-0.03, -0.04, -0.02)]),
                erased("random", point(resolution="coarse"), control=True),
            ),
            {**BEATS, "space": "isp"},
            OPEN,
        ),
        "beats the raw space": Outcome(
            audited(raw(), erased(changes=[change(-0.3, -0.31, -0.29, against="raw")])),
            {**BEATS, "beats": "raw"},
            PASSED,
        ),
    }


def _without_k() -> Readable:
    empty = audited(raw(), erased())
    return empty.model_copy(update={"protocol": empty.protocol.model_copy(update={"k": []})})


def _others() -> dict[str, Outcome]:
    low, high, stuck = cell("bob", 0), cell("alsuv", 60), cell("alsuv", 0, converged=False)
    both = inversion(low, high)
    listed = release(view(listed=40))
    sure = PermutationTest(p=1e-4, exact=False, permutations=9_999)
    joint = release(view(), fused=exposure(40), overall=sure)
    by_chance = release(view(listed=40), overall=sure.model_copy(update={"p": 0.01}))
    made = release(view(links=False), view("eyes"))
    copied = release(exact=exact_copies(30, 20))
    kept_set = protection()
    return {
        "validation, worst attack": Outcome(validation(0.6), {**ASKED, "success_max": 0.5}, FAILED, (0.6, 0.55, 0.65)),
        "validation, attack by name": Outcome(
            validation(0.6), {**ASKED, "success_max": 0.5, "attack": "best-of-n"}, PASSED
        ),
        "validation, within": Outcome(validation(0.6), {**ASKED, "success_max": 0.9}, PASSED),
        "validation, one question": Outcome(validation(), {**ASKED, "queries": 1, "far": 1e-4}, OPEN),
        "validation, other questions": Outcome(validation(), {**ASKED, "queries": 7}, OPEN),
        "validation, no such attack": Outcome(validation(), {**ASKED, "attack": "mine"}, OPEN),
        "validation, no enrolled picture judged": Outcome(validation(), {**ASKED, "pictures": "same"}, OPEN),
        "validation, other pictures": Outcome(
            _of_both_pictures("validation"), {**ASKED, "success_max": 0.1, "pictures": "other"}, PASSED
        ),
        "validation, the same pictures": Outcome(
            _of_both_pictures("validation"), {**ASKED, "success_max": 0.1, "pictures": "same"}, FAILED
        ),
        "validation, chosen worst case": Outcome(_chosen_worst_case(), {**ASKED, "success_max": 0.5}, PASSED),
        "validation, coarse, above": Outcome(_coarse_judges(), {**ASKED, "success_max": 0.5}, FAILED),
        "validation, coarse, straddles": Outcome(_coarse_judges(), {**ASKED, "success_max": 0.58}, OPEN),
        "validation, coarse, within": Outcome(_coarse_judges(), {**ASKED, "success_max": 0.9}, OPEN),
        "validation, invalid": Outcome(validation(findings=(INVALID,)), {**ASKED, "success_max": 0.9}, OPEN),
        "inversion, within": Outcome(inversion(cell("alsuv", 1), low), INVERTED, PASSED, (0.01, 0, 0.04)),
        "inversion, straddles": Outcome(inversion(low, cell("alsuv", 3)), INVERTED, FAILED),
        "inversion, worst attack": Outcome(both, INVERTED, FAILED, (0.6, 0.58, 0.63)),
        "inversion, worst attack chosen on other targets": Outcome(
            _chosen_inversion(), INVERTED, PASSED, (0.01, 0, 0.04)
        ),
        "inversion, attack by name": Outcome(both, {**INVERTED, "attack": "bob"}, PASSED, (0.0, 0.0, 0.03)),
        "inversion, space by name": Outcome(
            inversion(high, cell("alsuv", 1, "isp")), {**INVERTED, "space": "isp"}, PASSED
        ),
        "inversion, no such space": Outcome(inversion(low), {**INVERTED, "space": "isp"}, OPEN),
        "inversion, no such attack there": Outcome(
            inversion(cell("alsuv", 0), cell("bob", 0, "isp")), {**INVERTED, "attack": "bob"}, OPEN
        ),
        "inversion, no such rate": Outcome(inversion(low), {**INVERTED, "far": 1e-4}, OPEN),
        "inversion, nothing converged": Outcome(inversion(stuck), INVERTED, OPEN),
        "inversion, failed without converging": Outcome(inversion(cell("a", 9, converged=False)), INVERTED, FAILED),
        "inversion, one of two converged": Outcome(
            inversion(cell("a", 1, converged=False), cell("b", 0)), INVERTED, PASSED
        ),
        "inversion, coarse": Outcome(inversion(low, resolution="coarse"), INVERTED, OPEN),
        "inversion, coarse, above": Outcome(inversion(low, high, resolution="coarse"), INVERTED, FAILED),
        "inversion, coarse, allowed": Outcome(
            inversion(low, resolution="coarse"), {**INVERTED, "coarse": "allow"}, PASSED
        ),
        "inversion, no other pictures": Outcome(_without_others(), INVERTED, OPEN),
        "inversion, other pictures": Outcome(
            _of_both_pictures("inversion"), {**INVERTED, "inverted_max": 0.1, "pictures": "other"}, PASSED
        ),
        "inversion, the same pictures": Outcome(
            _of_both_pictures("inversion"),
            {**INVERTED, "space": "raw", "inverted_max": 0.1, "pictures": "same"},
            FAILED,
            (0.9, 0.85, 0.95),
        ),
        "inversion, invalid": Outcome(
            inversion(low).model_copy(update={"findings": [INVALID]}), {**INVERTED, "inverted_max": 0.5}, OPEN
        ),
        "release, nobody exposed": Outcome(release(), {"exposed_max": 0.003}, PASSED, (0, 0, 0.003)),
        "release, too few to show it": Outcome(release(), {"exposed_max": 0.002}, OPEN),
        "release, people exposed": Outcome(listed, {"exposed_max": 0.01}, FAILED, (0.04, 0.038, 0.043)),
        "release, people listed whom chance explains": Outcome(by_chance, {"exposed_max": 0.01}, OPEN),
        "release, few people listed whom chance explains": Outcome(
            by_chance, {"exposed_max": 0.05}, PASSED, (0.04, 0.038, 0.043)
        ),
        "release, nobody could be listed": Outcome(release(view(least=1001)), {"exposed_max": 0.5}, OPEN),
        "release, exposed by all views together": Outcome(joint, {"exposed_max": 0.01}, FAILED),
        "release, exposed by no view by name": Outcome(joint, {"exposed_max": 0.01, "view": "face"}, PASSED),
        "release, a holdout that lists nobody": Outcome(release(view(least=21)), {"exposed_max": 0.01}, OPEN),
        "release, a holdout that lists enough": Outcome(release(view(least=11)), {"exposed_max": 0.01}, PASSED),
        "release, no such view": Outcome(made, {"exposed_max": 0.5, "view": "nose"}, OPEN),
        "release, a view that links nobody": Outcome(made, {"exposed_max": 0.5, "view": "face"}, OPEN),
        "release, copies by a view that links nobody": Outcome(made, {"copies_max": 0.5, "far": 1e-4}, OPEN),
        "release, another source": Outcome(release(holds=False), {"exposed_max": 0.5}, OPEN),
        "release, copies within": Outcome(release(), {"copies_max": 0.004, "far": 1e-4}, PASSED),
        "release, copies above": Outcome(
            release(), {"copies_max": 0.0039, "far": 1e-4}, FAILED, (0.001, -0.002, 0.004)
        ),
        "release, copies at a coarse rate": Outcome(release(), {"copies_max": 0.004, "far": 1e-5}, OPEN),
        "release, copies at a coarse rate, above": Outcome(_copied(0.05), {"copies_max": 0.004, "far": 1e-5}, FAILED),
        "release, copies at a coarse rate, allowed": Outcome(
            release(), {"copies_max": 0.004, "far": 1e-5, "coarse": "allow"}, PASSED
        ),
        "release, copies at no such rate": Outcome(release(), {"copies_max": 0.004, "far": 1e-3}, OPEN),
        "release, copies by a view by name": Outcome(made, {"copies_max": 0.5, "far": 1e-4, "view": "eyes"}, PASSED),
        "release, retrieval within": Outcome(release(), {"risk_max": 0.07, "k": 2}, PASSED, (0.06, 0.05, 0.07)),
        "release, retrieval above": Outcome(release(), {"risk_max": 0.069, "k": 2}, FAILED),
        "release, retrieval at no such k": Outcome(release(), {"risk_max": 0.07, "k": 1}, OPEN),
        "release, retrieval by no such picture": Outcome(
            release(), {"risk_max": 0.07, "k": 2, "pictures": "same"}, OPEN
        ),
        "release, exact copies of people": Outcome(copied, {"exposed_max": 0.019}, FAILED, (0.02, 0.02, 0.02)),
        "release, exact copies of few people": Outcome(copied, {"exposed_max": 0.02}, PASSED),
        "release, exact copies of faces": Outcome(
            copied, {"copies_max": 0.029, "far": 1e-3}, FAILED, (0.03, 0.03, 0.03)
        ),
        "release, one exact copy": Outcome(
            release(exact=exact_copies(1, 1)), {"copies_max": 0.0001, "far": 1e-3}, FAILED
        ),
        "release, exact copies of another source": Outcome(
            release(holds=False, exact=exact_copies(30, 20)), {"exposed_max": 0.019}, FAILED
        ),
        "certificate, within": Outcome(certificate(0.02), RECOGNISED, PASSED, (0.02, 0.01, 0.03)),
        "certificate, straddles": Outcome(certificate(0.045), RECOGNISED, FAILED),
        "certificate, above": Outcome(certificate(0.99), RECOGNISED, FAILED),
        "certificate, no recogniser": Outcome(certificate(encoder=False), RECOGNISED, OPEN),
        "certificate, originals are not linked": Outcome(certificate(0.02, originals=0.03), RECOGNISED, OPEN),
        "certificate, originals above the limit": Outcome(_of_originals(0.06, 0.0), RECOGNISED, PASSED),
        "certificate, originals on the limit": Outcome(_of_originals(0.05, 0.0), RECOGNISED, OPEN),
        "certificate, originals no more than guesses": Outcome(_of_originals(0.06, 0.06), RECOGNISED, OPEN),
        "certificate, originals more than guesses": Outcome(_of_originals(0.3, 0.2), RECOGNISED, PASSED),
        "protection, useful": Outcome(kept_set, {"utility_min": 0.79}, PASSED),
        "protection, useful, lower end below": Outcome(kept_set, {"utility_min": 0.797}, FAILED),
        "protection, not useful": Outcome(kept_set, {"utility_min": 0.85}, FAILED),
        "protection, no such pairs": Outcome(kept_set, {"utility_min": 0.5, "pairs": "agedb_30"}, OPEN),
        "protection, pairs by name": Outcome(kept_set, {"utility_min": 0.5, "pairs": "lfw"}, PASSED),
        "protection, risk of the worst attacker": Outcome(kept_set, {"risk_max": 0.6, "k": 2}, PASSED),
        "protection, risk above": Outcome(kept_set, {"risk_max": 0.2, "k": 2}, FAILED),
        "protection, risk of the same picture": Outcome(
            kept_set, {"risk_max": 0.6, "k": 2, "pictures": "same"}, PASSED
        ),
        "protection, risk at no such k": Outcome(kept_set, {"risk_max": 0.5, "k": 7}, OPEN),
        "protection, no attacker": Outcome(_bare_protection(), {"risk_max": 0.5, "k": 2}, OPEN),
        "protection, no accuracy": Outcome(_bare_protection(), {"utility_min": 0.5}, OPEN),
        "protection, invalid": Outcome(protection(invalid=True), {"utility_min": 0.5}, OPEN),
        **_of_another_command(),
    }


MAKERS: dict[str, tuple[Callable[[], Readable], Rule]] = {
    "audit": (lambda: audited(raw()), FAILS),
    "validation": (validation, ASKED),
    "release": (release, {"exposed_max": 0.05}),
    "inversion": (lambda: inversion(cell("alsuv", 0)), INVERTED),
    "certificate": (certificate, RECOGNISED),
    "protection": (protection, {"utility_min": 0.05}),
}


def _of_another_command() -> dict[str, Outcome]:
    """Every rule on every file that it is not about."""
    return {
        f"{kind}, a rule about another: {other}": Outcome(make(), rule, OPEN)
        for kind, (make, _) in MAKERS.items()
        for other, (_, rule) in MAKERS.items()
        if other != kind
    }


@cache
def outcomes() -> dict[str, Outcome]:
    return {**_audits(), **_others()}


__all__ = ["MAKERS", "Outcome", "attacker", "outcomes"]
