"""Whatever a worker sends or an archive holds, the trusted side says no in its own words."""

from __future__ import annotations

import bz2
import contextlib
import gc
import io
import itertools
import lzma
import math
import random
import resource
import shutil
import socket
import stat
import struct
import threading
import time
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from grader import archives, testing
from grader.errors import CheckFailure, Mismatch, StudentFailure
from grader.sandbox import wire
from grader.sandbox.desk import Desk, Subject
from grader.sandbox.host import Worker
from grader.sandbox.proxies import Remote, Student
from grader.sandbox.wire import Reply
from grader.sandbox.wire import WireTensor as T

MIB = 1 << 20
WILD = (0, 1, -1, 255, 2**31, 2**39, 2**40 - 1, 2**40, 2**63 - 1, 2**64 - 1, -(2**63))
TOKENS = (b"\xdd\xff\xff\xff\xff", b"\xdf\x7f\xff\xff\xff", b"\xc6\xff\xff\xff\xff", b"\xcf" * 9)
TOKENS += (b"\xc0", b"\xcb\x7f\xf8" + bytes(6), b"\xa3\xed\xa0\x80", b"\xa1\xff", b"\xd6", b"\x90")
encode = msgspec.msgpack.Encoder().encode


def mutated(rng: random.Random, data: bytes, other: bytes) -> bytes:
    body = bytearray(data)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(body) + 1)
        match rng.randrange(6):
            case 0:
                body[at : at + 1] = bytes(
                    byte ^ 1 << rng.randrange(8) for byte in body[at : at + 1]
                )
            case 1:
                body[at : at + 1] = rng.randbytes(1)
            case 2:
                body[at : at + rng.choice((0, 1, 5))] = rng.choice(TOKENS)
            case 3:
                del body[at : at + rng.choice((1, 4, 9999))]
            case 4:
                body[at:] = other[rng.randrange(len(other)) :]
            case 5:
                body[at:at] = body[at : at + 40] * rng.randint(1, 9)
    return bytes(body)


# --- frames -------------------------------------------------------------------------------------


def hostile_value(rng: random.Random, depth: int = 0) -> Any:
    """What a value is encoded from: one of the closed list, one nearly of it, or a lie."""

    def size() -> int:
        return rng.randrange(4) if rng.random() < 0.85 else rng.choice(WILD)

    match rng.randrange(6 if depth > 3 else 9):
        case 0:
            return rng.choice((*WILD, None, True, math.nan, -math.inf, "", "é\0", b"", {}, []))
        case 1 | 2 | 3 | 4:
            dtype, shape = rng.choice([*wire.DTYPES, "object"]), [size() for _ in range(size() % 5)]
            count = math.prod(shape) * rng.choice((1, 2, 4, 8))
            tensor = {"type": "t", "dtype": dtype, "shape": shape, "data": bytes(count % 999)}
            if rng.random() < 0.4:
                tensor["stride"] = rng.choice(([size() for _ in shape], [0] * len(shape), [1.5]))
            return tensor
        case 5:
            name = rng.choice(("M", "", 3))
            return {"type": "h", "id": size(), "type_name": name, "parameters": {"w": [size()]}}
        case 6 | 7:
            items = [hostile_value(rng, depth + 1) for _ in range(rng.randrange(4))]
            return {"type": rng.choice("llluuu?"), "items": items}
        case _:
            keys = [rng.choice((0, "k", None, math.nan, hostile_value(rng, 4))) for _ in range(3)]
            return {"type": "d", "pairs": [[key, hostile_value(rng, depth + 1)] for key in keys]}


def hostile_frames(count: int) -> Iterator[bytes]:
    rng, other = random.Random(20), b"\xc0"
    reply = {"type": "reply", "id": 1, "operations": {"torch.add": -5}, "grads": [None]}
    failure = {"type": "failure", "id": 1, "kind": "E", "mro": ["E"], "message": "m", "frames": []}
    deep = [b"\x82\xa4type\xa1" + kind + b"\xa5items\x91" for kind in (b"l", b"u")]
    deep += [b"\x82\xa4type\xa1d\xa5pairs\x91\x92\xc0", b"\x91"]
    for number in range(count):
        body = encode((failure if number % 9 == 0 else reply) | {"value": hostile_value(rng)})
        if number % 500 == 0:
            nested = rng.choice(deep) * rng.choice((90, 300, 480, 1000, 20_000))
            body = encode({"type": "reply", "id": 1, "value": 0})[:-1] + nested + b"\xc0"
        elif number % 500 == 1:
            body = encode(reply | {"value": "x" * MIB})
        yield mutated(rng, body, other) if rng.random() < 0.4 else body
        other = body


