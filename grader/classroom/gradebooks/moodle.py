"""The grading worksheet that Moodle exports, in any language: its columns and its rows.

The order of the columns is fixed, but Moodle writes their names in the teacher's language. If the
names are not the English ones, the columns are recognised by their values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from grader.classroom.gradebooks import fill
from grader.classroom.gradebooks.match import GradebookRow, StudentMark, keys
from grader.classroom.gradebooks.table import CsvRecord, Table, read_table
from grader.errors import RequestError

_PARTICIPANT = re.compile(r"(.*[^0-9])([0-9]+)", re.DOTALL)
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+")
COMMENTS = "feedback comments"
DOWNLOAD = "download it in Moodle: the assignment, Submissions, Download grading worksheet"


@dataclass(frozen=True)
class CommentColumn:
    """The choices for comments: the column's name, if necessary, and a test for our own comments.

    A comment that is not ours stays as it is.
    """

    name: str | None
    is_own: Callable[[str], bool]


@dataclass(frozen=True)
class WorksheetColumns:
    """The indexes of a worksheet's columns; None if there is no such column."""

    identifier: int
    grade: int
    maximum: int
    name: int | None
    email: int | None
    modified: int | None = None  # the time of submission


def fill_moodle(
    data: bytes,
    marks: Sequence[StudentMark],
    *,
    column: str | None = None,
    scale: bool = False,
    per_exercise: bool = False,
    skip_unmatched: bool = False,
    comments: CommentColumn | None = None,
) -> fill.Filled:
    """Fill the marks into a downloaded grading worksheet.

    `column` names the column of grades if it cannot be recognised. `scale` converts the marks to
    the worksheet's maximum grade. With `per_exercise`, the points of each exercise go into a
    column of their own, after all others. With `comments`, the marks' comments are filled in, too.
    Raises `RequestError` and writes nothing unless every mark has a row of its own;
    `skip_unmatched` leaves out those without.
    """
    table = read_table(data)
    records = [r for r in table.records if any(table.text(field).strip() for field in r)]
    if not records:
        raise RequestError("the worksheet has no students", DOWNLOAD)
    cells = [[table.cell(record, i) for i in range(len(table.columns))] for record in records]
    columns = find_columns(table.columns, cells, column)
    rows = [_row(table, record, columns) for record in records]
    maxima = [table.cell(record, columns.maximum) for record in records]
    maximum, comma = fill.parse_number(maxima[0]), fill.has_decimal_comma(maxima)
    worksheet = fill.Scale(maximum, comma, scale, closed=True)
    filled = [fill.mark_column(table, columns.grade, worksheet)]
    exercises = fill.exercises_of(marks)
    after = {i: name for i, name in enumerate(table.columns) if i > columns.maximum and name}
    own = exercises if per_exercise or comments is not None else ()
    called = {each.name: fill.find_exercise(after, each) for each in own}
    if per_exercise:
        plain = fill.Scale(comma=comma)
        for each in exercises:
            title = each.title or each.name
            filled.append(fill.exercise_column(title, called[each.name], each.name, plain))
    if comments is not None:
        free = {i: name for i, name in after.items() if i not in called.values()}
        index = _comments(table, records, free, comments.name)
        filled.append(
            fill.Column(
                *(table.columns[index], index, lambda mark: mark.comment),
                keeps=lambda cell: bool(cell) and not comments.is_own(cell),
                is_comment=True,
            )
        )
    return fill.fill_columns(table, filled, rows, marks, skip_unmatched)


def _comments(
    table: Table, records: Sequence[CsvRecord], after: dict[int, str], wanted: str | None
) -> int:
    """Return the column of the comments, which comes after the maximum grade.

    Without a name, it is the one with Moodle's English name, or the only one that holds nothing but
    empty cells and HTML: the others there say yes or no, or a time.
    """
    if wanted is not None:
        return fill.find_column(after, wanted)
    named = [i for i, name in after.items() if name.casefold() == COMMENTS]
    texts = {i: [table.cell(record, i) for record in records] for i in after}
    found = named or [i for i in after if all(not t or t.startswith("<") for t in texts[i])]
    if len(found) != 1:
        reason = "several columns could hold" if found else "no column seems to hold"
        among = fill.list_columns({i: after[i] for i in found} or after)
        raise RequestError(
            f"{reason} the feedback comments: {among}",
            "--comments with one of them; or turn on Feedback comments in the assignment, and "
            "download the worksheet again",
        )
    return found[0]


