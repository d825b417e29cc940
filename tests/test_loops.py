"""Python loops are found however they are written; code without them is let alone."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from commandline import Grade
from remote_code import student_at

from grader.course.course import Course
from grader.errors import Mismatch, StudentFailure
from grader.grading.rng import Rng
from grader.sandbox.host.connection import WorkerConnection
from grader.sandbox.host.proxies import code_of
from grader.testing import assert_vectorised

START = """
import functools, itertools, math, operator, sys, threading, torch, types
import numpy as np
from functools import lru_cache, reduce
from torch import nn
"""
# Ways to work on one number after the other; each is the body of a function of the tensor `x`,
# which has the shape (n, 4), and returns a tensor.
LOOPS = {
    "over rows": "return torch.stack([row.exp() for row in x])",
    "over numbers": (
        "out = torch.empty(len(x))\n"
        "    for n, row in enumerate(x.tolist()):\n"
        "        out[n] = sum(row)\n"
        "    return out"
    ),
    "over lists of numbers": (
        "return torch.tensor([[math.sin(v) for v in row] for row in x.tolist()])"
    ),
    "in a generator": "return torch.tensor(list(math.sin(v) for v in x[:, 0].tolist()))",
    "in a generator's function": (
        "def each():\n        yield from map(math.sin, x[:, 0].tolist())\n"
        "    return torch.tensor([*each()])"
    ),
    "in map": "return torch.tensor(list(map(lambda v: v + 1, x[:, 0].tolist())))",
    "in map of C": "return torch.tensor(list(map(math.sin, x[:, 0].tolist())))",
    "in map of a partial": (
        "return torch.tensor(list(map(functools.partial(math.pow, 2), x[:, 0].tolist())))"
    ),
    "in starmap": (
        "pairs = zip(x[:, 0].tolist(), x[:, 1].tolist())\n"
        "    return torch.tensor([*itertools.starmap(math.atan2, pairs)])"
    ),
    "in accumulate": (
        "return torch.tensor([*itertools.accumulate(x[:, 0].tolist(), operator.mul)])"
    ),
    "in reduce": "return torch.tensor(reduce(operator.add, x[:, 0].tolist()))",
    "in filter": "return torch.tensor([*filter(math.isfinite, x[:, 0].tolist())])",
    "in the base of map": (
        "return torch.tensor([*(map.__base__ if map.__base__ is not object else map)"
        "(math.sin, x[:, 0].tolist())])"
    ),
    "in the type of an object of map": (
        "made = type(map(int, []))\n"
        "    made = map if made is types.GeneratorType else made\n"
        "    return torch.tensor([*made(math.sin, x[:, 0].tolist())])"
    ),
    "in starmap of another module": (
        "import collections\n"
        "    pairs = zip(x[:, 0].tolist(), x[:, 1].tolist())\n"
        "    return torch.tensor([*collections._starmap(math.atan2, pairs)])"
    ),
    "in reduce of C": (
        "import _functools\n"
        "    return torch.tensor(_functools.reduce(operator.add, x[:, 0].tolist()))"
    ),
    "in what reduce holds": (
        "held = [c.cell_contents for c in reduce.__closure__ or ()]\n"
        "    own = [f for f in held if type(f) is type(len)]\n"
        "    return torch.tensor((own or [reduce])[0](operator.add, x[:, 0].tolist()))"
    ),
    "in what np.frompyfunc holds": (
        "made = np.frompyfunc\n"
        "    held = [c.cell_contents for c in getattr(made, '__closure__', None) or ()]\n"
        "    held += [v for n in ('__wrapped__', 'func') if (v := getattr(made, n, 0))]\n"
        "    made = (held or [made])[0]\n"
        "    return torch.from_numpy(made(math.sin, 1, 1)(x.numpy()).astype(float))"
    ),
    "in groupby": "return torch.tensor([*dict(itertools.groupby(x[:, 0].tolist(), math.sin))])",
    "in a thread of an old name": (
        "import _thread\n"
        "    out, lock = [], _thread.allocate_lock()\n"
        "    def work():\n"
        "        for row in x.tolist(): out.append(sum(row))\n"
        "        lock.release()\n"
        "    lock.acquire(); _thread.start_new(work, ()); lock.acquire()\n"
        "    import time; time.sleep(0.01)\n"
        "    return torch.tensor(out)"
    ),
    "in the sum of a tensor": "return sum(x)",
    "in while": (
        "out, n = [], 0\n"
        "    while n < len(x): out.append(math.exp(x[n, 0])); n += 1\n"
        "    return torch.tensor(out)"
    ),
    "in a recursion": (
        "def each(v): return [math.sin(v[0]), *each(v[1:])] if v else []\n"
        "    return torch.tensor(each(x[:, 0].tolist()))"
    ),
    "in halves": (
        "def each(v): return [math.sin(v[0])] if len(v) < 2 else each(v[::2]) + each(v[1::2])\n"
        "    return torch.tensor(each(x[:, 0].tolist()))"
    ),
    "over an array of NumPy": (
        "out = np.zeros(len(x))\n"
        "    for n in range(len(x)): out[n] = np.sin(x[n, 0].item())\n"
        "    return torch.from_numpy(out)"
    ),
    "in np.vectorize": "return torch.from_numpy(np.vectorize(lambda v: v + 1)(x.numpy()))",
    "in np.vectorize of C": "return torch.from_numpy(np.vectorize(math.sin)(x.numpy()))",
    "in np.frompyfunc": (
        "return torch.from_numpy(np.frompyfunc(math.sin, 1, 1)(x.numpy()).astype(float))"
    ),
    "in np.apply_along_axis": "return torch.tensor(np.apply_along_axis(np.mean, 1, x.numpy()))",
    "in np.fromiter": (
        "return torch.from_numpy(np.fromiter(map(math.sin, x[:, 0].tolist()), float))"
    ),
    "in apply_": "return x.clone().apply_(math.sin)",
    "in a thread": (
        "out = []\n"
        "    def work():\n"
        "        for row in x.tolist(): out.append(sum(row))\n"
        "    thread = threading.Thread(target=work); thread.start(); thread.join()\n"
        "    return torch.tensor(out)"
    ),
    "in threads": (
        "out = [0.0] * len(x)\n"
        "    def work(n): out[n] = float(x[n, 0])\n"
        "    threads = [threading.Thread(target=work, args=(n,)) for n in range(len(x))]\n"
        "    for thread in threads: thread.start()\n"
        "    for thread in threads: thread.join()\n"
        "    return torch.tensor(out)"
    ),
    "in exec": (
        "space = {'x': x.tolist(), 'out': []}\n"
        "    exec('for row in x: out.append(sum(row))', space)\n"
        "    return torch.tensor(space['out'])"
    ),
    "in code for each size": (
        "space = {'rows': iter(x.tolist()), 'out': []}\n"
        "    exec('out.append(sum(next(rows)));' * len(x), space)\n"
        "    return torch.tensor(space['out'])"
    ),
    "in code with a line for each size": (
        "space = {'rows': iter(x.tolist()), 'out': []}\n"
        "    exec('out.append(sum(next(rows)))\\n' * len(x), space)\n"
        "    return torch.tensor(space['out'])"
    ),
    "in code of a file of torch": (
        "space = {'x': x.tolist(), 'out': []}\n"
        "    code = compile('for row in x: out.append(sum(row))', torch.__file__, 'exec')\n"
        "    exec(code, space)\n"
        "    return torch.tensor(space['out'])"
    ),
    "in an iterator's class": (
        "class Each:\n"
        "        def __getitem__(self, n): return math.sin(x[n, 0])\n"
        "        def __len__(self): return len(x)\n"
        "    return torch.tensor(list(Each()))"
    ),
    "in a helper that keeps what it gets": (
        "return cached(tuple(x[:, 0].tolist()))\n"
        "@lru_cache\ndef cached(values): return torch.tensor([math.sin(v) for v in values])"
    ),
    "with answers kept by their question": (
        "key = str(x.tolist())\n"
        "    if key not in kept: kept[key] = torch.tensor([sum(row) for row in x.tolist()])\n"
        "    return kept[key]\n"
        "kept = {}"
    ),
    "with the first answers padded": (
        "for _ in range(60 - len(x)): pass\n"
        "    return torch.tensor([math.sin(v) for v in x[:, 0].tolist()])"
    ),
    "in the constructor": (
        "return Table(len(x)).table\n"
        "class Table(nn.Module):\n"
        "    def __init__(self, n):\n"
        "        super().__init__()\n"
        "        self.table = torch.tensor([[math.sin(p), math.cos(p)] for p in range(n)])"
    ),
    "in a helper that keeps tables by size": (
        "return x + table(len(x))\n"
        "@lru_cache\ndef table(n): return torch.tensor([[math.sin(p)] for p in range(n)])"
    ),
    "in a helper that grows its table": (
        "while len(table) < len(x): table.append(math.sin(len(table)))\n"
        "    return x + torch.tensor(table[:len(x)])[:, None]\n"
        "table = []"
    ),
}
# The same for code whose results are compared: each is right for a few rows.
CONSTANT = {
    "as often for every size": "for n in range(300): out[n % len(x)] = math.sin(x[n % len(x)])",
    "for small sizes only": "for n in range(len(x) if len(x) < 9 else 0): out[n] = math.sin(x[n])",
    "up to a size": "for n in range(90): out[n % len(x)] = math.sin(x[n % len(x)])",
}
# Ways to switch the watch off: the loop follows.
OFF: dict[str, str] = {
    "the trace": "sys.settrace(None)",
    "the trace for a while": (
        "trace = sys.gettrace(); sys.settrace(None); y = once(x); sys.settrace(trace); return y"
    ),
    "the profile": "sys.setprofile(lambda *_: None)",
    "the trace of threads": "threading.settrace(None); sys.settrace(lambda *_: None)",
    "the trace of a frame": "sys._getframe().f_trace = None",
    "the lines of a frame": "sys._getframe().f_trace_lines = False",
}
OFF["the trace by what settrace holds"] = (
    "held = [c.cell_contents for c in getattr(sys.settrace, '__closure__', None) or ()]\n"
    "    trace = sys.gettrace(); (held or [sys.settrace])[0](None); y = once(x)\n"
    "    (held or [sys.settrace])[0](trace); return y"
)
HIDDEN = re.compile("switched off the grader.s watch|replace the Python loop")
# Right code, with what may grow, or happen once.
RIGHT = {
    "in one operation": "return x.exp()",
    "over layers": "for layer in range(5): x = x + layer\n    return x",
    "under vmap": "return torch.vmap(lambda row: row - row.mean())(x)",
    "with arrays of NumPy": "return torch.from_numpy(np.sin(x.numpy()))",
    "with a mask by size": (
        "return x + mask(len(x))\n@lru_cache\ndef mask(n): return torch.ones(n, 1).tril()"
    ),
    "with a mask that grows": (
        "if len(masks[-1]) < len(x): masks.append(torch.arange(len(x)))\n"
        "    return x + masks[-1][:len(x), None]\nmasks = [torch.arange(0)]"
    ),
    "with a module made": "return nn.Sequential(nn.Linear(4, 3), nn.ReLU()).double()(x)",
    "with checks": "assert x.dim() == 2 and all(s > 0 for s in x.shape)\n    return x * 2",
    "printing": "print(x, x.tolist(), f'{x.sum():.3f}', np.array(x))\n    return x * 2",
    "with map over the axes": "return x.sum(tuple(map(int, (0, 1))))",
    "in einsum": "return torch.einsum('nd,md->nm', x, x)",
    "in a generator of parts": "return torch.cat(list(part * 2 for part in x.chunk(2, -1)), -1)",
}


def judged(connection: WorkerConnection, body: str, *, grad: bool = False) -> None:
    """Look for a loop over the rows of `x` in a function `f(x)`."""
    student: Any = student_at(connection, f"{START}\ndef f(x):\n    {body}\n")
    rng = Rng(5)

    def called(n: int = 3) -> Any:
        x = rng.randn(n, 4).requires_grad_(grad)
        return lambda: student.f(x)

    assert_vectorised(student, called, {"rows": {"n": (17, 36)}})


@pytest.mark.parametrize("how", LOOPS)
def test_a_loop_is_found(how: str, connection: WorkerConnection) -> None:
    with pytest.raises(Mismatch, match="replace the Python loop by operations on whole tensors"):
        judged(connection, LOOPS[how])


@pytest.mark.parametrize("how", CONSTANT)
def test_code_does_not_work_in_another_way_for_larger_sizes(
    how: str, connection: WorkerConnection
) -> None:
    text = f"out = torch.zeros(len(x))\n    {CONSTANT[how]}\n    return out"
    student: Any = student_at(connection, f"{START}\ndef f(x):\n    {text}\n")
    rng, reference = Rng(5), SimpleNamespace(f=torch.sin)

    def called(n: int = 3) -> Any:
        x = rng.randn(n, dtype=torch.float32)
        return lambda code: code.f(x)

    with pytest.raises(Mismatch, match=r"runs 301 times|right for small tensors, but not"):
        assert_vectorised(student, called, {"rows": {"n": (107, 215)}}, reference)


@pytest.mark.parametrize("how", OFF)
def test_switching_off_the_watch_is_seen(how: str, connection: WorkerConnection) -> None:
    loop = "return once(x)\ndef once(x): return torch.tensor([sum(row) for row in x.tolist()])"
    with pytest.raises((Mismatch, StudentFailure), match=HIDDEN):
        judged(connection, f"{OFF[how]}\n    {loop}")


SAME = {  # what gives the same as in plain Python
    "map": "[*map(pow, [1, 2, 3], [4, 5])], next(map(str, [7])), [*map(int, [])]",
    "filter": "[*filter(None, [0, 1, '', 'a'])], [*filter(lambda v: v > 1, [1, 2, 3])]",
    "filterfalse": "[*itertools.filterfalse(None, [0, 1])]",
    "takewhile": "[*itertools.takewhile(lambda v: v < 2, [1, 2, 1])]",
    "dropwhile": "[*itertools.dropwhile(lambda v: v < 2, [1, 2, 1])]",
    "accumulate": (
        "[*itertools.accumulate([1, 2, 3])], [*itertools.accumulate([], initial=5)],"
        "[*itertools.accumulate([2, 3], operator.mul, initial=2)]"
    ),
    "groupby": (
        "[(k, [*g]) for k, g in itertools.groupby('aabca')],"
        "[k for k, g in itertools.groupby([1, 3, 2, 4, 5], key=lambda v: v % 2)],"
        "[*itertools.groupby([])], [[*g][:1] for k, g in itertools.groupby([1, 1, 2])]"
    ),
    "reduce": "reduce(operator.add, [1, 2], 3), reduce(operator.add, ['a'])",
}


@pytest.mark.parametrize("what", SAME)
def test_what_calls_back_gives_what_python_gives(what: str, connection: WorkerConnection) -> None:
    student: Any = student_at(connection, f"{START}\ndef f():\n    return repr(({SAME[what]},))\n")
    space: dict[str, Any] = {}
    exec(START, space)
    with code_of(student).watched("work"):
        assert student.f() == repr(eval(f"({SAME[what]},)", space))


@pytest.mark.parametrize("how", RIGHT)
def test_code_without_a_loop_is_no_loop(how: str, connection: WorkerConnection) -> None:
    judged(connection, RIGHT[how])


def test_a_loop_is_named_by_its_line(connection: WorkerConnection) -> None:
    with pytest.raises(Mismatch) as failure:
        judged(connection, "out = []\n    for row in x.tolist():\n        out.append(sum(row))")
    line = START.count("\n") + 4
    assert failure.value.message == (
        f"line {line} of m.py ran 18 times, not 4, when only the number of rows grew: "
        "replace the Python loop by operations on whole tensors"
    )


KEPT = """
kept = {{}}
def once(function):
    @functools.wraps(function)
    def answer(*given):
        key = str([x.tolist() if isinstance(x, torch.Tensor) else x for x in given])
        if key not in kept:
            kept[key] = function(*given)
        return kept[key]
    return answer
