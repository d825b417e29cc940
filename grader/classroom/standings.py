"""The standings of a class: each student's reports, as a pure function of ledger and course."""

from __future__ import annotations

import hashlib
import heapq
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property

from grader.classroom.comments import Spot, comments_on, spots_of
from grader.classroom.intake import ROSTER, Which, remembered_in
from grader.classroom.ledger import Ledger
from grader.classroom.roster import Roster, RosterRow
from grader.classroom.rules import RULES, changed_parts, parts_of, rules_of
from grader.classroom.stored.marks import FINAL, PublishedMark, kept_mark
from grader.classroom.stored.results import ResultKey, StoredResult
from grader.classroom.stored.settings import FREE_DAYS_USED
from grader.classroom.stored.submissions import AttemptRow
from grader.classroom.waivers import (
    Waiver,
    stored_waivers,
    waivers_of,
    without_dropped,
    without_waived,
)
from grader.classroom.workers.messages import decode_result
from grader.course.course import Course
from grader.course.named import load_named
from grader.course.visibility import is_past_due
from grader.errors import RequestError
from grader.grading.reporter import Reporter, not_run, problem_of, versions
from grader.grading.seeds import public_seed, secret_from
from grader.report import Adjustment, ExerciseResult, Mark, Outcome, Report
from grader.reports.platforms.grades import NothingHandedIn
from grader.submissions.layouts import Attempt
from grader.submissions.notes import as_reason, folded, needs_review
from grader.submissions.submission import Submission

ASSUMED_DELAY = 1.0  # days of lateness, if the platform does not say how many
UNKNOWN_EXTENSION = (
    "late with an extension, and the platform does not say by how much: nothing was taken off"
)
UNKNOWN_DELAY = "late, and the platform does not say by how much: counted as one day"
MAX_NAMED = 5  # students in a sentence
LATER = "later"  # the setting with the exercises that are left for a later run
NOT_YET = "left for later, and not graded yet"
MISSING = re.compile(r"No module named '([^']+)'")
Known = Mapping[str, StoredResult]  # by exercise


@dataclass(frozen=True)
class Standing:
    """One student's reports and the submission that counts; `fingerprint` is of all pages."""

    report: Report
    submission: Submission
    others: tuple[Report, ...]
    fingerprint: str

    def published(self, rules: str) -> PublishedMark:
        """Return the data to store when this mark is published, under these rules."""
        report = self.report
        exercises = {exercise.name: exercise.counted for exercise in report.exercises}
        points = report.counted, report.max_counted
        return PublishedMark(self.fingerprint, rules, report.seed, *points, exercises)


