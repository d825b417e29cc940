"""`grader comment`: comment on lines of students' code, in what goes home."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import click

from grader.classroom.comments import Spot, spot_in, spots_of
from grader.classroom.csv_files import read_lines
from grader.classroom.standings import Standings
from grader.classroom.stored.settings import SNIPPETS
from grader.classroom.stored.submissions import AttemptRow
from grader.commands.graded import (
    GRADED,
    count_students,
    echo_review,
    graded_class,
    known_student,
    republished,
)
from grader.commands.options import COURSE, FILE
from grader.course.course import Course
from grader.errors import RequestError, did_you_mean
from grader.report import without_controls

EXPECTED = "a CSV file with the columns student,file,line,comment; or snippet in place of comment"
USAGE = "grader comment STUDENT FILE:LINE TEXT, or grader comment --file CSV"
MAX_TEXT = 4000  # characters of a comment


@dataclass(frozen=True)
class LineComment:
    """A comment on a line of a student's file; without a text, the one there is taken back."""

    student: str
    file: str
    line: int
    text: str


@click.command()
@click.argument("words", nargs=-1, metavar="[STUDENT [FILE:LINE [TEXT]]]")
@click.option("--file", type=FILE, metavar="CSV", help=f"Many at once: {EXPECTED}.")
@click.option(
    "--snippet",
    metavar="NAME",
    help="With TEXT, keep it under this name; without, use the text that is kept.",
)
@click.option("--undo", is_flag=True, help="Take the comment on this line back.")
@GRADED
@COURSE
def comment(
    words: tuple[str, ...],
    file: Path | None,
    snippet: str | None,
    undo: bool,
    folder: Path,
    course: Course,
) -> int:
    """Comment on lines of a student's code. The comments stand beside the code in the report.

    \b
    grader comment s004 layer_norm.py:12 "Over which axis?" --in results/
    grader comment s004 layer_norm.py:12 "Over which axis?" --snippet axis --in results/
    grader comment s007 layer_norm.py:9 --snippet axis --in results/
    grader comment s004 layer_norm.py:12 --undo --in results/
    grader comment s004 --in results/           the comments on this code
    grader comment --file comments.csv --in results/

    FILE is a file or an exercise, LINE a number as the page with the student's code has it: a
    click on a number there copies the command. Text in backticks is shown as code. A new comment
    on a line replaces the old one. What is handed in again begins without comments; they stay
    with the version that they are about.
    """
    with graded_class(course, folder) as standings:
        if not file and len(words) < 2:
            return _list(standings, words)
        with standings.ledger.writing():  # all are stored, or none
            if file is not None:
                wanted = list(_read(standings, file, words))
            else:
                wanted = [_request(standings, words, snippet, undo=undo)]
            for each in wanted:
                click.echo(f"  {_stored(standings, each)}")
        students = dict.fromkeys(known_student(standings, each.student) for each in wanted)
        if published := republished(standings, folder, students, "commented"):
            click.echo(f"  published: {count_students(len(published))}")
        return echo_review(standings.ledger)


def _list(standings: Standings, words: Sequence[str]) -> int:
    """Print the comments on a student's code, or the phrases that are kept."""
    if not words:
        for name, text in sorted((standings.ledger.get(SNIPPETS) or {}).items()):
            click.echo(f"  --snippet {name}: {text}")
        return echo_review(standings.ledger)
    student = known_student(standings, words[0])
    files = standings.ledger.submission(_attempt(standings, student)).files
    for spot, text in sorted(spots_of(standings.ledger, student).items(), key=_by_place):
        now = files.get(spot.exercise, "")
        older = "" if spot_in(now, spot.exercise, spot.line) == spot else " of another version"
        click.echo(f"  {spot.exercise}, line {spot.line}{older}: {text}")
    return echo_review(standings.ledger)


def _by_place(each: tuple[Spot, str]) -> tuple[str, int]:
    return each[0].exercise, each[0].line


def _request(
    standings: Standings, words: Sequence[str], snippet: str | None, *, undo: bool
) -> LineComment:
    """Return the comment that the command line asks for."""
    student, place, *texts = words
    if len(texts) > 1 or (undo and (texts or snippet)):
        raise RequestError("which student, which line, and what to say?", USAGE)
    file, line = _place(place, "")
    if undo:
        return LineComment(student, file, line, "")
    text = _text(texts[0], "") if texts else _snippet(standings, snippet, "")
    if texts and snippet:
        kept = standings.ledger.get(SNIPPETS) or {}
        standings.ledger.put(SNIPPETS, {**kept, snippet: text})
    return LineComment(student, file, line, text)


