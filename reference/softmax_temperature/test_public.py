"""Public tests of softmax and temperature, which students can read and run."""

import math

import pytest
import torch

from grader.testing import (
    assert_close,
    assert_refused,
    assert_unchanged,
    assert_vectorised,
    assert_written_by_hand,
    expect,
)

pytestmark = pytest.mark.needs("test_by_hand")


def calls_of(student, rng, *leading, n_keys=5, n=6, d_key=4):
    """Return a call of each function, by its name, on random numbers."""
    scores = rng.randn(*leading, n_keys)
    queries, keys = rng.randn(*leading, n, d_key), rng.randn(*leading, n, d_key)
    return {
        "tempered_softmax": lambda: student.tempered_softmax(scores, 0.5),
        "entropy": lambda: student.entropy(scores.softmax(-1)),
        "variance_of_products": lambda: student.variance_of_products(queries, keys),
        "scale": lambda: student.scale(scores, 7),
    }


@pytest.mark.points(0)
def test_by_hand(student, rng):
    """No function of torch does all of the work."""
    assert_written_by_hand(student, *calls_of(student, rng, 2, 3).values())


@pytest.mark.points(3)
def test_worked_example(student):
    """The worked example: the scores 1, 2, 3 with temperatures from 0.1 to 10."""
    scores = torch.tensor([1.0, 2.0, 3.0])
    expected = {
        0.1: ([0.0, 0.0, 1.0], 0.0005),
        0.5: ([0.0159, 0.1173, 0.8668], 0.4411),
        1: ([0.0900, 0.2447, 0.6652], 0.8324),
        2: ([0.1863, 0.3072, 0.5065], 1.0202),
        10: ([0.3006, 0.3322, 0.3672], 1.0953),
    }
    for temperature, (weights, nats) in expected.items():
        found = student.tempered_softmax(scores, temperature)
        assert_close(found, torch.tensor(weights), f"the weights at {temperature}", atol=1e-4)
        exact = torch.softmax(scores / temperature, dim=-1)
        assert_close(student.entropy(exact), torch.tensor(nats), "the entropy", atol=1e-4)


@pytest.mark.points(2)
def test_weights_of_zero(student):
    """A weight of 0 adds 0 to the entropy, and its gradient is finite."""
    weights = torch.tensor([[0.5, 0.0, 0.5], [0.0, 1.0, 0.0]], requires_grad=True)
    nats = student.entropy(weights)
    assert_close(nats.detach(), torch.tensor([math.log(2), 0.0]), "the entropy")
    nats.sum().backward()
    expect(weights.grad.isfinite().all(), "the gradient of the weights is not finite")


@pytest.mark.points(1)
def test_even_weights(student):
    """The largest entropy is the logarithm of the number of keys."""
    nats = student.entropy(torch.full((2, 3, 5), 0.2))
    assert_close(nats, torch.full((2, 3), math.log(5)), "the entropy")


@pytest.mark.points(1)
def test_variance(student):
    """The worked example: the products 4, 2 and 0 have the variance 2.6667."""
    queries = torch.tensor([[1.0, 2.0], [3.0, -1.0], [0.0, 2.0]])
    keys = torch.tensor([[2.0, 1.0], [1.0, 1.0], [4.0, 0.0]])
    assert_close(student.variance_of_products(queries, keys), torch.tensor(8 / 3), "the variance")


@pytest.mark.points(1)
def test_scale(student, rng):
    """For random vectors, the variance is near d_key, and near 1 after `scale`."""
    for d_key in (16, 64):
        queries, keys = rng.randn(4000, d_key), rng.randn(4000, d_key)
        variance = student.variance_of_products(queries, keys) / d_key
        expect(0.8 < variance < 1.2, f"for d_key {d_key}, it is {variance:.3f} times d_key")
        variance = student.scale((queries * keys).sum(-1), d_key).var()
        expect(0.8 < variance < 1.2, f"for d_key {d_key}, it is {variance:.3f} after `scale`")


@pytest.mark.points(1)
def test_any_size(student, rng):
    """Scores of any size give finite weights, and a temperature near 0 picks the best key."""
    scores = rng.permutation(12).double().view(3, 4)
    weights = student.tempered_softmax(scores * 1e4, 1.0)
    expect(weights.isfinite().all(), "a weight is not finite for scores of 1e4")
    picked = torch.nn.functional.one_hot(scores.argmax(-1), 4).double()
    assert_close(student.tempered_softmax(scores, 1e-3), picked, "the weights at 0.001")


@pytest.mark.points(1)
def test_no_temperature(student):
    """A temperature of 0 or below is refused."""
    scores = torch.tensor([1.0, 2.0, 3.0])
    student.tempered_softmax(scores, 1.0)
    for temperature in (0.0, -1.0):
        shown = f"tempered_softmax(scores, {temperature})"
        assert_refused(student, lambda t=temperature: student.tempered_softmax(scores, t), shown)


@pytest.mark.points(0)
def test_whole_tensors(student, rng):
    """No Python loop runs over rows, keys, products or features."""
    larger = {
        "rows": {"rows": (9, 19)},
        "keys": {"n_keys": (16, 33)},
        "products": {"n": (20, 41)},
        "features": {"d_key": (17, 35)},
    }
    for name in calls_of(student, rng, 2, 3):

        def called(rows=2, name=name, **sizes):
            return calls_of(student, rng, rows, 3, **sizes)[name]

        assert_vectorised(student, called, larger)


@pytest.mark.points(0)
def test_arguments_stay(student, rng):
    """No argument is modified."""
    scores, queries, keys = rng.randn(2, 5), rng.randn(2, 6, 4), rng.randn(2, 6, 4)
    weights = scores.softmax(-1)
    assert_unchanged(student, student.tempered_softmax, scores, 0.5, names=["scores"])
    assert_unchanged(student, student.entropy, weights, names=["weights"])
    names = ["queries", "keys"]
    assert_unchanged(student, student.variance_of_products, queries, keys, names=names)
    assert_unchanged(student, student.scale, scores, 7, names=["scores"])
