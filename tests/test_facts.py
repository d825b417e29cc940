"""Every fact about a wrong answer holds of that answer, and of no right one."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from grader.grading.diagnosis import facts
from grader.grading.diagnosis.facts import FACTS, Compared

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

CASES = {
    "all_nan": (EXPECTED * torch.nan, "the output is nan everywhere."),
    "all_zero": (EXPECTED * 0, "the output is zero everywhere."),
    "transposed": (EXPECTED.mT.contiguous(), "the output is transposed."),
    "multiple": (EXPECTED * 2.5, "the output is the expected one times 2.5."),
    "shifted": (EXPECTED - 0.25, "the output is the expected one minus 0.25."),
    "reordered": (EXPECTED[:, [2, 0, 1, 3]], "the queries come in another order: 2, 0, 1, 3."),
    "nan_only": (NAN, "the output is nan only in query 2, and right elsewhere."),
    "rows_do_not_sum_to_one": (ONE_KEY, "8 of 8 rows sum to 1.2, not to 1."),
    "wrong_where_zero": (EMPTY, "the output is wrong only where 0 is expected."),
    "on_the_diagonal": (
        DIAGONAL,
        "the output is wrong only on the diagonal, and right elsewhere.",
    ),
    "only_some": (ONE_ITEM, "the output is wrong only in batch item 1, and right elsewhere."),
    "slightly": (EXPECTED + 1e-5 * EXPECTED**2, "the output is off by at most"),
}


def compared(actual: Tensor) -> Compared:
    return Compared("the output", actual, EXPECTED, AXES, (1e-6, 1e-8))


def test_every_fact_has_a_case() -> None:
    assert [fact.__name__ for fact in FACTS] == list(CASES)


@pytest.mark.parametrize("name", CASES)
def test_a_fact_is_said_where_it_holds(name: str) -> None:
    actual, sentence = CASES[name]
    assert getattr(facts, name)(compared(actual)).startswith(sentence)


@pytest.mark.parametrize("name", CASES)
def test_a_fact_is_not_said_of_noise(name: str) -> None:
    noise = torch.randn(EXPECTED.shape, generator=GENERATOR, dtype=torch.float64)
    assert getattr(facts, name)(compared(EXPECTED + noise)) == ""


def test_what_is_right_on_the_diagonal_alone_is_said() -> None:
    others = EXPECTED + (1 - torch.eye(4, dtype=torch.float64))
    says = "the output is right only on the diagonal, and wrong elsewhere."
    assert facts.on_the_diagonal(compared(others)) == says


@pytest.mark.parametrize(("name", "other"), [("multiple", "shifted"), ("shifted", "multiple")])
def test_facts_exclude_each_other(name: str, other: str) -> None:
    assert getattr(facts, other)(compared(CASES[name][0])) == ""
