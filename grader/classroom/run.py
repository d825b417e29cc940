"""Grading a class: from its ledger through the workers to each student's report."""

from __future__ import annotations

import contextlib
import queue
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import chain
from typing import Literal, Protocol

import msgspec

from grader.classroom.publishing import Publisher
from grader.classroom.standings import Standings
from grader.classroom.stored.submissions import AttemptRow
from grader.classroom.workers.messages import (
    Answer,
    GradedJob,
    Job,
    Lost,
    decode_result,
    encode_result,
)
from grader.course.course import Exercise
from grader.grading.reporter import MAX_TRIES, given_up, not_run
from grader.grading.seeds import naming_seed, seed_of_epoch
from grader.report import Report
from grader.stopping import whole_step


class Engine(Protocol):
    """Processes that grade jobs, on this machine or on a cluster."""

    @property
    def width(self) -> int:
        """The number of jobs that keep the engine busy."""

    def start(self) -> None:
        """Begin to warm up, unless that has begun."""

    def submit(self, job: Job) -> Future[Answer]:
        """Have a job graded."""

    def close(self) -> None:
        """Stop all workers."""


@dataclass(frozen=True)
class Event:
    """One thing that happened in a run."""

    kind: Literal["started", "graded", "lost", "gave up", "published"]
    student: str
    hash: str = ""
    names: tuple[str, ...] = ()
    seconds: float = 0.0
    why: str = ""
    report: Report | None = None


Task = tuple[AttemptRow, Job]


class Run:
    """A run over a class, which grades all remaining work."""

    def __init__(self, standings: Standings) -> None:
        self.standings, self._ledger = standings, standings.ledger
        self._retries: deque[Task] = deque()
        self._left: Iterator[Task] = self._find()
        self._under_way: dict[Future[Answer], Task] = {}
        self._done: queue.SimpleQueue[Future[Answer]] = queue.SimpleQueue()

    def grade(self, engine: Engine) -> Generator[Event, None, None]:
        """Grade what is left; yield what happens. A result is in the ledger before its event."""
        if (first := next(self._left, None)) is None:
            return  # without recording a run
        self._left = chain([first], self._left)
        self._ledger.begin(self.standings.course.hash, self.standings.key)
        try:
            yield from self._hand_out(engine)
            while self._under_way:
                future = self._done.get()
                row, job = self._under_way.pop(future)
                # First hand out the next job, so that no process waits while a result is stored.
                yield from self._hand_out(engine)
                with whole_step():  # so that no stored result lacks its event
                    yield from self._store(row, job, future.result())
                yield from self._hand_out(engine)
        finally:
            for future in self._under_way:
                future.cancel()
        self._ledger.finish()

    def _find(self) -> Iterator[Task]:
        """Yield the remaining work: each submission once, even if several students handed it in."""
        naming = naming_seed(self.standings.secret)
        for row in self._ledger.to_grade():
            task = None
            with self._ledger.review.errors_of(row.student):
                task = self.standings.ungraded(row)
            if task:
                submission, names = task
                seed = seed_of_epoch(self.standings.secret, self._ledger.epoch_of(row.hash))
                for part in self._parts(names):
                    yield row, Job(submission, part, seed, naming_seed=naming)

    def _parts(self, names: Sequence[str]) -> Iterator[tuple[str, ...]]:
        """Yield the exercises of each job: one that trains alone, so that it trains only once."""
        course = self.standings.course
        if quick := tuple(name for name in names if course[name].training is None):
            yield quick
        yield from ((name,) for name in names if course[name].training is not None)

    def _hand_out(self, engine: Engine) -> Iterator[Event]:
        """Keep the engine busy; yield an event for each job handed out."""
        while len(self._under_way) < engine.width and (task := self._next()):
            row, job = task
            future = engine.submit(job)
            self._under_way[future] = task
            future.add_done_callback(self._done.put)
            yield Event("started", row.student, names=job.names)

    def _next(self) -> Task | None:
        """Return the next job to hand out; lost jobs come last, and each is graded alone.

        When a cluster's worker ends, every job there is lost; alone, the one at fault is known.
        """
        if (following := next(self._left, None)) is not None:
            return following
        return self._retries.popleft() if self._retries and not self._under_way else None

    def _store(self, row: AttemptRow, job: Job, answer: Answer) -> Iterator[Event]:
        if isinstance(answer, Lost):
            yield from self._lost(row, job, answer)
        else:
            self._record(row, answer)
            yield Event("graded", row.student, row.hash, job.names, answer.seconds)

    def _record(self, row: AttemptRow, graded: GradedJob) -> None:
        course, key = self.standings.course, self.standings.key
        results = {name: _readable(course[name], each) for name, each in graded.results.items()}
        checked = msgspec.structs.replace(graded, results=results)
        self._ledger.record(row.hash, course.hashes, key, checked)

    def _lost(self, row: AttemptRow, job: Job, lost: Lost) -> Iterator[Event]:
        """Try a lost job again, one exercise at a time, or give up with 0 points."""
        yield Event("lost", row.student, row.hash, job.names, why=lost.why)
        tries = job.tries + 1
        if len(job.names) > 1 or tries < MAX_TRIES:
            each = msgspec.structs.replace(job, tries=tries)
            alone = (msgspec.structs.replace(each, names=(name,)) for name in job.names)
            self._retries.extend((row, one) for one in alone)
            return
        (name,) = job.names
        result = encode_result(given_up(self.standings.course[name], lost.why))
        self._record(row, GradedJob({name: result}, (), 0.0))
        yield Event("gave up", row.student, row.hash, job.names, why=lost.why)


def _readable(exercise: Exercise, result: bytes) -> bytes:
    """Return a result if it can be read back, otherwise one that says so.

    Every later command has to read the stored result.
    """
    try:
        decode_result(exercise.name, result)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        why = f"its result cannot be stored, which is the grader's own error ({error})"
        return encode_result(not_run(exercise, f"{why}; needs review"))
    return result


def grade_class(
    standings: Standings, engine: Engine, publisher: Publisher
) -> Generator[Event, None, None]:
    """Grade the remaining work of a class and write each student's reports; yield events.

    If the caller stops early or something fails, graded work is published all the same.
    Close the iterator (`contextlib.closing`) so that this happens at once.
    """
    ledger = standings.ledger
    try:
        # Some students need no run: everything is graded already, or nothing can be run.
        yield from _published(publisher, ledger.students())
        with contextlib.closing(Run(standings).grade(engine)) as events:
            for event in events:
                yield event
                if event.kind in ("graded", "gave up"):
                    yield from _published(publisher, ledger.handed_in_by(event.hash))
    except BaseException:
        for student in ledger.graded_now():
            with contextlib.suppress(Exception):  # the caller must see the first error
                publisher.publish(student)
        for step in (publisher.flush, publisher.finish):  # each as far as it comes
            with contextlib.suppress(Exception):
                step()
        raise
    publisher.finish()


def _published(publisher: Publisher, students: Iterable[str]) -> Iterator[Event]:
    for student in students:
        if report := publisher.publish(student):
            yield Event("published", student, report=report)
