"""Gradebooks downloaded from Canvas and Moodle, with columns of marks filled in.

Every other byte of the file stays the same. This package turns bytes and marks into bytes; it
knows neither the ledger nor files.
"""

from grader.classroom.gradebooks.canvas import fill_canvas
from grader.classroom.gradebooks.fill import Filled
from grader.classroom.gradebooks.match import ExercisePoints, StudentMark
from grader.classroom.gradebooks.moodle import CommentColumn, fill_moodle

__all__ = [
    "CommentColumn",
    "ExercisePoints",
    "Filled",
    "StudentMark",
    "fill_canvas",
    "fill_moodle",
]
