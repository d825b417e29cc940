"""The entry point of `grader` and `python -m grader`."""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
import warnings
from io import TextIOWrapper

import click

from grader.commands import commands
from grader.errors import GraderError, InternalError
from grader.installing import INSTALLED
from grader.printing import behind_filter, without_orders_in_jobs
from grader.report import without_controls
from grader.stopping import stop_on_signals

REPORTED = "GRADER_DEBUG=1 grader …   shows the traceback; please report it"


def main(arguments: list[str] | None = None) -> None:
    """Run one command and exit.

    The exit code is 0 if all checks passed, 1 if some failed, 2 for a wrong request or course, 3
    if the grader itself failed, and 130 after Ctrl-C, SIGTERM or SIGHUP.
    """
    _open_standard_streams()
    stop_on_signals()
    code = run(arguments)
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):  # nobody reads the output; when it ends, Python would try again
        os._exit(code)
    if "torch" in sys.modules:  # skips Python's own clean-up, which takes a tenth of a short check
        os._exit(code)
    sys.exit(code)


def _open_standard_streams() -> None:
    """Open each closed standard stream; else the next file gets its number and its output."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115, until the process ends
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper) and not _can_encode(stream.encoding):
            stream.reconfigure(encoding="utf-8")  # a pipe or a file on Windows


def _can_encode(encoding: str) -> bool:
    """Return whether an encoding can write the marks and bars of reports."""
    try:
        "✓▸█…".encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def run(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code; report every failure in a line or two."""
    with without_orders_in_jobs():
        return _run(arguments)


def _run(arguments: list[str] | None) -> int:
    # torch warns where NumPy is missing; the grader does not use it.
    warnings.filterwarnings("ignore", message="Failed to initialize NumPy")
    # torch also warns that its count omits memory allocated earlier, which we omit on purpose.
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    try:
        color = False if "NO_COLOR" in os.environ else None
        code = commands.main(arguments, prog_name="grader", standalone_mode=False, color=color)
        return int(code or 0)
    except GraderError as error:
        remedy = _install_remedy(error) or error.remedy
        _print_error(error.message, remedy)
        _show_in_job(error.message, remedy)
        return error.exit_code
    except click.UsageError as error:
        remedy = f"{error.ctx.command_path} --help" if error.ctx else "grader --help"
        _print_error(error.format_message(), remedy)
        _show_in_job(error.format_message(), remedy)
        return 2
    except (click.Abort, KeyboardInterrupt):
        _print_error("stopped", "")
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if os.environ.get("GRADER_DEBUG"):
            click.echo(without_controls(traceback.format_exc()), err=True)
        message = f"the grader itself failed: {type(error).__name__}: {error}"
        remedy = _install_remedy(error) or REPORTED
        _print_error(message, remedy)
        _show_in_job(message, remedy)
        return 3


def _install_remedy(error: Exception) -> str:
    """Return how to install what the grader needs, if an error says that a package is missing."""
    # Of the grader's own errors, only these: a course or a submission may name any module.
    is_ours = not isinstance(error, GraderError) or isinstance(error, InternalError)
    missing = is_ours and "No module named" in str(error)
    return INSTALLED if missing else ""


def _print_error(message: str, remedy: str) -> None:
    """Print a message; it may hold names of a stranger's files, which must not begin a line."""
    message, remedy = (without_controls(text).replace("\n", "\n  ") for text in (message, remedy))
    with contextlib.suppress(OSError, ValueError):  # the exit code reports the failure as well
        click.echo(click.style("grader: ", fg="red", bold=True) + message, err=True)
        if remedy:
            click.echo(f"  try: {remedy}", err=True)


def _show_in_job(message: str, remedy: str) -> None:
    """Show on the page of a job of GitHub why nothing was graded: few open its output."""
    if not os.environ.get("GITHUB_ACTIONS"):
        return
    from grader.reports.pages import refusal  # noqa: PLC0415, slow
    from grader.reports.platforms.github import to_error  # noqa: PLC0415

    message, remedy = without_controls(message), without_controls(remedy)
    with contextlib.suppress(OSError, ValueError):
        click.echo(to_error(message, remedy), file=behind_filter(sys.stdout), nl=False)
        if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
            with open(summary, "a", encoding="utf-8") as file:
                file.write(refusal(message, remedy))


if __name__ == "__main__":
    main()
