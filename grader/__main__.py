"""The way in: `grader` and `python -m grader`."""

from __future__ import annotations

import os
import sys
import warnings

import click

from grader.cli import commands
from grader.errors import GraderError


def main(arguments: list[str] | None = None) -> None:
    """Run one command; exit 0 all passed, 1 checks failed, 2 wrong request, 3 the grader failed."""
    sys.exit(run(arguments))


def run(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code; every failure is said in a line or two."""
    warnings.filterwarnings("ignore", message="Failed to initialize NumPy")  # nobody uses it here
    try:
        color = False if "NO_COLOR" in os.environ else None
        code = commands.main(arguments, prog_name="grader", standalone_mode=False, color=color)
        return int(code or 0)
    except GraderError as error:
        _say(error.message, error.remedy)
        return error.exit_code
    except click.UsageError as error:
        remedy = f"{error.ctx.command_path} --help" if error.ctx else "grader --help"
        _say(error.format_message(), remedy)
        return 2
    except (click.Abort, KeyboardInterrupt):
        _say("stopped", "")
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if os.environ.get("GRADER_DEBUG"):
            raise
        _say(
            f"the grader itself failed: {type(error).__name__}: {error}",
            "GRADER_DEBUG=1 grader …   shows where; please report it",
        )
        return 3


def _say(message: str, remedy: str) -> None:
    click.echo(click.style("grader: ", fg="red", bold=True) + message, err=True)
    if remedy:
        click.echo(f"  try: {remedy}", err=True)


if __name__ == "__main__":
    main()