def read(body: bytes) -> bool:
    """Decode as the host does; whether it is an answer."""
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
    """What a hundred thousand hostile frames did."""
    did = SimpleNamespace(escaped={}, answers=0, pages=[])
    began = time.process_time()
    for number, body in enumerate(hostile_frames(100_000), start=1):
        try:
            did.answers += read(body)
        except BaseException as error:
            did.escaped.setdefault(f"{type(error).__name__}: {error}"[:50], body)
        if number in (10_000, 100_000):
            gc.collect()
            did.pages.append(int(Path("/proc/self/statm").read_text().split()[1]))
    did.seconds = time.process_time() - began
    return did


def test_hostile_frames_raise_nothing_but_malformed(campaign: SimpleNamespace) -> None:
    assert campaign.answers > 20_000  # the frames are not mere noise
    assert not campaign.escaped


def test_hostile_frames_leave_no_memory_behind(campaign: SimpleNamespace) -> None:
    early, late = campaign.pages
    assert (late - early) * resource.getpagesize() < 16 * MIB
    assert campaign.seconds < 15


def test_a_dict_whose_keys_collide_costs_hardly_more_than_another() -> None:
    def seconds(*numbers: int) -> float:
        keys = itertools.product(numbers, repeat=13)
        pairs = [(wire.WireTuple(list(key)), None) for key in keys]
        body = wire.encode(Reply(1, wire.WireDict(pairs)))
        began = time.process_time()
        read(body)
        return time.process_time() - began

    assert seconds(-1, -2) < 8 * seconds(3, 4)  # hash(-1) == hash(-2)


# --- the student's proxies ----------------------------------------------------------------------

wild = st.integers(0, 3) | st.sampled_from(WILD)
names = st.sampled_from(("", "w", "torch.add", "\0", "\x1b[2J", "é" * 300)) | st.text(max_size=9)
# No huge size beside a single 0: an excerpt of such a tensor would take the machine's memory.
shapes = st.lists(wild, max_size=4).filter(all) | st.sampled_from(([2**39, 2**39, 0], [1] * 17))


@st.composite
def sound_tensors(draw: st.DrawFn) -> T:
    dtype = draw(st.sampled_from(list(wire.DTYPES)))
    shape = draw(st.just([2]) | st.lists(st.integers(0, 3), max_size=3))
    size = math.prod(shape) * wire.DTYPES[dtype].itemsize
    data = draw(st.sampled_from((b"\0", b"\xff", b"\x02"))) * size
    return T(dtype, shape, data, None, draw(st.booleans()), draw(st.booleans()))


strides = st.none() | st.lists(wild, max_size=3)
lies = st.builds(T, st.sampled_from(list(wire.DTYPES)), shapes, st.binary(), strides, st.booleans())
tensors = sound_tensors() | sound_tensors() | lies
handles = st.builds(wire.Handle, wild, names, st.dictionaries(names, st.lists(wild), max_size=2))
values = st.recursive(
    st.none() | st.booleans() | wild | st.floats() | names | tensors | handles,
    lambda inner: (
        st.builds(wire.WireList, st.lists(inner, max_size=3))
        | st.builds(wire.WireTuple, st.lists(inner, max_size=3))
        | st.builds(wire.WireDict, st.lists(st.tuples(inner, inner), max_size=2))
    ),
    max_leaves=6,
)
changes = st.lists(st.builds(wire.Changed, wild, tensors), max_size=2)
entries = st.builds(wire.Entry, names, st.booleans(), tensors, st.none() | tensors)
grads = st.lists(st.none() | tensors, max_size=3)
counts = st.dictionaries(names, wild, max_size=3)
frames = st.lists(st.builds(wire.WireFrame, names, wild, names, wild, names), max_size=2)
replies = st.builds(
    Reply, wild, tensors | values, changes, st.lists(entries, max_size=2), grads, counts, names
)
mros = st.lists(names, max_size=2)
failures = st.builds(wire.Failure, wild, names, mros, names, frames, names, counts)


