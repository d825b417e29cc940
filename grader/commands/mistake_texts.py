"""The edits of a mistake as text: what is wrong with them, and how problems show them."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Sequence

from grader.course.known_mistakes import Edit, Mistake, edited

# What follows a problem with a form that makes only some of the `edits`.
PART = (
    "; `edits` means any of these edits, and here only some are made: if only all at once are the "
    "mistake, write them as one list in `forms`"
)


def made_by(form: Sequence[Edit]) -> str:
    """Return the texts that the edits of a form write, on one line."""
    made = " · ".join(" ".join(edit.by.split()) or "(nothing)" for edit in form)
    return textwrap.shorten(made, 100)


def is_part(fault: Mistake, form: Sequence[Edit]) -> bool:
    """Return whether a form makes only some of the `edits`."""
    texts = {each[0] for each in fault.edits}
    is_other = any({edit.replace for edit in form} == {each[0] for each in f} for f in fault.forms)
    return len(form) < len(texts) and {edit.replace for edit in form} <= texts and not is_other


def text_problem(fault: Mistake, solution: str) -> str:
    """Return what is wrong with the texts of a mistake, or nothing."""
    main = next(fault.programs(), ())
    if not main or not all(edit.replace for edit in main):
        return "it has no text to replace"
    for form in fault.programs():
        text, part = edited(solution, form), PART if is_part(fault, form) else ""
        if text is None:
            counts = {edit.replace: solution.count(edit.replace) for edit in form}
            place = next((text for text, count in counts.items() if count != 1), form[-1].replace)
            stands = f"its text stands {counts[place]} times in solution.py, not once"
            return stands if len(form) == 1 else f"{stands}: {place!r}"
        if text == solution:
            return f"it changes nothing{part}"
        try:
            ast.parse(text)
        except SyntaxError as error:
            edits = " and ".join(repr(edit.by) for edit in form)
            return f"with {edits} the solution is no valid Python: {error.msg}{part}"
    for key in ("says", "hint"):
        if not getattr(fault, key).strip():
            return f"its `{key}` is empty"
    return ""
