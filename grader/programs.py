"""Which source texts make up the program that an exercise is graded in.

An exercise that builds on earlier ones is graded on its wiring alone: the earlier parts are
replaced by stand-ins on torch's own layers, so that an error is charged where it was made.
"""

from __future__ import annotations

from collections.abc import Mapping

from grader.catalog import Course, Exercise
from grader.sandbox.wire import Source

OWN = "own parts"


def program(
    course: Course, exercise: Exercise, files: Mapping[str, str], *, own_parts: bool = False
) -> tuple[str, dict[str, Source]]:
    """The name and the source texts of the program that grades `exercise` with `files`."""
    sources = {name: Source(f"{name}.py", text) for name, text in files.items()}
    stand_ins = {} if own_parts else _stand_ins(course, exercise)
    if not stand_ins:
        return OWN, sources
    return f"{exercise.name} on stand-ins", {**sources, **stand_ins}


def _stand_ins(course: Course, exercise: Exercise) -> dict[str, Source]:
    texts = {name: course[name].stand_in for name in exercise.requires}
    return {
        name: Source(f"<stand-in for {name}>", text, own=False)
        for name, text in texts.items()
        if text is not None
    }
