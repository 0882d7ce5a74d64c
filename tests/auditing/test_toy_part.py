"""If these fail, a part of another package is not measured, shown or read back, or its absence breaks a result."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.auditing.audits import PEOPLE, looped, quick, refusal
from tests.auditing.toy_part import Offset, Offsets
from tests.kit import documents
from tests.kit.results import AuditResult, Listing
from unface import UnfaceError
from unface.auditing import Maps


def register(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, what: str) -> None:
    """A package as pip would leave it, with one entry point."""
    info = folder / "somebodys_part-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: somebodys-part\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[unface.parts]\n{name} = {what}\n")
    monkeypatch.syspath_prepend(folder)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    register(tmp_path / "site", monkeypatch, "offset", "tests.auditing.toy_part:Offset")
    return tmp_path / "site"


def test_a_registered_part_is_measured_found_shown_and_read_back_and_without_it_the_file_still_loads(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = quick(parts=(Offset(),))
    section = result.parts["offset"]
    assert isinstance(section, Offsets)
    assert list(section.lengths) == ["raw", "isp"]
    path = result.save(tmp_path / "out")
    content = json.loads(path.read_text(encoding="utf-8"))
    assert content["parts"] == {"offset": {"lengths": section.lengths}}

    said = f"its mean is {section.lengths['isp']:.3f} from zero"
    assert ("note", "isp", said) in [(one.severity, one.about, one.text) for one in result.findings]
    assert "where each person's own mean lies" in result.not_measured
    shown, page = documents.terminal(result, width=200), documents.page(result)
    assert "offsets: 2 spaces" in shown
    assert f"· isp: {said}" in shown
    assert '<section id="offset"' in page
    assert f"<li>isp: {section.lengths['isp']:.3f}</li>" in page
    assert "the spread around the centre" in page
    assert "--part offset" in page
    assert "toy_part.Offset()" in page

    loaded = AuditResult.load(path)
    assert loaded == result.model_copy(update={"listings": {}, "projections": {}})
    assert isinstance(loaded.parts["offset"], Offsets)
    assert documents.page(loaded) == page

    monkeypatch.setattr(sys, "path", [place for place in sys.path if place != str(installed)])
    elsewhere = AuditResult.load(path)
    assert elsewhere.parts == {"offset": {"lengths": section.lengths}}
    assert elsewhere.save(tmp_path / "again").read_bytes() == path.read_bytes()
    assert "offsets: 2 spaces" not in documents.terminal(elsewhere)
    assert 'id="offset"' not in documents.page(elsewhere)
    assert said in documents.page(elsewhere)  # a finding is in the file, whoever made it


@pytest.mark.usefixtures("installed")
def test_what_the_part_refuses_is_refused_before_the_attack(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*arguments: object, **options: object) -> None:
        raise AssertionError("the attack was run first")

    monkeypatch.setattr("unface.auditing.attack.run_panel", never)
    assert refusal(parts=(Offset(most=-1),)) == "offset: a length is at least 0, not -1"


@pytest.mark.usefixtures("installed")
def test_a_part_measures_what_it_says() -> None:
    mean = np.linalg.norm(PEOPLE.unit().vectors.mean(axis=0, dtype=np.float64))
    assert Offset.of(quick(eraser=(), parts=(Offset(),))).lengths == pytest.approx({"raw": mean})


@pytest.mark.parametrize("what", ["tests.auditing.toy_part:Offsets", "unface.auditing.maps:Maps", "math:pi"])
def test_a_registered_object_that_is_no_part_of_that_name_is_refused_in_one_line(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(tmp_path, monkeypatch, "offset", what)
    told = f"part 'offset': {what} is not a subclass of unface.result.parts.Part of that name"
    assert refusal(parts=(Offset(),)) == told
    content = json.loads(looped().file_text()) | {"parts": {"offset": {"lengths": {}}}}
    (tmp_path / "audit.json").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(UnfaceError) as caught:
        AuditResult.load(tmp_path)
    assert str(caught.value) == told


def test_a_part_that_is_not_registered_is_refused_since_nobody_could_read_its_section() -> None:
    told = "is not an instance of an installed part; register its class under the entry point unface.parts"
    assert refusal(parts=(Offset(),)) == f"parts: 'offset' {told}"
    assert refusal(parts=(Maps,)) == refusal(parts=("maps",)) == f"parts: 'maps' {told}"


def test_a_package_that_cannot_be_imported_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    register(tmp_path, monkeypatch, "offset", "no_such_module_anywhere:Offset")
    told = "part 'offset': no_such_module_anywhere:Offset cannot be loaded (No module named 'no_such_module_anywhere')"
    assert refusal(parts=(Offset(),)) == f"{told}; repair that package"


@pytest.mark.usefixtures("installed")
def test_a_section_of_another_type_is_refused_before_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Offset, "run", lambda *_: {"lengths": {}})
    assert refusal(parts=(Offset(),)) == "part 'offset': measured dict, expected Offsets"


@pytest.mark.usefixtures("installed")
def test_files_with_names_that_a_part_left_are_refused_and_then_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Offset, "listings", ("people.csv",))
    result = quick(eraser=(), parts=())
    named = result.model_copy(update={"listings": {"people.csv": Listing(("name",), [("somebody",)], "people")}})
    named.save(tmp_path)
    assert "somebody" in (tmp_path / "people.csv").read_text()
    (tmp_path / "audit.json").unlink()
    with pytest.raises(UnfaceError, match=r"people\.csv: exists already"):
        result.save(tmp_path)
    result.save(tmp_path, force=True)
    assert not (tmp_path / "people.csv").exists()