class Scripted:
    """A connection to a worker that gives the same answers over and over, whatever is asked."""

    layers = ("none",)
    post = discard = close = lambda *_: None

    def __init__(self, answers: list[Any], loaded: wire.Value) -> None:
        self._answers, self._loaded = itertools.cycle(answers), loaded

    def request(self, request: Any, seconds: float) -> wire.Answer:
        wire.encode(request)
        loading = isinstance(request, wire.Load)
        return Reply(request.id, self._loaded) if loading else next(self._answers)


def student_of(*answers: Any, loaded: wire.Value = wire.Handle(1, "module")) -> Student:
    desk = Desk(lambda: Scripted(list(answers), loaded), keep=True)
    subject = Subject("e", "p", {"e": wire.Source("e.py", "")}, forbidden=("torch*.softmax",))
    desk.begin(1)
    return Student(desk, subject)


def module_of(student: Student) -> Remote:
    return Remote(student, student.desk.load(student.subject))


def backward(student: Student, x: torch.Tensor) -> None:
    y = student.f(x, [x.detach()], key=(x, 3))
    if isinstance(y, torch.Tensor) and y.requires_grad:
        y.sum().backward()


def share(student: Student, x: torch.Tensor) -> None:
    with student.sharing(), student.watched() as seen:
        student.f(x, torch.zeros(1).expand(3))
    assert isinstance(seen.operations, int)


def quiet(student: Student, x: torch.Tensor) -> None:
    module_of(student).train().eval().to(torch.float64).load_state_dict({"w": x})
    student.desk.settle(student.subject)


def raises(student: Student, x: torch.Tensor) -> None:
    with student.raises("ValueError"):
        student.f(x)


def vectorised(student: Student, x: torch.Tensor) -> None:
    testing.assert_written_by_hand(student, lambda: student.f(x))
    testing.assert_vectorised(student, lambda: student.f(x), lambda: student.f(x))


def twins(student: Student, x: torch.Tensor) -> None:
    testing.twins(student.Linear, torch.nn.Linear, 2, 2, rng=testing.Rng(1))


def gradients(student: Student, x: torch.Tensor) -> None:
    testing.assert_same_gradients(module_of(student), lambda a: a * 0, x, names=["x"])


WAYS: dict[str, Callable[[Student, torch.Tensor], object]] = {
    "call": lambda s, x: repr(module_of(s)(x)),
    "call with what a call gave": lambda s, x: s.f(s.f(x)),
    "attribute": lambda s, x: module_of(s).weight,
    "state_dict": lambda s, x: module_of(s).state_dict(),
    "parameters": lambda s, x: list(module_of(s).parameters()),
    "buffers": lambda s, x: list(module_of(s).buffers()),
    "compare with a tensor": lambda s, x: testing.assert_close(s.f(x), torch.zeros(2)),
    "compare with a bool tensor": lambda s, x: testing.assert_close(s.f(x), x > 2),
    "compare with a number": lambda s, x: testing.assert_close(s.f(x), 0),
    "compare with an argument": lambda s, x: testing.assert_unchanged(s, s.f, x, names=["x"]),
}
WAYS |= {way.__name__: way for way in (backward, share, quiet, raises, vectorised)}
WAYS |= {way.__name__: way for way in (twins, gradients)}


