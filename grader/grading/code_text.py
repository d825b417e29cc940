"""The code of a file: its text without comments, docstrings and blank lines.

Stored data about a program is valid as long as its code is the same. Imports no torch.
"""

from __future__ import annotations

import io
import itertools
import tokenize
from collections.abc import Iterator

from grader.report import without_controls
from grader.sandbox.cells import CELL

MAX_LINE = 70  # characters of a quoted line
STARTS_STATEMENT = (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING)
ENDS_STATEMENT = (tokenize.NEWLINE, tokenize.COMMENT, tokenize.ENDMARKER)
NO_CODE = (tokenize.TokenError, SyntaxError, ValueError, RecursionError)
SILENT = (tokenize.COMMENT, tokenize.NL)


def without_remarks(text: str) -> str:
    """Return the code of a text, the same on every version of Python; the text if it is no code."""
    try:
        silent = list(_silent_tokens(text))
    except NO_CODE:
        return text
    lines = text.split("\n")
    for token in reversed(silent):
        (first, start), (last, end) = token.start, token.end
        line = lines[first - 1]
        if token.type != tokenize.NL:
            line = (line[:start] + lines[last - 1][end:]).rstrip()
        lines[first - 1 : last] = [line] if line.strip() else []
    return "\n".join(lines)


def code_tokens(text: str) -> list[str]:
    """Return the tokens of a text's code, whatever its layout; the text if it is no code."""
    code = without_remarks(text)
    try:
        tokens = tokenize.generate_tokens(io.StringIO(code).readline)
        found = [each for each in tokens if each.type != tokenize.NL]
    except NO_CODE:
        return [text]
    return [each.string.strip() or tokenize.tok_name[each.type] for each in found]


def line_in_words(text: str, number: int) -> str:
    """Return a line of a student's file as a quotation, with its number if it has one."""
    lines = text.split("\n")
    code = lines[number - 1].partition("  #")[0] if 0 < number <= len(lines) else ""
    code = " ".join(without_controls(code).split())
    quoted = f"`{code if len(code) <= MAX_LINE else f'{code[: MAX_LINE - 1]}…'}`"
    return quoted if CELL in text else f"{quoted} (line {number})"  # a notebook has no line numbers


def _silent_tokens(text: str) -> Iterator[tokenize.TokenInfo]:
    """Yield comments, line endings without a statement, and strings that stand alone."""
    before = tokenize.ENCODING
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    for token, following in itertools.pairwise(tokens):
        stands_alone = before in STARTS_STATEMENT and following.type in ENDS_STATEMENT
        if token.type in SILENT or (token.type == tokenize.STRING and stands_alone):
            yield token
        if token.type not in SILENT:
            before = token.type
