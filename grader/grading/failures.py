"""Kinds of failures whose message says everything, in words for the teacher. Imports no torch."""

from __future__ import annotations

import builtins

from grader.report import SYNTAX

# The message explains these failures, so they get no diagnosis.
SELF_EXPLAINING = frozenset(
    ("Forbidden", "Missing", "NotImplementedError", "Timeout", "Crash", "Protocol")
)
SAYS = {
    "Forbidden": "A call or import is used that the exercise forbids.",
    "Missing": "A function or class that the exercise asks for is missing.",
    "NotImplementedError": "A part is not written yet.",
    "Timeout": "A call does not end in time.",
    "Crash": "The code ends the process of Python.",
    "Protocol": "The code returns something that cannot be read.",
    "SyntaxError": "The file cannot be loaded: it is not valid Python.",
    "Unusable": "A result cannot be used.",
    "type": "A result has the wrong type.",
    "shape": "A result has the wrong shape.",
    "dtype": "A result has the wrong dtype.",
    "finite": "A result is nan or infinite.",
}
OTHER = "other"
OTHER_SAYS = "A check fails, and no diagnosis says why."


def group_of(kind: str) -> str:
    """Return the group of failures of this kind, without the name of a student's own exception."""
    if kind in SYNTAX:
        return "SyntaxError"
    if kind in SAYS:
        return kind
    known = getattr(builtins, kind, None)
    if isinstance(known, type) and issubclass(known, BaseException):
        return known.__name__
    return "Exception" if kind[:1].isupper() and kind != "Mismatch" else OTHER


def says_of(group: str) -> str:
    """Return a sentence on a group of failures."""
    if group == OTHER:
        return OTHER_SAYS
    if group == "Exception":
        return "The code raises an error."
    return SAYS.get(group) or f"The code raises {group}."
