"""Hidden tests of softmax and temperature, which decide the points.

One mistake should cost one check. So a check of an edge accepts two answers: the right one, and the
one that follows from what the student's own code gives in the ordinary case.
"""

import functools
import math

import pytest
import torch
from torch import Tensor

from grader.testing import (
    assert_close,
    assert_dtype,
    assert_refused,
    assert_right_or_own,
    assert_same,
    assert_slopes,
    assert_unchanged,
    assert_vectorised,
    assert_written_by_hand,
    expect,
    in_float64,
)

pytestmark = pytest.mark.needs("test_written_by_hand")

N_QUERIES, N_KEYS, N, D_KEY = 3, 5, 6, 4
SHAPES = ((3, 5), (4,), (2, 3, 6), (4, 4), (2, 4, 3, 5), (3, 1), (1, 4), (1, 1), (2, 1, 5))
TEMPERATURES = (0.5, 2.0, 1.0, 3, 0.25, 0.7, 4.0, 1.5, 0.8)


def arguments(rng, *leading, n_keys=N_KEYS, n=N, d_key=D_KEY):
    """Return tensors for each function by its name, with other options behind them."""
    scores = rng.randn(*leading, n_keys)
    return {
        "tempered_softmax": (scores, 0.5),
        "entropy": (rng.randn(*leading, n_keys).softmax(dim=-1),),
        "variance_of_products": (rng.randn(*leading, n, d_key), rng.randn(*leading, n, d_key)),
        "scale": (scores, 7),
    }


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """Entropy and weights are written by hand, without a torch function that does all of it.

    Guards: what is forbidden, of which some differs from the reference at an edge.
    """
    calls = [functools.partial(getattr(student, n), *a) for n, a in arguments(rng, 2, 3).items()]
    assert_written_by_hand(student, *calls)


@pytest.mark.points(1)
def test_weights(student, reference, rng):
    """The weights are the softmax over the keys of scores divided by the temperature.

    Guards: rows of one key, single rows, and no or several leading axes.
    """
    for shape, temperature in zip(SHAPES, TEMPERATURES):
        scores = rng.randn(*shape)
        weights = in_float64(student.tempered_softmax(scores, temperature))
        shown = f"the result for scores of shape {shape} at {temperature}"
        assert_close(weights, reference.tempered_softmax(scores, temperature), shown)


@pytest.mark.points(1)
def test_limits(student, reference, rng):
    """Temperatures near 0 and huge ones, scores of any size; 0 and below are refused."""
    # Whole numbers, so that the sums are exact in every floating type that code may compute in.
    scores = rng.permutation(12).double().view(3, 4)
    far = torch.tensor([1e4, 0.0, -1e4]).view(3, 1)
    cases = {
        "at temperature 1/1024": (scores, 1 / 1024, scores * 1024),
        "for scores of 1/1024 at temperature 1/1024": (scores / 1024, 1 / 1024, scores),
        "for scores of 1e6 at temperature 1e6": (scores * 1e6, 1e6, scores),
        "at temperature 1e8": (scores, 1e8, scores * 1e-8),
        "for scores from -1e4 to 1e4": (scores + far, 1.0, scores),
        "for scores of 1e5": (scores * 1e4, 1.0, scores * 1e4),
        "for scores of -1e5": (scores * -1e4, 1.0, scores * -1e4),
    }
    for shown, (given, temperature, plain) in cases.items():
        weights = student.tempered_softmax(given, temperature)
        finite = isinstance(weights, Tensor) and weights.isfinite().all()
        expect(finite, f"{shown}, a weight is not finite")
        right = reference.tempered_softmax(given, temperature)
        own = functools.partial(student.tempered_softmax, plain, 1.0)
        assert_right_or_own(weights, right, own, f"the result {shown}")
    for temperature in (0, 0.0, -1.0, -1e-3):
        shown = f"tempered_softmax(scores, {temperature})"
        call = functools.partial(student.tempered_softmax, scores, temperature)
        assert_refused(student, call, shown)


@pytest.mark.points(1)
def test_entropy(student, reference, rng):
    """The entropy of each row of weights, in nats.

    Guards: even weights, rows of one key, single rows, and no or several leading axes.
    """
    for shape in SHAPES:
        weights = torch.softmax(rng.randn(*shape) * 2, dim=-1)
        nats = in_float64(student.entropy(weights))
        assert_close(nats, reference.entropy(weights), f"the entropy for shape {shape}")
    even = torch.full((2, N_KEYS), 1 / N_KEYS, dtype=torch.float64)
    right = torch.full((2,), math.log(N_KEYS), dtype=torch.float64)
    assert_close(in_float64(student.entropy(even)), right, "the entropy of even weights")
    small = torch.tensor([1 - 2e-7, 1e-7, 1e-7], dtype=torch.float64)
    right = reference.entropy(small)
    found = in_float64(student.entropy(small))
    assert_close(found, right, "the entropy of weights of 1e-7", rtol=1e-2, atol=0)


@pytest.mark.points(1)
def test_weights_of_zero(student, reference, rng):
    """A weight of 0 adds 0 to the entropy, in half precision, too; the gradient is finite there."""
    plain = torch.softmax(rng.randn(N_QUERIES, N_KEYS), dim=-1)
    padded = torch.cat([plain, torch.zeros(N_QUERIES, 2)], dim=-1)
    one_hot = torch.eye(N_QUERIES, dtype=torch.float64)
    assert_right_or_own(
        student.entropy(padded),
        reference.entropy(padded),
        lambda: student.entropy(plain),
        "the entropy of rows with two weights of 0",
    )
    assert_right_or_own(
        student.entropy(one_hot),
        reference.entropy(one_hot),
        lambda: student.entropy(torch.ones(N_QUERIES, 1, dtype=torch.float64)),
        "the entropy of rows with all weight on one key",
    )
    for weights in (padded, one_hot):
        assert_unchanged(student, student.entropy, weights, names=["weights"])
        leaf = weights.clone().requires_grad_()
        nats = student.entropy(leaf)
        if nats.requires_grad:  # another check asks for that
            nats.sum().backward()
            finite = leaf.grad is not None and leaf.grad.isfinite().all()
            expect(finite, "the gradient of the entropy is not finite where a weight is 0")
    nats = student.entropy(padded.half())
    expect(nats.isfinite().all(), "the entropy is not finite where a weight is 0 in float16")


