"""The course: which exercises there are, in which order, and where their parts lie.

`reference/` is what the teaching team keeps; `exercises/` is what students get. A course found
with `reference/` is graded by its hidden suites; one with `exercises/` alone by the public ones.
No exercise is named here: adding one is adding a folder.
"""

from __future__ import annotations

import difflib
import functools
import hashlib
import json
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from grader.errors import CourseError, RequestError
from grader.course.policy import Policy, read_policy

REFERENCE, EXERCISES = "reference", "exercises"
PUBLIC_COURSE = "course.json"  # in exercises/: what a students' copy knows of the course
SETTINGS = ("title", "points", "due", "late", "extra_credit", "weights", "show")
TOLD = ("statement.md", "test_public.py")  # what students read; it decides no result


@dataclass(frozen=True)
class Exercise:
    """One concept: what its `exercise.toml` says, and where its files are."""

    name: str
    title: str
    order: int
    points: int
    implements: tuple[str, ...]
    summary: str = ""
    requires: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()
    stages: tuple[str, ...] = ()
    idea: str = ""
    call_seconds: float = 5.0
    exercise_seconds: float = 30.0
    stub: str = ""
    folder: Path = field(default=Path(), compare=False)

    def read(self, file: str) -> str:
        """The text of one of the exercise's files in `reference/`."""
        try:
            return (self.folder / file).read_text("utf-8")
        except OSError as error:
            raise CourseError(f"{self.folder / file}: {error.strerror}") from None

    @functools.cached_property
    def stand_in(self) -> str | None:
        """The text of the exercise's stand-in, where it has one."""
        path = self.folder / "stand_in.py"
        return path.read_text("utf-8") if self.folder.name and path.is_file() else None


@dataclass(frozen=True)
class Course:
    """All exercises in teaching order. `points` is what they are worth together."""

    title: str
    root: Path
    exercises: tuple[Exercise, ...]
    suites: Literal["hidden", "public"]
    points: int = 0
    policy: Policy = field(default_factory=Policy)

    @property
    def reference(self) -> Path:
        """The teaching team's folder."""
        return self.root / REFERENCE

    @property
    def student_folder(self) -> Path:
        """The students' folder."""
        return self.root / EXERCISES

    @property
    def names(self) -> tuple[str, ...]:
        """The exercises' names in teaching order."""
        return tuple(exercise.name for exercise in self.exercises)

    def __getitem__(self, name: str) -> Exercise:
        for exercise in self.exercises:
            if exercise.name == name:
                return exercise
        raise RequestError(
            f"there is no exercise `{name}`{did_you_mean(name, self.names)}",
            "grader status   lists the exercises",
        )

    def suite(self, name: str) -> Path:
        """The file of the suite that grades exercise `name` here."""
        if self.suites == "hidden":
            return self.reference / name / "test_hidden.py"
        return self.student_folder / "tests" / f"test_{name}.py"

    @functools.cached_property
    def hash(self) -> str:
        """A hash over everything that decides points."""
        return _digest(f"{name} {digest}\n".encode() for name, digest in self.hashes.items())

    @functools.cached_property
    def told(self) -> str:
        """A hash over what students read and no result depends on."""
        texts = (path for name in self.names for path in self._files(name) if path.name in TOLD)
        return _digest(path.read_bytes() for path in texts)

    def _files(self, name: str) -> list[Path]:
        return sorted(self[name].folder.glob("*.*")) if self.suites == "hidden" else []

    @functools.cached_property
    def hashes(self) -> dict[str, str]:
        """Of each exercise a hash over everything that decides its results."""
        return {name: _digest(self._deciding(name)) for name in self.names}

    def _deciding(self, name: str) -> Iterator[bytes]:
        """What decides the results of one exercise: its own files, and the parts it builds on."""
        paths = [self.suite(name)]
        if self.suites == "hidden":
            paths = [path for path in self._files(name) if path.name not in TOLD]
            for needed in sorted(self._needed(name)):
                paths += [self[needed].folder / part for part in ("solution.py", "stand_in.py")]
        for path in paths:
            if path.is_file():
                yield f"{path.parent.name}/{path.name}\0".encode()
                yield path.read_bytes()

    def _needed(self, name: str) -> set[str]:
        """The exercises that one builds on, and those that these build on."""
        direct = set(self[name].requires)
        return direct.union(*(self._needed(other) for other in direct - {name}))


