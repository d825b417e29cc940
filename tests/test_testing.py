"""The vocabulary of suites: every example in its docstrings is a test that runs, and can fail."""

from __future__ import annotations

import contextlib
import inspect
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from commandline import Grade
from torch import Tensor

from grader import attention_cases, authors, testing
from grader.course.course import load_course
from grader.errors import Mismatch, NothingRaised

# An exercise with everything that the examples ask of one.
SOLUTION = """
import torch
from torch import nn


class Norm(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(d_model))

    def forward(self, x):
        # --- solution
        return self.gamma * (x - x.mean(-1, keepdim=True))
        # --- end


def tempered_softmax(scores, temperature):
    if temperature <= 0:
        raise ValueError("temperature")
    return torch.softmax(scores / temperature, dim=-1)


def drop(weights, rate):
    return torch.where(torch.rand(weights.shape) < rate, 0.0, weights / (1 - rate))


def center(x):
    return x - x.mean(-1, keepdim=True)


def clear_(x):
    x.zero_()


def scores(a, b):
    return torch.bmm(a, b.transpose(1, 2))


def fit(norm, steps, report=None):
    optimizer = torch.optim.SGD(norm.parameters(), lr=0.1)
    for step in range(steps):
        loss = (norm(torch.eye(3)) - 3 * torch.eye(3)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if report:
            report(step, loss)


def total(x):
    return x.sum(0).square().sum()


class Attention(nn.Module):
    def __init__(self, rate):
        super().__init__()
        self.dropout = nn.Dropout(rate)

    def forward(self, queries, keys, values, lens=None):
        hidden = torch.zeros(())
        if lens is not None:
            lens = lens if lens.dim() > 1 else lens[:, None]
            hidden = torch.arange(keys.shape[1]) >= lens[:, :, None]
        weights = scores(queries, keys).masked_fill(hidden.bool(), -torch.inf)
        self.attention_weights = torch.softmax(weights, dim=-1)
        return torch.bmm(self.dropout(self.attention_weights), values)


class Averages(nn.Module):
    def __init__(self, width, dropout=0.0):
        super().__init__()
        self.W_query, self.W_key, self.W_value = (
            nn.Linear(width, width, bias=False) for _ in range(3)
        )
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        weights = scores(self.W_query(x), self.W_key(x)).masked_fill(later, -torch.inf)
        return self.dropout(torch.softmax(weights, dim=-1)) @ self.W_value(x)
"""
# The same with a mistake in everything, each of which some example has to notice.
WRONG = (
    SOLUTION.replace("temperature <= 0", "temperature < -1")
    .replace("scores / temperature, dim=-1", "scores * temperature, dim=0")
    .replace("torch.rand(weights.shape)", "torch.rand(weights.shape[1:], generator=OWN)")
    .replace(
        "return x - x.mean(-1, keepdim=True)\n\n\ndef clear_",
        "x -= torch.stack([row.mean() for row in x])[:, None]\n"
        "    return torch.relu(x.detach().flatten(1)).double()\n\n\ndef clear_",
    )
    .replace("x.zero_()", "x = x * 0")
    .replace(
        "torch.bmm(a, b.transpose(1, 2))",
        "torch.stack([(m[:, None] * n).sum(-1) for m, n in zip(a, b)])",
    )
    .replace("lr=0.1", "lr=-0.1")
    .replace("x.sum(0).square().sum()", "(x @ x.T).sum()")
    .replace("self.gamma * (x - x.mean(-1, keepdim=True))", "self.gamma.sum() * x.sub_(1)[..., 1:]")
    .replace("self.gamma = ", "self.beta = self.gamma = ")
    .replace("torch.ones(d_model)", "torch.ones(1, d_model)")
    .replace(
        "super().__init__()", "super().__init__()\n        self.one = {1: [torch.ones(d_model)]}"
    )
    .replace("return self.gamma.sum() *", "return self.one[1][0] * self.gamma.sum() *")
    .replace("self.dropout(self.attention_weights)", "self.attention_weights.flip(-1)")
    .replace("weights = torch.softmax(weights, dim=-1)", "weights = torch.softmax(weights, dim=-2)")
    .replace("self.dropout(torch.softmax(weights, dim=-1))", "torch.softmax(weights, dim=-2)")
    + "\n\nOWN = torch.Generator()\n"
)
WORDS = [getattr(testing, name) for name in testing.__all__ if name != "Rng"]
MAKERS = (
    *(authors.drawn, authors.turned, authors.built, authors.output, authors.gradient),
    *(authors.changed, authors.refused, authors.accepted, authors.moved, authors.parameters),
    *(authors.Check, authors.Check.case),
    *(authors.filled, authors.scaled, authors.reached, authors.slopes_with_dropout),
    *(authors.in_turn, authors.after_training, authors.other_weights, authors.works_as_well),
    *(authors.only_dtype, authors.argument_cases, authors.dtype_cases),
)
FAMILIES = (
    *(attention_cases.dropout_cases, attention_cases.each_on_its_own, attention_cases.future_cases),
    *(attention_cases.pair_dropout_cases, attention_cases.each_pair_on_its_own),
    *(attention_cases.kept_weights, attention_cases.weights_kept, attention_cases.identity),
)


