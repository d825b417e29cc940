"""Code that hides from the watch earns less, and code that hides nothing earns everything.

Every evasion computes right values. It is graded in a class, between neighbours.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from classroom import hand_in, report_of
from commandline import Cli, Grade
from remote_code import LIMITS, code_at

from grader.course.course import Course
from grader.errors import StudentFailure
from grader.sandbox import wire
from grader.sandbox.host.connection import Subject, WorkerConnection
from grader.sandbox.host.proxies import RemoteCode, Student

pytestmark = pytest.mark.in_turn

NORM = """
import threading
import torch
import torch._C as C
from torch import nn
from torch.utils._python_dispatch import _disable_current_modes
kernel = getattr(torch.ops.aten, "_".join(["native", "layer", "norm"])).default

class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))
        self.eps = eps
    def all_of_it(self, x):
        return kernel(x, x.shape[-1:], self.gamma, self.beta, self.eps)[0]
    def rows(self, x):
        flat = x.reshape(-1, x.shape[-1])
        rows = [(row - row.mean()) / torch.sqrt(row.var(correction=0) + self.eps) for row in flat]
        return self.gamma * torch.stack(rows).view(x.shape) + self.beta
"""
KERNEL = {  # ways to run the kernel that does the exercise: the body of `forward`
    "plainly": "return self.all_of_it(x)",
    "without dispatch modes": "with _disable_current_modes(): return self.all_of_it(x)",
    "without any modes": (
        "with C.DisableTorchFunction(), _disable_current_modes(): return self.all_of_it(x)"
    ),
    "under a guard": ("guard = C._DisableTorchDispatch()\n        return self.all_of_it(x)"),
    "with the modes popped": (
        "one, two = C._pop_torch_function_stack(), C._pop_torch_dispatch_stack(None)\n"
        "        out = self.all_of_it(x)\n"
        "        C._push_on_torch_function_stack(one); C._push_on_torch_dispatch_stack(two)\n"
        "        return out"
    ),
    "by redispatch": (
        "keys = C.DispatchKeySet(C.DispatchKey.CPU)\n"
        "        return kernel.redispatch(keys, x, x.shape[-1:], self.gamma, self.beta, 1e-5)[0]"
    ),
    "by the kernel of a key": (
        "return kernel._op_dk(C.DispatchKey.CPU, x, x.shape[-1:], self.gamma, self.beta, 1e-5)[0]"
    ),
    "with the record off": (
        "torch.autograd._enable_record_function(False)\n"
        "        with C.DisableTorchFunction(), _disable_current_modes(): out = self.all_of_it(x)\n"
        "        torch.autograd._enable_record_function(True)\n        return out"
    ),
    "with the record ended": (
        "torch._C._autograd._disable_profiler_legacy()\n"
        "        with C.DisableTorchFunction(), _disable_current_modes(): out = self.all_of_it(x)\n"
        "        return out"
    ),
    "in a thread": (
        "out = []\n"
        "        thread = threading.Thread(target=lambda: out.append(self.all_of_it(x)))\n"
        "        thread.start(); thread.join()\n        return out[0]"
    ),
    "under vmap": "return torch.func.vmap(self.all_of_it)(x)",
    "in an operation of its own": (
        "library = torch.library.Library('own', 'FRAGMENT')\n"
        "        library.define('all_of_it(Tensor x) -> Tensor')\n"
        "        library.impl('all_of_it', self.all_of_it, 'CompositeExplicitAutograd')\n"
        "        return torch.ops.own.all_of_it(x)"
    ),
}
WATCHED_NORM = {
    name: f"{NORM}    def forward(self, x):\n        {b}\n" for name, b in KERNEL.items()
}
WATCHED_NORM |= {
    "in a thread that was there before": f"""{NORM}
    def forward(self, x):
        asked.put((self, x)); return answered.get()
import queue
asked, answered = queue.Queue(), queue.Queue()
def work():
    while True:
        module, x = asked.get()
        answered.put(module.all_of_it(x))
