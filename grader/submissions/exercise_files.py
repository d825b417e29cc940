"""Finding the exercise files of a submission: by their names, by nearly fitting names, by content.

A file with an exercise's own name comes first. Only an exercise without one, or with one that is
still the stub as it was handed out, gets another file, and only if there is one to choose.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from grader.course.course import Course
from grader.course.settings import did_you_mean
from grader.errors import RequestError
from grader.sandbox.cells import NOTEBOOK
from grader.submissions.archives import ARCHIVES, CODE, unopened_reason
from grader.submissions.code_files import CodeFiles
from grader.submissions.near_names import marked_copy_of, resembled
from grader.submissions.notes import (
    MAX_NOTES,
    for_review,
    left_out,
    printable_name,
    shortened,
)
from grader.submissions.opening import Entry, NotOpened, OwnFolder, refusal
from grader.submissions.reader.sharing import require_own_reader

MAX_WRAPPING = 4  # levels of folders that are searched
MAX_FOLDERS = 500  # after so many folders, no deeper level is searched
MAX_OTHERS = 50  # files with other names whose content is looked into
MAX_NAMED = 4  # files in one note, which must not be so long that it is cut
EXACT, NEAR, DEFINED = range(3)  # how a file fits an exercise, best first


def find_exercise_files(
    path: Path, course: Course, notes: list[str], code: CodeFiles
) -> dict[str, Path]:
    """Return the file of each exercise in `path`, and add a note on each one that is left out.

    `path` is a file, a folder that holds exercises, or a folder with such a folder in it. Raises
    `RequestError` if it does not exist, or is a file without anything of the course.
    """
    if path.is_file():
        return _in_file(path, course, notes, code)
    if path.is_dir():
        return _in_folder(path, course, notes, code)
    raise RequestError(
        f"there is no file, folder or exercise {path}"
        f"{did_you_mean(path.name.removesuffix('.py'), course.names)}",
        "grader check --help   shows what can be checked",
    )


def exercise_paths(name: str) -> tuple[str, str, str]:
    """Return the paths that the file of an exercise may have in a submission's folder."""
    return f"{name}.py", f"{name}/solution.py", f"{name}{NOTEBOOK}"


def _in_file(path: Path, course: Course, notes: list[str], code: CodeFiles) -> dict[str, Path]:
    is_code = path.suffix.lower() in CODE
    name = _exact_name(path, course)
    if name:
        return {name: path}
    near = marked_copy_of(path.stem, course.names) if is_code else ""
    if near:
        notes.append(_near_note(printable_name(path.name), near))
    if found := {*([near] if near else []), *(_defined_in(path, course, notes, code))}:
        return {each: path for each in course.names if each in found}
    raise RequestError(
        f"{path} is not an exercise of this course{did_you_mean(_stem(path), course.names)}",
        "grader status   lists the exercises",
    )


def _stem(file: Path) -> str:
    return file.parent.name if file.name == "solution.py" else file.stem


def _exact_name(file: Path, course: Course) -> str:
    """Return the exercise whose own name a file has, or nothing."""
    name = _stem(file)
    return name if name in course.names and file.suffix in CODE else ""


def _defined_in(file: Path, course: Course, notes: list[str], code: CodeFiles) -> list[str]:
    """Return every exercise of which a file that was given alone defines something."""
    if file.suffix.lower() not in CODE:
        return []
    if problem := code.read(file).problem:
        notes.append(problem)
        return []
    found = code.defined_in(file, course)
    if found:
        notes.append(_defined_note(printable_name(file.name), found))
    return found


def _near_note(where: str, name: str) -> str:
    return for_review(f"{where} was used for {name} because its name nearly fits")


def _defined_note(where: str, names: Sequence[str]) -> str:
    return f"{where} was used for {', '.join(names)} because of what it defines"


def _in_folder(path: Path, course: Course, notes: list[str], code: CodeFiles) -> dict[str, Path]:
    try:
        return _FileSearch(code.own, course, code, notes).run()
    except NotOpened as error:
        raise RequestError(f"{path} {error}", "hand in the exercise files alone") from None


class _SeveralFolders(Exception):
    """Several folders hold exercises; the message names them."""


