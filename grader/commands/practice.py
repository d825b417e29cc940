"""`grader hint`, `grader status` and `grader reset`: what a student needs between two checks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from grader.commands.memory import Memory
from grader.commands.options import COURSE, short_path
from grader.commands.work import hints_for, last_check, own_work, students_folder
from grader.course.course import Course, find_course
from grader.course.stubs import make_stub
from grader.files import keep_copy
from grader.submissions.submission import Submission


@click.command()
@click.argument("name")
@click.option("--all", "everything", is_flag=True, help="Show every hint at once.")
@COURSE
def hint(name: str, everything: bool, course_folder: Path | None) -> int:
    """Show the next hint for an exercise.

    Each call shows one hint more, from a nudge to nearly the answer. If the last
    check named your mistake, the hint on that one comes first.
    """
    course = find_course(course_folder or Path.cwd())
    work = own_work(course)
    hints = hints_for(course, course[name].name, work)
    if not everything:
        last = last_check(course, name, work)
        if last is not None and last.points == last.max_points:
            click.echo(f"{name} passed when it was last checked; --all shows its hints anyway.")
            return 0
    more = len(hints) if everything else 1
    shown, _ = Memory(course.root).show_hints(name, hints, more=more)
    for text in shown:
        number = f"hint {hints.index(text) + 1} of {len(hints)}"
        is_on_mistake = len(hints) > len(course[name].hints) and text is hints[0]
        suffix = ", on your mistake" if is_on_mistake else ""
        click.echo(f"{click.style(number, bold=True)}{suffix}")
        click.echo(click.wrap_text(text, 79, "  ", "  "))
    if len(shown) == len(hints) and not everything:
        click.echo("That was the last one.")
    return 0


@click.command()
@COURSE
def status(course_folder: Path | None) -> int:
    """Show how far each exercise is, as last checked."""
    course = find_course(course_folder or Path.cwd())
    rows = _status_rows(course, own_work(course))
    width = max(len(row.name) for row in rows)
    for row in rows:
        colour = {"passed": "green", "not started": None}.get(row.state, "yellow")
        score = f"{row.points:>3} / {row.max_points:<3}"
        click.echo(f"  {row.name:<{width}}  {score} {click.style(row.state, fg=colour)}")
    points, most = sum(row.points for row in rows), sum(row.max_points for row in rows)
    click.echo(f"  {'total':<{width}}  {points:>3} / {most}")
    following = next((row for row in rows if row.state != "passed"), None)
    click.echo(f"\n  next: grader check {following.name}" if following else "\n  All done.")
    return 0


@dataclass(frozen=True)
class StatusRow:
    """One exercise: its state in a word or two, and the points of its last check."""

    name: str
    state: str
    points: int
    max_points: int


def _status_rows(course: Course, work: Submission) -> list[StatusRow]:
    rows = []
    for exercise in course.exercises:
        name, points = exercise.name, 0
        last = last_check(course, name, work)
        if name in work.problems:
            state = "cannot be read"
        elif name not in work.files:
            state = "no file"
        elif work.files[name] == make_stub(exercise):
            state = "not started"
        elif last is None:
            state = "changed since it was last checked"
        else:
            points = last.points
            state = "passed" if last.points == last.max_points else "checked, not passed"
        rows.append(StatusRow(name, state, points, exercise.points))
    return rows


@click.command()
@click.argument("name")
@COURSE
def reset(name: str, course_folder: Path | None) -> int:
    """Put an exercise's stub back; your file is kept as a copy."""
    course = find_course(course_folder or Path.cwd())
    exercise = course[name]
    path = students_folder(course) / f"{name}.py"
    stub = make_stub(exercise)
    if path.is_file() and path.read_bytes() != stub.encode():
        copy = keep_copy(course.root, path)
        click.echo(f"your file is kept as {short_path(copy)}")
    path.write_text(stub, "utf-8")
    click.echo(f"{short_path(path)} is the stub again")
    return 0
