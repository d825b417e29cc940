"""`grader validate`: prove that the course's content is right.

The reference earns all points and the stub none; the tests reject each mistake, and the diagnosis
names it and no other. A problem is a sentence that names the file to fix.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from grader.commands.branches import load_reasons
from grader.commands.build import plan_build
from grader.commands.confined_proof import confined_proof
from grader.commands.cores import on_all_cores
from grader.commands.kept_proofs import load_proofs, save_proof
from grader.commands.options import OWN_COURSE, exercise_names, progress_bar
from grader.commands.proof import EVERYTHING, Proof, Scope
from grader.commands.proving import TO_DO, prove, wrong_tests
from grader.commands.unwritten import folded_to_do, left_to_do
from grader.course.course import (
    SETTINGS,
    Course,
    load_course,
    load_public,
)
from grader.course.known_mistakes import load_mistakes
from grader.course.stubs import make_stub
from grader.course.zones import next_change, offset
from grader.errors import CourseError, RequestError, did_you_mean
from grader.grading.programs import solutions
from grader.grading.session import with_grader
from grader.sandbox.host.zygote import Zygote
from grader.sandbox.syntax import top_level_names
from grader.submissions.notes import MAX_NAMED, shortened
from grader.submissions.submission import Submission

if TYPE_CHECKING:
    from grader.grading.grader import Grader, OnProgress

FAR = 0.2  # the part by which points may differ from those for the minutes, without a remark


@click.command()
@click.argument("names", nargs=-1, shell_complete=exercise_names)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    metavar="N",
    help="Draw the random inputs from seed N; N + 1 is tried too.",
)
@click.option(
    "--prices", is_flag=True, help="Print what each mistake costs in its dearest form, too."
)
@click.option(
    "--branches", is_flag=True, help="Print how many cases ask for each promise in each branch."
)
@click.option(
    "--mistake",
    "mistakes",
    multiple=True,
    metavar="NAME",
    help="Prove only this mistake of one exercise, in all its forms; may be repeated.",
)
@click.option("--watch", is_flag=True, help="Keep running, and prove again on every save.")
@click.option(
    "--again", is_flag=True, help="Repeat proofs that succeeded with the same files, too."
)
@OWN_COURSE
def validate(
    names: tuple[str, ...],
    seed: int,
    prices: bool,
    branches: bool,
    mistakes: tuple[str, ...],
    watch: bool,
    again: bool,
    course: Course,
) -> int:
    """Prove that the course's content is right.

    References score all points, stubs none; every mistake in every form is rejected
    by its hidden suite and can be distinguished from the others; edits match once;
    cases ask the same promises in all branches of an option;
    hints, points, prices and generated files are in order; runs repeat bit for bit.

    A proof without a problem is not repeated on this machine as long as the files of the exercise,
    the modules of the grader that the proof runs, and the versions of torch, pytest and Python are
    the same.

    Exercises from `grader import` run confined until `grader trust` has shown them to you.

    --watch proves the exercises one by one, but not the course as a whole.
    """
    chosen = [course[name].name for name in names] or list(course.names)
    if mistakes:
        _require_mistakes(course, names, mistakes)
    if watch and (prices or branches or mistakes or not sys.stdin.isatty()):
        raise RequestError("--watch is for the terminal, and shows no tables", "grader validate")
    if watch:
        return 0 if _watch(course, chosen, seed) else 1
    with progress_bar(len(chosen)) as on_exercise:
        scope = Scope(mistakes, prices)
        proofs = validate_course(course, chosen, seed, on_exercise, again=again, scope=scope)
    if prices:
        click.echo("\n".join(price_table(proofs)) + "\n")
    if branches:
        click.echo("\n".join(branch_tables(course, chosen, seed)))
    if reasons := sum(len(load_reasons(course[name])) for name in chosen):
        click.echo(f"  not asked, for a reason: {reasons} pairs of a branch and a promise\n")
    for overcharged in (text for proof in proofs for text in proof.overcharged.values()):
        click.echo(click.style("! ", fg="yellow") + overcharged)
    for remark in uneven_rates(course, chosen):
        click.echo(click.style("! ", fg="yellow") + remark)
    click.echo(table(proofs))
    problems = [problem for proof in proofs for problem in proof.problems]
    for proof in proofs:
        for problem in folded_to_do(proof.problems):
            click.echo(click.style("✗ ", fg="red") + problem)
    return 1 if problems else 0


def validate_course(
    course: Course,
    names: Sequence[str],
    seed: int,
    on_exercise: OnProgress = lambda name, note="": None,
    *,
    again: bool = False,
    scope: Scope = EVERYTHING,
) -> list[Proof]:
    """Prove the exercises `names`, and that their lists add up; a whole course must also be built.

    Proofs of everything that succeeded with the same files are repeated only with `again`.
    """
    _require_reference(course)
    proofs = {} if again or scope != EVERYTHING else load_proofs(course, names, seed)
    unreviewed = course.unreviewed(names)

    def keep(proof: Proof) -> None:
        proofs[proof.exercise.name] = proof
        if not scope.mistakes:
            save_proof(course, proof, seed)  # at once, so that Ctrl-C loses no proof

    if unreviewed:
        with Zygote() as zygote:
            for name in unreviewed:
                on_exercise(name)
                proofs[name] = confined_proof(course, name, zygote, seed)
    left = [name for name in names if name not in proofs]
    if len(left) == 1:  # and report its progress
        prove(course, left, seed, on_exercise, keep, scope=scope)
    elif left:
        left.sort(key=lambda name: course[name].training is None)  # trainings take longest
        with on_all_cores(len(left)) as mapped:
            for proof in mapped(_proven, [(course.root, name, seed, scope) for name in left]):
                on_exercise(proof.exercise.name)
                keep(proof)
    found = [proofs[name] for name in names]
    for proof in found:
        proof.problems[:0] = left_to_do(proof.exercise)
    if set(names) == set(course.names) and not unreviewed:
        found[-1].problems += whole_course(course) or public_suites(course, seed)
    elif not scope.mistakes:
        found[-1].problems += course.uneven_lists(names)
    return found


def _require_mistakes(course: Course, names: Sequence[str], mistakes: Sequence[str]) -> None:
    """Raise `RequestError` unless `names` is one exercise, which has these mistakes."""
    if len(names) != 1:
        raise RequestError("--mistake needs one exercise", "grader validate NAME --mistake MISTAKE")
    known = [mistake.name for mistake in load_mistakes(course[names[0]])]
    for mistake in mistakes:
        if mistake not in known:
            near = (
                did_you_mean(mistake, known) or f"; it has {', '.join(shortened(known, MAX_NAMED))}"
            )
            raise RequestError(f"{names[0]} has no mistake `{mistake}`{near}")


def _proven(job: tuple[Path, str, int, Scope]) -> Proof:
    root, name, seed, scope = job
    (proof,) = prove(load_course(root), [name], seed, scope=scope)
    return proof


def _require_reference(course: Course) -> None:
    if course.suites != "hidden":
        raise CourseError(f"{course.root} has no reference/ to validate")


def _watch(course: Course, names: Sequence[str], seed: int) -> bool:
    """Prove exercises again on every save until the author quits; return whether nothing is left.

    The suites are collected anew each time, because they may have changed.
    """
    # Here, because it is slow to import, and only --watch needs it.
    from grader.commands.to_do import ToDoList, watch_to_do  # noqa: PLC0415

    _require_reference(course)

    def find_problems(name: str, on_wait: Callable[[], None]) -> list[str]:
        now = load_course(course.root)
        left = left_to_do(now[name])
        if not now.unreviewed([name]):
            return left + prove(now, [name], seed, on_wait=on_wait)[0].problems
        with Zygote() as zygote:
            zygote.on_wait = on_wait
            return left + confined_proof(now, name, zygote, seed).problems

    return watch_to_do(ToDoList(course, tuple(names), find_problems))


def public_suites(course: Course, seed: int) -> list[str]:
    """Return the problems of the suites of a students' copy, which must be built."""
    public = load_public(course.root)

    def prove(grader: Grader) -> list[str]:
        problems = []
        for exercise in public.exercises:
            total, points = grader.suite.points_of(exercise.name), exercise.points
            if total != points:
                problems.append(
                    f"{exercise.name}/test_public.py: its tests are worth {total} points, "
                    f"exercise.toml says {points}"
                )
            submission = Submission("validate", solutions(course, exercise.name))
            report = grader.grade(submission, [exercise.name], seed).report
            problems += [
                f"{exercise.name}/solution.py: fails {test.name} of test_public.py: {test.message}"
                for test in wrong_tests(report)
            ]
        return [f"reference/{problem}" for problem in problems]

    return with_grader(public, public.names, None, prove)


