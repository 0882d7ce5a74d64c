"""If this fails, ``unface synth`` leaves no folder that ``unface encode`` reads, or ends in more than a line."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import unface.faces
import unface.judge
import unface.prior
from tests.kit.command import unface as run
from tests.kit.thorough import only_thorough
from tests.real import weights_here
from tests.synth import toy
from unface.data import read_images
from unface.judge import PanelJudge
from unface.prior import Prior


@pytest.fixture
def toys(monkeypatch: pytest.MonkeyPatch) -> list[Sequence[str]]:
    """Toy people, judges and detector in place of the real ones; notes which judges were asked for."""
    asked: list[Sequence[str]] = []

    def load_panel(names: Sequence[str], **_: object) -> tuple[PanelJudge, ...]:
        asked.append(names)
        return toy.judges()

    monkeypatch.setattr(unface.prior, "load_prior", lambda **_: toy.ToyPrior())
    monkeypatch.setattr(unface.judge, "load_panel", load_panel)
    detector = toy.DarkIsNobody()
    detector.name = "yunet"
    monkeypatch.setattr(unface.faces, "load_detector", lambda **_: detector)
    return asked


SMALL = ("synth", "--identities", 3, "--images", 2, "--size", 64)


def test_it_makes_a_folder_and_tells_what_was_accepted(tmp_path: Path, toys: list[Sequence[str]]) -> None:
    out = tmp_path / "people"
    done = run(*SMALL, "--out", out)
    assert (done.code, done.err) == (0, "")
    first, people, pictures = done.out.splitlines()
    assert first == f"{out}: 3 people who do not exist, 2 pictures each"
    assert people.startswith("people: 3 of ")
    assert "pictures: 6 of " in pictures
    assert len(read_images(out)) == 6
    assert toys == [["arcface-mbf", "sface"]]


def test_the_result_says_how_it_was_made_and_under_which_licences(tmp_path: Path, toys: list[Sequence[str]]) -> None:
    done = run(*SMALL, "--out", tmp_path / "people", "--json", "--seed", 5, "--truncation", 0.9)
    shown = json.loads(done.out)
    assert shown == json.loads((tmp_path / "people" / "synth.json").read_text())
    plan = shown["plan"]
    assert (plan["seed"], plan["truncation"], plan["size"]) == (5, 0.9, 64)
    assert plan["judges"]["upper"] == pytest.approx({"apart": toy.degrees(25), "same": toy.degrees(20)})
    by_name = {model["name"]: model for model in plan["weights"]}
    assert list(by_name) == ["mobilestylegan", "yunet", "arcface-mbf", "sface"]
    assert all(len(digest) == 64 for model in by_name.values() for digest in model["weights"].values())
    assert "non-commercial" in by_name["arcface-mbf"]["licence"]
    assert shown["pictures"]["tries"] == 6 + sum(shown["pictures"]["rejected"].values())


def test_without_torch_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unface.cli.synth.find_spec", lambda name: None)
    done = run(*SMALL, "--out", tmp_path / "people")
    assert (done.code, done.err) == (
        1,
        "unface: generated faces need torch, not installed; run pip install 'unface[torch]'\n",
    )


@only_thorough
@pytest.mark.slow
def test_real_people_are_kept_apart_and_known_again_by_a_recogniser_that_was_no_judge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the generator's low-resolution head, which shows the same people (tests/prior) for a fifth of the time."""
    for name in ("mobilestylegan-mapping", "mobilestylegan-synthesis", "arcface-mbf", "sface", "edgeface-s", "yunet"):
        weights_here(name)
    out, vectors = tmp_path / "people", tmp_path / "e.parquet"
    options = ("--identities", 3, "--images", 2, "--size", 128, "--accept-licence")
    monkeypatch.setattr(unface.prior, "load_prior", with_head)
    assert run("synth", *options, "--out", out).code == 0
    assert run("encode", out, "--encoder", "edgeface-s", "--accept-licence", "--out", vectors, "--quiet").code == 0
    unit = unface.read_embeddings(vectors).unit()
    scores = unit.vectors @ unit.vectors.T
    same = unit.identities[:, None] == unit.identities[None, :]
    assert len(unit) == 6
    assert scores[same].min() > scores[~same].max()


def with_head(load: Callable[..., Any] = unface.prior.load_prior, **options: object) -> Prior:
    prior = load(head=True, **options)
    prior.name = "mobilestylegan"  # whose weights it has, so that their cards are found
    made: Prior = prior
    return made