def _row(table: Table, record: CsvRecord, columns: WorksheetColumns) -> GradebookRow:
    identifier = table.cell(record, columns.identifier)
    ids = [identifier, participant_number(identifier)]
    return GradebookRow(
        name=table.cell(record, columns.name) or identifier,
        keys=keys(id=ids, email=[table.cell(record, columns.email)]),
        line=table.line(record[0]),
        record=record,
    )


def participant_number(identifier: str) -> str:
    """Return the number of a participant, without the word before it; "" if there is none."""
    found = _PARTICIPANT.fullmatch(identifier)
    return found[2] if found else ""


def find_columns(
    names: Sequence[str], rows: Sequence[Sequence[str]], wanted: str | None = None
) -> WorksheetColumns:
    """Find the columns of a worksheet by its header and its rows, which have the same length.

    `wanted` names the column of grades. Raises `RequestError` if this is not a worksheet.
    """
    known = {name.casefold(): i for i, name in reversed(list(enumerate(names)))}
    values = [[row[index] for row in rows] for index in range(len(names))]
    identifier = next((i for i, texts in enumerate(values) if _are_participants(texts)), None)
    if identifier is None:
        among = fill.list_columns(dict(enumerate(names)))
        raise RequestError(f"no column holds participants with their numbers: {among}", DOWNLOAD)
    grade, maximum = _grade_and_maximum(names, values, known, wanted)
    email = next((i for i, texts in enumerate(values) if _are_emails(texts)), None)
    name = known.get("full name", identifier + 1)
    has_names = name < len(values) and name != grade
    email = known.get("email address", email)
    named, modified = name if has_names else None, _modified(names, maximum)
    return WorksheetColumns(identifier, grade, maximum, named, email, modified)


def _modified(names: Sequence[str], maximum: int) -> int | None:
    """Return the column of the time of submission.

    After the maximum come two times, first of the submission and then of the grade. In every
    language their names differ only in the brackets, as in "Last modified (grade)".
    """
    first: dict[str, int] = {}
    for index in range(maximum + 1, len(names)):
        stem, bracket, _ = names[index].replace("（", "(").rpartition("(")
        if bracket and stem in first:
            return first[stem]
        first[stem] = index
    return None


def _grade_and_maximum(
    columns: Sequence[str],
    values: Sequence[Sequence[str]],
    known: dict[str, int],
    wanted: str | None,
) -> tuple[int, int]:
    names = dict(enumerate(columns))
    if wanted is None and "grade" in known and _is_maximum(values, known.get("maximum grade")):
        return known["grade"], known["maximum grade"]
    possible = [
        index
        for index in range(len(values) - 1)
        if _is_maximum(values, index + 1) and _has_moodles_neighbours(values, index + 1)
    ]
    among = fill.list_columns({index: names[index] for index in possible} or names)
    if wanted is not None:
        grade = fill.find_column(names, wanted)
        if not _is_maximum(values, grade + 1):
            raise RequestError(
                f"the column {names[grade]!r} is not followed by one that holds the maximum grade",
                f"--column with one of {among}",
            )
        return grade, grade + 1
    if len(possible) != 1:
        reason = "several columns could hold" if possible else "no column seems to hold"
        raise RequestError(
            f"{reason} the grades: {among}",
            "--column with the column just before the maximum grade",
        )
    return possible[0], possible[0] + 1


def _is_maximum(values: Sequence[Sequence[str]], index: int | None) -> bool:
    """Return whether every row of a column holds the same positive number."""
    if index is None or index >= len(values):
        return False
    maximum = fill.parse_number(values[index][0])
    return bool(maximum) and len(set(values[index])) == 1


def _has_moodles_neighbours(values: Sequence[Sequence[str]], index: int) -> bool:
    """Return whether the columns beside a maximum grade are the ones that Moodle writes there.

    The column before it holds grades: empty cells, or numbers up to the maximum. The column after
    it holds words: whether the grade can be changed, or the state of marking.
    """
    maximum = fill.parse_number(values[index][0])
    grades = [fill.parse_number(text) for text in values[index - 1] if text]
    if maximum is None or any(grade is None or grade > maximum for grade in grades):
        return False
    after = values[index + 1] if index + 1 < len(values) else []
    return bool(after) and all(text and fill.parse_number(text) is None for text in after)


def _are_participants(texts: Sequence[str]) -> bool:
    found = [_PARTICIPANT.fullmatch(text) for text in texts]
    return all(found) and len({match[1] for match in found if match}) == 1


def _are_emails(texts: Sequence[str]) -> bool:
    return any(texts) and all(_EMAIL.fullmatch(text) for text in texts if text)
