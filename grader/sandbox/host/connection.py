"""The connection of one submission to its worker: loaded programs, time left, log of calls."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from grader.errors import StudentFailure
from grader.report import Frame
from grader.sandbox import wire
from grader.sandbox.host.worker import Transport

MAX_PRINTED = 8000  # characters of a test's print output that are kept
LOST = "your code is no longer running"


@dataclass(frozen=True)
class TimeLimits:
    """Seconds that one call may take, and that all calls of one exercise may take together."""

    call_seconds: float = 5.0
    exercise_seconds: float = 30.0


@dataclass(frozen=True)
class CallRecord:
    """One request and its answer."""

    request: Any
    answer: wire.Answer | None  # None if the call was quiet or the worker was lost


@dataclass(frozen=True)
class CallLog:
    """The calls of one test, which can be replayed on other solutions."""

    seed: int  # torch's, at the start of the test
    module: int  # the handle of the student's module; 0 if it was not loaded
    calls: tuple[CallRecord, ...]


@dataclass(frozen=True)
class Subject:
    """The code under test: the module `exercise` of a program made of `sources`."""

    exercise: str
    program: str
    sources: Mapping[str, wire.Source]
    limits: TimeLimits = TimeLimits()
    forbidden: tuple[str, ...] = ()  # patterns of the names that the exercise forbids


class WorkerConnection:
    """The connection of one submission to its worker; a lost worker is replaced in the next test.

    `connect` starts a worker. Each program is loaded once for each worker, when it is first needed.
    A program that fails to load is not run again: it fails every test with the same error.
    """

    def __init__(self, connect: Callable[[], Transport]) -> None:
        self.layers: tuple[str, ...] = ()  # of the worker's confinement
        self.called = False  # whether the test called the student's code
        self.printed: list[str] = []  # by the student's code, in this test
        self.next_id: Callable[[], int] = itertools.count(1).__next__  # for the next request
        self._connect = connect
        self._transport: Transport | None = None
        self._loaded: dict[tuple[str, str], wire.Handle] = {}
        self._broken: dict[tuple[str, str], StudentFailure] = {}
        self._seconds_left: dict[str, float] = {}  # by exercise
        self._charged_until = time.monotonic()
        self._loss = ""  # why this test lost its worker
        self._seed = 0
        self._module = 0
        self._has_quiet_calls = False  # sent, and not yet followed by an answer
        self._calls: list[CallRecord] = []

    def begin(self, seed: int) -> None:
        """Start a test: seed torch, and forget the last test's objects, calls and output."""
        self._seed, self._loss, self._charged_until = seed, "", time.monotonic()
        self._calls, self._module, self.printed, self.called = [], 0, [], False
        if self._has_quiet_calls and self._transport is not None:
            self._transport.discard()
        self._has_quiet_calls = False
        self._post(wire.Begin(seed))

    @property
    def log(self) -> CallLog:
        """The calls of the test so far."""
        return CallLog(self._seed, self._module, tuple(self._calls))

    def reseed(self, seed: int) -> None:
        """Seed torch's generator in the worker within a test."""
        request = wire.Seed(seed)
        self._log_call(request, None)
        self._post(request)

    def send_quiet(self, request: wire.Call | wire.Adopt) -> None:
        """Send a call without waiting; if it fails, the next answer is its failure."""
        self._log_call(request, None)
        self._has_quiet_calls = True
        self._post(request)

    def await_quiet_calls(self, subject: Subject) -> None:
        """Wait for the quiet calls of the test; raise the failure of one, in this test still."""
        if self._has_quiet_calls and self._transport is not None:
            self.ask(subject, wire.Sync(self.next_id()))

    def _post(self, request: wire.Quiet) -> None:
        if self._transport is not None:
            self._transport.post(request)

    def _log_call(self, request: Any, answer: wire.Answer | None) -> None:
        self.called = self.called or isinstance(request, wire.Call)
        self._calls.append(CallRecord(request, answer))

    def load(self, subject: Subject) -> wire.Handle:
        """Return the handle of the student's module; start a worker and load it if necessary."""
        if self._loss:
            raise StudentFailure("Crash", self._loss)
        key = (subject.program, subject.exercise)
        if key in self._broken:
            raise self._broken[key].copy()
        if self._transport is None:
            self._transport = self._start_worker()
        if key not in self._loaded:
            self._loaded[key] = self._load_program(subject)
        self._module = self._loaded[key].id
        return self._loaded[key]

    def _start_worker(self) -> Transport:
        transport = self._connect()
        try:
            self.layers = transport.layers
        except BaseException:
            transport.close()
            raise
        transport.post(wire.Begin(self._seed))
        return transport

    def _load_program(self, subject: Subject) -> wire.Handle:
        sources = dict(subject.sources)
        request = wire.Load(self.next_id(), subject.program, subject.exercise, sources)
        try:
            reply = self.ask(subject, request)
        except StudentFailure as failure:
            failure.loading = True
            self._broken[subject.program, subject.exercise] = failure
            raise
        if not isinstance(reply.value, wire.Handle):
            raise StudentFailure("Protocol", "your code interfered with the grader")
        return reply.value

    def ask(self, subject: Subject, request: Any) -> wire.Reply:
        """Return the worker's reply to `request` and log both. Raises `StudentFailure`."""
        if self._transport is None:
            raise StudentFailure("Crash", self._loss or LOST)
        limits = subject.limits
        left = self._charge(subject)
        if left <= 0:
            message = f"the {limits.exercise_seconds:g} seconds of this exercise are used up"
            raise StudentFailure("Timeout", message)
        self._has_quiet_calls = False
        answer = None
        try:
            answer = self._transport.request(request, min(limits.call_seconds, left))
        except BaseException as error:
            self._loss = error.message if isinstance(error, StudentFailure) else LOST
            self.close()
            raise
        finally:
            self._charge(subject)
            self._log_call(request, answer)
        room = MAX_PRINTED - sum(map(len, self.printed))
        if answer.printed and room > 0:
            self.printed.append(answer.printed[:room])
        if isinstance(answer, wire.Failure):
            raise _failure(answer)
        return answer

    def _charge(self, subject: Subject) -> float:
        """Charge all time since the last charge to the exercise; return the seconds it has left."""
        now = time.monotonic()
        left = self._seconds_left.get(subject.exercise, subject.limits.exercise_seconds)
        left -= now - self._charged_until
        self._seconds_left[subject.exercise], self._charged_until = left, now
        return left

    def close(self) -> None:
        """End the worker, if there is one."""
        transport, self._transport = self._transport, None
        self._loaded.clear()
        if transport is not None:
            transport.close()


def _failure(answer: wire.Failure) -> StudentFailure:
    frames = tuple(Frame(f.file, f.line, f.source, f.column, f.function) for f in answer.frames)
    failure = StudentFailure(answer.kind, answer.message, frames, tuple(answer.mro))
    failure.operations = answer.operations
    return failure