def whole_course(course: Course) -> list[str]:
    """Return the problems of the course as a whole."""
    problems = [*stale_files(course)]
    lines = (course.root / SETTINGS).read_text("utf-8").splitlines()
    left = (f"{SETTINGS}:{n}: {line}" for n, line in enumerate(lines, start=1) if TO_DO in line)
    unknown = (
        f"reference/{exercise.name}/exercise.toml: builds_on: there is no exercise `{name}`"
        for exercise in course.exercises
        for name in exercise.builds_on
        if name not in course.names  # the path through the course leaves it out
    )
    uneven = course.uneven_lists(course.names)
    return [*problems, *left, *unknown, *defined_twice(course), *uneven, *wrong_clock(course)]


def stale_files(course: Course) -> Iterator[str]:
    """Yield a problem if generated files are not current."""
    if stale := [str(path.relative_to(course.root)) for path in plan_build(course).stale]:
        *some, last = shortened(stale, MAX_NAMED)
        yield f"{', '.join([*some, last])}: not what `grader build` would write"


def uneven_rates(course: Course, names: Collection[str]) -> list[str]:
    """Return a remark for each exercise of `names` whose points are far from a list's rate.

    That needs the minutes of all exercises of the list; a course without lists is one itself.
    """
    remarks: dict[str, str] = {}
    for one in [course.choose(name) for name in course.lists] or [course]:
        total = sum(exercise.points for exercise in one.exercises)
        minutes = [exercise.minutes for exercise in one.exercises if exercise.minutes]
        if not minutes or len(minutes) < len(one.exercises):
            continue
        rate, where = total / sum(minutes), f"lists.{one.chosen}" if one.chosen else "the course"
        for exercise, spent in zip(one.exercises, minutes):
            fair = rate * spent
            if exercise.name in names and abs(exercise.points - fair) > FAR * fair:
                says = f"{exercise.points} points for {spent} minutes; at the rate of {where}"
                remarks.setdefault(exercise.name, f"{exercise.name}: {says}, it is {fair:.0f}")
    return [*remarks.values()]


