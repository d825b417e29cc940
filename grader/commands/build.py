"""`grader build`: write everything in `exercises/` from `reference/`."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import click

from grader import cache
from grader.commands.bringing import MAX_FILE, explained, keep_copy, write_file
from grader.commands.cores import on_all_cores
from grader.commands.options import OWN_COURSE, progress_bar, short_path
from grader.commands.students_files import students_texts
from grader.commands.trusted_courses import trust_folder
from grader.course.course import NOTEBOOKS, PUBLIC_COURSE, Course, load_course
from grader.course.suite_text import has_cases
from grader.errors import RequestError
from grader.grading.diagnosis.record import (
    engine_file,
    hash_of_engine,
    hash_of_sources,
    outdated_records,
    path_of,
)
from grader.trees import NotOpened, read_file, remove_file

REMEDY = "ask somebody who may write to the course's folder to run this command"


@click.command()
@click.option(
    "--check", "only_check", is_flag=True, help="Write nothing; list what is out of date."
)
@OWN_COURSE
def build(only_check: bool, course: Course) -> int:
    """Write exercises/ from reference/: stubs, public tests, notebooks, the course's README.

    The answers of known mistakes to the cases are recorded, too, so that students' copies can name
    the mistakes. That takes some seconds for each exercise that has changed.
    """
    plan = plan_build(course)
    if only_check:
        for path in plan.stale:
            click.echo(f"stale: {short_path(path)}")
        click.echo("run `grader build`" if plan.stale else "exercises/ is current")
        return 1 if plan.stale else 0
    with progress_bar(len(plan.outdated)) as on_exercise:
        copies = plan.write(on_exercise)
    trust_folder(course.root)
    for path in plan.stale:
        click.echo(f"wrote {short_path(path)}")
    for copy in copies:
        click.echo(f"an edited exercise is kept as {short_path(copy)}")
    count = len(course.exercises)
    click.echo(f"exercises/ is current: {count} exercise{'s' * (count != 1)}")
    return 0


@dataclass(frozen=True)
class BuildPlan:
    """The files that `exercises/` should hold, and those that are missing, outdated or superfluous.

    `wanted` has the texts of generated files; `outdated`, the exercises whose answers have to be
    recorded again.
    """

    course: Course
    wanted: Mapping[Path, str]
    outdated: tuple[str, ...]
    stale: tuple[Path, ...]

    def write(self, on_exercise: Callable[[str], None]) -> list[Path]:
        """Bring `exercises/` up to date; return the copies of edited stubs.

        `on_exercise` is called with each exercise whose answers have been recorded.
        """
        before, copies = _stubs_of_last_build(self.course), list[Path]()
        recorded = {path_of(self.course, name) for name in self.outdated}
        for path in self.stale:
            root = self.course.root
            if path.parent == self.course.student_folder and path.suffix == ".py":
                stub = before.get(path.stem, "").encode()
                copies += filter(None, [keep_copy(path, root, root, unless=stub)])
            if path in recorded:  # below
                continue
            if path in self.wanted:
                write_file(path, root, self.wanted[path].encode(), REMEDY)
            else:
                with explained(path, root, REMEDY):
                    remove_file(path, root)
        self._record_anew(on_exercise)
        return copies

    def _record_anew(self, on_exercise: Callable[[str], None]) -> None:
        """Write each outdated record as soon as it is made, so that Ctrl-C loses only one."""
        course = self.course
        # Exercises with a training take longest, so they go first.
        jobs = sorted(self.outdated, key=lambda name: not course[name].training)
        with on_all_cores(len(jobs)) as recording:
            for name, packed in recording(_record, [(course.root, name) for name in jobs]):
                write_file(path_of(course, name), course.root, packed, REMEDY)
                on_exercise(name)
        if jobs:
            made_by = f"{hash_of_engine()}\n".encode()
            write_file(engine_file(course), course.root, made_by, REMEDY)


def _record(place: tuple[Path, str]) -> tuple[str, bytes]:
    """Make the record of an exercise; return the exercise's name and the bytes of the file."""
    # Here, because it imports torch, which the rest of this command does not need.
    from grader.grading.diagnosis.recording import record_exercise  # noqa: PLC0415

    root, name = place
    course = load_course(root)
    key = cache.key_of("record", hash_of_sources(course, name), hash_of_engine())
    packed = cache.load(key)
    if packed is None:
        packed = record_exercise(course, course[name]).packed()
        cache.save(key, packed)
    return name, packed


def plan_build(course: Course) -> BuildPlan:
    """Return the changes that bring `exercises/` up to date with the course."""
    wanted, outdated = _generated(course), outdated_records(course)
    folder = course.student_folder
    wrong = {path for path, text in wanted.items() if _text(path, course) != text}
    patterns = (
        "*.py",
        "*.svg",
        "tests/*.py",
        "tests/*.txt",
        f"{NOTEBOOKS}/*.ipynb",
        "records/*.bin",
        "records/*.json",
    )
    there = {path for pattern in patterns for path in folder.glob(pattern)}
    recorded = {path_of(course, name) for name in course.names if has_cases(course[name])}
    stale = wrong | {path_of(course, name) for name in outdated}
    stale |= there - wanted.keys() - recorded
    return BuildPlan(course, wanted, tuple(outdated), tuple(sorted(stale)))


def refuse_stale(course: Course) -> None:
    """Raise `RequestError` if students would get outdated files."""
    if course.suites == "hidden" and plan_build(load_course(course.root)).stale:
        raise RequestError("exercises/ is out of date", "grader build")


def _generated(course: Course) -> dict[Path, str]:
    """Return every generated file of `exercises/` with its text."""
    if course.suites != "hidden":
        raise RequestError(
            f"{course.root} has no reference/ to build from",
            "run this in the teaching team's repository",
        )
    course.refuse_unreviewed(course.names)  # its tests would run on every student's machine
    texts = students_texts(course)
    return {course.student_folder / name: text for name, text in texts.items()}


def _text(path: Path, course: Course) -> str | None:
    try:
        return read_file(path, course.root, MAX_FILE).decode("utf-8").replace("\r\n", "\n")
    except (OSError, NotOpened, UnicodeDecodeError):
        return None


def _stubs_of_last_build(course: Course) -> dict[str, str]:
    text = _text(course.student_folder / PUBLIC_COURSE, course)
    with contextlib.suppress(ValueError, LookupError, TypeError, RecursionError):
        exercises = json.loads(text or "")["exercises"]
        return {exercise["name"]: exercise["stub"] for exercise in exercises}
    return {}
