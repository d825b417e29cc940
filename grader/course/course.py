"""The course: its exercises in teaching order, and the files of each.

A course with `reference/` is graded by its hidden suites, one with only `exercises/` by the public
suites. No code names an exercise: a new folder adds one.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace as replace_field

from grader.course.exercise_names import spelling_problem
from grader.course.policy import (
    MUTED,
    CourseList,
    CourseSettings,
    Policy,
    check_names,
    make_policy,
)
from grader.course.settings import (
    Count,
    Seconds,
    decode_settings,
    read_bytes,
    read_settings,
    read_text,
)
from grader.errors import CourseError, RequestError, did_you_mean

SETTINGS = "reference/course.toml"
PUBLIC_COURSE = "course.json"  # in exercises/: what a students' copy knows of the course
NOTEBOOKS = "notebooks"  # in exercises/: the folder of the exercises as notebooks
OUTPUT = "output"  # the stage for what a call returns, unless a variable has that name
EXAMPLE = "example.py"  # the worked example of the statement, for the notebook
DRAWING = "drawing.py"  # draws what a student's code computes; students' copies have it, too
DOWNLOAD = "download the course again"
RENAME = "rename the folder, also in `requires` of other exercises, in lists and in `weights`"
TEXT = "text.txt"  # what both suites of an exercise may read
# Students read these; they decide no result.
STATEMENT_FILES = ("statement.md", "test_public.py", EXAMPLE, DRAWING)
PACKAGED = "students"  # in the installed package: the folder of the course that comes with it
UNREVIEWED = "reviewed = false"  # in the `exercise.toml` of somebody else's code
MISTAKES_FILE = "mistakes.toml"  # of an exercise; that of `reference/` has what several share
NAMED_FILE = "named.toml"  # names of mistakes, given when everything was graded
NOT_ASKED_FILE = "not_asked.toml"  # why cases ask some promises in some branches alone
COURSE_FILES = (SETTINGS, f"exercises/{PUBLIC_COURSE}")  # a folder with one of them has a course

# Modules of torch that nobody needs for work written by hand: its internals compute the same work
# under other names, and so do its masked tensors and what it has for other formats.
NEVER_BY_HAND = (
    *("torch._refs*", "torch._prims.*", "torch._decomp.*", "torch._higher_order_ops*"),
    *("torch._meta_registrations.*", "torch._numpy*", "torch._C._nn.*"),
    *("torch._inductor.decomposition.*", "torch._inductor.kernel.*", "torch.testing._*"),
    *("torch.masked", "torch.masked.*", "torch.sparse.softmax*", "torch.sparse.log_softmax*"),
    *("torch.onnx.ops*", "torch.onnx._*", "torch.ao.*", "torch.nn.attention*"),
    *("torch.ops.*._*", "torch*flex_attention*", "torch.distributed.tensor*"),
)


class TrainingRules(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What the training calls of an exercise may take: together, and the memory of each."""

    seconds: Seconds = 120.0  # on the clock
    cpu_seconds: Seconds = 60.0
    memory_mb: Seconds = 512.0


class Exercise(Struct, frozen=True, forbid_unknown_fields=True, dict=True):
    """One exercise: the keys of its `exercise.toml`, its name, and the folder of its files."""

    name: str
    title: str
    order: int
    points: Count
    implements: tuple[str, ...]
    summary: str = ""
    requires: tuple[str, ...] = ()
    own_parts: bool = False  # whether it is run on the student's own work, as far as that is right
    forbidden: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()
    stages: tuple[str, ...] = ()
    idea: str = ""
    formula: str = ""  # in LaTeX, for the notebook
    adds: str = ""  # what it adds to those it builds on, in one line
    paper: str = ""  # where its idea comes from: "Title (year)"
    builds_on: tuple[str, ...] = ()  # exercises whose ideas it extends, beside those it requires
    call_seconds: Seconds = 5.0
    exercise_seconds: Seconds = 30.0
    training: TrainingRules | None = None  # of an exercise in which a model is trained
    reviewed: bool = True  # False for somebody else's code, until a person has read it
    stub: str = ""
    example: str = ""  # the text of its `example.py`
    drawing: str = ""  # the text of its `drawing.py`
    folder: Path = Path()

    def read(self, file: str) -> str:
        """Return the text of a file in the exercise's folder; raises `CourseError`."""
        return read_text(self.folder / file)

    @property
    def all_forbidden(self) -> tuple[str, ...]:
        """Patterns of all names that it forbids; one that forbids none forbids nothing."""
        return (*self.forbidden, *NEVER_BY_HAND) if self.forbidden else ()

    @property
    def most_seconds(self) -> float:
        """The seconds that grading it takes at most, trainings included."""
        return self.exercise_seconds + (self.training.seconds if self.training else 0.0)

    @functools.cached_property
    def stand_in(self) -> str | None:
        """The text of the exercise's `stand_in.py`, or None if there is no such file."""
        path = self.folder / "stand_in.py"
        return read_text(path) if self.folder.name and path.is_file() else None


