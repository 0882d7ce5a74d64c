"""May this synthetic set be published? Which training people it exposes, by which pictures, beside a holdout."""

from unface.release.cluster import Clustered, cluster_people
from unface.release.copies import Copies, Reached, Threshold, count_copies, reach_chance, stranger_thresholds
from unface.release.exchangeable import Exchangeability, exchangeability
from unface.release.exposure import (
    Enrichment,
    Exposure,
    PersonScores,
    Separation,
    benjamini_hochberg,
    enrichment,
    exposed,
    fused,
    person_scores,
    separation,
)
from unface.release.membership import Membership, Permuted, measure_membership, permutation_test
from unface.release.retrieval import Labelled, Risk, retrieval_risk

__all__ = [
    "Clustered",
    "Copies",
    "Enrichment",
    "Exchangeability",
    "Exposure",
    "Labelled",
    "Membership",
    "Permuted",
    "PersonScores",
    "Reached",
    "Risk",
    "Separation",
    "Threshold",
    "benjamini_hochberg",
    "cluster_people",
    "count_copies",
    "enrichment",
    "exchangeability",
    "exposed",
    "fused",
    "measure_membership",
    "permutation_test",
    "person_scores",
    "reach_chance",
    "retrieval_risk",
    "separation",
    "stranger_thresholds",
]
