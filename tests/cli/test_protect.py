"""If these fail, ``unface protect frequency certify`` certifies something else than it was given, or says it badly."""

import json
from pathlib import Path

import pytest

from tests.cli.command import Done
from tests.cli.command import unface as run
from tests.protect.test_certificate import NOBODY


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
    assert again.code == 1
    assert "exists already; choose another --out or pass --force" in again.err


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
    assert refused.code == 1
    assert "colours_front_end:noisy: answers differently when it is given the same pictures" in refused.err
    assert not (tmp_path / "noisy").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "give --scheme or --function"),
        (("--scheme", "dctdp", "--function", "a:b"), "give --scheme or --function"),
        (("--scheme", "ppfr-fd"), "choose from dctdp, duetface, partialface"),
        (("--scheme", "dctdp", "--variant", "newest"), "choose from published, as-attacked"),
        (("--function", "a:b", "--variant", "published"), "--variant: is about --scheme"),
        (("--function", "nothing_here:b"), "no module 'nothing_here' here"),
        (("--function", "no function"), "expected module:function"),
        (("--scheme", "dctdp", "--encoder", "sface"), "give --pictures"),
    ],
)
def test_what_cannot_be_certified_is_refused_in_one_line(tmp_path: Path, options: tuple[str, ...], said: str) -> None:
    done = certify(tmp_path / "out", *options)
    assert (done.code, done.out) == (1, "")
    assert said in done.err
    assert done.err.count("\n") == 1
    assert not (tmp_path / "out").exists()
