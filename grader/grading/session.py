"""Starts a grader: the only module that knows in which order torch, workers and pytest start.

Imports no torch at its top, so that a command can start the source of workers first.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from grader.course.course import Course
from grader.errors import GraderError, InternalError
from grader.sandbox.host.source import WorkerSource
from grader.scratch import fill, scratch_folder

if TYPE_CHECKING:
    from grader.grading.grader import Grader
    from grader.grading.kept_trainings import Keeps

T = TypeVar("T")


def with_grader(
    course: Course,
    names: Sequence[str],
    workers: WorkerSource | None,
    body: Callable[[Grader], T],
    *,
    trainings: Keeps = "nothing",
) -> T:
    """Collect the suites of `names` once, and return the result of `body` for the warm `Grader`.

    Without `workers`, it grades in this process, which only the course's own programs may do.

    A student's own checks store the `trainings` of their code in `.grader/`.

    Raises `RequestError` if unreviewed code would run here.
    """
    if not course.trusted:
        raise InternalError(f"the code of {course.root} must not run in this process")
    course.refuse_unreviewed(names)
    if workers is not None:
        workers.start()
        if any(course[name].training for name in names):
            workers.prepare_training()
    # Not at the top: while these lines import torch, a process beside this one imports it as well.
    from grader.grading.grader import Grader  # noqa: PLC0415
    from grader.grading.suite import collect_suites  # noqa: PLC0415

    with _held(course) as held:
        return collect_suites(held, names, lambda suite: body(Grader(suite, workers, trainings)))


@contextlib.contextmanager
def _held(course: Course) -> Iterator[Course]:
    """Yield a course in the state in which it was recognised, even if its files change.

    If it is known by its contents, these very bytes run, from a folder of our own.
    """
    if course.contents is None:
        yield course
        return
    with scratch_folder("held") as folder:
        held = Path(os.path.realpath(folder))
        fill(held, course.contents)
        try:
            yield replace(course, held=held)
        except GraderError as error:
            message = error.message.replace(str(held), str(course.root))
            error.message, error.args = message, (message,)
            raise
