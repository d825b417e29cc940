"""What programs of others earn and hear, by the hidden suites and in a students' copy.

A verdict is kept on this machine for as long as what it depends on is the same. `make prove`
grades every program, and tests those of a few exercises, which take turns.
"""

from __future__ import annotations

import contextlib
import hashlib
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from corpus.programs import Program
from turns import SHARE, one_in

from grader import cache
from grader.commands.cores import on_all_cores
from grader.commands.kept_proofs import hash_of
from grader.commands.options import progress_bar
from grader.course.course import Course, load_course
from grader.grading.diagnosis import record
from grader.grading.programs import solutions
from grader.grading.session import with_grader
from grader.report import ExerciseResult
from grader.submissions.submission import Submission

if TYPE_CHECKING:
    from grader.grading.grader import Grader

SEED = 7
EVERY = 10  # of the programs of an exercise whose turn it is, a test grades one in so many


class Verdict(msgspec.Struct, frozen=True):
    """What a program earned and what was said of it; each explanation is a set of faults."""

    points: int  # of the checks that pass
    max_points: int
    mark: int  # with what is given back where checks fail for one reason
    failed: tuple[str, ...] = ()
    explanations: tuple[tuple[str, ...], ...] = ()
    facts: tuple[str, ...] = ()
    lost_besides: int = 0  # points, for another reason than the mistakes that are charged
    is_done: bool = False  # hidden suites give all points, or a students' copy calls it done


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
    _hashes: dict[str, str] = field(default_factory=dict)  # of exercises

    def judge(self, programs: Sequence[Program]) -> Verdicts:
        """Grade programs, and keep the verdicts; the exercises are shared among all cores."""
        names = sorted({p.exercise for p in programs}, key=lambda n: self.course[n].training is None)
        jobs = [(self, [p for p in programs if p.exercise == name]) for name in names]
        found: Verdicts = {}
        with progress_bar(len(jobs)) as on_exercise, on_all_cores(len(jobs)) as mapped:
            for name, verdicts in mapped(_judged, jobs):
                on_exercise(name)
                found |= verdicts
        return found

    def judge_here(self, programs: Sequence[Program]) -> Verdicts:
        """Grade programs of one exercise; the exercises that it requires are correct."""

        def body(grader: Grader) -> Verdicts:
            found = {}
            for program in programs:
                files = {**solutions(self.course, program.exercise), program.exercise: program.text}
                submission = Submission("s001", files)
                (result,) = grader.grade(submission, [program.exercise], SEED).results
                found[program] = self._verdict(result)
                cache.save(self._key_of(program), msgspec.msgpack.encode(found[program]))
            return found

        course, names = self.copy or self.course, {program.exercise for program in programs}
        return with_grader(course, sorted(names), None, body, trainings="of this seed")

    def _verdict(self, result: ExerciseResult) -> Verdict:
        diagnosis = result.diagnosis
        explained = (diagnosis, *diagnosis.tie) if diagnosis and diagnosis.faults else ()
        return Verdict(
            result.points - result.given_back,
            result.max_points,
            result.points,
            tuple(test.name for test in result.tests if test.is_wrong and test.max_points),
            tuple(tuple(sorted(each.faults)) for each in explained),
            diagnosis.facts if diagnosis else (),
            result.lost_besides,
            result.passed and not result.given_back,
        )

    # --- kept -------------------------------------------------------------------------------------

    def kept(self, programs: Sequence[Program]) -> Verdicts:
        """Return the kept verdicts that still hold."""
        found = {}
        for program in programs:
            data = cache.load(self._key_of(program))
            with contextlib.suppress(msgspec.MsgspecError):
                if data is not None:
                    found[program] = msgspec.msgpack.decode(data, type=Verdict)
        return found

    def sampled(self, programs: Sequence[Program]) -> Verdicts:
        """Return verdicts for a test: on programs of a few exercises, none of which trains."""
        names = one_in(SHARE, [each.name for each in self.course.exercises if not each.training])
        chosen = one_in(EVERY, [program for program in programs if program.exercise in names])
        held = self.kept(chosen)
        return held | self.judge([program for program in chosen if program not in held])

    def complete(self, programs: Sequence[Program]) -> Verdicts:
        """Return verdicts on all programs."""
        held = self.kept(programs)
        found = held | self.judge([program for program in programs if program not in held])
        return {program: found[program] for program in programs}

    def _key_of(self, program: Program) -> str:
        """Return the key of a program and of all that decides what is said of it."""
        name = program.exercise
        if name not in self._hashes:
            recorded = _hash_of(record.path_of(self.copy, name)) if self.copy else ""
            self._hashes[name] = f"{hash_of(self.course, name, SEED)} {recorded}"
        kind = "hidden" if self.copy is None else "copy"
        return cache.key_of("verdict", kind, self._hashes[name], program.text)


def _judged(job: tuple[Judge, Sequence[Program]]) -> tuple[str, Verdicts]:
    judge, programs = job
    return programs[0].exercise, judge.judge_here(programs)


def _hash_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
