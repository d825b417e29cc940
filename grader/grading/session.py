"""Starting a grader: the only place that knows in which order torch, workers and pytest start.

Imports no torch at its top, so that a command can start what runs workers first.
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
    """Collect the suites of `names` once and return what `body` makes of the warm `Grader`.

    Without `workers`, what it grades runs in this process: only programs of the course's own may.

    A student's own checks keep the `trainings` of their code in `.grader/`.

    Raises `RequestError` if code would run here that nobody has reviewed.
    """
    if not course.trusted:
        raise InternalError(f"the code of {course.root} must not run in this process")
    course.refuse_unreviewed(names)
    if workers is not None:
        workers.start()
        if any(course[name].training for name in names):
            workers.prepare_training()
    # A process beside this one imports torch while these lines import it in this one.
    from grader.grading.grader import Grader  # noqa: PLC0415
    from grader.grading.suite import collect_suites  # noqa: PLC0415

    with _held(course) as held:
        return collect_suites(held, names, lambda suite: body(Grader(suite, workers, trainings)))


@contextlib.contextmanager
def _held(course: Course) -> Iterator[Course]:
    """Yield a course that stays as it was when it was recognised, whatever becomes of its files.

    Of one that is known by its contents, these very bytes are run, from a folder of our own.
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
