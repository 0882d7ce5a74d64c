"""The command line: one file for each verb, no arithmetic."""

from unface.cli.start import main

__all__ = ["main"]
