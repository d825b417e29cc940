"""Hostile bytes from a worker end in an error of the trusted side's own."""

from __future__ import annotations

import contextlib
import gc
import itertools
import math
import resource
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
import torch
from fuzzing import mutated
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from grader import testing
from grader.errors import CheckFailure, Mismatch, StudentFailure, WorkerLost
from grader.processes.channel import HEADER
from grader.sandbox import wire
from grader.sandbox.control import Ended
from grader.sandbox.host.connection import Subject, WorkerConnection
from grader.sandbox.host.proxies import Remote, RemoteCode, Student, code_of
from grader.sandbox.host.worker import Worker
from grader.sandbox.wire import Reply
from grader.sandbox.worker.quota import HUNG_UP

pytestmark = pytest.mark.in_turn

MIB = 1 << 20
WILD = (0, 1, -1, 255, 2**31, 2**39, 2**40 - 1, 2**40, 2**63 - 1, 2**64 - 1, -(2**63))
NAMES = ("", "w", "torch.add", "\0", "\x1b[2J", "é" * 300)
encode = msgspec.msgpack.Encoder().encode


# --- answers, as the plain data they are encoded from -------------------------------------------


def a_tensor(rng: Random) -> dict[str, Any]:
    wild = rng.random() < 0.3
    shape = [rng.choice(WILD) if wild else rng.randrange(4) for _ in range(rng.randrange(4))]
    dtype = rng.choice([*wire.DTYPES, "object"] if wild else ["float32", "int64", "bool"])
    size = math.prod(shape) * getattr(wire.DTYPES.get(dtype), "itemsize", 1)
    data = rng.choice((b"\0", b"\xff")) * (size if 0 <= size < 999 else 8)
    tensor = {"type": "t", "dtype": dtype, "shape": shape, "data": data}
    if wild and rng.random() < 0.5:
        tensor["stride"] = rng.choice(([rng.choice(WILD) for _ in shape], [0] * len(shape), [1.5]))
    return tensor | {"requires_grad": rng.random() < 0.5}


def a_value(rng: Random, depth: int = 0) -> Any:
    match rng.randrange(4 if depth > 3 else 7):
        case 0:
            raw = {"type": "b", "data": rng.choice((b"", b"\xff", "a"))}
            return rng.choice((*WILD, *NAMES, None, True, math.nan, -math.inf, b"", {}, [], raw))
        case 1 | 2:
            return a_tensor(rng)
        case 3:
            name, shapes = rng.choice((*NAMES, 3)), {rng.choice(NAMES): [rng.choice(WILD)]}
            return {"type": "h", "id": rng.choice(WILD), "type_name": name, "parameters": shapes}
        case 4 | 5:
            items = [a_value(rng, depth + 1) for _ in range(rng.randrange(4))]
            return {"type": rng.choice("llluuu?"), "items": items}
        case _:
            keys = [rng.choice((0, "k", math.nan, a_value(rng, 4))) for _ in range(3)]
            return {"type": "d", "pairs": [[key, a_value(rng, depth + 1)] for key in keys]}


def an_answer(rng: Random) -> dict[str, Any]:
    name, number = rng.choice(NAMES), rng.choice(WILD)
    common = {"id": number, "operations": {name: number}, "printed": name}
    if rng.random() < 0.1:
        frame = {"file": name, "line": number, "source": name, "column": number}
        texts = {"kind": name, "mro": [name], "message": name}
        return common | texts | {"type": "failure", "frames": [frame]}
    maybe = [rng.choice((None, a_tensor(rng))) for _ in range(rng.randrange(4))]
    found = {"name": name, "is_parameter": rng.random() < 0.7, "tensor": a_tensor(rng)}
    return common | {
        "type": "reply",
        "value": a_tensor(rng) if rng.random() < 0.3 else a_value(rng),
        "changed": [{"place": number % 3, "tensor": tensor} for tensor in maybe if tensor],
        "entries": [found | {"grad": tensor} for tensor in maybe],
        "grads": maybe,
    }


# --- frames -------------------------------------------------------------------------------------


def hostile_frames(count: int) -> Iterator[bytes]:
    rng, other = Random(20), b"\xc0"
    deep = [b"\x82\xa4type\xa1" + kind + b"\xa5items\x91" for kind in (b"l", b"u")]
    deep += [b"\x82\xa4type\xa1d\xa5pairs\x91\x92\xc0", b"\x91"]
    for number in range(count):
        body = encode(an_answer(rng))
        if number % 500 == 0:
            nested = rng.choice(deep) * rng.choice((90, 300, 480, 1000, 20_000))
            body = encode({"type": "reply", "id": 1, "value": 0})[:-1] + nested + b"\xc0"
        elif number % 500 == 1:
            body = encode({"type": "reply", "id": 1, "value": "x" * MIB})
        yield mutated(rng, body, other) if rng.random() < 0.4 else body
        other = body


