"""If this fails, the first command that anyone tries does not work."""

import json
from functools import partial
from pathlib import Path

import pytest

from tests.cli.command import unface as run
from unface import audit
from unface.data import EmbeddingSet, make_identities


@pytest.fixture
def fewer_people(monkeypatch: pytest.MonkeyPatch) -> None:
    """A third of the people, a few of the things, one probe and no sweep, so that it takes no time."""
    smaller = {(480, 20, 128): (160, 8, 24), (40, 40, 128): (10, 8, 24)}

    def fewer(identities: int, images: int, dim: int, rank: int, between: float, seed: int) -> EmbeddingSet:
        return make_identities(*smaller[identities, images, dim], between=between, seed=seed)

    monkeypatch.setattr("unface.data.make_identities", fewer)
    quick = partial(audit, probes=["lda"], bootstraps=100, sweep=False, maps=False)
    monkeypatch.setattr("unface.auditing.audit", quick)


@pytest.mark.usefixtures("fewer_people")
def test_the_demo_writes_an_audit_and_shows_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = run("demo")
    assert (done.code, done.err) == (0, "")
    found = json.loads((tmp_path / "unface-demo" / "audit.json").read_text(encoding="utf-8"))
    assert found["source"]["name"] == "synthetic"
    assert found["valid"]
    assert " ".join(found["verdict"].split()[:4]) in done.out
    assert [space["name"] for space in found["spaces"]] == ["raw", "isp", "random", "pca"]
    assert {kept["on"] for kept in found["spaces"][1]["utility"]} == {"synthetic", "made-up things"}
    assert (tmp_path / "unface-demo" / "report.html").exists()
    again = run("demo")
    assert again.code == 1
    assert again.err == "unface: unface-demo/audit.json: exists already; choose another --out or pass --force\n"


@pytest.mark.slow
def test_the_whole_demo_finds_that_made_up_people_leak(tmp_path: Path) -> None:
    done = run("demo", "--out", tmp_path / "out", "--json")
    assert (done.code, done.err) == (0, "")
    found = json.loads(done.out)
    assert found["valid"]
    assert "times chance. After ISP (48 of 128 dimensions removed): " in found["verdict"]
    assert found["curated"] == {"images": 20, "identities": 480, "identities_dropped": 0, "rows": 9600}
