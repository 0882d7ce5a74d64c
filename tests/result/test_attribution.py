"""If these fail, an attribution loses its page, or names of pictures get to others than their owner."""

from pathlib import Path

import pytest

from tests.report.made_attribution import result
from unface.errors import UnfaceError
from unface.result.attribution import AttributionResult, require_no_attribution


def test_pictures_that_were_left_out_are_named_beside_the_file_for_its_owner_alone(tmp_path: Path) -> None:
    path = result().save(str(tmp_path), "<p>")
    assert path == tmp_path / "attribution.json"
    assert {one.name for one in tmp_path.iterdir()} == {"attribution.json", "attribution.html", "left-out.csv"}
    assert (tmp_path / "attribution.html").read_text() == "<p>"
    assert (tmp_path / "left-out.csv").read_text() == "encoder,picture,step,reason\nmade,ann/7.jpg,picture,no face\n"
    assert [one.name for one in tmp_path.iterdir() if not one.stat().st_mode & 0o077] == ["left-out.csv"]
    text = path.read_text(encoding="utf-8")
    assert text.startswith('{\n  "schema": "unface.attribution/1",\n')
    assert "ann" not in text
    nobody = result().model_copy(update={"left_out": None})
    assert AttributionResult.model_validate_json(text) == nobody
    nobody.save(tmp_path)
    assert not (tmp_path / "left-out.csv").exists()


@pytest.mark.parametrize("name", ["attribution.json", "attribution.html", "left-out.csv"])
def test_a_finished_attribution_is_not_overwritten(tmp_path: Path, name: str) -> None:
    require_no_attribution(tmp_path, force=False)
    (tmp_path / name).touch()
    with pytest.raises(UnfaceError) as caught:
        require_no_attribution(tmp_path, force=False)
    assert str(caught.value) == f"{tmp_path / name}: exists already; choose another --out or pass --force"
    require_no_attribution(tmp_path, force=True)
