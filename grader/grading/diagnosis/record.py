"""The record: the data of a students' copy on the answers to the cases.

A file holds, for one exercise, its cases and a record: the reference's answers in full, and the
answers of known mistakes as sketches. The texts about mistakes are in a file beside it; no file
holds a solution, or an edit that makes a mistake. Imports no torch.
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
MAX_ENGINE = 1024  # bytes of that file
SETTINGS = ("implements", "requires", "own_parts", "forbidden", "stages", "training")
ROOM = Path(__file__).parent
# The code that decides how programs answer, and how answers are recorded.
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
PROGRAMS = ("solution.py", "stand_in.py")  # of an exercise, and of the exercises that it requires


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
    `totals`, apart from the rest: hardly two of them are equal, and without them the rest repeats
    itself and compresses better. `beyond` are the cases at which the program differs clearly from
    each half, as bits in hexadecimal digits, because an exercise may have more than 64 cases.
    """

    first: int
    second: int
    forms: dict[int, int | None]
    beyond: tuple[str, str]


class Record(Struct, frozen=True, array_like=True):
    """The recorded answers to an exercise's cases, which are numbered in their order."""

    format: int
    of: str  # a hash of its sources
    seed: int
    forms: tuple[PlainForm, ...]
    reference: tuple[PlainAnswer, ...]
    repeats: dict[int, str]
    mistakes: tuple[str, ...]  # the names of the mistakes
    singles: tuple[SingleMistake, ...]
    pairs: tuple[MistakePair, ...]
    totals: tuple[float, ...]  # of the wrong answers of all pairs, in their order


@functools.cache
def hash_of_engine() -> str:
    """Return a hash of the code that decides how programs answer."""
    code = "\0".join(without_remarks(path.read_text("utf-8")) for path in ENGINE)
    return hashlib.sha256(code.encode()).hexdigest()[:16]


def hash_of_sources(course: Course, name: str) -> str:
    """Return a hash of the sources of an exercise's record: solution, cases and edits."""
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
        """Return the bytes of the record's file, which are the same for the same record."""
        answers = msgspec.msgpack.encode(self.record)
        return zipped({CASES: self.cases.encode(), ANSWERS: answers}, level=9)


def path_of(course: Course, name: str) -> Path:
    """Return the file of an exercise's record."""
    return course.executed_folder / records.file_of(name)


def engine_file(course: Course) -> Path:
    """Return the file with the hash of the code that made the records."""
    return course.executed_folder / records.FOLDER / ENGINE_FILE


def outdated_records(course: Course) -> list[str]:
    """Return the exercises of `reference/` whose records are missing, or not made from its files.

    A current record must have the cases of `reference/`, whatever hash it holds, because anybody
    may have written it. If the code that makes records has changed, all are made anew; most stay
    the same.
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

    If the course has a `reference/`, only its cases are run, so a record of other cases does not
    count.

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
    """Return the texts about each known mistake of an exercise, by its name.

    The texts have no terminal controls. Raises `CourseError` if the file is missing or damaged.
    """
    path = course.executed_folder / records.sayings_of(name)
    try:
        data = read_file(path, path, records.MAX_SAYINGS)
        said = msgspec.json.decode(data, type=tuple[records.Saying, ...])
    except (OSError, *UNREADABLE) as error:
        raise CourseError(f"{path} cannot be read ({error})", DOWNLOAD) from None
    clean = (records.Saying(*map(without_controls, astuple(each))) for each in said)
    return {each.name: each for each in clean}
