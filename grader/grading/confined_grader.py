"""Grades with an untrusted course, whose code runs in a process confined like student code.

That process has only the course's files, no secret, and only a socket to this process, which
starts the workers for it. Its answer is limited in bytes and in time, decoded into a report, and
cleaned. The process can be wrong about the work that it grades, but harm nothing else.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from grader.course.course import Course
from grader.errors import CourseError, GraderError
from grader.grading import confined_messages as messages
from grader.grading.reporter import versions
from grader.processes import channel
from grader.processes.child import (
    ONE_THREAD,
    ChildProcess,
    clean_environment,
    module_command,
)
from grader.report import ExerciseResult, Person, Report, clean, without_controls
from grader.sandbox.confinement.layers import LAYERS
from grader.sandbox.confinement.limits import MIB, Confinement
from grader.sandbox.host.source import WorkerSource
from grader.scratch import ScratchFolder, fill
from grader.submissions.submission import Submission

if TYPE_CHECKING:
    from grader.grading.grader import OnProgress

PACKAGE = Path(__file__).parents[1]  # packages from which suites import
MODULE = "grader.commands.confined_process"
START_SECONDS = 120.0  # to start, imports included, on a busy machine
MOST_POINTS = 1000  # tests of one exercise, with those that a student has added
MOST_SECONDS = 600.0  # at most for one exercise, whatever the course says
SEND_SECONDS = 20.0
BEAT = 0.1  # seconds between two looks at whether somebody wants this to stop
MAX_WORKERS = 8  # at the same time
MAX_GRACE = 1.0  # seconds
MAX_NUMBER = 2**53  # the largest number in a report
MAX_TEXT = 2**16  # characters of one text in a report
MAX_LISTED = 1000  # entries of one list in a report
MAX_NOTE = 120  # characters
NOTE_SECONDS = 0.2  # between two notes on one exercise


def why_not_here() -> str:
    """Return why this machine cannot confine a course; empty if it can."""
    return next((f"{each.name}: {reason}" for each in LAYERS if (reason := each.missing())), "")


@dataclass(frozen=True)
class ConfinedGrading:
    """The report on one submission."""

    report: Report


class ConfinedGrader:
    """Grades one submission after another with the files of a course, by their paths in it.

    Only these bytes of the course are read. The first report carries the `note`.
    """

    def __init__(
        self,
        course: Course,
        files: Mapping[str, bytes],
        names: Sequence[str],
        workers: WorkerSource,
        note: str = "",
    ) -> None:
        self.workers = workers
        self._course, self._names, self._note = course, tuple(names), note
        self._pids: set[int] = set()
        self._process: ChildProcess | None = None
        self._is_confined = False  # it has not read the course before that
        self._has_prepared = False
        self._scratch = ScratchFolder("course", outlived=True)  # the folder may be a teacher's
        root = Path(os.path.realpath(self._scratch.path))
        self._folder, self._private = root / "course", root / "private"
        try:
            fill(self._folder, files)
            self._start()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> ConfinedGrader:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()

    def grade(
        self,
        submission: Submission,
        names: Sequence[str],
        seed: int,
        on_exercise: OnProgress = lambda name, note="": None,
    ) -> ConfinedGrading:
        """Grade the exercises `names` of one submission; call `on_exercise` with the progress.

        Raises `CourseError` if the course's code does not end, or makes no report.
        """
        seconds = sum(min(self._course[name].most_seconds, MOST_SECONDS) for name in names)
        try:
            self._start()
            if not self._is_confined:
                self._await_confinement()
            self._send(messages.Grade(submission, tuple(names), seed))
            graded = self._await(START_SECONDS + seconds, on_exercise)
            report = self._report(graded.report, names)
        except BaseException:
            self._end()  # else its next message would be taken for the answer to another order
            raise
        report = replace(
            report,
            submission=submission.name,
            seed=seed,
            notes=(*filter(None, [self._note]), *report.notes),
            hashes={**report.hashes, "submission": submission.hash},
        )
        self._note = ""
        return ConfinedGrading(report)

    def close(self) -> None:
        """End the process and its workers, and remove the copy of the course."""
        self._end()
        self._scratch.close()

    def _start(self) -> None:
        """Start the process unless it runs; return while it still imports."""
        if self._process is not None:
            return
        self._process = ChildProcess(
            module_command(MODULE), env=clean_environment(**ONE_THREAD), seconds=SEND_SECONDS
        )
        confinement = Confinement(
            "confined",
            memory_bytes=2048 * MIB,
            cpu_seconds=3600,
            file_bytes=MIB,  # the end of its error stream
            readable=(os.fsencode(self._folder), os.fsencode(PACKAGE)),
            makes_folders=True,
            hosts_workers=True,
        )
        private, course = str(self._private), str(self._folder)
        self._send(
            messages.ConfinedSetup(confinement, private, course, self._course.chosen, self._names)
        )

    def _send(self, message: msgspec.Struct, passed: socket.socket | None = None) -> None:
        assert self._process is not None
        try:
            channel.send(self._process.orders, messages.encode(message), passed)
        except OSError:
            raise self._broken("ended") from None

    def _await_confinement(self) -> None:
        """Wait until the process is confined, then remove its folder for writing."""
        message = self._receive(time.monotonic() + START_SECONDS)
        if not isinstance(message, messages.Confined):
            raise self._broken("was not confined")
        self._private.rmdir()
        self._is_confined = True
        self._send(messages.Done())

    def _await(self, seconds: float, on_exercise: OnProgress) -> messages.Graded:
        """Carry out the process's requests until it has graded; raise its failure."""
        end = time.monotonic() + seconds
        noted: dict[str, float] = {}  # the time of each exercise's last note
        while True:
            message = self._receive(end)
            match message:
                case messages.Graded():
                    return message
                case messages.CourseFailed():
                    raise self._failure(message)
                case messages.StartWorker() if len(self._pids) < MAX_WORKERS:
                    self._hand_over_worker()
                case messages.InterruptWorker(pid) if pid in self._pids:
                    self.workers.interrupt(pid)
                    self._send(messages.Done())
                case messages.ReapWorker(pid, grace) if pid in self._pids:
                    self._pids.remove(pid)
                    grace = min(max(grace, 0.0), MAX_GRACE)
                    self._send(messages.WorkerEnded(self.workers.reap(pid, grace)))
                case messages.PrepareTraining():
                    if not self._has_prepared:
                        self._has_prepared = True
                        self.workers.prepare_training()
                case messages.Note(name, text) if name in self._names:
                    now = time.monotonic()
                    if now - noted.get(name, -NOTE_SECONDS) >= NOTE_SECONDS:  # others are dropped
                        noted[name] = now
                        on_exercise(name, " ".join(clean(text).split())[:MAX_NOTE])
                case _:
                    raise self._broken("asked for something that it may not have")

    def _hand_over_worker(self) -> None:
        connection, pid = self.workers.start_worker()
        self._pids.add(pid)
        with connection:
            self._send(messages.WorkerStarted(pid, int(connection.family)), connection)

    def _receive(self, end: float) -> messages.FromProcess:
        """Return the next message of the process; what it sends, and when, is up to it."""
        assert self._process is not None
        orders = self._process.orders

        def wait() -> None:
            while True:
                self.workers.on_wait()
                if time.monotonic() > end:
                    raise self._broken("did not come to an end in time")
                if select.select([orders], [], [], BEAT)[0]:
                    return

        try:
            body = channel.receive(orders.recv, messages.MAX_MESSAGE, wait)
            message: messages.FromProcess = messages.decode_message(body)
        except (EOFError, OSError):
            raise self._broken("ended") from None
        except channel.MessageTooLarge:
            raise self._broken("sent too much") from None
        except (msgspec.MsgspecError, ValueError, RecursionError):
            raise self._broken("sent something that is not a message") from None
        return message

    def _report(self, data: bytes, names: Sequence[str]) -> Report:
        """Return a report that the process has written, without anything a report cannot hold."""
        try:
            report = msgspec.json.decode(data, type=Report)  # bounded, because `data` is
            plain = self._cleaned(msgspec.to_builtins(report))
            report = msgspec.convert(plain, Report)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            raise self._broken("gave no report") from None
        if [result.name for result in report.exercises] != list(names):
            raise self._broken("gave a report on other exercises")
        for result in report.exercises:
            self._check_points(result)
        return replace(
            report,
            exercises=tuple(replace(result, adjustment=None) for result in report.exercises),
            suites=self._course.suites,
            versions=versions(),
            person=Person(),
            attempt=1,
            submitted="",
            due="",
            flags=(),
            mark=None,
        )

    def _check_points(self, result: ExerciseResult) -> None:
        """Raise `CourseError` unless the points of a result are possible for its exercise."""
        worth = self._course[result.name].points
        if self._course.suites == "public":  # students may add tests to their own copy
            worth = max(worth, min(result.max_points, MOST_POINTS))
        if result.max_points != worth:
            says = f"its tests are worth {result.max_points} points, exercise.toml says {worth}"
            where = f"{result.name}/test_hidden.py of {self._course.root}"
            raise CourseError(f"{where}: {says}", "grader validate")
        parts = [(test.points, test.max_points) for test in result.tests]
        parts += [(charge.points, worth) for charge in result.charges]
        parts += [(result.points, worth), (result.given_back, worth)]
        if not all(0 <= points <= most <= worth for points, most in parts):
            raise self._broken("gave more points than there are")

    def _cleaned(self, value: Any) -> Any:
        match value:
            case str() if len(value) <= MAX_TEXT:
                return self._in_place(value)
            case list() | tuple() if len(value) <= MAX_LISTED:
                return [self._cleaned(each) for each in value]
            case dict() if len(value) <= MAX_LISTED:
                return {self._in_place(key): self._cleaned(each) for key, each in value.items()}
            case float() | None:
                return value
            case int() if abs(value) <= MAX_NUMBER:
                return value
        raise ValueError("a report holds nothing like that")

    def _in_place(self, text: str) -> str:
        """Return a text with the real folder of the course in place of the copy's."""
        return without_controls(text).replace(str(self._folder), str(self._course.root))

    def _failure(self, failed: messages.CourseFailed) -> GraderError:
        error = failed.to_error()
        message, remedy = (clean(self._in_place(text)) for text in (error.message, error.remedy))
        return type(error)(f"the course in {self._course.root}: {message}", remedy)

    def _broken(self, how: str) -> CourseError:
        """Return the error for a process that the course's code has broken."""
        last = clean(self._process.last_error_line()) if self._process is not None else ""
        said = f" ({last})" if last else ""
        return CourseError(
            f"the process that runs the code of {self._course.root} {how}{said}",
            "grader init another-folder   writes the course as it should be",
        )

    def _end(self) -> None:
        """End the process and its workers; the next `grade` starts another one."""
        if self._process is not None:
            self._process.close()
            with contextlib.suppress(OSError):
                self._private.rmdir()
        self._process, self._is_confined = None, False
        while self._pids:
            self.workers.reap(self._pids.pop(), 0.0)