def read(body: bytes) -> bool:
    """Decode as the host does; return whether it is an answer."""
    with contextlib.suppress(wire.Malformed):
        wire.body_length(body[:4].ljust(4, b"\0"))
    with contextlib.suppress(wire.Malformed):
        answer = wire.decode_answer(body)
        if isinstance(answer, Reply):
            wire.unpack(answer.value, wire.unpack_tensor, lambda handle: handle)
        return True
    return False


@pytest.fixture(scope="module")
def campaign() -> SimpleNamespace:
    """Send twenty thousand hostile frames; return what they did."""
    did = SimpleNamespace(escaped={}, answers=0, pages=[])
    began = time.process_time()
    for number, body in enumerate(hostile_frames(20_000), start=1):
        try:
            did.answers += read(body)
        except BaseException as error:
            did.escaped.setdefault(f"{type(error).__name__}: {error}"[:50], body)
        if number in (5_000, 20_000):
            gc.collect()
            did.pages.append(int(Path("/proc/self/statm").read_text().split()[1]))
    did.seconds = time.process_time() - began
    return did


@pytest.mark.slow
def test_hostile_frames_raise_nothing_but_malformed(campaign: SimpleNamespace) -> None:
    assert campaign.answers > 4_000  # so the frames are not mere noise
    assert not campaign.escaped


@pytest.mark.slow
def test_hostile_frames_take_neither_memory_nor_time(campaign: SimpleNamespace) -> None:
    early, late = campaign.pages
    assert (late - early) * resource.getpagesize() < 16 * MIB
    assert campaign.seconds < 60


def test_a_dict_whose_keys_collide_costs_hardly_more_than_another() -> None:
    def seconds(numbers: range) -> float:
        keys = itertools.product(numbers, repeat=4)
        pairs = [(wire.WireTuple(list(key)), None) for key in keys]
        body = wire.encode(Reply(1, wire.WireDict(pairs)))
        gc.collect()
        gc.disable()
        began = time.process_time()
        read(body)
        spent = time.process_time() - began
        gc.enable()
        return spent

    prime = 2**61 - 1  # the hash of its multiples is 0
    assert seconds(range(-4 * prime, 5 * prime, prime)) < 20 * seconds(range(9))


# --- the student's proxies ----------------------------------------------------------------------


class Scripted:
    """A transport that repeats the same answers, independent of the requests."""

    layers = ("none",)
    post = discard = close = lambda *_: None
    waited = lambda _: 0.0  # noqa: E731

    def __init__(self, answers: list[Any], loaded: wire.Value) -> None:
        self._answers, self._loaded = itertools.cycle(answers), loaded

    def request(self, request: Any, seconds: float, watcher: Any = None) -> Any:
        wire.encode(request)
        if isinstance(request, wire.Load):
            return Reply(request.id, self._loaded)
        answer = next(self._answers)
        try:
            return wire.decode_answer(answer) if isinstance(answer, bytes) else answer
        except wire.Malformed:
            raise StudentFailure("Protocol", "as a worker would raise it") from None


MODULE = wire.Handle(1, "module")


def student_of(*answers: Any, loaded: wire.Value = MODULE) -> Any:
    connection = WorkerConnection(lambda: Scripted(list(answers), loaded))
    subject = Subject("e", "p", {"e": wire.Source("e.py", "")}, forbidden=("torch*.softmax",))
    connection.begin(1)
    return Student(RemoteCode(connection, subject))


def remote_code(student: Student) -> RemoteCode:
    code = code_of(student)
    assert isinstance(code, RemoteCode)
    return code


def module_of(student: Student) -> Remote:
    code = remote_code(student)
    return Remote(code, code.connection.load(code.subject))


def backward(student: Student, x: torch.Tensor) -> None:
    y = student.f(x, [x.detach()], key=(x, 3))
    if isinstance(y, torch.Tensor) and y.requires_grad:
        y.sum().backward()


def raises(student: Student, x: torch.Tensor) -> None:
    with testing.raises(student, "w"):
        student.f(x)


def quiet(student: Student, x: torch.Tensor) -> None:
    module_of(student).train().to(torch.float64).load_state_dict({"w": x})
    code = remote_code(student)
    code.connection.await_quiet_calls(code.subject)


def same_gradients(student: Student, x: torch.Tensor) -> None:
    like, inputs = torch.nn.Identity(), {"x": x}
    testing.assert_slopes(student, module_of(student), like, inputs, rng=testing.Rng(1))


def unchanged(student: Student, x: torch.Tensor) -> None:
    x = x.detach()
    testing.assert_unchanged(student, student.f, x, x[:1].expand(2), x[0], names="abc")


