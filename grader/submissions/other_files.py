"""The files of a submission that are graded in place of missing ones, and unused files.

An exercise without a file, or with an untouched stub, gets another file if exactly one fits: by
its name in another folder, by a similar name, or by its definitions. Every unused file that may
hold work becomes a flag.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from grader.errors import did_you_mean
from grader.submissions.code_files import STUB, UNREADABLE, WORK
from grader.submissions.folders import Folders, exact_name
from grader.submissions.near_names import marked_copy_of, resembled
from grader.submissions.notes import MAX_NAMED, for_review, left_out, quoted, shortened
from grader.submissions.opening import code_stem, code_suffix
from grader.submissions.reader.sharing import require_own_reader
from grader.trees import NotOpened, refusal

MAX_FILES = 300  # files with other names that are examined
MAX_BYTES = 64 * 1024 * 1024  # bytes of these files together
EXACT, NEAR, DEFINED, BROKEN = range(4)  # the ways in which a file fits an exercise, best first
_Fitting = dict[tuple[int, int], list[Path]]  # by the way in which they fit, and by depth


def near_note(where: str, name: str) -> str:
    """Return the note on a file that was used because of its name."""
    return for_review(f"{quoted(where)} was used for {name} because its name nearly fits")


def defined_note(where: str, names: Sequence[str]) -> str:
    """Return the note on a file that was used because of its content."""
    return f"{quoted(where)} was used for {', '.join(names)} because of what it defines"


@dataclass(frozen=True)
class _Other:
    """A code file, how many folders it lies in, and the exercise whose own name it has.

    A file that is hidden, or must not be opened, is not usable.
    """

    path: Path
    stem: str
    depth: int
    exercise: str
    is_usable: bool
    size: int


@dataclass
class OtherFiles:
    """The code files of a submission beside `files`, the own files of exercises in `homes`."""

    folders: Folders
    homes: Sequence[Path]
    files: Mapping[str, Path]
    _clashing: set[Path] = field(default_factory=set)  # rivals of which none was chosen
    _cut: str = ""  # why not all could be listed

    # --- which are used ---------------------------------------------------------------------------

    def chosen(self) -> dict[str, Path]:
        """Return a file for each exercise that needs one and has one; add a note on each."""
        names = self.folders.course.names
        wanted = [name for name in names if self._own_state(name) != WORK]
        if not wanted:
            return {}
        found: dict[str, Path] = {}
        by_content: dict[Path, list[str]] = defaultdict(list)
        fitting = self._fitting(wanted)
        if self._cut:
            self._add_note(for_review(self._cut))
        for name in wanted:
            file, fit = self._choice(name, fitting.get(name, {}))
            if file is None:
                continue
            found[name] = file
            if self._own_state(name) == UNREADABLE:
                self._add_note(for_review(self.folders.code.read(self.files[name]).problem))
            if fit >= DEFINED:
                by_content[file].append(name)
            else:
                self._add_note_on(file, name, fit)
        for file, held in by_content.items():
            note = defined_note(self.folders.where(file), held)
            self._add_note(note if self._is_lone else for_review(note))
        return found

    def _own_state(self, name: str) -> int | None:
        return self.folders.code.state(self.files[name], name) if name in self.files else None

    def _add_note(self, note: str) -> None:
        self.folders.notes.append(note)

    def _fitting(self, wanted: Sequence[str]) -> dict[str, _Fitting]:
        """Return the files that may be meant for each exercise."""
        fitting: dict[str, _Fitting] = defaultdict(dict)
        for other in self._others:
            if other.is_usable:
                for name, fit in self._fits(other, wanted):
                    fitting[name].setdefault((fit, other.depth), []).append(other.path)
        for file in dict.fromkeys(self.files.values()):  # one file may hold several
            depth = len(file.relative_to(self.folders.own.within).parts) - 1
            for name, fit in self._held(file, wanted):
                if self.files.get(name) != file:
                    fitting[name].setdefault((fit, depth), []).append(file)
        return fitting

    def _held(self, file: Path, wanted: Sequence[str]) -> Iterator[tuple[str, int]]:
        """Yield the wanted exercises for which a file defines something, and whether it parses."""
        if self.folders.code.may_define(file, wanted):
            for name, parses in self.folders.code.defined_in(file).items():
                if name in wanted:
                    yield name, DEFINED if parses else BROKEN

    def _fits(self, other: _Other, wanted: Sequence[str]) -> Iterator[tuple[str, int]]:
        """Yield the wanted exercises for which a file may be meant, and how it fits each."""
        if name := other.exercise:
            best = self.folders.files_in(other.path.parent).get(name, other.path)
            yield from [(name, EXACT)] if name in wanted and best == other.path else []
            yield from (each for each in self._held(other.path, wanted) if each[0] != name)
            return
        copied = marked_copy_of(other.stem, self.folders.course.names)
        if copied in wanted:
            yield copied, NEAR
        defined = self.folders.code.defined_in(other.path)
        similar = resembled(other.stem, [name for name, parses in defined.items() if parses])
        for name, parses in defined.items():
            if name in wanted and name != copied:
                yield name, NEAR if name == similar else DEFINED if parses else BROKEN

    def _choice(self, name: str, fitting: _Fitting) -> tuple[Path | None, int]:
        """Return the file to grade in place of a missing or own file, and how it fits.

        A file with work comes before one that cannot be read, which comes before a stub.
        """
        own = self._own_state(name)
        for state in [WORK] if own == UNREADABLE else [WORK, UNREADABLE]:
            for fit, depth in sorted(fitting):
                usable = self._distinct(fitting[fit, depth], name, state)
                if len(usable) > 1:
                    self._add_clash(name, usable)
                    return None, fit
                if usable:
                    return usable[0], fit
        stubs = next((fitting[key] for key in sorted(fitting) if key[0] == EXACT), [None])
        return stubs[0] if own is None else None, EXACT

    def _distinct(self, candidates: Sequence[Path], name: str, state: int) -> list[Path]:
        """Return the candidates in this state; of those with the same code, the first."""
        code = self.folders.code
        usable = [file for file in candidates if code.state(file, name) == state]
        if len(usable) < 2:
            return usable
        return list({code.same_as(file): file for file in reversed(usable)}.values())[::-1]

    def _add_clash(self, name: str, usable: Sequence[Path]) -> None:
        *most, last = shortened([quoted(self.folders.where(file)) for file in usable], MAX_NAMED)
        names = f"{', '.join(most)} and {last.removeprefix('and ')}"
        note = f"{names} could each be meant for {name}, so none of them was used"
        self._add_note(for_review(note))
        self._clashing.update(usable)

    def _add_note_on(self, file: Path, name: str, fit: int) -> None:
        """Add a note on a file that was chosen by its name, unless it is in its proper place."""
        where = self.folders.where(file)
        if fit == NEAR:
            self._add_note(near_note(where, name))
        elif not (self._is_at_home(file) or self.folders.code.state(file, name) == STUB):
            why = "no other file has its name"
            if name in self.files:
                own = quoted(self.folders.where(self.files[name]))
                is_stub = self._own_state(name) == STUB
                why = f"{own} is the untouched stub" if is_stub else f"{own} cannot be read"
            self._add_note(for_review(f"{quoted(where)} was used for {name} because {why}"))

    def _is_at_home(self, file: Path) -> bool:
        return any(file in self.folders.files_in(home).values() for home in self.homes)

    @property
    def _is_lone(self) -> bool:
        """Return whether the first level with code files has only one."""
        depths = [other.depth for other in self._others]
        return not self.files and depths.count(depths[0]) == 1

    # --- which are there --------------------------------------------------------------------------

    @cached_property
    def _others(self) -> list[_Other]:
        """The code files of all levels of folders, as far as they can be listed within limits."""
        found: list[_Other] = []
        room, reason = MAX_BYTES, ""
        try:
            for other in self._listed():
                room -= other.size
                if len(found) == MAX_FILES or (room < 0 and found):
                    reason = f"they hold more than {MAX_FILES} files or {MAX_BYTES >> 20} MiB"
                    break
                found.append(other)
        except (NotOpened, PermissionError) as error:
            require_own_reader()
            reason = f"{getattr(error, 'strerror', None) or error}"
        if reason := reason or self.folders.not_searched:
            self._cut = f"not all of its folders were searched for other files ({reason})"
        return found

    def _listed(self) -> Iterator[_Other]:
        folders, own = self.folders, {str(file) for file in self.files.values()}
        names, within = folders.course.names, folders.own.within
        for depth, level in enumerate(folders.levels()):
            for folder in level:
                for entry in folders.own.entries(folder):
                    if f"{folder}/{entry.name}" in own or not code_suffix(entry.name):
                        continue
                    path = entry.path
                    is_hidden = entry.name.startswith(".")
                    is_usable = not is_hidden and refusal(path, within) == ""
                    size = os.lstat(path).st_size if is_usable else 0
                    yield _Other(
                        path, code_stem(entry.name), depth, exact_name(path, names), is_usable, size
                    )

    # --- which are not used -----------------------------------------------------------------------

    def add_notes_on_unused(self, used: Mapping[str, Path]) -> None:
        """Add a flag on each unused file that may hold work, a note on others at home."""
        if not self._others:
            return
        files = {*used.values(), *self._clashing}
        free = [name for name in self.folders.course.names if name not in used]
        for other in self._others:
            if other.path in files:
                continue
            if flag := self._why_flagged(other, used, free):
                self._add_note(for_review(flag))
            elif other.path.parent in self.homes:
                self._add_note(self._why_left_out(other, free))

    def _why_left_out(self, other: _Other, free: Sequence[str]) -> str:
        if other.exercise:
            return self._left_out(other, f"is a second file for {other.exercise}")
        return self._left_out(other, "is not an exercise file") + did_you_mean(other.stem, free)

    def _why_flagged(self, other: _Other, used: Mapping[str, Path], free: Sequence[str]) -> str:
        """Return a flag on an unused file; empty if no exercise can need it."""
        if not other.is_usable:
            return ""
        no_exercise = self._left_out(other, "is not an exercise file")
        if self._is_rival(other, other.exercise, used):
            is_read = self.folders.code.state(other.path, other.exercise) != UNREADABLE
            why = f"is a second file for {other.exercise}"
            return self._left_out(other, why if is_read else f"{why} that cannot be read")
        if other.exercise:
            return ""
        if self._is_rival(other, resembled(other.stem, free), used):
            return no_exercise + did_you_mean(other.stem, free)
        if self._is_rival(other, name := marked_copy_of(other.stem, used), used):
            return f"{no_exercise}: {quoted(self.folders.where(used[name]))} was used for {name}"
        defined = self.folders.code.defined_in(other.path)
        if held := [name for name in defined if self._is_rival(other, name, used)]:
            return self._left_out(other, f"defines {', '.join(held)} as well")
        return ""

    def _is_rival(self, other: _Other, name: str, used: Mapping[str, Path]) -> bool:
        """Return whether a file may have work for an exercise that the used file lacks."""
        code = self.folders.code
        if not name or code.state(other.path, name) == STUB:
            return False
        return name not in used or code.same_as(other.path) != code.same_as(used[name])

    def _left_out(self, other: _Other, why: str) -> str:
        return left_out(self.folders.where(other.path), why)
