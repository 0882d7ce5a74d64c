"""If these fail, the price of privacy is drawn at another rank, method or number than it was measured at."""

import pytest

from tests.auditing.charted import Chart, by_look, charts_of, outline, quantity, words
from tests.auditing.made import erased, kept, point, raw, result_of, share
from unface.auditing.sweeps import Sweep, SweepPoint, page
from unface.page.charts import GREY, INK, Look, looks
from unface.result.audit import AuditResult
from unface.result.numbers import Kept

BLUE = "#1c5d99"
LOOKS = [Look("raw", INK, (1, 0), "circle"), Look("isp", BLUE, (1, 0), "circle"), Look("pca", GREY, (2, 2), "cross")]


@pytest.fixture(autouse=True)
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Chart]:
    """What is drawn; no test here looks at SVG."""
    return charts_of(monkeypatch, "sweeps")


def swept(method: str, rank: int, tar: float, *utility: Kept, people: int = 30) -> SweepPoint:
    return SweepPoint(
        method=method,
        control=method == "pca",
        rank=rank,
        fit_identities=people,
        probe="lda",
        calibrate_tar=tar,
        tar=share(tar, tar - 0.01, tar + 0.01),
        chance=1e-3,
        times_chance=tar / 1e-3,
        utility=list(utility),
    )


def sweep(*points: SweepPoint, **others: object) -> Sweep:
    plain: dict[str, object] = {"over": "rank", "k": 4, "far": 1e-3, "resolution": "resolved", "seeds": 5}
    return Sweep.model_validate({**plain, "probes": ["lda"], "points": points, **others})


OVER_RANK = sweep(
    swept("raw", 0, 0.5),
    swept("isp", 2, 0.2, kept(0.9, 0.8, 0.95)),
    swept("isp", 6, 0.05, kept(0.6, 0.5, 0.7)),
    swept("pca", 2, 0.4),
)


def audited(rank: int = 4) -> AuditResult:
    isp = erased("isp", point())
    assert isp.erasure is not None
    return result_of(raw(point()), isp.model_copy(update={"erasure": isp.erasure.model_copy(update={"rank": rank})}))


def drawn_frontier(one: Sweep = OVER_RANK, result: AuditResult | None = None) -> page.Frontier:
    result = result or audited()
    return page.frontier(result, one, looks(result, {point.method: point.control for point in one.points}))


def test_a_frontier_has_every_method_at_every_rank_and_what_it_keeps() -> None:
    shown = drawn_frontier()
    assert shown.about == "k = 4, FAR 1e-3, the worst of lda, 5 draws"
    assert (shown.ranks, shown.methods) == ([2, 6], ["raw", "isp", "pca"])
    assert shown.columns == ["worst-case TAR", "times chance", "knn on objects.parquet kept"]
    raw_words = ["50.0 % [49.0, 51.0]", "500 ×", "all"]
    missing = ["not measured"] * 3
    assert shown.cells == [
        [
            raw_words,
            ["20.0 % [19.0, 21.0]", "200 ×", "90.0 % [80.0, 95.0]"],
            ["40.0 % [39.0, 41.0]", "400 ×", missing[0]],
        ],
        [raw_words, ["5.0 % [4.0, 6.0]", "50 ×", "60.0 % [50.0, 70.0]"], missing],
    ]
    assert shown.said == ["rank 2: raw 50.0 %, isp 20.0 %, pca 40.0 %", "rank 6: raw 50.0 %, isp 5.0 %"]
    assert shown.table.caption == "Every rank, at k = 4, FAR 1e-3, the worst of lda, 5 draws"
    assert words(shown.table) == [
        ["eraser", "worst-case TAR", "linked pairs", "probe", "times chance", "knn on objects.parquet kept"],
        ["raw, rank 0", "50.0 % [49.0, 51.0]", "50,000 of 100,000", "lda", "500 ×", "all"],
        ["isp, rank 2", "20.0 % [19.0, 21.0]", "20,000 of 100,000", "lda", "200 ×", "90.0 % [80.0, 95.0]"],
        ["pca, rank 2 | control", "40.0 % [39.0, 41.0]", "40,000 of 100,000", "lda", "400 ×", "not measured"],
        ["isp, rank 6", "5.0 % [4.0, 6.0]", "5,000 of 100,000", "lda", "50 ×", "60.0 % [50.0, 70.0]"],
    ]


@pytest.mark.parametrize(("rank", "chosen"), [(2, 0), (6, 1), (4, 1)])
def test_the_slider_starts_at_the_erasers_own_rank_or_in_the_middle(rank: int, chosen: int) -> None:
    assert drawn_frontier(result=audited(rank)).chosen == chosen


def test_a_sweep_with_fewer_draws_or_probes_than_the_audit_is_called_lighter() -> None:
    assert not drawn_frontier().lighter
    assert drawn_frontier(OVER_RANK.model_copy(update={"seeds": 4})).lighter
    assert drawn_frontier(OVER_RANK.model_copy(update={"probes": ["cosine"]})).lighter
    coarse = OVER_RANK.model_copy(update={"seeds": 1, "probes": ["lda", "plda"], "resolution": "coarse"})
    assert page._about(coarse) == "k = 4, FAR 1e-3, the worst of lda, plda, 1 draw; the rate is coarse"


