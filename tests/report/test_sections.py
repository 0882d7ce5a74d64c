"""If these fail, sentences and readouts of the page do not follow from the numbers of the audit."""

import pytest

from tests.report.made import full_audit, rank_sweep
from unface.auditing.erasure.page import comparisons
from unface.auditing.sweeps import SweepPoint
from unface.auditing.sweeps.page import Frontier, frontier
from unface.page.charts import looks
from unface.result.audit import AuditResult, Change


def changed(low: float, high: float, against: str = "pca") -> AuditResult:
    """isp against one control, with this interval."""
    full = full_audit()
    change = Change(
        against=against,
        k=4,
        far=1e-4,
        probe="lda",
        against_probe="lda",
        value=(low + high) / 2,
        low=low,
        high=high,
        level=0.95,
    )
    spaces = [s.model_copy(update={"changes": [change] if s.name == "isp" else []}) for s in full.spaces]
    return full.model_copy(update={"spaces": spaces})


def said(result: AuditResult) -> str:
    return " ".join(one.text for one in comparisons(result))


@pytest.mark.parametrize(
    ("low", "high", "sentence", "won"),
    [
        (-0.03, -0.01, "isp beats label-free PCA of the same rank: −2.0 [−3.0, −1.0] percentage points", True),
        (-0.01, 0.004, "isp cannot be told from label-free PCA of the same rank: −0.3 [−1.0, +0.4]", False),
        (-0.01, 0.0, "isp cannot be told from label-free PCA of the same rank", False),
        (0.01, 0.03, "isp leaves more than label-free PCA of the same rank: +2.0 [+1.0, +3.0]", False),
    ],
)
def test_an_eraser_beats_a_control_only_if_the_whole_interval_does(
    low: float, high: float, sentence: str, won: bool
) -> None:
    first = comparisons(changed(low, high))[0]
    assert first.text.startswith(sentence)
    assert first.won is won


def test_the_raw_vectors_are_not_beaten_but_leak_more() -> None:
    assert said(changed(-0.05, -0.03, "raw")).startswith("isp leaves less than the raw vectors: −4.0 [−5.0, −3.0]")


def test_two_erasers_are_put_against_each_other_once() -> None:
    full = full_audit()
    raw, isp, random, pca = full.spaces
    at = isp.changes[0]
    first = isp.model_copy(update={"changes": [at.model_copy(update={"against": "other"})]})
    second = isp.model_copy(update={"name": "other", "changes": [at.model_copy(update={"against": "isp"})]})
    text = said(full.model_copy(update={"spaces": [raw, first, second, random, pca]}))
    assert text.count("percentage points") == 1
    assert text.startswith("isp ")


def test_a_control_that_was_not_compared_is_named() -> None:
    text = said(changed(-0.03, -0.01, "pca"))
    assert "isp was not compared with the random subspace of the same rank." in text
    assert "isp was not compared with the raw vectors." in text
    assert "not compared" not in said(full_audit())


def test_an_eraser_without_controls_is_said_to_prove_nothing() -> None:
    alone = full_audit().model_copy(update={"spaces": full_audit().spaces[:2]})
    assert "isp was not put against a control of equal rank" in said(alone)


def test_controls_of_another_rank_are_not_called_equal() -> None:
    result = changed(-0.03, -0.01)
    pca = result.spaces[-1]
    assert pca.erasure is not None
    other = pca.model_copy(update={"erasure": pca.erasure.model_copy(update={"rank": 100})})
    assert "beats label-free PCA of rank 100" in said(
        result.model_copy(update={"spaces": [*result.spaces[:-1], other]})
    )


def drawn(points: list[SweepPoint]) -> Frontier:
    """A sweep over ranks of these points."""
    styles = looks(full_audit(), {point.method: point.control for point in points})
    return frontier(full_audit(), rank_sweep().model_copy(update={"points": points}), styles)


def test_raw_stands_beside_every_rank_and_methods_missing_at_one_are_not_measured() -> None:
    shown = drawn([point for point in rank_sweep().points if (point.method, point.rank) != ("pca", 256)])
    assert shown.ranks == [64, 128, 192, 256]
    assert shown.methods == ["raw", "isp", "random", "pca"]
    assert {rank[0][0] for rank in shown.cells} == {"6.6 % [6.2, 7.1]"}
    assert shown.cells[3][3] == ["not measured"] * 4
    assert shown.said[3] == "rank 256: raw 6.6 %, isp 1.8 %, random 4.8 %"


def test_a_sweep_without_usefulness_is_drawn_over_rank_alone() -> None:
    shown = drawn([point.model_copy(update={"utility": []}) for point in rank_sweep().points])
    assert [figure.title for figure in shown.figures] == ["Over dimensions removed"]
    assert shown.columns == ["worst-case TAR", "times chance"]
