"""The search of a source finds every way to name a forbidden call, and nothing else."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from commandline import Grade
from corpus.programs import load

from grader.course.course import Course
from grader.sandbox.cells import CELL
from grader.sandbox.host.connection import Subject, TimeLimits, WorkerConnection
from grader.sandbox.host.worker import Worker
from grader.sandbox.host.zygote import Zygote
from grader.sandbox.source import forbidden_calls
from grader.sandbox.syntax import Unsearchable, top_level_names
from grader.sandbox.wire import Source

PATTERNS = ("torch*layer_norm", "torch*.LayerNorm")
BINDINGS = {
    "a name that is bound again": "import torch as t\ndef f(x): return t.layer_norm(x)\nt = 0",
    "an annotated assignment": "import torch\nt: object = torch\nt.layer_norm",
    "a walrus": "import torch\n(t := torch) and t.layer_norm",
    "a loop": "import torch\nfor t in [torch]: t.layer_norm",
    "a comprehension": "import torch\n[t.layer_norm for t in (torch,)]",
    "a context": "import torch\nwith nullcontext(torch) as t: t.layer_norm",
    "a default": "import torch\ndef f(x, t=torch): return t.layer_norm(x)",
    "a default of a keyword": "import torch\ndef f(x, *, t=torch): return t.layer_norm(x)",
    "a tuple": "import torch\nt, u = torch, 1\nt.layer_norm",
    "a starred tuple": "import torch\n*t, u = torch, 1\nt[0].layer_norm",
    "an attribute of a class": "import torch\nclass A:\n    t = torch\nA.t.layer_norm",
    "an attribute of an object": "import torch\ndef f(self): self.t = torch; self.t.layer_norm",
    "vars": "import torch\nvars(torch)['layer' + '_norm']",
    "a dict": "import torch\ntorch.__dict__['layer_norm']",
    "a get": "import torch\ntorch.__dict__.get('layer_norm')",
    "an f-string": "import torch\nn = 'norm'\ngetattr(torch, f'layer_{n}')",
    "another getattr": "import torch\ng = getattr\ng(torch, 'layer_norm')",
    "attrgetter": "import torch, operator\noperator.attrgetter('nn.LayerNorm')(torch)",
    "sys.modules": "import sys\nsys.modules['torch.nn'].LayerNorm",
    "eval": "import torch\neval('torch.layer_norm')",
    "letters of another width": "import torch\ntorch.\uff4cayer_norm",
}


@pytest.mark.parametrize("binding", BINDINGS)
def test_every_binding_of_a_name_counts(binding: str) -> None:
    assert forbidden_calls(BINDINGS[binding], "x.py", PATTERNS)


OWN = {  # names of the source's own that are like forbidden ones
    "a setting": "class A:\n    layer_norm = 1\n    layer_norm_eps: float = 1\nA().layer_norm",
    "a field": "@dataclass\nclass A:\n    layer_norm: bool\ndef f(a): return a.layer_norm",
    "a keyword": "settings = SimpleNamespace(layer_norm=1)\nsettings.layer_norm",
    "a named tuple": "A = namedtuple('A', 'layer_norm rest')\ndef f(a): return a.layer_norm",
    "an option": "parser.add_argument('--layer-norm')\nparser.parse_args([]).layer_norm",
    "a part": "def f(self, m): self.add_module('layer_norm', m); self.layer_norm(1)",
    "a name that torch has not": "def f(self): return self.layer_norm_1, self.my_layer_norm",
    "a name by text": "def f(self, n): return getattr(self, f'layer_norm{1}')",
    "a method": "class A:\n    def layer_norm(self): return self.layer_norm()",
    "a class": "class LayerNorm: pass\nLayerNorm()",
    "words": "'torch.layer_norm'  # nn.LayerNorm\nprint('use torch.layer_norm')",
    "a block that never runs": (
        "import torch\nif __name__ == '__main__':\n    print(torch.nn.LayerNorm(3))"
    ),
}


@pytest.mark.parametrize("own", OWN)
def test_a_name_of_its_own_is_no_forbidden_call(own: str) -> None:
    assert forbidden_calls(OWN[own], "x.py", ("torch*layer_norm*", "torch*.LayerNorm")) == []


RUN = {
    "another name": "__name__ = '__main__'",
    "another name in the globals": "globals()['__name__'] = '__main__'",
}
GUARDS = {
    "plain": "if __name__ == '__main__'",
    "turned around": 'if "__main__" == __name__',
    "in pieces": 'if __name__ == "__ma" "in__"',
    "in other letters": "if __ｎame__ == '__main__'",
}


@pytest.mark.parametrize("guard", GUARDS.values(), ids=GUARDS)
@pytest.mark.parametrize("how", RUN)
def test_what_is_not_searched_is_never_run(
    how: str, guard: str, tiny_course: Course, grade: Grade, tiny_solution: str
) -> None:
    block = f"{guard}:\n    raise LookupError(torch.layer_norm)\n"
    text = f"{RUN[how]}\n{block}{tiny_solution}"
    assert forbidden_calls(text, "scale.py", PATTERNS) == []
    (result,) = grade(tiny_course, {"scale": text}).exercises
    assert result.points == result.max_points


@pytest.mark.parametrize("block", ["__name__ == 0x" + "f" * 5000, "__name__ == (0, 'a')"])
def test_a_strange_condition_hides_nothing(block: str) -> None:
    text = f"import torch\nif {block}: pass\ntorch.layer_norm\n"
    assert [use.line for use in forbidden_calls(text, "x.py", PATTERNS)] == [3]


def test_a_cell_that_runs_without_its_block_for_a_script_is_searched() -> None:
    block = "if __name__ == '__main__':\n    nonlocal x\n"
    text = f"{CELL}1\nmine = torch.layer_norm\n{block}{CELL}2\nimport torch\n"
    assert [use.line for use in forbidden_calls(text, "x.ipynb", PATTERNS, ["mine"])] == [2]


def test_one_worker_searches_and_runs_all_files_of_a_submission(
    zygote: Zygote, course: Course, solutions: dict[str, str]
) -> None:
    workers = []

    def connect() -> Worker:
        workers.append(Worker(zygote))
        return workers[-1]

    sources = {name: Source(f"{name}.py", text) for name, text in solutions.items()}
    forbidden = {name: course[name].forbidden for name in solutions}
    with closing(WorkerConnection(connect)) as connection:
        connection.begin(1)
        for name in solutions:
            subject = Subject(name, "own parts", sources, TimeLimits(), forbidden[name], forbidden)
            assert connection.search(subject) == []
            connection.load(subject)
    assert len(workers) == 1


TANGLES = {
    "too deep": "import torch\ndef f(x): return " + "-" * 50_000 + "torch.layer_norm(x)",
    "too large": "import torch\n" + "x = torch.layer_norm\n" * 90_000,
    "bound in circles": "import torch\n"
    + "".join(f"x{n} = x{n + 1}\n" for n in range(500))
    + "x500 = torch\ngetattr",
    "texts that double": "import torch\nx = 'a'\n" + "x = x + x\n" * 60 + "getattr(torch, x)",
}


@pytest.mark.parametrize("tangle", TANGLES)
def test_a_search_that_gives_up_says_so(tangle: str) -> None:
    with pytest.raises(Unsearchable):
        forbidden_calls(TANGLES[tangle], "x.py", PATTERNS)


def test_what_only_some_pythons_can_parse_is_found_or_refused() -> None:
    """Python 3.11 and 3.12 give up at this depth while they build the tree; others do not."""
    text = "import torch\ndef f(x): return " + "-" * 3000 + "torch.layer_norm(x)"
    try:
        found = [use.line for use in forbidden_calls(text, "x.py", PATTERNS)]
    except Unsearchable:
        return
    assert found == [2]


def test_a_source_that_cannot_be_searched_is_forbidden(
    tiny_course: Course, grade: Grade, tiny_solution: str
) -> None:
    deep = f"{tiny_solution}\ndef multiply(x): return {'-' * 50_000}x\n"
    (result,) = grade(tiny_course, {"scale": deep}).exercises
    assert result.tests[0].kind == "Forbidden"
    assert "cannot be searched for forbidden calls: it is nested too deeply" in (
        result.tests[0].message
    )


def test_a_broken_cell_does_not_hide_the_others() -> None:
    text = f"{CELL}1\nthis is not Python\n{CELL}2\nimport torch\ntorch.layer_norm\n"
    assert [use.line for use in forbidden_calls(text, "x.ipynb", PATTERNS)] == [5]


FORBIDDEN = "import torch\nlayer = torch.layer_norm\n"
CELLS = {
    "its own": ("import torch\ndef mine(x):\n    return torch.layer_norm(x)",),
    "what it calls": ("def mine(x):\n    return layer(x)", FORBIDDEN),
    "what is put in its place": ("def mine(x): return x", f"{FORBIDDEN}mine = layer"),
    "what an import gives": ("def mine(x): return f(x)", "from torch import layer_norm as f"),
    "a new meaning": ("import torch\ndef mine(x): return torch(x)", f"{FORBIDDEN}torch = layer"),
    "an attribute": ("class A: pass\ndef mine(x): return A.f(x)", f"{FORBIDDEN}A.f = layer"),
    "an item": ("t = {}\ndef mine(x): return t['f'](x)", f"{FORBIDDEN}t['f'] = layer"),
    "a list": ("t = []\ndef mine(x): return t[0](x)", f"{FORBIDDEN}t.append(layer)"),
    "indirect": ("def mine(x): return x", f"{FORBIDDEN}globals()['mine'] = layer"),
    "another module": (
        "def mine(x): return x",
        f"{FORBIDDEN}import sys\nsetattr(sys.modules['__main__'], 'mine', layer)",
    ),
    "an attribute of a module": (
        "def mine(x): return x",
        f"{FORBIDDEN}import inspect\ninspect.getmodule(lambda: 0).mine = layer",
    ),
    "an attribute of one that has a name": (
        "def mine(x): return x",
        f"{FORBIDDEN}import inspect\nm = inspect.getmodule(lambda: 0)\nm.mine = layer",
    ),
    "a name put together": (
        "def mine(x): return x",
        f"{FORBIDDEN}import sys\nn = 'mod'\ngetattr(sys, n + 'ules')['__main__'].mine = layer",
    ),
    "a setter put together": (
        "def mine(x): return x",
        f"{FORBIDDEN}def f(m):\n    getattr(m, '__set' + 'attr__')('mi' + 'ne', layer)",
    ),
    "a name that only the run knows": (
        "def mine(x): return x",
        f"{FORBIDDEN}import sys\ngetattr(sys, input())['x'].update(mine=layer)",
    ),
    "a getter": (
        "def mine(x): return x",
        f"{FORBIDDEN}import operator as o\no.attrgetter(input())(o)['x'].update(mine=layer)",
    ),
    "a star": ("def mine(x): return layer_norm(x)", "from torch import *\nlayer_norm"),
    "an attribute of a class of torch": (
        "class mine(nn.Module):\n    def forward(self, x): return self.norm(x)",
        f"{FORBIDDEN}from torch import nn\nnn.Module.norm = layer",
    ),
}


@pytest.mark.parametrize("cells", CELLS.values(), ids=CELLS)
def test_of_a_notebook_the_cells_that_an_exercise_needs_are_searched(cells: tuple[str]) -> None:
    text = "".join(f"{CELL}{number}\n{cell}\n" for number, cell in enumerate(cells, start=1))
    assert forbidden_calls(text, "x.ipynb", PATTERNS, ["mine"])


HARMLESS = {
    "a call": "return layer(x)",
    "an attribute by name": "return getattr(x, 'weight')(layer)",
    "attributes by a name put together": "return [getattr(x, f'W_{i}')(layer) for i in 'ab']",
    "attributes by names that are given": "return [getattr(x, n)(layer) for n in x.names]",
    "an attribute that is set": "self = x; self.mine = layer; return self",
    "a dictionary": "return dict(a=layer)",
    "a model in evaluation": "x.eval(); return layer(x)",
    "its parts": "return [layer(m) for m in x.modules()]",
    "what is predicted": '"""The prediction of an evaluation, as executed."""; return layer(x)',
}


@pytest.mark.parametrize("part", ["eps", "num_heads", "weight"])
def test_a_cell_that_compares_with_torch_does_not_count(part: str) -> None:
    mine = (
        "from torch import nn\nclass mine(nn.Module):\n"
        f"    def forward(self, x): return x + self.{part}\n"
    )
    other = f"ref = nn.LayerNorm(4)\nref.{part} = 1e-3\nref.inner.{part} = 2\n"
    text = f"{CELL}1\n{mine}{CELL}2\n{other}"
    assert forbidden_calls(text, "x.ipynb", PATTERNS, ["mine"]) == []


@pytest.mark.parametrize("line", HARMLESS.values(), ids=HARMLESS)
def test_the_cells_of_other_exercises_do_not_count(line: str) -> None:
    mine = "import torch\ndef mine(x):\n    return torch.exp(x)\n"
    other = f"{FORBIDDEN}def other(x):\n    {line}\n"
    text = f"{CELL}1\n{mine}{CELL}2\n{other}"
    assert forbidden_calls(text, "x.ipynb", PATTERNS, ["mine"]) == []
    assert forbidden_calls(text, "x.ipynb", PATTERNS, ["other"])
    assert forbidden_calls(text, "x.ipynb", PATTERNS, ["neither"])
    assert forbidden_calls(mine + other, "x.py", PATTERNS, ["mine"])


@pytest.fixture
def garbage_lets_threads_take_turns() -> Iterator[None]:
    def take_turns(phase: str, info: dict[str, int]) -> None:
        time.sleep(0)

    usual = gc.get_threshold()
    gc.callbacks.append(take_turns)
    gc.set_threshold(5)
    yield
    gc.set_threshold(*usual)
    gc.callbacks.remove(take_turns)


@pytest.mark.usefixtures("garbage_lets_threads_take_turns")
def test_sources_are_parsed_in_several_threads_at_once() -> None:
    text = f"x = {'(' * 30}1{')' * 30}\n" + "def f(a):\n    return [[[[[[a + 1]]]]]]\n" * 5
    with ThreadPoolExecutor(2) as threads:
        assert all(names == {"x", "f"} for names in threads.map(top_level_names, [text] * 60))


BY_TORCH = {  # other ways of torch to do what an exercise asks for
    "masked softmin": ("masked_softmax", "torch.masked.softmin(-X, -1, mask=m)"),
    "masked log softmax": ("masked_softmax", "torch.masked.log_softmax(X, -1, mask=m)"),
    "masked tensors": ("masked_softmax", "from torch.masked import masked_tensor"),
    "a module of torch's own": ("masked_softmax", "from torch import masked as t\nt.softmin"),
    "sparse softmax": ("masked_softmax", "torch.sparse.softmax(s, -1)"),
    "a reference": ("layer_norm", "torch._refs._normalize(x, [1], 1e-5)"),
    "a reference that is imported": ("layer_norm", "from torch._refs import _normalize as n"),
    "flexible attention": (
        "causal_attention",
        "from torch._higher_order_ops.flex_attention import math_attention",
    ),
    "attention of onnx": ("multi_head_attention", "torch.onnx.ops.attention(q, k, v)"),
    "a decomposition": ("layer_norm", "torch._decomp.decompositions.native_x(x)"),
    "an operation": ("masked_softmax", "torch.ops.aten._safe_softmax(X, -1)"),
}


@pytest.mark.parametrize("way", BY_TORCH)
def test_no_exercise_by_hand_may_use_the_inside_of_torch(way: str, course: Course) -> None:
    exercise, text = BY_TORCH[way]
    assert forbidden_calls(f"import torch\n{text}", "x.py", course[exercise].all_forbidden)


def test_the_inside_of_torch_is_not_what_tensors_have(course: Course) -> None:
    text = "import torch\nx.masked_fill(m, 0); torch.masked_select(x, m); torch._assert(1, 'x')\n"
    for exercise in course.exercises:
        assert forbidden_calls(text, "x.py", exercise.all_forbidden) == []


@pytest.mark.slow
def test_no_right_program_needs_the_inside_of_torch(course: Course) -> None:
    found = {
        program.place: uses
        for program in load("right", "public")
        if (uses := forbidden_calls(program.text, "x.py", course[program.exercise].all_forbidden))
    }
    assert found == {}
