"""The one exception a user is meant to see: a single line that says what, where, and what to do."""


class UnfaceError(Exception):
    """Bad input or failed work; the command line prints it alone and exits 1."""