class PublicCourse(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The content of `course.json` in a students' copy.

    A copy of one list has the list's title and points, and its name in `chosen`.
    """

    title: str
    points: Count
    exercises: tuple[Exercise, ...]
    mute_imports: tuple[str, ...] = MUTED
    lists: dict[str, CourseList] = {}
    chosen: str = ""


@dataclass(frozen=True)
class Course:
    """Exercises in teaching order: all, or those of one list. `points` is the maximum for them."""

    title: str
    root: Path
    exercises: tuple[Exercise, ...]
    suites: Literal["hidden", "public"]
    points: int = 0
    policy: Policy = field(default_factory=Policy)
    mute_imports: tuple[str, ...] = MUTED  # packages that do nothing in student code
    sealed: bool = False  # whether it came out of a bundle, and may be read by no student code
    lists: Mapping[str, CourseList] = field(default_factory=dict)
    chosen: str = ""  # the name of the list; empty for all exercises
    # Whether its code may run in the grader's own processes. One that was looked for, and not
    # named by whoever uses the grader, has to be recognised first.
    trusted: bool = True
    # Of a copy that is known by its contents: the bytes that were compared, by their paths in it.
    # Nothing else of it runs. They lie in the folder `held` while it grades.
    contents: Mapping[str, bytes] | None = field(default=None, repr=False, compare=False)
    held: Path | None = field(default=None, compare=False)

    @property
    def reference(self) -> Path:
        """The folder of the teaching team."""
        return self.root / "reference"

    @property
    def student_folder(self) -> Path:
        """The folder of the students."""
        return self.root / "exercises"

    @property
    def executed_folder(self) -> Path:
        """The folder of what students have that is executed: theirs, unless a copy is held."""
        return (self.held or self.root) / "exercises"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the exercises in teaching order."""
        return tuple(exercise.name for exercise in self.exercises)

    def __getitem__(self, name: str) -> Exercise:
        for exercise in self.exercises:
            if exercise.name == name:
                return exercise
        self.refuse_of_other_list(name)
        problem = f"there is no exercise `{name}`{did_you_mean(name, self.names)}"
        raise RequestError(problem, "grader status   lists the exercises")

    def refuse_of_other_list(self, name: str) -> None:
        """Raise `RequestError` if another list has an exercise of this name, and this one not."""
        if name in self.names:
            return
        for other, listed in self.lists.items():
            if name in listed.exercises:
                problem = f"the list `{self.chosen}` does not contain `{name}`"
                raise RequestError(problem, f"--course-list {other}")

    def choose(self, name: str | None = None) -> Course:
        """Return the course with the exercises of a list alone, by default those of the first.

        A course without lists, or with a list that was chosen before, is returned as it is. Raises
        `RequestError` if there is no such list.
        """
        name = name or self.chosen or next(iter(self.lists), "")
        if name == self.chosen:
            return self
        if name not in self.lists or self.chosen:
            known = ", ".join(self.lists) if not self.chosen else self.chosen
            problem = f"the course has no list `{name}`" + (f", but {known}" if known else "")
            raise RequestError(problem, "leave out --course-list")
        listed = self.lists[name]
        return replace(
            self,
            title=listed.title or self.title,
            points=listed.points,
            exercises=tuple(each for each in self.exercises if each.name in listed.exercises),
            chosen=name,
        )

    def exercise_of(self, suite: Path) -> str:
        """Return the exercise of a suite: its folder's name, or its own without `test_`."""
        folder = suite.parent.name
        return folder if folder in self.names else suite.stem.removeprefix("test_")

    def suite(self, name: str) -> Path:
        """Return the file of the suite that grades an exercise of this course."""
        if self.suites == "hidden":
            return self.reference / name / "test_hidden.py"
        return self.executed_folder / "tests" / f"test_{name}.py"

    def text(self, name: str) -> Path:
        """Return the file with the text that the suites of an exercise read, which few have."""
        if self.suites == "hidden":
            return self.reference / name / TEXT
        return self.suite(name).with_suffix(".txt")

    def public_suite(self, name: str) -> str:
        """Return the text of the public tests of an exercise."""
        if self.suites == "hidden":
            return self[name].read("test_public.py")
        return read_text(self.suite(name))

    @property
    def uneven_points(self) -> str:
        """Say how the points of the exercises fail to add up to the course's; empty if they do."""
        if self.lists and not self.chosen:
            return next(filter(None, (self.choose(name).uneven_points for name in self.lists)), "")
        total = sum(exercise.points for exercise in self.exercises)
        where = f"lists.{self.chosen} says" if self.chosen else "says"
        says = f"{where} {self.points} points, the exercises add up to {total}"
        return "" if total == self.points else f"reference/course.toml: {says}"

    @functools.cached_property
    def hash(self) -> str:
        """A hash over everything that decides points."""
        return _digest(f"{name} {digest}\n".encode() for name, digest in self.hashes.items())

    @functools.cached_property
    def hashes(self) -> dict[str, str]:
        """A hash for each exercise, over everything that decides its results."""
        return {name: _digest(self._deciding(name)) for name in self.names}

    @functools.cached_property
    def statement_hash(self) -> str:
        """A hash over the files that students read and that decide no result."""
        files = (path for name in self.names for path in self._files(name))
        return _digest(path.read_bytes() for path in files if path.name in STATEMENT_FILES)

    def _files(self, name: str) -> list[Path]:
        return sorted(self[name].folder.glob("*.*")) if self.suites == "hidden" else []

    def _deciding(self, name: str) -> Iterator[bytes]:
        """Yield what decides the results of an exercise: its own files, and what it imports."""
        paths = [self.suite(name), self.text(name)]
        if self.suites == "hidden":
            without = (*STATEMENT_FILES, NAMED_FILE, NOT_ASKED_FILE)
            paths = [path for path in self._files(name) if path.name not in without]
            paths.append(self.reference / MISTAKES_FILE)
            for needed in sorted(self.needed(name)):
                paths += [self[needed].folder / file for file in ("solution.py", "stand_in.py")]
        if not self.policy.carry_forward:
            yield b"every failed check is charged\0"
        if self.mute_imports != MUTED:
            yield f"muted: {', '.join(self.mute_imports)}\0".encode()
        for path in paths:
            if path.is_file():
                yield f"{path.parent.name}/{path.name}\0".encode()
                yield read_bytes(path)

    def unreviewed(self, names: Iterable[str]) -> list[str]:
        """Return those of some exercises whose grading runs code that nobody has reviewed yet."""
        return [
            name
            for name in names
            if not all(self[each].reviewed for each in (name, *self.needed(name)))
        ]

    def refuse_unreviewed(self, names: Iterable[str]) -> None:
        """Raise `RequestError` if grading some exercises runs code that nobody has reviewed yet."""
        for name in self.unreviewed(names):
            origin = next(each for each in (name, *self.needed(name)) if not self[each].reviewed)
            problem = f"the code of `{origin}` was imported, and runs only after a review"
            raise RequestError(problem, f"grader trust {self.root}   shows it, and asks once")

    def as_reviewed(self) -> Course:
        """Return the course for a process that is confined, where all of its code may run."""
        exercises = (replace_field(each, reviewed=True) for each in self.exercises)
        return replace(self, exercises=tuple(exercises))

    def needed(self, name: str) -> set[str]:
        """Return the exercises that one requires, directly or through others."""
        found: set[str] = set()
        left = {name}
        while left:
            left = {each for one in left for each in self[one].requires} - found
            found |= left
        return found


def _digest(parts: Iterable[bytes]) -> str:
    return hashlib.sha256(b"".join(parts)).hexdigest()[:16]


def find_course(start: Path) -> Course:
    """Return the course in `start` or in the nearest folder above it; raises `RequestError`.

    The search ends at the user's home, at the root of a repository, and at a folder or a course
    that belongs to another user or in which everybody may put things, such as /tmp: somebody else
    could have put a course there.
    """
    start = start.absolute()
    for folder in (start, *start.parents):
        if not folder.exists():
            continue
        course_files = [folder / file for file in COURSE_FILES if (folder / file).is_file()]
        if stranger := _not_of_the_user(folder, *course_files):
            if not course_files:
                break
            remedy = "--course DIR   names the course to grade with, if you trust it"
            raise RequestError(f"{stranger}: its course is not used", remedy)
        if course_files:
            return replace(load_course(folder), trusted=False)
        if folder in _homes() or (folder / ".git").exists():
            break
    remedy = "grader init   writes the exercises into a folder; elsewhere, pass --course DIR"
    raise RequestError(f"no course at {start} or above it", remedy)


def course_in(folder: Path) -> Course:
    """Return the course in a folder that was named, or else the one that is found above it."""
    return load_course(folder) if has_course(folder) else find_course(folder)


def has_course(folder: Path) -> bool:
    """Return whether a course is in a folder itself."""
    return any((folder / file).is_file() for file in COURSE_FILES)


def _not_of_the_user(folder: Path, *course_files: Path) -> str:
    """Say why a folder and the course in it are not the user's own; empty if they are."""
    if not hasattr(os, "geteuid"):  # on Windows, where homes are closed to other users
        return ""
    if folder.stat().st_mode & stat.S_ISVTX and folder.stat().st_mode & stat.S_IWOTH:
        return f"everybody may put things into {folder}"
    for path in (folder, *(part for file in course_files for part in (file.parent, file))):
        for found in (path.lstat(), path.stat()):
            if found.st_uid != os.geteuid():
                return f"{path} belongs to another user"
    return ""


def _homes() -> Iterator[Path]:
    """Yield the user's home, by each name that it may have in a path."""
    with contextlib.suppress(RuntimeError):  # a user that the system does not know has none
        yield from (Path.home(), Path.home().resolve())


def packaged_course() -> Course:
    """Return the students' course that came with the grader; raises `RequestError` if none did."""
    package = Path(__file__).parent.parent
    for root in (package / PACKAGED, package.parent):
        if (root / "exercises" / PUBLIC_COURSE).is_file():
            return load_public(root)
    raise RequestError("this grader came without exercises", "--course DIR")


def load_course(root: Path, chosen: str = "") -> Course:
    """Return the course in `root`, with all exercises or those of the list `chosen`.

    Raises `CourseError` that names the file that is wrong.
    """
    course = _load_reference(root) if (root / SETTINGS).is_file() else load_public(root)
    return course.choose(chosen) if chosen else course


def load_public(root: Path, data: bytes | None = None) -> Course:
    """Return the students' course in `root`, whatever else is there; raises `CourseError`.

    `data` are the bytes of its `course.json`, if they were read before.
    """
    path = root / "exercises" / PUBLIC_COURSE
    try:
        public = decode_public(read_bytes(path) if data is None else data, path)
    except CourseError as error:
        raise CourseError(error.message, DOWNLOAD) from None
    return Course(
        *(public.title, root, public.exercises, "public", public.points),
        mute_imports=public.mute_imports,
        lists=public.lists,
        chosen=public.chosen,
    )


def decode_public(content: bytes, path: Path) -> PublicCourse:
    """Return what the bytes of a `course.json` say, as it is run; raises `CourseError`."""
    public = decode_settings(content, path, PublicCourse)
    for name in (name for each in public.exercises for name in (each.name, *each.requires)):
        if problem := spelling_problem(name):  # it names files
            raise CourseError(f"{path}: an exercise of this copy {problem}")
    names = [each.name for each in public.exercises]
    if twice := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
        raise CourseError(f"{path}: two exercises are called `{twice[0]}`")
    return public


def _load_reference(root: Path) -> Course:
    path = root / SETTINGS
    settings = read_settings(path, CourseSettings)
    files = path.parent.glob("*/exercise.toml")
    exercises = sorted(map(_load_exercise, files), key=lambda each: (each.order, each.name))
    names = tuple(exercise.name for exercise in exercises)
    for exercise in exercises:
        check_names(exercise.requires, names, f"{exercise.folder / 'exercise.toml'}: requires")
    lists = {
        name: replace_field(listed, exercises=listed.exercises or names)
        for name, listed in settings.lists.items()
    }
    policy = make_policy(settings, names, str(path))
    if (settings.points is None) == (not lists):
        problem = "each list has points of its own" if lists else "missing key `points`"
        raise CourseError(f"{path}: {problem}")
    points = settings.points or sum(exercise.points for exercise in exercises)
    course = Course(
        *(settings.title, root, tuple(exercises), "hidden", points, policy),
        mute_imports=settings.mute_imports,
        lists=lists,
    )
    for exercise in exercises:
        if exercise.name in course.needed(exercise.name):
            problem = "requires: through others, it requires itself"
            raise CourseError(f"{exercise.folder / 'exercise.toml'}: {problem}")
    _check_lists(course, str(path))
    return course


def _load_exercise(path: Path) -> Exercise:
    folder = path.parent
    if problem := spelling_problem(folder.name):
        raise CourseError(f"{folder}: an exercise cannot have this name: it {problem}", RENAME)
    example, drawing = (
        read_text(file) if file.is_file() else "" for file in (folder / EXAMPLE, folder / DRAWING)
    )
    return read_settings(
        path, Exercise, name=folder.name, folder=folder, example=example, drawing=drawing
    )


def _check_lists(course: Course, where: str) -> None:
    """Raise `CourseError` if a list names no exercise, or leaves out what one of its own needs."""
    for name, listed in course.lists.items():
        check_names(listed.exercises, course.names, f"{where}: lists.{name}.exercises")
        for exercise in listed.exercises:
            if missing := sorted(course.needed(exercise) - {*listed.exercises}):
                problem = f"`{exercise}` requires `{missing[0]}`, which is not in the list"
                raise CourseError(f"{where}: lists.{name}: {problem}")
