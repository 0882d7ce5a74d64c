"""If these fail, a template found by scores or by a map is not the one that the closed form gives."""

import numpy as np
import pytest

from tests.encode.tiny import DIM, SIZE
from tests.invert.test_view import projection
from tests.invert.toy import ToyEncoder, ToyPrior, toy_case
from tests.refusals.table import refused
from unface.invert import Ledger, Targets, Threat, Train
from unface.invert.indirect import Bob, Translate, learned, near_orthogonal
from unface.invert.view import View
from unface.seeds import stream


@pytest.mark.parametrize("erased", [False, True], ids=["raw", "erased"])
def test_bob_is_exact_when_the_probe_faces_span(erased: bool) -> None:
    """Pictures of 5 latents and a mean span 6 of 8 dimensions; a target among them is recovered from its scores."""
    prior, view = ToyPrior(), View(ToyEncoder(), projection(2) if erased else None)
    truth = view(prior.decode(prior.sample(4, 5), SIZE)).numpy()
    made = Bob("template", probes=DIM).prepare(Threat("raw", "tiny", view, prior), Ledger())
    found = made(Targets(truth, np.arange(4)), Ledger())
    assert found.templates is not None
    assert found.recogniser == "tiny"
    np.testing.assert_allclose(found.templates, truth, atol=1e-3)


def test_too_few_probes_leave_an_error() -> None:
    prior, view = ToyPrior(), View(ToyEncoder())
    truth = view(prior.decode(prior.sample(4, 5), SIZE)).numpy()
    made = Bob("template", probes=3).prepare(Threat("raw", "tiny", view, prior), Ledger())
    found = made(Targets(truth, np.arange(4)), Ledger()).templates
    assert found is not None
    assert np.einsum("nd,nd->n", found, truth).min() < 0.999


def test_probes_are_as_little_alike_as_can_be() -> None:
    rows = np.array([[1.0, 0.01, 0], [1, 0, 0], [0.99, 0.1, 0], [0, 1, 0], [0, 0.1, 1]])
    chosen = set(near_orthogonal(rows / np.linalg.norm(rows, axis=1, keepdims=True), 3).tolist())
    assert len(chosen) == 3
    assert {3, 4} < chosen
    assert len(set(near_orthogonal(stream(0, "many").standard_normal((20, 3)), 7))) == 7


def test_bob_decodes_to_a_picture_that_reaches_the_target() -> None:
    case = toy_case(people=3)
    invert = Bob().prepare(case.threat("raw", None, None, 0), Ledger())
    ledger = Ledger()
    made = invert(Targets(case.people.vectors[case.people.rows], np.arange(3)), ledger)
    assert made.pictures is not None
    assert made.reached.min() > 0.99


def test_translate_finds_a_linear_map_between_spaces() -> None:
    draw = stream(0, "linear spaces")
    hidden = draw.standard_normal((400, 6))
    vectors = hidden @ draw.standard_normal((6, 10)) + 1
    features = hidden @ draw.standard_normal((6, 7))
    translation, thresholds = learned(
        Train(vectors.astype(np.float32), np.arange(400) // 4, {"own": features.astype(np.float32)}), "own"
    )
    np.testing.assert_allclose(translation(vectors), features, atol=0.1)
    assert [one.far for one in thresholds] == [1e-2, 1e-3]


def test_few_train_people_and_unknown_forms_are_refused() -> None:
    with refused("inversion", "translate", "4", "least 20"):
        Translate().prepare(toy_case(people=4, train=4).threat("raw", None, None, 0), Ledger())
    with refused("inversion", "bob", "'best'"):
        Bob("best")
