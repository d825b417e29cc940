"""`grader build`: write everything in `exercises/` from `reference/`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import click

from grader.commands.options import OWN_COURSE, progress_bar, short_path
from grader.commands.students_files import students_texts
from grader.commands.trusted_courses import trust_folder
from grader.course.course import NOTEBOOKS, PUBLIC_COURSE, Course, load_course
from grader.errors import RequestError
from grader.files import keep_copy
from grader.grading.diagnosis.record import (
    PROBES,
    hash_of_sources,
    hashes_of_records,
    load_record,
    packed,
    path_of,
)


@click.command()
@click.option("--check", "only_check", is_flag=True, help="Write nothing; name what is stale.")
@OWN_COURSE
def build(only_check: bool, course: Course) -> int:
    """Write exercises/ from reference/: stubs, public tests, notebooks, the course's README.

    What known mistakes answer to the probes is recorded, too, so that students' copies
    can name them. That takes seconds for each exercise that has changed.
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
    click.echo(f"exercises/ is current: {len(course.exercises)} exercises")
    return 0


@dataclass(frozen=True)
class BuildPlan:
    """What `exercises/` should hold, and what there is missing, out of date or has no source.

    `wanted` has the texts of generated files; `outdated`, the exercises whose recorded answers are
    to be recorded anew.
    """

    course: Course
    wanted: Mapping[Path, str]
    outdated: tuple[str, ...]
    stale: tuple[Path, ...]

    def write(self, on_exercise: Callable[[str], None]) -> list[Path]:
        """Bring `exercises/` up to date; return the copies of edited stubs.

        `on_exercise` hears of each exercise before its answers are recorded, which takes seconds.
        """
        before, copies = _stubs_of_last_build(self.course), []
        for path in self.stale:
            text = _text(path)
            is_stub = path.parent == self.course.student_folder and path.suffix == ".py"
            if is_stub and text is not None and text != before.get(path.stem):
                copies.append(keep_copy(self.course.root, path))
            if path == path_of(self.course):
                path.write_bytes(self._records(on_exercise))
            elif path in self.wanted:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(self.wanted[path], "utf-8")
            else:
                path.unlink()
        return copies

    def _records(self, on_exercise: Callable[[str], None]) -> bytes:
        """Return the file of recorded answers; those that are current are not recorded anew."""
        # Imports torch, which the other parts of this command do without.
        from grader.grading.diagnosis.recording import record_exercise  # noqa: PLC0415

        records = {}
        for name in self.course.names:
            if name in self.outdated:
                on_exercise(name)
                recorded = record_exercise(self.course, self.course[name])
            else:
                recorded = load_record(self.course, name)
            if recorded is not None:
                records[name] = recorded
        return packed(records)


def plan_build(course: Course) -> BuildPlan:
    """Return what there is to do, so that `exercises/` is as the course is today."""
    wanted, outdated = _generated(course), _outdated(course)
    folder = course.student_folder
    wrong = {path for path, text in wanted.items() if _text(path) != text}
    patterns = ("*.py", "*.svg", "tests/*.py", "tests/*.txt", f"{NOTEBOOKS}/*.ipynb")
    there = {path for pattern in patterns for path in folder.glob(pattern)}
    records = {path_of(course)} if outdated else set()
    return BuildPlan(
        course, wanted, tuple(outdated), tuple(sorted(wrong | records | there - wanted.keys()))
    )


def refuse_stale(course: Course) -> None:
    """Raise `RequestError` if students would get something else than the course is today."""
    if course.suites == "hidden" and plan_build(load_course(course.root)).stale:
        raise RequestError("exercises/ is not what the course says today", "grader build")


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


def _outdated(course: Course) -> list[str]:
    """Return the exercises whose recorded answers are missing, or not those of today's files."""
    recorded = hashes_of_records(course)
    with_probes = [name for name in course.names if (course[name].folder / PROBES).is_file()]
    gone = recorded.keys() - set(with_probes)
    found = [name for name in with_probes if recorded.get(name) != hash_of_sources(course, name)]
    return [*found, *sorted(gone)]


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
