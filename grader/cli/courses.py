"""Commands of the teaching team: is grading safe here, is the course in order?"""

from __future__ import annotations

from pathlib import Path

import click

from grader.cli.options import COURSE, counted, short, tick


@click.command()
@COURSE
def doctor(course: Path | None) -> int:
    """Say how far student code is confined on this machine, and try it.

    A worker, confined as for grading, tries to read, write, connect, start
    processes and take memory. What is not refused is named, with its remedy.
    """
    from grader.commands import doctor as examining
    from grader.course.course import find_course
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
        tick(not finding.reason, finding.layer, finding.reason, finding.remedy)
    click.echo("\n  A worker tried to")
    for trial, refused in diagnosis.tried:
        how = "refused" if refused else f"NOT refused, as {trial.layer} should"
        tick(refused, f"{trial.deed}: {how}")
    if diagnosis.failure:
        tick(False, "start, and could not", diagnosis.failure)
    click.echo()
    if diagnosis.confined:
        click.echo("  Student code is confined here: grader batch will run it.")
        return 0
    click.echo("  Student code is not confined here. grader batch will not run it, unless told")
    click.echo("  --isolation process: then what is marked ✗ is open to every submission.")
    return 1


@click.command()
@click.option("--check", "only_check", is_flag=True, help="Write nothing; name what is stale.")
@COURSE
def build(only_check: bool, course: Path | None) -> int:
    """Write exercises/ from reference/: stubs, public tests, the course's README."""
    from grader.commands import build as building
    from grader.course.course import find_course

    found = find_course(course or Path.cwd())
    if only_check:
        old = building.stale(found)
        for path in old:
            click.echo(f"stale: {short(path)}")
        click.echo("exercises/ is current" if not old else "run `grader build`")
        return 1 if old else 0
    changed, copies = building.write(found)
    for path in changed:
        click.echo(f"wrote {short(path)}")
    for copy in copies:
        click.echo(f"an edited exercise is kept as {short(copy)}")
    click.echo(f"exercises/ is current: {len(found.exercises)} exercises")
    return 0


@click.command()
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
    from grader.course.course import find_course
    from grader.commands.validate import table, validate_course

    found = find_course(course or Path.cwd())
    chosen = [found[name].name for name in names] or list(found.names)
    with counted(len(chosen)) as progress:
        proofs = validate_course(found, chosen, seed, progress)
    click.echo(table(proofs))
    problems = [problem for proof in proofs for problem in proof.problems]
    for problem in problems:
        click.echo(click.style("✗ ", fg="red") + problem)
    return 1 if problems else 0


COMMANDS = (build, doctor, validate)
