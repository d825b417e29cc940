"""A suite sees which operations student code calls, however the code spells them."""

from __future__ import annotations

import contextlib
import re
from typing import Any

import pytest
import torch
from remote_code import code_at, doubles, student_at

from grader.errors import Mismatch, StudentFailure
from grader.sandbox.host.connection import WorkerConnection
from grader.sandbox.host.operations import OperationCounts
from grader.sandbox.host.proxies import Student
from grader.testing import (
    assert_linear_memory,
    assert_memory,
    assert_written_by_hand,
    watched,
)


def test_operations_are_counted_while_watched(student: Any) -> None:
    with watched(student) as seen:
        student.softmax(doubles(2, 3))
    assert seen.counts["aten._softmax"] == 1
    assert seen.operations == 1
    with watched(student, kernels=False) as seen:
        student.softmax(doubles(2, 3))
    assert dict(seen.counts) == {"torch.softmax": 1}


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


def test_a_composite_function_is_found_by_its_name(connection: WorkerConnection) -> None:
    code = (
        "from torch import nn\n"
        "def f(x): return nn.MultiheadAttention(4, 2, batch_first=True).double()(x, x, x)[0]\n"
    )
    student = student_at(connection, code)
    with watched(student) as seen:
        student.f(doubles(2, 3, 4))
    assert "torch.multi_head_attention_forward" in seen.counts


# --- forbidden calls ------------------------------------------------------------------------------

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


def test_a_name_of_the_students_own_is_not_forbidden(connection: WorkerConnection) -> None:
    text = "from layer_norm import LayerNorm\ndef layer_norm(x): return LayerNorm(3)(x)\n"
    assert code_at(connection, text, forbidden=PATTERNS).forbidden_in_source() == []


UNWATCHED = {
    "in a later call": "return ln(x) if done else done.append(1) or x",
    "in a call that raises": "raise ValueError(ln(x))",
    "in a thread": "Pool(1).submit(ln, x).result(); return x",
}
LATER = """
import torch
from concurrent.futures import ThreadPoolExecutor as Pool
done = []
def ln(x): return getattr(torch.nn.functional, "layer" + "_norm")(x, (3,))
def f(x):
"""


@pytest.mark.parametrize("way", UNWATCHED)
def test_a_forbidden_call_is_found_wherever_it_runs(way: str, connection: WorkerConnection) -> None:
    text = f"{LATER}    {UNWATCHED[way]}\n"
    student: Any = Student(code_at(connection, text, forbidden=PATTERNS))
    if way == "in a later call":
        student.f(doubles(2, 3))
    with pytest.raises(StudentFailure, match=r"torch\.layer_norm does the work"):
        student.f(doubles(2, 3))


def test_code_whose_watched_call_raised_is_watched_further(connection: WorkerConnection) -> None:
    text = (
        "import torch\n"
        "norm, done = getattr(torch.ops.aten, '_'.join(['native', 'layer_norm'])), []\n"
        "def f(x):\n"
        "    if not done: raise RuntimeError(done.append(1))\n"
        "    with torch._C.DisableTorchFunction(): return norm(x, (3,), None, None, 1e-5)[0]\n"
    )
    student: Any = Student(code_at(connection, text, forbidden=PATTERNS))
    assert_written_by_hand(student, lambda: student.f(doubles(2, 3)))
    with contextlib.suppress(StudentFailure), watched(student, kernels=False):
        student.f(doubles(2, 3))  # sees no kernels, so it tells nothing of them
    with pytest.raises(StudentFailure, match="runs operations where the grader cannot see"):
        student.f(doubles(2, 3))


MODEL = """
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = {}
    def forward(self, x): return x @ self.w
"""


@pytest.mark.parametrize("name", ["sum", "stack", "mul", "detach", "numel"])
def test_what_the_grader_calls_itself_is_not_forbidden(
    name: str, connection: WorkerConnection
) -> None:
    text = MODEL.format("torch.nn.Parameter(torch.ones(3, dtype=torch.float64))")
    student: Any = Student(code_at(connection, text, forbidden=(f"torch*.{name}",)))
    model = student.Model()
    model(doubles(2, 3).requires_grad_()).sum().backward()
    assert [key for key, _ in model.named_parameters()] == ["w"]


