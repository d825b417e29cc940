"""Commands of students: check, hint, status, reset."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import click

from grader.cli.options import COURSE, SEED, counted, isolation_from, short


@click.command()
@click.argument("targets", nargs=-1, metavar="[NAMES|PATHS]...")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "markdown", "html"]),
    default="text",
    show_default=True,
    help="How to print the report.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the report to FILE instead of printing it.",
)
@click.option("--all", "everything", is_flag=True, help="Show more than one screen.")
@click.option("--watch", is_flag=True, help="Stay, and grade again whatever is saved.")
@click.option(
    "--manual",
    is_flag=True,
    help="With --watch: letters and Enter in place of keys, and Enter in place of saves.",
)
@SEED
@isolation_from("process")
@COURSE
def check(
    targets: tuple[str, ...],
    form: str,
    output: Path | None,
    everything: bool,
    watch: bool,
    manual: bool,
    seed: int | None,
    isolation: Any,
    course: Path | None,
) -> int:
    """Grade exercises and say what to mend first.

    \b
    grader check                      every exercise in this folder, or in exercises/
    grader check layer_norm           one exercise, by name
    grader check work/layer_norm.py   one file, or a notebook of that name
    grader check submissions/s001     a folder or a zip of exercise files
    grader check --watch              again on every save, on one screen
    """
    from grader.commands import work as checking
    from grader.errors import RequestError
    from grader.reports import FORMATS

    request = checking.understand(targets, course)
    if watch or manual:
        from grader.commands.watch import watch as watching

        if form != "text" or output is not None:
            raise RequestError("--watch is for the terminal", "leave out --format and --output")
        if any(target.endswith(".zip") for target in targets):
            raise RequestError("a zip cannot be watched", "unpack it, and watch the folder")
        return 0 if watching(request, seed, isolation, manual=manual) else 1
    graded = [Path(path).absolute() for path in request.submission.paths.values()]
    if output is not None and output.absolute() in graded:
        raise RequestError(f"{output} is what is being graded", "-o another-file")
    with counted(len(request.names)) as progress:
        report = checking.check(request, seed, progress, isolation)
    shown = report.to_json()
    if form == "text":
        from grader.reports.text import render

        _deliver(render(shown, None if everything or output else _height()), form, output)
    else:
        _deliver(FORMATS[form](shown), form, output)
    if report.has_errors:
        return 3
    return 0 if report.passed else 1


def _deliver(text: str, form: str, output: Path | None) -> None:
    """Print a report, or write it where asked; a page is never poured into a terminal."""
    if output is None and form == "html" and sys.stdout.isatty():
        output = Path("grader-report.html")
    if output is None:
        click.echo(text, nl=False)
        return
    from grader.errors import RequestError

    try:
        output.write_text(click.unstyle(text), "utf-8")
    except OSError as error:
        raise RequestError(f"cannot write {output}: {error.strerror}", "--output FILE") from None
    click.echo(f"wrote {output}", err=True)


def _height() -> int:
    """Lines of the terminal; of a small one where there is none."""
    return shutil.get_terminal_size().lines if sys.stdout.isatty() else 24


@click.command()
@click.argument("name")
@click.option("--all", "everything", is_flag=True, help="Show every hint at once.")
@COURSE
def hint(name: str, everything: bool, course: Path | None) -> int:
    """Show the next hint for an exercise.

    Each call shows one hint more, from a nudge to nearly the answer. If the last
    check knew your mistake, the hint on that one comes first.
    """
    from grader.course.course import find_course
    from grader.commands.work import hints_for, own_work
    from grader.commands.memory import Progress

    found = find_course(course or Path.cwd())
    work = own_work(found)
    hints = hints_for(found, found[name].name, work)
    if name in work.files and not everything:
        last = Progress(found.root).checked(Path(work.paths[name]), work.files[name])
        if last is not None and last.points == last.max_points:
            click.echo(f"{name} passed when it was last checked; --all shows its hints anyway.")
            return 0
    more = len(hints) if everything else 1
    shown, _ = Progress(found.root).show_hints(name, hints, more=more)
    for text in shown:
        number = f"hint {hints.index(text) + 1} of {len(hints)}"
        fits = (
            ", on your mistake" if len(hints) > len(found[name].hints) and text is hints[0] else ""
        )
        click.echo(f"{click.style(number, bold=True)}{fits}")
        click.echo(click.wrap_text(text, 79, "  ", "  "))
    if len(shown) == len(hints) and not everything:
        click.echo("That was the last one.")
    return 0


@click.command()
@COURSE
def status(course: Path | None) -> int:
    """Show how far each exercise is, as last checked."""
    from grader.course.course import find_course
    from grader.commands.work import own_work
    from grader.commands.memory import Progress
    from grader.commands.practice import survey

    found = find_course(course or Path.cwd())
    rows = survey(found, own_work(found), Progress(found.root))
    width = max(len(row.name) for row in rows)
    for row in rows:
        colour = {"passed": "green", "not started": None}.get(row.state, "yellow")
        click.echo(
            f"  {row.name:<{width}}  {row.points:>3} / {row.worth:<3} "
            f"{click.style(row.state, fg=colour)}"
        )
    click.echo(
        f"  {'total':<{width}}  {sum(row.points for row in rows):>3} / "
        f"{sum(row.worth for row in rows)}"
    )
    following = next((row for row in rows if row.state != "passed"), None)
    click.echo(f"\n  next: grader check {following.name}" if following else "\n  All done.")
    return 0


@click.command()
@click.argument("name")
@COURSE
def reset(name: str, course: Path | None) -> int:
    """Put an exercise's stub back; your file is kept as a copy."""
    from grader.course.course import find_course
    from grader.commands.work import students_folder
    from grader.commands.memory import keep_copy
    from grader.course.stubs import make_stub

    found = find_course(course or Path.cwd())
    exercise = found[name]
    path = students_folder(found) / f"{name}.py"
    stub = make_stub(exercise)
    if path.is_file() and path.read_bytes() != stub.encode():
        copy = keep_copy(found.root, path)
        click.echo(f"your file is kept as {short(copy)}")
    path.write_text(stub, "utf-8")
    click.echo(f"{short(path)} is the stub again")
    return 0


COMMANDS = (check, hint, reset, status)
