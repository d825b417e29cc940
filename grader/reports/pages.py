"""Pages made with Jinja: HTML, which is escaped automatically, and Markdown, escaped by filters."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Collection, Sequence
from functools import cache, lru_cache
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from pygments import highlight
from pygments.formatters import HtmlFormatter

from grader.report import Drawing, Frame, Report
from grader.reports import charts
from grader.reports.charges import (
    CONSEQUENCE,
    budget_line,
    cases_lines,
    checks_line,
    scaled_line,
    sum_line,
)
from grader.reports.course_path import Stop, path_of, path_through, titles_before
from grader.reports.figures import amount, change, moment
from grader.reports.python_lexer import LinearPythonLexer
from grader.reports.text import describe_state

TEMPLATES = {"markdown": "report.md.j2", "html": "report.html.j2"}
CODE = "code"  # the CSS class of coloured code
# A span of code, a character that no span can hold everywhere, or any other text.
_PIECE = re.compile(r"`[^`|\s](?:[^`|]*[^`|\s])?`|[`|]|[^\s`|]+")
_SPAN = re.compile(r"`([^`\n]+)`")
_MARKUP = re.compile(r"[\\`*_{}\[\]<>()#+!|~&$@:^=-]|(?<=\d)\.\Z")
# Without any of these, a text holds no address, scheme, name, issue, commit or domain, which
# Markdown and GitHub turn into links even if every mark is escaped.
_LINKABLE = re.compile(
    r"@|#|//|www\.|:\w|[a-z]-\d|[0-9a-f]{7}|(?<!\d)\.(?=\w)|\.(?=[^\W\d])", re.IGNORECASE
)


def render(report: Report, form: str) -> str:
    """Return the report as a page: "html" or "markdown"."""
    return environment().get_template(TEMPLATES[form]).render(report=report)


def tour(stages: Sequence[Drawing]) -> str:
    """Return the page that shows a sequence at each stage of a model."""
    return environment().get_template("tour.html.j2").render(stages=stages)


def refusal(message: str, remedy: str) -> str:
    """Return in Markdown why nothing was graded."""
    tried = f"\nTry: {_markdown(remedy)}\n" if remedy else ""
    return f"**Nothing was graded:** {_markdown(message)}\n{tried}"


@cache
def environment() -> Environment:
    """Return the Jinja environment of all templates."""
    made = Environment(
        loader=PackageLoader("grader.reports"),
        autoescape=lambda name: bool(name and name.endswith((".html.j2", ".svg.j2"))),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters.update(md=_markdown, fence=_fenced, spans=_with_spans, zip=zip)
    functions = (
        *(describe_state, content_policy, amount, moment, change, coloured, code_style),
        *(sum_line, checks_line, scaled_line, cases_lines, budget_line),
        *(path_of, titles_before),
    )
    made.globals.update({each.__name__: each for each in functions}, charts=charts)
    made.globals["consequence"] = CONSEQUENCE
    return made


def path_picture(stops: Sequence[Stop]) -> str:
    """Return the path through a course as SVG, light or dark like the reader's screen."""
    return environment().get_template("path.svg.j2").render(path=path_through(stops))


def content_policy(style: str, script: str = "") -> str:
    """Return the content security policy of a page: only this style and script, no requests."""
    parts = {"style-src": style, "script-src": script}
    hashes = [f"{source} 'sha256-{_digest(text)}'" for source, text in parts.items() if text]
    return f"default-src 'none'; {'; '.join(hashes)}; base-uri 'none'; form-action 'none'"


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@lru_cache(maxsize=1024)  # because the reports of a class share most sentences
def _markdown(text: str) -> str:
    """Return the text as one line of Markdown that is only text: no markup and no link.

    Text in backticks is meant as code. A word that could become a link becomes code as well,
    because Markdown makes no links in code.
    """
    return _PIECE.sub(_inert, " ".join(text.split()))


def _inert(piece: re.Match[str]) -> str:
    text = piece[0]
    if len(text) > 1 and text[0] == text[-1] == "`":
        return text
    if not _LINKABLE.search(text):
        return _MARKUP.sub(r"\\\g<0>", text)
    word = text.rstrip(".,;:!?)")  # what ends the sentence is no part of the word
    while text[len(word) :].startswith(")") and word.count("(") > word.count(")"):
        word += ")"  # but what closes a bracket of the word is
    return f"`{word}`" + _MARKUP.sub(r"\\\g<0>", text[len(word) :]) if word else f"`{text}`"


def _with_spans(text: str) -> Markup:
    """Return the text as HTML, with text in backticks as code."""
    pieces = _SPAN.split(text)  # every second piece is a span of code
    return Markup("").join(
        Markup("<code>{}</code>").format(piece) if number % 2 else piece
        for number, piece in enumerate(pieces)
    )


def _fenced(text: str, language: str = "text") -> str:
    """Return the text as a code block whose fence is longer than any in the text."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def link(path: str) -> str:
    """Return a relative path as a link that always stays in the page's folder."""
    return "./" + quote(path.encode("utf-8", "replace"), safe="/")


# --- coloured code --------------------------------------------------------------------------------


def coloured(where: Frame) -> Markup:
    """Return the lines around a place as HTML: numbered, coloured, with the line itself marked."""
    text, start = (where.around, where.start) if where.around else (where.source, 0)
    return coloured_lines(text, start or where.line, {where.line})


def coloured_lines(text: str, start: int, marked: Collection[int], prefix: str = "") -> Markup:
    """Return code as HTML: numbered from `start`, coloured, with some of its lines marked.

    With a `prefix`, each number is a link to its line, whose id is the prefix and the number.
    """
    lines = highlight(text, *_colouring()).rstrip("\n").split("\n")
    width = len(str(start + len(lines)))
    return Markup(
        "\n".join(
            _marked(_numbered(f"{n:>{width}} ", prefix and f"{prefix}{n}") + line, n in marked)
            for n, line in enumerate(lines, start)
        )
    )


@cache
def _colouring() -> tuple[LinearPythonLexer, HtmlFormatter[str]]:
    """Return lexer and formatter, cached because a formatter takes longer to make than to use."""
    return LinearPythonLexer(stripnl=False), HtmlFormatter(nowrap=True)


def _numbered(number: str, anchor: str) -> str:
    """Return the number of a line; a link with an id if it has an anchor."""
    if not anchor:
        return f'<span class="lineno">{number}</span>'
    before = number[: -len(number.lstrip())]
    # Not in the order of the Tab key, in which a file would be hundreds of stops.
    start = f'{before}<a class="lineno" id="{anchor}" href="#{anchor}" tabindex="-1">'
    return f"{start}{number.strip()}</a> "


def _marked(line: str, marked: bool) -> str:
    return f'<span class="hll">{line}</span>' if marked else line


@cache
def code_style() -> Markup:
    """Return the CSS of `coloured`, for light and dark."""
    light, dark = _rules("default"), _rules("github-dark")
    return Markup(f"{light}\n@media screen and (prefers-color-scheme: dark) {{\n{dark}\n}}")


def _rules(style: str) -> str:
    """Return the rules for tokens only: the page styles its background and the marked line."""
    rules = HtmlFormatter(style=style).get_style_defs(f".{CODE}").splitlines()
    tokens = [rule.partition(" /*")[0] for rule in rules if rule.startswith(f".{CODE} .")]
    return "\n".join(rule for rule in tokens if ".hll" not in rule)
