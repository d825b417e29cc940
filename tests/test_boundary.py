"""A test of a suite reads as if the student's code were local, and all of it runs in a worker."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
import torch
from classroom import waits
from commandline import Grade

from grader.course.course import load_course
from grader.errors import Mismatch, StudentFailure
from grader.sandbox import wire
from grader.sandbox.confinement.layers import Confinement
from grader.sandbox.host import connection as connections
from grader.sandbox.host.connection import Subject, TimeLimits, WorkerConnection
from grader.sandbox.host.proxies import RemoteCode, Student
from grader.sandbox.host.worker import Worker
from grader.sandbox.host.zygote import Zygote
from grader.sandbox.worker.server import Server
from grader.testing import manual_seed, raises, sharing, watched

CODE = """
import os
import torch
import torch.nn.functional as F
from torch import nn

def softmax(x): return torch.softmax(x, dim=-1)
def broken_softmax(x): return torch.softmax(x.detach(), dim=-1) * x / x.detach()
def both(pair, named): return {"sum": pair[0] + named["b"], 7: [pair[1], None]}
def cut(x): return x.detach() * 2
def double_in_place(x): return x.mul_(2)
def double_data(x): x.data.mul_(2); return x
def reshape(x): x.unsqueeze_(0); return x
def noise(n): return torch.rand(n)
def strides(x): return list(x.stride())
def is_leaf(x): return x.is_leaf, x.requires_grad
def grad_mode(): return torch.is_grad_enabled()
def environment(): return dict(os.environ)
def norm(x): return getattr(F, "layer" + "_norm")(x, x.shape[-1:])
def attend(x): return F.multi_head_attention_forward
def keyword(a, *, b=1): return a - b
def fail(): return helper()
def helper(): raise LookupError("in the helper")
class Odd(ValueError): pass
def odd(): raise Odd("a kind of ValueError")
class Model(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.linear = nn.Linear(d_in, d_out)
        self.register_buffer("mask", torch.ones(d_out))
        self.drop = nn.Dropout(0.5)
        self.size = (d_in, d_out)
    def forward(self, x): return self.drop(self.linear(x)) * self.mask
"""
LIMITS = TimeLimits(60, 600)


@pytest.fixture
def connection(zygote: Zygote) -> Iterator[WorkerConnection]:
    opened = WorkerConnection(lambda: Worker(zygote))
    opened.begin(1)
    yield opened
    opened.close()


def code_at(
    connection: WorkerConnection,
    text: str = CODE,
    *,
    limits: TimeLimits = LIMITS,
    forbidden: tuple[str, ...] = (),
) -> RemoteCode:
    sources = {"m": wire.Source("m.py", text)}
    return RemoteCode(connection, Subject("m", "m", sources, limits, forbidden))


def student_at(connection: WorkerConnection, text: str = CODE) -> Any:
    return Student(code_at(connection, text))


@pytest.fixture
def student(connection: WorkerConnection) -> Any:
    return student_at(connection)


def doubles(*shape: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(3)
    return torch.randn(*shape, dtype=torch.float64, generator=generator)


# --- values and autograd --------------------------------------------------------------------------


def test_structures_cross_both_ways(student: Any) -> None:
    a, b = doubles(2), doubles(2)
    result = student.both((a, b), named={"b": b})
    assert torch.equal(result["sum"], a + b)
    assert torch.equal(result[7][0], b)
    assert result[7][1] is None
    assert student.keyword(5, b=2) == 3


def test_backward_fills_local_inputs_and_the_workers_parameters(student: Any) -> None:
    model = student.Model(3, 2).to(torch.float64).eval()
    x = doubles(4, 3).requires_grad_()
    model(x).sum().backward()
    parameters = dict(model.named_parameters())
    assert x.grad is not None
    assert torch.allclose(x.grad, parameters["linear.weight"].sum(dim=0).expand(4, 3))
    assert torch.allclose(parameters["linear.weight"].grad, x.detach().sum(dim=0).expand(2, 3))
    assert torch.allclose(parameters["linear.bias"].grad, torch.full((2,), 4.0).double())
    model.zero_grad()
    assert all(parameter.grad is None for parameter in model.parameters())


def test_gradcheck_passes_for_right_gradients_and_fails_for_wrong_ones(student: Any) -> None:
    x = doubles(2, 3).requires_grad_()
    assert torch.autograd.gradcheck(student.softmax, (x,))
    with pytest.raises(RuntimeError, match="Jacobian mismatch"):
        torch.autograd.gradcheck(student.broken_softmax, (x,))


def test_a_graph_that_was_cut_is_cut_here_too(student: Any) -> None:
    assert not student.cut(doubles(2).requires_grad_()).requires_grad


def test_grad_mode_crosses(student: Any) -> None:
    assert student.grad_mode() is True
    with torch.no_grad():
        assert student.grad_mode() is False
        assert not student.softmax(doubles(2).requires_grad_()).requires_grad


def test_two_calls_join_in_one_graph(student: Any) -> None:
    x = doubles(2, 3).requires_grad_()
    (student.softmax(student.softmax(x) * 2) ** 2).sum().backward()
    y = x.detach().clone().requires_grad_()
    (torch.softmax(torch.softmax(y, -1) * 2, -1) ** 2).sum().backward()
    assert torch.allclose(x.grad, y.grad)


# --- arguments, modules and seeds -----------------------------------------------------------------


@pytest.mark.parametrize("function", ["double_in_place", "double_data"])
def test_an_argument_that_was_written_into_is_changed_here_too(student: Any, function: str) -> None:
    base = doubles(2, 3)
    x, before = base.T, base.T.clone()
    getattr(student, function)(x)
    assert torch.equal(x, before)
    with pytest.raises(Mismatch, match="wrote into its tensor argument"), sharing(student):
        getattr(student, function)(x)
    assert torch.equal(x, before)
    with sharing(student, x):
        getattr(student, function)(x)
    assert torch.equal(x, before * 2)
    assert torch.equal(base, before.T * 2)


def test_an_argument_that_was_reshaped_is_refused(student: Any) -> None:
    x = doubles(2)
    with pytest.raises(Mismatch, match="changed the shape"), sharing(student, x):
        student.reshape(x)
    assert x.shape == (2,)


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


def test_operations_before_an_error_are_counted(connection: WorkerConnection) -> None:
    student = student_at(
        connection, "import torch\ndef f(x):\n    torch.relu(x)\n    raise ValueError\n"
    )
    with pytest.raises(StudentFailure), watched(student) as seen:
        student.f(doubles(2))
    assert seen.counts["torch.relu"] == 1


def test_a_call_of_a_missing_name_counts_no_operations(student: Any) -> None:
    with watched(student) as seen:
        student.softmax(doubles(2))
        with pytest.raises(StudentFailure, match="defines no `nothing`"):
            student.nothing()
    assert seen.operations == 1


def test_views_and_leaves_are_the_same_in_the_worker(student: Any) -> None:
    assert student.strides(doubles(2, 3).T) == [1, 3]
    assert student.is_leaf(doubles(2)) == (True, False)
    assert student.is_leaf(doubles(2).requires_grad_()) == (True, True)
    assert student.is_leaf(doubles(2).requires_grad_() * 1) == (False, True)


def test_a_module_has_the_interface_of_a_module(student: Any) -> None:
    model = student.Model(3, 2).to(torch.float64)
    assert {name for name, _ in model.named_parameters()} == {"linear.weight", "linear.bias"}
    assert {name for name, _ in model.named_buffers()} == {"mask"}
    assert model.size == (3, 2)
    state = model.state_dict()
    state["linear.bias"] = torch.zeros(2, dtype=torch.float64)
    state["linear.weight"] = torch.ones(2, 3, dtype=torch.float64)
    model.load_state_dict(state)
    x = torch.ones(4, 3, dtype=torch.float64)
    assert torch.equal(model.eval()(x), torch.full((4, 2), 3.0).double())
    assert set(model.train()(torch.ones(50, 3).double()).flatten().tolist()) == {0.0, 6.0}
    model.load_state_dict({})
    with pytest.raises(StudentFailure, match="Missing key"):
        model(x)
    with raises(student, "RuntimeError"):
        model.load_state_dict({})


def test_the_seed_decides_what_torch_draws_in_the_worker(
    student: Any, connection: WorkerConnection
) -> None:
    connection.begin(5)
    first = student.noise(4)
    assert not torch.equal(student.noise(4), first)
    connection.begin(5)
    assert torch.equal(student.noise(4), first)
    manual_seed(student, 9)
    torch.manual_seed(9)
    assert torch.equal(student.noise(4), torch.rand(4))


# --- watching -------------------------------------------------------------------------------------


def test_the_seed_decides_what_other_generators_draw(connection: WorkerConnection) -> None:
    code = "import random, numpy\ndef draw(): return random.random(), float(numpy.random.rand())\n"
    student = student_at(connection, code)
    drawn = []
    for seed in (1, 1, 2):
        connection.begin(seed)
        manual_seed(student, seed)
        drawn.append(student.draw())
    assert drawn[0] == drawn[1] != drawn[2]


def test_operations_are_counted_while_watched(student: Any) -> None:
    with watched(student) as seen:
        student.softmax(doubles(2, 3))
    assert seen.counts["aten._softmax"] == 1
    assert seen.operations == 1
    with watched(student, kernels=False) as seen:
        student.softmax(doubles(2, 3))
    assert dict(seen.counts) == {"torch.softmax": 1}


SPELLINGS = {
    "plain": "import torch\ndef f(x): return torch.nn.functional.layer_norm(x, (3,))",
    "alias": "import torch.nn.functional as G\ndef f(x): return G.layer_norm(x, (3,))",
    "from": "from torch.nn.functional import layer_norm as ln\ndef f(x): return ln(x, (3,))",
    "name": "import torch.nn.functional as F\nln = F.layer_norm\ndef f(x): return ln(x, (3,))",
    "getattr": (
        "import torch.nn.functional as F\ndef f(x): return getattr(F, 'layer_norm')(x, (3,))"
    ),
    "import_module": (
        "import importlib\n"
        "F = importlib.import_module('torch.nn.functional')\n"
        "def f(x): return F.layer_norm(x, (3,))"
    ),
    "star": "from torch.nn.functional import *\ndef f(x): return layer_norm(x, (3,))",
    "class": "from torch import nn\ndef f(x): return nn.LayerNorm(3).double()(x)",
    "subclass": (
        "from torch import nn\nclass L(nn.LayerNorm): pass\ndef f(x): return L(3).double()(x)"
    ),
}
DYNAMIC = {
    "joined": (
        "import torch.nn.functional as F\ndef f(x): return getattr(F, 'layer' + '_norm')(x, (3,))"
    ),
    "vars": (
        "import torch\n"
        "norm = vars(torch)['native' + '_layer_norm']\n"
        "def f(x): return norm(x, (3,), None, None, 1e-5)[0]"
    ),
    "eval": (
        "import torch\n"
        "def f(x): return eval('torch.native_' + 'layer_norm')(x, (3,), None, None, 1e-5)[0]"
    ),
}
PATTERNS = ("torch*layer_norm", "torch*.LayerNorm")


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_forbidden_call_is_found_in_the_source(
    spelling: str, connection: WorkerConnection
) -> None:
    found = code_at(connection, SPELLINGS[spelling], forbidden=PATTERNS).forbidden_in_source()
    assert found
    assert found[0].function.rpartition(".")[2] in ("layer_norm", "LayerNorm")


@pytest.mark.parametrize("spelling", [*SPELLINGS, *DYNAMIC])
def test_a_forbidden_call_is_found_among_the_operations(
    spelling: str, connection: WorkerConnection
) -> None:
    student = student_at(connection, {**SPELLINGS, **DYNAMIC}[spelling])
    with watched(student) as seen:
        student.f(doubles(2, 3))
    assert any("layer_norm" in name for name in seen.counts)


def test_a_composite_function_is_found_by_its_name(connection: WorkerConnection) -> None:
    code = (
        "from torch import nn\n"
        "def f(x): return nn.MultiheadAttention(4, 2, batch_first=True).double()(x, x, x)[0]\n"
    )
    student = student_at(connection, code)
    with watched(student) as seen:
        student.f(doubles(2, 3, 4))
    assert "torch.multi_head_attention_forward" in seen.counts


def test_a_name_of_the_students_own_is_not_forbidden(connection: WorkerConnection) -> None:
    text = "from layer_norm import LayerNorm\ndef layer_norm(x): return LayerNorm(3)(x)\n"
    assert code_at(connection, text, forbidden=PATTERNS).forbidden_in_source() == []


# --- names ----------------------------------------------------------------------------------------

NAMES = (
    *("call", "get", "raises", "seed", "watched", "forbidden", "connection", "code", "load"),
    *("close", "function", "subject", "sharing", "manual_seed", "forbidden_in_source"),
)
ANY_NAMES = "".join(
    f"def {name}(x):\n    if x < 0: raise ValueError(x)\n    return [{name!r}, x]\n\n"
    for name in NAMES
)
SUITE = f'''
import pytest
from grader.testing import expect, manual_seed, raises, sharing, watched

@pytest.mark.points(8)
def test_names(student):
    """Every name is the exercise's own."""
    manual_seed(student, 1)
    expect(student.raises(2) == ["raises", 2], "student.raises is not the exercise's")
    for name in {NAMES!r}:
        with watched(student), sharing(student):
            expect(getattr(student, name)(1) == [name, 1], f"{{name}} is not the exercise's")
        with raises(student, "ValueError"):
            getattr(student, name)(-1)
'''


@pytest.fixture
def course_of_any_names(tiny_copy: Path) -> Path:
    folder = tiny_copy / "reference" / "scale"
    (folder / "solution.py").write_text(ANY_NAMES)
    (folder / "test_hidden.py").write_text(SUITE)
    settings = folder / "exercise.toml"
    settings.write_text(
        settings.read_text().replace('"scale", "Scale"', ", ".join(map(repr, NAMES)))
    )
    (folder / "faults.toml").write_text("")
    return tiny_copy


def test_an_exercise_may_define_functions_of_any_name(
    course_of_any_names: Path, grade: Grade
) -> None:
    result = grade(load_course(course_of_any_names), {"scale": ANY_NAMES}).exercises[0]
    assert [test.message for test in result.tests if test.outcome != "passed"] == []
    assert result.passed


@pytest.mark.slow
def test_an_exercise_may_define_functions_of_any_name_in_an_editor_too(
    course_of_any_names: Path,
) -> None:
    suite = course_of_any_names / "reference" / "scale" / "test_hidden.py"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(suite)],
        check=False,
        capture_output=True,
        text=True,
        cwd=course_of_any_names,
    )
    assert "1 passed" in done.stdout, done.stdout + done.stderr


# --- errors and limits ----------------------------------------------------------------------------


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


def test_a_lost_worker_costs_the_rest_of_the_test_and_no_more(connection: WorkerConnection) -> None:
    code = "import os\ndef die(): os._exit(3)\ndef one(): return 1\n"
    student = student_at(connection, code)
    with pytest.raises(StudentFailure, match="exit code 3"):
        student.die()
    with pytest.raises(StudentFailure, match="exit code 3"):
        student.one()
    connection.begin(2)
    assert student.one() == 1


@pytest.mark.slow
def test_the_worker_sees_a_clean_environment(student: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    os.environ["GRADER_TEST_SECRET"] = "x"
    try:
        with Zygote() as fresh:
            connection = WorkerConnection(lambda: Worker(fresh))
            connection.begin(1)
            seen = student_at(connection).environment()
            connection.close()
    finally:
        del os.environ["GRADER_TEST_SECRET"]
    assert "GRADER_TEST_SECRET" not in seen
    assert set(seen) == {
        *("PATH", "LANG", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"),
        *("HOME", "TMPDIR", "TORCHINDUCTOR_CACHE_DIR", "PYTORCH_JIT"),
    }
    assert str(Path.home()) not in seen.values()


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


def running(pid: int) -> bool:
    try:
        return "(zombie)" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False


# --- transports without a process -----------------------------------------------------------------


class InProcess:
    """A transport to a server in this process."""

    layers = ("none",)

    def __init__(self, tamper: Callable[[wire.Answer], wire.Answer] = lambda a: a) -> None:
        self._server, self._tamper = Server(), tamper

    def post(self, request: wire.Quiet) -> None:
        self._server.answer(request)

    def request(self, request: Any, seconds: float) -> wire.Answer:
        answer = self._server.answer(wire.decode_request(wire.encode(request)))
        assert answer is not None
        return self._tamper(wire.decode_answer(wire.encode(answer)))

    def discard(self) -> None:
        pass

    def close(self) -> None:
        pass


class Late(InProcess):
    """A transport whose calls take all the time they are given, by a clock of its own."""

    def __init__(self, clock: SimpleNamespace) -> None:
        super().__init__()
        self._clock = clock

    def request(self, request: Any, seconds: float) -> wire.Answer:
        if not isinstance(request, wire.Call):
            return super().request(request, seconds)
        self._clock.now += seconds
        raise StudentFailure("Timeout", f"late after {seconds:g} seconds")


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


def test_proxies_work_on_any_transport() -> None:
    connection = WorkerConnection(InProcess)
    connection.begin(1)
    x = doubles(2, 3).requires_grad_()
    student_at(connection).softmax(x)[0, 0].backward()
    assert x.grad is not None


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
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forged_answer_is_the_students_failure(forgery: str) -> None:
    connection = WorkerConnection(lambda: InProcess(replaced(**FORGERIES[forgery])))
    connection.begin(1)
    student = student_at(connection)
    with pytest.raises(StudentFailure, match="your code"), sharing(student):
        student.softmax(doubles(2, 3))