@dataclass
class _FileSearch:
    """The search of one submission's folder."""

    own: OwnFolder
    course: Course
    code: CodeFiles
    notes: list[str]
    clashing: set[Path] = field(default_factory=set)  # files of which none was chosen
    _skipped: list[str] = field(default_factory=list)

    def run(self) -> dict[str, Path]:
        """Return the file of each exercise."""
        try:
            folder, files = self._main_folder()
        except _SeveralFolders as several:
            self.notes.append(for_review(str(several)))
            return {}
        if folder != self.own.within:
            self.notes.append(f"the exercise files are those in {self._where(folder)}/")
        others = _Others(self).chosen(files)
        self.notes += [*self._skipped, *self._unopened()]
        self._add_notes_on_others(folder, files | others)
        return files | others

    def _where(self, path: Path) -> str:
        return printable_name(str(path.relative_to(self.own.within)))

    def _main_folder(self) -> tuple[Path, dict[str, Path]]:
        """Return the folder with the exercise files: the first on whose level one has work in it.

        If all are untouched stubs, that is the first folder with any.
        """
        stubs: list[tuple[Path, dict[str, Path]]] = []
        try:
            for folders in self.levels():
                searched = [(folder, self._files_in(folder)) for folder in folders]
                found = [(folder, files) for folder, files in searched if files]
                if with_work := [one for one in found if self._holds_work(one[1])]:
                    return self._only(with_work)
                stubs = stubs or found
        except (NotOpened, PermissionError):
            if not stubs:
                raise
        return self._only(stubs) if stubs else (self.own.within, {})

    def _only(self, found: list[tuple[Path, dict[str, Path]]]) -> tuple[Path, dict[str, Path]]:
        if len(found) > 1:
            names = ", ".join(shortened([self._where(folder) for folder, _ in found]))
            raise _SeveralFolders(f"several folders hold exercises, so none was used: {names}")
        return found[0]

    def _holds_work(self, files: Mapping[str, Path]) -> bool:
        return any(self.has_work(file, name) for name, file in files.items())

    def has_work(self, file: Path, name: str) -> bool:
        """Return whether a file is not just the stub of an exercise."""
        return self.code.has_work(file, name, self.course)

    def levels(self) -> Iterator[list[Path]]:
        """Yield the folder, then the folders in it, and so on: zips and clones wrap the files."""
        level, seen = [self.own.within], 0
        for _ in range(MAX_WRAPPING):
            yield level
            seen += len(level)
            if seen > MAX_FOLDERS:
                return
            level = [
                entry.path
                for folder in level
                for entry in self.own.entries(folder)
                if entry.is_folder and not entry.name.startswith((".", "__"))
            ]

    def _files_in(self, folder: Path) -> dict[str, Path]:
        """Return the files in a folder that have the names of exercises."""
        found: dict[str, Path] = {}
        there = {entry.name for entry in self.own.entries(folder)}
        for name in self.course.names:
            usable = []
            for place in exercise_paths(name):
                if place.partition("/")[0] not in there:
                    continue
                file = folder / place
                reason = refusal(file, self.own.within)
                if reason:
                    self._skip(file, reason)
                elif reason is not None:
                    usable.append(file)
            if usable:
                found[name] = self._first(usable, name)
        return found

    def _first(self, usable: list[Path], name: str) -> Path:
        """Return the first file with work in it, and add a note on each other."""
        if len(usable) == 1:
            return usable[0]
        with_work = [file for file in usable if self.has_work(file, name)]
        first = (with_work or usable)[0]
        texts = {self.code.read(file).text for file in with_work}
        for file in usable:
            if file != first:
                is_rival = file in with_work and len(texts) > 1
                self._skip(file, f"is a second file for {name}", is_flag=is_rival)
        return first

    def _skip(self, file: Path, reason: str, *, is_flag: bool = True) -> None:
        note = left_out(self._where(file), reason)
        self._skipped.append(for_review(note) if is_flag else note)

    def _unopened(self) -> list[str]:
        """Return a note on each archive that has been seen, and that nobody opens."""
        archives = (
            one
            for one in self.own.listed
            if one.suffix in ARCHIVES
            and not one.name.startswith(".")
            and refusal(one.path, self.own.within) == ""
        )
        return [
            for_review(left_out(self._where(one.path), unopened_reason(one.name)))
            for one in archives
        ]

    def _add_notes_on_others(self, folder: Path, used: Mapping[str, Path]) -> None:
        """Add a note on each Python file or notebook in a folder that is not used."""
        names = self.course.names
        free = [name for name in names if name not in used]
        stray = [
            entry
            for entry in self.own.entries(folder)
            if entry.suffix in CODE
            and entry.stem not in names
            and entry.path not in (*used.values(), *self.clashing)
        ]
        for place, entry in enumerate(stray):
            note = left_out(printable_name(entry.name), "is not an exercise file")
            # Only the first notes are shown, and each search costs time.
            self.notes.append(self._more_on(note, entry, used, free) if place < MAX_NOTES else note)

    def _more_on(
        self, note: str, entry: Entry, used: Mapping[str, Path], free: Sequence[str]
    ) -> str:
        """Return the note on a file that is not used; it is a flag if an exercise may lack it."""
        guess = note + did_you_mean(entry.stem, free)
        if entry.name.startswith(".") or refusal(entry.path, self.own.within) != "":
            return guess
        if (name := resembled(entry.stem, free)) and self.has_work(entry.path, name):
            return for_review(guess)
        name = marked_copy_of(entry.stem, used)
        if name and self._is_rival(entry.path, name, used[name]):
            return for_review(f"{note}: {self._where(used[name])} was used for {name}")
        return guess

    def _is_rival(self, file: Path, name: str, chosen: Path) -> bool:
        """Return whether a file has work in it that the file chosen for its exercise has not."""
        is_same = self.code.read(file).text == self.code.read(chosen).text
        return self.has_work(file, name) and not is_same


