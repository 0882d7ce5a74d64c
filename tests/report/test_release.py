"""If these fail, the page of a release hides its decision, names people, or shows faces that nobody asked to see."""

from io import StringIO
from pathlib import Path

from rich.console import Console

from tests.gate.test_release import exposure, result, view
from unface.report.release import FacePair, advice, print_release, render_release, write_release
from unface.result.release import PermutationTest, RiskyPicture

RISKY = RiskyPicture(id="<b>s1.png</b>", training=0.91, holdout=0.32, people=2, is_copy=True)


def test_the_decision_comes_first_and_names_are_escaped() -> None:
    found = result(view(listed=40).model_copy(update={"riskiest": [RISKY]}), fused=exposure(44))
    page = render_release(found)
    assert page.index("Do not publish this set as it is: it exposes 44 of its 1,000 training people") < page.index(
        "<table"
    )
    assert "&lt;b&gt;s1.png&lt;/b&gt;" in page
    assert "<b>s1" not in page
    assert "data:image" not in page
    assert "No picture and no name of a person is in this file" in page
    assert page == render_release(found), "the same bytes for the same file"


def test_faces_are_drawn_only_if_asked_for_and_then_for_the_owner_alone(tmp_path: Path) -> None:
    found = result(view(listed=40).model_copy(update={"riskiest": [RISKY]}))
    plain = write_release(found, tmp_path / "plain.html")
    faces = write_release(found, tmp_path / "faces.html", [FacePair("s1.png", b"one", b"two")])
    assert "data:image" not in plain.read_text(encoding="utf-8")
    assert faces.read_text(encoding="utf-8").count("data:image/jpeg;base64,") == 2
    assert faces.stat().st_mode & 0o777 == 0o600


def test_the_table_fits_eighty_columns() -> None:
    text = StringIO()
    views = [view("arcface-mbf", listed=40), view("eyes"), view("a-trait-with-a-very-long-name")]
    found = result(*views, fused=exposure(44))
    print_release(found, Console(file=text, width=80))
    lines = text.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    for word in ("exposed", "1e-4", "another picture", "44"):
        assert any(word in line for line in lines)
    assert not any("…" in line for line in lines)


def test_the_list_of_people_is_named_only_where_there_is_one() -> None:
    sure = PermutationTest(p=0.0004, exact=True, permutations=None)
    leaking = view().model_copy(update={"membership": view().membership.model_copy(update={"test": sure})})
    assert result(leaking).decision == "leaks"
    assert "exposed.csv" not in advice(result(leaking))[0]
    first, second, *_ = advice(result(view(listed=40)))
    assert "exposed.csv" in first
    assert "train the generator" in first, "the cause is fixed, not the list"
    assert second.startswith("Draw a new set and test that one.")


def test_a_policy_is_recommended_only_where_none_has_decided() -> None:
    for found in (result(view()), result(view(listed=40))):
        assert "exposed_max" in advice(found)[-1]
        assert advice(found, decided=True) == advice(found)[:-1]
