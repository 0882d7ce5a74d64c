"""Settings that all tests share."""

import os

from hypothesis import settings

# Machines that run tests are often busy; how long one example takes says nothing about the code. In CI the examples
# are the same each time, so that a red run is about the change; at a desk they are new, so that they find something.
settings.register_profile("unface", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("unface")
