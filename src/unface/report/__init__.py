"""What an audit says, drawn from audit.json alone."""

from unface.report.table import print_audit

__all__ = ["print_audit"]