def _read(standings: Standings, path: Path, words: Sequence[str]) -> Iterator[LineComment]:
    """Yield the comments in a file; raise `RequestError` with the line of a wrong one."""
    if words:
        raise RequestError("--file takes students, lines and comments from the file", USAGE)
    lines = read_lines(path, "--file", EXPECTED)
    names = [name.casefold() for name in next(lines, (1, []))[1]]
    if not {"student", "file"} <= {*names} or not {"comment", "snippet"} & {*names}:
        raise RequestError(f"{path}:1: a column is missing", EXPECTED)
    for number, cells in lines:
        values, where = dict(zip(names, cells)), f"{path}:{number}: "
        line = values.get("line", "")
        file, at = _place(f"{values['file']}:{line}" if line else values["file"], where)
        said = values.get("comment", "")
        name = values.get("snippet", "")
        text = _text(said, where) if said else _snippet(standings, name, where)
        yield LineComment(values["student"], file, at, text)


def _place(place: str, where: str) -> tuple[str, int]:
    """Return the file and the line of `FILE:LINE`."""
    file, _, line = place.rpartition(":")
    if not (file and line.isascii() and line.isdigit() and len(line) < 9):
        raise RequestError(f"{where}{place} is no line of a file", "such as FILE.py:12")
    return file, int(line)


def _text(text: str, where: str) -> str:
    plain = without_controls(text).strip()
    if not plain or len(plain) > MAX_TEXT:
        raise RequestError(f"{where}a comment has from 1 to {MAX_TEXT} characters", USAGE)
    return plain


def _snippet(standings: Standings, name: str | None, where: str) -> str:
    """Return a phrase that is kept."""
    kept: dict[str, str] = standings.ledger.get(SNIPPETS) or {}
    if not name:
        raise RequestError(f"{where}what is the comment?", f"{USAGE}, or --snippet NAME")
    if name not in kept:
        meant = did_you_mean(name, kept)
        remedy = f"grader comment STUDENT FILE:LINE TEXT --snippet {name}   keeps it"
        raise RequestError(f"{where}no phrase is kept as `{name}`{meant}", remedy)
    return kept[name]


def _stored(standings: Standings, wanted: LineComment) -> str:
    """Store a comment; return it with its place."""
    student = known_student(standings, wanted.student)
    row = _attempt(standings, student)
    files = standings.ledger.submission(row).files
    exercise = _exercise(student, {name: row.paths.get(name, "") for name in files}, wanted.file)
    text = files[exercise]
    count = len(text.rstrip("\n").split("\n"))
    if not 0 < wanted.line <= count:
        problem = f"line {wanted.line} is not in {exercise}.py of {student}, which has {count}"
        raise RequestError(problem, f"code/{student}.html shows its lines")
    spot = spot_in(text, exercise, wanted.line)
    if not wanted.text and spot not in spots_of(standings.ledger, student):
        problem = f"there is no comment on line {wanted.line} of {exercise}.py"
        raise RequestError(problem, f"grader comment {student} lists them")
    standings.ledger.comment(student, spot.key, wanted.text)
    who = standings.ledger.named(student)
    return f"{who}: {exercise}, line {wanted.line}: {wanted.text or 'taken back'}"


def _attempt(standings: Standings, student: str) -> AttemptRow:
    """Return the attempt that counts; before it is graded, the latest."""
    *_, latest = attempts = standings.ledger.attempts(student)
    standing = standings.standing(student)
    number = standing.report.attempt if standing else latest.number
    return next(row for row in attempts if row.number == number)


def _exercise(student: str, paths: Mapping[str, str], file: str) -> str:
    """Return the exercise that is called so, or whose file is; `paths` are by exercise."""
    for found in (
        [name for name in paths if file in (name, f"{name}.py")],
        [name for name, path in paths.items() if file in (path, PurePosixPath(path).name)],
    ):
        if len(found) == 1:
            return found[0]
        if found:
            problem = f"{file} holds several exercises: {', '.join(found)}"
            raise RequestError(problem, f"{found[0]}:LINE names one of them")
    known = ", ".join(sorted(paths)) or "none"
    problem = f"{student} has no file {file}{did_you_mean(file, paths)}"
    raise RequestError(problem, f"the exercises with a file: {known}")
