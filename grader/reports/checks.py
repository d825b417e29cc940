"""Every check of a report as the formats of other tools want it: a name, a verdict, a text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

SEEN = {"always": 0, "after_due": 1, "never": 2}  # how late a test is seen, of those in a report


@dataclass(frozen=True)
class Check:
    """One check. `number` counts exercises and checks, from 1.1; `name` is its exercise's alone.

    `message` is one line, `says` all there is to say, as plain text.
    """

    number: str
    exercise: str
    title: str
    name: str
    outcome: str
    points: int
    max_points: int
    message: str
    kind: str
    says: str
    visible: str


def checks(report: Mapping[str, Any]) -> Iterator[Check]:
    """Every check of every exercise; of one that could not be graded, a single one that failed."""
    for place, exercise in enumerate(report["exercises"], 1):
        if not exercise["tests"]:
            yield _not_graded(exercise, place)
        taken: Counter[str] = Counter()
        for index, test in enumerate(exercise["tests"], 1):
            yield Check(
                number=f"{place}.{index}",
                exercise=exercise["name"],
                title=exercise["title"],
                name=unique(test["sentence"] or test["name"], taken),
                outcome=test["outcome"],
                points=test["points"],
                max_points=test["max_points"],
                message=test["message"],
                kind=test["kind"],
                says=_says(exercise, test),
                visible=test["visible"],
            )


def _not_graded(exercise: Mapping[str, Any], place: int) -> Check:
    advice = exercise["advice"] or "nothing was checked"
    return Check(
        number=f"{place}.1",
        exercise=exercise["name"],
        title=exercise["title"],
        name="It can be graded.",
        outcome="failed",
        points=exercise["points"],
        max_points=exercise["max_points"],
        message=advice,
        kind="",
        says=advice,
        visible="always",
    )


def unique(name: str, taken: Counter[str]) -> str:
    """The name, with a number behind it from its second time on."""
    taken[name] += 1
    if taken[name] == 1:
        return name
    return unique(f"{name} ({taken[name]})", taken)


def counted(report: Mapping[str, Any]) -> tuple[float, float]:
    """What a submission counts, and the most it could: its mark, where it has one."""
    what = report.get("mark") or report
    return what["points"], what["max_points"]


def amount(value: float) -> str:
    """Points with two decimals at most."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


# --- what there is to say of a test ---------------------------------------------------------------


def _says(exercise: Mapping[str, Any], test: Mapping[str, Any]) -> str:
    if test["outcome"] == "passed":
        return ""
    return "\n".join(filter(None, [test["message"], *_explained(exercise, test), *_placed(test)]))


def _explained(exercise: Mapping[str, Any], test: Mapping[str, Any]) -> Iterator[str]:
    """The mistake that a failed test shows, as far as it may be told together with that test."""
    diagnosis = exercise["diagnosis"]
    if not diagnosis:
        return
    seen = {other["name"]: SEEN[other["visible"]] for other in exercise["tests"]}
    told = [one for one in (diagnosis, *diagnosis["tie"]) if _may_tell(one, test, seen)]
    for one in told:
        yield f"→ {'' if one is told[0] else 'or: '}{one['says']}"
    step = diagnosis["first_wrong_step"]
    if step and step["test"] == test["name"]:
        yield f"First wrong step: {step['says']}"


def _may_tell(
    explanation: Mapping[str, Any], test: Mapping[str, Any], seen: Mapping[str, int]
) -> bool:
    """Whether a test shows a mistake, of which all is known from tests seen as early as it."""
    shows: list[list[str]] = [list(names) for names in explanation["tests"]]
    when = SEEN[test["visible"]]
    early = all(any(seen.get(name, when + 1) <= when for name in names) for names in shows)
    return early and any(test["name"] in names for names in shows)


def _placed(test: Mapping[str, Any]) -> Iterator[str]:
    if test["called"]:
        yield f"called as {test['called']}"
    if where := test["where"]:
        yield f"{where['file']}:{where['line']}: {where['source'].strip()}"
    if test["printed"]:
        yield f"your code printed:\n{test['printed']}"
