"""If these fail, a part that has one table or one chart on the page shows something else than it measured."""

from typing import Literal

import pytest
from pydantic import BaseModel

from tests.auditing.charted import charts_of, quantity, tables_of, words
from tests.auditing.made import erased, kept, point, raw, result_of, share
from tests.gate.test_inversion import cell
from tests.gate.test_inversion import result as inverted
from tests.report.made import given
from unface.auditing import AttributeSwap, Exposures, Inversion, Maps, Search, Transfer, Translate
from unface.auditing.attribute_swap import SwapInSpace, SwapResults
from unface.auditing.exposure import Exposure, ExposureResults, GroupGap, GroupTar
from unface.auditing.inversion import page as inversion_page
from unface.auditing.maps import Map, MapResults
from unface.auditing.maps import page as maps_page
from unface.auditing.search import HitRates, OpenSearch, SearchResults, SpaceSearch
from unface.auditing.transfer import EraserTransfer, TransferCell, TransferResults
from unface.auditing.transfer import page as transfer_page
from unface.auditing.translate import TranslateCeiling, TranslatedAt, TranslatedSpace, TranslateResults
from unface.auditing.translate import page as translate_page
from unface.auditing.utility import Utility, UtilitySets
from unface.page.charts import GREY, INK, PEOPLE, SHAPES, Look
from unface.page.tables import Table
from unface.result.audit import AuditResult
from unface.result.inversion import InversionControl, InversionResult
from unface.result.numbers import Estimate, Mean, Rate
from unface.result.parts import Option, Part, Section

Resolution = Literal["resolved", "coarse"]


def with_part(name: str, found: BaseModel | None) -> AuditResult:
    made = result_of(raw(point()), erased("isp", point()), erased("random", point(), control=True))
    return made.model_copy(update={"parts": {} if found is None else {name: found}})


def shown(monkeypatch: pytest.MonkeyPatch, part: type[Part], result: AuditResult) -> tuple[Section, list[Table]]:
    """The one section of a part, and the tables in it."""
    made = tables_of(monkeypatch, "unface.page.tables")
    (section,) = part.page(result)
    assert isinstance(section, Section)
    assert all(one.caption in section.body for one in made)
    return section, made


def named(section: Section) -> tuple[str, str, int]:
    return section.anchor, section.title, section.order


# Transfer


def transferred(
    fitted: str | None, tested: str, tar: float, k: int = 4, resolution: Resolution = "resolved"
) -> TransferCell:
    return TransferCell(
        fitted_on=fitted,
        tested_on=tested,
        k=k,
        far=1e-3,
        resolution=resolution,
        probe="lda",
        tar=share(tar, tar - 0.01, tar + 0.01),
        chance=1e-3,
        times_chance=tar / 1e-3,
    )


TRANSFER = EraserTransfer(
    method="isp",
    rank=4,
    first="a",
    second=given("b", 100),
    cells=[
        transferred(None, "a", 0.5),
        transferred("a", "a", 0.1),
        transferred("b", "a", 0.2, resolution="coarse"),
        transferred(None, "b", 0.6),
        transferred("b", "b", 0.15),
        transferred(None, "b", 0.7, k=1),
    ],
    cosines=[0.9, 0.5, 0.25],
    chance_cosine=0.5,
)


def test_transfer_has_a_table_for_each_k_with_rows_fitted_on_and_columns_tested_on() -> None:
    four, one = transfer_page._tables(TRANSFER)
    assert four.caption == "Worst-case TAR of isp, rank 4, at k = 4, FAR 1e-3"
    assert words(four) == [
        ["eraser", "tested on a", "tested on b"],
        [
            "raw, no eraser",
            "50.0 % [49.0, 51.0] | 500 × chance, 50,000 of 100,000, lda",
            "60.0 % [59.0, 61.0] | 600 × chance, 60,000 of 100,000, lda",
        ],
        ["fitted on a", "10.0 % [9.0, 11.0] | 100 × chance, 10,000 of 100,000, lda", "not measured"],
        [
            "fitted on b",
            "~20.0 % [19.0, 21.0] | 200 × chance, 20,000 of 100,000, lda",
            "15.0 % [14.0, 16.0] | 150 × chance, 15,000 of 100,000, lda",
        ],
    ]
    assert one.caption == "Worst-case TAR of isp, rank 4, at k = 1, FAR 1e-3"
    assert words(one)[1] == [
        "raw, no eraser",
        "not measured",
        "70.0 % [69.0, 71.0] | 700 × chance, 70,000 of 100,000, lda",
    ]


