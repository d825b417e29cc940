"""An error or a lost worker is the failure of one test, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from classroom import running, waits
from remote_code import code_at, student_at

from grader.errors import Mismatch, StudentFailure
from grader.sandbox.confinement.limits import Confinement
from grader.sandbox.host.connection import TimeLimits, WorkerConnection
from grader.sandbox.host.proxies import Student
from grader.sandbox.host.worker import Worker
from grader.sandbox.host.zygote import Zygote
from grader.testing import raises

# --- errors ---------------------------------------------------------------------------------------


def test_an_error_crosses_as_text_with_the_students_own_frames(student: Any) -> None:
    with pytest.raises(StudentFailure) as caught:
        student.fail()
    failure = caught.value
    assert (failure.kind, failure.message) == ("LookupError", "in the helper")
    assert [frame.function for frame in failure.frames] == ["fail", "helper"]
    assert {frame.file for frame in failure.frames} == {"m.py"}
    assert failure.frames[-1].source == 'def helper(): raise LookupError("in the helper")'


def test_raises_accepts_the_kind_its_subclasses_and_nothing_else(student: Any) -> None:
    with raises(student, "ValueError"):
        student.odd()
    with pytest.raises(StudentFailure), raises(student, "ValueError"):
        student.fail()
    nothing = pytest.raises(Mismatch, match="nothing was raised by keyword")
    with nothing, raises(student, "ValueError", "TypeError"):
        student.keyword(1)


IMPORTS = """
import torch
from torch import nn

class Model(nn.Module):
    def train(self, mode=True):
        torch.func.grad(lambda v: (v**2).sum())(torch.ones(3))  # imports many modules
        return super().train(mode)

    def forward(self, x):
        return x + 1
"""


@pytest.mark.slow
def test_what_is_sent_during_a_slow_import_arrives_whole(connection: WorkerConnection) -> None:
    student: Any = Student(code_at(connection, IMPORTS, limits=TimeLimits(0.8, 60)))
    model = student.Model()
    model.train()
    more_than_is_sent_at_once = torch.zeros(900_000)
    assert model(more_than_is_sent_at_once).sum() == 900_000


def test_the_failure_of_a_quiet_call_is_raised_in_the_same_test(
    connection: WorkerConnection,
) -> None:
    code = code_at(connection)
    student: Any = Student(code)
    model = student.Model(3, 2)
    model.load_state_dict({"no": torch.zeros(1)})
    model.train()
    model.eval()
    with pytest.raises(StudentFailure, match="Unexpected key"):
        connection.await_quiet_calls(code.subject)
    model.load_state_dict({"no": torch.zeros(1)})
    connection.begin(2)
    connection.await_quiet_calls(code.subject)
    assert student.keyword(1) == 0


# --- processes that end ---------------------------------------------------------------------------


def test_a_lost_worker_costs_the_rest_of_the_test_and_no_more(connection: WorkerConnection) -> None:
    code = "import os\ndef die(): os._exit(3)\ndef one(): return 1\n"
    student = student_at(connection, code)
    with pytest.raises(StudentFailure, match="exit code 3"):
        student.die()
    with pytest.raises(StudentFailure, match="exit code 3"):
        student.one()
    connection.begin(2)
    assert student.one() == 1


def test_a_signal_by_which_code_ends_itself_is_a_crash(connection: WorkerConnection) -> None:
    code = "import signal\ndef die(): signal.raise_signal(signal.SIGFPE)\ndef one(): return 1\n"
    student = student_at(connection, code)
    with pytest.raises(StudentFailure, match="SIGFPE"):
        student.die()
    connection.begin(2)
    assert student.one() == 1


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux filters system calls")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP, 40])
def test_code_cannot_end_as_if_somebody_else_had_ended_it(
    connection: WorkerConnection, number: int
) -> None:
    code = f"import signal\ndef die(): signal.raise_signal({number:d})\ndef one(): return 1\n"
    student = student_at(connection, code)
    with pytest.raises(StudentFailure) as caught:
        student.die()
    assert caught.value.kind == "PermissionError"
    assert student.one() == 1
    assert connection.lost is None


@pytest.mark.slow
def test_a_zygote_that_died_is_started_again(zygote: Zygote) -> None:
    with Zygote(Confinement()) as own:
        first = own.pid
        assert first is not None
        os.kill(first, 9)
        connection = WorkerConnection(lambda: Worker(own))
        connection.begin(1)
        assert student_at(connection).keyword(1) == 0
        assert own.pid != first
        connection.close()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc")
def test_nothing_stays_behind_when_the_grader_is_killed(tmp_path: Path) -> None:
    script = (
        "from grader.sandbox.host.worker import Worker\n"
        "from grader.sandbox.host.connection import WorkerConnection, TimeLimits, Subject\n"
        "from grader.sandbox.host.proxies import RemoteCode, Student\n"
        "from grader.sandbox.wire import Source\n"
        "from grader.sandbox.host.zygote import Zygote\n"
        "zygote = Zygote()\n"
        "worker = Worker(zygote)\n"
        "print(zygote.pid, worker.pid, flush=True)\n"
        "connection = WorkerConnection(lambda: worker)\n"
        "code = 'def hang():\\n    while True: pass'\n"
        "subject = Subject('m', 'm', {'m': Source('m.py', code)}, TimeLimits(600, 600))\n"
        "Student(RemoteCode(connection, subject)).hang()\n"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    host = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, env=environment
    )
    assert host.stdout is not None
    pids = [int(pid) for pid in host.stdout.readline().split()]
    assert all(running(pid) for pid in pids)
    host.kill()
    host.wait()
    assert waits(lambda: not any(map(running, pids)))
    assert waits(lambda: not any(tmp_path.iterdir()))
