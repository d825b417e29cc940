"""Public tests of attention dropout, which students can read and run."""

import pytest
import torch

from grader.testing import (
    assert_close,
    assert_dropped,
    assert_dtype,
    assert_refused,
    assert_unchanged,
    assert_vectorised,
    assert_written_by_hand,
    expect,
    manual_seed,
)

pytestmark = pytest.mark.needs("test_by_hand")


def weights_of(rng, *shape):
    """Return random attention weights, whose rows sum to 1."""
    return torch.softmax(rng.randn(*shape), dim=-1)


@pytest.mark.points(0)
def test_by_hand(student, rng):
    """No function of torch drops the weights."""
    assert_written_by_hand(student, lambda: student.drop(weights_of(rng, 2, 3, 4), 0.5, True))


@pytest.mark.points(3)
def test_worked_example(student):
    """The worked example: a weight is 0, or divided by 1 - rate."""
    weights = torch.tensor([0.1, 0.2, 0.3, 0.4])
    for rate, scaled in ((0.5, [0.2, 0.4, 0.6, 0.8]), (0.2, [0.125, 0.25, 0.375, 0.5])):
        output = student.drop(weights.repeat(200, 1), rate, True)
        kept = output != 0
        expect(kept.any() and not kept.all(), f"at rate {rate}, all weights are dropped, or none")
        expected = torch.tensor(scaled).repeat(200, 1) * kept
        assert_close(output, expected, f"the weights at rate {rate}")


@pytest.mark.points(2)
def test_rate(student, rng):
    """Each weight is dropped on its own, as often as the rate says."""
    weights = weights_of(rng, 400, 3, 4)
    assert_dropped(student.drop(weights, 0.3, True) == 0, 0.3, "weights")
    few = weights_of(rng, 1, 3, 4)
    draws = [student.drop(few, 0.5, True) == 0 for _ in range(200)]
    assert_dropped(torch.cat(draws), 0.5, "weights, in calls with one batch item each,")


@pytest.mark.points(1)
def test_evaluation(student, rng):
    """In evaluation nothing is dropped, whatever the rate is."""
    weights = weights_of(rng, 2, 3, 4)
    for rate in (0.0, 0.5, 1.0):
        assert_close(student.drop(weights, rate, False), weights, f"the weights at rate {rate}")


@pytest.mark.points(1)
def test_limits(student, rng):
    """Rate 0 drops nothing, rate 1 everything, and other rates are refused."""
    weights = weights_of(rng, 2, 3, 4)
    assert_close(student.drop(weights, 0.0, True), weights, "the weights at rate 0")
    assert_close(student.drop(weights, 1.0, True), weights * 0, "the weights at rate 1")
    for rate in (-0.1, 1.1):
        shown = f"drop(weights, {rate}, True)"
        assert_refused(student, lambda r=rate: student.drop(weights, r, True), shown)


@pytest.mark.points(1)
def test_seed(student, rng):
    """torch.manual_seed repeats the draw; without it, each call draws anew."""
    weights = weights_of(rng, 2, 3, 9)
    draws = []
    for _ in range(2):
        manual_seed(student, 5, only_torch=True)
        draws.append(student.drop(weights, 0.5, True))
    assert_close(draws[1], draws[0], "the weights after the same seed")
    again = student.drop(weights, 0.5, True)
    expect((again != draws[1]).any(), "the next call drops the same weights")


@pytest.mark.points(0)
def test_whole_tensors(student, rng):
    """No Python loop runs over batch items, queries or keys."""

    def called(batch=2, n_queries=3, n_keys=4):
        weights = weights_of(rng, batch, n_queries, n_keys)
        return lambda: student.drop(weights, 0.5, True)

    larger = {"batch items": {"batch": (8, 17)}, "queries": {"n_queries": (9, 19)}}
    assert_vectorised(student, called, {**larger, "keys": {"n_keys": (10, 21)}})


@pytest.mark.points(0)
def test_argument_stays(student, rng):
    """The weights are not modified, and the result has their dtype."""
    for training in (False, True):
        weights = weights_of(rng, 2, 3, 4)
        assert_unchanged(student, student.drop, weights, 0.5, training, names=["weights"])
        narrow = student.drop(weights.to(torch.bfloat16), 0.5, training)
        assert_dtype(narrow, torch.bfloat16, "the result for bfloat16")
