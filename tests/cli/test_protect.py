"""If these fail, ``unface protect frequency certify`` certifies something else than it was given, or says it badly."""

import json
from pathlib import Path

import pytest

from tests.kit.command import Done
from tests.kit.command import unface as run
from tests.protect.test_certificate import NOBODY
from tests.refusals.table import require_refusal


def certify(out: Path, *options: object) -> Done:
    return run("protect", "frequency", "certify", "--out", out, *options)


def test_a_scheme_gets_a_verdict_a_table_and_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    done = certify(tmp_path / "out", "--scheme", "dctdp", "--size", "20", "--pictures", NOBODY)
    assert (done.code, done.err) == (0, "")
    said = " ".join(done.out.split())
    assert said.startswith("This front end hides almost nothing: all but 3 of the 1,200 dimensions of a picture")
    assert max(map(len, done.out.splitlines()[:-2])) <= 80, "all but the paths"
    assert (tmp_path / "out" / "certificate.html").is_file()
    found = json.loads((tmp_path / "out" / "certificate.json").read_text(encoding="utf-8"))
    assert (found["schema"], found["maps"][0]["rank"]) == ("unface.certificate/1", 1197)
    again = certify(tmp_path / "out", "--scheme", "dctdp", "--size", "20")
    require_refusal(again, "output", str(tmp_path / "out" / "certificate.json"), "--force")


def test_a_function_of_ones_own_is_certified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("colours_front_end.py").write_text(
        "import numpy as np\n"
        "def grey(pictures):\n    return pictures.mean(axis=3)\n"
        "def noisy(pictures):\n    return pictures + np.random.default_rng().normal(size=pictures.shape)\n",
        encoding="utf-8",
    )
    done = certify(tmp_path / "out", "--function", "colours_front_end:grey", "--size", "8", "--json")
    assert (done.code, done.err) == (0, "")
    found = json.loads(done.out)
    assert (found["kind"], found["inputs"], found["maps"][0]["rank"]) == ("linear", 192, 64)
    refused = certify(tmp_path / "noisy", "--function", "colours_front_end:noisy", "--size", "8")
    require_refusal(refused, "protection", "colours_front_end:noisy")
    assert not (tmp_path / "noisy").exists()
