"""Who stands where: from the ledger to the reports of a class, one student at a time.

What is worked out here is a pure function of the ledger and the course, so that it comes out the
same whenever it is asked for, and nothing of it has to be kept.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from grader.course.course import Course
from grader.errors import RequestError
from grader.classroom.intake import Which
from grader.classroom.workers.messages import decode_result
from grader.classroom.ledger import Entry, Kept, Key, Ledger, Published, path_as_graded
from grader.report import Adjustment, ExerciseResult, Outcome, Report
from grader.grading.reporter import Reporter, not_run, problem_of, versions
from grader.submissions.submission import Submission
from grader.course.visibility import is_over

LATE_BY = 1.0  # days, of what is late and nobody says by how much
EXTENDED = "late, by nobody knows how much, and due on a day of their own: nothing was taken off"
UNKNOWN_DELAY = "late, and the platform does not say by how much: counted as one day"


@dataclass(frozen=True)
class Standing:
    """One student: the report that counts, and those of other attempts that were graded."""

    report: Report
    others: tuple[Report, ...]
    fingerprint: str

    def published(self, rules: str) -> Published:
        """What there is to remember of having told the student, under these rules."""
        mark = self.report.mark
        assert mark is not None
        return Published(
            self.fingerprint,
            rules,
            self.report.seed,
            mark.points,
            mark.max_points,
            {e.name: e.counted for e in self.report.exercises},
        )


@dataclass(frozen=True)
class Classbook:
    """The standing of everybody in a ledger, for a course and a seed."""

    course: Course
    ledger: Ledger
    seed: int

    @cached_property
    def key(self) -> Key:
        """What results depend on, beside the course."""
        return Key(json.dumps(versions(), sort_keys=True), self.seed)

    @cached_property
    def _reporter(self) -> Reporter:
        return Reporter(self.course)

    @cached_property
    def which(self) -> Which:
        """Which of several attempts counts."""
        which: Which = (self.ledger.get("request") or {}).get("attempt", "latest")
        return which

    @cached_property
    def rules(self) -> str:
        """A hash over what makes a mark of a submission, beside the seed."""
        course = self.course
        counting = replace(course.policy, show={})  # what is shown makes no mark
        attempt = "latest" if self.which == "all" else self.which
        rules = repr((course.hash, counting, attempt, self.key.versions))
        return hashlib.sha256(rules.encode()).hexdigest()[:16]

    @property
    def is_as_published(self) -> bool:
        """Whether marks that were published here were made by today's rules, and this seed."""
        return self.ledger.published_under() in ([], [(self.rules, self.seed)])

    def refuse_changed(self) -> None:
        """Raise if marks were published here under other rules or another seed than now's."""
        for rules, seed in self.ledger.published_under():
            if (rules, seed) == (self.rules, self.seed):
                continue
            what = ", and the course, its rules or the grader have changed since"
            if seed != self.seed:
                what = f" with another seed, {seed}"
            raise RequestError(
                f"marks were published here{what}",
                "grader regrade   shows who changes and by how much, before anything is published",
            )

    def left(self, entry: Entry) -> tuple[str, ...]:
        """The exercises of an attempt that are still to be graded."""
        known = self.ledger.results(entry.hash, self.course.hashes, self.key)
        if len(known) == len(self.course.names):
            return ()
        submission = self.ledger.submission(entry)
        return tuple(
            name
            for name in self.course.names
            if name not in known and not problem_of(submission, name)
        )

    def standings(self) -> Iterator[Standing]:
        """Of everybody whose attempts are all graded, in order."""
        for student in self.ledger.students():
            if (standing := self.standing(student)) is not None:
                yield standing

    def standing(self, student: str) -> Standing | None:
        """A student's standing; None while an attempt waits to be graded."""
        adjustments = self.ledger.adjustments(student)
        digest = hashlib.sha256(self._ground.encode())
        reports = []
        for entry in self.ledger.attempts(student):
            known = self.ledger.results(entry.hash, self.course.hashes, self.key)
            submission = self.ledger.submission(entry)
            results = _results(self.course, submission, known)
            if results is None:
                return None
            for kept in known.values():
                digest.update(kept.result)
            digest.update(repr((entry, adjustments)).encode("utf-8", "backslashreplace"))
            reports.append(self._report(entry, submission, results, known, adjustments))
        if not reports:
            return None
        counting = self._counting(reports)
        others = tuple(report for report in reports if report is not counting)
        return Standing(counting, others, digest.hexdigest()[:32])

    @cached_property
    def _ground(self) -> str:
        """What else a page depends on."""
        policy = self.course.policy
        return repr((self.rules, policy.show, self.seed, is_over(policy), self.course.told))

    def _report(
        self,
        entry: Entry,
        submission: Submission,
        results: list[ExerciseResult],
        known: Mapping[str, Kept],
        adjustments: Mapping[str, Adjustment],
    ) -> Report:
        policy = self.course.policy
        adjusted = [
            replace(_placed(result, entry.paths), adjustment=adjustments.get(result.name))
            for result in results
        ]
        days = policy.days_late(entry.submitted, entry.due)
        vague = ""
        if entry.late and entry.submitted is None and policy.costs_lateness:
            vague = EXTENDED if entry.due else UNKNOWN_DELAY
        under = [kept.confinement for kept in known.values() if kept.confinement]
        confinement = [layer for layer in (under or [()])[0] if all(layer in k for k in under)]
        report = self._reporter.report(submission, adjusted, self.seed, confinement)
        return replace(
            report,
            person=entry.person,
            attempt=entry.number,
            submitted=entry.submitted.isoformat() if entry.submitted else "",
            flags=(*_flags(submission, adjusted), *([vague] if vague else [])),
            mark=policy.mark(adjusted, LATE_BY if vague == UNKNOWN_DELAY else days),
        )

    def _counting(self, reports: list[Report]) -> Report:
        """Which attempt counts: with `best` the highest mark, the latest of equal ones."""
        if self.which == "best":
            return max(reports, key=lambda r: (r.mark.points if r.mark else 0.0, r.attempt))
        return reports[0] if self.which == "first" else reports[-1]


