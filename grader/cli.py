"""The command line: what can be typed, and nothing of how it is done.

Every command imports what it needs when it runs, so that `--help` and errors come at once.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from grader import __version__

COURSE = click.option(
    "--course",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="The course's folder. Default: this folder or the nearest above it that holds one.",
)


SEED = click.option(
    "--seed",
    type=click.IntRange(min=0, max=2**48),
    metavar="N",
    help="Draw the random inputs of the tests from seed N. Default: fresh for each run.",
)


def isolation_from(default: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """How far the code that is graded is kept from this machine."""
    return click.option(
        "--isolation",
        type=click.Choice(["confined", "process"]),
        default=default,
        show_default=True,
        help="confined: every layer that `grader doctor` lists, or nothing is run; "
        "process: a separate process is enough, with the layers that are there.",
    )


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
    epilog="Exit codes: 0 all passed, 1 some checks failed, 2 the request is wrong, "
    "3 the grader itself failed.",
)
@click.version_option(__version__, message="attention-grader %(version)s")
def commands() -> None:
    """A course on attention and Transformers that grades itself.

    \b
    Students:   check   grade my work          hint    a nudge, then a bigger one
                status  how far I am           reset   start an exercise over
    Teachers:   batch   grade a class          doctor  is grading safe here?
                build   write exercises/       validate  prove the course's content
    """


@commands.command()
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
    from grader import check as checking
    from grader.errors import RequestError
    from grader.reports import FORMATS

    request = checking.understand(targets, course)
    if watch or manual:
        from grader.watch import watch as watching

        if form != "text" or output is not None:
            raise RequestError("--watch is for the terminal", "leave out --format and --output")
        if any(target.endswith(".zip") for target in targets):
            raise RequestError("a zip cannot be watched", "unpack it, and watch the folder")
        return 0 if watching(request, seed, isolation, manual=manual) else 1
    graded = [Path(path).absolute() for path in request.submission.paths.values()]
    if output is not None and output.absolute() in graded:
        raise RequestError(f"{output} is what is being graded", "-o another-file")
    with _counted(len(request.names)) as progress:
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


@commands.command()
@click.argument("submissions", type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    metavar="DIR",
    help="Where reports/ and grades.csv go.",
)
@SEED
@isolation_from("confined")
@COURSE
def batch(
    submissions: Path, out: Path, seed: int | None, isolation: Any, course: Path | None
) -> int:
    """Grade a folder of submissions: a folder, or a zip, for each student.

    \b
    grader batch submissions/ --out results/
    grader batch submissions/ --out results/ --seed 7    the same inputs again

    Every student gets DIR/reports/<name>.html, .md and .json; the marks are in
    DIR/grades.csv. Other people's code is run confined, or not at all.
    """
    from grader import batch as grading
    from grader.catalog import find_course
    from grader.submissions import shown

    found = find_course(course or Path.cwd())
    handed = grading.survey(submissions, out)
    for entry in handed:
        if entry.left_out:
            click.echo(f"{shown(_short(entry.path))} {entry.left_out} and was left out", err=True)
    start = time.perf_counter()
    reports = grading.batch(
        found, handed, out, seed=seed, isolation=isolation, told=lambda r: click.echo(_verdict(r))
    )
    spent = time.perf_counter() - start
    click.echo(f"\n  {len(reports)} submissions graded in {spent:.1f} seconds")
    click.echo(f"  pages that open on a double click: {_short(out / grading.REPORTS)}/")
    click.echo(f"  marks: {_short(out / grading.GRADES)}")
    if any(report.has_errors for report in reports):
        return 3
    return 0 if all(report.passed for report in reports) else 1


def _verdict(report: Any) -> str:
    """A submission in one line."""
    wrong = next((exercise for exercise in report.exercises if not exercise.passed), None)
    first = f"first to mend: {wrong.name}" if wrong else "nothing to mend"
    return f"  {report.submission}  {report.points:>3} / {report.max_points}  {first}"


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


@contextmanager
def _counted(total: int) -> Iterator[Any]:
    """A progress bar on the terminal's error stream, where there is one."""
    if not sys.stderr.isatty():
        yield lambda name: None
        return
    bar = click.progressbar(
        length=total,
        file=sys.stderr,
        item_show_func=lambda name: name,
        bar_template="%(bar)s %(info)s",
    )
    started = False

    def progress(name: str) -> None:
        nonlocal started
        bar.update(1 if started else 0, name)
        started = True

    with bar:
        yield progress
    click.echo("\x1b[1A\x1b[2K", nl=False, file=sys.stderr)


@commands.command()
@click.argument("name")
@click.option("--all", "everything", is_flag=True, help="Show every hint at once.")
@COURSE
def hint(name: str, everything: bool, course: Path | None) -> int:
    """Show the next hint for an exercise.

    Each call shows one hint more, from a nudge to nearly the answer. If the last
    check knew your mistake, the hint on that one comes first.
    """
    from grader.catalog import find_course
    from grader.check import hints_for, own_work
    from grader.progress import Progress

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


