"""A program's texts are loaded as modules, next to those of other programs."""

from __future__ import annotations

import traceback

from grader.sandbox.program import Program
from grader.sandbox.wire import Source


def raising(text: str) -> Program:
    """A program whose module `part` has a function `ask` of two lines."""
    return Program({"part": Source("part.py", f"def ask():\n    {text}\n")})


def last_line(program: Program) -> str | None:
    """The line that a traceback shows of what `ask` raises."""
    module = program.load("part")
    try:
        with program.active():
            module.ask()
    except ZeroDivisionError as error:
        return traceback.extract_tb(error.__traceback__)[-1].line
    raise AssertionError("nothing was raised")


def test_a_traceback_shows_the_lines_of_the_program_that_ran() -> None:
    """Files of several programs have the same name, as those of many solutions do."""
    one, other = raising("raise ZeroDivisionError"), raising("return 1 / 0")
    assert last_line(one) == "raise ZeroDivisionError"
    assert last_line(other) == "return 1 / 0"
    assert last_line(one) == "raise ZeroDivisionError"
