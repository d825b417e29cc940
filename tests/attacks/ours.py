"""The corpus against this grader: one class, an honest student between any two attackers.

It is graded as a teacher would, by one grader in this process, so that tests can look into it.
After each submission the evidence is taken: points, what was told anywhere, what was left behind,
and whether the neighbours suffered.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence, Set
from concurrent.futures import Future
from pathlib import Path

import pytest
from attacks.corpus import Attack
from attacks.world import (
    Evidence,
    Listener,
    World,
    adopt_orphans,
    canaries,
    children,
    end_all,
    free_port,
    listening,
    secrets_in_environment,
)

from grader.classroom import publishing
from grader.classroom import run as grading
from grader.classroom.intake import Intake, IntakeRequest, open_intake
from grader.classroom.ledger import open_ledger
from grader.classroom.standings import Standings
from grader.classroom.storage import FILE, LOCK
from grader.classroom.workers.messages import Answer, GradedJob, Job, encode_result
from grader.course.course import load_course
from grader.grading import examiner
from grader.grading.grader import Grader
from grader.grading.session import with_grader
from grader.report import Report
from grader.reports.data import to_data
from grader.sandbox.confinement.layers import Confinement
from grader.sandbox.host.connection import TimeLimits
from grader.sandbox.host.zygote import Zygote

SEED = 11
SLOW_SECONDS = 50.0  # the exercise's own limit is a minute
SHORT = TimeLimits(0.8, 1.6)  # for attacks that use up all the time they get


def name_of(number: int) -> str:
    """The attacker's folder; an honest neighbour sits before and after."""
    return f"s{2 * number + 2:03}"


class Watcher:
    """Takes the evidence of each attack as its report comes in."""

    def __init__(self, world: World, attacks: Sequence[Attack], spare: int) -> None:
        self.world, self.spare = world, spare
        self.attacks = {name_of(number): attack for number, attack in enumerate(attacks)}
        self.evidence = {attack.id: Evidence(honest=attack.honest) for attack in attacks}
        self._last = ""
        self._neighbour: dict[str, object] | None = None
        self._answers: list[bytes] = []
        self._known: set[int] = set()
        self._time = time.monotonic()

    def note_answer(self, answer: bytes) -> None:
        """Bytes that a worker sent."""
        self._answers.append(answer)

    def note(self, report: Report) -> None:
        """One more submission is graded."""
        spent, self._time = time.monotonic() - self._time, time.monotonic()
        attack = self.attacks.get(report.submission)
        if attack is None:
            self._compare_neighbour(report)
            return
        self._last = attack.id
        found = self.evidence[attack.id]
        found.points = report.points
        found.said = _said(report)
        self._take(found)
        if spent > SLOW_SECONDS:
            found.harm.append(f"held the grader for {spent:.1f} seconds")
        if report.has_errors:
            found.harm.append("made the grader itself fail")
        if report.points < report.max_points and not found.said:
            found.harm.append("left no word of what was wrong")
        views = [
            (self.world.out / "reports" / f"{report.submission}{suffix}").read_bytes()
            for suffix in publishing.VIEWS
        ]
        found.loot += canaries(b"".join(views), "its report")

    def _take(self, found: Evidence) -> None:
        found.loot += canaries(b"".join(self._answers), "an answer")
        self._answers.clear()
        for path in self.world.drop.iterdir():
            found.loot += canaries(path.read_bytes(), "a file")
        found.loot += self.world.listener.heard()
        found.traces += self.world.traces() + listening(self.spare)
        strays = children(os.getpid()) - self._known
        if strays and self._known:
            found.traces.append(f"{len(strays)} processes still run")
            end_all(strays)
        self._known = self._known or children(os.getpid())

    def _compare_neighbour(self, report: Report) -> None:
        body = {**to_data(report), "submission": "", "hashes": ""}
        if self._neighbour is None:
            self._neighbour = body
            self._known = children(os.getpid())
        elif body != self._neighbour:
            self.evidence[self._last].harm.append("changed the next student's report")


