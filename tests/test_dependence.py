"""What does not compute earns nothing; what computes wrongly keeps the points that it earns."""

from __future__ import annotations

import pytest
from commandline import Grade

from grader.commands.blanks import blanks
from grader.course.course import Course

pytestmark = pytest.mark.in_turn

ATTENTION = "scores = X.masked_fill(~valid, -torch.inf)"


def with_forward(solution: str, body: str) -> str:
    """Return a solution whose `forward` is another."""
    start = solution.index("-> Tensor:\n", solution.index("def forward")) + len("-> Tensor:\n")
    return f"{solution[:start]}        {body}\n"


WITHOUT_COMPUTING = {
    "values alone": ("causal_attention", "return self.W_value(x)"),
    "values and the output's layer": (
        "multi_head_attention",
        "return self.out_proj(self.W_value(x))",
    ),
    "scale and shift": ("layer_norm", "return x * self.gamma + self.beta"),
    "a constant": ("layer_norm", "return x * 0 + self.beta + 0.3 * self.gamma"),
    "uniform weights for the past": (
        "multi_head_attention",
        "return self.out_proj(self.W_value(x).cumsum(1) / x.shape[1])",
    ),
    "all layers, summed": (
        "multi_head_attention",
        "return self.out_proj((self.W_query(x) + self.W_key(x) + self.W_value(x)).cumsum(1))",
    ),
    "all layers, multiplied": (
        "multi_head_attention",
        "return self.out_proj(self.W_query(x) * self.W_key(x) * self.W_value(x))",
    ),
    "a sum of the past, and queries times keys": (
        "causal_attention",
        "return self.W_value(x).cumsum(1) + self.W_query(x) * self.W_key(x)",
    ),
    "a gate for each token": (
        "causal_attention",
        "return (self.W_query(x) * self.W_key(x)).sigmoid() * self.W_value(x)",
    ),
    "differences to the first feature": (
        "layer_norm",
        "return self.gamma * (x - x[..., :1]) + self.beta",
    ),
    "its input": ("feed_forward", "return x"),
    "its input in place of a block": ("transformer_block", "return x"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", WITHOUT_COMPUTING)
def test_code_without_the_computation_earns_at_most_a_tenth(
    name: str, grade: Grade, course: Course, solutions: dict[str, str]
) -> None:
    exercise, body = WITHOUT_COMPUTING[name]
    files = {**solutions, exercise: with_forward(solutions[exercise], body)}
    (result,) = grade(course, files, exercise).exercises
    assert result.points <= max(1, result.max_points // 10)


@pytest.mark.slow
def test_uniform_weights_earn_at_most_a_tenth(
    grade: Grade, course: Course, solutions: dict[str, str]
) -> None:
    text = solutions["masked_softmax"]
    assert ATTENTION in text
    uniform = text.replace(ATTENTION, "scores = (X * 0).masked_fill(~valid, -torch.inf)")
    uniform = uniform.replace("return torch.softmax(X, dim=-1)", "return torch.softmax(X * 0, -1)")
    (result,) = grade(course, {"masked_softmax": uniform}, "masked_softmax").exercises
    assert result.points <= 1


def test_a_check_that_falls_says_what_the_result_does_not_depend_on(
    grade: Grade, course: Course, solutions: dict[str, str]
) -> None:
    text = with_forward(solutions["causal_attention"], "return self.W_value(x)")
    (result,) = grade(course, {"causal_attention": text}, "causal_attention").exercises
    said = {test.message for test in result.tests if test.is_wrong}
    assert any(
        "no result of `CausalAttention` changes with `W_query` or `W_key`" in message
        and "a number that it returns depends on 1.0 of the" in message
        for message in said
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("exercise", "right", "wrong"),
    [
        ("layer_norm", "/ torch.sqrt(", "/ 1.7 / torch.sqrt("),
        ("causal_attention", "torch.softmax(scores, dim=-1)", "torch.sigmoid(1.7 * scores)"),
    ],
)
def test_a_mistake_that_computes_keeps_its_points(
    exercise: str, right: str, wrong: str, grade: Grade, course: Course, solutions: dict[str, str]
) -> None:
    text = solutions[exercise].replace(right, wrong)
    assert text != solutions[exercise]
    (result,) = grade(course, {exercise: text}, exercise).exercises
    assert result.diagnosis is not None
    assert not result.diagnosis.faults  # nobody knows it
    assert result.points > result.max_points // 3


@pytest.mark.slow
def test_noise_is_no_dependence(grade: Grade, course: Course, solutions: dict[str, str]) -> None:
    body = "import os; return x + 1e-6 * int.from_bytes(os.urandom(1), 'big')"
    text = with_forward(solutions["layer_norm"], body)
    (result,) = grade(course, {"layer_norm": text}, "layer_norm").exercises
    assert result.points <= 1


WHISPER = "4e-6 * (sum(p.sum() for p in self.parameters()) + x.sum())"


@pytest.mark.slow
@pytest.mark.parametrize(
    "body",
    [
        f"return self.beta + {WHISPER}",
        "if x.shape[-1] > 3: raise ValueError\n        return x * self.gamma + self.beta",
        "if x.ndim == 2: getattr(nn.functional, 'mron_reyal'[::-1])(x, x.shape[-1:])\n"
        "        return x * 0 + self.beta",
    ],
    ids=["a whisper below the tolerance", "an error at ordinary calls", "a forbidden call"],
)
def test_code_that_only_seems_to_depend_earns_at_most_a_tenth(
    body: str, grade: Grade, course: Course, solutions: dict[str, str]
) -> None:
    text = with_forward(solutions["layer_norm"], body)
    (result,) = grade(course, {"layer_norm": text}, "layer_norm").exercises
    assert result.points <= 1


@pytest.mark.slow
@pytest.mark.parametrize("exercise", ["causal_attention", "transformer_block", "named_attention"])
def test_noise_that_depends_on_everything_earns_at_most_a_tenth(
    exercise: str, grade: Grade, course: Course, solutions: dict[str, str]
) -> None:
    noises = [text for says, text in blanks(course[exercise]) if says.startswith("noise that")]
    assert len(noises) == 2
    for noise in noises:
        (result,) = grade(course, {**solutions, exercise: noise}, exercise).exercises
        assert result.points <= max(1, result.max_points // 10)


@pytest.mark.slow
def test_a_right_result_in_another_layout_is_no_noise(
    grade: Grade, course: Course, solutions: dict[str, str]
) -> None:
    """The axes of a named tensor may be in any order, and so are the numbers of its result."""
    text = solutions["named_attention"]
    turned = text.replace(
        'return rename(output, "query", "seq")',
        'tensor, names = rename(output, "query", "seq")\n'
        "    return tensor.mT, (*names[:-2], *names[:-3:-1])",
    ).replace("            if name not in names:\n", "            if False:\n")
    assert turned.count("tensor.mT") == turned.count("if False") == 1
    (result,) = grade(course, {"named_attention": turned}, "named_attention").exercises
    assert 0 < result.max_points - result.points <= 4


LAYERS = {"W_query": "proj_a", "W_key": "proj_b", "W_value": "proj_c"}


def renamed(text: str) -> str:
    """Return a program whose layers have names of its own."""
    for name, own in LAYERS.items():
        text = text.replace(name, own)
    return text


def with_layer(text: str, after: str) -> str:
    """Return causal attention with one more layer, which returns `after`."""
    made = text.replace(
        "super().__init__()", "super().__init__()\n        self.last = nn.Linear(d_out, d_out)", 1
    )
    return made.replace("return weights @ values", f"return {after}")


@pytest.mark.slow
def test_layers_of_other_names_hide_no_noise_and_make_nothing_noise(
    grade: Grade, course: Course, solutions: dict[str, str]
) -> None:
    solution = solutions["causal_attention"]
    assert "return weights @ values" in solution
    noise = dict(blanks(course["causal_attention"]))["noise that depends on everything so far"]
    for text in (renamed(noise), with_layer(noise, "weights @ values + self.last.bias.sum()")):
        (result,) = grade(course, {"causal_attention": text}, "causal_attention").exercises
        assert result.points <= 1
    unscaled = solution.replace(" * self.scale", "")
    for text in (renamed(unscaled), with_layer(solution, "self.last(weights @ values)")):
        (result,) = grade(course, {"causal_attention": text}, "causal_attention").exercises
        assert result.points > result.max_points // 3
        assert "has anything to do" not in str(result)
