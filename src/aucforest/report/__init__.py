"""A report on a fitted forest as an HTML page."""

from aucforest.report.html import Report, report

__all__ = ["Report", "report"]
