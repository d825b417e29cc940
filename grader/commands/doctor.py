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
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click

from grader import __version__
from grader.commands.options import COURSE_FOLDER, course_of_folder, echo_check
from grader.errors import GraderError, InternalError, StudentFailure
from grader.sandbox.confinement.layers import LAYERS, PROCESS
from grader.sandbox.confinement.limits import Confinement
from grader.sandbox.host.zygote import Zygote

# The errors that a refusal raises; any other error is a bug in the trial itself.
REFUSALS = {"PermissionError", "OSError", "MemoryError", "RuntimeError", "ValueError"}
PROBE = """
import os, socket, torch
from tempfile import NamedTemporaryFile
from resource import RLIMIT_NOFILE, getrlimit, setrlimit

def attempt(code, secret, outside):
    exec(code)
"""
# By the layer that should refuse it: the action that a worker tries, and its code.
TRIALS = {
    "Landlock": {
        "read {}": "open(secret).read(1)",
        "write a file outside its folder": "open(outside, 'a').write('x')",
        "list the files of this machine": "os.listdir('/')",
        "look into another process": "open(f'/proc/{os.getppid()}/environ', 'rb').read(1)",
    },
    "seccomp": {
        "open a socket": "socket.socket().close()",
        "start a process": "os.wait() if os.fork() else os._exit(0)",
        "run a program": "os.waitpid(os.posix_spawn('/bin/true', ['true'], {}), 0)",
        "signal another process": "os.kill(os.getppid(), 0)",
    },
    "no privileges": {
        "give a file to another user": "with NamedTemporaryFile() as f: os.chown(f.name, 1, 1)",
        "raise its own limits": "setrlimit(RLIMIT_NOFILE, (256, getrlimit(RLIMIT_NOFILE)[1] + 1))",
    },
    "resource limits": {
        "take 8 GiB of memory": "torch.ones(2**33, dtype=torch.uint8)",
        "write a file of 64 MiB": "with NamedTemporaryFile() as f: f.write(bytes(2**26))",
    },
}


@click.command()
@COURSE_FOLDER("course_folder")
def doctor(course_folder: Path | None) -> int:
    """Say how this machine confines student code, and try it.

    A worker, confined as for grading, tries to read, write, connect, start
    processes and take memory. Actions that are not refused are listed, with a remedy.
    """
    secret, what = Path(__file__), "a file"
    try:
        course = course_of_folder(course_folder)
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
    """Print each trial; return whether all were refused. `what` describes `secret`."""
    try:
        tried = list(_try(str(secret)))
    except GraderError as error:
        echo_check(False, "start, but could not", error.message)
        return False
    for layer, action, refused in tried:
        how = "refused" if refused else f"NOT refused, though {layer} should refuse it"
        echo_check(refused, f"{action.format(what)}: {how}")
    return all(refused for *_, refused in tried)


def _try(secret: str) -> Iterator[tuple[str, str, bool]]:
    """Yield each trial's layer and action, and whether it was refused."""
    # Here, because they import torch: so the lines on the machine appear at once.
    from grader.sandbox import wire  # noqa: PLC0415
    from grader.sandbox.host.connection import Subject, TimeLimits, WorkerConnection  # noqa: PLC0415
    from grader.sandbox.host.proxies import RemoteCode, Student  # noqa: PLC0415
    from grader.sandbox.host.worker import Worker  # noqa: PLC0415

    sources = {"probe": wire.Source("probe.py", PROBE)}
    subject = Subject("probe", "probe", sources, TimeLimits(10, 100))
    with (
        Zygote(Confinement("process")) as zygote,
        tempfile.NamedTemporaryFile() as outside,
        contextlib.closing(WorkerConnection(lambda: Worker(zygote))) as connection,
    ):
        student = Student(RemoteCode(connection, subject))
        for layer, trials in TRIALS.items():
            for action, code in trials.items():
                connection.begin(0)
                yield layer, action, _is_refused(student, action, code, secret, outside.name)


def _is_refused(student: Any, action: str, code: str, *files: str) -> bool:
    try:
        student.attempt(code, *files)
    except StudentFailure as failure:
        if failure.kind not in REFUSALS:
            raise InternalError(f"{action}: {failure.kind}: {failure.message}") from None
        return True
    return False


def _machine() -> str:
    user = "root" if os.geteuid() == 0 else "an ordinary user"
    return (
        f"  attention-grader {__version__}, torch {version('torch')}\n"
        f"  Python {platform.python_version()} at {sys.prefix}\n"
        f"  {platform.system()} {platform.release()}, {platform.machine()}, as {user}\n"
    )