def example(word: object) -> str:
    """The test in a word's docstring."""
    doc = inspect.getdoc(word) or ""
    return textwrap.dedent(doc.split("Example::\n")[1])


@pytest.fixture(
    params=[("testing", WORDS), ("authors", MAKERS), ("attention_cases", FAMILIES)],
    ids=["testing", "authors", "attention_cases"],
)
def words(request: pytest.FixtureRequest) -> tuple[str, list[object]]:
    """A module of the vocabulary, and what it has."""
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def course_of_examples(tiny_copy: Path, words: tuple[str, list[object]]) -> Path:
    """The tiny course, whose hidden suite is made of all examples of a module."""
    folder, (module, chosen) = tiny_copy / "reference" / "scale", words
    suite = [
        "import functools\nimport torch\nfrom grader.authors import *\n",
        f"from grader.{module} import *\n",
        *(textwrap.dedent(example(word)) for word in chosen),
    ]
    (folder / "test_hidden.py").write_text("\n\n".join(suite))
    (folder / "solution.py").write_text(SOLUTION)
    settings = (folder / "exercise.toml").read_text()
    count = len(chosen)
    settings = re.sub(r"points = \d+", f"points = {count}", settings)
    settings = re.sub(r"forbidden = .*", 'forbidden = ["torch*.relu"]', settings)
    (folder / "exercise.toml").write_text(f"{settings}\n[training]\nseconds = 20\n")
    (tiny_copy / "reference" / "course.toml").write_text(f'title = "Words"\npoints = {count}\n')
    return tiny_copy


@pytest.mark.slow
def test_every_word_has_an_example_that_is_right(
    course_of_examples: Path, words: tuple[str, list[object]], grade: Grade
) -> None:
    course = load_course(course_of_examples)
    (result,) = grade(course, {"scale": SOLUTION}).exercises
    assert {test.name: test.message for test in result.tests if test.outcome != "passed"} == {}
    assert len(result.tests) == len(words[1])


@pytest.mark.slow
def test_every_example_notices_a_mistake(course_of_examples: Path, grade: Grade) -> None:
    course = load_course(course_of_examples)
    (result,) = grade(course, {"scale": WRONG}).exercises
    assert [test.name for test in result.tests if test.outcome == "passed"] == []
    assert {test.outcome for test in result.tests} == {"failed"}


def test_of_right_dropout_none_is_refused_however_few_values_there_are() -> None:
    for seed in range(1000):
        rng = testing.Rng(seed)
        testing.assert_dropped(rng.rand(200, 1) < 0.5, 0.5, "weights")


class Ours:
    """Code in this process."""

    @contextlib.contextmanager
    def raises(self, *kinds: str) -> Iterator[None]:
        yield
        raise NothingRaised("nothing was raised")

    def sharing(self, *written: Tensor) -> contextlib.nullcontext[None]:
        return contextlib.nullcontext()


def test_what_is_wrong_otherwise_is_not_said_to_raise_nothing() -> None:
    student: Any = SimpleNamespace(__code__=Ours())
    with pytest.raises(Mismatch, match=r"f.1. raises nothing, where ValueError is expected"):
        testing.assert_refused(student, lambda: None, "f(1)")

    def call() -> None:
        raise Mismatch("return a torch tensor")

    with pytest.raises(Mismatch, match=r"^return a torch tensor$"):
        testing.assert_refused(student, call, "f(1)")


def test_code_in_this_process_may_not_change_a_dict_either() -> None:
    student: Any = SimpleNamespace(__code__=Ours())
    entries = {1: [2.0]}
    with pytest.raises(Mismatch, match="changed its argument entries; work on a copy"):
        testing.assert_unchanged(student, lambda d: d[1].append(0.0), entries, names=["entries"])
    assert entries == {1: [2.0]}
    assert testing.assert_unchanged(student, len, entries, names=["entries"]) == 1


def test_random_inputs_may_have_no_axes() -> None:
    rng = testing.Rng(1)
    assert (rng.randn().shape, rng.rand().shape) == ((), ())
    assert rng.randn(2, 3).shape == (2, 3)
