"""The process that warms up once and forks slots: each grades one submission after another.

    python -m grader.classroom.workers.template FD     started by `grader.classroom.workers.pool`, which talks to it through FD

Suites are collected and everything lazy is loaded here, once; a slot is a fork, so that a second
one costs little memory, and a lost one little time. All of it is the trusted side.
"""

from __future__ import annotations

import contextlib
import gc
import os
import socket
import sys
import time
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING

from grader.classroom.workers import messages as jobs
from grader.course.course import Course, load_course
from grader.errors import GraderError, RequestError
from grader.course.faults import load_faults
from grader.sandbox.confinement.layers import Confinement, die_with
from grader.sandbox.host.zygote import Zygote
from grader.submissions.submission import Submission

if TYPE_CHECKING:
    from grader.grading.grader import Slot


def serve(orders: socket.socket) -> None:
    """Warm up, then fork a slot for every socket that comes, until nobody is left to send one."""
    told = Connection(os.dup(orders.fileno()))
    setup = jobs.decode_setup(told.recv_bytes())
    try:
        course = load_course(setup.course)
        if course.hash != setup.hash:
            raise RequestError(
                "the course has changed while it was graded", "run the same command again"
            )
        with Zygote(Confinement(setup.isolation)) as zygote:
            from grader.grading.grader import with_slot  # imports torch while the zygote does

            def body(slot: Slot) -> None:
                slot.try_confinement()
                _warm(slot, course)
                jobs.send(told, jobs.Ready(os.getpid()))
                while zygote.outlasts(orders):
                    order, fds, _, _ = socket.recv_fds(orders, jobs.MAX_ORDER, 1)
                    if not fds:
                        break
                    pid = _fork(fds[0], slot, jobs.decode_order(order).core, orders, told)
                    os.close(fds[0])
                    jobs.send(told, jobs.Ready(pid))

            with_slot(course, course.names, zygote, body)
    except GraderError as error:
        jobs.send(told, jobs.Failed.of(error))


def _warm(slot: Slot, course: Course) -> None:
    """Grade what is right and what is wrong, so that no slot has to load what that needs."""
    if course.suites == "public":
        stubs = {exercise.name: exercise.stub for exercise in course.exercises}
        slot.results(Submission("warm", stubs), course.names, seed=0)
        return
    right = {exercise.name: exercise.read("solution.py") for exercise in course.exercises}
    slot.results(Submission("warm", right), course.names, seed=0)
    for exercise in course.exercises:
        for fault in load_faults(exercise)[:1]:
            wrong = {**right, exercise.name: fault.apply(right[exercise.name])}
            slot.results(Submission("warm", wrong), [exercise.name], seed=0)


def _fork(fd: int, slot: Slot, core: int | None, *ours: socket.socket | Connection) -> int:
    """Fork a slot that takes its jobs through `fd`; returns its process."""
    control = slot.zygote.share()
    parent = os.getpid()
    gc.freeze()
    pid = os.fork()
    if pid:
        control.close()
        return pid
    code = 1
    try:
        die_with(parent)
        for end in ours:
            end.close()
        if core is not None:
            with contextlib.suppress(OSError):  # a core may be gone by now
                os.sched_setaffinity(0, {core})
        _slot(Connection(fd), slot.beside(Zygote(slot.zygote.confinement, control, core)))
        code = 0
    finally:
        os._exit(code)


def _slot(connection: Connection, slot: Slot) -> None:
    """Grade every job that comes, until nobody is left to send one, or the zygote is gone."""
    with contextlib.suppress(EOFError, ConnectionError):
        while slot.zygote.outlasts(connection):
            job = jobs.decode_job(connection.recv_bytes())
            answer: jobs.Graded | jobs.Failed
            try:
                answer = _graded(slot, job)
            except GraderError as error:
                answer = jobs.Failed.of(error)
            if slot.zygote.has_died:
                return  # it took the worker with it, which the student is not to blame for
            jobs.send(connection, answer)


def _graded(slot: Slot, job: jobs.Job) -> jobs.Graded:
    start = time.perf_counter()
    found = slot.results(job.submission, job.names, job.seed)
    return jobs.Graded(
        {result.name: jobs.encode_result(result) for result in found.results},
        found.confinement,
        time.perf_counter() - start,
    )


if __name__ == "__main__":
    die_with(int(sys.argv[2]))
    serve(socket.socket(fileno=int(sys.argv[1])))
