"""`grader hint`, `grader status` and `grader reset`: what a student needs between two checks."""

from __future__ import annotations

import click

from grader.commands.memory import Memory
from grader.commands.options import COURSE, short_path
from grader.commands.work import (
    exercise_named,
    hints_for,
    last_check,
    next_exercise,
    own_work,
    students_folder,
)
from grader.course.course import Course, Exercise
from grader.course.stubs import is_untouched, make_stub
from grader.files import keep_copy
from grader.submissions.submission import Submission


@click.command()
@click.argument("name", required=False)
@click.option("--all", "everything", is_flag=True, help="Show every hint at once.")
@COURSE
def hint(name: str | None, everything: bool, course: Course) -> int:
    """Show the next hint for an exercise; without NAME, for the next that does not pass.

    Each call shows one hint more, from a nudge to nearly the answer. If the last
    check named your mistake, the hint on that one comes first.
    """
    work = own_work(course)
    if name is None:
        name = next_exercise(course, work)
        if not name:
            click.echo("Every exercise passed when it was last checked.")
            return 0
        click.echo(f"{name}:")
    name = exercise_named(course, name)
    hints = hints_for(course, name, work)
    if not everything:
        last = last_check(course, name, work)
        if last is not None and last.passed:
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
def status(course: Course) -> int:
    """Show how far each exercise is, as last checked."""
    work, points = own_work(course), 0
    width = max(map(len, course.names))
    for exercise in course.exercises:
        state, earned = _state(course, exercise, work)
        points += earned
        colour = {"passed": "green", "not started": None}.get(state, "yellow")
        score = f"{earned:>3} / {exercise.points:<3}"
        click.echo(f"  {exercise.name:<{width}}  {score} {click.style(state, fg=colour)}")
    most = sum(exercise.points for exercise in course.exercises)
    click.echo(f"  {'total':<{width}}  {points:>3} / {most}")
    following = next_exercise(course, work)
    click.echo(f"\n  next: grader check {following}" if following else "\n  All done.")
    return 0


def _state(course: Course, exercise: Exercise, work: Submission) -> tuple[str, int]:
    """Return an exercise's state in a word or two, and the points of its last check."""
    name, last = exercise.name, last_check(course, exercise.name, work)
    if name in work.problems:
        return "cannot be read", 0
    if name not in work.files:
        return "no file", 0
    if is_untouched(work.files[name], make_stub(exercise)):
        return "not started", 0
    if last is None:
        return "changed since it was last checked", 0
    return "passed" if last.passed else "checked, not passed", last.points


@click.command()
@click.argument("name")
@COURSE
def reset(name: str, course: Course) -> int:
    """Put an exercise's stub back; your file is kept as a copy."""
    exercise = course[exercise_named(course, name)]
    name = exercise.name
    path = students_folder(course) / f"{name}.py"
    stub = make_stub(exercise)
    if path.is_file() and path.read_bytes() != stub.encode():
        copy = keep_copy(course.root, path)
        click.echo(f"your file is kept as {short_path(copy)}")
    path.write_text(stub, "utf-8")
    click.echo(f"{short_path(path)} is the stub again")
    return 0
