"""A projection in a few lines: what it removes, and what was certified of it."""

from collections.abc import Iterator
from pathlib import Path

from unface.auditing.words import count, percent
from unface.erase import Projection
from unface.result.numbers import Estimate


def projection_lines(projection: Projection, path: Path) -> Iterator[str]:
    """For the terminal, after a fit."""
    yield f"{path}: {projection.kind}, {projection.rank} of {projection.dim} dimensions removed, {projection.space}"
    found = projection.certificate
    if found is None:
        yield "not certified: no identities were held out"
        return
    people = count(found.identities, "identity", "identities")
    yield f"on {people} it was not fitted on: {_share(found.energy_left)} of the variance between identities is left;"
    yield f"largest Fisher ratio {_ratio(found.fisher_before)} before, {_ratio(found.fisher_left)} after"
    yield f"this covers {found.covers}"


def _share(estimate: Estimate) -> str:
    return f"{percent(estimate.value)} [{percent(estimate.low)}, {percent(estimate.high)}]"


def _ratio(estimate: Estimate) -> str:
    return f"{estimate.value:.2f} [{estimate.low:.2f}, {estimate.high:.2f}]"
