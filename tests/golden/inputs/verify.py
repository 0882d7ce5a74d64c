"""What the Python functions that no command calls give: printed as JSON."""

import json
from dataclasses import asdict

import numpy as np

import unface

people = unface.read_embeddings("in/people.parquet")
half = np.array([int(name[1:]) < 30 for name in people.names])[people.identities]
names = np.array(people.names)[people.identities]
eraser = unface.ISP(rank=6).fit(people.vectors[half], names[half])
sets = {"raw": people.vectors[~half], "erased": eraser.transform(people.vectors[~half])}
verified = {
    f"{name} {score}": unface.verify(vectors, names[~half], far=[1e-1, 1e-2, 1e-3], score=score)
    for name, vectors in sets.items()
    for score in ("cosine", "l2")
}
mated, impostors = people.vectors[:200, 0], people.vectors[200:, 1]
print(
    json.dumps(
        {
            "verified": {
                name: {"eer": one.eer, "people": one.identities, "at": [asdict(tar) for tar in one.at.values()]}
                for name, one in verified.items()
            },
            "scores": [asdict(unface.tar_at_far(mated, impostors, far)) for far in (0.5, 0.1, 0.01)],
        },
        default=float,
    )
)