def test_cosines_fall_beside_the_largest_by_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = charts_of(monkeypatch, "transfer")
    figure = transfer_page._cosine_figure(TRANSFER)
    (chart,) = drawn
    note = "1 of 3 cosines lie above 0.500, where the largest of two random subspaces of this rank lies."
    assert (figure.title, figure.note) == ("Principal cosines", note)
    assert chart.label == f"Principal cosines, falling. {note}"
    y = quantity("y", "cosine", scale={"domain": [0, 1]})
    x = quantity("x", "principal angle", axis={"grid": False, "format": "d"})
    rows = [{"x": 1, "y": 0.9}, {"x": 2, "y": 0.5}, {"x": 3, "y": 0.25}]
    assert chart.layers == [
        {"mark": {"type": "rule", "color": GREY, "strokeDash": [6, 3]}, "rows": [{"y": 0.5}], "y": y},
        {"mark": {"type": "line", "color": INK, "strokeWidth": 1.8}, "rows": rows, "x": x, "y": y},
    ]
    assert figure.looks == (
        Look("principal cosines", INK, (1, 0), "circle"),
        Look("largest by chance", GREY, (6, 3), "circle"),
    )
    assert figure.table is not None
    assert figure.table.caption == "Principal cosines, falling"
    head, *numbers = words(figure.table)
    assert head == ["angle", "cosine"]
    assert numbers == [["1", "0.9000"], ["2", "0.5000"], ["3", "0.2500"], ["largest by chance", "0.5000"]]


def test_the_section_of_transfer_names_the_other_set_and_how_to_ask_again() -> None:
    result = with_part("transfer", TransferResults(transfers=[TRANSFER]))
    (section,) = Transfer.page(result)
    assert isinstance(section, Section)
    assert named(section) == ("transfer", "On other people", 2)
    assert section.sources == (("Other set", TRANSFER.second),)
    assert Transfer.repeat(result) == [Option("--transfer", ("b",), value="unface.auditing.Transfer('b')")]
    bare = with_part("transfer", None)
    assert (Transfer.page(bare), Transfer.repeat(bare)) == (["whether an eraser carries to another set"], [])
    missing = ["whether the projection holds on other faces: give a second set as --transfer"]
    assert (Transfer.not_measured(bare), Transfer.not_measured(result)) == (missing, [])
    assert Transfer.not_measured(result_of(raw(point()))) == []


# Translate


def at(
    far: float, other: float | None, change: Estimate | None = None, resolution: Resolution = "resolved"
) -> TranslatedAt:
    return TranslatedAt(
        far=far,
        resolution=resolution,
        threshold=0.4,
        same=share(0.9, 0.85, 0.95),
        other=None if other is None else share(other, other - 0.01, other + 0.01),
        chance=Rate.counted(1, 1_000),
        change=change,
    )


def translated(*raw_points: TranslatedAt, encoder: str | None = "arc") -> TranslateResults:
    changed = at(1e-3, 0.1, Estimate(-0.4, -0.45, 0.02, 0.95), "coarse")
    return TranslateResults(
        recogniser=given("faces.npz", 100).model_copy(update={"encoder": encoder}),
        train_pictures=1_200,
        spaces=[
            TranslatedSpace(space="raw", control=False, strength=1, at=list(raw_points)),
            TranslatedSpace(space="isp", control=False, strength=1, at=[changed]),
            TranslatedSpace(space="random", control=True, strength=1, at=[at(1e-2, None)]),
        ],
        ceiling=[
            TranslateCeiling(far=1e-2, other=share(0.99, 0.98, 1)),
            TranslateCeiling(far=1e-3, other=share(0.95, 0.9, 0.97)),
            TranslateCeiling(far=1e-4, other=None),
        ],
    )


