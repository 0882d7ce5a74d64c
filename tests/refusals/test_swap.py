"""If these fail, somebody with an unusable attribute or too few people gets a number instead of a sentence."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.refusals.table import Row, table
from tests.swap.labelled import people
from unface.swap import swap_inference

MADE = people(36, 4)
ROLES = dict(zip(("train", "calibrate", "test"), MADE.roles, strict=True))
(TRAIN, TRAIN_CODES), _, (TEST, TEST_CODES) = MADE.roles


def swap(
    name: str, *names: str, labels: Any = MADE.labels, vectors: Any = MADE.vectors, roles: Any = None, **o: Any
) -> Row:
    """A swap that cannot be measured; ``roles`` are those that are others."""
    train, calibrate, test = (ROLES | (roles or {})).values()
    act = lambda _: swap_inference(vectors, train, calibrate, test, labels, **o)  # noqa: E731
    return Row(name, act, "swap", "swap", names)


def labelled(rows: Any, value: Any) -> Any:
    labels = MADE.labels.copy()
    labels[rows] = value
    return labels


def stretched(factor: float) -> NDArray[np.float32]:
    vectors = MADE.vectors.copy()
    vectors[7] *= np.float32(factor)
    return vectors


def flat() -> NDArray[np.float32]:
    vectors = MADE.vectors.copy()
    vectors[:, 3:] = 0
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


test_refused = table(
    "swap",
    *(
        swap(f"one-value-in-{name}", f"0 {name}", "attribute 0", labels=labelled(rows, 1))
        for name, (rows, _) in ROLES.items()
    ),
    swap("one-identity", "1 train", "attribute 1", labels=labelled(TRAIN, MADE.identities[TRAIN] == 0)),
    swap("value-2", "value 2", labels=MADE.labels + 1),
    swap("value-of-a-half", "value 0.5", labels=MADE.labels / 2),
    swap("value-of-text", "value f", labels=np.array(["f", "m"])[MADE.labels]),
    swap("label-lacking", "(144, 48)", "(143,)", labels=MADE.labels[1:]),
    swap(
        "row-in-two-roles",
        "row 5",
        "train",
        "test",
        roles={"test": (np.append(TEST, TRAIN[5]), np.append(TEST_CODES, 0))},
    ),
    swap("no-such-row", "test", "row 240", "144", roles={"test": (TEST + 144, TEST_CODES)}),
    swap("identity-lacking", "test", "48 rows", "47", roles={"test": (TEST, TEST_CODES[1:])}),
    swap("rate-too-low", "12 calibrate", "1056", "0.001", "20 identities"),
    swap("rate-1", "not 1", far=1.0),
    swap("one-image-each", "train", roles={"train": (TRAIN[::4], TRAIN_CODES[::4])}),
    *(
        swap(f"length-{factor:g}", "vector 7", f"length {factor:g}", vectors=stretched(factor))
        for factor in (0.0, 2.0, np.nan)
    ),
    swap("no-directions", "0 directions", directions=0),
    swap("within-1", "not 1", within=1.0),
    swap("step-below-0", "not -1", step=-1.0),
    swap("flat", "3 of 48", "0.999", vectors=flat(), within=0.999),
)