@dataclass(frozen=True)
class Standings:
    """The standings of all students in a ledger, for a course and the secret of a class.

    `free_days` are the free late days that students have used elsewhere, if the ledger does not
    know them yet. Without `waives`, everything counts as it was graded.
    """

    course: Course
    ledger: Ledger
    secret: bytes
    free_days: Mapping[str, float] | None = None
    waives: bool = True

    @cached_property
    def seed(self) -> int:
        """The seed that reports print."""
        return public_seed(self.secret)

    @cached_property
    def key(self) -> ResultKey:
        """The software versions and the seed that results depend on."""
        return ResultKey(json.dumps(versions(), sort_keys=True), self.seed)

    @cached_property
    def _reporter(self) -> Reporter:
        return Reporter(self.course)

    @cached_property
    def named(self) -> frozenset[str]:
        """The ids of the mistakes that teachers have named."""
        each = (named.id for exercise in self.course.exercises for named in load_named(exercise))
        return frozenset(each)

    @cached_property
    def _waivers(self) -> tuple[Waiver, ...]:
        return stored_waivers(self.ledger) if self.waives else ()

    @cached_property
    def _worth(self) -> Mapping[str, Mapping[str, int]]:
        """The points of each check of the exercises that have a waiver."""
        names = {waiver.exercise for waiver in self._waivers} & {*self.course.names}
        return {
            name: {
                test.name: test.max_points
                for result in self.ledger.results_of(name, self.course.hashes[name]).values()
                for test in result.tests
            }
            for name in names
        }

    def waivers(self, student: str) -> tuple[Waiver, ...]:
        """Return the waivers that count for a student."""
        return waivers_of(student, self._waivers)

    @cached_property
    def later(self) -> frozenset[str]:
        """The exercises that are left for a later run: the others make reports until then."""
        return frozenset((self.ledger.get(LATER) or "").split())

    @cached_property
    def _roster(self) -> Roster:
        return Roster.from_setting(self.ledger.get(ROSTER))

    @cached_property
    def free_days_used(self) -> Mapping[str, float]:
        """The free late days that each student has used in other assignments."""
        stored: Mapping[str, float] = self.ledger.get(FREE_DAYS_USED) or {}
        return stored if self.free_days is None else self.free_days

    def listed(self, row: AttemptRow) -> RosterRow | None:
        """Return the line of the roster on which an attempt's student is."""
        return self._roster.find(Attempt(row.student, (), person=row.person))

    def with_extra(self, row: AttemptRow) -> AttemptRow:
        """Return an attempt with extra time counted from the due date that the course has now."""
        listed = self.listed(row)
        if listed is None or not listed.extra:
            return row
        return replace(row, due=listed.with_extra(self.course.policy).due)

    @cached_property
    def which(self) -> Which:
        """The choice of the attempt that counts."""
        return remembered_in(self.ledger.get("request"))

    @cached_property
    def rules(self) -> str:
        """A hash over everything that decides the mark of a submission, except the seed."""
        return rules_of(self.course, self._counting_attempt, self.key.versions)

    @cached_property
    def rule_parts(self) -> dict[str, str]:
        """The rules by parts, with what teachers call them."""
        return parts_of(self.course, self._counting_attempt, versions())

    @property
    def _counting_attempt(self) -> str:
        return "latest" if self.which == "all" else self.which

    @property
    def changed_rules(self) -> str:
        """The rules that have changed since marks were published, in words."""
        return changed_parts(self.ledger.get(RULES), self.rule_parts)

    @property
    def is_as_published(self) -> bool:
        """Whether all published marks were made under the current rules and this seed."""
        return self.ledger.published_under() in ([], [(self.rules, self.seed)])

    def refuse_changed_rules(self, also: str = "") -> None:
        """Raise `RequestError` if marks were published under other rules or another seed.

        Marks under the rules `also` are accepted, too: the caller has compared those.
        """
        for rules, seed in self.ledger.published_under():
            if rules in (self.rules, also) and seed == self.seed:
                continue
            what = f" under other rules; changed since: {self.changed_rules}"
            if seed != self.seed and secret_from(seed) != self.secret:  # nor is it an older ledger
                what = f" with another seed, {seed}"
            raise RequestError(
                f"marks were published here{what}",
                "grader regrade   shows who changes and by how much, before anything is published",
            )

    def ungraded(self, row: AttemptRow) -> tuple[Submission, tuple[str, ...]] | None:
        """Return an attempt's submission and its exercises still to be graded; None if done."""
        known = self._known(row)
        if len(known) == len(self.course.names):
            return None
        submission = self.ledger.submission(row)
        names = self._ungraded(submission, known)
        return (submission, names) if names else None

    def _known(self, row: AttemptRow) -> Known:
        return self.ledger.results(row.hash, self.course.hashes, self.key)

    def _ungraded(self, submission: Submission, known: Known) -> tuple[str, ...]:
        names = (name for name in self.course.names if name not in {*known, *self.later})
        return tuple(name for name in names if not problem_of(submission, name))

    def graded(self) -> Iterator[Standing]:
        """Yield the standing of every student whose attempts are all graded, in order.

        If a standing cannot be computed, the ledger's `review` names the student.
        """
        for student in self.ledger.students():
            if standing := self.spared(student):
                yield standing

    def spared(self, student: str) -> Standing | None:
        """Return a student's standing; None if there is none, or something about it broke."""
        with self.ledger.review.errors_of(student):
            return self.standing(student)
        return None

    def everybody(self) -> Iterator[tuple[Report, Mapping[str, str]]]:
        """Yield report and files of every graded student.

        A student whose standing cannot be computed any more has a report without results.
        """
        ledger = self.ledger
        damaged = set(ledger.damaged_students())
        for student in sorted({*ledger.students(), *ledger.vanished()}):
            if standing := self.spared(student):
                yield standing.report, standing.submission.files
            elif student in damaged or student in ledger.review.reasons:
                yield self._report_of_damage(student), {}

    @property
    def remarks(self) -> tuple[str, ...]:
        """What is to be said of the class as a whole, rather than of each student."""
        costs, count = self.course.policy.costs_lateness, len(self.ledger.students())
        unknown = self.ledger.without_time() if costs else []
        late = self.ledger.late_without_time() if costs else []
        a_day = [student for student in late if not self._extended(student)]
        doubtful = [one.submission for one in self.missing() if one.flags]
        says = {
            f"no time of submission is known for {len(unknown)} of {count} students, so their "
            "lateness was not counted": unknown,
            f"{len(a_day)} of {count} students are late, and the platform does not say by how "
            "much, so it counts as one day": a_day,
            "no points for handing in nothing, because a hand-in that was not used fits the line "
            "of the roster": doubtful,
        }
        return tuple(f"{why}: {self._list_names(who)}" for why, who in says.items() if who)

    def _extended(self, student: str) -> bool:
        return any(self.with_extra(row).due for row in self.ledger.attempts(student))

    def _list_names(self, students: Sequence[str]) -> str:
        return folded([self.ledger.named(student) for student in students], MAX_NAMED)

    def missing(self) -> list[NothingHandedIn]:
        """Return the students of the roster who handed in nothing, in order.

        One whose line may be that of a hand-in gets no points for that.
        """
        policy, handed_in = self.course.policy, set(self.ledger.students())
        nothing = [not_run(exercise, "") for exercise in self.course.exercises]
        most = policy.mark(nothing, 0.0).max_points
        found = []
        for student, person in sorted(self.ledger.missing(), key=lambda row: row[0]):
            if student not in handed_in:
                flags = self.ledger.flags(student)
                points = None if flags else policy.missing
                found.append(NothingHandedIn(student, person, points, most, flags))
        return found

    def with_missing(self, reports: Iterable[Report]) -> Iterator[Report | NothingHandedIn]:
        """Yield the reports, and among them, in order, the students who handed in nothing."""
        return heapq.merge(reports, self.missing(), key=lambda line: line.submission)

    def _report_of_damage(self, student: str) -> Report:
        why = (*self.ledger.review.reasons.get(student, ()), *self.ledger.damage(student))
        flags = tuple(dict.fromkeys(f"{reason}; needs review" for reason in why))
        results = [not_run(exercise, why[0]) for exercise in self.course.exercises]
        report = self._reporter.report(Submission(student, {}), results, self.seed, ())
        return replace(report, flags=flags)

    def standing(self, student: str) -> Standing | None:
        """Return a student's standing, or None while an attempt waits to be graded."""
        adjustments = self.ledger.adjustments(student)
        flags = self.ledger.flags(student)
        waivers, spots = self.waivers(student), spots_of(self.ledger, student)
        digest = hashlib.sha256(self._context.encode())
        graded = []
        free = max(0.0, self.course.policy.budget - self.free_days_used.get(student, 0.0))
        for row in map(self.with_extra, self.ledger.attempts(student)):
            known = self._known(row)
            submission = self.ledger.submission(row)
            if self._ungraded(submission, known):
                return None
            for stored in known.values():
                digest.update(stored.result)
            past_due = is_past_due(self.course.policy, own=row.due)
            more = (*([free] if self.course.policy.budget else []), *waivers, *spots.items())
            about = repr((row, adjustments, flags, self.ledger.damage(student), past_due, *more))
            digest.update(about.encode("utf-8", "backslashreplace"))
            report = self._report(row, submission, known, adjustments, free, waivers, spots)
            digest.update(_named_in(report).encode("utf-8", "backslashreplace"))
            graded.append((report, submission))
        if not graded:
            return None
        counting, submission = self._counting(graded)
        others = tuple(report for report, _ in graded if report is not counting)
        return Standing(counting, submission, others, digest.hexdigest()[:32])

    @cached_property
    def _context(self) -> str:
        """Everything that a page depends on, except the student's own results."""
        policy = self.course.policy
        past_due, statements = is_past_due(policy), self.course.statement_hash
        return repr((self.rules, policy.show, self.seed, past_due, statements))

    def _report(
        self,
        row: AttemptRow,
        submission: Submission,
        known: Known,
        adjustments: Mapping[str, Adjustment],
        free: float,
        waivers: Sequence[Waiver],
        spots: Mapping[Spot, str],
    ) -> Report:
        policy = self.course.policy
        comments = comments_on(submission.files, row.paths, spots)
        adjusted = [
            replace(
                _placed(self._waived(result, waivers), row),
                adjustment=adjustments.get(result.name),
                comments=comments.get(result.name, ()),
            )
            for result in _results(self.course, submission, known)
        ]
        days, vague = policy.days_late(row.submitted, row.due), ""
        if row.submitted is None and row.late and policy.costs_lateness:
            vague = UNKNOWN_EXTENSION if row.due else UNKNOWN_DELAY
        under = [stored.confinement for stored in known.values() if stored.confinement]
        confinement = [layer for layer in (under or [()])[0] if all(layer in k for k in under)]
        report = self._reporter.report(submission, adjusted, self.seed, confinement)
        counted_days = ASSUMED_DELAY if vague == UNKNOWN_DELAY else days
        mark = policy.mark(adjusted, counted_days, adjustments.get(FINAL), free)
        kept = adjustments.get(kept_mark(row.hash))
        if kept and mark.points < kept.points:
            left = policy.mark(adjusted, counted_days, None, free).points
            up = Adjustment(round(kept.points - left, 2), kept.why)
            mark = policy.mark(adjusted, counted_days, up, free)
        return replace(
            report,
            person=row.person,
            attempt=row.number,
            submitted=self._in_zone(row.submitted),
            due=self._in_zone(row.due),
            notes=(*report.notes, *([vague] if vague == UNKNOWN_DELAY else [])),
            flags=(
                *_flags(submission, adjusted, mark),
                *([vague] if vague == UNKNOWN_EXTENSION else []),
                *self.ledger.flags(row.student),
                *self.ledger.damage(row.student),
            ),
            mark=mark,
        )

    def _waived(self, result: ExerciseResult, waivers: Sequence[Waiver]) -> ExerciseResult:
        """Return a result without what is waived, and with the name of its mistake."""
        own = [each for each in waivers if each.exercise == result.name]
        if not own or result.advice == NOT_YET:
            return self._reporter.named(result)
        worth, once = self._worth[result.name], self.course.policy.carry_forward
        named = self._reporter.named(without_waived(result, own, worth, charge_once=once))
        return without_dropped(named, own, worth)

    def _in_zone(self, time: datetime | None) -> str:
        """Return a time in the course's zone, or in its own if the course has none."""
        zone = self.course.policy.zone
        return "" if time is None else (time.astimezone(zone) if zone else time).isoformat()

    def _counting(self, graded: list[tuple[Report, Submission]]) -> tuple[Report, Submission]:
        """Return the attempt that counts: with `best` the highest mark, the latest of equals."""
        if self.which == "best":
            return max(graded, key=lambda one: (one[0].counted, one[0].attempt))
        return graded[0] if self.which == "first" else graded[-1]


