"""What a students' copy knows of the answers to the cases.

A file holds, for one exercise, its cases and a record: the reference's answers in full, and the
answers of known mistakes as sketches. What to say of a mistake is in a file beside it; neither a
solution nor an edit that makes a mistake is anywhere. Imports no torch.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import io
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import astuple

from grader.course import records
from grader.course.course import DOWNLOAD, Course
from grader.course.known_mistakes import load_mistakes
from grader.course.suite_text import has_cases, shipped_cases
from grader.errors import CourseError
from grader.files import DAMAGED_ZIP, zipped
from grader.grading.code_text import without_remarks
from grader.report import WrongStep, without_controls
from grader.trees import NotOpened, read_file

FORMAT = 4
CASES, ANSWERS = records.CASES, records.ANSWERS
UNREADABLE = (*DAMAGED_ZIP, NotOpened, ValueError, RecursionError, msgspec.MsgspecError)
ENGINE_FILE = "engine.txt"  # beside the records: a hash of the code that made them
MAX_ENGINE = 1024  # bytes of it
SETTINGS = ("implements", "requires", "own_parts", "forbidden", "stages", "training")
ROOM = Path(__file__).parent
# What decides how programs answer, and how answers are recorded.
ENGINE = (
    *(ROOM / f"{name}.py" for name in ("recording", "computed", "respondent", "asked", "answers")),
    *(ROOM / f"{name}.py" for name in ("encoding", "repeat", "catalogue")),
    *(ROOM.parent / f"{name}.py" for name in ("direct", "programs", "rng", "seeds", "parameters")),
    *(ROOM.parent / f"{name}.py" for name in ("asking", "cases", "dropped", "moves", "told")),
    *(
        ROOM.parents[1] / f"{name}.py"
        for name in ("errors", "authors", "testing", "attention_cases")
    ),
)
PROGRAMS = ("solution.py", "stand_in.py")  # of an exercise, and of those that it builds on


class PlainForm(Struct, frozen=True, array_like=True):
    """The form of values, with dtypes as text; or the kind and the subject of an error."""

    parts: tuple[tuple[Any, ...], ...] = ()
    raised: tuple[str, str] | None = None


class PlainAnswer(Struct, frozen=True, array_like=True):
    """An answer: its form, and its numbers as the bytes of float64."""

    form: PlainForm
    numbers: bytes = b""


class Sketch(Struct, frozen=True, array_like=True):
    """A wrong answer: the number of its form, and the weighted sum of its numbers."""

    form: int
    total: float = 0.0


class SingleMistake(Struct, frozen=True, array_like=True):
    """A program with one mistake: its number in `mistakes`, and its wrong answers by case.

    `form` is its place among the forms of the mistake, and `steps` holds the first wrong step of
    some of these cases.
    """

    mistake: int
    form: int
    number: str
    answers: dict[int, Sketch]
    steps: dict[int, WrongStep]


class MistakePair(Struct, frozen=True, array_like=True):
    """A program with two mistakes: their numbers in `singles`, and its answers where both count.

    An answer is the number of its form, or None if it is right. The sums are in the record's
    `totals`, apart from the rest: hardly two are the same, and what is repeated is stored in less
    without them. `beyond` are the cases at which the program differs clearly from each half, as
    bits in hexadecimal digits: an exercise may have more than 64.
    """

    first: int
    second: int
    forms: dict[int, int | None]
    beyond: tuple[str, str]


class Record(Struct, frozen=True, array_like=True):
    """What is known of the answers to an exercise's cases, which are numbered in their order."""

    format: int
    of: str  # a hash of what it was made from
    seed: int
    forms: tuple[PlainForm, ...]
    reference: tuple[PlainAnswer, ...]
    repeats: dict[int, str]
    mistakes: tuple[str, ...]  # their names
    singles: tuple[SingleMistake, ...]
    pairs: tuple[MistakePair, ...]
    totals: tuple[float, ...]  # of the wrong answers of all pairs, in their order


@functools.cache
def hash_of_engine() -> str:
    """Return a hash of the code that decides how programs answer."""
    code = "\0".join(without_remarks(path.read_text("utf-8")) for path in ENGINE)
    return hashlib.sha256(code.encode()).hexdigest()[:16]


