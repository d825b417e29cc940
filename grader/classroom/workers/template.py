"""The template process: warms up once, then forks grading processes that share its memory.

    python -m grader.classroom.workers.template FD PARENT

`grader.classroom.workers.pool` talks to it through the socket FD; it ends with the process PARENT.
"""

from __future__ import annotations

import contextlib
import gc
import os
import socket
import sys
import time
from typing import TYPE_CHECKING

from grader.classroom.workers import messages
from grader.course.course import Course, load_course
from grader.course.stubs import untouched_text
from grader.errors import CourseError, GraderError, RequestError, WorkerLost
from grader.grading.session import with_grader
from grader.processes import channel
from grader.processes.forking import keep_to
from grader.sandbox.confinement.layers import die_with
from grader.sandbox.confinement.limits import Confinement
from grader.sandbox.host.zygote import Zygote
from grader.submissions.submission import Submission

if TYPE_CHECKING:
    from grader.grading.grader import Grader


def serve(orders: socket.socket) -> None:
    """Warm up, then fork a grading process for every socket that comes, until none can come."""
    setup = messages.decode_setup(channel.receive(orders.recv))
    try:
        course = load_course(setup.course, setup.chosen)
        if course.hash != setup.hash:
            message = "the course has changed while it was graded"
            raise RequestError(message, "run the same command again")
        with Zygote(Confinement(setup.isolation)) as zygote:

            def fork_on_order(grader: Grader) -> None:
                _refuse_other_points(grader)
                grader.check_confinement()
                _warm_up(grader, course)
                messages.send(orders, messages.Ready(os.getpid()))
                while zygote.await_readable(orders):
                    try:
                        order, descriptor = channel.receive_passed(orders)
                    except EOFError:
                        break
                    core = messages.decode_order(order).core
                    pid = _fork(descriptor, grader, zygote, core, orders)
                    os.close(descriptor)
                    messages.send(orders, messages.Ready(pid))

            with_grader(course, course.names, zygote, fork_on_order)
    except GraderError as error:
        messages.send(orders, messages.Failed.of(error))


def _refuse_other_points(grader: Grader) -> None:
    """Raise `CourseError` if the tests of an exercise are not worth the exercise's points."""
    for exercise in grader.course.exercises:
        worth = grader.suite.points_of(exercise.name)
        if worth != exercise.points:
            says = f"its tests are worth {worth} points, and the exercise {exercise.points}"
            raise CourseError(f"{exercise.name}: {says}", "grader validate")


def _warm_up(grader: Grader, course: Course) -> None:
    """Grade stubs and solutions here, so that the grading processes share the loaded modules.

    A test that a solution fails is broken, and no student's mistake.

    The known mistakes' answers to the cases would take much longer. So grading processes compute
    them, and only for exercises in which they find a mistake.
    """
    quick = [each.name for each in course.exercises if each.training is None]
    stubs = {each.name: untouched_text(each) for each in course.exercises}
    grader.grade(Submission("warm", stubs), quick, seed=0)
    if course.suites == "hidden":
        solutions = {each.name: each.read("solution.py") for each in course.exercises}
        for result in grader.grade(Submission("warm", solutions), quick, seed=0).results:
            grader.note_reference(result)


def _fork(
    descriptor: int, grader: Grader, shared: Zygote, core: int | None, orders: socket.socket
) -> int:
    """Fork a grading process that takes its jobs through a socket; return its pid."""
    control = shared.share()
    parent = os.getpid()
    gc.freeze()
    pid = os.fork()
    if pid:
        control.close()
        return pid
    code = 1
    try:
        die_with(parent)
        orders.close()
        keep_to(core)
        zygote = Zygote(shared.confinement, control, core)
        _grade_jobs(socket.socket(fileno=descriptor), grader.with_workers(zygote), zygote)
        code = 0
    finally:
        os._exit(code)


def _grade_jobs(connection: socket.socket, grader: Grader, zygote: Zygote) -> None:
    with contextlib.suppress(EOFError, ConnectionError):
        while zygote.await_readable(connection):
            job = messages.decode_job(channel.receive(connection.recv))
            answer: messages.Answer | messages.Failed
            try:
                answer = _graded(grader, job)
            except WorkerLost as error:  # the run tries the job again
                answer = messages.Lost(error.message)
            except GraderError as error:
                answer = messages.Failed.of(error)
            if zygote.has_died:
                return  # that ended the worker as well, which is not the student's fault
            messages.send(connection, answer)


def _graded(grader: Grader, job: messages.Job) -> messages.GradedJob:
    start = time.perf_counter()
    grading = grader.grade(
        job.submission, job.names, job.seed, tries=1, naming_seed=job.naming_seed
    )
    results = {result.name: messages.encode_result(result) for result in grading.results}
    return messages.GradedJob(results, grading.confinement, time.perf_counter() - start)


if __name__ == "__main__":
    die_with(int(sys.argv[2]))
    serve(socket.socket(fileno=int(sys.argv[1])))
