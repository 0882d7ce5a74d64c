"""The one all-pairs engine: every comparison of n vectors, exactly, without ever holding n² scores."""

from unface.pairs.count import (
    Accepts,
    count_impostors,
    fine_histogram,
    impostors_between,
    neighbourhood,
    ranked_impostor,
    reaching_impostors,
)
from unface.pairs.histogram import Histogram, bin_scores, impostor_histogram, sample_impostors
from unface.pairs.mated import Mated, all_mated, mated_pairs
from unface.pairs.nearest import Nearest, compared, nearest_between, pairs_above, visit_above
from unface.pairs.pairing import Pairing, pair_up
from unface.pairs.screen import Hits, Screen, join_hits, open_screen
from unface.pairs.space import PairSpace, cosine_space, l2_space, quadratic_space
from unface.pairs.sweep import Reaching, look_through, most_held
from unface.pairs.tail import Tail, highest_impostors, impostors_above, pool_tails, require_room

__all__ = [
    "Accepts",
    "Histogram",
    "Hits",
    "Mated",
    "Nearest",
    "PairSpace",
    "Pairing",
    "Reaching",
    "Screen",
    "Tail",
    "all_mated",
    "bin_scores",
    "compared",
    "cosine_space",
    "count_impostors",
    "fine_histogram",
    "highest_impostors",
    "impostor_histogram",
    "impostors_above",
    "impostors_between",
    "join_hits",
    "l2_space",
    "look_through",
    "mated_pairs",
    "most_held",
    "nearest_between",
    "neighbourhood",
    "open_screen",
    "pair_up",
    "pairs_above",
    "pool_tails",
    "quadratic_space",
    "ranked_impostor",
    "reaching_impostors",
    "require_room",
    "sample_impostors",
    "visit_above",
]
