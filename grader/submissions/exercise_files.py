"""Finds the exercise files of a submission: by their names, else by nearly fitting ones.

A file with an exercise's own name comes first. Only an exercise without such a file, or with an
untouched stub, gets another file, and only if exactly one fits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from grader.errors import RequestError, did_you_mean
from grader.submissions.archives import ARCHIVES, unopened_reason
from grader.submissions.code_files import STUB, CodeFiles
from grader.submissions.folders import Folders, exact_name, stem_of
from grader.submissions.near_names import marked_copy_of
from grader.submissions.notes import for_review, left_out, listed
from grader.submissions.opening import code_stem, code_suffix
from grader.submissions.other_files import OtherFiles, defined_note, near_note
from grader.trees import NotOpened, refusal


def find_exercise_files(path: Path, code: CodeFiles, notes: list[str]) -> dict[str, Path]:
    """Return the file of each exercise in `path`, and add a note on each one that is left out.

    `path` is a file, a folder that holds exercises, or a folder with such folders in it. Raises
    `RequestError` if it does not exist, or is a file without anything of the course.
    """
    if path.is_file():
        return _in_file(path, code, notes)
    if path.is_dir():
        try:
            return _in_folder(Folders(code.own, code.course, code, notes))
        except NotOpened as error:
            raise RequestError(f"{path} {error}", "hand in the exercise files alone") from None
    raise RequestError(
        f"there is no file, folder or exercise {path}"
        f"{did_you_mean(path.name.removesuffix('.py'), code.course.names)}",
        "grader check --help   shows what can be checked",
    )


def _in_file(path: Path, code: CodeFiles, notes: list[str]) -> dict[str, Path]:
    is_code, names = code_suffix(path.name) != "", code.course.names
    if name := exact_name(path, names):
        return {name: path}
    near = marked_copy_of(code_stem(path.name), names) if is_code else ""
    if near:
        notes.append(near_note(path.name, near))
    found = {near} if near else set()
    if is_code and (problem := code.read(path).problem):
        notes.append(problem)
    elif is_code and (defined := [name for name in code.defined_in(path) if name != near]):
        notes.append(defined_note(path.name, defined))
        found |= {*defined}
    if found:
        return {each: path for each in names if each in found}
    raise RequestError(
        f"{path} is not an exercise of this course{did_you_mean(stem_of(path), names)}",
        "grader status   lists the exercises",
    )


def _in_folder(folders: Folders) -> dict[str, Path]:
    homes = _homes(folders)
    # No folder is better than the others, so each exercise is chosen separately.
    files = folders.files_in(homes[0]) if len(homes) == 1 else {}
    others = OtherFiles(folders, homes, files)
    used = files | others.chosen()
    _add_note_on_homes(folders, homes, used)
    folders.notes += _unopened(folders)
    others.add_notes_on_unused(used)
    return used


def _homes(folders: Folders) -> Sequence[Path]:
    """Return the folders with exercise files: those on the first level where one has work in it.

    If all are untouched stubs, these are the folders of the first level with any, and without any
    it is the submission's own folder.
    """
    stubs: list[Path] = []
    try:
        for level in folders.levels():
            found = [folder for folder in level if folders.files_in(folder)]
            if with_work := [folder for folder in found if _has_work(folders, folder)]:
                return with_work
            stubs = stubs or found
    except (NotOpened, PermissionError):
        if not stubs:
            raise
    return stubs or [folders.own.within]


def _has_work(folders: Folders, folder: Path) -> bool:
    files = folders.files_in(folder)
    return any(folders.code.state(file, name) != STUB for name, file in files.items())


def _add_note_on_homes(folders: Folders, homes: Sequence[Path], used: Mapping[str, Path]) -> None:
    """Add a note on the folders below the submission's own whose files are used."""
    if homes == [folders.own.within]:
        return
    files = {*used.values()}
    if needed := [home for home in homes if files & {*folders.files_in(home).values()}]:
        names = listed(f"{folders.where(folder)}/" for folder in needed)
        folders.notes.append(f"the exercise files are those in {names}")


def _unopened(folders: Folders) -> list[str]:
    """Return a note on each archive that was seen and is not opened."""
    own = folders.own
    archives = (
        one
        for one in own.listed
        if one.suffix in ARCHIVES
        and not one.name.startswith(".")
        and refusal(one.path, own.within) == ""
    )
    return [
        for_review(left_out(folders.where(one.path), unopened_reason(one.name))) for one in archives
    ]
