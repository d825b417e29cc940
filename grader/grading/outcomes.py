"""From an entry of pytest-json-report to an `Outcome`: what the student is told of a test.

The one place that knows the format of an entry. Neither pytest's own text nor a line of a suite
ever gets further than here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest

from grader.grading import plugin as pytest_plugin
from grader.errors import CheckFailure, GraderError, Mismatch, StudentFailure
from grader.submissions.notebook import cell_of
from grader.report import Excerpt, Frame, Outcome, Verdict, clean
from grader.sandbox.cells import CELL, NOTEBOOK
from grader.submissions.submission import Submission

AROUND = 4  # lines of the student's code shown before and after the one that failed
PLAIN_KINDS = {"Timeout", "Crash", "Protocol", "Missing", "Forbidden"}  # need no type in front


@dataclass
class Evidence:
    """What a test left behind, beside its entry: the exception, the output, whether it called."""

    error: BaseException | None = None
    printed: str = ""
    called: bool = False


EVIDENCE: pytest.StashKey[Evidence] = pytest.StashKey()


def points_of(item: pytest.Item) -> int:
    """What a test is worth: its `points` mark, 1 without."""
    mark = item.get_closest_marker("points")
    return int(mark.args[0]) if mark else 1


def outcome_of(entry: dict[str, Any], item: pytest.Item, submission: Submission) -> Outcome:
    """The outcome of one test that has just run."""
    evidence = item.stash[EVIDENCE]
    verdict, account = _verdict(entry["outcome"], evidence, submission)
    worth = points_of(item)
    visible = item.get_closest_marker("visible")
    return Outcome(
        name=item.name,
        sentence=pytest_plugin.sentence(item),
        outcome=verdict,
        points=worth if verdict == "passed" else 0,
        max_points=worth,
        printed=clean(evidence.printed),
        visible=visible.args[0] if visible else "always",
        **account,
    )


def _verdict(
    outcome: str, evidence: Evidence, submission: Submission
) -> tuple[Verdict, dict[str, Any]]:
    error = evidence.error
    if outcome == "passed":
        return "passed", {}
    if outcome == "skipped":
        return "skipped", {"message": str(error)}
    if isinstance(error, CheckFailure):
        return "failed", _failure(error, submission)
    if isinstance(error, AssertionError):
        return "failed", {"message": "this does not hold for your code", "kind": "property"}
    kind, text = type(error).__name__, clean(str(error)).partition("\n")[0]
    if isinstance(error, GraderError) or not evidence.called:
        return "error", {"message": f"the course's own test broke: {kind}: {text}", "kind": kind}
    return "failed", {
        "message": f"what your code returned cannot be used here ({kind}: {text})",
        "kind": kind,
    }


def _failure(error: CheckFailure, submission: Submission) -> dict[str, Any]:
    account: dict[str, Any] = {"message": clean(error.message), "kind": "property"}
    if isinstance(error, Mismatch) and error.difference is not None:
        difference = error.difference
        account["kind"] = difference.aspect
        account["expected"], account["actual"] = difference.expected, _cleaned(difference.actual)
    elif isinstance(error, StudentFailure):
        account["kind"] = clean(error.kind)
        if error.kind not in PLAIN_KINDS:
            colon = ": " if error.message else ""
            account["message"] = clean(f"your code raised {error.kind}{colon}{error.message}")
        account["called"] = clean(error.called)
        if error.frames:
            account["where"] = _placed(error.frames[-1], submission)
    return account


def _cleaned(part: Excerpt) -> Excerpt:
    return part if part.shape is not None else replace(part, text=clean(part.text))


def _placed(frame: Frame, submission: Submission) -> Frame:
    """A place under the path that the file has for whoever reads the report."""
    name = frame.file.rpartition(".")[0]
    path, line = submission.paths.get(name, frame.file), frame.line
    before, after = _around(submission.files.get(name, ""), line)
    if frame.file.endswith(NOTEBOOK):
        cell, line = cell_of(submission.files.get(name, ""), line)
        path = f"{path}, cell {cell}"
    return Frame(
        clean(path),
        line,
        clean(frame.source),
        frame.column,
        clean(frame.function),
        "\n".join(map(clean, before + after)),
        line - len(before) if after else 0,
    )


def _around(text: str, line: int) -> tuple[list[str], list[str]]:
    """A few lines of the code before line number `line`, and a few from there, of one cell."""
    lines = text.split("\n")
    before = lines[max(0, line - 1 - AROUND) : line - 1]
    after = lines[line - 1 : line + AROUND]
    starts = [number for number, here in enumerate(before) if here.startswith(CELL)]
    ends = [number for number, here in enumerate(after) if here.startswith(CELL)]
    return before[starts[-1] + 1 if starts else 0 :], after[: ends[0] if ends else None]
