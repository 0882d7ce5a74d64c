"""If these fail, a model that erases in torch releases other vectors than we measured."""

import numpy as np
import pytest

from tests.erase.people import people
from unface.erase import ISP, LEACE, Eraser, Projection

torch = pytest.importorskip("torch", reason="torch is not installed")

ERASERS = [ISP(20), ISP(50), ISP(80), ISP(0), LEACE(20), LEACE(80), LEACE(), ISP(20, normalise=False)]


@pytest.mark.parametrize("eraser", ERASERS, ids=repr)
def test_the_module_is_apply(eraser: Eraser) -> None:
    made = people(120, 3, 100)
    found = eraser.fit(made.vectors, made.identities).projection_
    module = found.torch_module()
    given = torch.tensor(made.vectors)
    assert module(given).dtype == torch.float32
    assert module(given).numpy() == pytest.approx(found.apply(made.vectors), abs=1e-6)
    assert module(given[3]).numpy() == pytest.approx(found.apply(made.vectors[3]), abs=1e-6)
    assert module(given.reshape(40, 9, 100)).reshape(-1, 100).numpy() == pytest.approx(module(given).numpy(), abs=1e-6)


@pytest.mark.parametrize("eraser", [ISP(20), ISP(80)], ids=repr)
def test_no_more_is_left_along_what_was_removed_than_rounding_what_is_kept_leaves(eraser: Eraser) -> None:
    """In float32 inside, what is left would go with what was removed; that is seen where vectors lie far along it."""
    made = people(120, 3, 100)
    found = eraser.fit(made.vectors, made.identities).projection_
    far = made.vectors + 1e4 * found.directions[:, 0].astype(np.float32)
    left = found.torch_module()(torch.from_numpy(far).double()).numpy() @ found.directions
    assert np.abs(left).max() < 1e-11


def axis(*, normalise: bool = True) -> Projection:
    vectors = np.array([[1, 0, 0], [-1, 0, 0]], np.float32)
    return ISP(1, normalise=normalise).fit(vectors, [0, 1]).projection_


@pytest.mark.parametrize("normalise", [True, False])
def test_vectors_that_vanish_become_zeros_and_leave_gradients_finite(normalise: bool) -> None:
    given = torch.tensor([[5, 0, 0], [5, 1e-7, 0], [0, 0, 0], [5, 0, -1]], requires_grad=True)
    out = axis(normalise=normalise).torch_module()(given)
    assert out.tolist() == [[0, 0, 0], [0, 0, 0], [0, 0, 0], [0, 0, -1]]
    out.square().sum().backward()
    assert torch.isfinite(given.grad).all()


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float64"])
def test_the_type_of_what_is_given_is_kept_and_the_arithmetic_is_in_float64(name: str) -> None:
    dtype = getattr(torch, name)
    made = people(120, 3, 100)
    found = ISP(20).fit(made.vectors, made.identities).projection_
    given = torch.tensor(made.vectors).to(dtype)
    out = found.torch_module()(given)
    assert out.dtype == dtype
    exact = torch.from_numpy(found.apply(given.double().numpy()))
    assert torch.allclose(out.double(), exact.to(dtype).double(), atol=torch.finfo(dtype).eps + 1e-6, rtol=0)


def test_it_has_nothing_to_train_and_its_state_can_be_saved() -> None:
    module = axis().torch_module()
    assert list(module.parameters()) == []
    assert {name: value.dtype for name, value in module.state_dict().items()} == {"left": torch.float64}
    made = people(120, 3, 100)
    thin = LEACE(20).fit(made.vectors, made.identities).projection_
    state = {name: tuple(value.shape) for name, value in thin.torch_module().state_dict().items()}
    assert state == {"left": (100, 20), "right": (20, 100), "offset": (100,)}
