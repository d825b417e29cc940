"""What a students' copy knows of the answers to the cases.

One zip holds, for each exercise, its cases and a record: the reference's answers in full, the
answers of known mistakes as sketches, and what to say of each. Neither a solution nor an edit that
makes a mistake is in it. Imports no torch.
"""

from __future__ import annotations

import functools
import hashlib
import io
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from grader.course import records
from grader.course.course import Course
from grader.course.suite_text import has_cases, shipped_cases
from grader.errors import CourseError
from grader.files import DAMAGED_ZIP, zipped
from grader.grading.code_text import without_remarks
from grader.report import WrongStep
from grader.trees import NotOpened, read_file

FORMAT = 3
CASES, ANSWERS = records.CASES, records.ANSWERS
INDEX = "index.json"
UNREADABLE = (*DAMAGED_ZIP, NotOpened, ValueError, RecursionError, msgspec.MsgspecError)
OWN_FILES = ("solution.py", "stand_in.py", "exercise.toml", "faults.toml")
ROOM = Path(__file__).parent
# What decides how programs answer, and how answers are recorded.
ENGINE = (
    *(ROOM / f"{name}.py" for name in ("recording", "computed", "respondent", "asked", "answers")),
    *(ROOM / f"{name}.py" for name in ("encoding", "repeat", "catalogue")),
    *(ROOM.parent / f"{name}.py" for name in ("direct", "programs", "rng", "seeds", "parameters")),
    *(ROOM.parent / f"{name}.py" for name in ("asking", "cases", "dropped", "moves", "told")),
    *(ROOM.parents[1] / f"{name}.py" for name in ("errors", "authors", "testing")),
)
NEEDED_FILES = ("solution.py", "stand_in.py")  # of exercises that one builds on


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


class MistakeText(Struct, frozen=True, array_like=True):
    """What to say of a known mistake."""

    name: str
    says: str
    hint: str
    number: str = ""


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
    of: str  # a hash of the files that it was made from
    seed: int
    forms: tuple[PlainForm, ...]
    reference: tuple[PlainAnswer, ...]
    repeats: dict[int, str]
    mistakes: tuple[MistakeText, ...]
    singles: tuple[SingleMistake, ...]
    pairs: tuple[MistakePair, ...]
    totals: tuple[float, ...]  # of the wrong answers of all pairs, in their order


@functools.cache
def hash_of_engine() -> str:
    """Return a hash of the code that decides how programs answer."""
    code = "\0".join(without_remarks(path.read_text("utf-8")) for path in ENGINE)
    return hashlib.sha256(code.encode()).hexdigest()[:16]


def hash_of_sources(course: Course, name: str) -> str:
    """Return a hash of all that the record of an exercise is made from, and of what makes it."""
    digest = hashlib.sha256(hash_of_engine().encode())
    digest.update((own_cases(course, name) or "").encode())
    files = [course[name].folder / file for file in OWN_FILES]
    for needed in sorted(course.needed(name)):
        files += [course[needed].folder / file for file in NEEDED_FILES]
    for path in files:
        if path.is_file():
            digest.update(f"\0{path.parent.name}/{path.name}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


@dataclass(frozen=True)
class Recorded:
    """The cases of an exercise as text, and the record of their answers."""

    cases: str
    record: Record


def packed(recorded: Mapping[str, Recorded]) -> bytes:
    """Return the file with the records of some exercises: the same bytes for the same records."""
    index = {name: each.record.of for name, each in sorted(recorded.items())}
    parts = {INDEX: msgspec.json.encode(index)}
    for name, each in sorted(recorded.items()):
        parts[f"{name}/{CASES}"] = each.cases.encode()
        parts[f"{name}/{ANSWERS}"] = msgspec.msgpack.encode(each.record)
    return zipped(parts, level=9)


def path_of(course: Course) -> Path:
    """Return the file of a course's records."""
    return course.executed_folder / records.FILE


def hashes_of_records(course: Course) -> dict[str, str]:
    """Return the hash of what each record was made from, by exercise; nothing without the file."""
    try:
        with _opened(course) as archive:
            return msgspec.json.decode(records.part(archive, INDEX), type=dict[str, str])
    except (OSError, KeyError, *UNREADABLE):
        return {}


def outdated_records(course: Course) -> list[str]:
    """Return the exercises of `reference/` whose records are missing, or not those of its files.

    A record has the cases of `reference/`, whatever the index says: it may be anybody's.
    """
    recorded, cases = hashes_of_records(course), _cases_of_records(course)
    own = {name: text for name in course.names if (text := own_cases(course, name)) is not None}
    found = [
        name
        for name, text in own.items()
        if recorded.get(name) != hash_of_sources(course, name) or cases.get(name) != text.encode()
    ]
    return [*found, *sorted((recorded.keys() | cases.keys()) - own.keys())]


def own_cases(course: Course, name: str) -> str | None:
    """Return the cases of an exercise in `reference/`; None if it has none."""
    exercise = course[name]
    return shipped_cases(exercise) if has_cases(exercise) else None


def _cases_of_records(course: Course) -> dict[str, bytes]:
    """Return all the cases in the file of records, by exercise; nothing if it is damaged."""
    try:
        with _opened(course) as archive:
            parts = [name for name in archive.namelist() if name.endswith(f"/{CASES}")]
            return {name.removesuffix(f"/{CASES}"): records.part(archive, name) for name in parts}
    except (OSError, KeyError, *UNREADABLE):
        return {}


def load_record(course: Course, name: str) -> Recorded | None:
    """Return the record of an exercise; None if the course has none for it.

    Where the course has a `reference/`, its cases alone are run, and a record of others is none.

    Raises `CourseError` if the file is damaged, or of another version.
    """
    path = path_of(course)
    remedy = "download the course again"
    try:
        with _opened(course) as archive:
            cases, data = (records.part(archive, f"{name}/{part}") for part in (CASES, ANSWERS))
        record = msgspec.msgpack.decode(data, type=Record)
        text = cases.decode()
    except (FileNotFoundError, KeyError):
        return None
    except (OSError, *UNREADABLE) as error:
        raise CourseError(f"{path} cannot be read ({error})", remedy) from None
    if record.format != FORMAT:
        raise CourseError(f"{path} is of another version of the grader", remedy)
    if course.suites == "hidden" and own_cases(course, name) != text:
        return None
    return Recorded(text, record)


def _opened(course: Course) -> zipfile.ZipFile:
    path = path_of(course)
    return zipfile.ZipFile(io.BytesIO(read_file(path, path, records.MAX_BYTES)))
