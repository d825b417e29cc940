"""Markdown of a notebook → the plain text of `statement.md`; formulas stay unchanged."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator

WIDTH = 79
HEADING = re.compile(r"^ {0,3}#{1,6}\s+(.*?)\s*#*$")
UNDERLINE = re.compile(r"^ {0,3}(=+|-{3,})\s*$")
RULE = re.compile(r"^ {0,3}([-*_])(?: *\1){2,}\s*$")
FENCE = re.compile(r"^ {0,3}(```+|~~~+)")
ITEM = re.compile(r"^(\s*)([-*+]|\d+[.)])\s+(.*)$")
AS_IT_STANDS = re.compile(r"^(\s{4,}|\s*\||\s*\\(begin|end)\b)")
TAG = re.compile(r"</?(?:a|b|br|center|code|div|em|font|h\d|hr|i|p|span|strong|u)\b[^<>]*>", re.I)
PICTURE = re.compile(r"!\[([^\]]*)\]\([^()]*+(?:\([^()]*+\)[^()]*+)?\)|<img\b[^<>]*>", re.I)
LINK = re.compile(r"(?<!!)\[([^\]\[]{1,400})\]\((\S{1,400}?)\)")
BOLD = re.compile(r"(\*\*|__)(?=\S)(.{1,400}?)(?<=\S)\1")
FORMULA = re.compile(r"(\$\$.*?\$\$|\$[^$\n]+\$|`[^`\n]+`)", re.DOTALL)
WORTH = re.compile(r"\s*[(\[][\d./]+ (?:points?|pts?|marks?)[)\]]$")  # after a title
QUOTES = '"""'  # a statement becomes a docstring


def title_of(prose: Iterable[str]) -> str:
    """Return the last heading of Markdown cells, which is the question's own; or nothing."""
    found = ""
    for text in prose:
        for line in _outside_fences(text):
            if heading := HEADING.match(line):
                found = WORTH.sub("", _plain(heading[1]))
    return found


def statement_of_cells(prose: Iterable[str], title: str) -> str:
    """Return Markdown cells as the text of a statement below its title."""
    lines = [line for text in prose for line in (*_lines(_without_comments(text)), "")]
    headings = [n for n, line in enumerate(lines) if title and WORTH.sub("", line) == title]
    if headings:
        lines.pop(headings[-1])
    body = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n")
    body = body or "TODO: what to write: the formula, the shapes, and the edge cases."
    text = f"# {title or 'TODO: a title'}\n\n{body}\n".replace(QUOTES, "'''")
    return re.sub(r"\\+\s*\Z", "", text).rstrip() + "\n"


def pictures_in(prose: Iterable[str]) -> list[str]:
    """Return the pictures in Markdown cells, which no statement can show."""
    return [found[0] for text in prose for found in PICTURE.finditer(text)]


def _without_comments(text: str) -> str:
    start = text.find("<!--")
    while start >= 0 and (end := text.find("-->", start)) >= 0:
        text = text[:start] + text[end + len("-->") :]
        start = text.find("<!--", start)
    return text


def _outside_fences(text: str) -> Iterator[str]:
    fence = ""
    for line in text.splitlines():
        if mark := FENCE.match(line):
            fence = "" if fence and line.strip().startswith(fence) else fence or mark[1]
        elif not fence:
            yield line


def _lines(text: str) -> Iterator[str]:
    """Yield the lines of a Markdown cell as plain text; code and formulas stay unchanged."""
    fence, formula, paragraph = "", False, list[str]()
    for line in text.splitlines():
        mark = FENCE.match(line)
        if not formula and (mark or fence):
            yield from _wrapped(paragraph)
            closes = fence and mark and line.strip().startswith(fence)
            if fence and not closes:
                yield f"    {line}".rstrip()
            fence = "" if closes else fence or (mark[1] if mark else "")
        elif formula or line.strip().startswith("$$"):
            yield from _wrapped(paragraph)
            yield line.rstrip()
            formula ^= line.count("$$") % 2 == 1
        else:
            yield from _line(line, paragraph)
    yield from _wrapped(paragraph)


def _line(line: str, paragraph: list[str]) -> Iterator[str]:
    """Yield the lines that are finished when a line follows a paragraph, which goes on or ends."""
    heading = HEADING.match(line)
    if heading or RULE.match(line) or UNDERLINE.match(line) or not line.strip():
        yield from _wrapped(paragraph)
        yield from ("", _plain(heading[1]), "") if heading else ("",)
    elif AS_IT_STANDS.match(line) and not (paragraph and line.startswith("    ")):
        yield from _wrapped(paragraph)
        yield line.rstrip()
    else:
        if ITEM.match(line):
            yield from _wrapped(paragraph)
        paragraph.append(line)


def _wrapped(paragraph: list[str]) -> Iterator[str]:
    """Yield a paragraph in lines of limited length, and empty it."""
    if not paragraph:
        return
    item = ITEM.match(paragraph[0])
    first = f"{item[1]}  {'-' if item[2] in '-*+' else item[2]} " if item else ""
    words = [item[3], *paragraph[1:]] if item else paragraph
    text = _plain(" ".join(line.strip() for line in words))
    paragraph.clear()
    yield from textwrap.wrap(
        text,
        WIDTH,
        initial_indent=first,
        subsequent_indent=" " * len(first),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _plain(text: str) -> str:
    """Return a line without Markdown's marks, except in formulas and code."""
    parts = FORMULA.split(text)
    return "".join(part if place % 2 else _unmarked(part) for place, part in enumerate(parts))


def _unmarked(text: str) -> str:
    text = PICTURE.sub(lambda found: f"(picture: {found[1]})" if found[1] else "(picture)", text)
    text = LINK.sub(r"\1 (\2)", text)
    return BOLD.sub(r"\2", TAG.sub("", text))
