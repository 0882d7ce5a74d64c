"""The command line: one file for each verb, no arithmetic."""

from unface.cli.app import app, main

__all__ = ["app", "main"]
