"""The syntax tree of a source, made by one thread at a time."""

from __future__ import annotations

import ast
import threading

# CPython counts how deep a tree is in one number for all threads, and raises a SystemError if two
# of them make trees in turns, as they do when collecting garbage lets the other run.
_PARSING = threading.RLock()


def syntax_tree(text: str, file: str = "<unknown>") -> ast.Module:
    """Return the tree of a source; raises what `ast.parse` raises."""
    with _PARSING:
        return ast.parse(text, file)