def test_templates_are_shown_at_the_quoted_rate_with_their_change_and_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    found = translated(at(1e-2, 0.8), at(1e-3, 0.5), at(1e-4, 0.3))
    drawn = tables_of(monkeypatch, "unface.auditing.translate.page")
    section = translate_page.section(found)
    (table,) = drawn
    assert table.caption == "Templates of arc made of these vectors, accepted at FAR 1e-3"
    same, chance = "90.0 % [85.0, 95.0] | 90,000 of 100,000", "0.10 % | 1 of 1,000"
    assert words(table) == [
        ["space", "other pictures of the person", "the same picture", "change", "everybody else"],
        ["raw", "*50.0 % [49.0, 51.0]* | 50,000 of 100,000", same, "", chance],
        [
            "isp",
            "*~10.0 % [9.0, 11.0]* | 10,000 of 100,000",
            f"~{same}",
            "−40.0 | −45.0 to +2.0 points",
            chance,
        ],
        ["random | control of equal rank", "not measured", same, "", chance],
    ]
    assert named(section) == ("translate", "From vector to face template", 2)
    assert section.sources == (("Recogniser", found.recogniser),)
    assert (
        "A linear map from these vectors to those of arc, learned on 1,200 pictures of train people and judged by arc "
        "on test people; learned anew in each space. Two real pictures of one person: 99.0 % at FAR 0.01, 95.0 % at "
        "FAR 1e-3."
    ) in section.body
    unnamed = translate_page.section(translated(at(1e-3, 0.5), encoder=None))
    assert "those of faces.npz, learned" in unnamed.body


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (
            translated(at(1e-2, 0.8), at(1e-3, 0.5)),
            "A linear map turns these vectors into arc templates that match other pictures of the same person 50.0 % "
            "of the time, at one false match in 1,000. Learning it took pictures, but no identity labels.",
        ),
        (
            translated(at(1e-2, None), encoder=None),
            "A linear map turns these vectors into 'faces.npz' templates that match the same picture 90.0 % of the "
            "time, at one false match in 100. Learning it took pictures, but no identity labels.",
        ),
        (translated(at(1e-3, 0.0130)), None),  # its lower end is 3 times chance, and no more
        (translated(at(1e-3, 0.0131)), "A linear map turns"),
    ],
)
def test_templates_are_a_finding_where_they_match_more_than_three_times_chance(
    found: TranslateResults, text: str | None
) -> None:
    findings = Translate.findings(with_part("translate", found))
    if text is None:
        assert findings == []
    else:
        (finding,) = findings
        assert (finding.severity, finding.about) == ("note", "translate")
        assert finding.text.startswith(text)


def test_templates_of_controls_are_no_readings_and_the_set_can_be_asked_for_again() -> None:
    found = with_part("translate", translated(at(1e-2, 0.8), at(1e-3, None)))
    assert [(one.what, one.where, one.at, one.found and one.found.value) for one in Translate.readings(found)] == [
        ("template recovered", "vectors", "FAR 0.01", 0.8),
        ("template recovered", "vectors", "FAR 1e-3", 0.9),
        ("template recovered", "isp", "FAR 1e-3", 0.1),
    ]
    again = Option("--translate", ("faces.npz",), value="unface.auditing.Translate('faces.npz')")
    assert Translate.repeat(found) == [again]
    bare = with_part("translate", None)
    assert not (Translate.readings(bare))
    assert not (Translate.repeat(bare))
    assert not (Translate.findings(bare))
    assert Translate.page(bare) == ["templates of a face recogniser"]


# Inversion


def inversion() -> InversionResult:
    first = cell("alsuv", 62)
    control = InversionControl(name="random face", cosine=None, at=cell("x", 3).at)
    weak = cell("alsuv", 4, "isp", converged=False)
    no_other = weak.model_copy(update={"at": [weak.at[0].model_copy(update={"other": None})], "reached": None})
    found = inverted(first.model_copy(update={"controls": [control]}), no_other)
    return found.model_copy(
        update={"spaces": [found.spaces[0], found.spaces[1].model_copy(update={"second": None, "kind": "isp"})]}
    )


