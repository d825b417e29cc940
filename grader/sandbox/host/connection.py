"""The connection of one submission to its worker: loaded programs and the time left."""

from __future__ import annotations

import ast
import contextlib
import functools
import itertools
import marshal
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from grader.errors import CourseError, StudentFailure, WorkerLost
from grader.report import Frame
from grader.sandbox import wire
from grader.sandbox.host.training import OnReport, TrainingLimits, TrainingLog
from grader.sandbox.host.worker import Transport
from grader.sandbox.source import Use, may_name
from grader.sandbox.syntax import parsed

LOST = "your code is no longer running"
# Shares of a call's time limit: after a timeout, later calls of the same name get the first each,
# and the second all together. So an endless loop costs one time limit, not one for each check.
AGAIN, ALL_AGAIN = 0.04, 0.4
MOST_WAITED = 20.0  # times its seconds that an exercise may get back if its worker waits for a core


@dataclass(frozen=True)
class TimeLimits:
    """The seconds for one call, and for all calls of one exercise together."""

    call_seconds: float = 5.0
    exercise_seconds: float = 30.0
    training: TrainingLimits | None = None  # for calls that train, which have limits of their own


@dataclass(frozen=True)
class Subject:
    """The code under test: the module `exercise` of a program made of `sources`."""

    exercise: str
    program: str
    sources: Mapping[str, wire.Source]
    limits: TimeLimits = TimeLimits()
    forbidden: tuple[str, ...] = ()  # patterns of the names that the exercise forbids
    all_forbidden: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # by exercise
    implements: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # by exercise
    muted: tuple[str, ...] = ()  # packages that do nothing if the program imports them