@pytest.mark.parametrize("way", WAYS)
@settings(derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(st.lists(replies | replies | replies | failures, min_size=1, max_size=4))
def test_hostile_answers_are_verdicts_on_the_student(way: str, answers: list[Any]) -> None:
    sent = [wire.decode_answer(wire.encode(answer)) for answer in answers]
    try:
        WAYS[way](student_of(*sent), torch.ones(2, requires_grad=True))
    except CheckFailure as error:
        assert isinstance(error, Mismatch | StudentFailure)


@pytest.mark.parametrize("loaded", [None, 3, wire.WireList([])], ids=repr)
def test_a_file_that_loads_as_no_module_is_a_verdict(loaded: wire.Value) -> None:
    with pytest.raises(CheckFailure):
        student_of(loaded=loaded).f()


@pytest.mark.parametrize("kind", [wire.WireList, wire.WireTuple])
def test_a_value_nested_deeper_than_python_recurses_is_a_verdict(kind: Any) -> None:
    value: wire.Value = None
    for _ in range(2000):  # Python 3.11 decodes some 500, 3.13 some 4000
        value = kind([value])
    with pytest.raises(CheckFailure):
        student_of(Reply(1, value)).f()


def test_a_list_of_tensors_is_not_a_list_of_numbers() -> None:
    student = student_of(Reply(1, wire.WireList([T("float32", [2], bytes(8))])))
    with pytest.raises(CheckFailure):
        testing.assert_close(student.f(), [1.0])


def test_a_report_shows_no_more_than_a_window_of_an_empty_tensor() -> None:
    student = student_of(Reply(1, T("float64", [9999, 0, 3], b"")))
    with pytest.raises(Mismatch) as caught:
        testing.assert_close(student.f(), torch.zeros(2))
    assert len(repr(caught.value.difference)) < 1000


def test_what_a_worker_prints_is_kept_up_to_a_limit() -> None:
    student = student_of(Reply(1, printed="x" * MIB))
    for _ in range(9):
        student.f()
    assert sum(map(len, student.desk.printed)) <= MIB


# --- a worker's socket --------------------------------------------------------------------------


class Pipe:
    """A zygote whose only worker is this test: it writes whatever it likes."""

    def __init__(self) -> None:
        ours, self.theirs = socket.socketpair()
        self.reaped: list[int] = []
        self.fork = lambda: (ours, 1)
        self.reap = lambda pid, grace: self.reaped.append(pid)
        self.worker = Worker(self)  # type: ignore[arg-type]
        self.theirs.sendall(wire.frame(Reply(0, wire.WireList(["none"]))))

    def ask(self, seconds: float = 0.2) -> wire.Answer:
        with self.theirs:
            return self.worker.request(wire.Sync(1), seconds)


GOOD = wire.frame(Reply(1, "x" * 99))
LENGTH = wire.HEADER.pack
STREAMS = {  # what arrives, whether the stream then ends, and what that is
    "a frame that is too long": (LENGTH(wire.MAX_FRAME + 1), False, "Protocol"),
    "a frame of 4 GiB": (b"\xff" * 4 + GOOD, False, "Protocol"),
    "a frame of nothing": (LENGTH(0), False, "Protocol"),
    "noise": (LENGTH(4) + b"\xff\xc1\x00\x91", False, "Protocol"),
    "a second answer": (GOOD * 2, False, "Protocol"),
    "a byte too many": (GOOD + b"\0", False, "Protocol"),
    "an answer to another request": (wire.frame(Reply(2)), False, "Protocol"),
    "a request": (wire.frame(wire.Sync(1)), False, "Protocol"),  # type: ignore[arg-type]
    "nothing": (b"", False, "Timeout"),
    "half a header": (GOOD[:2], False, "Timeout"),
    "half an answer": (GOOD[:60], False, "Timeout"),
    "a length and no more": (LENGTH(wire.MAX_FRAME), False, "Timeout"),
    "no answer at all": (b"", True, "Crash"),
    "half a header and the end": (GOOD[:2], True, "Crash"),
    "half an answer and the end": (GOOD[:60], True, "Crash"),
}


@pytest.mark.parametrize("what", STREAMS)
def test_a_broken_stream_ends_the_worker_and_is_named(what: str) -> None:
    pipe = Pipe()
    stream, ends, kind = STREAMS[what]
    pipe.theirs.sendall(stream)
    if ends:
        pipe.theirs.shutdown(socket.SHUT_WR)
    with pytest.raises(StudentFailure) as caught:
        pipe.ask()
    assert (caught.value.kind, pipe.reaped) == (kind, [1])


def test_a_worker_that_hangs_up_before_it_is_asked_is_a_crash() -> None:
    pipe = Pipe()
    pipe.theirs.close()
    with pytest.raises(StudentFailure) as caught:
        pipe.ask()
    assert (caught.value.kind, pipe.reaped) == ("Crash", [1])


def test_bytes_that_drip_keep_no_one_waiting() -> None:
    pipe, done = Pipe(), threading.Event()

    def drip() -> None:
        for byte in LENGTH(MIB) + bytes(99):
            if done.wait(0.03):
                return
            pipe.theirs.sendall(bytes([byte]))

    thread = threading.Thread(target=drip)
    thread.start()
    began = time.monotonic()
    with pytest.raises(StudentFailure) as caught:
        pipe.worker.request(wire.Sync(1), 0.4)
    done.set()
    thread.join()
    assert caught.value.kind == "Timeout"
    assert time.monotonic() - began < 2


def test_mutated_streams_are_an_answer_or_a_named_end() -> None:
    rng = random.Random(21)
    kinds = set()
    for _ in range(500):
        pipe = Pipe()
        pipe.theirs.sendall(mutated(rng, GOOD, GOOD * 2)[:9999])
        pipe.theirs.shutdown(socket.SHUT_WR)
        try:
            kinds.add(type(pipe.ask()).__name__)
        except StudentFailure as error:
            kinds.add(error.kind)
        pipe.worker.close()
    assert kinds == {"Reply", "Protocol", "Crash"}


# --- archives -----------------------------------------------------------------------------------


def archive(
    *names: bytes,
    data: bytes = b"x = 1\n",
    packed: bytes | None = None,
    method: int = 0,
    flags: int = 0,
    mode: int = 0,
    sizes: tuple[int, int] | None = None,
) -> bytes:
    """A zip by hand: every name is an entry for one and the same member."""
    packed = data if packed is None else packed
    facts = (flags, method, 0, 33, zlib.crc32(data), *(sizes or (len(packed), len(data))))
    body = struct.pack("<4sH4H3I2H", b"PK\3\4", 20, *facts, len(names[0]), 0) + names[0] + packed
    index = bytearray()
    for name in names:
        rest = (len(name), 0, 0, 0, 0, mode << 16, 0)
        index += struct.pack("<4s2H4H3I5H2I", b"PK\1\2", 20, 20, *facts, *rest) + name
    count = len(names) % 2**16
    end = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, count, count, len(index), len(body), 0)
    return body + index + end