Way = Callable[[Student, torch.Tensor], object]
WAYS: dict[str, Way] = {
    **{way.__name__: way for way in (backward, raises, quiet, same_gradients, unchanged)},
    "call": lambda s, x: repr(module_of(s)(x)),
    "call with what a call gave": lambda s, x: s.f(s.f(x)),
    "attribute": lambda s, x: module_of(s).weight,
    "state_dict": lambda s, x: module_of(s).state_dict(),
    "parameters": lambda s, x: list(module_of(s).parameters()),
    "buffers": lambda s, x: list(module_of(s).buffers()),
    "twins": lambda s, x: testing.twins(s.f, torch.nn.Linear, 2, 2, rng=testing.Rng(1)),
    "by hand": lambda s, x: testing.assert_written_by_hand(s, lambda: s.f(x)),
    "vectorised": lambda s, x: testing.assert_vectorised(
        s, lambda n=1: lambda: s.f(x.repeat(n)), {"x": {"n": (2, 3)}}
    ),
    "compare with floats": lambda s, x: testing.assert_close(s.f(x), torch.zeros(2)),
    "compare with bools": lambda s, x: testing.assert_close(s.f(x), x > 2),
    "compare with a number": lambda s, x: testing.assert_close(s.f(x), 0),
}


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
@settings(
    derandomize=True,
    deadline=None,
    database=None,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)
@given(st.lists(st.randoms(use_true_random=False), min_size=1, max_size=3))
def test_hostile_answers_are_verdicts_on_the_student(way: str, rngs: list[Random]) -> None:
    answers = [encode(an_answer(rng)) for rng in rngs]
    with contextlib.suppress(CheckFailure):
        WAYS[way](student_of(*answers), torch.ones(2, requires_grad=True))


def nested(kind: Any) -> wire.Value:
    value: wire.Value = None
    for _ in range(2000):  # Python 3.11 decodes some 500, 3.13 some 4000
        value = kind([value])
    return value


def parameter(dtype: str, grad: wire.WireTensor | None) -> Reply:
    tensor = wire.WireTensor(dtype, [1], bytes(8), None, requires_grad=True)
    return Reply(1, entries=[wire.StateEntry("w", True, tensor, grad)])


TWO = wire.WireTensor("float64", [2], bytes(16))
CASES: dict[str, tuple[Reply | bytes, Way]] = {
    "lists too deep": (Reply(1, nested(wire.WireList)), WAYS["call"]),
    "tuples too deep": (Reply(1, nested(wire.WireTuple)), WAYS["call"]),
    "a list for a key": (Reply(1, wire.WireDict([(wire.WireList([]), 1)])), WAYS["call"]),
    "a number too large to send": (
        wire.encode(Reply(1, 2**63)),
        WAYS["call with what a call gave"],
    ),
    "tensors for numbers": (
        Reply(1, wire.WireList([TWO])),
        lambda s, x: testing.assert_close(s.f(), [1.0]),
    ),
    "a write into an expanded view": (Reply(1, changed=[wire.Changed(1, TWO)]), unchanged),
    "a write into no argument": (Reply(1, changed=[wire.Changed(2**63, TWO)]), unchanged),
    "an int that requires a gradient": (parameter("int64", None), WAYS["parameters"]),
    "a gradient of another shape": (parameter("float64", TWO), WAYS["parameters"]),
    "a gradient of another dtype": (
        parameter("float64", wire.WireTensor("float32", [1], bytes(4))),
        WAYS["parameters"],
    ),
}


@pytest.mark.parametrize("what", CASES)
def test_an_answer_that_cannot_be_is_a_verdict(what: str) -> None:
    answer, way = CASES[what]
    with pytest.raises(CheckFailure):
        way(student_of(answer), torch.ones(2, dtype=torch.float64))


@pytest.mark.parametrize("loaded", [None, 3, wire.WireList([])], ids=repr)
def test_a_file_that_loads_as_no_module_is_a_verdict(loaded: wire.Value) -> None:
    with pytest.raises(CheckFailure):
        student_of(loaded=loaded).f()


def test_a_report_shows_no_more_than_a_window_of_an_empty_tensor() -> None:
    student = student_of(Reply(1, wire.WireTensor("float64", [9999, 0, 3], b"")))
    with pytest.raises(Mismatch) as caught:
        testing.assert_close(student.f(), torch.zeros(2))
    assert len(repr(caught.value.difference)) < 1000


def test_what_a_worker_prints_is_kept_up_to_a_limit() -> None:
    student = student_of(Reply(1, printed="x" * MIB))
    for _ in range(9):
        student.f()
    assert sum(map(len, remote_code(student).connection.printed)) <= MIB


# --- a worker's socket --------------------------------------------------------------------------