class WorkerConnection:
    """The connection of one submission to its worker; the next test replaces a lost worker.

    `connect` starts a worker. Each worker loads a program once, when it is first needed. A program
    that fails to load is not run again: every test fails with the same error.
    """

    def __init__(self, connect: Callable[[], Transport]) -> None:
        self.layers: tuple[str, ...] = ()  # the layers of the worker's confinement
        self.lost: WorkerLost | None = None  # why the worker is gone, if the code is not to blame
        self.called = False  # whether the test called the student's code
        self.untold: set[str] = set()  # exercises whose last watched call did not finish
        self.printed: list[str] = []  # the output of the student's code in this test
        self.next_id: Callable[[], int] = itertools.count(1).__next__  # of the next request
        self._connect = connect
        self._transport: Transport | None = None
        self._loaded: dict[tuple[str, str], wire.Handle] = {}
        self._broken: dict[tuple[str, str], StudentFailure] = {}
        self._seconds_left: dict[str, float] = {}  # by exercise
        self._late: set[tuple[str, str]] = set()  # calls that did not finish, with their exercises
        self._seconds_again: dict[str, float] = {}  # that such calls took again, by exercise
        self._training: TrainingLog | None = None  # of the calls that are training
        self._training_left: dict[str, TrainingLimits] = {}  # by exercise
        self._worked_until = time.process_time()
        self._waited = self._given_back = 0.0  # seconds that the worker has waited for a core
        self._loss = ""  # why this test lost its worker
        self._seed = 0
        self._has_quiet_calls = False  # sent quietly, with no answer after them yet
        self._is_unused = False  # whether the worker has loaded nothing yet
        self._searched: dict[tuple[str, str], list[Frame] | str] = {}  # by file and text

    def begin(self, seed: int) -> None:
        """Start a test: seed torch, and forget the last test's objects, calls and output."""
        self._seed, self._loss, self._worked_until = seed, "", time.process_time()
        self.printed, self.called = [], False
        if self._has_quiet_calls and self._transport is not None:
            self._transport.discard()
        self._has_quiet_calls = False
        self._post(wire.Begin(seed))

    def reseed(self, seed: int, *, only_torch: bool) -> None:
        """Seed torch's generator in the worker within a test, or all."""
        self._post(wire.Seed(seed, only_torch))

    def send_quiet(self, request: wire.Call | wire.Adopt | wire.Move) -> None:
        """Send a call without waiting; if it fails, the next answer is its failure."""
        self.called = self.called or isinstance(request, wire.Call)
        self._has_quiet_calls = True
        self._post(request)

    def await_quiet_calls(self, subject: Subject) -> None:
        """Wait for the quiet calls of the test, to raise the failure of one in this test."""
        if self._has_quiet_calls and self._transport is not None:
            self.ask(subject, wire.Sync(self.next_id()))

    @contextlib.contextmanager
    def training(self, subject: Subject, on_report: OnReport) -> Iterator[TrainingLog]:
        """Let calls in the block train, within their own limits and with reports."""
        limits = subject.limits.training
        if limits is None:
            message = f"{subject.exercise} has no `[training]` in its exercise.toml"
            raise CourseError(message, "grader validate")
        left = self._training_left.get(subject.exercise, limits)
        start, log = time.monotonic(), TrainingLog(left, on_report)
        self._training = log
        try:
            yield log
        finally:
            self._training = None
            seconds = left.seconds - (time.monotonic() - start)
            self._training_left[subject.exercise] = replace(
                left, seconds=seconds, cpu_seconds=left.cpu_seconds - log.cpu_seconds
            )

    def _post(self, request: wire.Quiet) -> None:
        if self._transport is not None:
            self._transport.post(request)

    def load(self, subject: Subject) -> wire.Handle:
        """Return the handle of the student's module; start a worker and load it if necessary."""
        if self.lost is not None:
            raise self.lost
        if self._loss:
            raise StudentFailure("Crash", self._loss)
        key = (subject.program, subject.exercise)
        if key in self._broken:
            raise self._broken[key].copy()
        if key not in self._loaded:
            self._search_ahead(subject)
            if self._transport is None:
                self._transport = self._start_worker()
            self._loaded[key] = self._load_program(subject)
        return self._loaded[key]

    def _search_ahead(self, subject: Subject) -> None:
        """Search the sources before the worker loads one: later, that would take another worker."""
        if self._transport is None or self._is_unused:
            with contextlib.suppress(StudentFailure):  # the next `search` raises it again
                self.search(subject)

    def search(self, subject: Subject) -> list[Frame]:
        """Return the places where the source of `subject` names a forbidden call.

        A worker that has loaded nothing searches, so that a source which breaks the search harms
        only its own student. Raises `StudentFailure` if the search gives up.
        """
        source = subject.sources[subject.exercise]
        if not may_name(source.text, subject.forbidden):
            return []
        key = source.file, source.text
        if key not in self._searched:
            self._searched |= self._search(subject)
        found = self._searched[key]
        if isinstance(found, str):
            message = f"your file cannot be searched for forbidden calls: {found}"
            raise StudentFailure("Forbidden", message)
        return found

    def _search(
        self, subject: Subject, *, alone: bool = False
    ) -> dict[tuple[str, str], list[Frame] | str]:
        """Let the worker that will run the sources of the submission search all of them.

        If it has loaded one already, or with `alone`, another worker searches only this source.
        """
        patterns = {**subject.all_forbidden, subject.exercise: subject.forbidden}
        sources = {
            name: source
            for name, source in subject.sources.items()
            if name in patterns and source.own and may_name(source.text, patterns[name])
        }
        if alone or (self._transport is not None and not self._is_unused):
            sources = {subject.exercise: subject.sources[subject.exercise]}
        forbidden = {name: list(patterns[name]) for name in sources}
        names = {name: list(subject.implements.get(name, ())) for name in sources}
        request = wire.Search(self.next_id(), sources, forbidden, names)
        try:
            answers = _searched(self._ask_unused(subject, request), len(sources))
        except StudentFailure as failure:
            if len(sources) > 1:
                return self._search(subject, alone=True)
            answers = [failure.message]
        texts = [(source.file, source.text) for source in sources.values()]
        return {
            key: uses if isinstance(uses, str) else [frame_at(use, key[1], key[0]) for use in uses]
            for key, uses in zip(texts, answers)
        }

    def _ask_unused(self, subject: Subject, request: wire.Search) -> wire.Answer:
        """Return the answer of a worker that has loaded nothing; end it if it fails."""
        if self._transport is None:
            self._transport = self._start_worker()
        transport = self._transport if self._is_unused else self._start_worker()
        start = time.monotonic()
        try:
            answer = transport.request(request, subject.limits.call_seconds)
        except BaseException as error:
            self.lost = error if isinstance(error, WorkerLost) else self.lost
            if transport is self._transport:
                self.close()
            self._is_unused = False
            raise
        finally:
            self._charge(subject, time.monotonic() - start)
            if transport is not self._transport:
                transport.close()
        return answer

    def _start_worker(self) -> Transport:
        transport = self._connect()
        try:
            self.layers = transport.layers
        except BaseException as error:
            self.lost = error if isinstance(error, WorkerLost) else None
            transport.close()
            raise
        transport.post(wire.Begin(self._seed))
        self._waited = 0.0
        self._is_unused = self._transport is None
        return transport

    def _load_program(self, subject: Subject) -> wire.Handle:
        sources = {
            name: source if source.own else _without_text(source)
            for name, source in subject.sources.items()
        }
        self._is_unused = False
        muted = list(subject.muted)
        request = wire.Load(self.next_id(), subject.program, subject.exercise, sources, muted)
        try:
            reply = self.ask(subject, request)
        except StudentFailure as failure:
            failure.loading = True
            self._broken[subject.program, subject.exercise] = failure
            raise
        if not isinstance(reply.value, wire.Handle):
            raise StudentFailure("Protocol", "your code interfered with the grader")
        return reply.value

    def ask(self, subject: Subject, request: Any, name: str = "") -> wire.Reply:
        """Return the worker's reply to `request`, which calls `name`. Raises `StudentFailure`."""
        if self._transport is None:
            raise StudentFailure("Crash", self._loss or LOST)
        log = self._training if isinstance(request, wire.Call) else None
        seconds = self._seconds_left_for(subject, name, log)
        self._has_quiet_calls = False
        self.called = self.called or isinstance(request, wire.Call)
        start = time.monotonic()
        try:
            answer = self._transport.request(request, seconds, log)
        except BaseException as error:
            if isinstance(error, StudentFailure) and log is None:
                self._note_late(subject, name, error, time.monotonic() - start)
            self.lost = error if isinstance(error, WorkerLost) else None
            self._loss = error.message if isinstance(error, StudentFailure) else LOST
            self.close()
            raise
        finally:
            if log is None:
                self._charge(subject, time.monotonic() - start)
            self._own_seconds()  # those of the request are charged already
        self._add_printed(answer.printed)
        if isinstance(answer, wire.Failure):
            raise _failure(answer)
        return answer

    def _add_printed(self, text: str) -> None:
        room = 2 * wire.MAX_PRINTED - sum(map(len, self.printed))  # or more than a worker sends
        if text and room > 0:
            self.printed.append(text[:room])

    def _seconds_left_for(self, subject: Subject, name: str, log: TrainingLog | None) -> float:
        """Return the seconds that a request may take. Raises `StudentFailure` if none are left."""
        left = self._charge(subject, self._own_seconds())
        if left < subject.limits.call_seconds:
            left = self._charge(subject, -self._wait_of_worker(subject))
        says = f"the {subject.limits.exercise_seconds:g} seconds of this exercise are used up"
        if log is not None:
            left, says = log.left.seconds, "the time for training in this exercise is used up"
        if left <= 0:
            raise StudentFailure("Timeout", says)
        return left if log is not None else min(left, self._seconds_for(subject, name))

    def _seconds_for(self, subject: Subject, name: str) -> float:
        """Return the seconds that a call of `name` may take. Raises `StudentFailure` if none."""
        limit = subject.limits.call_seconds
        if (subject.exercise, name) not in self._late:
            return limit
        if self._seconds_again.get(subject.exercise, 0.0) >= limit * ALL_AGAIN:
            what = f"an earlier call of `{name}`" if name else "an earlier call"
            raise StudentFailure("Timeout", f"{what} did not finish within {limit:g} seconds")
        return limit * AGAIN

    def _note_late(
        self, subject: Subject, name: str, failure: StudentFailure, seconds: float
    ) -> None:
        """Note a call that did not finish, and its output."""
        if failure.kind != "Timeout":
            return
        self._add_printed(failure.printed)
        exercise, call = subject.exercise, (subject.exercise, name)
        if call in self._late:
            self._seconds_again[exercise] = self._seconds_again.get(exercise, 0.0) + seconds
            limit, place = subject.limits.call_seconds, failure.message.partition("; ")[2]
            failure.message = (
                f"your code did not finish within {limit * AGAIN:g} seconds, "
                f"nor within {limit:g} in another call"
            ) + (f"; {place}" if place else "")
        self._late.add(call)

    def _own_seconds(self) -> float:
        """Return the seconds that this process has computed since the last call.

        They are processor time, so a machine that stands still costs the exercise nothing.
        """
        before, self._worked_until = self._worked_until, time.process_time()
        return self._worked_until - before

    def _wait_of_worker(self, subject: Subject) -> float:
        """Return the seconds that the worker waited for a core, which cost the exercise nothing.

        It is called only when an exercise has used up nearly all of its seconds.
        """
        waited = self._transport.waited() if self._transport is not None else 0.0
        most = MOST_WAITED * subject.limits.exercise_seconds - self._given_back
        back = max(0.0, min(waited - self._waited, most))
        self._waited = waited
        self._given_back += back
        return back

    def _charge(self, subject: Subject, seconds: float) -> float:
        """Charge seconds to the exercise; return its remaining ones."""
        left = self._seconds_left.get(subject.exercise, subject.limits.exercise_seconds)
        self._seconds_left[subject.exercise] = left - seconds
        return left - seconds

    def try_again(self, exercise: str) -> None:
        """Forget the used time of an exercise, and its lost worker: the next test starts anew."""
        self.close()
        self.lost = None
        self._seconds_left.pop(exercise, None)
        self._training_left.pop(exercise, None)
        self._seconds_again.pop(exercise, None)
        self._late = {(each, name) for each, name in self._late if each != exercise}

    def close(self) -> None:
        """End the worker, if there is one."""
        transport, self._transport = self._transport, None
        self._loaded.clear()
        if transport is not None:
            transport.close()


