"""The work that a reader of a whole class leaves to a reader of one attempt.

That is every parser of strangers' bytes, and every attempt with a problem. Code that runs a parser
calls `require_own_reader` first. Python itself stops other code that compiles or imports
something, such as a codec.
"""

from __future__ import annotations

import sys

PARSING = {"compile", "import", "marshal.loads", "pickle.find_class"}  # audit events of Python

_is_shared = False


class OwnReaderRequired(BaseException):
    """This needs a reader of its own. Not an `Exception`: parsers' callers catch all of these."""


def share_this_process() -> None:
    """Make `require_own_reader` raise from now on, until this process ends."""
    global _is_shared
    _is_shared = True
    sys.addaudithook(_refuse_parsing)


def require_own_reader() -> None:
    """Raise `OwnReaderRequired` if this process serves more than one attempt."""
    if _is_shared:
        raise OwnReaderRequired


def _refuse_parsing(event: str, _: tuple[object, ...]) -> None:
    if event in PARSING:
        raise OwnReaderRequired