def test_faces_made_from_vectors_stand_beside_chance_and_a_second_photo(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = tables_of(monkeypatch, "unface.auditing.inversion.page")
    section = inversion_page.section(inversion())
    (table,) = drawn
    assert table.caption == "Faces made from vectors, accepted at FAR 1e-3"
    assert words(table) == [
        ["space", "other photos of the person", "the attacked photo", "other people (chance)", "cosine reached"],
        [
            "raw",
            "*62.0 % [60.0, 65.0]* | 62 of 100",
            "62.0 % [60.0, 65.0] | 62 of 100",
            "0.0 %",
            "0.90 | another real photo 0.90",
        ],
        ["isp | did not converge: a failure says nothing", "–", "4.0 % [2.0, 7.0] | 4 of 100", "0.0 %", "–"],
    ]
    assert named(section) == ("inversion", "From vector to face", 2)
    assert (
        "whose vector is the stored one (alsuv). One vector of each of 100 people was attacked; sface judged. Beside "
        "it: random face 3.0 %."
    ) in section.body


def test_an_inversion_tells_its_verdict_and_where_it_did_not_converge() -> None:
    result = with_part("inversion", inversion())
    told, short = Inversion.findings(result)
    assert (told.severity, told.about, told.text) == ("note", "inversion", inversion().verdict)
    assert (short.severity, short.about) == ("warning", "inversion")
    assert short.text == (
        "the attack did not come as near as another real photo (isp); where it fails, that says nothing about privacy"
    )
    assert {(one.where, one.headline) for one in Inversion.readings(result)} == {("vectors", False), ("isp", False)}
    bare = with_part("inversion", None)
    assert not (Inversion.findings(bare))
    assert not (Inversion.readings(bare))
    assert Inversion.page(bare) == ["faces made from vectors"]


# Maps


def test_a_map_gives_each_person_a_colour_and_past_the_last_another_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = charts_of(monkeypatch, "maps")
    people = [7, *range(20, 28), 7]
    places = [float(n) for n in range(10)]
    figure = maps_page._map(Map(space="isp", perplexity=12.5, x=places, y=places[::-1], identity=people))
    (chart,) = drawn
    assert (figure.title, figure.note) == ("isp", "10 vectors of 9 test identities; perplexity 12.5.")
    assert chart.label == "Map of 10 vectors of 9 test identities in isp, coloured by identity"
    assert chart.height == 320
    assert (figure.looks, figure.table) == ((), None)
    (layer,) = chart.layers
    plain = {"zero": False, "nice": False}
    hues = {"domain": list(range(8)), "range": list(PEOPLE)}
    forms = {"domain": list(range(4)), "range": list(SHAPES)}
    assert layer == {
        "mark": {"type": "point", "filled": True, "size": 30, "opacity": 0.85, "aria": False},
        "rows": [
            {"x": float(n), "y": float(9 - n), "hue": hue, "form": form}
            for n, (hue, form) in enumerate([*((h, 0) for h in range(8)), (0, 1), (0, 0)])
        ],
        "x": quantity("x", axis=None, scale=plain),
        "y": quantity("y", axis=None, scale=plain),
        "color": {"field": "hue", "type": "nominal", "scale": hues, "legend": None},
        "shape": {"field": "form", "type": "nominal", "scale": forms, "legend": None},
    }


def test_a_map_of_too_many_points_shows_fewer_people_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    charts_of(monkeypatch, "maps")
    many = [n // 200 for n in range(2_000)]
    figure = maps_page._map(Map(space="raw", perplexity=30, x=[0.0] * 2_000, y=[0.0] * 2_000, identity=many))
    assert figure.note == "1000 vectors of 5 test identities, 5 more not drawn; perplexity 30."
    alone = maps_page._map(Map(space="raw", perplexity=30, x=[0.0] * 3_000, y=[0.0] * 3_000, identity=[1] * 3_000))
    assert alone.note == "3000 vectors of 1 test identities; perplexity 30."
    empty = maps_page._map(Map(space="raw", perplexity=30, x=[], y=[], identity=[]))
    assert empty.note == "0 vectors of 0 test identities; perplexity 30."
    assert named(maps_page.section([])) == ("maps", "Before and after", 2)
    assert "one colour and shape is one person" in maps_page.section([]).body
    drawn_one = MapResults(maps=[Map(space="raw", perplexity=1, x=[], y=[], identity=[])])
    assert Maps.repeat(with_part("maps", drawn_one)) == [Option("", value="unface.auditing.Maps()")]
    assert Maps.repeat(with_part("maps", None)) == [Option("--no-maps")]
    assert Maps.page(with_part("maps", None)) == ["maps before and after"]


# Attribute swap


def test_a_swap_says_its_counts_and_whether_there_was_an_attribute_to_read(monkeypatch: pytest.MonkeyPatch) -> None:
    swap = SwapInSpace(
        space="raw",
        attribute="hat",
        far=1e-3,
        resolution="resolved",
        threshold=0.3,
        directions=1,
        accuracy=share(0.91, 0.9, 0.92),
        majority=0.6,
        trusted=True,
        accept=share(0.4, 0.39, 0.41),
        flip=share(0.8, 0.79, 0.81),
        joint=share(0.3, 0.29, 0.31),
    )
    rough = swap.model_copy(update={"space": "isp", "resolution": "coarse", "directions": 2, "trusted": False})
    result = with_part("attribute_swap", SwapResults(spaces=[swap, rough]))
    section, (table,) = shown(monkeypatch, AttributeSwap, result)
    assert named(section) == ("swaps", "Attribute swaps", 2)
    assert table.caption == "Vectors moved until they tell the other value of an attribute"
    shares = [
        "*30.0 % [29.0, 31.0]* | 30,000 of 100,000",
        "40.0 % [39.0, 41.0] | 40,000 of 100,000",
        "80.0 % [79.0, 81.0] | 80,000 of 100,000",
    ]
    read = "91.0 % [90.0, 92.0] | 91,000 of 100,000; guessing: 60.0 %"
    assert words(table) == [
        ["attribute, space", "both", "still the same person", "attribute flipped", "attribute read before"],
        ["hat, raw | 1 direction, FAR 1e-3", *shares, read],
        [
            "hat, isp | 2 directions, FAR 1e-3, coarse",
            *shares,
            f"{read}; not better than chance, so no attribute",
        ],
    ]
    assert "Both at once: the attribute was changed and the person was not." in section.body
    again = Option("--attribute-swap", ("hat",), value="unface.auditing.AttributeSwap('hat')")
    assert AttributeSwap.repeat(result) == [again]
    bare = with_part("attribute_swap", None)
    assert (AttributeSwap.page(bare), AttributeSwap.repeat(bare)) == (["attribute swaps"], [])


# Usefulness


def test_usefulness_and_neighbours_stand_in_two_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = [kept(0.9, 0.85, 0.95), kept(0.5, 0.4, 0.6, measure="overlap@10", on="faces.parquet")]
    sets = UtilitySets(sources=[given("objects.parquet", 100)], spared=given("spared.npz", 50))
    result = result_of(raw(point()), erased("isp", point(), utility=measured))
    result = result.model_copy(update={"parts": {"utility": sets}})
    section, (useful, nearest) = shown(monkeypatch, Utility, result)
    assert named(section) == ("utility", "Usefulness", 1)
    assert section.sources == (("Usefulness on", sets.sources[0]),)
    columns = ["space", "measured on", "raw", "erased", "kept"]
    numbers = ["80.0 % [78.0, 82.0]", "80.0 % [78.0, 82.0]"]
    assert useful.caption == "Usefulness before and after; the interval of what is kept is paired"
    assert words(useful) == [
        columns,
        ["isp | knn", "objects.parquet | 1,000 queries", *numbers, "*90.0 % [85.0, 95.0]*"],
    ]
    assert nearest.caption == "Nearest neighbours among the audited pictures; no usefulness"
    assert words(nearest) == [
        columns,
        ["isp | overlap@10", "faces.parquet | 1,000 queries", *numbers, "*50.0 % [40.0, 60.0]*"],
    ]
    assert Utility.repeat(result) == [
        Option("--utility", ("objects.parquet",), keyword="utility", value="['objects.parquet']"),
        Option("--spare", ("spared.npz",), keyword="spare", value="'spared.npz'"),
    ]
    (table,) = Utility.terminal(result)
    assert table.title == "share kept, %"
    assert [str(column.header) for column in table.columns] == [
        "space",
        "knn, objects.parquet",
        "overlap@10, faces.parquet",
    ]
    assert [str(cell) for column in table.columns for cell in column.cells] == ["isp", "90 [85, 95]", "50 [40, 60]"]
    assert [(one.what, one.where, one.at, one.better) for one in Utility.readings(result)] == [
        ("knn", "isp", "objects.parquet", "higher")
    ]


def test_without_a_task_neighbours_are_shown_and_usefulness_is_missing() -> None:
    nearest = kept(0.5, 0.4, 0.6, measure="overlap@10")
    result = result_of(raw(point()), erased("isp", point(), utility=[nearest]), erased("random", point(), control=True))
    missing, section = Utility.page(result)
    assert missing == "usefulness kept"
    assert isinstance(section, Section)
    assert named(section) == ("utility", "Nearest neighbours", 1)
    (table,) = Utility.terminal(result)
    assert [str(cell) for cell in table.columns[0].cells] == ["isp", "random (control)"]
    assert [str(cell) for cell in table.columns[1].cells] == ["50 [40, 60]", "–"]
    assert [row.style for row in table.rows] == ["", "dim"]
    bare = result_of(raw(point()))
    assert Utility.page(bare) == ["usefulness kept"]
    assert not (list(Utility.terminal(bare)))
    assert not (Utility.repeat(bare))
    assert not (Utility.not_measured(bare))
    wanted = ["what erasure costs the task the vectors are for: give its labelled vectors as --utility"]
    assert Utility.not_measured(result) == wanted


# Search


def hits(gallery: int, value: float) -> HitRates:
    def mean(at: float) -> Mean:
        return Mean(at, at - 0.01, at + 0.01, 0.95, 100, 25)

    return HitRates(
        gallery=gallery, first=mean(value), first_ten=mean(value + 0.1), chance_first=0.04, chance_first_ten=0.33
    )


def searched(space: str, *, worst: bool, opened: Resolution | None) -> SpaceSearch:
    found = OpenSearch(
        fpir=1e-2,
        people=25,
        resolution=opened or "resolved",
        threshold=0.4,
        found=share(0.31, 0.3, 0.32),
        achieved_fpir=Rate.counted(1, 100),
    )
    rates = [hits(1_000, 0.5), hits(20_000, 0.2)]
    probe = "lda" if worst else "cosine"
    return SpaceSearch(space=space, probe=probe, worst=worst, rates=rates, open_set=found if opened else None)


SEARCH = SearchResults(
    k=4,
    people=25,
    searches=[
        searched("raw", worst=True, opened="coarse"),
        searched("raw", worst=False, opened=None),
        searched("random", worst=True, opened="resolved"),
    ],
)


def test_searches_stand_by_gallery_with_chance_beside_them(monkeypatch: pytest.MonkeyPatch) -> None:
    section, (table,) = shown(monkeypatch, Search, with_part("search", SEARCH))
    assert named(section) == ("search", "Search with one picture", 2)
    assert "Every picture of the 25 test people" in section.body
    assert table.caption == "One test picture as the query: is the same person found?"
    first = ["50.0 % [49.0, 51.0] | chance 4.0 %", "60.0 % [59.0, 61.0] | chance 33.0 %"]
    last = ["20.0 % [19.0, 21.0] | chance 4.0 %", "30.0 % [29.0, 31.0] | chance 33.0 %"]
    assert words(table) == [
        ["space and attacker", "pictures in the gallery", "first hit", "first ten", "found at FPIR 1e-2, %"],
        ["*raw* | lda, worst case of pairs", "1,000", *first, ""],
        ["*raw* | lda, worst case of pairs", "20,000", *last, "~31.0 [30.0, 32.0]"],
        ["raw | cosine", "1,000", *first, ""],
        ["raw | cosine", "20,000", *last, "too few pictures"],
        ["*random* | lda, worst case of pairs", "1,000", *first, ""],
        ["*random* | lda, worst case of pairs", "20,000", *last, "31.0 [30.0, 32.0]"],
    ]


def test_the_terminal_shows_searches_of_the_whole_gallery_above_chance() -> None:
    result = with_part("search", SEARCH)
    (table,) = Search.terminal(result)
    assert table.title == "search with one picture among 20,000: % of queries that find the person"
    assert [str(column.header) for column in table.columns] == ["space", "first hit", "first ten", "at FPIR 1e-2"]
    assert [[str(cell) for cell in column.cells] for column in table.columns] == [
        ["raw", "random (control)", "chance"],
        ["20.0 [19.0, 21.0]", "20.0 [19.0, 21.0]", "4.0 %"],
        ["30.0 [29.0, 31.0]", "30.0 [29.0, 31.0]", "33.0 %"],
        ["~31.0 [30.0, 32.0]", "31.0 [30.0, 32.0]", "1.0 %"],
    ]
    assert [row.style for row in table.rows] == ["", "dim", "dim"]
    closed = SEARCH.model_copy(update={"searches": [searched("raw", worst=True, opened=None)]})
    assert Search.not_measured(result) == []
    assert Search.not_measured(with_part("search", closed)) == [
        "the share found by a search at FPIR 1e-2: it needs 300 pictures of calibrate people"
    ]
    bare = with_part("search", None)
    assert Search.not_measured(bare) == ["how often a search with one picture of a person finds that person"]
    assert Search.page(bare) == ["search with one picture"]
    assert not (list(Search.terminal(bare)))
    assert not (Search.repeat(bare))
    assert Search.repeat(result) == [Option("", value="unface.auditing.Search()")]


# Exposure


def exposure(column: str | None, single: int = 0, low: float = 0.01) -> ExposureResults:
    groups = [GroupTar(group=n, people=people, tar=share(0.1 * n, 0, 0.5)) for n, people in ((1, 12), (2, 13))]
    gap = GroupGap(higher=2, lower=1, value=0.1, low=low, high=0.2, level=0.95)
    one = Exposure(
        space="raw",
        probe="lda",
        half_linked=share(0.2, 0.15, 0.25),
        worst_tenth=Estimate(0.7, 0.6, 0.8, 0.95),
        dsys=Estimate(0.412, 0.384, 0.441, 0.95),
        dsys_bias=0.0123,
        groups=groups if column else [],
        gap=gap if column else None,
    )
    return ExposureResults(k=4, far=1e-3, column=column, single=single, spaces=[one])


def test_who_is_exposed_is_shown_over_people_and_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    result = with_part("exposure", exposure("region"))
    section, (people, groups) = shown(monkeypatch, Exposures, result)
    assert named(section) == ("exposure", "Who is exposed", 2)
    assert people.caption == "TAR over people, and D_sys"
    assert words(people) == [
        ["space", "linked in half of their pairs or more", "TAR of the most linked tenth", "D_sys"],
        [
            "raw | lda",
            "20.0 % [15.0, 25.0] | 20000 of 100000 people",
            "70.0 % [60.0, 80.0]",
            "0.41 [0.38, 0.44] | 0.012 of it may be noise",
        ],
    ]
    assert groups.caption == "TAR by group at one common threshold"
    assert words(groups) == [
        ["space", "people", "TAR"],
        ["raw | group 1", "12", "10.0 % [0.0, 50.0]"],
        ["raw | group 2", "13", "20.0 % [0.0, 50.0]"],
        ["raw | group 2 less group 1", "", "+10.0 [+1.0, +20.0] points"],
    ]
    (finding,) = Exposures.findings(result)
    assert (finding.severity, finding.about) == ("warning", "groups")
    assert finding.text == (
        "'region': group 2 is linked +10.0 [+1.0, +20.0] points of TAR more often than group 1; exposed.csv names them"
    )
    (table,) = Exposures.terminal(result)
    assert table.title == "who is exposed: people linked in half of their pairs, most linked tenth, D_sys"
    assert [str(column.header) for column in table.columns] == ["space", "people, %", "TAR % of the tenth", "D_sys"]
    assert [str(cell) for column in table.columns for cell in column.cells] == [
        "raw",
        "20.0 [15.0, 25.0]",
        "70.0 [60.0, 80.0]",
        "0.41 [0.38, 0.44]",
    ]
    assert Exposures.repeat(result) == [Option("", value="unface.auditing.Exposures()")]


def test_groups_that_nobody_compared_are_named_as_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    bare, alone = with_part("exposure", None), with_part("exposure", exposure(None))
    assert Exposures.not_measured(bare) == ["who is exposed: how TAR is spread over people"]
    assert Exposures.page(bare) == ["who is exposed"]
    assert not (list(Exposures.terminal(bare)))
    assert not (Exposures.repeat(bare))
    assert not (Exposures.findings(bare))
    assert Exposures.not_measured(alone) == [
        "whether groups of people are exposed unequally: name a --group column that is the same for all pictures of a "
        "person"
    ]
    assert len(shown(monkeypatch, Exposures, alone)[1]) == 1
    assert Exposures.findings(alone) == []
    single = with_part("exposure", exposure("region", single=3, low=0.0))
    assert Exposures.not_measured(single) == [
        "groups of one test person in 'region' (3): one person says nothing of a group"
    ]
    assert Exposures.findings(single) == []
    assert Exposures.not_measured(with_part("exposure", exposure("region"))) == []
