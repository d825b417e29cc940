"""The price of a mistake: what it costs once, however many checks it fails.

A teacher deducts for a mistake, not for its echoes. Where the diagnosis explains every wrong
answer, an exercise is worth at least its maximum less the prices of its mistakes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from grader.course.faults import Fault
from grader.report import Diagnosis, ExerciseResult, Explanation


def price_of(fault: Fault, max_points: int) -> int:
    """Return what a mistake costs in points; a third of the exercise unless it says otherwise."""
    return fault.costs or max(1, round(max_points / 3))


def charged_once(
    result: ExerciseResult, diagnosis: Diagnosis, faults: Mapping[str, Fault]
) -> ExerciseResult:
    """Return the result with the points that echoes of the mistakes took given back.

    What fails for another reason is charged as before. Of several explanations, the dearest counts.
    """
    if not diagnosis.faults or not diagnosis.complete:
        return result
    taken = max(_taken(result, each, faults) for each in (diagnosis, *diagnosis.tie))
    given_back = max(0, result.max_points - taken - result.points)
    return replace(result, points=result.points + given_back, given_back=given_back)


def _taken(result: ExerciseResult, explained: Explanation, faults: Mapping[str, Fault]) -> int:
    """Return what the mistakes cost, with what failed for other reasons."""
    echoes = set().union(*(faults[name].fails for name in explained.faults))
    waiting = {
        test.name
        for test in result.tests
        if test.outcome == "skipped" and any(f'"{name}"' in test.message for name in echoes)
    }
    others = (test for test in result.tests if test.name not in echoes | waiting)
    prices = (price_of(faults[name], result.max_points) for name in explained.faults)
    return sum(prices) + sum(test.max_points - test.points for test in others)