threading.Thread(target=work, daemon=True).start()
""",
}
# Ways to compute the answer ahead, while the grader itself handles the arguments.
AHEAD = f"""{NORM}
    def forward(self, x):
        return ready[-1]
ready, layers = [], []
def note(x):
    if layers and isinstance(x, torch.Tensor) and x.shape[-1:] == layers[-1].gamma.shape:
        ready.append(layers[-1].all_of_it(x))
begin = LayerNorm.__init__
def __init__(self, *args, **options):
    begin(self, *args, **options)
    layers.append(self)
LayerNorm.__init__ = __init__
def noting(owner, name):
    original = getattr(owner, name)
    def noted(*args, **options):
        out = original(*args, **options)
        setattr(owner, name, original)
        note(out)
        setattr(owner, name, noted)
        return out
    setattr(owner, name, noted)
"""
# The same, when anything calls a function of another module after the arguments have arrived: the
# newest tensor that the garbage collector knows.
ARRIVED = f"""{AHEAD}
import builtins, collections, gc, sys, _thread
calls, is_watched = [], C._len_torch_function_stack
def peek(*_):
    if layers and not calls and not is_watched():
        calls.append(1)
        for each in gc.get_objects()[-2000:]:
            gamma = layers[-1].gamma
            if type(each) is torch.Tensor and each.ndim > 1 and each.dtype == gamma.dtype:
                if each.shape[-1:] == gamma.shape:
                    ready.append(layers[-1].all_of_it(each))
        calls.clear()
def peeking(owner, name):
    original = getattr(owner, name)
    def peeked(*args, **options):
        peek()
        return original(*args, **options)
    setattr(owner, name, peeked)
"""
AHEAD_OF_THE_WATCH = {
    "in methods that handle tensors": (
        f"{AHEAD}for name in ('view', 'requires_grad_'):\n    noting(torch.Tensor, name)\n"
    ),
    "in a profile hook": f"""{AHEAD}
import sys
def hook(frame, event, arg):
    if event == "return" and frame.f_code.co_name == "unpack":
        sys.setprofile(None); note(arg); sys.setprofile(hook)
sys.setprofile(hook)
""",
    "in functions that are built in": (
        f"{ARRIVED}for name in ('getattr', 'isinstance', 'len', 'vars'):\n"
        "    peeking(builtins, name)\n"
    ),
    "in functions of torch's modes": (
        f"{ARRIVED}import torch.overrides\n"
        "peeking(torch, 'set_grad_enabled'); peeking(torch.overrides, '_push_mode')\n"
        "peeking(torch.overrides.TorchFunctionMode, '__init__')\n"
        "peeking(torch.overrides.TorchFunctionMode, '__enter__')\n"
    ),
    "in functions of Python's modules": (
        f"{ARRIVED}import secrets\n"
        "peeking(_thread, '_count'); peeking(collections.Counter, '__init__')\n"
        "peeking(gc, 'isenabled'); peeking(secrets, 'token_hex')\n"
    ),
    "in a name of the module": f"""{ARRIVED}
class Name(str):
    def __eq__(self, other): peek(); return str.__eq__(self, other)
    __hash__ = str.__hash__
globals()[Name('rows_of')] = 1
""",
    "while garbage is collected": f"{ARRIVED}gc.callbacks.append(peek); gc.set_threshold(1)\n",
    "in a mode that is left": f"""{ARRIVED}
