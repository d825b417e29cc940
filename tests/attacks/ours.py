"""The corpus against this grader: one class, an honest student between any two attackers.

It is graded as a teacher would, by one grader in this process, so that tests can look into it.
After each submission the evidence is taken: points, what was told anywhere, what was left behind,
and whether the neighbours suffered. An attack that ends the grading of the class is blamed and
taken out, and whoever was not graded yet is graded as a class without it.
"""

from __future__ import annotations

import csv
import os
import signal
import sys
import threading
import time
from collections.abc import Iterable, Sequence, Set
from concurrent.futures import Future
from contextlib import suppress
from itertools import chain
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
    still_run,
)

from grader.classroom import publishing
from grader.classroom import run as grading
from grader.classroom.intake import IntakeRequest, open_intake
from grader.classroom.ledger import open_ledger
from grader.classroom.standings import Standings
from grader.classroom.storage import FILE, LOCK
from grader.classroom.workers.messages import Answer, GradedJob, Job, encode_result
from grader.course.course import load_course
from grader.grading import examiner
from grader.grading.grader import Grader
from grader.grading.seeds import public_seed, secret_from
from grader.grading.session import with_grader
from grader.report import Report
from grader.reports.data import to_data
from grader.sandbox.confinement.limits import Confinement
from grader.sandbox.host.connection import TimeLimits
from grader.sandbox.host.zygote import Zygote
from grader.submissions.layouts.attempt import LeftOut
from grader.submissions.notes import printable_name
from grader.submissions.reader.host import readers

SEED = 11
SLOW_SECONDS = 150.0  # six at ordinary times: a busy machine has to be allowed for
SHORT = TimeLimits(0.5, 1.0)  # for attacks that use up all the time they get
STUCK_SECONDS = 240.0  # after so long with one student, the class counts as stopped
UNSEEN = "the unseen"  # what no report may show
FORMULA = tuple("=+@")  # and `-`, which also starts a number


def name_of(number: int) -> str:
    """The attacker's folder; an honest neighbour sits before and after."""
    return f"s{2 * number + 2:03}"


class Stuck(BaseException):
    """The grader has spent too long with one student."""


class Deadline:
    """Raises `Stuck` in the main thread when nothing has happened for too long."""

    def __init__(self) -> None:
        self._works = threading.current_thread() is threading.main_thread()

    def __enter__(self) -> Deadline:
        if self._works:
            self._before = signal.signal(signal.SIGALRM, self._raise)
        self.move()
        return self

    def __exit__(self, *exc: object) -> None:
        if self._works:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, self._before)

    def move(self) -> None:
        """Something has happened."""
        if self._works:
            signal.setitimer(signal.ITIMER_REAL, STUCK_SECONDS)

    def _raise(self, number: int, frame: object) -> None:
        raise Stuck(f"nothing happened for {STUCK_SECONDS:.0f} seconds")


class Watcher:
    """Takes the evidence of each attack as its report comes in."""

    def __init__(self, world: World, attacks: Sequence[Attack], spare: int) -> None:
        self.world, self.spare = world, spare
        self.attacks = {name_of(number): attack for number, attack in enumerate(attacks)}
        self.evidence = {attack.id: Evidence(honest=attack.honest) for attack in attacks}
        self.neighbours: set[str] = set()  # not graded yet
        self.graded: set[str] = set()  # the other neighbours
        self.reported: set[str] = set()  # the attacks that have a report or were left out
        self.doing = ""  # the student whom the grader works on
        self.deadline = Deadline()
        self._last = ""
        self._neighbour: dict[str, object] | None = None
        self._answers: list[bytes] = []
        self._known: set[int] = set()
        self._time = time.monotonic()

    def note_answer(self, answer: bytes) -> None:
        """Bytes that a worker sent."""
        self._answers.append(answer)

    def begin(self, student: str) -> None:
        """The grader begins to work on a student."""
        self.doing = student
        self.deadline.move()

    def attack_of(self, student: str) -> Attack | None:
        """Return whose entry is read as this student, who may have got another name."""
        fits = (name for name in self.attacks if student.startswith(name))
        return self.attacks.get(max(fits, key=len, default=""))

    def note(self, report: Report) -> None:
        """One more submission is graded."""
        self.begin(report.submission)
        spent, self._time = time.monotonic() - self._time, time.monotonic()
        if report.submission in self.neighbours:
            self.neighbours.remove(report.submission)
            self.graded.add(report.submission)
            self._compare_neighbour(report)
            return
        attack = self.attack_of(report.submission)
        if attack is None:  # a name of controls alone, of which nothing is left
            return
        self._last = attack.id
        self.reported.add(attack.id)
        found = self.evidence[attack.id]
        found.points = max(found.points, report.points)
        found.said = _said(report)
        self._take(found)
        if spent > SLOW_SECONDS:
            found.harm.append(f"held the grader for {spent:.1f} seconds")
        if report.has_errors:
            found.harm.append("made the grader itself fail")
        if report.points < report.max_points and not found.said:
            found.harm.append("left no word of what was wrong")

    def _take(self, found: Evidence) -> None:
        told = canaries(b"".join(self._answers), "an answer")
        found.loot += [each for each in told if UNSEEN not in each]  # it is heard when it is tested
        self._answers.clear()
        for path in self.world.drop.iterdir():
            found.loot += canaries(path.read_bytes(), "a file")
        found.loot += self.world.listener.heard()
        found.traces += self.world.traces() + listening(self.spare)
        strays = children(os.getpid()) - self._known
        if strays and self._known:
            found.traces += still_run(strays)
            end_all(strays)
        self._known = self._known or children(os.getpid())

    def _compare_neighbour(self, report: Report) -> None:
        body = {**to_data(report), "submission": "", "hashes": ""}
        if self._neighbour is None:
            self._neighbour = body
            self._known = children(os.getpid())
        elif body != self._neighbour:
            self.evidence[self._last].harm.append("changed the next student's report")


