"""Gradebooks downloaded from Canvas and Moodle, with one column of marks filled in.

Every other byte of the file stays the same. This room turns bytes and marks into bytes; it knows
neither the ledger nor files.
"""

from grader.classroom.gradebooks.canvas import fill_canvas
from grader.classroom.gradebooks.fill import Filled
from grader.classroom.gradebooks.match import StudentMark
from grader.classroom.gradebooks.moodle import fill_moodle

__all__ = ["Filled", "StudentMark", "fill_canvas", "fill_moodle"]
