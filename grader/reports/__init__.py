"""The views of a report: terminal, JSON, Markdown and HTML; the class page; other platforms.

Everything here is made from a `Report` or a `Summary`. Imports neither files nor torch, and
nothing of the project except `grader.report`.
"""

from __future__ import annotations

from grader.report import Report
from grader.reports import text
from grader.reports.data import to_json

FORMATS = ("text", "json", "markdown", "html")


def render(report: Report, form: str, height: int | None = None) -> str:
    """Return the report in one of `FORMATS`; as text it has fewer than `height` lines, if given."""
    if form == "text":
        return text.render(report, height)
    if form == "json":
        return to_json(report)
    from grader.reports import pages  # noqa: PLC0415, slow: not needed in a terminal

    return pages.render(report, form)
