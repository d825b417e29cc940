"""The source texts of the program in which an exercise is graded.

Stand-ins replace earlier exercises, so that a mistake costs points only where it was made.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import ModuleType

from grader.course.course import Course, Exercise
from grader.errors import CourseError
from grader.sandbox.cells import NOTEBOOK
from grader.sandbox.program import Program
from grader.sandbox.wire import Source


def program(
    course: Course,
    exercise: Exercise,
    files: Mapping[str, str],
    paths: Mapping[str, str] = {},
    stood_in: Collection[str] | None = None,
) -> tuple[str, dict[str, Source]]:
    """Return the name and the source texts of the program that grades `exercise`.

    `files` and `paths` are texts and paths by exercise name; a path says whether a text is a
    notebook's. Stand-ins replace the exercises `stood_in`, by default all that it requires.
    """
    sources = {
        name: Source(f"{name}{NOTEBOOK if paths.get(name, '').endswith(NOTEBOOK) else '.py'}", text)
        for name, text in files.items()
    }
    stand_ins = {
        name: Source(f"<stand-in for {name}>", text, own=False)
        for name in (exercise.requires if stood_in is None else stood_in)
        if (text := course[name].stand_in) is not None
    }
    if not stand_ins:
        return "own parts", sources
    return f"{exercise.name} on stand-ins", {**sources, **stand_ins}


def solutions(course: Course, name: str) -> dict[str, str]:
    """Return the solutions of an exercise and of those that it requires, by exercise name.

    A course's own program holds no other exercises, because they may be unreviewed.
    """
    parts = {name, *course.needed(name)}
    return {each: course[each].read("solution.py") for each in course.names if each in parts}


class References(dict[str, ModuleType]):
    """The reference modules of a course by exercise name, each loaded once in this process."""

    def __init__(self, course: Course) -> None:
        super().__init__()
        self.course = course

    def __missing__(self, name: str) -> ModuleType:
        _, sources = program(self.course, self.course[name], solutions(self.course, name))
        try:
            self[name] = Program(sources).load(name)
        except Exception as error:
            path = self.course[name].folder / "solution.py"
            says = f"{path} cannot be loaded: {type(error).__name__}: {error}"
            raise CourseError(says, f"grader validate {name}") from error
        return self[name]
