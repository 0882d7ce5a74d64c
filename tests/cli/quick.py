"""An audit that takes a second: forty people, and options that leave out what is slow."""

from unface import make_identities

QUICK = ["--eraser", "none", "--far", "0.05", "--probe", "cosine,lda", "--seeds", "1", "--bootstraps", "100"]
QUICK += ["--threads", "1"]
PEOPLE = make_identities(40, 6, 8, between=1.5, seed=2)
