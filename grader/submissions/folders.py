"""The folders of a submission that are searched, and the files in them with an exercise's name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from grader.course.course import Course
from grader.sandbox.cells import NOTEBOOK
from grader.submissions.code_files import CodeFiles
from grader.submissions.notes import for_review, left_out, printable_name
from grader.submissions.opening import ENDS, OwnFolder
from grader.trees import refusal

MAX_WRAPPING = 4  # levels of folders that are searched
MAX_FOLDERS = 500  # folders after which no deeper level is searched
INSTALLED = ("site-packages", "node_modules")  # folders with code by others


def is_searched(name: str) -> bool:
    """Return whether a folder of this name is searched, and not hidden or installed."""
    return not name.startswith((".", "__")) and name not in INSTALLED


def exercise_paths(name: str) -> tuple[str, str, str]:
    """Return the paths that the file of an exercise may have in a submission's folder."""
    return f"{name}.py", f"{name}/solution.py", f"{name}{NOTEBOOK}"


def stem_of(file: PurePath) -> str:
    """Return the name of a file without its suffix or, for a `solution.py`, of its folder."""
    return file.parent.name if file.name == "solution.py" else file.stem


def exact_name(file: PurePath, names: Sequence[str]) -> str:
    """Return the exercise whose own name a file has, or nothing."""
    stem = stem_of(file)
    return stem if stem in names and file.suffix in ENDS else ""


@dataclass
class Folders:
    """The folders of one submission."""

    own: OwnFolder
    course: Course
    code: CodeFiles
    notes: list[str]
    not_searched: str = ""  # why the levels are incomplete
    _files: dict[Path, dict[str, Path]] = field(default_factory=dict)

    def where(self, path: Path) -> str:
        """Return the name of a file or folder for notes."""
        return printable_name(str(path.relative_to(self.own.within)))

    def levels(self) -> Iterator[list[Path]]:
        """Yield the folder, then those in it, and so on: zips and clones wrap the files."""
        level, seen = [self.own.within], 0
        for _ in range(MAX_WRAPPING):
            yield level
            seen += len(level)
            level = [
                entry.path
                for folder in level
                for entry in self.own.entries(folder)
                if entry.is_folder and is_searched(entry.name)
            ]
            if level and seen > MAX_FOLDERS:
                self.not_searched = f"there are more than {MAX_FOLDERS}"
                return
        self.not_searched = f"some lie in {MAX_WRAPPING} others" if level else ""

    def files_in(self, folder: Path) -> dict[str, Path]:
        """Return the files in a folder that have the names of exercises, the best of each."""
        if folder not in self._files:
            self._files[folder] = self._list(folder)
        return self._files[folder]

    def _list(self, folder: Path) -> dict[str, Path]:
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
                    self.notes.append(for_review(left_out(self.where(file), reason)))
                elif reason is not None:
                    usable.append(file)
            if len(usable) > 1:
                usable.sort(key=lambda file: self.code.state(file, name))
            if usable:
                found[name] = usable[0]
        return found