def hash_of_sources(course: Course, name: str) -> str:
    """Return a hash of what the record of an exercise is made from: solution, cases and edits."""
    exercise = course[name]
    edits = [(each.name, each.number, [*each.programs()]) for each in load_mistakes(exercise)]
    settings = [getattr(exercise, field) for field in SETTINGS]
    made_from: list[object] = [own_cases(course, name), edits, settings]
    for folder in (exercise.folder, *(course[n].folder for n in sorted(course.needed(name)))):
        paths = [folder / file for file in PROGRAMS]
        made_from += [(folder.name, path.read_text("utf-8")) for path in paths if path.is_file()]
    return hashlib.sha256(msgspec.json.encode(made_from)).hexdigest()[:16]


@dataclass(frozen=True)
class Recorded:
    """The cases of an exercise as text, and the record of their answers."""

    cases: str
    record: Record

    def packed(self) -> bytes:
        """Return the file of the record: the same bytes for the same record."""
        answers = msgspec.msgpack.encode(self.record)
        return zipped({CASES: self.cases.encode(), ANSWERS: answers}, level=9)


def path_of(course: Course, name: str) -> Path:
    """Return the file of an exercise's record."""
    return course.executed_folder / records.file_of(name)


def engine_file(course: Course) -> Path:
    """Return the file that says which code made the records."""
    return course.executed_folder / records.FOLDER / ENGINE_FILE


def outdated_records(course: Course) -> list[str]:
    """Return the exercises of `reference/` whose records are missing, or not those of its files.

    A record has the cases of `reference/`, whatever else it says: it may be anybody's. If the code
    that makes records is another, all are made anew; most come out as they were.
    """
    names = [name for name in course.names if has_cases(course[name])]
    made_by, path = b"", engine_file(course)
    with contextlib.suppress(OSError, NotOpened):
        made_by = read_file(path, path, MAX_ENGINE)
    if made_by.decode("utf-8", "replace").strip() != hash_of_engine():
        return names
    return [name for name in names if not _is_current(course, name)]


def _is_current(course: Course, name: str) -> bool:
    with contextlib.suppress(CourseError):  # a damaged record, or one of another version
        recorded = load_record(course, name)
        return recorded is not None and recorded.record.of == hash_of_sources(course, name)
    return False


def own_cases(course: Course, name: str) -> str | None:
    """Return the cases of an exercise in `reference/`; None if it has none."""
    exercise = course[name]
    return shipped_cases(exercise) if has_cases(exercise) else None


def load_record(course: Course, name: str) -> Recorded | None:
    """Return the record of an exercise; None if the course has none for it.

    Where the course has a `reference/`, its cases alone are run, and a record of others is none.

    Raises `CourseError` if the file is damaged, or of another version.
    """
    path = path_of(course, name)
    try:
        with zipfile.ZipFile(io.BytesIO(read_file(path, path, records.MAX_BYTES))) as archive:
            cases, data = (records.part(archive, part) for part in (CASES, ANSWERS))
        record = msgspec.msgpack.decode(data, type=Record)
        text = cases.decode()
    except FileNotFoundError:
        return None
    except (OSError, KeyError, *UNREADABLE) as error:
        raise CourseError(f"{path} cannot be read ({error})", DOWNLOAD) from None
    if record.format != FORMAT:
        raise CourseError(f"{path} is of another version of the grader", DOWNLOAD)
    if course.suites == "hidden" and own_cases(course, name) != text:
        return None
    return Recorded(text, record)


def load_sayings(course: Course, name: str) -> dict[str, records.Saying]:
    """Return what is said of each known mistake of an exercise, by its name.

    A terminal obeys nothing of it. Raises `CourseError` if the file is missing or damaged.
    """
    path = course.executed_folder / records.sayings_of(name)
    try:
        data = read_file(path, path, records.MAX_SAYINGS)
        said = msgspec.json.decode(data, type=tuple[records.Saying, ...])
    except (OSError, *UNREADABLE) as error:
        raise CourseError(f"{path} cannot be read ({error})", DOWNLOAD) from None
    clean = (records.Saying(*map(without_controls, astuple(each))) for each in said)
    return {each.name: each for each in clean}
