"""If this fails, queries are compared with pictures of another FCR, of the same shoot, or of the wrong person."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tests.attribute.scenes import Scene
from unface.attribute import Canvas, canvas_of
from unface.attribute.pairing import NO_DONOR, NO_FCR, ONE_PICTURE, ONE_SHOOT, paired
from unface.seeds import stream

BLANK = canvas_of(Scene(0, 0).draw(), 64)


def canvas(name: str, identity: str, context: NDArray[np.float32]) -> Canvas:
    assert isinstance(BLANK, Canvas)
    return replace(BLANK, id=name, identity=identity, context=context)


def somewhere(number: int) -> NDArray[np.float32]:
    direction = stream(number, "context").standard_normal(192)
    return np.asarray(direction / np.linalg.norm(direction), dtype=np.float32)


def test_pairs_keep_every_promise() -> None:
    rng = stream(0, "crowd")
    owners = rng.integers(0, 12, 150)
    canvases = [canvas(f"c{n:03d}", f"p{owner}", somewhere(n % 100)) for n, owner in enumerate(owners)]
    fcr = rng.normal(0.3, 0.015, 150)
    pairing = paired(canvases, fcr, seed=0)
    contexts = np.stack([one.context for one in canvases])
    assert len(pairing.queries) + sum(one.step == "pairing" for one in pairing.left_out) == 150
    assert (owners[pairing.queries] == owners[pairing.references]).all()
    assert (pairing.queries != pairing.references).all()
    assert (np.abs(fcr[pairing.queries] - fcr[pairing.references]) <= 0.02 * fcr[pairing.queries]).all()
    assert (np.einsum("nc,nc->n", contexts[pairing.queries], contexts[pairing.references]) < 0.9).all()
    given = pairing.donors >= 0
    assert (owners[pairing.donors[given]] != owners[pairing.queries[given]]).all()
    assert (np.abs(fcr[pairing.donors] - fcr[pairing.queries]) <= 0.02 * fcr[pairing.queries])[given].all()
    np.testing.assert_array_equal(
        pairing.fcr_difference, np.abs(fcr[pairing.queries] - fcr[pairing.references]) / fcr[pairing.queries]
    )


def test_who_has_no_pair_is_named_with_the_reason() -> None:
    canvases = [
        canvas("alone", "a", somewhere(0)),
        canvas("small", "b", somewhere(1)),
        canvas("large", "b", somewhere(2)),
        canvas("shoot 1", "c", somewhere(3)),
        canvas("shoot 2", "c", somewhere(3)),
        canvas("fine 1", "d", somewhere(4)),
        canvas("fine 2", "d", somewhere(5)),
    ]
    pairing = paired(canvases, np.array([0.3, 0.3, 0.31, 0.3, 0.3, 0.4, 0.4]), seed=0)
    assert {(one.id, one.reason) for one in pairing.left_out} == {
        ("alone", ONE_PICTURE),
        ("small", NO_FCR),
        ("large", NO_FCR),
        ("shoot 1", ONE_SHOOT),
        ("shoot 2", ONE_SHOOT),
        ("fine 1", NO_DONOR),
        ("fine 2", NO_DONOR),
    }
    assert pairing.queries.tolist() == [5, 6]
    assert pairing.references.tolist() == [6, 5]
    assert pairing.donors.tolist() == [-1, -1]


def test_one_person_more_changes_nobody_elses_reference() -> None:
    canvases = [canvas(f"c{n:02d}", f"p{n % 5}", somewhere(n)) for n in range(40)]
    fcr = np.full(40, 0.3)
    whole = paired(canvases, fcr, seed=3)
    more = paired([*canvases, *(canvas(f"d{n}", "new", somewhere(50 + n)) for n in range(2))], np.full(42, 0.3), seed=3)
    other = paired(canvases, fcr, seed=4)
    np.testing.assert_array_equal(whole.references, more.references[:40])
    assert (whole.references != other.references).any()
    assert len(np.unique(whole.references)) > 10
