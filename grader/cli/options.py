"""What several commands share: options, and how paths and verdicts are shown."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

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


@contextmanager
def counted(total: int) -> Iterator[Any]:
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


def short(path: Path) -> str:
    """A path as one would type it here."""
    try:
        return str(path.absolute().relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def tick(good: bool, what: str, reason: str = "", remedy: str = "") -> None:
    """A line with a mark; why not, and what to do, beneath it."""
    mark = click.style("✓", fg="green") if good else click.style("✗", fg="red")
    click.echo(f"  {mark} {what}")
    for text in (reason, remedy):
        if text:
            click.echo(click.wrap_text(text, 79, "      ", "      "))