def _digest(parts: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()[:16]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`; did you mean `x`?` for the closest known name, or nothing."""
    close = difflib.get_close_matches(name, list(known), 1, cutoff=0.5)
    return f"; did you mean `{close[0]}`?" if close else ""


def find_course(start: Path) -> Course:
    """The course at `start` or the nearest folder above it."""
    start = start.absolute()
    for folder in (start, *start.parents):
        if is_course(folder):
            return load_course(folder)
    raise RequestError(
        f"no course at {start} or above it",
        "run inside the course's folder, or pass --course DIR",
    )


def is_course(folder: Path) -> bool:
    """Whether `folder` is the root of a course."""
    return (folder / REFERENCE / "course.toml").is_file() or (
        folder / EXERCISES / PUBLIC_COURSE
    ).is_file()


def load_course(root: Path) -> Course:
    """The course at `root`; raises `CourseError` with the file that is wrong."""
    if (root / REFERENCE / "course.toml").is_file():
        return _load_reference(root)
    path = root / EXERCISES / PUBLIC_COURSE
    try:
        data = json.loads(path.read_text("utf-8"))
        exercises = tuple(_exercise(e.pop("name"), e, path, Path()) for e in data["exercises"])
        return Course(data["title"], root, exercises, "public", data["points"])
    except (OSError, ValueError, KeyError, AttributeError) as error:
        raise CourseError(f"{path}: not a course: {error}", "get the file anew") from None


def _load_reference(root: Path) -> Course:
    folder = root / REFERENCE
    settings = read_toml(folder / "course.toml")
    exercises = [
        _exercise(path.parent.name, read_toml(path), path, path.parent)
        for path in folder.glob("*/exercise.toml")
    ]
    exercises.sort(key=lambda exercise: (exercise.order, exercise.name))
    names = {exercise.name for exercise in exercises}
    for exercise in exercises:
        for needed in exercise.requires:
            if needed not in names:
                raise CourseError(
                    f"{exercise.folder / 'exercise.toml'}: requires `{needed}`, which is not there"
                )
    where = str(folder / "course.toml")
    for key in settings:
        if key not in SETTINGS:
            raise CourseError(f"{where}: unknown key `{key}`{did_you_mean(key, SETTINGS)}")
    try:
        title, points = str(settings["title"]), int(settings["points"])
    except KeyError as error:
        raise CourseError(f"{where}: missing {error}") from None
    except (TypeError, ValueError):
        raise CourseError(f"{where}: points must be a whole number") from None
    policy = read_policy(settings, [exercise.name for exercise in exercises], where)
    return Course(title, root, tuple(exercises), "hidden", points, policy)


def _exercise(name: str, data: dict[str, Any], path: Path, folder: Path) -> Exercise:
    known = set(Exercise.__dataclass_fields__) - {"name", "folder"}
    unknown = set(data) - known
    if unknown:
        key = sorted(unknown)[0]
        raise CourseError(f"{path}: unknown key `{key}`{did_you_mean(key, known)}")
    lists = {key: tuple(value) for key, value in data.items() if isinstance(value, list)}
    try:
        return Exercise(name=name, folder=folder, **{**data, **lists})
    except TypeError as error:
        missing = str(error).rpartition(": ")[2]
        raise CourseError(f"{path}: missing {missing}") from None


def read_toml(path: Path) -> dict[str, Any]:
    """A TOML file as data; raises `CourseError` that names the file and the line."""
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise CourseError(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise CourseError(f"{path}: {error}") from None
