"""Downloaded gradebooks of Canvas and Moodle with our marks in them, and no other byte changed."""

from grader.gradebooks.canvas import fill_canvas
from grader.gradebooks.filling import Filled
from grader.gradebooks.moodle import fill_moodle
from grader.gradebooks.people import Graded

__all__ = ["Filled", "Graded", "fill_canvas", "fill_moodle"]
