"""A submission: which of a student's files are taken, as text, and what was left out.

Files are read here and never run. Only the files that the course names are taken.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from grader.submissions.archives import Unreadable, unpacked
from grader.course.course import Course, did_you_mean
from grader.errors import RequestError
from grader.submissions.notebook import Unreadable as NoNotebook
from grader.submissions.notebook import read_notebook
from grader.report import clean
from grader.sandbox.cells import NOTEBOOK
from grader.sandbox.source import top_level_names

MAX_BYTES = 256 * 1024  # a longer file is no solution to an exercise
MAX_NOTEBOOK_BYTES = 8 * 1024 * 1024  # with its outputs and pictures
MAX_WRAPPING = 4  # folders around the folder that holds the exercises
CODE = (".py", NOTEBOOK)
MAX_NOTES = 20  # on files that were left out
MAX_FOLDERS = 500  # looked at in search of it


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
        return digest.hexdigest()[:32]


def discover(paths: Sequence[Path], course: Course, *, inside: bool = False) -> Submission:
    """The submission made of `paths`: exercise files, or folders or zips that hold them.

    A single file of another name is taken for all exercises of which it defines something. The
    files' places begin with the path given or, with `inside`, in the folder that holds them.
    """
    files: dict[str, str] = {}
    places: dict[str, str] = {}
    problems: dict[str, str] = {}
    notes: list[str] = []
    for path in paths:
        with _opened(path, notes) as opened:
            for name, file in _exercise_files(opened, course, notes).items():
                place = _inside(file) if inside else path / file.relative_to(opened)
                if name in places:
                    raise RequestError(
                        f"{name} is given twice: {places[name]} and {shown(str(place))}",
                        "grader check PATH   with one submission at a time",
                    )
                places[name] = shown(str(place))
                text, problem = _read(file)
                if problem:
                    problems[name] = problem
                else:
                    files[name] = text
    notes = shortened(notes)
    if not places:
        where = ", ".join(str(path) for path in paths)
        raise RequestError(
            f"no exercise file in {where}" + "".join(f"; {note}" for note in notes),
            f"a submission holds files such as {course.names[0]}.py",
        )
    return Submission(name_of(paths[0]), files, places, problems, tuple(notes))


def shortened(notes: Sequence[str]) -> list[str]:
    """The notes, or the first of many and how many more there are."""
    more = [f"and {len(notes) - MAX_NOTES} more"] if len(notes) > MAX_NOTES else []
    return [*notes[:MAX_NOTES], *more]


def _inside(file: Path) -> PurePath:
    """A file's place in the folder that holds the exercises."""
    return PurePath(*file.parts[-2 if file.name == "solution.py" else -1 :])


@contextlib.contextmanager
def _opened(path: Path, notes: list[str]) -> Iterator[Path]:
    """The path itself or, of a zip, a folder with what it holds."""
    if path.suffix.lower() != ".zip" or not path.is_file():
        yield path
        return
    try:
        with unpacked(path, notes) as folder:
            yield folder
    except Unreadable as error:
        raise RequestError(
            f"{path}: {error}", "zip the exercise files again, or hand in the folder itself"
        ) from None


def _exercise_files(path: Path, course: Course, notes: list[str]) -> dict[str, Path]:
    """Exercise name to file, of a file or of the folder, or a folder in it, that holds them."""
    if path.is_file():
        name = path.parent.name if path.name == "solution.py" else path.stem
        if name not in course.names or path.suffix not in CODE:
            if defined := _defined_in(path, course, notes):
                return defined
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
    left_out: list[str] = []
    for folders in _levels(path):
        holding = {folder: _files_in(folder, path, course, left_out) for folder in folders}
        holding = {folder: found for folder, found in holding.items() if found}
        if len(holding) > 1:
            names = ", ".join(shown(str(folder.relative_to(path))) for folder in holding)
            notes.append(f"several folders hold exercises, and none was taken: {names}")
            return {}
        for folder, found in holding.items():
            if folder != path:
                notes.append(f"the files are those of {shown(str(folder.relative_to(path)))}/")
            notes += left_out + _strangers(folder, found, course)
            return found
    file = _only_file(path)
    defined = _defined_in(file, course, notes) if file and not left_out else {}
    notes += left_out + ([] if defined else _strangers(path, {}, course))
    return defined