@commands.command()
@COURSE
def status(course: Path | None) -> int:
    """Show how far each exercise is, as last checked."""
    from grader.catalog import find_course
    from grader.check import own_work
    from grader.progress import Progress
    from grader.status import survey

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


@commands.command()
@click.argument("name")
@COURSE
def reset(name: str, course: Path | None) -> int:
    """Put an exercise's stub back; your file is kept as a copy."""
    from grader.catalog import find_course
    from grader.check import students_folder
    from grader.progress import keep_copy
    from grader.stubs import make_stub

    found = find_course(course or Path.cwd())
    exercise = found[name]
    path = students_folder(found) / f"{name}.py"
    stub = make_stub(exercise)
    if path.is_file() and path.read_bytes() != stub.encode():
        copy = keep_copy(found.root, path)
        click.echo(f"your file is kept as {_short(copy)}")
    path.write_text(stub, "utf-8")
    click.echo(f"{_short(path)} is the stub again")
    return 0


@commands.command()
@COURSE
def doctor(course: Path | None) -> int:
    """Say how far student code is confined on this machine, and try it.

    A worker, confined as for grading, tries to read, write, connect, start
    processes and take memory. What is not refused is named, with its remedy.
    """
    from grader import doctor as examining
    from grader.catalog import find_course
    from grader.errors import GraderError

    secret = None
    try:
        found = find_course(course or Path.cwd())
        secret = found.suite(found.names[0])
    except GraderError:
        if course is not None:
            raise
    diagnosis = examining.examine(secret)
    for line in diagnosis.machine.splitlines():
        click.echo(f"  {line}")
    click.echo()
    for finding in diagnosis.findings:
        _tick(not finding.reason, finding.layer, finding.reason, finding.remedy)
    click.echo("\n  A worker tried to")
    for trial, refused in diagnosis.tried:
        how = "refused" if refused else f"NOT refused, as {trial.layer} should"
        _tick(refused, f"{trial.deed}: {how}")
    if diagnosis.failure:
        _tick(False, "start, and could not", diagnosis.failure)
    click.echo()
    if diagnosis.confined:
        click.echo("  Student code is confined here: grader batch will run it.")
        return 0
    click.echo("  Student code is not confined here. grader batch will not run it, unless told")
    click.echo("  --isolation process: then what is marked ✗ is open to every submission.")
    return 1


def _tick(good: bool, what: str, reason: str = "", remedy: str = "") -> None:
    """A line with a mark; why not, and what to do, beneath it."""
    mark = click.style("✓", fg="green") if good else click.style("✗", fg="red")
    click.echo(f"  {mark} {what}")
    for text in (reason, remedy):
        if text:
            click.echo(click.wrap_text(text, 79, "      ", "      "))


@commands.command()
@click.option("--check", "only_check", is_flag=True, help="Write nothing; name what is stale.")
@COURSE
def build(only_check: bool, course: Path | None) -> int:
    """Write exercises/ from reference/: stubs, public tests, the course's README."""
    from grader import build as building
    from grader.catalog import find_course

    found = find_course(course or Path.cwd())
    if only_check:
        old = building.stale(found)
        for path in old:
            click.echo(f"stale: {_short(path)}")
        click.echo("exercises/ is current" if not old else "run `grader build`")
        return 1 if old else 0
    changed, copies = building.write(found)
    for path in changed:
        click.echo(f"wrote {_short(path)}")
    for copy in copies:
        click.echo(f"an edited exercise is kept as {_short(copy)}")
    click.echo(f"exercises/ is current: {len(found.exercises)} exercises")
    return 0


@commands.command()
@click.argument("names", nargs=-1)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    metavar="N",
    help="Draw the random inputs from seed N; N + 1 is tried too.",
)
@COURSE
def validate(names: tuple[str, ...], seed: int, course: Path | None) -> int:
    """Prove the course's content both ways.

    References score all points, stubs none; every fault is rejected by its
    hidden suite and can be told from the others; edits match once; hints,
    points and generated files are in order; runs repeat bit for bit.
    """
    from grader.catalog import find_course
    from grader.validate import table, validate_course

    found = find_course(course or Path.cwd())
    chosen = [found[name].name for name in names] or list(found.names)
    with _counted(len(chosen)) as progress:
        proofs = validate_course(found, chosen, seed, progress)
    click.echo(table(proofs))
    problems = [problem for proof in proofs for problem in proof.problems]
    for problem in problems:
        click.echo(click.style("✗ ", fg="red") + problem)
    return 1 if problems else 0


def _short(path: Path) -> str:
    """A path as one would type it here."""
    try:
        return str(path.absolute().relative_to(Path.cwd()))
    except ValueError:
        return str(path)
