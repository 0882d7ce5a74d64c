"""FAISS files are tried as in the tests of stores."""

from tests.stores.conftest import _warm_trials, trials

__all__ = ["_warm_trials", "trials"]