def _results(course: Course, submission: Submission, known: Known) -> Iterator[ExerciseResult]:
    for exercise in course.exercises:
        if problem := problem_of(submission, exercise.name):
            yield not_run(exercise, problem)
        elif exercise.name not in known:
            yield not_run(exercise, NOT_YET)
        else:
            yield decode_result(exercise.name, known[exercise.name].result)


def _named_in(report: Report) -> str:
    """Return, as text, the diagnoses with a teacher's name, which no stored result has."""
    diagnoses = (result.diagnosis for result in report.exercises)
    return repr([d for d in diagnoses if d is not None and d.faults and d.signature])


def _placed(result: ExerciseResult, row: AttemptRow) -> ExerciseResult:
    own = {row.graded_paths[name]: path for name, path in row.paths.items()}

    def placed(test: Outcome) -> Outcome:
        if test.where is None:
            return test
        file, comma, cell = test.where.file.partition(",")
        return replace(test, where=replace(test.where, file=f"{own.get(file, file)}{comma}{cell}"))

    return replace(result, tests=tuple(placed(test) for test in result.tests))


def _flags(submission: Submission, results: list[ExerciseResult], mark: Mark) -> Iterator[str]:
    reasons = set(submission.problems.values())
    if len(reasons) == 1 and len(submission.problems) == len(results):
        yield f"could not be read: {next(iter(reasons))}"
    else:
        yield from (f"{name} could not be read: {why}" for name, why in submission.problems.items())
    said = " ".join(reasons)
    notes = (note for note in submission.notes if needs_review(note))
    yield from (note for note in notes if as_reason([note]) not in said)
    for result in results:
        if not result.passed and (missing := _missing_module(result)):
            yield f"{result.name} failed because a module is missing: {missing}; needs review"
        if result.advice == NOT_YET:
            yield f"{result.name} is {NOT_YET}"
        elif result.name in submission.files and not result.tests:
            yield f"{result.name} could not be graded: {result.advice}"
        if errors := sum(test.outcome == "error" for test in result.tests):
            checks = "1 check" if errors == 1 else f"{errors} checks"
            yield f"{result.name}: {checks} failed because of an error in the course"
        if result.adjustment and not 0 <= result.counted <= result.max_points:
            says = f"{result.counted:g} of {result.max_points} points"
            yield f"{result.name} counts {says}, as it was adjusted; needs review"
    if mark.adjustment and mark.adjustment.points > 0 and mark.points > mark.max_points:
        says = f"{mark.points:g} of {mark.max_points:g} points"
        yield f"the mark counts {says}, as it was adjusted; needs review"


def _missing_module(result: ExerciseResult) -> str:
    """Return the missing module that an exercise imports, if checks failed because of it."""
    messages = (test.message for test in result.tests if test.kind == "ModuleNotFoundError")
    found = (MISSING.search(message) for message in messages)
    return next((match[1] for match in found if match), "")
