"""Views of a report. Each turns the report's JSON into text, and knows neither files nor torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from grader.reports import text


def to_json(report: Mapping[str, Any]) -> str:
    """The JSON itself, one object."""
    return msgspec.json.format(msgspec.json.encode(report), indent=2).decode() + "\n"


def to_markdown(report: Mapping[str, Any]) -> str:
    """Markdown, for pull requests and chats."""
    from grader.reports.pages import render

    return render("report.md.j2", report)


def to_html(report: Mapping[str, Any]) -> str:
    """One self-contained page."""
    from grader.reports.pages import render

    return render("report.html.j2", report)


FORMATS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "text": text.render,
    "json": to_json,
    "markdown": to_markdown,
    "html": to_html,
}
