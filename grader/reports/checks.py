"""The checks of a report in the form that other tools need: a name, a verdict and plain text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from grader.report import ExerciseResult, Explanation, Outcome, Report
from grader.reports.charges import (
    CONSEQUENCE,
    GIVEN_BACK,
    cases_lines,
    checks_line,
    scaled_line,
    sum_line,
)
from grader.reports.figures import amount

GIVEN_BACK_NAME = "given_back"  # no test has this name, because names of tests begin with "test"
STAGES = {"always": 0, "after_due": 1, "never": 2}  # ranks of visibility, the earliest first


@dataclass(frozen=True)
class ReportedCheck:
    """One test of an exercise. `number` has the exercise's number and its own, from 1.1.

    `name` is unique within the exercise; `details` is the whole verdict as plain text.
    """

    number: str
    name: str
    exercise: ExerciseResult
    test: Outcome
    details: str


def checks(report: Report) -> Iterator[ReportedCheck]:
    """Yield the checks of every exercise, or a single failed one if it has no tests.

    The points of all checks add up to those of the report: if a mistake is charged once, the last
    check of its exercise gives the points back.
    """
    for place, exercise in enumerate(report.exercises, 1):
        taken: Counter[str] = Counter()
        for index, test in enumerate(exercise.tests or [_not_graded(exercise)], 1):
            name = unique(test.sentence or test.name, taken)
            yield ReportedCheck(f"{place}.{index}", name, exercise, test, _details(exercise, test))
        if exercise.given_back:
            number = f"{place}.{len(exercise.tests) + 1}"
            yield ReportedCheck(number, unique(GIVEN_BACK, taken), exercise, *_given_back(exercise))


def _given_back(result: ExerciseResult) -> tuple[Outcome, str]:
    """Return a check without a maximum that gives points back, no more visible than any other."""
    visible = max((test.visible for test in result.tests), key=STAGES.__getitem__)
    line = Outcome(GIVEN_BACK_NAME, GIVEN_BACK, "passed", result.given_back, 0, visible=visible)
    return line, "\n".join(filter(None, [sum_line(result), checks_line(result)]))


def _not_graded(result: ExerciseResult) -> Outcome:
    advice = result.advice or "nothing was checked"
    return Outcome("", "It can be graded.", "failed", result.points, result.max_points, advice)


def unique(name: str, taken: Counter[str]) -> str:
    """Return the name, with a number appended if it is already taken, and count it as taken."""
    taken[name] += 1
    return name if taken[name] == 1 else unique(f"{name} ({taken[name]})", taken)


def summary_lines(report: Report) -> Iterator[str]:
    """Yield the lines about a report besides its checks."""
    for result in report.exercises:
        if result.advice and result.tests:
            yield f"{result.title}: {result.advice}"
        yield from (f"{result.title}: {line}" for line in filter(None, [scaled_line(result)]))
        for test in result.tests:
            if test.waived and test.visible != "never":
                yield f"{result.title}: {test.sentence} {test.waived}"
        for comment in result.comments:
            yield f"{result.title}: {comment.place}: {comment.text}"
        if change := result.adjustment:
            sign = "+" if change.points > 0 else ""
            yield f"{result.title}: {sign}{amount(change.points)} points: {change.why}"
    if report.mark and report.mark.says:
        yield report.mark.says
    yield from (f"note: {note}" for note in report.notes)


# --- details of a test ----------------------------------------------------------------------------


def _details(result: ExerciseResult, test: Outcome) -> str:
    if test.outcome == "passed":
        return ""
    after = CONSEQUENCE if test.consequence else ""
    wrong = [f"✗ {line}" for line in cases_lines(test)]
    said = [test.message, *wrong, *_explained(result, test), *_placed(test), after]
    return "\n".join(filter(None, said))


def _explained(result: ExerciseResult, test: Outcome) -> Iterator[str]:
    """Yield the mistakes that a failed test shows, as far as its visibility allows."""
    diagnosis = result.diagnosis
    if diagnosis is None:
        return
    stages = {other.name: STAGES[other.visible] for other in result.tests}
    shown = [each for each in (diagnosis, *diagnosis.tie) if _may_show(each, test, stages)]
    for each in shown:
        yield f"→ {'' if each is shown[0] else 'or: '}{each.says}"
    if test is result.first_failure:
        yield from filter(None, (diagnosis.besides, *diagnosis.facts))
        if diagnosis.repeat:
            yield f"a call that shows it:\n{diagnosis.repeat}"
    step = diagnosis.first_wrong_step
    if step and shown:
        yield f"First wrong step: {step.says}"


def _may_show(explanation: Explanation, test: Outcome, stages: Mapping[str, int]) -> bool:
    """Return whether a test shows a mistake whose faults all show in tests visible as early."""
    now = STAGES[test.visible]
    faults = explanation.tests
    early = all(any(stages.get(name, now + 1) <= now for name in names) for names in faults)
    return early and any(test.name in names for names in faults)


def _placed(test: Outcome) -> Iterator[str]:
    if test.called:
        yield f"the call: {test.called}"
    if where := test.where:
        yield f"{where.file}:{where.line}: {where.source.strip()}"
    if test.printed:
        yield f"your code printed:\n{test.printed}"
