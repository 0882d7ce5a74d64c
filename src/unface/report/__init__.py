"""What an audit says, drawn from audit.json alone."""

from unface.report.projection import projection_lines
from unface.report.table import print_audit

__all__ = ["print_audit", "projection_lines"]
