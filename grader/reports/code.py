"""A student's code around one line, coloured, with the line marked."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from markupsafe import Markup
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

LIGHT, DARK = "default", "github-dark"
CLASS = "code"


def coloured(where: Mapping[str, Any]) -> Markup:
    """The lines of a place, numbered, as HTML without any style of its own."""
    text, start = (where["around"], where["start"]) if where["around"] else (where["source"], 0)
    start = start or where["line"]
    formatter = HtmlFormatter(nowrap=True)
    lines = highlight(text, PythonLexer(stripnl=False), formatter).rstrip("\n").split("\n")
    width = len(str(start + len(lines)))
    return Markup(
        "\n".join(
            _marked(
                f'<span class="lineno">{number:>{width}} </span>{line}', number == where["line"]
            )
            for number, line in enumerate(lines, start)
        )
    )


def _marked(line: str, marked: bool) -> str:
    return f'<span class="hll">{line}</span>' if marked else line


@cache
def style() -> Markup:
    """The colours of `coloured`, in light and in dark."""
    light, dark = (_rules(name) for name in (LIGHT, DARK))
    return Markup(f"{light}\n@media screen and (prefers-color-scheme: dark) {{\n{dark}\n}}")


def _rules(name: str) -> str:
    """The tokens' colours alone: background and marked line are the page's."""
    rules = HtmlFormatter(style=name).get_style_defs(f".{CLASS}").splitlines()  # type: ignore[no-untyped-call]
    tokens = [rule.partition(" /*")[0] for rule in rules if rule.startswith(f".{CLASS} .")]
    return "\n".join(rule for rule in tokens if ".hll" not in rule)