def test_a_default_device_is_no_switched_off_watch(connection: WorkerConnection) -> None:
    text = "import torch\ndef f(x):\n    torch.set_default_device('cpu')\n    return x * 2\n"
    student: Any = Student(code_at(connection, text, forbidden=PATTERNS))
    for _ in range(2):
        student.f(doubles(2, 3))
    with watched(student):
        student.f(doubles(2, 3))


def test_what_a_module_calls_when_it_is_made_is_not_forbidden(connection: WorkerConnection) -> None:
    text = MODEL.format("torch.nn.functional.layer_norm(torch.ones(3), (3,))")
    student: Any = Student(code_at(connection, text, forbidden=PATTERNS))
    student.Model()


def test_functions_of_other_names_are_not_forbidden(connection: WorkerConnection) -> None:
    student: Any = Student(code_at(connection, forbidden=("torch*.layer_norm",)))
    student.softmax(doubles(2, 3))


# --- the largest tensor that is made --------------------------------------------------------------

MADE = {
    "a product": ("(q.unsqueeze(2) - k.unsqueeze(1)).square().sum(-1)", (2, 3, 5, 4)),
    "of functions over batches": (
        "torch.vmap(lambda a, b: (a.unsqueeze(1) - b).square().sum(-1))(q, k)",
        (2, 3, 5, 4),
    ),
    "in a tuple": ("torch.stack([q] * 7).unbind(1)[0].sum()", (7, 2, 3, 4)),
    "none but a view": ("q @ k.mT", (2, 4, 5)),
    "an expanded view": ("(q.unsqueeze(2).expand(2, 3, 50, 4), q @ k.mT)[1]", (2, 4, 5)),
    "of another dtype": ("(q.unsqueeze(2).float() - k.unsqueeze(1).float()).sum(-1)", (2, 3, 5, 4)),
}


@pytest.mark.parametrize("kernels", [True, False])
@pytest.mark.parametrize("name", MADE)
def test_the_largest_tensor_is_seen(connection: WorkerConnection, name: str, kernels: bool) -> None:
    code, shape = MADE[name]
    student = student_at(connection, f"import torch\ndef f(q, k): return {code}\n")
    with watched(student, kernels=kernels) as seen:
        student.f(doubles(2, 3, 4), doubles(2, 5, 4))
    assert seen.largest.shape == shape
    item_bytes = 4 if name == "of another dtype" else 8
    assert seen.largest.bytes == item_bytes * seen.largest.elements
    assert not any(name.startswith("made.") for name in seen.counts)


def test_a_tensor_that_is_too_large_is_named_by_its_axes(connection: WorkerConnection) -> None:
    code = "def f(q, k): return (q.unsqueeze(2) - k.unsqueeze(1)).square().sum(-1)\n"
    student = student_at(connection, code)
    queries, keys = doubles(1, 30, 40), doubles(1, 50, 40)
    sizes = {"n_queries": 30, "n_keys": 50, "d": 40}
    with pytest.raises(Mismatch) as failure:
        assert_memory(student, lambda: student.f(queries, keys), 2e5, sizes)
    assert failure.value.message.endswith(
        "at once, where 0.2 MB are enough: "
        "a tensor of the shape (1, n_queries, n_keys, d) and 0.5 MB was made"
    )
    assert_memory(student, lambda: student.f(queries, keys), 2e6, sizes)


def test_tensors_of_a_constructor_are_not_made(connection: WorkerConnection) -> None:
    code = "from torch import nn\nclass C(nn.Linear): pass\n"
    student = student_at(connection, code)
    with watched(student) as seen:
        student.C(30, 40)
    assert seen.largest.elements == 0


@pytest.mark.parametrize("name", ["made.", "made.2x", "made.-3", "made.²", "made.2x" + "9" * 30])
def test_a_shape_that_is_none_is_ignored(name: str) -> None:
    seen = OperationCounts()
    seen.add({name: 8})
    assert seen.largest.elements == 0


# --- the memory that a call needs at once ---------------------------------------------------------

TENSOR = 2 * 3 * 40 * 8  # bytes of an argument
SMALL = 64  # bytes of what torch makes beside tensors, of a number for one
PEAKS = {
    "nothing": ("x", 0),
    "a view": ("x.transpose(1, 2)", 0),
    "one after the other": ("(x + 1).exp_()", TENSOR),
    "two at once": ("(x + 1).exp()", 2 * TENSOR),
    "freed before the end": ("(x.repeat(1, 5, 1), x + 1)[1].sum()", 6 * TENSOR),
    "in a function": ("torch.matmul(x.mT.expand(2, 40, 3), x)", 2 * 40 * 40 * 8),
    "of functions over batches": ("torch.vmap(lambda row: row.exp())(x)", TENSOR),
}


