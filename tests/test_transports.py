"""Calls of student code work on any transport, within their time, whatever it answers."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from remote_code import code_at, doubles, student_at

from grader.errors import StudentFailure
from grader.sandbox import wire
from grader.sandbox.host import connection as connections
from grader.sandbox.host.connection import TimeLimits, WorkerConnection
from grader.sandbox.host.proxies import Student
from grader.sandbox.worker.server import Server
from grader.testing import sharing


class InProcess:
    """A transport to a server in this process."""

    layers = ("none",)

    def __init__(self, tamper: Callable[[wire.Answer], wire.Answer] = lambda a: a) -> None:
        self._server, self._tamper = Server(), tamper

    def post(self, request: wire.Quiet) -> None:
        self._server.answer(request)

    def request(self, request: Any, seconds: float, watcher: Any = None) -> wire.Answer:
        answer = self._server.answer(wire.decode_request(wire.encode(request)))
        assert answer is not None
        return self._tamper(wire.decode_answer(wire.encode(answer)))

    def discard(self) -> None:
        pass

    def waited(self) -> float:
        return 0.0

    def close(self) -> None:
        pass


class Late(InProcess):
    """A transport whose calls take all the time they are given, by a clock of its own."""

    def __init__(self, clock: SimpleNamespace) -> None:
        super().__init__()
        self._clock = clock

    def request(self, request: Any, seconds: float, watcher: Any = None) -> wire.Answer:
        if not isinstance(request, wire.Call):
            return super().request(request, seconds)
        self._clock.now += seconds
        raise StudentFailure("Timeout", f"late after {seconds:g} seconds")


def test_proxies_work_on_any_transport() -> None:
    connection = WorkerConnection(InProcess)
    connection.begin(1)
    x = doubles(2, 3).requires_grad_()
    student_at(connection).softmax(x)[0, 0].backward()
    assert x.grad is not None


# --- time limits ----------------------------------------------------------------------------------


def test_the_time_of_an_exercise_runs_out(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(now=0.0, monotonic=lambda: clock.now, process_time=lambda: 0.0)
    monkeypatch.setattr(connections, "time", clock)
    connection = WorkerConnection(lambda: Late(clock))
    student: Any = Student(code_at(connection, limits=TimeLimits(20, 30)))
    said = []
    for function in (student.grad_mode, student.environment, student.keyword):
        connection.begin(1)
        with pytest.raises(StudentFailure) as caught:
            function()
        said.append(caught.value.message)
    used_up = "the 30 seconds of this exercise are used up"
    assert said == ["late after 20 seconds", "late after 10 seconds", used_up]


def test_calls_that_were_late_once_cost_one_limit_more_at_most(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = SimpleNamespace(now=0.0, monotonic=lambda: clock.now, process_time=lambda: 0.0)
    monkeypatch.setattr(connections, "time", clock)
    connection = WorkerConnection(lambda: Late(clock))
    student: Any = Student(code_at(connection, limits=TimeLimits(5, 1000)))
    for _ in range(50):
        connection.begin(1)
        with pytest.raises(StudentFailure, match=r"late|did not finish|nor within"):
            student.grad_mode()
    assert 5 < clock.now < 10
    connection.try_again("m")
    connection.begin(1)
    with pytest.raises(StudentFailure, match="late after 5 seconds"):
        student.grad_mode()


# --- forged answers -------------------------------------------------------------------------------


def replaced(**changes: Any) -> Callable[[wire.Answer], wire.Answer]:
    def tamper(answer: wire.Answer) -> wire.Answer:
        if isinstance(answer, wire.Reply) and not isinstance(answer.value, wire.Handle):
            return msgspec.structs.replace(answer, **changes)
        return answer

    return tamper


FORGERIES = {
    "a broken tensor": {"value": wire.WireTensor("float64", [2], b"\0")},
    "a strided tensor": {"value": wire.WireTensor("uint8", [1], b"\0", [1])},
    "a key that cannot be hashed": {"value": wire.WireDict([(wire.WireList([]), 1)])},
    "a change of an argument that was not there": {
        "changed": [wire.Changed(9, wire.WireTensor("uint8", [1], b"\0"))]
    },
    "a list that was not there": {"rewritten": [9]},
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forged_answer_is_the_students_failure(forgery: str) -> None:
    connection = WorkerConnection(lambda: InProcess(replaced(**FORGERIES[forgery])))
    connection.begin(1)
    student = student_at(connection)
    with pytest.raises(StudentFailure, match="your code"), sharing(student):
        student.softmax(doubles(2, 3))
