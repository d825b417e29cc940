"""`grader hint`, `status`, `reset` and `grader` alone: a student's commands between two checks."""

from __future__ import annotations

import os
from pathlib import Path

import click

from grader.commands.bringing import keep_copy, write_file
from grader.commands.memory import LastCheck
from grader.commands.options import ANY_COURSE, LIST_VARIABLE, exercises_or_paths, short_path
from grader.commands.trusted_courses import course_here
from grader.commands.work import (
    exercise_named,
    hints_for,
    last_checks,
    memory_of,
    next_exercise,
    own_work,
    students_folder,
)
from grader.course.course import PUBLIC_COURSE, Course, Exercise
from grader.course.stubs import is_untouched, make_stub
from grader.errors import RequestError
from grader.submissions.notes import printable_name
from grader.submissions.submission import Submission

BEGIN = """Begin here:
  grader init                                 learn: a folder of exercises
  grader batch SUBMISSIONS --out results/     teach: grade a class
  grader new NAME                             write exercises of your own"""


@click.command()
@click.argument("name", required=False, shell_complete=exercises_or_paths)
@click.option("--all", "everything", is_flag=True, help="Show every hint at once.")
@ANY_COURSE
def hint(name: str | None, everything: bool, course: Course) -> int:
    """Show the next hint for an exercise; without NAME, for the next that does not pass.

    Each call shows one more hint, from a nudge to nearly the answer. If the last check named your
    mistake, the hint on that mistake comes first.
    """
    work = own_work(course)
    if name is None:
        name = next_exercise(course, work)
        if not name:
            click.echo("Every exercise passed when it was last checked.")
            return 0
        click.echo(f"{name}:")
    name = exercise_named(course, name)
    last = last_checks(course, work).get(name)
    if last is not None and last.passed and not everything:
        click.echo(f"{name} passed when it was last checked. --all shows its hints.")
        return 0
    hints = hints_for(course, name, work)
    more = len(hints) if everything else 1
    shown, fresh = memory_of(course).show_hints(name, hints, more=more)
    for text in shown:
        number = f"hint {hints.index(text) + 1} of {len(hints)}"
        is_on_mistake = hints.index(text) < len(hints) - len(course[name].hints)
        suffix = ", on your mistake" if is_on_mistake else ""
        suffix += "" if text in fresh else ", seen before"
        click.echo(f"{click.style(number, bold=True)}{suffix}")
        click.echo(click.wrap_text(text, 79, "  ", "  "))
    if len(shown) == len(hints) and not everything:
        click.echo("That was the last one.")
    return 0


@click.command()
@ANY_COURSE
def status(course: Course) -> int:
    """Show how far each exercise is, as last checked."""
    _show_status(course)
    return 0


def show_overview(context: click.Context) -> None:
    """Show how far each exercise of the course here is; without a course, show how to begin."""
    try:
        course = course_here()
    except RequestError:
        known = sorted(Path.cwd().glob(f"*/exercises/{PUBLIC_COURSE}"))
        if known:  # most users are then in the folder above the course
            names = (printable_name(path.parent.parent.name) for path in known)
            click.echo("\n".join(f"cd {name}" for name in names))
        else:
            click.echo(f"{context.get_help()}\n\n{BEGIN}")
    else:
        _show_status(course.choose(os.environ.get(LIST_VARIABLE)))


def _show_status(course: Course) -> None:
    work, points = own_work(course), 0
    checks = last_checks(course, work)
    width = max(map(len, course.names))
    for exercise in course.exercises:
        state, earned = _state(exercise, work, checks.get(exercise.name))
        points += earned
        colour = {"passed": "green", "not started": None}.get(state, "yellow")
        score = f"{earned:>3} / {exercise.points:<3}"
        click.echo(f"  {exercise.name:<{width}}  {score} {click.style(state, fg=colour)}")
    most = sum(exercise.points for exercise in course.exercises)
    click.echo(f"  {'total':<{width}}  {points:>3} / {most}")
    following = next_exercise(course, work)
    click.echo(f"\n  next: grader check {following}" if following else "\n  All done.")


def _state(exercise: Exercise, work: Submission, last: LastCheck | None) -> tuple[str, int]:
    """Return an exercise's state in a word or two, and the points of its last check."""
    name = exercise.name
    if name in work.problems:
        return "cannot be read", 0
    if name not in work.files:
        return "no file", 0
    if is_untouched(work.files[name], make_stub(exercise)):
        return "not started", 0
    if last is None:
        return "changed since it was last checked", 0
    points = min(last.points, exercise.points)
    return "passed" if last.passed else "checked, not passed", points


@click.command()
@click.argument("name", shell_complete=exercises_or_paths)
@ANY_COURSE
def reset(name: str, course: Course) -> int:
    """Put an exercise's stub back; your file is kept as a copy."""
    exercise = course[exercise_named(course, name)]
    name = exercise.name
    folder = students_folder(course)
    path, stub = folder / f"{name}.py", make_stub(exercise).encode()
    within = course.root if path.is_relative_to(course.root) else folder
    if copy := keep_copy(path, within, course.root, unless=stub):
        click.echo(f"your file is kept as {short_path(copy)}")
    write_file(path, within, stub)
    click.echo(f"{short_path(path)} is the stub again")
    return 0
