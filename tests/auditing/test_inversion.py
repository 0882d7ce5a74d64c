"""If these fail, an audit says that vectors can, or cannot, become faces again, and is wrong; or it starts in vain."""

from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import torch

from tests.auditing.audits import looped, quick, refusal
from tests.data.pictures import people, write_zip
from tests.encode.tiny import SIZE
from tests.invert.toy import LATENT, ToyEncoder, ToyJudge, ToyPrior
from tests.kit import documents
from tests.kit.command import unface
from tests.kit.results import AuditResult, InversionResult
from unface.auditing import Inversion, Inverter
from unface.data import EmbeddingSet
from unface.encode import space_of
from unface.invert import load_attack
from unface.invert.view import View, as_pictures
from unface.output.place import place_at
from unface.seeds import stream

PEOPLE, EACH, TARGETS = 120, 4, 8
ATTACK = "alsuv:pool=100,steps=120,drop_at=80,averaged=30"


@cache
def pictures() -> tuple[EmbeddingSet, EmbeddingSet]:
    """Vectors of the attacked encoder and of a judge, of the same pictures that a generator can show."""
    draw = stream(4, "audited people")
    latents = draw.standard_normal((PEOPLE, 1, LATENT)) + 0.02 * draw.standard_normal((PEOPLE, EACH, LATENT))
    made = list(as_pictures(ToyPrior().decode(torch.tensor(latents.reshape(-1, LATENT), dtype=torch.float32), SIZE)))
    names = np.repeat([f"p{number:03d}" for number in range(PEOPLE)], EACH)
    ids = np.array([f"{name}/{number}" for number, name in enumerate(names)])
    stored = EmbeddingSet.from_arrays(ToyEncoder().encode(made), names, ids=ids)
    judged = EmbeddingSet.from_arrays(ToyJudge().embed(made), names, ids=ids)
    return replace(stored, space=space_of(ToyEncoder())), judged


def inverter(judged: EmbeddingSet) -> Inverter:
    judge = ToyJudge()
    return Inverter(
        View(ToyEncoder()),
        ToyPrior(),
        load_attack(ATTACK),
        {"judge": judged},
        lambda made: {"judge": judge.embed(list(made))},
        place_at(Path(mkdtemp())),
        TARGETS,
        100,
    )


@cache
def audited() -> AuditResult:
    stored, judged = pictures()
    return quick(stored, rank=2, far=0.05, parts=(Inversion(inverter(judged)),))


def found() -> InversionResult:
    section = Inversion.of(audited())
    assert section is not None
    return section


def test_test_people_are_found_in_raw_vectors_and_every_space_of_the_audit_is_attacked() -> None:
    section = found()
    assert [cell.space for cell in section.cells] == [space.name for space in audited().spaces]
    raw = section.cells[0]
    point = raw.point(1e-2)
    assert point is not None
    assert point.other is not None
    assert min(point.same.value, point.other.value) >= 0.9
    assert point.derangement.value < 0.1
    assert raw.converged
    assert section.people.targets == TARGETS
    assert section.people.pictures == TARGETS * EACH
    assert section.people.calibrate == audited().roles.calibrate


def test_it_is_in_the_file_on_the_page_and_among_the_findings(tmp_path: Path) -> None:
    result = audited()
    audited().save(tmp_path)
    kept = AuditResult.load(tmp_path)
    assert Inversion.of(kept) == found()
    html = documents.page(kept)
    assert '<section id="inversion"' in html
    assert next(one.text for one in result.findings if one.about == "inversion") == found().verdict
    assert "template inversion" not in result.not_measured
    assert "template inversion" in looped().not_measured
    assert {one.where for one in result.readings() if one.what == "faces recovered"} == {"vectors", "isp"}


def test_pictures_on_which_the_judges_see_no_face_are_refused() -> None:
    stored, judged = pictures()
    blind = judged.take(np.flatnonzero(np.array(judged.names)[judged.identities] < "p001"))
    said = refusal(stored, rank=2, far=0.05, parts=(Inversion(inverter(blind)),))
    assert "test people; --inversion needs at least 2" in said


def test_vectors_alone_and_encoders_without_gradients_are_refused_in_one_line(tmp_path: Path) -> None:
    faces = write_zip(tmp_path / "faces.zip", people(30, 4))
    for options in ((), ("--encoder", "sface", "--detector", "none")):
        done = unface("audit", faces, "--out", tmp_path / "out", "--inversion", *options)
        assert (done.code, done.err.count("\n")) == (1, 1)
        assert "--inversion needs pictures" in done.err
    assert not (tmp_path / "out").exists()
