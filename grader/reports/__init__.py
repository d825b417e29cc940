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
from grader.reports.platforms.github import to_commands, to_outputs
from grader.reports.platforms.gitlab import to_code_quality
from grader.reports.platforms.junit import to_junit
from grader.reports.remarks import UNKNOWN, Checkout

FORMATS = ("text", "json", "markdown", "html", "junit", "github", "gradescope", "prairielearn")
FOR_JOBS = ("outputs", "codequality")  # what a job of CI takes beside a report


def render(
    report: Report,
    form: str,
    height: int | None = None,
    checkout: Checkout = UNKNOWN,
) -> str:
    """Return the report in one of `FORMATS` or `FOR_JOBS`.

    As text it has fewer than `height` lines, if given.
    """
    if form == "text":
        return text.render(report, height)
    if form == "json":
        return to_json(report)
    if form == "junit":
        return to_junit([report], checkout)
    if form == "github":
        return to_commands(report, checkout)
    if form == "outputs":
        return to_outputs(report)
    if form == "codequality":
        return to_text(to_code_quality(report, checkout))
    if form == "gradescope":
        return to_text(gradescope.to_results(report))
    if form == "prairielearn":
        return to_text(prairielearn.to_results(report))
    from grader.reports import pages  # noqa: PLC0415, slow: not needed in a terminal

    return pages.render(report, form)


def to_text(data: object) -> str:
    """Return JSON data as text for a platform."""
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"
