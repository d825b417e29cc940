"""The command line: what can be typed, and nothing of how it is done.

Every command imports what it needs when it runs, so that `--help` and errors come at once.
"""

from __future__ import annotations

import click

from grader import __version__
from grader.cli import classes, courses, graded, students


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
    Teachers:   batch   grade a class          export  marks for Canvas, Moodle, …
                regrade after a change         adjust  a student's points
                merge   parts of a class       doctor  is grading safe here?
    Authors:    build   write exercises/       validate  prove the course's content
    """


for module in (students, classes, graded, courses):
    for command in module.COMMANDS:
        commands.add_command(command)

__all__ = ["commands"]
