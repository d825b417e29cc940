"""Downloaded gradebooks of Canvas and Moodle with our marks in them, and no other byte changed."""

from grader.classroom.gradebooks.canvas import fill_canvas
from grader.classroom.gradebooks.filling import Filled
from grader.classroom.gradebooks.moodle import fill_moodle
from grader.classroom.gradebooks.people import Graded

__all__ = ["Filled", "Graded", "fill_canvas", "fill_moodle"]