def run(root: Path, attacks: Sequence[Attack]) -> dict[str, Evidence]:
    """Grade the class; return the evidence of each attack."""
    adopt_orphans()
    evidence: dict[str, Evidence] = {}
    left, listener = list(attacks), Listener()
    while left:
        found, done = _one_class(root / f"{len(left)}", left, listener)
        evidence |= {name: found[name] for name in done}
        left = [attack for attack in left if attack.id not in done]
    return evidence


def _one_class(
    root: Path, attacks: Sequence[Attack], listener: Listener
) -> tuple[dict[str, Evidence], set[str]]:
    """Return the evidence of a class, and which attacks it is complete for: all or, if one of them
    ended the run, those before it and that one.
    """
    root.mkdir()
    readers().start()  # it is no trace of an attack
    before = children(os.getpid())
    watcher = _class_of(root, attacks, listener)
    with (
        secrets_in_environment(),
        _overheard(watcher),
        watcher.deadline,
        pytest.MonkeyPatch.context() as patched,
    ):
        patched.setattr(sys, "dont_write_bytecode", True)  # no trace of the grader's own
        try:
            names = _grade(watcher)
        except (Exception, Stuck) as error:
            return watcher.evidence, _blame(root, watcher, attacks, error)
    _note_class(watcher, names, children(os.getpid()) - before)
    return watcher.evidence, {attack.id for attack in attacks}


def _class_of(root: Path, attacks: Sequence[Attack], listener: Listener) -> Watcher:
    """Place the attacks, with a neighbour on each side of every one."""
    world, spare = World(root, listener), free_port()
    watcher = Watcher(world, attacks, spare)
    watcher.neighbours = {f"s{2 * number + 1:03}" for number in range(len(attacks) + 1)}
    for name in watcher.neighbours:
        world.add_neighbour(name)
    fill = world.fill("s001", os.getpid(), spare, public_seed(secret_from(SEED)))
    for number, attack in enumerate(attacks):
        names = attack.place(world.submissions, name_of(number), fill) or ()
        cleaned = [each for name in names if (each := printable_name(name).strip(". "))]
        watcher.attacks |= dict.fromkeys([*names, *cleaned], attack)
    world.settle()
    return watcher