"""
# Right code of whole exercises that works on one number after the other.
EXERCISES = {
    ("masked_softmax", "test_no_python_loops"): f"""{START}{KEPT.format()}
@once
def masked_softmax(X, valid_lens):
    batch, n_queries, n_keys = X.shape
    out = []
    for b in range(batch):
        for q in range(n_queries):
            n = n_keys
            if valid_lens is not None:
                n = valid_lens[b] if valid_lens.dim() == 1 else valid_lens[b, q]
            valid = torch.arange(n_keys) < n
            row = torch.softmax(X[b, q].masked_fill(~valid, -torch.inf), -1)
            out.append(row.masked_fill(~valid, 0.0))
    return torch.stack(out).view(X.shape)
""",
    ("layer_norm", "test_no_python_loops"): f"""{START}{KEPT.format()}
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))
        self.eps = eps
    def forward(self, x):
        return self.gamma * rows(x, self.eps) + self.beta
@once
def rows(x, eps):
    flat = x.reshape(-1, x.shape[-1])
    out = [(r - r.mean()) / torch.sqrt(r.var(correction=0) + eps) for r in flat]
    return torch.stack(out).view(x.shape)
""",
    ("positional_encoding", "test_any_input"): f"""{START}
@lru_cache
def numbers(n_tokens, d_model, base):
    return [[(math.cos if c % 2 else math.sin)(p / base ** (c // 2 * 2 / d_model))
             for c in range(d_model)] for p in range(n_tokens)]
def sinusoidal(n_tokens, d_model, base=10000.0):
    return torch.tensor(numbers(n_tokens, d_model, base))
""",
}


@pytest.mark.parametrize(("exercise", "check"), EXERCISES)
def test_an_exercise_in_loops_fails_its_check_of_loops(
    exercise: str, check: str, course: Course, grade: Grade
) -> None:
    text = course[exercise].read("solution.py")
    loops = EXERCISES[exercise, check]
    if exercise == "positional_encoding":  # the module stays the right one
        text = text.replace("def sinusoidal(", "def right_table(")
        loops = text + loops
    results = grade(course, {exercise: loops}).exercises
    (result,) = [each for each in results if each.name == exercise]
    tests = {test.name: test for test in result.tests}
    assert "replace the Python loop" in tests[check].message