class _Others:
    """Files for the exercises that have no file of their own, or only the untouched stub."""

    def __init__(self, search: _FileSearch) -> None:
        self._search = search
        self._fitting: dict[str, dict[tuple[int, int], list[Path]]] = {}
        self._is_lone = False
        self._looked_into = 0

    def chosen(self, files: Mapping[str, Path]) -> dict[str, Path]:
        """Return a file for each exercise that needs one and has one; add a note on each."""
        search = self._search
        wanted = [
            name
            for name in search.course.names
            if name not in files or not search.has_work(files[name], name)
        ]
        if not wanted:
            return {}
        self._look_for(wanted, files)
        found: dict[str, Path] = {}
        by_content: dict[Path, list[str]] = defaultdict(list)
        for name in wanted:
            for (fit, _), candidates in sorted(self._fitting.get(name, {}).items()):
                if usable := self._with_work(candidates, name):
                    if len(usable) > 1:
                        self._add_clash(name, usable)
                        break
                    found[name] = usable[0]
                    if fit == DEFINED:
                        by_content[usable[0]].append(name)
                    else:
                        search.notes.append(self._note(usable[0], name, fit, files))
                    break
        for file, names in by_content.items():
            note = _defined_note(search._where(file), names)
            search.notes.append(note if self._is_lone and not files else for_review(note))
        return found

    def _with_work(self, candidates: Sequence[Path], name: str) -> list[Path]:
        """Return the candidates that are not stubs, and of equal ones the first."""
        search = self._search
        by_text = {
            search.code.read(file).text or str(file): file
            for file in reversed(candidates)
            if search.has_work(file, name)
        }
        return sorted(by_text.values())

    def _add_clash(self, name: str, usable: Sequence[Path]) -> None:
        *most, last = shortened([self._search._where(file) for file in usable], MAX_NAMED)
        names = f"{', '.join(most)} and {last.removeprefix('and ')}"
        note = f"{names} could each be meant for {name}, so none of them was used"
        self._search.notes.append(for_review(note))
        self._search.clashing.update(usable)

    def _note(self, file: Path, name: str, fit: int, files: Mapping[str, Path]) -> str:
        where = self._search._where(file)
        if fit == NEAR:
            return _near_note(where, name)
        if name in files:
            stub = self._search._where(files[name])
            return for_review(f"{where} was used for {name} because {stub} is the untouched stub")
        return for_review(f"{where} was used for {name} because no other file has its name")

    def _look_for(self, wanted: Sequence[str], files: Mapping[str, Path]) -> None:
        """Sort the submission's other files by the exercise that they fit, how well, and depth."""
        used, has_any = set(files.values()), False
        for depth, entries in enumerate(self._entries()):
            others = [one for one in entries if one.path not in used]
            self._is_lone = self._is_lone or (len(others) == 1 and not has_any)
            has_any = has_any or bool(others)
            for entry in others:
                if refusal(entry.path, self._search.own.within) == "":
                    for name, fit in self._fits(entry, wanted):
                        by_fit = self._fitting.setdefault(name, {})
                        by_fit.setdefault((fit, depth), []).append(entry.path)

    def _entries(self) -> Iterator[list[Entry]]:
        """Yield the code files of each level of folders, as far as they can be listed."""
        try:
            for folders in self._search.levels():
                yield [
                    entry
                    for folder in folders
                    for entry in self._search.own.entries(folder)
                    if entry.suffix in CODE and not entry.name.startswith(".")
                ]
        except (NotOpened, PermissionError) as error:
            require_own_reader()
            reason = error.strerror if isinstance(error, PermissionError) else error
            note = f"not all of its folders were searched for other files ({reason})"
            self._search.notes.append(for_review(note))

    def _fits(self, entry: Entry, wanted: Sequence[str]) -> Iterator[tuple[str, int]]:
        """Yield the wanted exercises that a file may be meant for, and how it fits each."""
        search = self._search
        if name := _exact_name(entry.path, search.course):
            yield from [(name, EXACT)] if name in wanted else []
            return
        copied = marked_copy_of(entry.stem, search.course.names)
        if copied in wanted:
            yield copied, NEAR
        self._looked_into += 1
        if self._looked_into > MAX_OTHERS or search.code.read(entry.path).problem:
            return
        defined = search.code.defined_in(entry.path, search.course)
        similar = resembled(entry.stem, defined)
        for name in defined:
            if name in wanted and name != copied:
                yield name, NEAR if name == similar else DEFINED