@pytest.mark.points(1)
def test_variance(student, reference, rng):
    """The variance of the dot products of queries and keys, dividing by n.

    Guards: single products, vectors of size 1, and no or several leading axes.
    """
    ordinary = ((N, D_KEY), (2, 3, 5, 4), (3, 5, 7), (4, 4), (2, 7, 3))
    single = ((2, 1, 3), (3, 5, 1), (1, 5, 3), (2, 1, 6, 4))
    for shape in (*ordinary, *single):
        for size in (1.0, 1e4):
            queries, keys = rng.randn(*shape) + 0.5, (rng.randn(*shape) + 0.5) * size
            variance = in_float64(student.variance_of_products(queries, keys))
            shown = f"the variance for queries of shape {shape}"
            right = reference.variance_of_products(queries, keys)
            assert_close(variance, right, shown, atol=1e-5 * size**2)
    queries = rng.permutation(12).view(2, 6, 1).double() + 1e8  # the products, as the keys are 1
    near, far = (
        in_float64(student.variance_of_products(each, torch.ones_like(each)))
        for each in (queries - 1e8, queries)
    )
    assert_same(far, near, "the variance of products around 1e8", shape=(2,))


@pytest.mark.points(1)
def test_scale(student, reference, rng):
    """`scale` divides the scores by the root of d_key.

    Guards: scores of any shape and size.
    """
    sizes = {(2, 3, 5): 7, (4,): 64, (3, 6): 2, (3, 4): 1, (4, 4): 9, (1, 3): 5, (3, 1, 1): 3}
    for shape, d_key in sizes.items():
        scores = rng.randn(*shape) * d_key**2
        shown = f"the scaled scores for d_key {d_key}"
        right = reference.scale(scores, d_key)
        assert_close(in_float64(student.scale(scores, d_key)), right, shown)
    single = student.scale(torch.tensor(3.0), 7)
    assert_dtype(single, torch.float32, "a single score in float32, scaled")
    scores = rng.randn(3, 4) * 1e5
    right = reference.scale(scores, 4)
    assert_close(in_float64(student.scale(scores, 4)), right, "large scores, scaled", atol=0.1)


@pytest.mark.points(1)
def test_gradients(student, reference, rng):
    """Gradients reach scores, weights, queries and keys, and are those of what the code computes.

    Guards: with leading axes, and for scores that are so large that the softmax saturates.
    """
    names = {"variance_of_products": ("queries", "keys"), "entropy": ("weights",)}
    for leading in ((2,), (3, 2)):
        for name, given in arguments(rng, *leading).items():
            inputs = dict(zip(names.get(name, ("scores", "number")), given))
            functions = getattr(student, name), getattr(reference, name)
            assert_slopes(student, *functions, inputs, rng=rng)
    inputs = {"scores": rng.permutation(12).double().view(3, 4) * 100, "temperature": 2.0}
    functions = student.tempered_softmax, reference.tempered_softmax
    assert_slopes(student, *functions, inputs, rng=rng)


@pytest.mark.points(1)
def test_tensors(student, reference, rng):
    """Dtypes are kept, views work, nothing is modified, and no Python loop runs over an axis."""
    for name, given in arguments(rng, 2, 3).items():
        function = getattr(student, name)
        tensors = [value for value in given if isinstance(value, Tensor)]
        options = given[len(tensors) :]
        plain = function(*given)
        expect(isinstance(plain, Tensor), f"`{name}` does not return a tensor")
        for dtype in (torch.float64, torch.float32, torch.bfloat16):
            output = function(*(tensor.to(dtype) for tensor in tensors), *options)
            shown = f"the result of `{name}` for {dtype}"
            assert_dtype(output, dtype, shown)
            same_shape = output.shape == plain.shape
            near = same_shape and torch.allclose(output.double(), plain.double(), 0.1, 0.1)
            expect(near, f"{shown} is another than for float64")
        swapped = [tensor.transpose(0, 1).contiguous().transpose(0, 1) for tensor in tensors]
        turned = [tensor.mT.contiguous().mT for tensor in tensors]
        right = getattr(reference, name)(*given)
        for views in (tensors, swapped, turned):
            names = ("queries", "keys") if len(views) > 1 else (f"of `{name}`",)
            output = assert_unchanged(student, function, *views, *options, names=names)
            assert_right_or_own(output, right, lambda p=plain: p, f"the result of `{name}`")
    grown = {
        "rows": {"batch": (9, 19)},
        "queries": {"n_queries": (11, 23)},
        "keys": {"n_keys": (17, 36)},
        "products": {"n": (19, 40)},
        "features": {"d_key": (15, 31)},
    }
    for name in arguments(rng, 2, 3):

        def called(batch=2, n_queries=3, name=name, **sizes):
            given = arguments(rng, batch, n_queries, **sizes)[name]
            return functools.partial(getattr(student, name), *given)

        named = {f"{axis} (`{name}`)": sizes for axis, sizes in grown.items()}
        assert_vectorised(student, called, named)
