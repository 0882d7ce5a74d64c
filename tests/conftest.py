"""Settings that all tests share."""

from hypothesis import settings

# Machines that run tests are often busy; how long one example takes says nothing about the code.
settings.register_profile("unface", deadline=None)
settings.load_profile("unface")
