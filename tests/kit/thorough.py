"""Tests that take a minute or more, and are run where a change is decided on: by ``.ci/run``."""

import os

import pytest

only_thorough = pytest.mark.skipif(
    not os.environ.get("UNFACE_THOROUGH"), reason="takes long; .ci/run runs it, as UNFACE_THOROUGH=1 does"
)
