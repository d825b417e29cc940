"""A lexer of Python for colouring, whose rules read each character a bounded number of times.

Pygments' own lexer takes quadratic time for some lines, and a page shows strangers' code.
"""

from __future__ import annotations

import builtins
import keyword
from typing import ClassVar

from pygments.lexer import RegexLexer, bygroups, words
from pygments.token import (
    Comment,
    Keyword,
    Name,
    Number,
    Operator,
    Punctuation,
    String,
    Text,
    Whitespace,
)

_LONG = r"""[rRbBuUfFtT]{0,2}(?:"{3}[\s\S]*?(?:"{3}|\Z)|'{3}[\s\S]*?(?:'{3}|\Z))"""
_SHORT = r"""[rRbBuUfFtT]{0,2}(?:"(?:\\[\s\S]|[^"\\\n])*"?|'(?:\\[\s\S]|[^'\\\n])*'?)"""
_CONSTANTS = ("True", "False", "None")
_WORDS = ("and", "or", "not", "in", "is")
_KEYWORDS = sorted({*keyword.kwlist} - {*_CONSTANTS, *_WORDS})
_BUILTINS = sorted(name for name in vars(builtins) if name[0] != "_" and name not in _CONSTANTS)


class LinearPythonLexer(RegexLexer):
    """The tokens of a Python source; text that is not Python gets some colours as well."""

    name = "Python in linear time"
    url = "https://docs.python.org/3/reference/lexical_analysis.html"

    tokens: ClassVar = {
        "root": [
            (r"\s+", Whitespace),
            (r"#[^\n]*", Comment.Single),
            (_LONG, String.Double),
            (_SHORT, String.Double),
            (r"\.?\d[\w.]*", Number),
            (r"(def)([ \t]+)([^\W\d]\w*)", bygroups(Keyword, Whitespace, Name.Function)),
            (r"(class)([ \t]+)([^\W\d]\w*)", bygroups(Keyword, Whitespace, Name.Class)),
            (r"(import|from)([ \t]+)([\w.]+)", bygroups(Keyword, Whitespace, Name.Namespace)),
            (r"@[\w.]+", Name.Decorator),
            (words(_CONSTANTS, suffix=r"\b"), Keyword.Constant),
            (words(_WORDS, suffix=r"\b"), Operator.Word),
            (words(_KEYWORDS, suffix=r"\b"), Keyword),
            (r"(\.)([^\W\d]\w*)", bygroups(Operator, Name)),  # an attribute is no builtin
            (words(_BUILTINS, suffix=r"\b"), Name.Builtin),
            (r"(?:self|cls)\b", Name.Builtin.Pseudo),
            (r"[^\W\d]\w*", Name),
            (r"[-+*/%@&|^=<>!~.]+", Operator),
            (r"[()\[\]{},:;]", Punctuation),
            (r".", Text),
        ]
    }
