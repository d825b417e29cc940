"""The course: its exercises in teaching order, and the files of each.

With `reference/`, its hidden suites grade; with only `exercises/`, the public suites. No code
names an exercise: a new folder adds one.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, Struct
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
from grader.course.questions import LessonQuestion
from grader.course.settings import (
    Count,
    Minutes,
    Seconds,
    decode_settings,
    read_bytes,
    read_settings,
    read_text,
)
from grader.errors import CourseError, RequestError, did_you_mean

SETTINGS = "reference/course.toml"
EXERCISE_FILE = "exercise.toml"  # makes a folder of `reference/` an exercise
PUBLIC_COURSE = "course.json"  # in exercises/: the course's data for a students' copy
NOTEBOOKS = "notebooks"  # in exercises/: the folder of the exercises as notebooks
OUTPUT = "output"  # the stage for the result of a call, unless a variable has that name
EXAMPLE = "example.py"  # the worked example of the statement, for the notebook
DRAWING = "drawing.py"  # draws values of a student's code; students' copies have it, too
DRAWS = re.compile(r"^def (draw|tour)\(", re.MULTILINE)  # in that file
DOWNLOAD = "download the course again"
RENAME = "rename the folder, also in `requires` of other exercises, in lists and in `weights`"
TEXT = "text.txt"  # a text that both suites of an exercise may read
# Students read these keys, which decide no result.
STATEMENT_FILES = ("statement.md", "test_public.py", EXAMPLE, DRAWING)
PACKAGED = "students"  # in the installed package: the folder of the course that comes with it
UNREVIEWED = "reviewed = false"  # in the `exercise.toml` of an exercise by somebody else
MISTAKES_FILE = "mistakes.toml"  # of an exercise; in `reference/`: of several
NAMED_FILE = "named.toml"  # mistakes that teachers named after grading
NOT_ASKED_FILE = "not_asked.toml"  # reasons why no case asks some promises in some branches
COURSE_FILES = (SETTINGS, f"exercises/{PUBLIC_COURSE}")  # one of these makes a folder a course

# Modules of torch that handwritten work never needs: torch's internals compute the forbidden work
# under other names, and so do its masked tensors and its functions for other formats.
NEVER_BY_HAND = (
    *("torch._refs*", "torch._prims.*", "torch._decomp.*", "torch._higher_order_ops*"),
    *("torch._meta_registrations.*", "torch._numpy*", "torch._C._nn.*"),
    *("torch._inductor.decomposition.*", "torch._inductor.kernel.*", "torch.testing._*"),
    *("torch.masked", "torch.masked.*", "torch.sparse.softmax*", "torch.sparse.log_softmax*"),
    *("torch.onnx.ops*", "torch.onnx._*", "torch.ao.*", "torch.nn.attention*"),
    *("torch.ops.*._*", "torch*flex_attention*", "torch.distributed.tensor*"),
)


# No `omit_defaults`: it tells a default by identity, so a copy from another process would have
# another hash, and the course's records would not count there.
class TrainingRules(Struct, frozen=True, forbid_unknown_fields=True):
    """Limits of an exercise's training calls: time for all together, and memory for each."""

    seconds: Seconds = 120.0  # by the clock
    cpu_seconds: Seconds = 60.0
    memory_mb: Seconds = 512.0


