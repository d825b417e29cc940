"""What was handed in for a class, in the layout of whatever platform it was downloaded from.

Files are listed and copied here and never run; nothing of a clone's configuration is obeyed.
"""

from grader.submissions.layouts.collect import collect, gathered
from grader.submissions.layouts.attempt import Attempt, HandedIn, LeftOut, Part
from grader.submissions.layouts.recognise import LAYOUTS, opened, survey

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
