"""What lies behind many wrong answers at once is said first, in words of the student's own file."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from commandline import Grade

from grader.course.course import Course
from grader.course.stubs import line_left_above_code
from grader.grading.global_changes import global_change
from grader.report import ExerciseResult

pytestmark = pytest.mark.in_turn(share=3)
Changed = Callable[..., ExerciseResult]
HIDDEN = "scores = X.masked_fill(~valid, -torch.inf)"
SOFTMAX = "weights = torch.softmax(scores, dim=-1)"
ROOT = "torch.sqrt(var + self.eps)"
OUTPUT = "return self.gamma * x_hat + self.beta"


@pytest.fixture
def changed(grade: Grade, course: Course, solutions: dict[str, str]) -> Changed:
    """Grade a solution in which some text is replaced."""

    def grading(name: str, *edits: tuple[str, str]) -> ExerciseResult:
        text = solutions[name]
        for before, after in edits:
            assert before in text
            text = text.replace(before, after)
        return grade(course, {**solutions, name: text}, name).exercises[0]

    return grading


def facts(result: ExerciseResult) -> tuple[str, ...]:
    assert result.diagnosis is not None
    assert result.diagnosis.says == "Look at this first."
    return result.diagnosis.facts


NAN = {  # by what it is: the exercise, an edit, and a part of what is said
    "0 times infinity": (
        *("masked_softmax", (HIDDEN, "scores = X + (~valid) * float('-inf')")),
        "nan appears first in `scores = X + (~valid) * float('-inf')` (line 25): 0 times infinity",
    ),
    "an overflow": (
        *("causal_attention", (SOFTMAX, "weights = scores.exp() / scores.exp().sum(-1, True)")),
        "infinity divided by infinity is nan. The infinity: the exponential of a large number",
    ),
    "a root": (
        *("layer_norm", (ROOT, "torch.sqrt(-var - self.eps)")),
        "a negative number has no root",
    ),
}


@pytest.mark.parametrize("what", NAN)
@pytest.mark.slow
def test_nan_is_told_with_the_line_where_it_begins_and_why(what: str, changed: Changed) -> None:
    name, edit, says = NAN[what]
    assert says in facts(changed(name, edit))[0]


@pytest.mark.slow
def test_layers_with_other_names_cost_the_check_of_names_alone(changed: Changed) -> None:
    names = ("W_query", "q_proj"), ("W_key", "k_proj"), ("W_value", "v_proj")
    result = changed("multi_head_attention", *names)
    assert [test.name for test in result.tests if test.is_wrong] == ["test_parts"]
    called = "`W_key` is `k_proj`; `W_query` is `q_proj`; `W_value` is `v_proj`"
    assert facts(result) == (f"Your code has other names than the exercise: {called}.",)


@pytest.mark.slow
def test_a_missing_return_is_all_that_is_said(changed: Changed) -> None:
    result = changed("layer_norm", (OUTPUT, OUTPUT.replace("return", "output =")))
    assert facts(result) == ("The output is None: is a `return` missing?",)


@pytest.mark.slow
def test_a_missing_self_is_seen(changed: Changed) -> None:
    result = changed("layer_norm", ("def forward(self, x: Tensor)", "def forward(x: Tensor)"))
    said = [test.message for test in result.tests if "TypeError" in test.message]
    assert said
    assert all(each.endswith("is `self` missing in `def forward`?") for each in said)


@pytest.mark.slow
def test_a_line_of_the_stub_above_finished_code_is_not_called_a_beginning(changed: Changed) -> None:
    above = "if valid_lens is None:"
    result = changed("masked_softmax", (above, f"raise NotImplementedError\n    {above}"))
    assert result.state == "to fix"
    says = "`raise NotImplementedError` (line 14) still stands above your code, which never runs: "
    assert result.advice == f"{says}remove it"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("def f(x):\n    raise NotImplementedError\n", 0),
        ("def f(x):\n    raise NotImplementedError('later')\n    return x\n", 2),
        ("def f(x):\n    raise ValueError\n    return x\n", 0),
        ("def f(x:\n", 0),
    ],
)
def test_only_a_stubs_line_with_code_below_it_is_left(text: str, line: int) -> None:
    assert line_left_above_code(text) == line


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("torch.set_default_dtype(torch.float64)", "the dtype of new tensors"),
        ("torch.set_default_device('meta')", "the device of new tensors"),
        ("sys.setrecursionlimit(9)", "how deeply calls may be nested"),
        ("torch.softmax = print", "`torch.softmax`"),
        ("F.relu = torch.tanh", "`F.relu`"),
    ],
)
def test_what_a_file_changes_for_all_code_is_told(line: str, what: str) -> None:
    text = f"import sys\nimport torch\nfrom torch.nn import functional as F\n{line}\n"
    says = f"Your file changes {what} for all code that runs with it: `{line}` (line 4)."
    assert global_change(text) == says


@pytest.mark.parametrize("line", ["x = torch.float64", "self.torch = 1", "with torch.no_grad(): x"])
def test_ordinary_lines_change_nothing_for_others(line: str) -> None:
    assert global_change(f"import torch\n{line}\n") == ""


@pytest.mark.slow
def test_the_default_dtype_is_told_before_what_it_leads_to(changed: Changed) -> None:
    head = "class LayerNorm"
    result = changed("layer_norm", (head, f"torch.set_default_dtype(torch.float64)\n\n\n{head}"))
    assert facts(result)[0].startswith("Your file changes the dtype of new tensors for all code")


@pytest.mark.slow
def test_compiled_code_is_graded_as_it_is(changed: Changed) -> None:
    head = "def masked_softmax"
    result = changed("masked_softmax", (head, f'@torch.compile(backend="eager")\n{head}'))
    assert result.passed


@pytest.mark.slow
def test_a_layer_without_sizes_is_told_to_have_some(changed: Changed) -> None:
    result = changed(
        "additive_attention", ("nn.Linear(d_query, num_hiddens", "nn.LazyLinear(num_hiddens")
    )
    assert any("give it its sizes" in test.message for test in result.tests)


CONTROL = "\x1b[2J"


@pytest.mark.slow
def test_what_is_quoted_of_a_file_holds_no_terminal_controls(changed: Changed) -> None:
    line = f"scores = X + (~valid) * float('-inf'); mark = '{CONTROL}'"
    says = facts(changed("masked_softmax", (HIDDEN, line)))[0]
    assert "0 times infinity" in says
    assert CONTROL[0] not in says


@pytest.mark.slow
def test_a_name_that_is_quoted_is_plain_and_short(changed: Changed) -> None:
    name = f"'{CONTROL}\\n' + 'x' * 400"
    made = "self.gamma = nn.Parameter(torch.ones(d_model))"
    registered = f"self.register_parameter({name}, nn.Parameter(torch.ones(d_model)))"
    used = OUTPUT.replace("self.gamma", f"self._parameters[{name}]")
    (says,) = facts(changed("layer_norm", (made, registered), (OUTPUT, used)))
    assert says.startswith("Your code has other names than the exercise: `gamma` is `")
    assert CONTROL[0] not in says
    assert "\n" not in says
    assert len(says) < 200
