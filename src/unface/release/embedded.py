"""A synthetic set made of the embedded vectors, for the demo: nobody's pictures, some of them planted copies."""

from dataclasses import replace

import numpy as np

from unface import data
from unface.data import EmbeddingSet
from unface.release.faces import faces_of
from unface.release.run import View
from unface.seeds import stream

ENCODER = "sface"
COPIES = 20
"""How many training people were copied into the synthetic set."""
_NOISE = 0.5  # length of what is added to a copied vector of length one
_PICTURES = 4


def embedded_view() -> View:
    """A quarter of the people to train on, a half to hold out, a quarter drawn; copies are noisy training pictures."""
    people = data.nobody(ENCODER).unit()
    order = np.argsort(people.identities, kind="stable")
    first = np.searchsorted(people.identities[order], np.arange(len(people.names)))
    people = people.take(order[np.sort(np.concatenate([first + picture for picture in range(_PICTURES)]))])
    quarter = len(people.names) // 4
    training = people.take(people.identities < quarter)
    holdout = people.take((people.identities >= quarter) & (people.identities < 3 * quarter))
    drawn = people.take(people.identities >= 3 * quarter)
    return View(
        ENCODER,
        synthetic=faces_of(_with_copies(drawn, training), labelled=False),
        training=faces_of(replace(training, source="training set")),
        holdout=faces_of(replace(holdout, source="holdout")),
    )


def _with_copies(drawn: EmbeddingSet, training: EmbeddingSet) -> EmbeddingSet:
    """One copy each of the first pictures of some training people, after the faces that are nobody's copy."""
    _, first = np.unique(training.identities, return_index=True)
    copied = training.vectors[first[:COPIES]]
    noise = stream(0, "demo", "copies").standard_normal(copied.shape) / np.sqrt(copied.shape[1])
    vectors = np.concatenate([drawn.vectors, copied + _NOISE * noise]).astype(np.float32)
    ids = [f"drawn {number:03d}" for number in range(len(vectors))]
    made = EmbeddingSet.from_arrays(vectors, ids, ids=ids, source="synthetic set")
    return replace(made, space=drawn.space)
