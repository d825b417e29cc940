"""Where one submission is examined: its worker, its time, and the record of its calls."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from grader.errors import StudentFailure
from grader.report import Frame
from grader.sandbox import wire
from grader.sandbox.host.worker import Connection

MAX_PRINTED = 8000  # characters of a test's print output that are kept


@dataclass(frozen=True)
class Limits:
    """Seconds that one call, and all calls of one exercise together, may take."""

    call_seconds: float = 5.0
    exercise_seconds: float = 30.0


@dataclass(frozen=True)
class Recorded:
    """One request and its answer."""

    request: Any
    answer: wire.Answer | None  # None: the call was quiet, or the worker was lost


@dataclass(frozen=True)
class Record:
    """What one test asked of the student's code, so that it can be replayed on other solutions.

    `seed` is torch's at the start, `module` the handle of the student's module (0: not loaded).
    """

    seed: int
    module: int
    calls: tuple[Recorded, ...]


@dataclass(frozen=True)
class Subject:
    """What is examined: the module `exercise` of a program made of `sources`, within limits."""

    exercise: str
    program: str
    sources: Mapping[str, wire.Source]
    limits: Limits = Limits()
    forbidden: tuple[str, ...] = ()


class Desk:
    """Where one submission is examined: its worker, its time, and the record of its calls.

    `connect` gives a fresh worker. Programs are loaded when first asked for, once a worker; one
    that does not load fails every test with the same error, without being run again.
    """

    def __init__(self, connect: Callable[[], Connection]) -> None:
        self._connect = connect
        self._connection: Connection | None = None
        self._loaded: dict[tuple[str, str], wire.Handle] = {}
        self._broken: dict[tuple[str, str], StudentFailure] = {}
        self._left: dict[str, float] = {}
        self._mark = time.monotonic()  # up to here, time has been charged to its exercise
        self._lost = ""
        self._number = 0
        self._seed = 0
        self._pending = False
        self.called = False
        self.layers: tuple[str, ...] = ()
        self._calls: list[Recorded] = []
        self._module = 0
        self.printed: list[str] = []

    def begin(self, seed: int) -> None:
        """A new test: handles of the last one are gone, torch is seeded, the record is empty."""
        self._seed = seed
        self._lost = ""
        self._mark = time.monotonic()
        self._calls, self._module, self.printed, self.called = [], 0, [], False
        if self._pending and self._connection is not None:
            self._connection.discard()
        self._pending = False
        self.post(wire.Begin(seed))

    @property
    def record(self) -> Record:
        """The calls of the test so far."""
        return Record(self._seed, self._module, tuple(self._calls))

    def reseed(self, seed: int) -> None:
        """Seed torch's generator in the worker, in the middle of a test."""
        request = wire.Seed(seed)
        self._note(request, None)
        self.post(request)

    def post(self, request: wire.Quiet) -> None:
        """Send the worker, if there is one, a request that has no answer."""
        if self._connection is not None:
            self._connection.post(request)

    def tell(self, request: wire.Call | wire.Adopt) -> None:
        """Have a quiet call made; should it fail, the next answer says so."""
        self._note(request, None)
        self._pending = True
        self.post(request)

    def settle(self, subject: Subject) -> None:
        """Wait for quiet calls that no answer has followed: their failure belongs to this test."""
        if self._pending and self._connection is not None:
            self.ask(subject, wire.Sync(self.number()))

    def _note(self, request: Any, answer: wire.Answer | None) -> None:
        self.called = self.called or isinstance(request, wire.Call)
        self._calls.append(Recorded(request, answer))

    def load(self, subject: Subject) -> wire.Handle:
        """The handle of the student's module, loaded if it was not yet."""
        if self._lost:
            raise StudentFailure("Crash", self._lost)
        key = (subject.program, subject.exercise)
        if key in self._broken:
            raise self._broken[key].again()
        if self._connection is None:
            connection = self._connect()
            try:
                self.layers = connection.layers
            except BaseException:
                connection.close()
                raise
            connection.post(wire.Begin(self._seed))
            self._connection = connection
        if key not in self._loaded:
            try:
                reply = self.ask(
                    subject,
                    wire.Load(
                        self.number(), subject.program, subject.exercise, dict(subject.sources)
                    ),
                )
            except StudentFailure as failure:
                failure.loading = True
                self._broken[key] = failure
                raise
            if not isinstance(reply.value, wire.Handle):
                raise StudentFailure("Protocol", "your code interfered with the grader")
            self._loaded[key] = reply.value
        self._module = self._loaded[key].id
        return self._loaded[key]

    def number(self) -> int:
        """A number no other request of this desk has."""
        self._number += 1
        return self._number

    def ask(self, subject: Subject, request: Any) -> wire.Reply:
        """The worker's reply to `request`, or a `StudentFailure`; both are recorded."""
        if self._connection is None:
            raise StudentFailure("Crash", self._lost or "your code is no longer running")
        limits = subject.limits
        left = self._charge(subject)
        if left <= 0:
            raise StudentFailure(
                "Timeout", f"the {limits.exercise_seconds:g} seconds of this exercise are used up"
            )
        self._pending = False
        answer = None
        try:
            answer = self._connection.request(request, min(limits.call_seconds, left))
        except BaseException as error:
            self._lost = "your code is no longer running"
            if isinstance(error, StudentFailure):
                self._lost = error.message
            self._drop()
            raise
        finally:
            self._charge(subject)
            self._note(request, answer)
        room = MAX_PRINTED - sum(map(len, self.printed))
        if answer.printed and room > 0:
            self.printed.append(answer.printed[:room])
        if isinstance(answer, wire.Failure):
            raise _failure(answer)
        return answer

    def _charge(self, subject: Subject) -> float:
        """Seconds that are left to the exercise; what a test does with an answer counts as well."""
        now = time.monotonic()
        left = self._left.get(subject.exercise, subject.limits.exercise_seconds)
        left -= now - self._mark
        self._left[subject.exercise], self._mark = left, now
        return left

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        self._loaded.clear()
        if connection is not None:
            connection.close()

    def close(self) -> None:
        """End the worker."""
        self._drop()


def _failure(answer: wire.Failure) -> StudentFailure:
    frames = tuple(Frame(f.file, f.line, f.source, f.column, f.function) for f in answer.frames)
    failure = StudentFailure(answer.kind, answer.message, frames, tuple(answer.mro))
    failure.operations = answer.operations
    return failure
