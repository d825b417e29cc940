"""Hidden tests of attention dropout, which decide the points.

Which weights are dropped is chance, so tests ask for what holds for every draw, and for shares over
many draws. One mistake should cost one check: a check of an edge also accepts what follows from
what the student's own code gives in the ordinary case.
"""

import functools

import pytest
import torch
from torch import Tensor

from grader.testing import (
    assert_close,
    assert_dropped,
    assert_dtype,
    assert_refused,
    assert_same,
    assert_slopes,
    assert_unchanged,
    assert_vectorised,
    assert_written_by_hand,
    expect,
    in_float64,
    manual_seed,
)

pytestmark = pytest.mark.needs("test_written_by_hand")

BATCH, N_QUERIES, N_KEYS = 2, 3, 5
DRAWS = 400
SHAPES = ((7,), (40, 5), (3, 4, 6), (4, 4, 4), (2, 3, 4, 5), (9, 1), (1, 8), (30, 1, 1))


def weights_of(rng, *shape):
    """Return random attention weights, whose rows sum to 1 and are never 0."""
    return torch.softmax(rng.randn(*shape), dim=-1)


def dropped_of(output, shape):
    """Return where an output of this shape is 0; raise `Mismatch` if it has another shape."""
    given = isinstance(output, Tensor) and tuple(output.shape) == shape
    expect(given, f"the result does not have the shape {shape} of the weights")
    return output == 0


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """The dropping is written by hand, without torch's dropout.

    Guards: the calls that the exercise forbids.
    """
    weights = weights_of(rng, BATCH, N_QUERIES, N_KEYS)
    assert_written_by_hand(
        student,
        lambda: student.drop(weights, 0.5, True),
        lambda: student.drop(weights, 0.5, False),
    )


@pytest.mark.points(1)
def test_kept_weights(student, rng):
    """In training, each weight is 0 or weight / (1 - rate), in any shape.

    Guards: rows are not normalised again, and single keys, queries and batch items work.
    """
    for shape in SHAPES:
        for rate in (0.5, 0.2, 0.75, 0.05):
            weights = weights_of(rng, *shape)
            output = student.drop(weights, rate, True)
            kept = (weights / (1 - rate)).masked_fill(dropped_of(output, shape), 0.0)
            shown = f"the result at rate {rate} for weights of shape {shape}"
            assert_close(in_float64(output), kept, shown)
    # So small that not one of 5,000 weights is dropped is no chance.
    many = student.drop(weights_of(rng, 1000, N_KEYS), 0.2, True)
    expect((many != 0).any(), "all weights are dropped at rate 0.2")


