"""The views of a report: terminal, JSON, Markdown and HTML; the class page; other platforms.

Every view is made from a `Report` or a `Summary`. Reads no files, and imports neither torch nor
anything of the project except `grader.report`.
"""

from __future__ import annotations

import json

from grader.report import Report
from grader.reports import text
from grader.reports.data import to_json
from grader.reports.platforms import gradescope, prairielearn
from grader.reports.platforms.github import to_commands
from grader.reports.platforms.junit import to_junit

FORMATS = ("text", "json", "markdown", "html", "junit", "github", "gradescope", "prairielearn")


def render(report: Report, form: str, height: int | None = None) -> str:
    """Return the report in one of `FORMATS`; a text has fewer than `height` lines, if given."""
    if form == "text":
        return text.render(report, height)
    if form == "json":
        return to_json(report)
    if form == "junit":
        return to_junit([report])
    if form == "github":
        return to_commands(report)
    if form == "gradescope":
        return to_text(gradescope.to_results(report))
    if form == "prairielearn":
        return to_text(prairielearn.to_results(report))
    from grader.reports import pages  # noqa: PLC0415, slow: not needed in a terminal

    return pages.render(report, form)


def to_text(data: object) -> str:
    """Return JSON data as text for a platform."""
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"
