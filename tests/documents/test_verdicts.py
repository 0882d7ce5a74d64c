"""If these fail, the sentence that a result is quoted by says another number, or decides otherwise, than the result."""

import re
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import pytest

from tests.kit.golden import declare, golden
from tests.kit.results import (
    INVALID,
    WARNING,
    AnyResult,
    CertificateResult,
    InversionCell,
    MethodResult,
    ProtectionResult,
    Rate,
    ReleaseResult,
    ValidationResult,
    ViewResult,
    accuracy,
    attacker,
    cell,
    certificate,
    counted,
    enriched,
    exact_copies,
    exposure,
    facts,
    inversion,
    of_400,
    protection,
    release,
    validated_attack,
    validation,
    view,
)
from unface.result.release import PermutationTest

declare("verdicts.txt")


class Case(NamedTuple):
    """A result and the numbers of its verdict, in order."""

    result: AnyResult
    numbers: Sequence[str]


def numbers(text: str) -> list[str]:
    """Every number of a sentence: 62.0 %, 1,000, 0.00042."""
    return re.findall(r"\d+(?:,\d{3})*(?:\.\d+)?(?: %| dB)?", text)


# Certificates


def mapped(inputs: int, *maps: tuple[int, float | None]) -> CertificateResult:
    """Maps by rank and dB under noise; nobody looked at pictures."""
    made = certificate(encoder=False)
    (one,) = made.maps
    found = [one.model_copy(update={"rank": rank, "noise_psnr": psnr}) for rank, psnr in maps]
    return made.model_copy(update={"inputs": inputs, "maps": found, "pictures": None})


def _certificates() -> dict[str, Case]:
    return {
        "all but few": Case(mapped(768, (765, None)), ["3", "768"]),
        "1 % is lost": Case(mapped(200, (198, None)), ["2", "200"]),
        "more than 1 % is lost": Case(mapped(200, (197, None)), ["3", "200"]),
        "one dimension": Case(mapped(1, (1, None)), ["1"]),
        "noise of 30 dB": Case(mapped(200, (200, 30.0)), ["200", "30 dB"]),
        "noise of less than 30 dB": Case(mapped(200, (200, 29.6)), ["200", "30 dB"]),
        "several maps": Case(mapped(3000, (2990, None), (1000, 12.3), (1500, 11.0)), ["10", "2,000", "3,000", "12 dB"]),
        "recognised": Case(certificate(0.99), ["3", "768", "99.0 %", "1,000", "100.0 %"]),
        "recognised less than originals": Case(certificate(0.98), ["3", "768", "98.0 %", "1,000", "100.0 %"]),
        "recognised more than originals": Case(
            certificate(0.9, originals=0.89), ["3", "768", "90.0 %", "1,000", "89.0 %"]
        ),
        "no recogniser": Case(certificate(0.99, encoder=False), ["3", "768"]),
    }


# Inversions

FEW = counted(3, 100, 0.01, 0.06)


def changed(made: InversionCell, **more: object) -> InversionCell:
    names = ("far", "other", "derangement")
    at = made.at[0].model_copy(update={name: more.pop(name) for name in names if name in more})
    return made.model_copy(update={"at": [at], **more})


def weak(far: float = 1e-3, strangers: int = 10, *, converged: bool | None = True) -> InversionCell:
    """3 % [1, 6] are found, and of strangers as many as given of 1,000."""
    chance = Rate.counted(strangers, 1000)
    return changed(cell("alsuv", 3, converged=converged), far=far, other=FEW, derangement=chance)


def _inversions() -> dict[str, Case]:
    both = inversion(cell("alsuv", 62), cell("alsuv", 1, "isp"))
    template = changed(cell("map", 40), other=None, gives="sface", far=1e-2)
    elsewhere = changed(cell("bob", 0, "isp"), other=None)
    beside = changed(cell("bob", 0), other=None)
    return {
        "the better attack": Case(inversion(cell("bob", 3), cell("alsuv", 62)), ["62.0 %", "1,000"]),
        "a template of the same picture": Case(inversion(template), ["40.0 %", "100"]),
        "chance by strangers": Case(inversion(weak()), ["1,000", "3.0 %", "6.0 %"]),
        "chance by the rate": Case(inversion(weak(1e-2, 0)), ["100", "3.0 %", "6.0 %"]),
        "above chance": Case(inversion(weak(9e-3, 9)), ["3.0 %", "111"]),
        "it is not known whether it converged": Case(inversion(weak(converged=None)), ["1,000", "3.0 %", "6.0 %"]),
        "nothing converged": Case(inversion(weak(converged=False)), ["1,000"]),
        "another converged": Case(inversion(weak(converged=False), beside), ["1,000", "3.0 %", "6.0 %"]),
        "another converged elsewhere": Case(inversion(weak(converged=False), elsewhere), ["1,000"]),
        "inversion that is invalid": Case(both.model_copy(update={"findings": [WARNING, INVALID]}), []),
        "inversion at no rate": Case(inversion(changed(cell("alsuv", 62), far=None)), []),
        "inversion of another space": Case(both.model_copy(update={"cells": [cell("alsuv", 1, "isp")]}), []),
    }