def wrong_clock(course: Course) -> Iterator[str]:
    """Yield a problem if the due date has a fixed offset and the clocks change soon after it."""
    due = course.policy.due
    if due is not None and (change := next_change(due)):
        name, day = change
        yield (
            f"{SETTINGS}: due has the fixed offset {offset(due)}, but clocks change by "
            f"{day:%Y-%m-%d}, as in {name}: write such as "
            f'zone = "{name}" and due = {due:%Y-%m-%dT%H:%M:%S}'
        )


def defined_twice(course: Course) -> Iterator[str]:
    """Yield a problem for each name that two exercises define: a notebook keeps only the last."""
    owner: dict[str, str] = {}
    for exercise in course.exercises:
        for name in sorted(top_level_names(make_stub(exercise))):
            if (first := owner.setdefault(name, exercise.name)) != exercise.name:
                says = f"defines `{name}`, as {first} does; a notebook with both has only one"
                yield f"reference/{exercise.name}/solution.py: {says}"


def price_table(proofs: Sequence[Proof]) -> Iterator[str]:
    """Yield the lines of a table with the cost of each mistake."""
    width = max(len(name) for proof in proofs for name in ("mistake", *proof.prices))
    yield f"  {'mistake':<{width}}  checks  price  points lost"
    for proof in proofs:
        yield f"  {proof.exercise.name}, {proof.exercise.points} points"
        for each in proof.prices.values():
            yield f"  {each.fault:<{width}}  {each.checks:>6}  {each.price:>5}  {each.lost:>11}"


def branch_tables(course: Course, names: Sequence[str], seed: int) -> Iterator[str]:
    """Yield the lines of the tables of branches and promises, for all code that may run here."""
    # Here, because it imports torch, and only --branches needs it.
    from grader.commands.watched_calls import watch_calls  # noqa: PLC0415

    for name in sorted({*names} - {*course.unreviewed(names)}, key=names.index):
        yield f"  {name}"
        lines = [*watch_calls(course, course[name], seed).lines(load_reasons(course[name]))]
        yield from lines or ["  no options, so no branches", ""]


def table(proofs: Sequence[Proof]) -> str:
    """Return the results as a table."""
    width = max(len("exercise"), *(len(proof.exercise.name) for proof in proofs))
    counts = [
        (p.exercise.points, p.tests, p.faults, p.caught, len(p.needed), len(p.problems))
        for p in proofs
    ]
    names = [proof.exercise.name for proof in proofs]
    rows = [*zip(names, counts), ("total", tuple(map(sum, zip(*counts))))]
    lines = [f"  {'exercise':<{width}}  points  tests  mistakes  rejected  needed cases  problems"]
    for name, (points, tests, faults, caught, needed, problems) in rows:
        line = f"  {name:<{width}}  {points:>6}  {tests:>5}  {faults:>8}  {caught:>8}"
        lines.append(f"{line}  {needed:>12}  {problems:>8}")
    return "\n".join(lines)
