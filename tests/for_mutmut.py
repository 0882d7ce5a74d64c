"""A plugin for ``make mutants`` alone, which forks every mutant from a process that has run the tests before."""

import sys
from functools import _lru_cache_wrapper

import pytest

# mutmut looks for a test's name where pytest no longer keeps it.
pytest.Item._nodeid = property(lambda self: self.nodeid)  # type: ignore[attr-defined]  # pytest has no such name


def pytest_runtest_setup() -> None:
    """Answers that test files keep are those of the code before it was changed."""
    for name, module in list(sys.modules.items()):
        if name.startswith("tests."):
            for kept in vars(module).values():
                if isinstance(kept, _lru_cache_wrapper):
                    kept.cache_clear()