RUNS_ON = Ended(-signal.SIGKILL, HUNG_UP)  # it hung up, and the zygote had to end it


class Pipe:
    """A zygote with one worker, which the test plays, and which ends as the test says."""

    def __init__(self, ended: Ended | None = RUNS_ON) -> None:
        ours, self.theirs = socket.socketpair()
        self.interrupted: list[int] = []
        self.reaped: list[int] = []
        self._ended = ended
        self.start_worker = lambda: (ours, 1)
        self.on_wait = lambda: None
        self.worker = Worker(self)  # type: ignore[arg-type]
        self.theirs.sendall(wire.frame(Reply(0, wire.WireList(["none"]))))

    def interrupt(self, pid: int) -> None:
        self.interrupted.append(pid)

    def reap(self, pid: int, grace: float) -> Ended | None:
        self.reaped.append(pid)
        return self._ended

    def ends_as(self, seconds: float = 60) -> str:
        with pytest.raises(StudentFailure) as caught:
            self.worker.request(wire.Sync(1), seconds)
        assert self.reaped == [1]
        self.theirs.close()
        assert self.interrupted == [1] * (caught.value.kind == "Timeout")
        return caught.value.kind


GOOD = wire.frame(Reply(1, "x" * 99))
STREAMS = {  # the bytes that arrive, whether the stream then ends, and the kind of failure
    "a frame that is too long": (HEADER.pack(wire.MAX_FRAME + 1), False, "Protocol"),
    "a frame of 4 GiB": (b"\xff" * 4 + GOOD, False, "Protocol"),
    "a frame of nothing": (bytes(4), False, "Protocol"),
    "noise": (HEADER.pack(4) + b"\xff\xc1\x00\x91", False, "Protocol"),
    "a second answer": (GOOD * 2, False, "Protocol"),
    "a byte too many": (GOOD + b"\0", False, "Protocol"),
    "an answer to another request": (wire.frame(Reply(2)), False, "Protocol"),
    "a request": (wire.frame(wire.Sync(1)), False, "Protocol"),
    "nothing": (b"", False, "Timeout"),
    "half a header": (GOOD[:2], False, "Timeout"),
    "half an answer": (GOOD[:60], False, "Timeout"),
    "a length and no more": (HEADER.pack(MIB), False, "Timeout"),
    "no answer at all": (b"", True, "Crash"),
    "half a header and the end": (GOOD[:2], True, "Crash"),
    "half an answer and the end": (GOOD[:60], True, "Crash"),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", STREAMS)
def test_a_broken_stream_ends_the_worker_and_is_named(what: str) -> None:
    pipe, (stream, ends, kind) = Pipe(), STREAMS[what]
    pipe.theirs.sendall(stream)
    if ends:
        pipe.theirs.shutdown(socket.SHUT_WR)
    assert pipe.ends_as(0.3 if kind == "Timeout" else 60) == kind


def test_a_worker_that_hangs_up_before_it_is_asked_is_a_crash() -> None:
    pipe = Pipe()
    pipe.theirs.close()
    assert pipe.ends_as() == "Crash"


@pytest.mark.parametrize(
    "ended",
    [
        RUNS_ON,
        Ended(0),
        Ended(1),
        Ended(-signal.SIGKILL, "your code made more than 256 files"),
        *(Ended(-number) for number in (signal.SIGSEGV, signal.SIGABRT, signal.SIGSYS, 40)),
        Ended(-signal.SIGXCPU),
    ],
    ids=repr,
)
@pytest.mark.parametrize("stream", [b"", GOOD[:60]], ids=["silent", "half an answer"])
def test_an_end_that_code_can_bring_about_is_a_crash(ended: Ended, stream: bytes) -> None:
    pipe = Pipe(ended)
    pipe.theirs.sendall(stream)
    pipe.theirs.shutdown(socket.SHUT_WR)
    assert pipe.ends_as() == "Crash"


@pytest.mark.parametrize(
    "ended",
    [None, *(Ended(-number) for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP))],
    ids=repr,
)
def test_an_end_that_only_others_can_bring_about_is_lost(ended: Ended | None) -> None:
    pipe = Pipe(ended)
    pipe.theirs.close()
    with pytest.raises(WorkerLost):
        pipe.worker.request(wire.Sync(1), 60)


def test_bytes_that_come_one_by_one_get_no_extra_time() -> None:
    pipe = Pipe()

    def drip() -> None:
        with contextlib.suppress(OSError):
            for byte in HEADER.pack(MIB) + bytes(2000):  # a minute
                pipe.theirs.sendall(bytes([byte]))
                time.sleep(0.03)

    threading.Thread(target=drip, daemon=True).start()
    began = time.monotonic()
    assert pipe.ends_as(0.3) == "Timeout"
    assert time.monotonic() - began < 40
