"""What programs of others earn and hear, kept for as long as what it depends on is the same.

`make accuracy` grades every program by the hidden suites and in a students' copy, and keeps the
verdicts in verdicts.json. Tests take from there what still holds, and grade the rest.
"""

from __future__ import annotations

import hashlib
import shutil
import time
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from corpus.programs import Program

from grader.commands.kept_proofs import hash_of
from grader.course.course import Course, load_course
from grader.grading.diagnosis import record
from grader.grading.session import with_grader
from grader.report import ExerciseResult
from grader.submissions.submission import Submission

if TYPE_CHECKING:
    from grader.grading.grader import Grader

FILE = Path(__file__).parent / "verdicts.json"
SEED = 7
EVERY = 6  # of programs without a verdict that holds, those that a test grades
AGAIN = 60  # of programs with one


class Verdict(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What a program earned and what was said of it; each explanation is a set of faults."""

    of: str  # a hash of what it depends on
    points: int
    max_points: int
    failed: tuple[str, ...] = ()
    explanations: tuple[tuple[str, ...], ...] = ()
    facts: tuple[str, ...] = ()
    lost_besides: int = 0  # points, for another reason than the mistakes that are charged
    is_done: bool = False  # hidden suites give all points, or a students' copy calls it done

    def says_the_same(self, other: Verdict) -> bool:
        """Return whether another verdict is the same; facts have digits that machines round."""
        return msgspec.structs.replace(self, facts=other.facts) == other


Verdicts = dict[Program, Verdict]


def students_copy(course: Course, folder: Path) -> Course:
    """Return what students have of a course, in a folder: nothing of the teaching team's."""
    shutil.copytree(course.student_folder, folder / "exercises")
    return load_course(folder)


@dataclass
class Judge:
    """Grades programs in the teacher's course, or in the students' `copy` of it, in this process."""

    course: Course
    copy: Course | None = None
    milliseconds: list[float] = field(default_factory=list)  # of diagnoses, a second time each
    _hashes: dict[str, bytes] = field(default_factory=dict)  # of exercises

    @property
    def _kind(self) -> str:
        return "copy" if self.copy else "hidden"

    def judge(self, programs: Sequence[Program]) -> Verdicts:
        """Grade programs; the other exercises of each submission are correct."""
        correct = {name: self.course[name].read("solution.py") for name in self.course.names}

        def body(grader: Grader) -> Verdicts:
            found = {}
            for program in programs:
                submission = Submission("s001", {**correct, program.exercise: program.text})
                (result,) = grader.grade(submission, [program.exercise], SEED).results
                self._measure(grader, program, result)
                found[program] = self._verdict(program, result)
            return found

        course = self.copy or self.course
        return with_grader(course, course.names, None, body, trainings="of this seed")

    def _verdict(self, program: Program, result: ExerciseResult) -> Verdict:
        diagnosis = result.diagnosis
        explained = (diagnosis, *diagnosis.tie) if diagnosis and diagnosis.faults else ()
        return Verdict(
            self._hash_of(program),
            result.points - result.given_back,
            result.max_points,
            tuple(test.name for test in result.tests if test.is_wrong and test.max_points),
            tuple(tuple(sorted(each.faults)) for each in explained),
            diagnosis.facts if diagnosis else (),
            result.lost_besides,
            result.passed and not result.given_back,
        )

    def _measure(self, grader: Grader, program: Program, result: ExerciseResult) -> None:
        """Note how long the diagnosis takes a second time: the known mistakes have answered."""
        diagnostician = grader.diagnostician(grader.course[program.exercise], SEED)
        if diagnostician and result.diagnosis and diagnostician.last is not None:
            start = time.perf_counter()
            diagnostician.diagnose(result.tests, diagnostician.last, program.text)
            self.milliseconds.append(1000 * (time.perf_counter() - start))

    # --- kept -------------------------------------------------------------------------------------

    def kept(self, programs: Sequence[Program]) -> Verdicts:
        """Return the kept verdicts that still hold."""
        file = _load().get(self._kind, {})
        return {
            program: verdict
            for program in programs
            if (verdict := file.get(program.place)) and verdict.of == self._hash_of(program)
        }

    def sampled(self, programs: Sequence[Program]) -> tuple[Verdicts, Verdicts]:
        """Return verdicts for a test: those that hold, and of each `EVERY`th other program.

        Of the programs whose verdicts hold, each `AGAIN`th that is right or named is judged again,
        unless a model is trained: for the others, every known mistake would have to answer. The
        second verdicts are those that come out otherwise.
        """
        held = self.kept(programs)
        others = [program for program in programs if program not in held][::EVERY]
        told = [p for p, verdict in held.items() if verdict.is_done or verdict.explanations]
        again = [p for p in told if self.course[p.exercise].training is None][::AGAIN]
        found = self.judge([*others, *again])
        changed = {p: found[p] for p in again if not found[p].says_the_same(held[p])}
        return held | {p: found[p] for p in others}, changed

    def complete(self, programs: Sequence[Program], *, again: bool = False) -> Verdicts:
        """Return verdicts on all programs: those that hold, unless all are judged `again`."""
        held = {} if again else self.kept(programs)
        found = held | self.judge([program for program in programs if program not in held])
        return {program: found[program] for program in programs}

    def keep(self, verdicts: Verdicts) -> None:
        """Keep the verdicts on all programs."""
        file = _load() | {self._kind: {p.place: each for p, each in verdicts.items()}}
        FILE.write_text(_in_lines(file), "utf-8")

    def _hash_of(self, program: Program) -> str:
        """Return a hash of a program and of all that decides what is said of it."""
        name = program.exercise
        if name not in self._hashes:
            recorded = _recorded(record.path_of(self.copy), name) if self.copy else []
            self._hashes[name] = f"{hash_of(self.course, name, SEED)} {recorded}\0".encode()
        return hashlib.sha256(self._hashes[name] + program.text.encode()).hexdigest()[:16]


def _in_lines(file: Mapping[str, Mapping[str, Verdict]]) -> str:
    """Return JSON with a line for each program, so that a change shows as what it is."""
    parts = [
        f'"{kind}": {{\n'
        + ",\n".join(f'"{place}": {_json(each)}' for place, each in verdicts.items())
        + "\n}"
        for kind, verdicts in file.items()
    ]
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _json(verdict: Verdict) -> str:
    return msgspec.json.encode(verdict).decode()


def _load() -> dict[str, dict[str, Verdict]]:
    if not FILE.exists():
        return {}
    return msgspec.json.decode(FILE.read_bytes(), type=dict[str, dict[str, Verdict]])


def _recorded(path: Path, exercise: str) -> list[tuple[str, int]]:
    """Return the parts of an exercise's recorded answers, with a checksum each."""
    with zipfile.ZipFile(path) as archive:
        parts = archive.infolist()
    return [(p.filename, p.CRC) for p in parts if p.filename.startswith(f"{exercise}/")]
