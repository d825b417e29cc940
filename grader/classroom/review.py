"""The students who need review: each is named with the reason, and the others go on."""

from __future__ import annotations

import os
import sqlite3
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from grader.errors import GraderError

PASSING = (sqlite3.IntegrityError, sqlite3.DataError)  # errors of one row, not of the whole disk


class DamagedRowError(Exception):
    """Stored data about a student is missing or cannot be read."""


class NeedsReview:
    """The reasons why students need review that this run has found; "" is the class."""

    def __init__(self) -> None:
        self.reasons: dict[str, list[str]] = {}

    def add(self, student: str, why: str) -> None:
        """Name a student, with the reason."""
        reasons = self.reasons.setdefault(student, [])
        if why not in reasons:
            reasons.append(why)

    @contextmanager
    def errors_of(self, student: str) -> Iterator[None]:
        """Record an error in the block as a reason to review `student`, and go on with the others.

        An error that concerns everybody, such as a full disk, still ends the run.
        """
        try:
            yield
        except GraderError:
            raise
        except DamagedRowError as error:
            self.add(student, str(error))
        except Exception as error:
            if isinstance(error, sqlite3.Error) and not isinstance(error, PASSING):
                raise
            if os.environ.get("GRADER_DEBUG"):
                traceback.print_exc()
            self.add(student, f"the grader failed here ({type(error).__name__}: {error})"[:300])

    def lines(self, named: Callable[[str], str] = str) -> Iterator[str]:
        """Yield a line for each student and reason; `named` puts a name beside an id."""
        for student, reasons in sorted(self.reasons.items()):
            for why in reasons:
                yield f"{named(student)}: {why}; needs review" if student else why