def zipped(*members: tuple[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as file:
        for name, data in members:
            file.writestr(name, data)
    return buffer.getvalue()


def taken(root: Path, data: bytes) -> set[str]:
    """The files that come out of an archive, none if it is refused; all else stays as it was."""
    into = root / "into"
    into.mkdir()
    (root / "a.zip").write_bytes(data)
    refused = False
    try:
        archives.unpack(root / "a.zip", into, [])
    except archives.Unreadable:
        refused = True
    finally:
        files = [path for path in into.rglob("*") if not stat.S_ISDIR(path.lstat().st_mode)]
        assert all(stat.S_ISREG(path.lstat().st_mode) for path in files)
        assert sum(path.stat().st_size for path in files) <= archives.MAX_UNPACKED_BYTES
        found = {str(path.relative_to(into)) for path in files}
        shutil.rmtree(into)
    assert {path.name for path in root.iterdir()} == {"a.zip"}
    assert all(name.endswith(".py") for name in found)
    return set() if refused else found


LZMA = b"\x09\x04\x05\0\x5d\0\0\x10\0"  # version, length of the properties, the properties
LZMA1 = [{"id": lzma.FILTER_LZMA1, "preset": 0, "dict_size": MIB}]
PACKERS: dict[str, tuple[int, Callable[[bytes], bytes]]] = {
    "deflate": (8, lambda data: zlib.compress(data, wbits=-15)),
    "bzip2": (12, bz2.compress),
    "lzma": (14, lambda data: LZMA + lzma.compress(data, lzma.FORMAT_RAW, filters=LZMA1)),
}
SOUND = [zipped(("a.py", b"x = 1\n" * 9), ("b/\xfc.py", b"y")), archive(b"a.py")]
SOUND += [zipped(("a.py", b"x"), ("b", b""), method=method) for method in (0, 12, 14)]
JUNK = b"junk" * 99
CRAFTED = {  # none of them may give more than a.py
    "nothing": b"",
    "an end alone": b"PK\5\6" + bytes(18),
    "a way out": zipped(("../evil.py", b""), ("d/../../evil.py", b""), ("..", b""), ("a.py", b"")),
    "backslashes": zipped(("..\\evil.py", b""), ("\\evil.py", b""), ("d\\evil.py", b"")),
    "drive letters": zipped(("C:/evil.py", b""), ("C:\\evil.py", b""), ("C:evil.py", b"")),
    "a NUL inside a name": archive(b"a.py\0/../../evil.py"),
    "a NUL before a name": archive(b"\0evil.py"),
    "no name": archive(b""),
    "a symbolic link": archive(b"evil.py", data=b"/etc/passwd", mode=stat.S_IFLNK | 0o777),
    "a FIFO": archive(b"evil.py", mode=stat.S_IFIFO | 0o666),
    "a device": archive(b"evil.py", mode=stat.S_IFCHR | 0o666),
    "one name twice": archive(b"a.py", b"a.py"),
    "a file that is a folder": zipped(("a.py", b""), ("a.py/evil.py", b""), ("a.py/", b"")),
    "a hundred thousand members": archive(*[b"evil.py"] * 100_000),
    "many members that fill the room": zipped(*((f"{n}.py", bytes(60_000)) for n in range(300))),
    "encryption": archive(b"evil.py", flags=1),
    "strong encryption": archive(b"evil.py", flags=0x41),
    "a patch": archive(b"evil.py", flags=0x20),
    "unknown compression": archive(b"evil.py", method=99),
    "sizes of 0": archive(b"evil.py", sizes=(0, 0)),
    "sizes of 4 GiB": archive(b"evil.py", sizes=(2**32 - 2, 2**32 - 2)),
    "sizes for a larger header": archive(b"evil.py", sizes=(2**32 - 1, 2**32 - 1)),
    "broken deflate": archive(b"evil.py", packed=JUNK, method=8),
    "broken bzip2": archive(b"evil.py", packed=JUNK, method=12),
    "broken lzma": archive(b"evil.py", packed=LZMA + JUNK, method=14, sizes=(len(JUNK), 999)),
    "an archive in an archive": zipped(("evil.zip", zipped(("evil.py", b"")))),
    "folders too deep": zipped(("d/" * 99 + "evil.py", b"")),
    "a name too long": zipped(("e" * 5000 + ".py", b""), ("e" * 300 + "/evil.py", b"")),
    "a name of surrogates": archive(b"\xed\xa0\x80evil.py", flags=0x800),
}


@pytest.mark.parametrize("what", CRAFTED)
def test_nothing_of_a_hostile_archive_comes_out(what: str, tmp_path: Path) -> None:
    assert taken(tmp_path, CRAFTED[what]) <= {"a.py"}


def test_an_absolute_name_is_left_out(tmp_path: Path) -> None:
    data = zipped((f"{tmp_path}/evil.py", b""), (f"/{tmp_path}/evil.py", b""), ("a.py", b""))
    assert taken(tmp_path, data) == {"a.py"}


def test_a_sound_archive_comes_out_whole(tmp_path: Path) -> None:
    assert taken(tmp_path, SOUND[0]) == {"a.py", "b/\xfc.py"}


@pytest.mark.parametrize("packer", PACKERS)
def test_an_archive_takes_no_more_memory_than_it_may_unpack_to(packer: str, tmp_path: Path) -> None:
    method, pack = PACKERS[packer]
    data = bytes(3 * archives.MAX_UNPACKED_BYTES)
    bombs = [archive(b"a.py", data=data, packed=pack(data), method=method)]
    bombs += [archive(*[b"a.py"] * 999, data=data[:MIB], packed=pack(data[:MIB]), method=method)]
    for bomb in bombs:
        tracemalloc.start()
        assert not taken(tmp_path, bomb)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < archives.MAX_UNPACKED_BYTES + 8 * MIB


def test_mutated_archives_are_unpacked_or_unreadable(tmp_path: Path) -> None:
    rng, escaped = random.Random(22), {}
    for _ in range(4000):
        data = mutated(rng, rng.choice(SOUND), rng.choice(SOUND))
        try:
            taken(tmp_path, data)
        except Exception as error:
            escaped[f"{type(error).__name__}: {error}"[:50]] = data
    assert not escaped
