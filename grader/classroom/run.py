"""Grading a class: from its ledger through the slots to everybody's report, losing nothing."""

from __future__ import annotations

import contextlib
import queue
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import chain
from typing import Protocol

from grader.classroom.standings import Classbook
from grader.classroom.workers.messages import Answer, Job, Lost, encode_result
from grader.classroom.ledger import Entry
from grader.classroom.publishing import Publisher
from grader.report import Report
from grader.grading.reporter import not_run

MAX_TRIES = 3  # slots that an exercise may cost before it is left to a person


class Engine(Protocol):
    """Whoever grades jobs: slots on this machine, or on a cluster's."""

    @property
    def width(self) -> int:
        """How many jobs it likes to have at a time."""

    def start(self) -> None:
        """Begin to warm up, if that is not begun."""

    def submit(self, job: Job) -> Future[Answer]:
        """Have a job graded."""

    def close(self) -> None:
        """End whatever grades."""


@dataclass(frozen=True)
class Event:
    """What there is to tell of a run: `kind` is started, graded, lost, gave up or published."""

    kind: str
    student: str
    hash: str = ""
    names: tuple[str, ...] = ()
    seconds: float = 0.0
    why: str = ""
    report: Report | None = None


Told = Callable[[Event], None]


class Run:
    """One run over a class: what is left of it, and how far it is."""

    def __init__(self, book: Classbook, told: Told) -> None:
        self.book, self._told = book, told
        self._again: deque[tuple[Entry, Job]] = deque()
        self._left: Iterator[tuple[Entry, Job]] = self._find()

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to grade."""
        if (following := next(self._left, None)) is not None:
            self._left = chain([following], self._left)
        return following is None and not self._again

    def grade(self, engine: Engine) -> None:
        """Grade what is left. Each answer is in the ledger before it is told of."""
        if self.is_done:
            return
        self.book.ledger.begin(self.book.course.hash, self.book.key)
        for entry, job, answer in self._answers(engine):
            if isinstance(answer, Lost):
                self._lost(entry, job, answer)
                continue
            self.book.ledger.record(
                entry.hash,
                self.book.course.hashes,
                self.book.key,
                answer.results,
                answer.confinement,
                answer.seconds,
            )
            self._told(Event("graded", entry.student, entry.hash, job.names, answer.seconds))
        self.book.ledger.finish()

    def _find(self) -> Iterator[tuple[Entry, Job]]:
        """What is left to grade, each submission once however many handed it in."""
        for entry in self.book.ledger.to_grade():
            if names := self.book.left(entry):
                submission = self.book.ledger.submission(entry)
                yield entry, Job(submission, names, self.book.seed)

    def _next(self, *, alone: bool) -> tuple[Entry, Job] | None:
        """What to hand out next. What was lost is tried again at the end, with nothing beside it.

        On a cluster a worker's end costs every job that was waiting there: alone, it is seen which
        of them is at fault.
        """
        if (following := next(self._left, None)) is not None:
            return following
        return self._again.popleft() if self._again and alone else None

    def _answers(self, engine: Engine) -> Iterator[tuple[Entry, Job, Answer]]:
        """Keep the engine busy; what it answers, as it comes."""
        done: queue.SimpleQueue[Future[Answer]] = queue.SimpleQueue()
        under_way: dict[Future[Answer], tuple[Entry, Job]] = {}

        def hand_out() -> None:
            while len(under_way) < engine.width:
                if (following := self._next(alone=not under_way)) is None:
                    return
                future = engine.submit(following[1])
                under_way[future] = following
                self._told(Event("started", following[0].student, names=following[1].names))
                future.add_done_callback(done.put)

        try:
            hand_out()
            while under_way:
                future = done.get()
                entry, job = under_way.pop(future)
                hand_out()  # so that the slot works while the answer is kept
                yield entry, job, future.result()
                hand_out()
        finally:
            for future in under_way:
                future.cancel()

    def _lost(self, entry: Entry, job: Job, lost: Lost) -> None:
        """Try again, one exercise at a time: only one of them need be at fault."""
        self._told(Event("lost", entry.student, entry.hash, job.names, why=lost.why))
        tries = job.tries + 1
        if len(job.names) == 1 and tries >= MAX_TRIES:
            self._give_up(entry, job, lost)
            return
        for name in job.names:
            self._again.append((entry, Job(job.submission, (name,), job.seed, tries)))

    def _give_up(self, entry: Entry, job: Job, lost: Lost) -> None:
        """Leave an exercise to a person: it counts 0 points, and says so."""
        why = f"given up after {MAX_TRIES} tries: {lost.why}; a person has to look at it"
        course = self.book.course
        results = {name: encode_result(not_run(course[name], why)) for name in job.names}
        self.book.ledger.record(entry.hash, course.hashes, self.book.key, results, (), 0.0)
        self._told(Event("gave up", entry.student, entry.hash, job.names, why=lost.why))


def grade_class(book: Classbook, engine: Engine, publisher: Publisher, told: Told) -> None:
    """Grade what is left of a class, and write everybody's reports as they are done.

    When it is stopped, what was graded is published all the same.
    """

    def publish(students: Iterable[str]) -> None:
        for student in students:
            report = publisher.publish(student)
            if report is not None:
                told(Event("published", student, report=report))

    def telling(event: Event) -> None:
        told(event)
        if event.kind in ("graded", "gave up"):
            publish(book.ledger.handed_in_by(event.hash))

    try:
        publish(book.ledger.students())  # of whom all is known, or nothing is to be run
        Run(book, telling).grade(engine)
    except BaseException:
        with contextlib.suppress(Exception):  # what stopped us is what is to be told
            for student in book.ledger.graded_now():
                publisher.publish(student)
        with contextlib.suppress(Exception):
            publisher.finish()
        raise
    publisher.finish()
