"""A plugin for ``make mutants`` alone: mutmut reads the name of a test where pytest no longer keeps it."""

import pytest

pytest.Item._nodeid = property(lambda self: self.nodeid)  # type: ignore[attr-defined]
