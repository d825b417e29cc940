"""Every fact about a wrong answer holds of that answer, and of no right one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from grader.course.course import Course
from grader.grading.aspects import aspect_of
from grader.grading.cases import Case
from grader.grading.diagnosis import facts
from grader.grading.diagnosis.answers import Raised, values_of
from grader.grading.diagnosis.facts import FACTS, Compared, facts_of

AXES = ("batch item", "query", "key")
GENERATOR = torch.Generator().manual_seed(3)


def weights() -> Tensor:
    """Return rows that sum to 1, with some zeros, (2, 4, 4)."""
    scores = torch.randn(2, 4, 4, generator=GENERATOR, dtype=torch.float64)
    scores[0, :, 3] = -torch.inf
    return torch.softmax(scores, -1)


EXPECTED = weights()
ONE_ITEM, ONE_KEY = EXPECTED.clone(), EXPECTED.clone()
ONE_ITEM[1] = ONE_ITEM[1].flip(-1)
ONE_KEY[..., :2] += 0.1
NAN = EXPECTED.clone()
NAN[:, 2] = torch.nan
EMPTY = EXPECTED.clone()
EMPTY[0, :, 3] = 1e-3
DIAGONAL = EXPECTED + torch.eye(4, dtype=torch.float64) * 0.5
LOST = EXPECTED.clone()
LOST[1, 0] = 0.0

OTHER = EXPECTED + torch.linspace(0.1, 0.2, 32, dtype=torch.float64).view(2, 4, 4) ** 2
OTHER[0, 0], OTHER[0, 1, :2], OTHER[0, 1, 2] = EXPECTED[0, 0], EXPECTED[0, 1, :2], 0.5

CASES = {
    "nowhere_finite": (EXPECTED * torch.nan, "the output is nan everywhere."),
    "all_zero": (EXPECTED * 0, "the output is zero everywhere."),
    "transposed": (EXPECTED.mT.contiguous(), "the output is transposed."),
    "multiple": (EXPECTED * 2.5, "the output is the expected one times 2.5."),
    "shifted": (EXPECTED - 0.25, "the output is the expected one minus 0.25."),
    "reordered": (EXPECTED[:, [2, 0, 1, 3]], "the queries come in another order: 2, 0, 1, 3."),
    "finite_elsewhere": (NAN, "the output is nan only in query 2, and right elsewhere."),
    "few_digits": (EXPECTED.float().double(), "the output is off by at most"),
    "softmax_of_multiples": (
        torch.softmax(EXPECTED.log() * 0.6931, -1),
        "each row of the output is what softmax makes of the right scores times 0.6931.",
    ),
    "rows_do_not_sum_to_one": (ONE_KEY, "8 of 8 rows sum to 1.2000, not to 1."),
    "wrong_where_zero": (EMPTY, "the output is wrong only where 0 is expected."),
    "on_the_diagonal": (
        DIAGONAL,
        "the output is wrong only on the diagonal, and right elsewhere.",
    ),
    "only_some": (ONE_ITEM, "the output is wrong only in batch item 1, and right elsewhere."),
    "slightly": (EXPECTED + 1e-5 * EXPECTED**2, "the output is off by at most"),
    "first_difference": (OTHER, "the output is 0.5000 at batch item 0, query 1, key 2, where"),
}


def compared(actual: Tensor) -> Compared:
    return Compared("the output", actual, EXPECTED, AXES, (1e-6, 1e-8))


def test_every_fact_has_a_case() -> None:
    assert [*(fact.__name__ for fact in FACTS), "first_difference"] == list(CASES)


@pytest.mark.parametrize("name", CASES)
def test_a_fact_is_said_where_it_holds(name: str) -> None:
    actual, sentence = CASES[name]
    assert getattr(facts, name)(compared(actual)).startswith(sentence)


@pytest.mark.parametrize("name", [name for name in CASES if name != "first_difference"])
def test_a_fact_is_not_said_of_noise(name: str) -> None:
    noise = torch.randn(EXPECTED.shape, generator=GENERATOR, dtype=torch.float64)
    assert getattr(facts, name)(compared(EXPECTED + noise)) == ""


def test_a_place_that_is_slightly_wrong_is_said_to_be_so() -> None:
    near = EXPECTED.clone()
    near[1] += 1e-5
    says = "the output is wrong only in batch item 1 by at most 1e-05, and right elsewhere."
    assert facts.only_some(compared(near)) == says


def test_rows_of_equal_weights_are_said_to_be_equal() -> None:
    equal = (EXPECTED > 0).double()
    says = facts.softmax_of_multiples(compared(equal / equal.sum(-1, keepdim=True)))
    assert says == "in each row of the output, all weights that are not 0 are equal."


def test_what_is_right_on_the_diagonal_alone_is_said() -> None:
    others = EXPECTED + (1 - torch.eye(4, dtype=torch.float64))
    says = "the output is right only on the diagonal, and wrong elsewhere."
    assert facts.on_the_diagonal(compared(others)) == says


def test_of_whatever_else_is_wrong_the_first_numbers_are_said() -> None:
    noise = torch.randn(EXPECTED.shape, generator=GENERATOR, dtype=torch.float64)
    says = said_of(EXPECTED + noise)
    assert says.startswith("the output is ")
    assert says.endswith(" is expected; 32 of 32 numbers differ.")
    one = Compared("`total`", torch.tensor(2.0), torch.tensor(3.0), (), (1e-6, 1e-8))
    assert facts.first_difference(one) == "`total` is 2.0000, where 3.0000 is expected."


def said_of(actual: Tensor, expected: Tensor = EXPECTED) -> str:
    """The first fact that is said of a tensor."""
    case = Compared("the output", actual, expected, AXES, (1e-10, 1e-10))
    return facts.most_telling(case)[1]


def test_an_error_is_said_before_numbers_that_tell_nothing(tiny_course: Course) -> None:
    cases = [
        Case(name, aspect_of("values"), f"{name}.", lambda student, rng: None)
        for name in ("Two sentences", "One sentence")
    ]
    reference = SimpleNamespace(answer=lambda case: values_of(EXPECTED))
    catalogue: Any = SimpleNamespace(
        cases=cases, axes=AXES, reference=reference, exercise=tiny_course["scale"]
    )
    noise = torch.randn(EXPECTED.shape, generator=GENERATOR, dtype=torch.float64)
    answers = {cases[0].name: values_of(noise), cases[1].name: Raised("RuntimeError", "shape")}
    first, second = facts_of(catalogue, cases, answers)
    assert first.says == "One sentence: your code raises an error about shapes."
    assert second.says.startswith("Two sentences: the output is ")
    assert second.says.endswith("; 32 of 32 numbers differ.")


def test_rows_without_weights_are_no_obstacle_to_saying_how_scores_were_scaled() -> None:
    expected, actual = EXPECTED.clone(), torch.softmax(-2 * EXPECTED.log(), -1)
    actual[0, :, :3] = torch.softmax(-2 * EXPECTED[0, :, :3].log(), -1)
    for weights in (expected, actual):
        weights[0, :, 3], weights[1, 2] = 0.0, 0.0  # a padded key, and a row of length 0
    says = said_of(actual, expected)
    assert says == "each row of the output is what softmax makes of the right scores times -2."


def test_what_is_infinite_is_not_called_shifted() -> None:
    infinite = EXPECTED + torch.inf
    assert said_of(infinite) == "the output is infinite everywhere."
    infinite[0, 0] = torch.nan
    assert said_of(infinite) == "the output is nan or infinite everywhere."
    mostly = EXPECTED + torch.inf
    mostly[:, 0] = EXPECTED[:, 0]
    assert said_of(mostly) == "the output is infinite in every query but 0, and right elsewhere."


def test_a_factor_near_one_has_the_digits_that_tell_it_from_one() -> None:
    assert said_of(EXPECTED * 1.00012) == "the output is the expected one times 1.0001."


def test_a_sum_near_one_has_the_digits_that_tell_it_from_one() -> None:
    near = EXPECTED.clone()
    near[0, 1, 2] += 2e-6
    assert said_of(near) == "1 of 8 rows sum to 1.000002, not to 1."


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_few_digits_are_said_only_of_values_that_have_no_more(dtype: torch.dtype) -> None:
    rounded = EXPECTED.to(dtype).double()
    says, name = said_of(rounded), str(dtype).removeprefix("torch.")
    assert says.startswith("the output is off by at most")
    assert says.endswith(f", and has only the digits of {name}.")
    assert "digits" not in said_of(rounded + 1e-5 * EXPECTED**2)


@pytest.mark.parametrize(("name", "other"), [("multiple", "shifted"), ("shifted", "multiple")])
def test_facts_exclude_each_other(name: str, other: str) -> None:
    assert getattr(facts, other)(compared(CASES[name][0])) == ""