class Exercise(Struct, frozen=True, forbid_unknown_fields=True, dict=True):
    """One exercise: the keys of its `exercise.toml`, its name, and the folder of its files."""

    name: str
    title: str
    order: int
    points: Count
    implements: tuple[str, ...]
    minutes: Minutes | None = None  # that a student who knows the lecture needs, about
    summary: str = ""
    requires: tuple[str, ...] = ()
    own_parts: bool = False  # whether it runs on the student's own earlier exercises
    forbidden: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()
    stages: tuple[str, ...] = ()
    idea: str = ""
    formula: str = ""  # in LaTeX, for the notebook
    adds: str = ""  # a line on what is new in it
    paper: str = ""  # the source of its idea: "Title (year)"
    builds_on: tuple[str, ...] = ()  # exercises whose ideas it extends, besides those it requires
    call_seconds: Seconds = 5.0
    exercise_seconds: Seconds = 30.0
    training: TrainingRules | None = None  # for an exercise in which a model is trained
    reviewed: bool = True  # False for an imported exercise, until a person has read its code
    stub: str = ""
    example: str = ""  # the text of its `example.py`
    drawing: str = ""  # the text of its `drawing.py`
    predict: str = ""  # what a student should predict before the worked example runs
    questions: Annotated[tuple[LessonQuestion, ...], Meta(max_length=2)] = ()
    folder: Path = Path()

    def read(self, file: str) -> str:
        """Return the text of a file in the exercise's folder; raises `CourseError`."""
        return read_text(self.folder / file)

    @property
    def all_forbidden(self) -> tuple[str, ...]:
        """Patterns of all names that it forbids, with torch's internals; or none."""
        return (*self.forbidden, *NEVER_BY_HAND) if self.forbidden else ()

    @property
    def most_seconds(self) -> float:
        """The most seconds that grading it may take, trainings included."""
        return self.exercise_seconds + (self.training.seconds if self.training else 0.0)

    @property
    def draws(self) -> bool:
        """Whether its `drawing.py` draws what a student's code of this exercise computes."""
        return "draw" in DRAWS.findall(self.drawing)

    @property
    def leads_tour(self) -> bool:
        """Whether its `drawing.py` leads a sequence through several exercises."""
        return "tour" in DRAWS.findall(self.drawing)

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
    """Exercises in teaching order: all, or those of one list. `points` is their maximum."""

    title: str
    root: Path
    exercises: tuple[Exercise, ...]
    suites: Literal["hidden", "public"]
    points: int = 0
    policy: Policy = field(default_factory=Policy)
    mute_imports: tuple[str, ...] = MUTED  # packages that do nothing in student code
    sealed: bool = False  # whether it came from a bundle, so that no student code may read it
    lists: Mapping[str, CourseList] = field(default_factory=dict)
    chosen: str = ""  # the name of the list; empty for all exercises
    # Whether its code may run in the grader's own processes. A course that was found, and not
    # named by the user, has to be recognised first.
    trusted: bool = True
    # For a copy that is known by its contents: the compared bytes, by their paths in it. Nothing
    # else of it runs. While it grades, they are in the folder `held`.
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
        """The folder of the executed files of a students' copy: its own, or the held one."""
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

    def lists_with(self, name: str) -> tuple[str, ...]:
        """Return the lists with an exercise, of a course from which none has been chosen."""
        lists = {} if self.chosen else self.lists
        return tuple(each for each, listed in lists.items() if name in listed.exercises)

    def refuse_of_other_list(self, name: str) -> None:
        """Raise `RequestError` if only other lists have an exercise of this name, or none has."""
        if name in self.names:
            return
        for other, listed in self.lists.items():
            if name in listed.exercises:
                problem = f"the list `{self.chosen}` does not contain `{name}`"
                raise RequestError(problem, f"--course-list {other}")
        is_other = not self.lists or self.suites == "public" or spelling_problem(name)
        if not is_other and (self.reference / name / EXERCISE_FILE).is_file():
            problem = f"`{name}` is in no list of {SETTINGS}"
            raise RequestError(problem, "add it to `exercises` of one")

    def leader_of_tour(self) -> Exercise:
        """Return the exercise that leads the tour; raises `RequestError` if there is none."""
        for exercise in self.exercises:
            if exercise.leads_tour:
                return exercise
        raise RequestError("no exercise of this course leads a tour", "grader status")

    def choose(self, name: str | None = None) -> Course:
        """Return the course with only the exercises of a list, by default of the first list.

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
        """Return the exercise of a suite: the folder's name, or the file's name without `test_`."""
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
        """Return a sentence if the exercises' points do not add up to the course's; else empty."""
        return next(self.uneven_lists(self.names), "")

    def uneven_lists(self, names: Collection[str]) -> Iterator[str]:
        """Yield a sentence for each list with some of `names` whose points do not add up.

        A course without lists, or with a chosen one, is one list itself.
        """
        if self.lists and not self.chosen:
            for listed in dict.fromkeys(each for name in names for each in self.lists_with(name)):
                yield from self.choose(listed).uneven_lists(names)
            return
        total = sum(exercise.points for exercise in self.exercises)
        where = f"lists.{self.chosen} says" if self.chosen else "says"
        says = f"{where} {self.points} points, the exercises add up to {total}"
        if total != self.points:
            yield f"{SETTINGS}: {says}"

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
        """Yield everything that decides an exercise's results: its files, and those it imports."""
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
        """Return the exercises, of `names`, whose grading runs code that nobody has reviewed."""
        return [
            name
            for name in names
            if not all(self[each].reviewed for each in (name, *self.needed(name)))
        ]

    def refuse_unreviewed(self, names: Iterable[str]) -> None:
        """Raise `RequestError` if grading some exercises runs code that nobody has reviewed."""
        for name in self.unreviewed(names):
            origin = next(each for each in (name, *self.needed(name)) if not self[each].reviewed)
            problem = f"the code of `{origin}` was imported, and runs only after a review"
            raise RequestError(problem, f"grader trust {self.root}   shows it, and asks once")

    def as_reviewed(self) -> Course:
        """Return the course for a confined process, where all of its code may run."""
        exercises = (replace_field(each, reviewed=True) for each in self.exercises)
        return replace(self, exercises=tuple(exercises))

    def needed(self, name: str) -> set[str]:
        """Return the exercises that one requires, directly or indirectly."""
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

    The search ends at the user's home, at the root of a repository, and at a folder or course that
    belongs to another user or that everybody may write to, such as /tmp: somebody else could have
    put a course there.
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
    """Return the course in a named folder, or else the one found above it."""
    return load_course(folder) if has_course(folder) else find_course(folder)


