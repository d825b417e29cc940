"""`grader doctor`: say how this machine confines student code, and try it.

A worker runs each trial as it would run a student's code: a small action that no submission needs.
If an action is not refused, the report names the layer that should have refused it.
"""

from __future__ import annotations

import contextlib
import os
import platform
import sys
import tempfile
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click

from grader import __version__
from grader.commands.options import COURSE, echo_check
from grader.course.course import find_course
from grader.errors import GraderError, InternalError, StudentFailure
from grader.sandbox.confinement.layers import LAYERS, PROCESS, Confinement
from grader.sandbox.host.zygote import Zygote

# The errors that a refusal raises; any other would be a fault of the trial itself.
REFUSALS = {"PermissionError", "OSError", "MemoryError", "RuntimeError", "ValueError"}
PROBE = """
import os, socket, tempfile, torch
from resource import RLIMIT_NOFILE, getrlimit, setrlimit

def attempt(code, secret, outside):
    exec(code)
"""


@click.command()
@COURSE
def doctor(course_folder: Path | None) -> int:
    """Say how this machine confines student code, and try it.

    A worker, confined as for grading, tries to read, write, connect, start
    processes and take memory. What is not refused is named, with its remedy.
    """
    secret, what = Path(__file__), "a file"
    try:
        course = find_course(course_folder or Path.cwd())
        secret, what = course.suite(course.names[0]), "the hidden tests"
    except GraderError:
        if course_folder is not None:
            raise
    click.echo(_machine())
    echo_check(True, PROCESS)
    reasons = {layer: layer.missing() for layer in LAYERS}
    for layer, reason in reasons.items():
        remedy = layer.remedy if reason else ""
        name = layer.name if reason else layer.name + layer.detail()
        echo_check(not reason, name, reason, remedy)
    click.echo("\n  A worker tried to")
    all_refused = _echo_trials(secret, what)
    if all_refused and not any(reasons.values()):
        click.echo("\n  Student code is confined here: grader batch will run it.")
        return 0
    click.echo("\n  Student code is not confined here. grader batch will not run it without")
    click.echo("  --isolation process; then what is marked ✗ is open to every submission.")
    return 1


def _echo_trials(secret: Path, what: str) -> bool:
    """Print each trial; return whether all were refused. `what` says what `secret` is."""
    try:
        tried = _try(secret, what)
    except GraderError as error:
        echo_check(False, "start, but could not", error.message)
        return False
    for trial, refused in tried:
        how = "refused" if refused else f"NOT refused, as {trial.layer} should"
        echo_check(refused, f"{trial.action}: {how}")
    return all(refused for _, refused in tried)


@dataclass(frozen=True)
class Trial:
    """One action: its words, the layer that should refuse it, and its code."""

    action: str
    layer: str
    code: str


def _trials(what: str) -> list[Trial]:
    temporary = "with tempfile.NamedTemporaryFile() as file: "
    return [
        Trial(f"read {what}", "Landlock", "open(secret).read(1)"),
        Trial("write a file outside its folder", "Landlock", "open(outside, 'a').write('x')"),
        Trial("list the files of this machine", "Landlock", "os.listdir('/')"),
        Trial(
            "look into another process",
            "Landlock",
            "open(f'/proc/{os.getppid()}/environ', 'rb').read(1)",
        ),
        Trial("open a socket", "seccomp", "socket.socket().close()"),
        Trial("start a process", "seccomp", "os.wait() if os.fork() else os._exit(0)"),
        Trial(
            "run a program", "seccomp", "os.waitpid(os.posix_spawn('/bin/true', ['true'], {}), 0)"
        ),
        Trial("signal another process", "seccomp", "os.kill(os.getppid(), 0)"),
        Trial(
            "give a file to another user", "no privileges", f"{temporary}os.chown(file.name, 1, 1)"
        ),
        Trial(
            "raise its own limits",
            "no privileges",
            "setrlimit(RLIMIT_NOFILE, (256, getrlimit(RLIMIT_NOFILE)[1] + 1))",
        ),
        Trial("take 8 GiB of memory", "resource limits", "torch.ones(2**33, dtype=torch.uint8)"),
        Trial(
            "write a file of 64 MiB",
            "resource limits",
            f"{temporary}file.writelines([bytes(2**20)] * 64)",
        ),
    ]


def _try(secret: Path, what: str) -> list[tuple[Trial, bool]]:
    # These import torch: the lines on the machine come first.
    from grader.sandbox import wire  # noqa: PLC0415
    from grader.sandbox.host.connection import Subject, TimeLimits, WorkerConnection  # noqa: PLC0415
    from grader.sandbox.host.proxies import RemoteCode, Student  # noqa: PLC0415
    from grader.sandbox.host.worker import Worker  # noqa: PLC0415

    sources = {"probe": wire.Source("probe.py", PROBE)}
    subject = Subject("probe", "probe", sources, TimeLimits(10, 100))
    with Zygote(Confinement("process")) as zygote, tempfile.NamedTemporaryFile() as outside:
        connection = WorkerConnection(lambda: Worker(zygote))
        student = Student(RemoteCode(connection, subject))
        with contextlib.closing(connection):
            results = []
            for trial in _trials(what):
                connection.begin(0)
                results.append((trial, _refused(student, trial, str(secret), outside.name)))
            return results


def _refused(student: Any, trial: Trial, secret: str, outside: str) -> bool:
    try:
        student.attempt(trial.code, secret, outside)
    except StudentFailure as failure:
        if failure.kind not in REFUSALS:
            raise InternalError(f"{trial.action}: {failure.kind}: {failure.message}") from None
        return True
    return False


def _machine() -> str:
    user = "root" if os.geteuid() == 0 else "an ordinary user"
    return (
        f"  attention-grader {__version__}, torch {version('torch')}\n"
        f"  Python {platform.python_version()} at {sys.prefix}\n"
        f"  {platform.system()} {platform.release()}, {platform.machine()}, as {user}\n"
    )
