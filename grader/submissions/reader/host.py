"""Asks a reader: a confined process, which is ended if it takes too long.

Each job has a reader of its own, except the attempts of a class: see `class_reader`.

Whatever a reader does, it can cost only the submission that it reads. If this machine is at fault,
for example with a full disk, a `RequestError` is raised.
"""

from __future__ import annotations

import sys

from grader.course.course import Course
from grader.course.stubs import untouched_text
from grader.sandbox.host.starting import start_method
from grader.submissions.reader import messages
from grader.submissions.reader.exchange import Readers
from grader.submissions.reader.spawned import SpawnedReaders

if sys.platform != "win32":
    from grader.submissions.reader.template import ReaderTemplate

_readers: dict[str, Readers] = {}  # of this process, by how they are started
_named: tuple[Course, tuple[messages.ExerciseNames, ...]] | None = None  # of the last course


def readers() -> Readers:
    """Return the readers of this process, which start when they are first asked."""
    method = start_method()
    if method not in _readers:
        _readers[method] = _new_readers()
    return _readers[method]


def _new_readers() -> Readers:
    if sys.platform != "win32" and start_method() == "fork":
        return ReaderTemplate()
    return SpawnedReaders()


def exercise_names(course: Course) -> tuple[messages.ExerciseNames, ...]:
    """Return a reader's data about a course; its stubs are made once for a class."""
    global _named
    if _named is None or _named[0] is not course:
        _named = (
            course,
            tuple(
                messages.ExerciseNames(each.name, each.implements, untouched_text(each))
                for each in course.exercises
            ),
        )
    return _named[1]
