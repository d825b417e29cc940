"""Marks of a graded class in the formats of the platforms they go to."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from grader.classroom.standings import Classbook, Standing
from grader.errors import RequestError
from grader.classroom.gradebooks import Filled, Graded, fill_canvas, fill_moodle
from grader.classroom.ledger import Published
from grader.classroom.publishing import writing
from grader.reports.classroom50 import to_result
from grader.reports.grades import write_csv
from grader.reports.gradescope import to_results
from grader.reports.junit import to_junit
from grader.course.visibility import for_student

FILLED: Mapping[str, Callable[..., Filled]] = {"canvas": fill_canvas, "moodle": fill_moodle}
MAX_GRADEBOOK_BYTES = 64 << 20


@dataclass(frozen=True)
class Asked:
    """What is asked for: a format, the gradebook to fill in, where to, and which column."""

    form: str
    gradebook: Path | None = None
    output: Path | None = None
    column: str | None = None
    scale: bool = False


def export(
    book: Classbook, folder: Path, asked: Asked, environment: Mapping[str, str]
) -> list[str]:
    """Write the marks that were published; returns what was done, in sentences."""
    standings = list(_published(book))
    if asked.form in FILLED:
        return _fill(book, standings, folder, asked)
    shown = {s.report.submission: _shown(book, s) for s in standings}
    if asked.form == "csv":
        output = asked.output or folder / "marks.csv"
        with writing(output) as file:
            write_csv(file, book.course.names, (s.report.to_json() for s in standings))
    elif asked.form == "junit":
        output = asked.output or folder / "junit.xml"
        with writing(output) as file:
            file.write(to_junit(shown.values()))
    else:
        output = asked.output or folder / asked.form
        for standing in standings:
            _write_one(book, standing, asked.form, output, environment)
    return [f"{len(standings)} students: {output}"]


def _published(book: Classbook) -> Iterator[Standing]:
    """Everybody's standing, if it is what they were told."""
    students = book.ledger.students()
    stale = []
    for student in students:
        standing, told = book.standing(student), book.ledger.published(student)
        now = standing.published(book.rules) if standing else None
        if standing is None or told is None or now is None or _changes(told, now):
            stale.append(student)
        else:
            yield standing
    if stale:
        more = f" and {len(stale) - 5} more" if len(stale) > 5 else ""
        raise RequestError(
            f"the marks of {', '.join(stale[:5])}{more} are not published as they stand now",
            "grader regrade   shows what has changed, and publishes it",
        )
    if not students:
        raise RequestError("nobody was graded here", "grader batch SUBMISSIONS --out DIR")


def _changes(told: Published, now: Published) -> bool:
    """Whether somebody was told of another mark, or of one by other rules."""
    return (told.rules, told.seed, told.points) != (now.rules, now.seed, now.points)


def _shown(book: Classbook, standing: Standing, *, later: bool = False) -> dict[str, Any]:
    """A report as its student may see it, now or once everything is due."""
    due = book.course.policy.due
    now = due + timedelta(seconds=1) if later and due else None
    return for_student(standing.report, book.course.policy, now).to_json()


def _fill(book: Classbook, standings: list[Standing], folder: Path, asked: Asked) -> list[str]:
    """Fill in a gradebook: a copy of it, unless told otherwise."""
    if asked.gradebook is None:
        raise RequestError(
            f"which gradebook? Download it from {asked.form.capitalize()}",
            f"grader export {asked.form} GRADEBOOK.csv",
        )
    graded = [
        Graded(s.report.submission, s.report.person, s.report.mark.points, s.report.mark.max_points)
        for s in standings
        if s.report.mark is not None
    ]
    filled = FILLED[asked.form](
        _read(asked.gradebook), graded, column=asked.column, scale=asked.scale
    )
    output = asked.output or folder / f"{asked.gradebook.stem}-graded{asked.gradebook.suffix}"
    with writing(output) as file:
        file.buffer.write(filled.data)
    told = [f"{filled.written} marks in column {filled.column}: {output}"]
    if filled.without:
        told.append(f"left as they were, {len(filled.without)}: {', '.join(filled.without[:20])}")
    if filled.excused:
        told.append(f"excused, and left as they were: {', '.join(filled.excused)}")
    return told


def _read(path: Path) -> bytes:
    try:
        if path.stat().st_size > MAX_GRADEBOOK_BYTES:
            raise RequestError(f"{path} is larger than {MAX_GRADEBOOK_BYTES >> 20} MiB")
        return path.read_bytes()
    except OSError as error:
        raise RequestError(f"cannot read {path}: {error.strerror}") from None


def _write_one(
    book: Classbook, standing: Standing, form: str, output: Path, environment: Mapping[str, str]
) -> None:
    """One student's results as the platform's own autograder would leave them."""
    shown = _shown(book, standing)
    if form == "gradescope":
        name, data = "results.json", to_results(shown, _shown(book, standing, later=True))
    else:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        name, data = "result.json", to_result(shown, environment, now)
    with writing(output / standing.report.submission / name) as file:
        file.write(json.dumps(data, indent=2, ensure_ascii=False) + "\n")
