"""The names that teachers gave to mistakes that the course does not know. Imports no torch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from grader.course.named import Named
from grader.grading.failures import SELF_EXPLAINING
from grader.grading.price import charged_once, price_of
from grader.grading.signatures import is_same_everywhere, is_same_mistake
from grader.report import Diagnosis, ExerciseResult


def with_name(
    result: ExerciseResult, named: Iterable[Named], *, charge_once: bool
) -> ExerciseResult:
    """Return a result whose unnamed mistake has the teacher's name, if there is one for it.

    It is charged once only if all its answers, at edges too, are those of the named mistake.
    """
    diagnosis = result.diagnosis
    if diagnosis is None or diagnosis.faults or not diagnosis.signature:
        return result
    for each in named:
        if is_same_mistake(each.signature, diagnosis.signature):
            found = replace(result, diagnosis=_explained(result, diagnosis, each))
            return charged_once(found) if charge_once else found
    return result


def _explained(result: ExerciseResult, diagnosis: Diagnosis, named: Named) -> Diagnosis:
    shows = (
        t.name for t in result.tests if t.outcome == "failed" and t.kind not in SELF_EXPLAINING
    )
    return replace(
        diagnosis,
        faults=(named.id,),
        says=named.says,
        hint=named.hint,
        tests=(tuple(shows),),
        each=(named.says,),
        costs=(price_of(named.as_fault(), result.max_points),),
        facts=(),
        repeat="",
        complete=is_same_everywhere(named.signature, diagnosis.signature),
    )
