"""The types of the fixtures that run commands and grade files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from grader.course.course import Course
from grader.report import Report
from grader.submissions.submission import Submission

if TYPE_CHECKING:  # it imports torch
    from grader.grading.kept_trainings import Keeps


@dataclass(frozen=True)
class Said:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str


class Cli(Protocol):
    """Runs `grader …` in this process."""

    def __call__(self, *arguments: object) -> Said: ...


class Grade(Protocol):
    """Grades files (exercise name to text) in a course."""

    def __call__(
        self,
        course: Course,
        files: Mapping[str, str] | Submission,
        *names: str,
        seed: int = 7,
        trainings: Keeps = "of this seed",
    ) -> Report: ...
