"""What is kept of a program holds until its code changes."""

from __future__ import annotations

import pytest

from grader.grading.code_text import without_remarks

PROGRAM = '''"""What it is."""

import math  # the root


def scale(x):
    """Return x by its root."""
    # No axis.
    text = """
    # not a remark

    and not "one" either"""
    return (
        x  # the scores

        / math.sqrt(len(text))
    )
'''
BARE = '''import math
def scale(x):
    text = """
    # not a remark

    and not "one" either"""
    return (
        x
        / math.sqrt(len(text))
    )
'''


def test_remarks_and_blank_lines_are_no_code() -> None:
    assert without_remarks(PROGRAM) == BARE
    assert without_remarks(BARE) == BARE


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    # not a remark\n", "    # a remark\n"),
        ("    # not a remark\n\n", "    # not a remark\n"),
        ("math.sqrt", "math.cbrt"),
        ("    return (", "return ("),
        ("x  # the scores\n\n", "x + 1  # the scores\n"),
    ],
)
def test_everything_else_is(old: str, new: str) -> None:
    assert old in PROGRAM
    assert without_remarks(PROGRAM.replace(old, new)) != BARE


@pytest.mark.parametrize("text", ["", "x = (", "  x\n y", "\0", "'''", "# alone", "(" * 5000])
def test_a_text_that_is_no_program_is_kept_as_it_is_or_has_no_code(text: str) -> None:
    assert without_remarks(text) in (text, "")