def _only_file(path: Path) -> Path | None:
    """The one Python file or notebook in a folder, or in the folders that wrap it."""
    for folders in _levels(path):
        files = [
            Path(entry.path)
            for folder in folders
            for entry in os.scandir(folder)
            if Path(entry.name).suffix in CODE and not entry.name.startswith(".")
        ]
        if files:
            return None if len(files) > 1 or unwelcome(files[0]) else files[0]
    return None


def _defined_in(file: Path, course: Course, notes: list[str]) -> dict[str, Path]:
    """The exercises of which a file of another name defines something, each in that file."""
    if file.suffix not in CODE:
        return {}
    text, problem = _read(file)
    if problem:
        notes.append(problem)
        return {}
    names = top_level_names(text)
    found = [exercise.name for exercise in course.exercises if names & {*exercise.implements}]
    if found:
        notes.append(f"{shown(file.name)} was taken for {', '.join(found)}: it defines them")
    return dict.fromkeys(found, file)


def _levels(path: Path) -> Iterator[list[Path]]:
    """The folder, then the folders in it, and so on: a zip or a clone often wraps its files."""
    level, seen = [path], 0
    for _ in range(MAX_WRAPPING):
        yield level
        seen += len(level)
        if seen > MAX_FOLDERS:
            return
        level = sorted(
            Path(entry.path)
            for folder in level
            for entry in os.scandir(folder)
            if entry.is_dir(follow_symlinks=False) and not entry.name.startswith((".", "__"))
        )


def _files_in(folder: Path, top: Path, course: Course, left_out: list[str]) -> dict[str, Path]:
    """The exercise files in one folder: a module, a solution in a folder, or a notebook."""
    found: dict[str, Path] = {}
    for name in course.names:
        for place in (f"{name}.py", f"{name}/solution.py", f"{name}{NOTEBOOK}"):
            file = folder / place
            if not file.exists() and not file.is_symlink():
                continue
            reason = unwelcome(file, folder)
            if name in found:
                reason = f"is {name} once more"
            if reason:
                left_out.append(f"{shown(str(file.relative_to(top)))} {reason} and was left out")
            else:
                found[name] = file
    return found


def unwelcome(file: Path, folder: Path | None = None) -> str:
    """Why a file in `folder` is not taken: through a link, it could be somebody else's."""
    folder = folder or file.parent
    if file.is_symlink() or (file.parent.is_symlink() and file.parent != folder):
        return "is a link"
    if not file.is_file():
        return "is no regular file"
    return "is a hard link (copy it)" if file.stat().st_nlink > 1 else ""


def _strangers(folder: Path, found: Mapping[str, Path], course: Course) -> list[str]:
    """A note on each Python file or notebook that is no exercise of this course."""
    free = [name for name in course.names if name not in found]
    return [
        f"{shown(file.name)} is no exercise file and was left out{did_you_mean(file.stem, free)}"
        for file in sorted(folder.glob("*.*"))
        if file.suffix in CODE and file.stem not in course.names
    ]


def _read(file: Path) -> tuple[str, str]:
    """A file's text, or in the second place why it cannot be read."""
    notebook = file.suffix == NOTEBOOK
    most = MAX_NOTEBOOK_BYTES if notebook else MAX_BYTES
    try:
        if file.stat().st_size > most:
            return "", f"{file.name} is larger than {most >> 10} KiB"
        data = file.read_bytes()
        return read_notebook(data) if notebook else data.decode("utf-8-sig"), ""
    except NoNotebook as error:
        return "", f"{file.name} {error}; save it again in Jupyter"
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
    text = clean(os.fsencode(name).decode("utf-8", "backslashreplace"))
    return " ".join(text.split()) if not text.isprintable() else text


def name_of(path: Path) -> str:
    """What a submission is called: its folder's name, or its zip's."""
    path = path.absolute()
    if path.suffix == ".zip":
        return shown(path.stem)
    return shown(path.name if path.is_dir() else path.parent.name)
