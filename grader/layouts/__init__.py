"""What was handed in for a class, in the layout of whatever platform it was downloaded from.

Files are listed and copied here and never run; nothing of a clone's configuration is obeyed.
"""

from grader.layouts.gather import collect, gathered
from grader.layouts.handed import Attempt, HandedIn, LeftOut, Part
from grader.layouts.survey import LAYOUTS, opened, survey

__all__ = [
    "LAYOUTS",
    "Attempt",
    "HandedIn",
    "LeftOut",
    "Part",
    "collect",
    "gathered",
    "opened",
    "survey",
]