@pytest.mark.parametrize("name", PEAKS)
def test_the_peak_of_memory_is_seen(connection: WorkerConnection, name: str) -> None:
    code, expected = PEAKS[name]
    student = student_at(connection, f"import torch\ndef f(x): return {code}\n")
    for _ in range(2):
        with watched(student, memory=True) as seen, torch.no_grad():
            student.f(doubles(2, 3, 40))
        assert expected <= seen.peak <= expected + SMALL
        assert "torch.bmm" not in seen.counts
        assert not any(name.startswith("peak.") for name in seen.counts)


def test_the_peak_is_that_of_the_largest_call(connection: WorkerConnection) -> None:
    student = student_at(connection, "def f(x, n): return x.repeat(n)\n")
    with watched(student, memory=True) as seen:
        for n in (2, 7, 3):
            student.f(doubles(10), n)
    assert 7 * 80 <= seen.peak <= 7 * 80 + SMALL


def test_memory_is_counted_without_a_loss_of_what_else_is_seen(
    connection: WorkerConnection,
) -> None:
    student = student_at(connection, "def f(q, k): return (q @ k.mT).softmax(-1).sum(-1)\n")
    inputs = doubles(2, 3, 4), doubles(2, 5, 4)
    with watched(student) as seen:
        student.f(*inputs)
    with watched(student, memory=True) as both:
        student.f(*inputs)
    assert both.counts == seen.counts
    assert both.largest == seen.largest
    assert seen.peak == 0 < both.peak


@pytest.mark.parametrize(
    "code", ["x @ x.mT", "torch.cdist(x, x)", "(x @ x.mT).softmax(-1)", "x[:, None] * x"]
)
def test_a_table_of_all_pairs_is_no_linear_memory(connection: WorkerConnection, code: str) -> None:
    student = student_at(connection, f"import torch\ndef f(x): return ({code}).sum()\n")
    x = doubles(800, 3)
    with pytest.raises(Mismatch) as failure, torch.no_grad():
        assert_linear_memory(student, lambda n: student.f(x[:n]), 200)
    assert re.match("4 times as many n_tokens take 1[56] times the memory: ", failure.value.message)
    assert "(n_tokens, n_tokens" in failure.value.message


@pytest.mark.parametrize("code", ["x.exp() @ x.exp().mT[..., :4]", "x * 2", "x.softmax(0)", "x"])
def test_what_grows_with_the_length_alone_is_linear(
    connection: WorkerConnection, code: str
) -> None:
    student = student_at(connection, f"def f(x): return {code}\n")
    x = doubles(800, 3)
    with torch.no_grad():
        assert_linear_memory(student, lambda n: student.f(x[:n]), 200)


LEAVES_GARBAGE = """
import torch

class Node: pass

def f(x):
    many = [[] for _ in range(200_000)]  # Python looks for garbage now and then
    node = Node()
    node.itself, node.table = node, torch.ones(len(x), 50)
    return node.table.sum()
"""


def test_garbage_of_earlier_calls_is_no_memory_given_back(connection: WorkerConnection) -> None:
    student, x = student_at(connection, LEAVES_GARBAGE), doubles(4000, 3)
    with torch.no_grad():
        with watched(student, memory=True):
            student.f(x)
        assert_linear_memory(student, lambda n: student.f(x[:n]), 200)


def test_too_much_memory_is_told_with_the_largest_tensor(connection: WorkerConnection) -> None:
    student = student_at(connection, "def f(x): return (x[:, None] - x).square().sum(-1)\n")
    x = doubles(60, 40)
    sizes = {"n_tokens": 60, "d": 40}
    with pytest.raises(Mismatch) as failure, torch.no_grad():
        assert_memory(student, lambda: student.f(x), 2e6, sizes)
    assert failure.value.message == (
        "the tensors of the call took 2.3 MB at once, where 2.0 MB are enough: "
        "a tensor of the shape (n_tokens, n_tokens, d) and 1.2 MB was made"
    )
