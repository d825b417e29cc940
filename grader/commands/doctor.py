"""`grader doctor`: what this machine offers to confine student code, tried for real.

Each trial is a small deed of the kind a submission has no business with, done by a worker as it
would grade a student's file. What is not refused names the layer that should have refused it.
"""

from __future__ import annotations

import os
import platform
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grader import __version__
from grader.errors import GraderError, InternalError, StudentFailure
from grader.sandbox.confinement.layers import LAYERS, PROCESS, Confinement
from grader.sandbox.host.zygote import Zygote

# What a refusal looks like; anything else would be a fault of the trial itself.
REFUSALS = {"PermissionError", "OSError", "MemoryError", "RuntimeError", "ValueError"}

PROBE = """
import os
import signal
import tempfile

import torch


def read(path):
    with open(path) as file:
        file.read(1)


def write(path):
    with open(path, "a") as file:
        file.write("x")


def list_root():
    os.listdir("/")


def look_into_parent():
    with open(f"/proc/{os.getppid()}/environ", "rb") as file:
        file.read(1)


def open_socket():
    import socket

    socket.socket().close()


def start_process():
    if os.fork() == 0:
        os._exit(0)
    os.wait()


def run_program():
    os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)


def signal_parent():
    os.kill(os.getppid(), 0)


def give_away():
    with tempfile.NamedTemporaryFile() as file:
        os.chown(file.name, 1, 1)


def raise_limits():
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard + 1))


def take_memory():
    torch.ones(2**33, dtype=torch.uint8)


def write_much():
    with tempfile.TemporaryFile() as file:
        for _ in range(64):
            file.write(bytes(2**20))
"""


@dataclass(frozen=True)
class Finding:
    """Whether a layer is there: `reason` says why not, `remedy` what to do."""

    layer: str
    reason: str = ""
    remedy: str = ""


@dataclass(frozen=True)
class Trial:
    """One deed, in words, and the layer that has to refuse it."""

    deed: str
    layer: str
    function: str
    argument: str = ""


@dataclass(frozen=True)
class Diagnosis:
    """What this machine offers, and which deeds were not refused."""

    machine: str
    findings: tuple[Finding, ...]
    tried: tuple[tuple[Trial, bool], ...]
    failure: str = ""

    @property
    def confined(self) -> bool:
        """Whether every layer is there and every deed was refused."""
        there = not any(finding.reason for finding in self.findings)
        return there and not self.failure and all(refused for _, refused in self.tried)


def examine(secret: Path | None) -> Diagnosis:
    """Look at this machine and try each layer; `secret` is a file no student may read."""
    findings = [Finding(PROCESS)]
    for layer in LAYERS:
        reason = layer.missing()
        name = layer.name if reason else layer.name + layer.detail()
        findings.append(Finding(name, reason, layer.remedy if reason else ""))
    try:
        tried, failure = (
            _try(secret or Path(__file__), "the hidden tests" if secret else "a file"),
            "",
        )
    except GraderError as error:
        tried, failure = [], error.message
    return Diagnosis(_machine(), tuple(findings), tuple(tried), failure)


def _trials(secret: str, what: str, outside: str) -> list[Trial]:
    return [
        Trial(f"read {what}", "Landlock", "read", secret),
        Trial("write a file outside its folder", "Landlock", "write", outside),
        Trial("list the files of this machine", "Landlock", "list_root"),
        Trial("look into another process", "Landlock", "look_into_parent"),
        Trial("open a socket", "seccomp", "open_socket"),
        Trial("start a process", "seccomp", "start_process"),
        Trial("run a program", "seccomp", "run_program"),
        Trial("signal another process", "seccomp", "signal_parent"),
        Trial("give a file to another user", "no privileges", "give_away"),
        Trial("raise its own limits", "no privileges", "raise_limits"),
        Trial("take 8 GiB of memory", "resource limits", "take_memory"),
        Trial("write a file of 64 MiB", "resource limits", "write_much"),
    ]


def _try(secret: Path, what: str) -> list[tuple[Trial, bool]]:
    """Each trial, and whether it was refused; `what` says what the file `secret` is."""
    from grader.sandbox import wire
    from grader.sandbox.host.connection import Desk, Limits, Subject
    from grader.sandbox.host.worker import Worker
    from grader.sandbox.host.proxies import Student

    sources = {"probe": wire.Source("probe.py", PROBE)}
    subject = Subject("probe", "probe", sources, Limits(10, 100))
    with Zygote(Confinement("process")) as zygote, tempfile.NamedTemporaryFile() as outside:
        desk = Desk(lambda: Worker(zygote))
        try:
            results = []
            for trial in _trials(str(secret), what, outside.name):
                desk.begin(0)
                arguments = [trial.argument] if trial.argument else []
                results.append((trial, _refused(Student(desk, subject), trial, arguments)))
            return results
        finally:
            desk.close()


def _refused(student: Any, trial: Trial, arguments: list[str]) -> bool:
    try:
        getattr(student, trial.function)(*arguments)
    except StudentFailure as failure:
        if failure.kind not in REFUSALS:
            raise InternalError(f"{trial.deed}: {failure.kind}: {failure.message}") from None
        return True
    return False


def _machine() -> str:
    from importlib.metadata import version

    user = "root" if os.geteuid() == 0 else "an ordinary user"
    system = f"{platform.system()} {platform.release()}, {platform.machine()}, as {user}"
    python = f"Python {platform.python_version()} at {sys.prefix}"
    return f"attention-grader {__version__}, torch {version('torch')}\n{python}\n{system}"
