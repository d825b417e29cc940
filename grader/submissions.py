"""A submission: which of a student's files are taken, as text, and what was left out.

Files are read here and never run. Only the files that the course names are taken.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from grader.catalog import Course, did_you_mean
from grader.errors import RequestError
from grader.records import clean

MAX_BYTES = 1024 * 1024  # a longer file is no solution to an exercise


@dataclass(frozen=True)
class Submission:
    """The text of each exercise file, and in `problems` why an exercise's file cannot be used."""

    name: str
    files: Mapping[str, str]
    paths: Mapping[str, str] = field(default_factory=dict)
    problems: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def hash(self) -> str:
        """A hash over the files taken."""
        digest = hashlib.sha256()
        for name, text in sorted(self.files.items()):
            digest.update(f"{name}\0{len(text)}\0{text}".encode("utf-8", "replace"))
        return digest.hexdigest()[:16]


def discover(paths: Sequence[Path], course: Course) -> Submission:
    """The submission made of `paths`: exercise files, or folders that hold them."""
    files: dict[str, str] = {}
    places: dict[str, str] = {}
    problems: dict[str, str] = {}
    notes: list[str] = []
    for path in paths:
        for name, file in _exercise_files(path, course, notes).items():
            if name in places:
                raise RequestError(
                    f"{name} is given twice: {places[name]} and {shown(str(file))}",
                    "grader check PATH   with one submission at a time",
                )
            places[name] = shown(str(file))
            text, problem = _read(file)
            if problem:
                problems[name] = problem
            else:
                files[name] = text
    if not places:
        where = ", ".join(str(path) for path in paths)
        raise RequestError(
            f"no exercise file in {where}" + "".join(f"; {note}" for note in notes),
            f"a submission holds files such as {course.names[0]}.py",
        )
    return Submission(_name(paths), files, places, problems, tuple(notes))


def _exercise_files(path: Path, course: Course, notes: list[str]) -> dict[str, Path]:
    """Exercise name to file. A folder may hold `<name>.py` or `<name>/solution.py`."""
    if path.is_file():
        name = path.parent.name if path.name == "solution.py" else path.stem
        if name not in course.names or path.suffix != ".py":
            raise RequestError(
                f"{path} is no exercise of this course{did_you_mean(name, course.names)}",
                "grader status   lists the exercises",
            )
        return {name: path}
    if not path.is_dir():
        raise RequestError(
            f"there is no file, folder or exercise {path}"
            f"{did_you_mean(path.name.removesuffix('.py'), course.names)}",
            "grader check --help   shows what can be checked",
        )
    found: dict[str, Path] = {}
    for name in course.names:
        for file in (path / f"{name}.py", path / name / "solution.py"):
            if file.is_symlink() or (file.parent.is_symlink() and file.parent != path):
                notes.append(f"{file.relative_to(path)} is a link and was left out")
            elif file.is_file():
                found[name] = file
                break
    for file in sorted(path.glob("*.py")):
        if file.stem not in course.names:
            meant = did_you_mean(file.stem, [n for n in course.names if n not in found])
            notes.append(f"{shown(file.name)} is no exercise file and was left out{meant}")
    return found


def _read(file: Path) -> tuple[str, str]:
    """A file's text, or in the second place why it cannot be read."""
    try:
        if file.stat().st_size > MAX_BYTES:
            return "", f"{file.name} is larger than {MAX_BYTES >> 20} MiB"
        data = file.read_bytes()
        return data.decode("utf-8-sig"), ""
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return "", (
            f"{file.name} is not UTF-8: byte 0x{data[error.start]:02x} in line {line}; "
            "save it as UTF-8 in your editor"
        )
    except OSError as error:
        return "", f"{file.name} cannot be read: {error.strerror}"


def shown(name: str) -> str:
    """A file's name as a report can hold it, whatever bytes it is made of."""
    return clean(os.fsencode(name).decode("utf-8", "backslashreplace"))


def _name(paths: Sequence[Path]) -> str:
    path = paths[0].absolute()
    folder = path if path.is_dir() else path.parent
    return shown(folder.name)