@pytest.mark.points(1)
def test_each_on_its_own(student, rng):
    """Each weight is dropped on its own, as often as the rate says, and anew in each call.

    Guards: torch.manual_seed repeats a draw.
    """
    for shape, rate in (((N_QUERIES, N_KEYS), 0.3), ((2, 2, 3), 0.7), ((6,), 0.5)):
        shape = (DRAWS, *shape)  # noqa: PLW2901
        dropped = dropped_of(student.drop(weights_of(rng, *shape), rate, True), shape)
        assert_dropped(dropped, rate, "weights")
    many = torch.full((40, 25, 20), 0.05, dtype=torch.float64)  # so many that 0.02 is no chance
    for rate in (0.07, 0.33, 0.64, 0.96):
        dropped = dropped_of(student.drop(many, rate, True), tuple(many.shape))
        share = dropped.double().mean().item()
        says = f"{share:.1%} of {many.numel():,} weights are dropped at rate {rate}"
        expect(abs(share - rate) < 0.02, says)
        # How alike the draws are to themselves, moved on by any number of weights.
        spectrum = torch.fft.rfft(dropped.flatten().double() - share, n=2 * many.numel())
        alike = torch.fft.irfft(spectrum.abs() ** 2)[: many.numel() // 2]
        says = f"of {many.numel():,} weights, some are always dropped together"
        expect(alike[1:].abs().max() < 0.2 * alike[0], says)
    few = weights_of(rng, 1, 3, 4)
    draws = [dropped_of(student.drop(few, 0.5, True), (1, 3, 4)) for _ in range(200)]
    assert_dropped(torch.cat(draws), 0.5, "weights, in calls with one batch item each,")
    weights = weights_of(rng, BATCH, N_QUERIES, 20)
    repeated = []
    for _ in range(2):
        manual_seed(student, 11, only_torch=True)
        repeated.append(student.drop(weights, 0.5, True))
    assert_same(*repeated, "the result after the same torch.manual_seed", shape=(2, 3, 20))


@pytest.mark.points(1)
def test_nothing_dropped_in_evaluation(student, rng):
    """If training is False, the result equals the weights, whatever the rate is."""
    for rate in (0.5, 0.0, 0.2, 1.0, 1, 0):
        for shape in ((BATCH, N_QUERIES, N_KEYS), (1, 4), (6,), (3, 2, 1)):
            weights = weights_of(rng, *shape)
            output = in_float64(student.drop(weights, rate, False))
            assert_close(output, weights, f"the result at rate {rate} in evaluation")
    weights = weights_of(rng, BATCH, N_QUERIES, N_KEYS)
    trained = student.drop(weights, 0.5, True)
    expect(isinstance(trained, Tensor), "the result in training is not a tensor")
    trains = student.drop(weights_of(rng, 1000, N_KEYS), 0.5, True)
    expect((trains == 0).any(), "nothing is dropped in training either")


@pytest.mark.points(1)
def test_limits_of_the_rate(student, rng):
    """Rate 0 drops nothing, rate 1 gives zeros and finite gradients, and others are refused."""
    weights = weights_of(rng, 20, N_QUERIES, N_KEYS)
    for rate in (0.0, 0):
        output = in_float64(student.drop(weights, rate, True))
        assert_close(output, weights, "the result at rate 0")
    many = torch.full((64, 64), 1 / 64, dtype=torch.bfloat16)
    kept = in_float64(student.drop(many, 0.0, True))
    assert_same(kept, in_float64(many), "the result at rate 0 in bfloat16")
    for rate in (1.0, 1):
        leaf = weights.clone().requires_grad_()
        output = student.drop(leaf, rate, True)
        assert_close(in_float64(output).detach(), torch.zeros_like(weights), "the result at rate 1")
        if output.requires_grad:
            output.sum().backward()
            finite = leaf.grad is None or leaf.grad.isfinite().all()
            expect(finite, "the gradient at rate 1 is not finite")
    for rate in (-0.1, 1.1, -1, 2, -1e-7, 1.0000001):
        for training in (True, False):
            shown = f"drop(weights, {rate}, {training})"
            call = lambda r=rate, t=training: student.drop(weights, r, t)  # noqa: E731
            assert_refused(student, call, shown)


@pytest.mark.points(1)
def test_gradients(student, reference, rng):
    """Gradients reach the weights that are kept, and are those of what the code computes.

    Guards: in training and in evaluation.
    """
    for shape, rate in (((BATCH, N_QUERIES, N_KEYS), 0.5), ((4, 7), 0.2)):
        for training in (True, False):
            inputs = {"weights": weights_of(rng, *shape), "rate": rate, "training": training}
            assert_slopes(student, student.drop, reference.drop, inputs, rng=rng)


@pytest.mark.points(1)
def test_tensors(student, rng):
    """The dtype is kept, views work, nothing is modified, and no Python loop runs over an axis."""
    shape = (BATCH, N_QUERIES, N_KEYS)
    weights = weights_of(rng, *shape)
    swapped = weights.transpose(0, 1).contiguous().transpose(0, 1)
    for training in (True, False):
        for dtype in (torch.float64, torch.float32, torch.bfloat16, torch.float16):
            narrow = weights.to(dtype)
            output = student.drop(narrow, 0.5, training)
            shown = f"the result for weights of {dtype}"
            assert_dtype(output, dtype, shown)
            largest = output.double().max()
            expect(output.isfinite().all() and 0 <= largest < 10, f"{shown} is not near them")
        for view in (weights, weights.mT.contiguous().mT, swapped, weights[:, :1].expand(2, 3, 5)):
            for rate in (0.5, 0.0, 1.0):
                names = ["weights"]
                output = assert_unchanged(student, student.drop, view, rate, training, names=names)
                same_shape = isinstance(output, Tensor) and tuple(output.shape) == shape
                expect(same_shape, "the result for a view has another shape")

        def called(batch=BATCH, n_queries=N_QUERIES, n_keys=N_KEYS, training=training):
            fresh = weights_of(rng, batch, n_queries, n_keys)
            return functools.partial(student.drop, fresh, 0.5, training)

        grown = {"batch items": {"batch": (9, 19)}, "queries": {"n_queries": (13, 27)}}
        assert_vectorised(student, called, {**grown, "keys": {"n_keys": (17, 35)}})
