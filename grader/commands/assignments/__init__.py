"""Assignment notebooks of other graders → the files of exercises.

A format (`nbgrader`, `otter`) knows how a grader marks cells, and makes `Question`s from them. The
other modules turn a question of any format into files. No code of a notebook runs.
"""

from grader.commands.assignments import nbgrader, otter
from grader.commands.assignments.exercises import Imported, NewExercise, exercises_of

__all__ = ["Imported", "NewExercise", "exercises_of", "nbgrader", "otter"]
