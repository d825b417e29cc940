"""Pages made by Jinja: HTML, where everything is escaped, and Markdown, where we see to it."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from grader.reports import charts
from grader.reports.checks import amount, counted
from grader.reports.code import coloured, style
from grader.reports.text import first_failure, state

_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>()#+!|~&$@:-])")


@cache
def environment() -> Environment:
    """Our templates, with what all of them use."""
    made = Environment(
        loader=PackageLoader("grader.reports"),
        autoescape=lambda name: bool(name and name.endswith(".html.j2")),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters.update(md=_markdown, fence=_fenced, zip=zip)
    made.globals.update(
        state=state,
        first_failure=first_failure,
        policy=policy,
        charts=charts,
        amount=amount,
        counted=counted,
        coloured=coloured,
        code_style=style,
    )
    return made


def render(template: str, report: Mapping[str, Any]) -> str:
    """The report through one of the templates."""
    return environment().get_template(template).render(report=report)


def policy(style: str, script: str = "") -> str:
    """What a page may do: the style and the script it was made with. No request, no form."""
    parts = {"style-src": style, "script-src": script}
    hashes = [f"{what} 'sha256-{_digest(text)}'" for what, text in parts.items() if text]
    return f"default-src 'none'; {'; '.join(hashes)}; base-uri 'none'; form-action 'none'"


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _markdown(text: str) -> str:
    """Text that means itself in Markdown, on one line."""
    return _MARKDOWN.sub(r"\\\1", " ".join(str(text).split()))


def _fenced(text: str, language: str = "text") -> str:
    """A code block that the text cannot end."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"