def frame_at(use: Use, text: str, file: str) -> Frame:
    """Return the use of a name as a place in its source."""
    lines = text.split("\n", use.line)
    source = lines[use.line - 1].strip() if 0 < use.line <= len(lines) else ""
    return Frame(file, use.line, source[: wire.MAX_TEXT], 0, use.name)


def _searched(answer: wire.Answer, count: int) -> list[list[Use] | str]:
    """Return a worker's findings in each of `count` sources, or the reason why it has none."""
    if isinstance(answer, wire.Failure):
        raise _failure(answer)
    items = answer.value.items if isinstance(answer.value, wire.WireList) else []
    found: list[list[Use] | str] = []
    for item in items:
        if isinstance(item, wire.WireList):
            pairs = [pair.items for pair in item.items if isinstance(pair, wire.WireTuple)]
            found.append([Use(int(line), str(name)) for line, name in pairs])  # type: ignore[arg-type]
        else:
            found.append(str(item))
    if len(found) != count:
        raise StudentFailure("Protocol", "the search gave no answer")
    return found


def _failure(answer: wire.Failure) -> StudentFailure:
    frames = tuple(Frame(f.file, f.line, f.source, f.column, f.function) for f in answer.frames)
    failure = StudentFailure(answer.kind, answer.message, frames, tuple(answer.mro))
    failure.operations = answer.operations
    return failure


@functools.lru_cache(maxsize=64)
def _without_text(source: wire.Source) -> wire.Source:
    """Return a stand-in compiled, without its text: student code can read all that a worker holds.

    Its docstrings are left out, too, and with the text its comments.
    """
    try:
        tree = parsed(source.text, source.file)
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
                and ast.get_docstring(node, clean=False) is not None
            ):
                node.body[0] = ast.copy_location(ast.Pass(), node.body[0])
        code = compile(tree, source.file, "exec", dont_inherit=True)
    except SyntaxError as error:
        says = f"{source.file}: {error.msg} (line {error.lineno})"
        raise CourseError(says, "grader validate") from error
    return wire.Source(source.file, "", own=False, code=marshal.dumps(code))