class Mode(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        frame = sys._getframe()
        while frame.f_code.co_name not in ('unpack', 'forward') and frame.f_back:
            frame = frame.f_back
        if frame.f_code.co_name == 'unpack':
            peek()
        return function(*args, **(kwargs or {{}}))
Mode().__enter__()
""",
    "where the watch reports": f"""{NORM}
    def forward(self, x):
        msgspec.structs.replace = lambda reply, **fields: reply
        return self.all_of_it(x)
import msgspec
""",
}
LAZY = f"""{NORM}
    def forward(self, x):
        out = torch.zeros_like(x).as_subclass(Lazy)
        out.compute = lambda: self.all_of_it(x)
        return out
class Lazy(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        with C.DisableTorchFunctionSubclass():
            if "compute" in vars(args[0]):
                args[0].copy_(vars(args[0]).pop("compute")())
            return function(*args, **(kwargs or {{}}))
"""
ROWS = {  # ways to run a loop over rows
    "plainly": "return self.rows(x)",
    "without function modes": "with C.DisableTorchFunction(): return self.rows(x)",
    "in a backward": (
        "out = []\n"
        "        y = torch.zeros((), requires_grad=True)\n"
        "        y.register_hook(lambda g: out.append(self.rows(x)))\n"
        "        with torch.enable_grad(): (y * 1).backward()\n"
        "        return out[0]"
    ),
    "in a subclass": "return self.rows(x.as_subclass(Quiet)).as_subclass(torch.Tensor)",
    "while torch looks at an argument": (
        "out = []\n"
        "        class Size:\n"
        "            def __index__(_):\n"
        "                out.append(self.rows(x)); return 1\n"
        "        torch.zeros(Size())\n"
        "        return out[0]"
    ),
    "while torch looks at an index": (
        "out = []\n"
        "        class Place:\n"
        "            def __index__(_):\n"
        "                out.append(self.rows(x)); return 0\n"
        "        x[Place():]\n"
        "        return out[0]"
    ),
}
QUIET = """
class Quiet(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        with C.DisableTorchFunction():
            return function(*args, **(kwargs or {}))
"""
HONEST = f"""{NORM}
    def forward(self, x):
        print(x[:1], f"{{x.sum():.2f}}")
        mean, var = x.mean(-1, keepdim=True), x.var(-1, keepdim=True, correction=0)
        return self.gamma * (x - mean) / torch.sqrt(var + self.eps) + self.beta
"""


# What right code may do besides, where torch runs operations that no function is seen to call.
HARMLESS = {
    "makes tensors": (
        "torch.Tensor([1.0, 2.0]); torch.FloatTensor(3).fill_(0); torch.Tensor(x.tolist())\n"
        "        torch.tensor([x.sum(), x.mean()]); nn.Parameter(x.detach().clone()); x.new([1, 2])"
    ),
    "formats": "print(x); print(f'{x.sum():.3f}', self.gamma, repr(x.double()), x > 0)",
    "reads numbers": "float(x.sum()), int(x.sum()), bool(x.sum() > 0), x.tolist(), x.sum().item()",
    "indexes": (
        "x[..., 0]; x[x > 0]; x[..., torch.tensor([0])]; x[None, ..., -1:]; x[..., [0, 0]]\n"
        "        y = x.clone(); y[..., 0] = 1; y[y > 0] = 0; y[..., :1] += x[..., :1]"
    ),
    "maps": "torch.vmap(lambda r: r - r.mean())(x); torch.func.vmap(torch.sum)(x)",
    "differentiates": (
        "torch.func.grad(lambda v: (v**2).sum())(torch.ones(3))\n"
        "        v = torch.ones(3, requires_grad=True)\n"
        "        with torch.enable_grad(): torch.autograd.backward((v**2).sum())"
    ),
    "differentiates forward": (
        "torch.func.jvp(lambda v: v**2, (torch.ones(3),), (torch.ones(3),))\n"
        "        torch.func.jacfwd(lambda v: v**2)(torch.ones(3))"
    ),
    "has a function of its own differentiated": (
        "class Twice(torch.autograd.Function):\n"
        "            forward = staticmethod(lambda ctx, v: v * 2)\n"
        "            backward = staticmethod(lambda ctx, g: g * 2)\n"
        "        Twice.apply(x)"
    ),
    "writes with out": "torch.add(x.detach(), 1, out=torch.empty(x.shape, dtype=x.dtype))",
    "switches gradients": "\n        ".join(
        f"with {context}: x.mean() * 2"
        for context in ("torch.no_grad()", "torch.inference_mode()", "torch.autocast('cpu')")
    ),
    "copies": "import copy; copy.deepcopy(self); copy.copy(x); torch.empty_like(x).copy_(x)",
    "makes modules": (
        "nn.Sequential(nn.Linear(3, 3), nn.ReLU())(torch.ones(2, 3)); nn.LazyLinear(2)(x.float())\n"
        "        nn.init.xavier_uniform_(torch.empty(3, 3))"
    ),
    "compiles": (
        "@torch.jit.script\n        def twice(v: torch.Tensor): return v * 2\n        twice(x)"
    ),
    "has a mode of its own": (
        "from torch.overrides import TorchFunctionMode\n"
        "        class Mode(TorchFunctionMode):\n"
        "            def __torch_function__(self, f, types, args=(), kwargs=None):\n"
        "                return f(*args, **(kwargs or {}))\n"
        "        with Mode(): x + 1"
    ),
    "draws": (
        "state = torch.get_rng_state(); torch.manual_seed(1); torch.rand_like(x)\n"
        "        torch.randn(3, generator=torch.Generator()); torch.set_rng_state(state)"
    ),
}


def outcomes_of(out: Path, name: str) -> dict[str, dict[str, Any]]:
    (exercise,) = [e for e in report_of(out, name)["exercises"] if e["name"] == "layer_norm"]
    return {test["name"]: test for test in exercise["tests"]}


@pytest.fixture
def graded(cli: Cli, course: Course, tmp_path: Path) -> Any:
    """Grade a class of layer norms with an honest student between any two."""

    def grading(texts: list[str]) -> list[dict[str, dict[str, Any]]]:
        files = {f"s{2 * n + 2:03}/layer_norm.py": text for n, text in enumerate(texts)}
        files |= {f"s{2 * n + 1:03}/layer_norm.py": HONEST for n in range(len(texts) + 1)}
        out = tmp_path / "out"
        said = cli(
            *("batch", hand_in(tmp_path / "class", files), "--out", out, "--course", course.root)
        )
        assert said.code in (0, 1), said.err
        for n in range(len(texts) + 1):
            honest = outcomes_of(out, f"s{2 * n + 1:03}")
            assert {t["message"] for t in honest.values() if t["outcome"] != "passed"} == set()
        return [outcomes_of(out, f"s{2 * n + 2:03}") for n in range(len(texts))]

    return grading


@pytest.mark.slow
def test_no_way_around_the_watch_runs_the_kernel(graded: Any) -> None:
    found = graded(list(WATCHED_NORM.values()))
    kinds = {h: tests["test_written_by_hand"]["kind"] for h, tests in zip(WATCHED_NORM, found)}
    assert {how for how, kind in kinds.items() if kind != "Forbidden"} == set()


@pytest.mark.slow
def test_nothing_is_computed_while_the_grader_unpacks_arguments(graded: Any) -> None:
    found = graded(list(AHEAD_OF_THE_WATCH.values()))
    checks = "test_formula", "test_written_by_hand"
    outcomes = {
        how: {tests[name]["outcome"] for name in checks}
        for how, tests in zip(AHEAD_OF_THE_WATCH, found)
    }
    assert [how for how, each in outcomes.items() if each == {"passed"}] == []


@pytest.mark.slow
def test_an_answer_that_is_computed_when_it_is_read_is_never_computed(graded: Any) -> None:
    (tests,) = graded([LAZY])
    assert tests["test_formula"]["outcome"] == "failed"


@pytest.mark.slow
def test_no_way_around_the_watch_runs_a_loop(graded: Any) -> None:
    texts = [f"{NORM}    def forward(self, x):\n        {b}\n{QUIET}" for b in ROWS.values()]
    found = graded(texts)
    passed = [
        how
        for how, tests in zip(ROWS, found)
        if tests["test_no_python_loops"]["outcome"] == "passed"
    ]
    assert passed == []


@pytest.mark.slow
def test_right_code_in_any_style_earns_everything(graded: Any) -> None:
    right = HONEST.replace('print(x[:1], f"{x.sum():.2f}")', "{besides}")
    assert right != HONEST
    found = graded([right.replace("{besides}", besides) for besides in HARMLESS.values()])
    said = {
        how: message
        for how, tests in zip(HARMLESS, found)
        if (message := "; ".join(t["message"] for t in tests.values() if t["message"]))
    }
    assert said == {}


CONSTRUCTORS = {  # "functions" that are none
    "a class whose constructor computes": (
        "class scale:\n    def __new__(cls, x, factor): return torch.multiply(x, factor)"
    ),
    "a module's constructor that computes": (
        "class scale(nn.Module):\n    def __new__(cls, x, factor): return torch.multiply(x, factor)"
    ),
    "an object that says it is a type": (
        "class Call:\n"
        "    __class__ = property(lambda self: type)\n"
        "    def __call__(self, x, factor): return torch.multiply(x, factor)\n"
        "scale = Call()"
    ),
    "a metaclass": (
        "class Meta(type):\n"
        "    def __call__(cls, x, factor): return torch.multiply(x, factor)\n"
        "class scale(metaclass=Meta): pass"
    ),
}


@pytest.mark.parametrize("how", CONSTRUCTORS)
def test_a_constructor_is_watched_like_any_call(
    how: str, tiny_course: Course, grade: Grade
) -> None:
    text = "import torch\nfrom torch import nn\nmultiplies = 'multi' 'ply'\n" + CONSTRUCTORS[how]
    hidden = text.replace("torch.multiply", "getattr(torch, multiplies[::1])")
    (result,) = grade(tiny_course, {"scale": hidden}).exercises
    assert result.tests[0].kind == "Forbidden"
    assert "multiply does the work" in result.tests[0].message


HIDDEN = """
import _thread, ctypes, importlib, importlib.util, threading, time, torch
from torch import nn
from torch.nn import functional as F
def within(module, name): return getattr(module, name[::-1])
"""
# Functions of torch that are written in Python, by names that no text shows: `f(x)` calls one.
BY_OTHER_NAMES = {
    "masked softmax": ("masked_softmax", "within(torch.masked, 'xamtfos')(x, -1, mask=x > 0)"),
    "masked softmin": ("masked_softmax", "within(torch.masked, 'nimtfos')(x, -1, mask=x > 0)"),
    "the mask of a Transformer": (
        "causal_attention",
        "within(nn, 'remrofsnarT').generate_square_subsequent_mask(len(x))",
    ),
    "the network of an encoder layer": (
        "feed_forward",
        "within(nn, 'reyaLredocnEremrofsnarT')(4, 2, 8)._ff_block(x)",
    ),
    "a distribution": (
        "softmax_temperature",
        "within(within(torch, 'snoitubirtsid'), 'lacirogetaC')(logits=x).entropy()",
    ),
    "a reference": (
        "layer_norm",
        "within(importlib.import_module('torch._re' + 'fs'), 'ezilamron_')(x, [1], 1e-5)[0]",
    ),
    "through a function of torch": (
        "masked_softmax",
        "torch.vmap(lambda r: within(torch.masked, 'xamtfos')(r, -1))(x)",
    ),
    "in a thread": (
        "masked_softmax",
        "out = []\n"
        "    def work(): out.append(within(torch.masked, 'xamtfos')(x, -1))\n"
        "    t = threading.Thread(target=work); t.start(); t.join(); return out[0]",
    ),
}
THREADS = {  # ways to start a thread and to wait for it, as the body of `f`
    "by its old name": "_thread.start_new(work, ()); lock.acquire()",
    "by another module object": (
        "spec = importlib.util.find_spec('_thread')\n"
        "    other = importlib.util.module_from_spec(spec)\n"
        "    other.start_new_thread(work, ()); lock.acquire()"
    ),
    "by what the function holds": (
        "start = _thread.start_new_thread\n"
        "    held = [c.cell_contents for c in getattr(start, '__closure__', None) or ()]\n"
        "    (held or [start])[0](work, ()); lock.acquire()"
    ),
    "without Python": (
        "call = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(lambda _: work())\n"
        "    thread = ctypes.c_void_p()\n"
        "    library = ctypes.CDLL(None)\n"
        "    library.pthread_create(ctypes.byref(thread), None, call, None)\n"
        "    library.pthread_join(thread, None)"
    ),
}


def run_watched(code: RemoteCode) -> None:
    """Call `f` of some code as the check of code written by hand does."""
    with code.watched("all"):
        Student(code).f(torch.linspace(-1, 2, 12).view(3, 4))


@pytest.mark.parametrize("way", BY_OTHER_NAMES)
def test_what_torch_has_in_python_is_seen_when_it_runs(
    way: str, course: Course, connection: WorkerConnection
) -> None:
    exercise, body = BY_OTHER_NAMES[way]
    body = body if "return" in body else f"return {body}"
    code = code_at(
        connection, f"{HIDDEN}\ndef f(x):\n    {body}\n", forbidden=course[exercise].all_forbidden
    )
    with pytest.raises(StudentFailure, match="does the work that this exercise asks you to write"):
        run_watched(code)


@pytest.mark.parametrize("way", THREADS)
def test_no_thread_is_hidden(way: str, course: Course, connection: WorkerConnection) -> None:
    text = f"""{HIDDEN}
def f(x):
    out, lock = [], _thread.allocate_lock()
    lock.acquire()
    def work():
        for _ in range(5000): y = within(F, "mron_reyal")(x, x.shape[-1:])
        out.append(y); lock.release()
    {THREADS[way]}
    time.sleep(0.02)
    return out[0]
"""
    code = code_at(connection, text, forbidden=course["layer_norm"].all_forbidden)
    with pytest.raises(StudentFailure, match=r"thread|does the work"):
        run_watched(code)


def test_what_a_stand_in_calls_is_not_the_students(
    course: Course, connection: WorkerConnection
) -> None:
    stand_in = course["masked_softmax"].stand_in
    assert stand_in is not None
    own = (
        "from masked_softmax import masked_softmax\ndef f(x): return masked_softmax(x[None], None)"
    )
    sources = {
        "m": wire.Source("m.py", own),
        "masked_softmax": wire.Source("masked_softmax.py", stand_in, own=False),
    }
    forbidden = course["self_attention"].all_forbidden
    code = RemoteCode(connection, Subject("m", "m", sources, LIMITS, forbidden))
    run_watched(code)
    student_calls = own.replace("masked_softmax(x[None], None)", "torch.masked.softmax(x, -1)")
    sources = {**sources, "m": wire.Source("m.py", f"import torch\n{student_calls}")}
    code = RemoteCode(connection, Subject("m", "n", sources, LIMITS, forbidden))
    with pytest.raises(StudentFailure, match="masked"):
        run_watched(code)


def test_ordinary_threads_and_modules_are_let_alone(
    course: Course, connection: WorkerConnection
) -> None:
    text = f"""{HIDDEN}
def f(x):
    out = []
    def work():
        for _ in range(300): y = x.sin()
        out.append(y)
    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    model = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Dropout(0.1))
    return model(x) + out[0].sum()
"""
    run_watched(code_at(connection, text, forbidden=course["layer_norm"].all_forbidden))


def test_threads_that_end_at_the_same_time_are_let_alone(connection: WorkerConnection) -> None:
    text = """
import sys, threading
def f(x):
    interval, together = sys.getswitchinterval(), threading.Barrier(4)
    sys.setswitchinterval(1e-6)  # so that threads take turns within a line
    def work():
        for _ in range(400): x.sin()
        together.wait()
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    sys.setswitchinterval(interval)
    return x
"""
    for _ in range(10):
        run_watched(code_at(connection, text))