# Protections


def linked(hits: int, low: float, **more: object) -> Any:
    """Of 1,000 pairs, up to 5 points more."""
    found = counted(hits, 1000, low, hits / 1000 + 0.05)
    return attacker("one", 0).model_copy(update={"same": found, "other": found, **more})


def method(*attackers: Any, name: str = "FaceMAE", utility: bool = False, ratio: float | None = 0.75) -> MethodResult:
    return MethodResult(
        name=name, ratio=ratio, audited=name == "FaceMAE", pictures=9, people=3,
        utility=[accuracy(0.8)] if utility else [], attackers=list(attackers),
    )  # fmt: skip


def protecting(*methods: MethodResult) -> ProtectionResult:
    return protection().model_copy(update={"methods": list(methods)})


def _protections() -> dict[str, Case]:
    originals = method(linked(950, 0.9), name="originals", ratio=None, utility=True)
    unseen = method(linked(950, 0.9, other=None), name="originals", ratio=None)
    bare = method(name="originals", ratio=None)
    one_picture = method(linked(300, 0.25, other=None), utility=True)
    useful, quiet = ["80.0 %", "50 %"], ["0.20 %", "1,000", "5.2 %"]
    return {
        "people are linked": Case(
            protecting(originals, method(linked(300, 0.25), utility=True)),
            ["30.0 %", "1,000", "95.0 %", *useful, "80.0 %"],
        ),
        "people have one picture": Case(protecting(one_picture, originals), ["30.0 %", "1,000", *useful, "80.0 %"]),
        "nobody is linked": Case(protecting(method(linked(2, 0.0))), quiet),
        "nobody is linked but originals": Case(protecting(method(linked(2, 0.0)), originals), [*quiet, "95.0 %"]),
        "it is only useful": Case(protecting(method(utility=True), bare), useful),
        "originals have one picture": Case(protecting(method(linked(300, 0.25)), unseen), ["30.0 %", "1,000"]),
        "nothing of a protection": Case(protecting(method()), []),
    }


# Releases


def near(name: str, p: float, training: int = 1_500) -> ViewResult:
    made = enriched(name, p)
    assert made.enrichment is not None
    update = {"nearest": 2_000, "training": training, "expected": 1_000.04}
    return made.model_copy(update={"enrichment": made.enrichment.model_copy(update=update)})


def copied(p: float, far: float, number: int = 5) -> Any:
    one = view().copies[0]
    test = one.test.model_copy(update={"p": p})
    return one.model_copy(update={"far": far, "test": test, "copies": counted(number, 1000, 0, 0.01), "expected": 0.26})


def member(p: float, made: ViewResult | None = None, least: int = 2) -> ViewResult:
    """60 % of the faces are nearest to a training person."""
    made = made or view(least=least)
    test = made.membership.test.model_copy(update={"p": p})
    nearest = made.membership.model_copy(update={"share": counted(600, 1000, 0.5, 0.7), "test": test})
    return made.model_copy(update={"membership": nearest})


def together(p: float) -> PermutationTest:
    return PermutationTest(p=p, exact=False, permutations=9_999)


def evidence() -> tuple[ViewResult, ViewResult]:
    copies = [copied(0.009, 1e-3), copied(0.0081, 1e-4, 1), copied(0.02, 1e-5)]
    return member(0.00042, near("face", 0.5)).model_copy(update={"copies": copies}), near("eyes", 0.00211)


NEAREST = ["60.0 %", "50.0 %", "0.00042"]
TRAIT = ["1,500", "2,000", "1000.0", "0.0042"]
NEAR_COPY = ["1", "10,000", "0.3", "0.0081"]