def layers(rows: list[dict[str, object]], x: dict[str, object], shown: list[Look]) -> list[dict[str, object]]:
    """Intervals, lines and points, as a person expects them."""
    y = quantity("tar", "worst-case TAR", axis={"format": "~%"}, scale={"zero": True})
    colour = by_look(shown, *(look.colour for look in shown))
    dashes, shapes = by_look(shown, *(list(look.dash) for look in shown)), by_look(shown, *(s.shape for s in shown))
    bar = {"type": "rule", "strokeWidth": 1, "opacity": 0.6}
    dot = {"type": "point", "filled": True, "size": 46, "opacity": 1}
    said = {"field": "said", "type": "nominal"}
    return [
        {"mark": bar, "rows": rows, "x": x, "y": quantity("low"), "y2": {"field": "high"}, "color": colour},
        {
            "mark": {"type": "line", "strokeWidth": 1.5},
            "rows": rows,
            "x": x,
            "y": y,
            "color": colour,
            "strokeDash": dashes,
            "order": quantity("rank"),
        },
        {"mark": dot, "rows": rows, "x": x, "y": y, "color": colour, "shape": shapes, "description": said},
    ]


def row(look: str, rank: int, x: float, tar: float) -> dict[str, object]:
    ends = {"low": pytest.approx(tar - 0.01), "high": pytest.approx(tar + 0.01)}
    return {"look": look, "rank": rank, "x": x, "tar": tar, **ends, "said": f"rank {rank}"}


def test_charts_run_over_dimensions_removed_and_against_usefulness_kept(drawn: list[Chart]) -> None:
    shown = drawn_frontier()
    assert [figure.title for figure in shown.figures] == ["Over dimensions removed", "Against knn on objects.parquet"]
    assert all(figure.looks == tuple(LOOKS) for figure in shown.figures)
    over, against = drawn
    tails = "raw: 50.0 % at 0 to 50.0 % at 0; isp: 20.0 % at 2 to 5.0 % at 6; pca: 40.0 % at 2 to 40.0 % at 2"
    assert over.label == f"Worst-case TAR over dimensions removed. {tails}"
    rows = [row("raw", 0, 0, 0.5), row("isp", 2, 2, 0.2), row("isp", 6, 6, 0.05), row("pca", 2, 2, 0.4)]
    x = quantity("x", "dimensions removed", axis={"grid": False, "format": "d"})
    assert over.layers == layers(rows, x, LOOKS)
    assert against.label == (
        f"Worst-case TAR against knn on objects.parquet kept; lower and further right is better. {tails}"
    )
    rows = [row("isp", 2, 0.9, 0.2), row("isp", 6, 0.6, 0.05), row("raw", 0, 1.0, 0.5)]
    x = quantity("x", "share of usefulness kept", axis={"format": "~%"}, scale={"zero": False})
    assert against.layers == layers(rows, x, LOOKS)


def test_neighbours_kept_are_not_called_usefulness(drawn: list[Chart]) -> None:
    nearest = kept(0.9, 0.8, 0.95, measure="overlap@10", on="faces.parquet")
    one = sweep(swept("isp", 2, 0.2, nearest))
    figures = drawn_frontier(one).figures
    assert figures[-1].title == "Against overlap@10 on faces.parquet"
    assert drawn[-1].layers[0]["x"]["title"] == "share of nearest neighbours kept"


def test_a_chart_over_people_is_logarithmic_and_has_its_numbers(drawn: list[Chart]) -> None:
    one = sweep(swept("isp", 4, 0.2, people=1_000), swept("isp", 4, 0.5, people=250), over="identities")
    figure = page._over_identities(one, {"isp": LOOKS[1]})
    (chart,) = drawn
    about = "k = 4, FAR 1e-3, the worst of lda, 5 draws"
    assert (figure.title, figure.note, figure.looks) == ("Over fit identities", about, (LOOKS[1],))
    assert chart.label == "Worst-case TAR over the number of fit identities. isp: 50.0 % at 250 to 20.0 % at 1000"
    x = quantity(
        "x",
        "identities the eraser was fitted on",
        scale={"type": "log", "domain": [250, pytest.approx(1_001)]},
        axis={"values": [250, 1_000], "format": ",d", "grid": False},
    )
    assert chart.layers == layers([row("isp", 4, 1_000, 0.2), row("isp", 4, 250, 0.5)], x, LOOKS[1:2])
    assert figure.table is not None
    assert figure.table.caption == f"By fit identities, at {about}"
    assert words(figure.table) == [
        ["eraser", "fit identities", "worst-case TAR", "linked pairs", "times chance"],
        ["isp, rank 4", "1,000", "20.0 % [19.0, 21.0]", "20,000 of 100,000", "200 ×"],
        ["isp, rank 4", "250", "50.0 % [49.0, 51.0]", "50,000 of 100,000", "500 ×"],
    ]


def test_sections_of_sweeps_name_what_they_lack() -> None:
    ranks, people = "the frontier of privacy and usefulness over rank", "what more fit identities would buy"
    over_people = sweep(swept("isp", 4, 0.5, people=250), swept("isp", 4, 0.2, people=500), over="identities")
    assert outline(page.sections(audited(), [])) == [ranks, people]
    useful, useless = ("frontier", "Privacy against usefulness", 1), ("frontier", "Privacy over rank", 1)
    assert outline(page.sections(audited(), [OVER_RANK])) == [useful, people]
    assert outline(page.sections(audited(), [over_people])) == [useless, ranks]
    assert outline(page.sections(audited(), [sweep(swept("raw", 0, 0.5))])) == [people]
    assert outline(page.sections(audited(), [OVER_RANK, over_people])) == [useful]
