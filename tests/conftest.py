"""Settings that all tests share."""

import os

import pytest
from hypothesis import HealthCheck, settings

from tests.kit.forks import forks
from tests.kit.remembered import remembered_networks

__all__ = ["forks", "remembered_networks"]

# Several workers share the cores, and the threads of BLAS spin while they wait for each other. NumPy is not imported
# yet; what these tests start inherits it. A test that wants more BLAS threads asks threadpoolctl for them.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

# Machines that run tests are often busy: how long examples take says nothing about the code. In CI the examples
# are the same each time, so that a red run is about the change; at a desk they are new, so that they find something.
settings.register_profile(
    "unface", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=bool(os.environ.get("CI"))
)
settings.load_profile("unface")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with a slow test come first, so that no worker is left alone with one of them at the end."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)
