"""Markdown of a notebook → the plain text of `statement.md`; formulas stay unchanged."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence

from grader.commands.assignments.question import first_sentence

WIDTH = 79
HEADING = "\0"  # before the lines that are headings; no cell holds one
BLOCK = re.compile(
    r"""^\ {0,3}(?P<fence>```+|~~~+).*\n(?P<code>(?s:.*?))(?:^[ \t]*(?P=fence).*$|\Z)
    |^\ {0,3}\#{1,6}[ \t]+(?P<heading>.*)$
    |(?P<as_it_stands>^[ \t]*(?:\$\$(?s:.*?)(?:\$\$.*$|\Z)|\||\\(?:begin|end)\b).*$)
    |(?P<gap>^\ {0,3}(?:([-*_])(?:\ *\6){2,}|=+)?[ \t]*$)
    |(?P<indented>^(?:\ {4}|[ \t]*\t).*$)
    |(?P<text>^.+$)""",
    re.MULTILINE | re.VERBOSE,
)
ITEM = re.compile(r"^(\s*)([-*+]|\d+[.)])\s+(.*)$")
COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
TAG = re.compile(r"</?(?:a|b|br|center|code|div|em|font|h\d|hr|i|p|span|strong|u)\b[^<>]*>", re.I)
PICTURE = re.compile(r"!\[([^\]]*)\]\([^()]*+(?:\([^()]*+\)[^()]*+)?\)|<img\b[^<>]*>", re.I)
LINK = re.compile(r"(?<!!)\[([^\]\[]{1,400})\]\((\S{1,400}?)\)")
BOLD = re.compile(r"(\*\*|__)(?=\S)(.{1,400}?)(?<=\S)\1")
FORMULA = re.compile(r"(\$\$.*?\$\$|\$[^$\n]+\$|`[^`\n]+`)", re.DOTALL)
WORTH = re.compile(r"\s*[(\[][\d./]+ (?:points?|pts?|marks?)[)\]]$")  # behind a title


def statement_of(prose: Sequence[str]) -> tuple[str, str, str]:
    """Return the last heading of Markdown cells, the cells as a text below it, and a summary."""
    lines = [line for text in prose for line in (*_lines(COMMENT.sub("", text)), "")]
    headings = [place for place, line in enumerate(lines) if line.startswith(HEADING)]
    title = WORTH.sub("", lines.pop(headings[-1])[1:]) if headings else ""
    body = re.sub(r"\n{3,}", "\n\n", "\n".join(lines).replace(HEADING, "")).strip("\n")
    summary = first_sentence(body)
    body = body or "TODO: what to write: the formula, the shapes, and the edge cases."
    # A statement becomes a docstring.
    statement = f"# {title or 'TODO: a title'}\n\n{body}".replace('"""', "'''").rstrip("\\ \n")
    return title, f"{statement}\n", summary


def _lines(text: str) -> Iterator[str]:
    """Yield the lines of a Markdown cell as plain text."""
    paragraph = ""
    for block in BLOCK.finditer(f"{text}\n\n"):
        kind, line = block.lastgroup, block[0].rstrip()
        if kind == "text" or (kind == "indented" and paragraph):
            if paragraph and not ITEM.match(line):
                line = f"{paragraph} {line.strip()}"
            else:
                yield from _wrapped(paragraph)
            paragraph = line
            continue
        yield from _wrapped(paragraph)
        paragraph = ""
        if kind == "heading":
            yield from ("", HEADING + _plain(block[kind].strip("# \t")), "")
        elif kind == "code":
            yield from (f"    {each}".rstrip() for each in block[kind].splitlines())
        else:
            yield "" if kind == "gap" else line


def _wrapped(paragraph: str) -> list[str]:
    """Return a paragraph or an item of a list in lines of limited length."""
    item = ITEM.match(paragraph)
    first = f"{item[1]}  {'-' if item[2] in '-*+' else item[2]} " if item else ""
    wrapper = textwrap.TextWrapper(WIDTH, first, " " * len(first), break_on_hyphens=False)
    wrapper.break_long_words = False
    return wrapper.wrap(_plain(item[3] if item else paragraph))


def _plain(text: str) -> str:
    """Return a line without Markdown's marks, except in formulas and code."""
    parts = FORMULA.split(text)
    return "".join(part if place % 2 else _unmarked(part) for place, part in enumerate(parts))


def _unmarked(text: str) -> str:
    text = PICTURE.sub(lambda found: f"(picture: {found[1]})" if found[1] else "(picture)", text)
    return BOLD.sub(r"\2", TAG.sub("", LINK.sub(r"\1 (\2)", text)))
