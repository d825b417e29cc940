"""Which source texts make up the program that an exercise is graded in.

An exercise that builds on earlier ones is graded on its wiring alone: the earlier parts are
replaced by stand-ins on torch's own layers, so that an error is charged where it was made.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType

from grader.course.course import Course, Exercise
from grader.sandbox.cells import NOTEBOOK
from grader.sandbox.program import Program
from grader.sandbox.wire import Source

OWN = "own parts"


def program(
    course: Course,
    exercise: Exercise,
    files: Mapping[str, str],
    paths: Mapping[str, str] = {},
    *,
    own_parts: bool = False,
) -> tuple[str, dict[str, Source]]:
    """The name and the source texts of the program that grades `exercise` with `files`.

    `paths` says where they were found, and so which of them are notebooks.
    """
    sources = {
        name: Source(f"{name}{NOTEBOOK if paths.get(name, '').endswith(NOTEBOOK) else '.py'}", text)
        for name, text in files.items()
    }
    stand_ins = {} if own_parts else _stand_ins(course, exercise)
    if not stand_ins:
        return OWN, sources
    return f"{exercise.name} on stand-ins", {**sources, **stand_ins}


class References:
    """The reference modules of a course, loaded in this process, each once."""

    def __init__(self, course: Course) -> None:
        self.course = course
        self._modules: dict[str, ModuleType] = {}

    def __getitem__(self, name: str) -> ModuleType:
        if name not in self._modules:
            files = {n: self.course[n].read("solution.py") for n in self.course.names}
            _, sources = program(self.course, self.course[name], files)
            self._modules[name] = Program(sources).load(name)
        return self._modules[name]


def _stand_ins(course: Course, exercise: Exercise) -> dict[str, Source]:
    texts = {name: course[name].stand_in for name in exercise.requires}
    return {
        name: Source(f"<stand-in for {name}>", text, own=False)
        for name, text in texts.items()
        if text is not None
    }