def _results(
    course: Course, submission: Submission, known: Mapping[str, Kept]
) -> list[ExerciseResult] | None:
    """Every exercise's result; None if one waits to be graded."""
    results = []
    for exercise in course.exercises:
        if problem := problem_of(submission, exercise.name):
            results.append(not_run(exercise, problem))
        elif exercise.name in known:
            results.append(decode_result(known[exercise.name].result))
        else:
            return None
    return results


def _placed(result: ExerciseResult, paths: Mapping[str, str]) -> ExerciseResult:
    """The result with places under the names that this student's own files have."""
    own = {path_as_graded(name, path): path for name, path in paths.items()}

    def told(test: Outcome) -> Outcome:
        if test.where is None:
            return test
        file, comma, cell = test.where.file.partition(",")
        return replace(test, where=replace(test.where, file=f"{own.get(file, file)}{comma}{cell}"))

    return replace(result, tests=tuple(told(test) for test in result.tests))


def _flags(submission: Submission, results: list[ExerciseResult]) -> Iterator[str]:
    """What a person should look at."""
    reasons = set(submission.problems.values())
    if len(reasons) == 1 and len(submission.problems) == len(results):
        yield f"could not be read: {reasons.pop()}"
    else:
        yield from (f"{name} could not be read: {why}" for name, why in submission.problems.items())
    for result in results:
        if result.name in submission.files and not result.tests:
            yield f"{result.name} could not be graded: {result.advice}"
        errors = sum(test.outcome == "error" for test in result.tests)
        if errors:
            yield f"{result.name}: {errors} checks failed for a reason of the course's own"
