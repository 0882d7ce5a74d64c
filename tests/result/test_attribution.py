"""If these fail, attribution.json is read back otherwise, or a killed run leaves half of its files."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.results import attribution
from unface.errors import UnfaceError
from unface.result.attribution import AttributionResult, require_no_attribution


def test_pictures_that_were_left_out_are_named_beside_the_file_for_its_owner_alone(tmp_path: Path) -> None:
    path = attribution().save(str(tmp_path), "<p>")
    assert path == tmp_path / "attribution.json"
    assert {one.name for one in tmp_path.iterdir()} == {"attribution.json", "attribution.html", "left-out.csv"}
    assert (tmp_path / "attribution.html").read_text() == "<p>"
    assert (tmp_path / "left-out.csv").read_text() == "encoder,picture,step,reason\nmade,ann/7.jpg,picture,no face\n"
    assert [one.name for one in tmp_path.iterdir() if not one.stat().st_mode & 0o077] == ["left-out.csv"]
    text = path.read_text(encoding="utf-8")
    assert text.startswith('{\n  "schema": "unface.attribution/1",\n')
    assert "ann" not in text
    nobody = attribution().model_copy(update={"left_out": None})
    assert AttributionResult.model_validate_json(text) == nobody
    nobody.save(tmp_path)
    assert not (tmp_path / "left-out.csv").exists()


@pytest.mark.parametrize("name", ["attribution.json", "attribution.html", "left-out.csv"])
def test_a_finished_attribution_is_not_overwritten(tmp_path: Path, name: str) -> None:
    require_no_attribution(tmp_path, force=False)
    (tmp_path / name).touch()
    with pytest.raises(UnfaceError) as caught:
        require_no_attribution(tmp_path, force=False)
    assert (caught.value.where, caught.value.code) == (str(tmp_path / name), "output")
    require_no_attribution(tmp_path, force=True)


def test_a_killed_run_leaves_no_result_without_its_page_and_can_be_given_again(tmp_path: Path) -> None:
    """A child that is killed before its last rename, that of the result file."""
    killed = (
        "import os, signal, sys; from pathlib import Path; from tests.kit.results import attribution;"
        " real = Path.replace; Path.replace = lambda path, to: os.kill(os.getpid(), signal.SIGKILL)"
        " if to.suffix == '.json' else real(path, to); attribution('one').save(sys.argv[1], '<html></html>')"
    )
    child = subprocess.run([sys.executable, "-c", killed, str(tmp_path)], check=False)
    assert child.returncode == -signal.SIGKILL
    there = {path.name for path in tmp_path.iterdir() if not path.name.startswith(".")}
    assert there == {"attribution.html", "left-out.csv"}
    require_no_attribution(tmp_path, force=False)
    attribution("one").save(tmp_path, "<html></html>")
    assert {path.name for path in tmp_path.iterdir()} == {*there, "attribution.json"}
    with pytest.raises(UnfaceError):
        require_no_attribution(tmp_path, force=False)
