"""What cases say tells one mistake from another, and does not depend on what is drawn."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from torch import Tensor

from grader.authors import (
    LUCK,
    dropped_weights,
    drops_anew,
    extremes,
    finite_too,
    share_of_zeros,
    steps_reported,
    weights_kept_in_training,
    works_too,
    works_when_new,
)
from grader.errors import Mismatch
from grader.grading.direct import DirectCode
from grader.sandbox.host.proxies import Student
from grader.sandbox.program import Program

DRAWS = 40
VISIBLE = torch.ones(3, 3).tril().bool()  # (n_queries, n_keys)


def randn(*shape: int, seed: int = 1) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


QUERIES, KEYS, VALUES = randn(2, 3, 4), randn(2, 3, 4, seed=2), randn(2, 3, 5, seed=3)


def student(more: int) -> Student:
    """A student whose code runs here; the seeds of two of them differ."""
    code = SimpleNamespace(manual_seed=lambda seed, **_: torch.manual_seed(seed + more))
    return cast(Student, SimpleNamespace(__code__=code))


def drop(x: Tensor, *alike: int) -> Tensor:
    """Drop half of the numbers of x, with one draw for all along the axes `alike`."""
    shape = [1 if axis in alike else size for axis, size in enumerate(x.shape)]
    return x * (torch.rand(shape) < 0.5) * 2


def softmax(scores: Tensor) -> Tensor:
    return torch.softmax(scores.masked_fill(~VISIBLE, -torch.inf), -1)


SCORES = QUERIES @ KEYS.mT
WAYS: dict[str, Callable[[], Tensor]] = {
    "weights": lambda: drop(softmax(SCORES)) @ VALUES,
    "nothing": lambda: softmax(SCORES) @ VALUES,
    "values": lambda: softmax(SCORES) @ drop(VALUES),
    "outputs": lambda: drop(softmax(SCORES) @ VALUES),
    "scores": lambda: softmax(drop(SCORES)) @ VALUES,
    "queries": lambda: softmax(drop(QUERIES) @ KEYS.mT) @ VALUES,
    "one draw for all queries": lambda: drop(softmax(SCORES), 1) @ VALUES,
    "one draw for all keys": lambda: drop(softmax(SCORES), 2) @ VALUES,
    "one draw for all items": lambda: drop(softmax(SCORES), 0) @ VALUES,
}


def pattern(way: str, seed: int) -> list[int]:
    """What is said of one way to drop, as numbers."""
    torch.manual_seed(seed)
    outputs = torch.stack([WAYS[way]() for _ in range(DRAWS)])
    said = dropped_weights(outputs, VALUES, VISIBLE)
    return torch.cat([each.flatten() for each in said.values()]).int().tolist()


@pytest.mark.parametrize("way", WAYS)
def test_what_is_said_of_dropped_weights_does_not_depend_on_the_draws(way: str) -> None:
    assert pattern(way, 1) == pattern(way, 2) == pattern(way, 3)


def test_each_way_to_drop_is_told_from_the_others() -> None:
    assert len({tuple(pattern(way, 1)) for way in WAYS}) == len(WAYS)


def test_dropped_weights_are_dropped_each_on_its_own() -> None:
    outputs = torch.stack([WAYS["weights"]() for _ in range(DRAWS)])
    said = dropped_weights(outputs, VALUES, VISIBLE)
    assert said["weights"].all()
    assert torch.equal(said["apart"].bool(), ~torch.eye(12).bool())


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_outputs_that_are_not_finite_say_nothing_of_what_is_dropped(value: float) -> None:
    """Numbers that are not 0 would count as kept, and those that never are as never dropped."""
    outputs = torch.stack([WAYS["weights"]() for _ in range(DRAWS)])
    outputs[3, 1, 2, 0] = value
    said = dropped_weights(outputs, VALUES, VISIBLE)
    shares = share_of_zeros(student(1), lambda x: drop(x) * value, randn(1, 2, 3))
    assert all(each.isnan().all() for each in (*said.values(), cast(Tensor, shares)))


def test_an_output_of_any_size_is_not_compared_with_itself() -> None:
    huge = torch.zeros(DRAWS, 40_000, 3, 5)
    with pytest.raises(Mismatch, match="far larger"):
        dropped_weights(huge, VALUES[:1], VISIBLE)


def outputs_of(way: str) -> Callable[[Tensor], Tensor]:
    """A call that drops in one way, in each copy on its own; none of its inputs counts."""
    return lambda copies: torch.stack([WAYS[way]()[0] for _ in copies])


@pytest.mark.parametrize("way", WAYS)
def test_extremes_are_the_same_for_any_draws_or_said_to_be_luck(way: str) -> None:
    call, one = outputs_of(way), torch.zeros(1)
    found = [extremes(student(seed), call, one, two_keys=call) for seed in range(3)]
    if way == "queries":
        assert found == [{"largest": LUCK, "smallest": LUCK}] * 3
    for end in ("largest", "smallest") if way != "queries" else ():
        first, *others = (cast(Tensor, each[end]) for each in found)
        assert all(torch.allclose(first, other) for other in others)


def test_extremes_are_luck_if_all_copies_are_dropped_alike() -> None:
    found = extremes(student(1), lambda x: drop(x, 0), randn(1, 2, 3))
    assert found == {"largest": LUCK, "smallest": LUCK}


@pytest.mark.parametrize(("rate", "levels"), [(0.0, 0), (0.3, 1), (0.5, 2), (0.7, 3), (1.0, 4)])
def test_the_share_of_zeros_is_told_by_levels(rate: float, levels: int) -> None:
    found: Any = share_of_zeros(
        student(0), lambda x: x * (torch.rand(x.shape) >= rate), randn(1, 2, 3)
    )
    assert found.sum(0).tolist() == [[levels] * 3] * 2


def test_a_share_of_zeros_is_luck_if_all_copies_are_dropped_alike() -> None:
    assert share_of_zeros(student(1), lambda x: drop(x, 0), randn(1, 2, 3)) == LUCK


def test_numbers_that_are_never_finite_tell_nothing_of_some() -> None:
    one, other = torch.ones(2), torch.tensor([1.0, torch.nan])
    assert finite_too(one, other).tolist() == [True, False]
    assert finite_too(other, other).isnan().all()


def test_an_error_in_every_call_tells_nothing_of_one_of_them() -> None:
    def raising() -> None:
        raise RuntimeError

    assert works_too(lambda: 1, raising) == [False] * 12
    with pytest.raises(RuntimeError):
        works_too(raising, lambda: 1)


def test_a_layer_of_another_dtype_does_not_work_when_it_is_new() -> None:
    given, x = torch.nn.Linear(3, 2).double(), randn(5, 3)
    assert works_when_new(given, lambda: torch.nn.Linear(3, 2), x) == [True] * 12
    assert works_when_new(given, lambda: torch.nn.Linear(3, 2).half(), x) == [False] * 12


class Attention:
    """Keeps its weights: before dropout, or after it if they are `spoilt`."""

    def __init__(self, *, spoilt: bool) -> None:
        self._spoilt = spoilt

    def __call__(self, scores: Tensor) -> Tensor:
        weights = torch.softmax(scores, -1)  # of scores that hide no key
        dropped = drop(weights)
        self.attention_weights = dropped if self._spoilt else weights
        return dropped @ VALUES


@pytest.mark.parametrize("spoilt", [False, True])
def test_weights_that_are_kept_after_dropout_are_luck_with_zeros(spoilt: bool) -> None:
    found = weights_kept_in_training(student(0), Attention(spoilt=spoilt), (SCORES,), (-SCORES,))
    kept, zeros = found["attention_weights"], found["zeros"]
    if spoilt:
        assert (kept, zeros) == (LUCK, [True] * 12)
    else:
        assert torch.equal(kept, torch.softmax(-SCORES, -1))
        assert zeros == [False] * 12


def test_a_layer_that_drops_the_same_in_each_call_is_told() -> None:
    assert drops_anew(student(0), drop, randn(4, 50)) == [True] * 12

    def repeated(x: Tensor) -> Tensor:
        torch.manual_seed(1)
        return drop(x)

    assert drops_anew(student(0), repeated, randn(4, 50)) == [False] * 12


def test_reports_of_a_training_are_counted_by_their_numbers() -> None:
    def train(report: Callable[[int, float], None]) -> None:
        for step in (0, 2, 2, 3, 9):
            report(step, 0.5)

    trainer = Student(DirectCode(Program({}), "scale", ()))
    assert steps_reported(trainer, 3, train) == [1, 0, 2, 1, 0] * 12