def run(root: Path, attacks: Sequence[Attack]) -> tuple[dict[str, Evidence], int]:
    """Grade the class; the evidence of each attack, and the exit code of the whole."""
    world, spare = World(root, Listener()), free_port()
    adopt_orphans()
    before = children(os.getpid())
    fill = world.fill("s001", os.getpid(), spare)
    for number, attack in enumerate(attacks):
        world.add_neighbour(f"s{2 * number + 1:03}")
        attack.place(world.submissions, name_of(number), fill)
    world.add_neighbour(f"s{2 * len(attacks) + 1:03}")
    world.settle()
    watcher = Watcher(world, attacks, spare)
    with (
        secrets_in_environment(),
        _overheard(watcher),
        pytest.MonkeyPatch.context() as patched,
    ):
        patched.setattr(sys, "dont_write_bytecode", True)  # no trace of the grader's own
        names = _grade(world, watcher)
    lasting = list(world.out.glob("**/*"))
    expected = {f"{name}{suffix}" for name in names for suffix in publishing.VIEWS}
    expected |= {publishing.GRADES, publishing.RESULTS, publishing.DASHBOARD, FILE, LOCK}
    stray = {path.name for path in lasting if path.is_file()} - expected
    strays = [f"left {name} among the reports" for name in sorted(stray)]
    strays += (
        [f"{len(pids)} processes still run"] if (pids := children(os.getpid()) - before) else []
    )
    next(iter(watcher.evidence.values())).traces += strays
    return watcher.evidence, len(names)


def _grade(world: World, watcher: Watcher) -> list[str]:
    """Grade the class; the students who have a report."""
    course = load_course(world.course)
    hangs = {name for name, attack in watcher.attacks.items() if attack.hangs}
    names: list[str] = []

    def grade(grader: Grader) -> None:
        for event in grading.grade_class(standings, Here(grader, hangs), publisher):
            if event.report is not None:
                names.append(event.student)
                watcher.note(event.report)

    with (
        open_intake(IntakeRequest(world.submissions), course, world.out) as intake,
        open_ledger(world.out) as ledger,
        Zygote(Confinement("confined")) as zygote,
    ):
        intake.store(ledger, course)
        _note_left_out(watcher, intake)
        standings = Standings(course, ledger, SEED)
        publisher = publishing.Publisher(standings, world.out)
        with_grader(course, course.names, zygote, grade)
    return names


class Here:
    """An engine of one grader in this process, where what its workers send can be heard."""

    width = 1

    def __init__(self, grader: Grader, hangs: Set[str]) -> None:
        self._grader, self._hangs = grader, hangs

    def start(self) -> None:
        pass

    def close(self) -> None:
        pass

    def submit(self, job: Job) -> Future[Answer]:
        with pytest.MonkeyPatch.context() as patched:
            if job.submission.name in self._hangs:
                patched.setattr(examiner, "TimeLimits", lambda *_: SHORT)
            found = self._grader.grade(job.submission, job.names, job.seed)
        results = {result.name: encode_result(result) for result in found.results}
        future: Future[Answer] = Future()
        future.set_result(GradedJob(results, found.confinement, 0.0))
        return future


def _note_left_out(watcher: Watcher, intake: Intake) -> None:
    for left in intake.left_out:
        watcher.evidence[watcher.attacks[left.what].id].said = left.why


class _overheard:  # noqa: N801, used as a with-statement
    """Every byte that a worker sends passes the watcher on its way to the host."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher

    def __enter__(self) -> None:
        from grader.sandbox import wire

        self._real = wire.decode_answer

        def decode(data: bytes) -> object:
            self._watcher.note_answer(data)
            return self._real(data)

        wire.decode_answer = decode  # type: ignore[assignment]

    def __exit__(self, *exc: object) -> None:
        from grader.sandbox import wire

        wire.decode_answer = self._real


def _said(report: Report) -> str:
    """The first thing the report tells the attacker."""
    exercise = report.exercises[0]
    first = exercise.first_failure
    return first.message if first else exercise.advice
