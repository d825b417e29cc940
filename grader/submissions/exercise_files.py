"""Finding and reading the exercise files of a submission."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from grader.course.course import Course
from grader.course.settings import did_you_mean
from grader.errors import RequestError
from grader.sandbox.cells import NOTEBOOK
from grader.sandbox.source import top_level_names
from grader.submissions.archives import CODE
from grader.submissions.notebook import UnreadableNotebook, read_notebook
from grader.submissions.notes import MAX_NOTES, left_out, printable_name, shortened
from grader.submissions.opening import NotOpened, OwnFolder, read_file, refusal
from grader.submissions.reader.sharing import require_own_reader

MAX_BYTES = 256 * 1024  # no solution to an exercise is longer
MAX_NOTEBOOK_BYTES = 8 * 1024 * 1024  # a notebook also holds outputs and pictures
MAX_WRAPPING = 4  # levels of folders that are searched
MAX_FOLDERS = 500  # after so many folders, no deeper level is searched


def find_exercise_files(path: Path, course: Course, notes: list[str]) -> dict[str, Path]:
    """Return the file of each exercise in `path`, and add a note on each one that is left out.

    `path` is a file, a folder that holds exercises, or a folder with such a folder in it. Raises
    `RequestError` if it does not exist, or is a file without anything of the course.
    """
    if path.is_file():
        return _in_file(path, course, notes)
    if path.is_dir():
        return _in_folder(path, course, notes)
    raise RequestError(
        f"there is no file, folder or exercise {path}"
        f"{did_you_mean(path.name.removesuffix('.py'), course.names)}",
        "grader check --help   shows what can be checked",
    )


def exercise_paths(name: str) -> tuple[str, str, str]:
    """Return the paths that the file of an exercise may have in a submission's folder."""
    return f"{name}.py", f"{name}/solution.py", f"{name}{NOTEBOOK}"


@dataclass(frozen=True)
class CodeFile:
    """A file's text, or why it cannot be used, and a digest of its kind and bytes."""

    text: str = ""
    problem: str = ""
    digest: str = ""


def read_code(file: Path, within: Path) -> CodeFile:
    """Return the text of a file in the folder `within`, or why it cannot be used."""
    notebook = file.suffix == NOTEBOOK
    most = MAX_NOTEBOOK_BYTES if notebook else MAX_BYTES
    try:
        data = read_file(file, within, most)
        text = read_notebook(data) if notebook else data.decode("utf-8-sig")
        return CodeFile(text, digest=digest_of(file.suffix, data))
    except NotOpened as error:
        reason = str(error)
    except UnreadableNotebook as error:
        reason = f"{error}; save it again in Jupyter"
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        reason = (
            f"is not UTF-8: byte 0x{data[error.start]:02x} in line {line}; "
            "save it as UTF-8 in your editor"
        )
    except OSError as error:
        reason = f"cannot be read: {error.strerror}"
    return CodeFile(problem=f"{file.name} {reason}")


def digest_of(suffix: str, data: bytes) -> str:
    """Return a digest of a file's kind and bytes: a file with a notebook's code is another file."""
    kind = b"notebook" if suffix == NOTEBOOK else b"python"
    return hashlib.sha256(kind + b"\0" + data).hexdigest()


def _in_file(path: Path, course: Course, notes: list[str]) -> dict[str, Path]:
    name = path.parent.name if path.name == "solution.py" else path.stem
    if name in course.names and path.suffix in CODE:
        return {name: path}
    if defined := _defined_in(path, path, course, notes):
        return defined
    raise RequestError(
        f"{path} is not an exercise of this course{did_you_mean(name, course.names)}",
        "grader status   lists the exercises",
    )


def _in_folder(path: Path, course: Course, notes: list[str]) -> dict[str, Path]:
    own, skipped = OwnFolder(path), list[str]()
    try:
        for folders in _levels(own):
            searched = [(folder, _files_in(folder, own, course, skipped)) for folder in folders]
            found = [(folder, files) for folder, files in searched if files]
            places = [printable_name(str(folder.relative_to(path))) for folder, _ in found]
            if len(found) > 1:
                names = ", ".join(shortened(places))
                notes.append(f"several folders hold exercises, so none was used: {names}")
                return {}
            for folder, files in found:
                if folder != path:
                    notes.append(f"the exercise files are those in {places[0]}/")
                notes += skipped + _other_files(folder, files, own, course)
                return files
        file = _only_file(own)
        defined = _defined_in(file, path, course, notes) if file and not skipped else {}
        notes += skipped + ([] if defined else _other_files(path, {}, own, course))
    except NotOpened as error:
        raise RequestError(f"{path} {error}", "hand in the exercise files alone") from None
    return defined


def _levels(own: OwnFolder) -> Iterator[list[Path]]:
    """Yield the folder, then the folders in it, and so on: zips and clones often wrap the files."""
    level, seen = [own.within], 0
    for _ in range(MAX_WRAPPING):
        yield level
        seen += len(level)
        if seen > MAX_FOLDERS:
            return
        level = [
            entry.path
            for folder in level
            for entry in own.entries(folder)
            if entry.is_folder and not entry.name.startswith((".", "__"))
        ]


def _files_in(folder: Path, own: OwnFolder, course: Course, skipped: list[str]) -> dict[str, Path]:
    found: dict[str, Path] = {}
    there = {entry.name for entry in own.entries(folder)}
    for name in course.names:
        for place in exercise_paths(name):
            if place.partition("/")[0] not in there:
                continue
            file = folder / place
            reason = refusal(file, own.within)
            if reason is None:
                continue
            if name in found:
                reason = f"is a second file for {name}"
            if reason:
                where = printable_name(str(file.relative_to(own.within)))
                skipped.append(left_out(where, reason))
            else:
                found[name] = file
    return found


def _other_files(
    folder: Path, found: Mapping[str, Path], own: OwnFolder, course: Course
) -> list[str]:
    """Return a note on each Python file or notebook that does not have an exercise's name."""
    names = course.names
    free = [name for name in names if name not in found]
    stray = [
        entry for entry in own.entries(folder) if entry.suffix in CODE and entry.stem not in names
    ]
    return [
        left_out(printable_name(entry.name), "is not an exercise file")
        # Only the first notes are shown, and each search costs time.
        + (did_you_mean(entry.stem, free) if place < MAX_NOTES else "")
        for place, entry in enumerate(stray)
    ]


def _only_file(own: OwnFolder) -> Path | None:
    for folders in _levels(own):
        files = [
            entry
            for folder in folders
            for entry in own.entries(folder)
            if entry.suffix in CODE and not entry.name.startswith(".")
        ]
        if files:
            is_usable = len(files) == 1 and refusal(files[0].path, own.within) == ""
            return files[0].path if is_usable else None
    return None


def _defined_in(file: Path, within: Path, course: Course, notes: list[str]) -> dict[str, Path]:
    """Return the file for every exercise of which it defines something."""
    if file.suffix not in CODE:
        return {}
    require_own_reader()
    code = read_code(file, within)
    if code.problem:
        notes.append(code.problem)
        return {}
    names = top_level_names(code.text)
    found = [exercise.name for exercise in course.exercises if names & {*exercise.implements}]
    if found:
        used = f"was used for {', '.join(found)} because of what it defines"
        notes.append(f"{printable_name(file.name)} {used}")
    return dict.fromkeys(found, file)
