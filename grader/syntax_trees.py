"""The syntax tree of a source, made by one thread at a time."""

from __future__ import annotations

import ast
import threading

# CPython counts the depth of a tree in one number for all threads. It raises a SystemError if two
# threads make trees in turns, which happens when collecting garbage lets the other one run.
_PARSING = threading.RLock()


def syntax_tree(text: str, file: str = "<unknown>") -> ast.Module:
    """Return the tree of a source; raises what `ast.parse` raises."""
    with _PARSING:
        return ast.parse(text, file)