def has_course(folder: Path) -> bool:
    """Return whether a folder itself holds a course."""
    return any((folder / file).is_file() for file in COURSE_FILES)


def _not_of_the_user(folder: Path, *course_files: Path) -> str:
    """Return why a folder and its course are not the user's own; empty if they are."""
    if not hasattr(os, "geteuid"):  # on Windows, where other users cannot enter homes
        return ""
    if folder.stat().st_mode & stat.S_ISVTX and folder.stat().st_mode & stat.S_IWOTH:
        return f"everybody may put things into {folder}"
    for path in (folder, *(part for file in course_files for part in (file.parent, file))):
        for found in (path.lstat(), path.stat()):
            if found.st_uid != os.geteuid():
                return f"{path} belongs to another user"
    return ""


def _homes() -> Iterator[Path]:
    """Yield the user's home, under each name that it may have in a path."""
    with contextlib.suppress(RuntimeError):  # a user unknown to the system has no home
        yield from (Path.home(), Path.home().resolve())


def packaged_course() -> Course:
    """Return the students' course that came with the grader; `RequestError` if none did."""
    package = Path(__file__).parent.parent
    for root in (package / PACKAGED, package.parent):
        if (root / "exercises" / PUBLIC_COURSE).is_file():
            return load_public(root)
    raise RequestError("this grader came without exercises", "--course DIR")


def load_course(root: Path, chosen: str = "") -> Course:
    """Return the course in `root`, with all exercises or those of the list `chosen`.

    Raises `CourseError` that names the wrong file.
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
    """Return the content of a `course.json`, as it will run; raises `CourseError`."""
    public = decode_settings(content, path, PublicCourse)
    for name in (name for each in public.exercises for name in (each.name, *each.requires)):
        if problem := spelling_problem(name):  # the names of exercises become names of files
            raise CourseError(f"{path}: an exercise of this copy {problem}")
    names = [each.name for each in public.exercises]
    if twice := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
        raise CourseError(f"{path}: two exercises are called `{twice[0]}`")
    return public


def _load_reference(root: Path) -> Course:
    path = root / SETTINGS
    settings = read_settings(path, CourseSettings)
    files = path.parent.glob(f"*/{EXERCISE_FILE}")
    exercises = sorted(map(_load_exercise, files), key=lambda each: (each.order, each.name))
    names = tuple(exercise.name for exercise in exercises)
    for exercise in exercises:
        check_names(exercise.requires, names, f"{exercise.folder / EXERCISE_FILE}: requires")
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
            raise CourseError(f"{exercise.folder / EXERCISE_FILE}: {problem}")
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
    """Raise `CourseError` if a list has an unknown exercise, or lacks a required one."""
    for name, listed in course.lists.items():
        check_names(listed.exercises, course.names, f"{where}: lists.{name}.exercises")
        for exercise in listed.exercises:
            if missing := sorted(course.needed(exercise) - {*listed.exercises}):
                problem = f"`{exercise}` requires `{missing[0]}`, which is not in the list"
                raise CourseError(f"{where}: lists.{name}: {problem}")