def _releases() -> dict[str, Case]:
    of_one = facts("people", 1)
    clear = release(near("face", 0.5), enriched("eyes", 0.002, 1_000), fused=exposure(44))
    exact = exact_copies(2_000, 1_000).model_copy(update={"holdout": 1_999})
    leaky = member(0.0001, view(listed=3))
    by_chance = view().model_copy(update={"copies": [copied(0.01, 1e-4)]})
    return {
        "people are listed": Case(release(view(listed=40)), ["40", "1,000", "40", "5.0 %"]),
        "one person is listed": Case(release(view(listed=1), training=of_one), ["1", "1", "1", "5.0 %"]),
        "more by all views": Case(release(view(listed=40), fused=exposure(44)), ["44", "1,000", "44", "5.0 %"]),
        "fewer by all views": Case(release(view(listed=40), fused=exposure(3)), ["40", "1,000", "40", "5.0 %"]),
        "more by one trait": Case(clear, ["1,000", "1,000", "1,000", "5.0 %"]),
        "all evidence": Case(release(*evidence(), exact=exact), ["2,000", "1,000", *NEAREST, *TRAIT, *NEAR_COPY]),
        "evidence, nobody listed": Case(release(*evidence()), [*NEAREST, *TRAIT, *NEAR_COPY, "2"]),
        "evidence, one could be listed": Case(release(member(0.00042, least=1)), [*NEAREST, "1"]),
        "evidence, all could be listed": Case(release(member(0.00042, least=1000)), [*NEAREST, "1,000"]),
        "evidence, nobody could be listed": Case(release(member(0.00042, least=1001)), NEAREST),
        "one exact copy": Case(release(leaky, holds=False, exact=exact_copies(1, 1)), ["1", "1"]),
        "nothing is comparable": Case(release(leaky, holds=False), []),
        "as many copies of strangers": Case(release(exact=exact_copies(3, 0).model_copy(update={"holdout": 3})), ["2"]),
        "no evidence": Case(release(view(least=2)), ["2"]),
        "no evidence of one": Case(release(view(least=1)), ["1"]),
        "no evidence, a holdout too small": Case(release(view(least=1001)), ["1,000", "19"]),
        "no evidence, a holdout of one": Case(release(view(least=1001), holdout=facts("others", 1)), ["1", "19"]),
        "copies at the limit": Case(release(by_chance), ["2"]),
        "membership at the limit": Case(release(member(0.01)), ["2"]),
        "nothing alone, but all together": Case(release(overall=together(0.0042)), ["0.0042", "2"]),
        "people are listed by chance": Case(release(view(listed=40), overall=together(0.012)), ["0.012", "40"]),
        "one person is listed by chance": Case(release(view(listed=1), overall=together(0.012)), ["0.012", "1"]),
        "a file of an earlier version": Case(release(view(listed=40), overall=None), ["40", "1,000", "40", "5.0 %"]),
    }


# Validations


def asked(
    queries: int, far: float, other: float | None, same: float | None = None, chance: float = 0.0
) -> ValidationResult:
    (at, *_) = validated_attack("scores", 0.1, 0.2).at
    shares = {name: None if value is None else of_400(value) for name, value in (("other", other), ("same", same))}
    one = at.model_copy(update={"queries": queries, "far": far, "chance": chance, **shares})
    return validation().model_copy(
        update={"attacks": [validated_attack("scores", 0.1, 0.2).model_copy(update={"at": [one]})]}
    )


def _validations() -> dict[str, Case]:
    return {
        "recovered": Case(validation(0.6), ["100", "30.0 %", "1,000"]),
        "recovered of the same picture": Case(asked(1, 0.01, None, 0.5), ["1", "50.0 %", "100"]),
        "chance by people": Case(asked(1_000, 1e-2, 0.075, chance=0.025), ["1,000", "100", "7.5 %", "12.5 %"]),
        "chance by its rate": Case(asked(1_000, 0.025, 0.075), ["1,000", "40", "7.5 %", "12.5 %"]),
        "just above chance": Case(asked(5, 0.0249, 0.075, chance=0.0249), ["5", "7.5 %", "40"]),
        "validation that is invalid": Case(validation(findings=(WARNING, INVALID)), []),
        "validation with a warning": Case(validation(findings=(WARNING,)), ["100", "30.0 %", "1,000"]),
        "nothing was asked": Case(validation().model_copy(update={"attacks": []}), []),
        "nothing could be compared": Case(asked(5, 1e-3, None), []),
    }


@cache
def cases() -> dict[str, Case]:
    return {**_certificates(), **_inversions(), **_protections(), **_releases(), **_validations()}


def verdict(made: Any) -> str:
    said: str = made.verdict
    return said


@pytest.mark.parametrize("name", list(cases()))
def test_a_verdict_quotes_the_numbers_that_decide_and_no_others(name: str) -> None:
    assert numbers(verdict(cases()[name].result)) == list(cases()[name].numbers)


def test_verdicts_read_as_they_did() -> None:
    golden("\n\n".join(f"# {name}\n{verdict(case.result)}" for name, case in cases().items()), "verdicts.txt")


@pytest.mark.parametrize(
    ("name", "decision"),
    [
        ("people are listed", "exposes people"),
        ("all evidence", "leaks"),
        ("one exact copy", "leaks"),
        ("nothing is comparable", "not comparable"),
        ("no evidence", "no evidence"),
        ("as many copies of strangers", "no evidence"),
        ("copies at the limit", "no evidence"),
        ("membership at the limit", "no evidence"),
    ],
)
def test_what_a_release_decides_follows_from_the_evidence(name: str, decision: str) -> None:
    made = cases()[name].result
    assert isinstance(made, ReleaseResult)
    assert made.decision == decision


def test_a_repr_is_one_line_with_the_verdict_and_says_if_it_is_invalid() -> None:
    for name, case in cases().items():
        made: Any = case.result
        assert made.verdict in repr(made), name
        assert ("INVALID" in repr(made)) is not made.valid, name
        assert "\n" not in repr(made)
