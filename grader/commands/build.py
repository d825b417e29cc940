"""`grader build`: everything in `exercises/`, made from `reference/`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from grader.course.course import PUBLIC_COURSE, Course, Exercise
from grader.errors import RequestError
from grader.commands.memory import keep_copy
from grader.course.stubs import make_stub

GENERATED = "<!-- made by `grader build` from reference/; edit there -->"


def render(course: Course) -> dict[Path, str]:
    """Every generated file of `exercises/` and its text."""
    if course.suites != "hidden":
        raise RequestError(
            f"{course.root} has no reference/ to build from",
            "run this in the teaching team's repository",
        )
    folder = course.student_folder
    files = {
        folder / "README.md": _readme(course),
        folder / PUBLIC_COURSE: _public_course(course),
    }
    for exercise in course.exercises:
        files[folder / f"{exercise.name}.py"] = make_stub(exercise)
        test = folder / "tests" / f"test_{exercise.name}.py"
        files[test] = exercise.read("test_public.py")
    return files


def stale(course: Course) -> list[Path]:
    """Generated files that are missing, differ from their source, or have none any more."""
    wanted = render(course)
    wrong = [path for path, text in wanted.items() if _text(path) != text]
    folder = course.student_folder
    present = [*folder.glob("*.py"), *(folder / "tests").glob("*.py")]
    return sorted({*wrong, *(path for path in present if path not in wanted)})


def write(course: Course) -> tuple[list[Path], list[Path]]:
    """Bring `exercises/` up to date; returns the files written, and copies of edited stubs."""
    changed = stale(course)
    wanted = render(course)
    before = _stubs_of_last_build(course)
    copies = []
    for path in changed:
        text = _text(path)
        is_stub = path.parent == course.student_folder and path.suffix == ".py"
        if is_stub and text is not None and text != before.get(path.stem):
            copies.append(keep_copy(course.root, path))
        if path in wanted:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(wanted[path], "utf-8")
        else:
            path.unlink()
    return changed, copies


def _text(path: Path) -> str | None:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return None


def _stubs_of_last_build(course: Course) -> dict[str, str]:
    text = _text(course.student_folder / PUBLIC_COURSE)
    if text is None:
        return {}
    return {exercise["name"]: exercise["stub"] for exercise in json.loads(text)["exercises"]}


def _public_course(course: Course) -> str:
    """What a students' copy needs to know of the course: no solutions, no hidden suites."""
    exercises = [
        _public(replace(exercise, stub=make_stub(exercise))) for exercise in course.exercises
    ]
    return (
        json.dumps(
            {"title": course.title, "points": course.points, "exercises": exercises}, indent=1
        )
        + "\n"
    )


def _public(exercise: Exercise) -> dict[str, object]:
    fields = exercise.__dataclass_fields__
    return {name: getattr(exercise, name) for name in fields if name != "folder"}


def _readme(course: Course) -> str:
    rows = [
        f"| {number} | [{exercise.title}]({exercise.name}.py) | {exercise.summary} "
        f"| {', '.join(f'`{name}`' for name in exercise.implements)} | {exercise.points} |"
        for number, exercise in enumerate(course.exercises, start=1)
    ]
    total = sum(exercise.points for exercise in course.exercises)
    return "\n".join(
        [
            GENERATED,
            f"# {course.title}",
            "",
            "Each file here is one exercise. Its docstring is the task; replace every",
            "`raise NotImplementedError` by your own code, then ask for a verdict:",
            "",
            "    grader check <exercise>     your points, and the first thing to mend",
            "    grader hint <exercise>      a hint, then the next one",
            "    grader status               how far you are",
            "    grader reset <exercise>     start over; your file is kept as a copy",
            "",
            "`pytest tests` runs the public tests in your editor, with breakpoints.",
            "",
            "| | exercise | | you write | points |",
            "|---|---|---|---|---|",
            *rows,
            f"| | | | | **{total}** |",
            "",
        ]
    )