def _blame(
    root: Path, watcher: Watcher, attacks: Sequence[Attack], error: BaseException
) -> set[str]:
    """Note who ended the run: whom the grader worked on, or else who ends a class of three."""
    said = " ".join(f"ended the class: {type(error).__name__}: {error}".split())[:160]
    attack = watcher.attack_of(watcher.doing) if watcher.doing not in watcher.neighbours else None
    guilty = [attack] if attack else []
    if not guilty:
        left = [attack for attack in attacks if attack.id not in watcher.reported]
        listener = watcher.world.listener
        guilty = [
            one for one in left if stops_alone(root / one.id.replace("/", "-"), one, listener)
        ]
    if not guilty and watcher.doing in watcher.neighbours:  # what came before is being stored
        guilty = [watcher.attacks[name_of(max(0, int(watcher.doing[1:]) // 2 - 1))]]
    if not guilty:
        raise AssertionError(f"{said}, while at {watcher.doing or 'the intake'}") from error
    for each in guilty:
        watcher.evidence[each.id].stops.append(said)
    return watcher.reported | {each.id for each in guilty}


def stops_alone(root: Path, attack: Attack, listener: Listener) -> bool:
    """Whether a class of this attack and two neighbours cannot be taken in."""
    root.mkdir()
    watcher = _class_of(root, [attack], listener)
    try:
        with watcher.deadline, open_ledger(watcher.world.out) as ledger:
            course = load_course(watcher.world.course)
            request = IntakeRequest(watcher.world.submissions)
            with open_intake(request, course, watcher.world.out) as intake:
                intake.store(ledger, course)
            return not watcher.neighbours <= set(ledger.students())
    except (Exception, Stuck):
        return True


def _note_class(watcher: Watcher, names: Sequence[str], running: Set[int]) -> None:
    """Note what shows only when the whole class is graded."""
    out = watcher.world.out
    for name in names:
        if name not in watcher.graded and (attack := watcher.attack_of(name)):
            pages = (out / "reports" / f"{name}{suffix}" for suffix in publishing.VIEWS)
            data = b"".join(page.read_bytes() for page in pages)
            watcher.evidence[attack.id].loot += canaries(data, "its report")
    for name in sorted(watcher.neighbours):
        attack = watcher.attacks[name_of(max(0, int(name[1:]) // 2 - 1))]
        watcher.evidence[attack.id].stops.append("kept a neighbour from being graded")
    expected = {f"{name}{suffix}" for name in names for suffix in publishing.VIEWS}
    expected |= {path.name for path in (out / publishing.SIMILAR).glob("*-*.html")}
    expected |= {publishing.GRADES, publishing.RESULTS, publishing.DASHBOARD, FILE, LOCK}
    stray = {path.name for path in out.glob("**/*") if path.is_file()} - expected
    strays = [f"left {name} among the reports" for name in sorted(stray)]
    next(iter(watcher.evidence.values())).traces += strays + still_run(running)
    text = (out / publishing.GRADES).read_text("utf-8")
    for line in text.splitlines():
        cells = (next(csv.reader([line], delimiter=end), []) for end in ",;\t")
        if any(map(_is_formula, chain.from_iterable(cells))):
            attack = watcher.attack_of(line.lstrip("'\"").split(",")[0])
            found = watcher.evidence[attack.id] if attack else next(iter(watcher.evidence.values()))
            found.harm.append("put a formula into the table of marks")


def _is_formula(cell: str) -> bool:
    if cell.strip().startswith("-"):
        with suppress(ValueError):
            return not isinstance(float(cell), float)
        return True
    return cell.strip().startswith(FORMULA)


def _grade(watcher: Watcher) -> list[str]:
    """Grade the class; the students who have a report."""
    world, course = watcher.world, load_course(watcher.world.course)
    hangs = {name for name, attack in watcher.attacks.items() if attack.hangs}
    names: list[str] = []

    def grade(grader: Grader) -> None:
        for event in grading.grade_class(standings, Here(grader, watcher, hangs), publisher):
            if event.report is not None:
                names.append(event.student)
                watcher.note(event.report)

    with (
        open_intake(IntakeRequest(world.submissions), course, world.out) as intake,
        open_ledger(world.out) as ledger,
        Zygote(Confinement("confined")) as zygote,
    ):
        intake.store(ledger, course, watcher.begin)
        watcher.doing = ""
        _note_left_out(watcher, intake.left_out)
        standings = Standings(course, ledger, secret_from(SEED))
        publisher = publishing.Publisher(standings, world.out)
        with_grader(course, course.names, zygote, grade)
    return names


class Here:
    """An engine of one grader in this process, where what its workers send can be heard."""

    width = 1

    def __init__(self, grader: Grader, watcher: Watcher, hangs: Set[str]) -> None:
        self._grader, self._watcher, self._hangs = grader, watcher, hangs

    def start(self) -> None:
        pass

    def close(self) -> None:
        pass

    def submit(self, job: Job) -> Future[Answer]:
        self._watcher.begin(job.submission.name)
        with pytest.MonkeyPatch.context() as patched:
            if job.submission.name in self._hangs:
                patched.setattr(examiner, "TimeLimits", lambda *_: SHORT)
            found = self._grader.grade(job.submission, job.names, job.seed)
        results = {result.name: encode_result(result) for result in found.results}
        future: Future[Answer] = Future()
        future.set_result(GradedJob(results, found.confinement, 0.0))
        return future


def _note_left_out(watcher: Watcher, left_out: Iterable[LeftOut]) -> None:
    for left in left_out:
        if attack := watcher.attack_of(left.what):
            watcher.evidence[attack.id].said = left.why
            watcher.reported.add(attack.id)


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
