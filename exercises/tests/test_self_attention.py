"""Public tests of self-attention, which students can read and run."""

import contextlib

import pytest
import torch

from grader.testing import (
    assert_close,
    assert_vectorised,
    assert_written_by_hand,
    expect,
    watched,
)

pytestmark = pytest.mark.needs("test_by_hand")

INPUTS = [
    [0.43, 0.15, 0.89],
    [0.55, 0.87, 0.66],
    [0.57, 0.85, 0.64],
    [0.22, 0.58, 0.33],
    [0.77, 0.25, 0.10],
    [0.05, 0.80, 0.55],
]
SCORES = torch.tensor([[0.9544, 1.4950, 1.4754, 0.8434, 0.7070, 1.0865]])  # of the second token


def called(student, rng, function, *shape):
    """Return a call of a function on positive numbers of this shape."""
    argument = rng.rand(*shape) + 0.1
    return lambda: getattr(student, function)(argument)


def assert_own_softmax(student, *calls):
    """Raise `Mismatch` if one of torch's softmaxes runs; other failures are reported elsewhere."""
    for call in calls:
        with contextlib.suppress(Exception), watched(student) as seen:
            call()
        found = [name for name in seen.counts if "softmax" in name or "logsumexp" in name]
        expect(
            not found, f"{', '.join(found[:1])} does the work that this exercise asks you to write"
        )


@pytest.mark.points(0)
def test_by_hand(student, rng):
    """No function of torch computes the softmax."""
    tables = ("softmax_naive", "softmax_stable", "context_vectors")
    calls = [called(student, rng, name, 3, 5) for name in tables]
    assert_written_by_hand(student, *calls)
    assert_own_softmax(student, *calls)


@pytest.mark.points(2)
def test_scores(student):
    """The worked example: the scores of token 2, by loops and by one product."""
    for name in ("scores_by_loops", "scores_by_product"):
        scores = getattr(student, name)(torch.tensor(INPUTS))
        expect(tuple(scores.shape) == (6, 6), f"`{name}` gives a table of {tuple(scores.shape)}")
        assert_close(scores[1:2], SCORES, f"row 2 of `{name}`", atol=1e-4)


@pytest.mark.points(2)
def test_normalise(student):
    """The worked example: a row is divided by its sum, 6.5617."""
    expected = torch.tensor([[0.1455, 0.2278, 0.2249, 0.1285, 0.1077, 0.1656]])
    assert_close(student.normalise(SCORES), expected, "the weights", atol=1e-4)
    signs = torch.tensor([[1.0, -2.0, 3.0], [4.0, 4.0, 2.0]])
    expected = torch.tensor([[0.5, -1.0, 1.5], [0.4, 0.4, 0.2]])
    assert_close(student.normalise(signs), expected, "the weights of two rows", atol=1e-4)


@pytest.mark.points(2)
def test_softmax(student):
    """The worked example: both functions give the softmax of row 2, and of 2 and -2."""
    expected = torch.tensor([[0.1385, 0.2379, 0.2333, 0.1240, 0.1082, 0.1581]])
    for name in ("softmax_naive", "softmax_stable"):
        softmax = getattr(student, name)
        assert_close(softmax(SCORES), expected, f"`{name}` of row 2", atol=1e-4)
        weights = softmax(torch.tensor([[2.0, -2.0], [0.0, 0.0]]))
        signs = torch.tensor([[0.9820, 0.0180], [0.5, 0.5]])
        assert_close(weights, signs, f"`{name}` of two rows", atol=1e-4)


@pytest.mark.points(2)
def test_large_scores(student):
    """softmax_stable is right for scores of 1e4 and -1e4, in each row for itself."""
    scores = torch.tensor([[1e4, 1e4 - 1, -1e4], [-1e4, -1e4 - 1, -2e4]])
    expected = torch.tensor([[0.7311, 0.2689, 0.0]]).expand(2, 3)
    assert_close(student.softmax_stable(scores), expected, "the weights", atol=1e-4)


@pytest.mark.points(2)
def test_context(student):
    """The worked example: the context vector of token 2; each item of a batch has its own."""
    inputs = torch.tensor(INPUTS)
    context = student.context_vectors(inputs)
    expect(tuple(context.shape) == (6, 3), f"the context has the shape {tuple(context.shape)}")
    assert_close(context[1], torch.tensor([0.4419, 0.6515, 0.5683]), "the context", atol=1e-4)
    batch = student.context_vectors(torch.stack([inputs * 2, inputs]))
    assert_close(batch[1], context, "the context of the second item of a batch", atol=1e-4)


@pytest.mark.points(0)
def test_loops_and_no_loops(student, rng):
    """A loop over the tokens runs in scores_by_loops, and in no other function."""
    names = ("scores_by_product", "normalise", "softmax_naive", "softmax_stable")
    for name in (*names, "context_vectors"):

        def with_sizes(batch=2, rows=3, name=name):
            return called(student, rng, name, batch, rows, 4)

        more = {"batch items": {"batch": (7, 15)}, "rows": {"rows": (8, 17)}}
        assert_vectorised(student, with_sizes, more)
    counts = []
    for n_tokens in (2, 6):
        with watched(student, kernels=False) as seen:
            called(student, rng, "scores_by_loops", n_tokens, 4)()
        counts.append(seen.operations)
    expect(counts[1] > counts[0], "`scores_by_loops` takes no more steps for 6 tokens than for 2")
