"""Measurements on data that is not part of the repository."""
