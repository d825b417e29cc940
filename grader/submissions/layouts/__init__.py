"""The attempts of a whole class, in the folder layout of the platform they come from.

Files are listed and copied, and nothing is run, not even what the configuration of a clone names.
This package knows nothing of grading, of rosters or of the place of results.
"""

from grader.submissions.layouts.attempt import Attempt, AttemptPart, FoundAttempts, LeftOut
from grader.submissions.layouts.collection import collect, unread
from grader.submissions.layouts.git import before_due
from grader.submissions.layouts.recognise import LAYOUTS, find_attempts, open_submissions

__all__ = [
    "LAYOUTS",
    "Attempt",
    "AttemptPart",
    "FoundAttempts",
    "LeftOut",
    "before_due",
    "collect",
    "find_attempts",
    "open_submissions",
    "unread",
]
