"""Finding and reading the exercise files of a submission."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from grader.course.course import Course
from grader.course.settings import did_you_mean
from grader.errors import RequestError
from grader.sandbox.cells import NOTEBOOK
from grader.sandbox.source import top_level_names
from grader.submissions.archives import CODE
from grader.submissions.notebook import UnreadableNotebook, read_notebook
from grader.submissions.notes import left_out, printable_name

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


def unsafe_reason(file: Path, folder: Path | None = None) -> str:
    """Return why a file in `folder` must not be read; empty if it may be."""
    folder = folder or file.parent
    if file.is_symlink() or (file.parent.is_symlink() and file.parent != folder):
        return "is a link"  # it could lead to the work of somebody else
    if not file.is_file():
        return "is not a regular file"
    return "is a hard link (hand in a copy)" if file.stat().st_nlink > 1 else ""


def read_code(file: Path) -> tuple[str, str]:
    """Return a file's text and "", or "" and why the file cannot be used."""
    notebook = file.suffix == NOTEBOOK
    most = MAX_NOTEBOOK_BYTES if notebook else MAX_BYTES
    try:
        if file.stat().st_size > most:
            return "", f"{file.name} is larger than {most >> 10} KiB"
        data = file.read_bytes()
        return read_notebook(data) if notebook else data.decode("utf-8-sig"), ""
    except UnreadableNotebook as error:
        return "", f"{file.name} {error}; save it again in Jupyter"
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return "", (
            f"{file.name} is not UTF-8: byte 0x{data[error.start]:02x} in line {line}; "
            "save it as UTF-8 in your editor"
        )
    except OSError as error:
        return "", f"{file.name} cannot be read: {error.strerror}"


def _in_file(path: Path, course: Course, notes: list[str]) -> dict[str, Path]:
    name = path.parent.name if path.name == "solution.py" else path.stem
    if name in course.names and path.suffix in CODE:
        return {name: path}
    if defined := _defined_in(path, course, notes):
        return defined
    raise RequestError(
        f"{path} is not an exercise of this course{did_you_mean(name, course.names)}",
        "grader status   lists the exercises",
    )


def _in_folder(path: Path, course: Course, notes: list[str]) -> dict[str, Path]:
    skipped: list[str] = []
    for folders in _levels(path):
        searched = [(folder, _files_in(folder, path, course, skipped)) for folder in folders]
        found = [(folder, files) for folder, files in searched if files]
        places = [printable_name(str(folder.relative_to(path))) for folder, _ in found]
        if len(found) > 1:
            names = ", ".join(places)
            notes.append(f"several folders hold exercises, so none was used: {names}")
            return {}
        for folder, files in found:
            if folder != path:
                notes.append(f"the exercise files are those in {places[0]}/")
            notes += skipped + _other_files(folder, files, course)
            return files
    file = _only_file(path)
    defined = _defined_in(file, course, notes) if file and not skipped else {}
    notes += skipped + ([] if defined else _other_files(path, {}, course))
    return defined


def _levels(path: Path) -> Iterator[list[Path]]:
    """Yield the folder, then the folders in it, and so on: zips and clones often wrap the files."""
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


def _files_in(folder: Path, top: Path, course: Course, skipped: list[str]) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for name in course.names:
        for file in (folder / path for path in exercise_paths(name)):
            if not (file.exists() or file.is_symlink()):
                continue
            reason = f"is a second file for {name}" if name in found else ""
            if reason := reason or unsafe_reason(file, folder):
                skipped.append(left_out(printable_name(str(file.relative_to(top))), reason))
            else:
                found[name] = file
    return found


def _other_files(folder: Path, found: Mapping[str, Path], course: Course) -> list[str]:
    """Return a note on each Python file or notebook that does not have an exercise's name."""
    free = [name for name in course.names if name not in found]
    return [
        left_out(printable_name(file.name), "is not an exercise file")
        + did_you_mean(file.stem, free)
        for file in sorted(folder.glob("*.*"))
        if file.suffix in CODE and file.stem not in course.names
    ]


def _only_file(path: Path) -> Path | None:
    for folders in _levels(path):
        files = [
            Path(entry.path)
            for folder in folders
            for entry in os.scandir(folder)
            if Path(entry.name).suffix in CODE and not entry.name.startswith(".")
        ]
        if files:
            return None if len(files) > 1 or unsafe_reason(files[0]) else files[0]
    return None


def _defined_in(file: Path, course: Course, notes: list[str]) -> dict[str, Path]:
    """Return the file for every exercise of which it defines something."""
    if file.suffix not in CODE:
        return {}
    text, problem = read_code(file)
    if problem:
        notes.append(problem)
        return {}
    names = top_level_names(text)
    found = [exercise.name for exercise in course.exercises if names & {*exercise.implements}]
    if found:
        used = f"was used for {', '.join(found)} because of what it defines"
        notes.append(f"{printable_name(file.name)} {used}")
    return dict.fromkeys(found, file)
