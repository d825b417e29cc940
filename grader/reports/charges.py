"""The sentences on what is charged: mistakes once, with their prices, and late days or none."""

from __future__ import annotations

from grader.report import ExerciseResult, Mark, Outcome
from grader.reports.figures import amount

CONSEQUENCE = "a consequence of the mistake above, charged once"
GIVEN_BACK = "A mistake is charged once."
ALL_ELSE = "All else is as it should be."
EXPLAINED = " (explained by the mistake)"
MAX_CASES = 5  # wrong cases listed for a check
OTHERS = "Other checks fail, too."


def cases_lines(test: Outcome) -> list[str]:
    """Return the sentences of a check's wrong cases, with a mark if a mistake explains them.

    A single unexplained case is left out, because it is in the check's message.
    """
    if len(test.wrong) < 2 and not any(case.explained for case in test.wrong):
        return []
    shown = [
        f"{case.sentence}{EXPLAINED if case.explained else ''}" for case in test.wrong[:MAX_CASES]
    ]
    more = len(test.wrong) - MAX_CASES
    return [*shown, f"and {more} more"] if more > 0 else shown


def sum_line(result: ExerciseResult) -> str:
    """Return the points of an exercise as a sum, with its mistakes; empty without prices.

    Several prices are repeated after their mistakes: "12 − 3 − 1: This. (3) That. (1)"
    """
    if not result.charges:
        return ""
    items = [(each.points, each.says) for each in result.charges]
    if result.lost_besides:
        items.append((result.lost_besides, OTHERS))
    sums = " − ".join(map(str, [result.worth, *(points for points, _ in items)]))
    several = len(items) > 1
    said = [f"{says} ({points})" if several else says for points, says in items]
    failed = [test for test in result.tests if test.outcome != "passed"]
    if all(test.consequence and all(case.explained for case in test.wrong) for test in failed):
        said.append(ALL_ELSE)
    return f"{sums}: {' '.join(said)}"


def budget_line(mark: Mark | None) -> str:
    """Return how many late days cost nothing from now on; empty without a budget."""
    if mark is None or mark.free_left is None:
        return ""
    spent = f"; this submission has used {amount(mark.free_days)}" if mark.free_days else ""
    return f"Free late days that are left: {amount(mark.free_left)}{spent}."


def checks_line(result: ExerciseResult) -> str:
    """Return the points of the checks and those given back; empty if nothing is given back."""
    if not result.given_back:
        return ""
    checks = result.points - result.given_back
    return (
        f"{checks} of {result.worth} points by the checks, "
        f"+ {result.given_back} because a mistake is charged once"
    )


def scaled_line(result: ExerciseResult) -> str:
    """Return how the points count after checks were taken out; empty if none was."""
    if not result.dropped:
        return ""
    scaled = result.points + result.scaled_by
    return (
        f"{result.points} of {result.worth} points count as {scaled:g} of {result.max_points}, "
        f"because checks worth {result.dropped} were taken out"
    )
