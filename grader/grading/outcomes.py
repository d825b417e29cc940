"""Outcomes of tests. Nothing else leaves a test run, so students never see a suite's source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import pytest

from grader.errors import CheckFailure, CourseError, GraderError, Mismatch, StudentFailure
from grader.grading import plugin
from grader.grading.compare import FORGOTTEN
from grader.report import Frame, Outcome, clean
from grader.sandbox.cells import CELL, NOTEBOOK
from grader.submissions.notebook import cell_of
from grader.submissions.submission import Submission

DEFINES = ("import ", "from ", "class ", "def ", "async ", "@")  # begin lines that a file needs
SCRIPT = 'put what only tries the code under `if __name__ == "__main__":`'
MAX_LINE = 100  # characters of a line of code in a message
NEAR = 300  # characters shown of a line of code before the column that matters
AROUND = 4  # lines of the student's code shown before and after the failed line
UNUSABLE = "Unusable"  # a test broke at a result of the code; the test may be wrong
# Failures whose messages are shown without the name of an exception.
PLAIN_KINDS = {"Timeout", "Crash", "Protocol", "Missing", "Forbidden"}


@dataclass(frozen=True)
class Evidence:
    """A test's side results: the output of the student's code, and whether it was called."""

    submission: Submission
    printed: str = ""
    called: bool = False


EVIDENCE: pytest.StashKey[Evidence] = pytest.StashKey()


def points_of(item: pytest.Item) -> int:
    """Return the points of a test: those of its `points` mark, or 1 without one.

    Raises `CourseError` if the mark does not hold a whole number.
    """
    mark = item.get_closest_marker("points")
    if mark is None:
        return 1
    match mark.args:
        case (int(worth),) if worth >= 0 and not isinstance(worth, bool):
            return worth
    given = ", ".join(map(repr, mark.args))
    says = f"{item.path}: {item.name} has the mark points({given}); points are a whole number"
    raise CourseError(says, "grader validate")


def outcome_of(entry: dict[str, Any], item: pytest.Item) -> Outcome:
    """Return the outcome of one test that has just run, from its entry in the JSON report."""
    outcome = _passed(item)
    if entry["outcome"] != "passed":
        outcome = msgspec.convert(entry["metadata"], Outcome)
    return replace(outcome, printed=clean(item.stash[EVIDENCE].printed))


def _passed(item: pytest.Item) -> Outcome:
    worth, visible = points_of(item), item.get_closest_marker("visible")
    shown = visible.args[0] if visible else "always"
    return Outcome(item.name, plugin.sentence(item), "passed", worth, worth, visible=shown)


def account_of(error: BaseException, item: pytest.Item) -> dict[str, Any]:
    """Return the outcome of a test that raised `error`, as data for pytest-json-report."""
    failed = replace(_passed(item), outcome="failed", points=0)
    outcome = _explained(failed, error, item.stash[EVIDENCE])
    outcome = replace(outcome, wrong=getattr(error, "cases", ()))
    return msgspec.to_builtins(outcome)  # type: ignore[no-any-return]


def _explained(failed: Outcome, error: BaseException, evidence: Evidence) -> Outcome:
    if isinstance(error, pytest.skip.Exception):
        return replace(failed, outcome="skipped", message=str(error))
    if isinstance(error, CheckFailure):
        return _explained_check(failed, error, evidence.submission)
    if isinstance(error, AssertionError):
        return replace(failed, message="this does not hold for your code", kind="property")
    kind, text = type(error).__name__, clean(str(error)).partition("\n")[0]
    if isinstance(error, GraderError) or not evidence.called:
        message = f"the course's own test broke: {kind}: {text}"
        return replace(failed, outcome="error", message=message, kind=kind)
    message = f"what your code returned cannot be used here ({kind}: {text})"
    if "'NoneType'" in text:
        message = f"something that your code returned is None: {FORGOTTEN} ({kind}: {text})"
    return replace(failed, message=message, kind=UNUSABLE)


def broken(outcome: Outcome) -> Outcome:
    """Return the outcome of a test that the reference fails as well: an error of the course."""
    message = f"the course's own test broke: the reference fails it, too ({outcome.message})"
    return replace(outcome, outcome="error", points=0, message=message)


def _explained_check(failed: Outcome, error: CheckFailure, submission: Submission) -> Outcome:
    message = clean(error.message)
    if isinstance(error, Mismatch) and (difference := error.difference) is not None:
        expected, actual = difference.expected, difference.actual
        if actual.shape is None:
            actual = replace(actual, text=clean(actual.text))
        kind: str = difference.aspect
        return replace(failed, message=message, kind=kind, expected=expected, actual=actual)
    if not isinstance(error, StudentFailure):
        return replace(failed, message=message, kind="property")
    if error.kind not in PLAIN_KINDS:
        colon = ": " if error.message else ""
        message = clean(f"your code raised {error.kind}{colon}{error.message}")
    where = _placed(error.frames[-1], submission) if error.frames else None
    if error.loading and error.frames:
        message += _set_off_by(error.frames, submission)
    kind, called = clean(error.kind), clean(error.called)
    return replace(
        failed, message=message, kind=kind, loading=error.loading, where=where, called=called
    )


def _set_off_by(frames: Sequence[Frame], submission: Submission) -> str:
    """Return an addition to an error while a file is loaded: the line that led to it."""
    first, says = _placed(frames[0], submission), ""
    source = first.source.strip()
    if len(frames) > 1:
        line = source if len(source) <= MAX_LINE else source[:MAX_LINE] + "…"
        says = f" (set off by {first.file}:{first.line}, `{line}`)"
    if first.function == "<module>" and not source.startswith(DEFINES):
        says += f"; {SCRIPT}"
    return says


def _placed(frame: Frame, submission: Submission) -> Frame:
    """Return the frame with the file's path in the submission and the code around its line."""
    name = frame.file.rpartition(".")[0]
    path, line = submission.paths.get(name, frame.file), frame.line
    before, after = _around(submission.files.get(name, ""), line)
    if frame.file.endswith(NOTEBOOK):
        cell, line = cell_of(submission.files.get(name, ""), line)
        path = f"{path}, cell {cell}"
    start, around = line - len(before) if after else 0, "\n".join(map(clean, before + after))
    function, (source, column) = clean(frame.function), _near(frame.source, frame.column)
    return Frame(clean(path), line, source, column, function, around, start)


def _near(source: str, column: int) -> tuple[str, int]:
    """Return the part of a line of code around a column that fits a report, and its column there.

    A tab counts as one column, so it becomes one space.
    """
    indent = len(source) - len(source.lstrip())
    if (cut := column - NEAR) > max(indent, 0):
        source, column = f"{source[:indent]}…{source[cut:]}", column - cut + indent + 1
    return clean(source.replace("\t", " ")), column


def _around(text: str, line: int) -> tuple[list[str], list[str]]:
    """Return `AROUND` lines before line `line`, and that line with as many after, of one cell."""
    lines = text.split("\n")
    before = lines[max(0, line - 1 - AROUND) : line - 1]
    after = lines[line - 1 : line + AROUND]
    starts = [number for number, here in enumerate(before) if here.startswith(CELL)]
    ends = [number for number, here in enumerate(after) if here.startswith(CELL)]
    return before[starts[-1] + 1 if starts else 0 :], after[: ends[0] if ends else None]
