"""Hidden tests of self-attention, which decide the points.

One mistake should cost one check. So a check accepts two answers: the right one, and the one that
follows from what the student's other functions give.
"""

import contextlib
import functools

import pytest
import torch
from torch import Tensor

from grader.testing import (
    assert_close,
    assert_depends,
    assert_dtype,
    assert_right_or_own,
    assert_slopes,
    assert_unchanged,
    assert_vectorised,
    assert_written_by_hand,
    expect,
    in_float64,
    watched,
)

pytestmark = pytest.mark.needs("test_written_by_hand")

BATCH, N_TOKENS, N_QUERIES, N_KEYS, D = 2, 5, 3, 6, 4
ON_TOKENS = ("scores_by_product", "context_vectors")
ON_SCORES = ("normalise", "softmax_naive", "softmax_stable")
VECTORISED = (*ON_TOKENS, *ON_SCORES)
EVERY = ("scores_by_loops", *VECTORISED)


def argument_of(rng, name, *leading, n_tokens=N_TOKENS, d=D, n_queries=N_QUERIES, n_keys=N_KEYS):
    """Return random tokens or scores for the function `name`.

    Those of `normalise` are positive but for a few, so that no sum is near 0.
    """
    if name not in ON_SCORES:
        return rng.randn(*leading, n_tokens, d) * 0.7
    scores = rng.randn(*leading, n_queries, n_keys)
    return scores if name != "normalise" else scores * 0.1 + 1


def shifted(scores):
    """Return the scores less the largest of each row."""
    return scores - scores.amax(dim=-1, keepdim=True)


def product_of(student, inputs):
    """Return the context vectors that follow from the student's other functions."""
    return assert_depends(student.softmax_stable(student.scores_by_product(inputs)) @ inputs)


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
def test_written_by_hand(student, rng):
    """The softmax is written by hand, without a torch function that does all of it.

    Guards: the rule itself, whatever other checks see of a forbidden call.
    """
    calls = [functools.partial(getattr(student, name), argument_of(rng, name)) for name in EVERY]
    assert_written_by_hand(student, *calls)
    assert_own_softmax(student, *calls)


@pytest.mark.points(1)
def test_scores_by_loops(student, reference, rng):
    """scores_by_loops gives the dot products of all pairs, in loops over the tokens."""
    for n_tokens, d in ((5, 4), (3, 7), (4, 4)):
        inputs = rng.randn(n_tokens, d)
        scores = student.scores_by_loops(inputs)
        assert_close(in_float64(scores), reference.scores_by_loops(inputs), "the scores")
    few, many = (operations(student, rng.randn(n, D)) for n in (2, 6))
    # Loops over plain numbers are not counted; they have cut the graph, which another check asks.
    cut = not student.scores_by_loops(rng.randn(3, D).requires_grad_()).requires_grad
    expect(many > few or cut, "the scores are not computed one at a time in loops over the tokens")


def operations(student, inputs):
    """Return how many operations scores_by_loops takes."""
    with watched(student, kernels=False) as seen:
        student.scores_by_loops(inputs)
    return seen.operations


@pytest.mark.points(1)
def test_scores_by_product(student, reference, rng):
    """scores_by_product gives the dot products of all pairs of tokens."""
    for n_tokens, d in ((5, 4), (3, 7), (4, 4)):
        inputs = rng.randn(n_tokens, d)
        scores = student.scores_by_product(inputs)
        assert_close(in_float64(scores), reference.scores_by_product(inputs), "the scores")


@pytest.mark.points(1)
def test_normalise(student, reference, rng):
    """normalise divides each score by the sum of its row, whatever the signs are."""
    for (n_queries, n_keys), scale in {(3, 6): 1.0, (7, 4): 1e4, (5, 5): 1e-4}.items():
        # Each row has its own sum, some negative.
        scores = rng.randn(n_queries, n_keys)
        sums = torch.tensor([-3, 1, 2, -2, 4, 0.5, -1], dtype=torch.float64)[:n_queries, None]
        scores = scores + (sums - scores.sum(-1, keepdim=True)) / n_keys
        weights = in_float64(student.normalise(scores * scale))
        assert_close(weights, reference.normalise(scores), "the weights", rtol=1e-5)


@pytest.mark.points(1)
def test_softmax(student, reference, rng):
    """softmax_naive and softmax_stable give the softmax of each row."""
    for (n_queries, n_keys), scale in {(3, 6): 1, (7, 4): 2, (5, 5): 10}.items():
        scores = rng.randn(n_queries, n_keys) * scale
        right = reference.softmax_naive(scores)
        assert_right_or_own(
            student.softmax_naive(scores),
            right,
            lambda scores=scores: assert_depends(student.normalise(scores.exp())),
            "what `softmax_naive` returns",
        )
        assert_right_or_own(
            student.softmax_stable(scores),
            right,
            lambda scores=scores: assert_depends(student.softmax_naive(shifted(scores))),
            "what `softmax_stable` returns",
        )


@pytest.mark.points(1)
def test_context_vectors(student, reference, rng):
    """context_vectors gives the softmax of the scores times the inputs."""
    for n_tokens, d in ((5, 4), (3, 7), (4, 4)):
        inputs = rng.randn(n_tokens, d) * 0.7
        assert_right_or_own(
            student.context_vectors(inputs),
            reference.context_vectors(inputs),
            lambda inputs=inputs: product_of(student, inputs),
            "the context vectors",
        )


@pytest.mark.points(1)
def test_large_scores(student, reference, rng):
    """softmax_stable and context_vectors are right for scores of any size, row by row."""
    # Whole numbers, so that scores are exact in every floating type.
    scores = rng.permutation(18).view(3, 6).double()
    rows = torch.tensor([[1e4], [0.0], [-1e4]], dtype=torch.float64)
    right, own = reference.softmax_stable(scores), student.softmax_stable(scores)
    assert_depends(own)
    cases = {"1e4, 0 and -1e4 in three rows": scores + rows, "-1e4": scores - 1e4}
    for shown, moved in cases.items():
        weights = student.softmax_stable(moved)
        assert_right_or_own(weights, right, lambda: own, f"the softmax of scores around {shown}")
    # Whoever computes other weights or contexts has lost points for that already.
    if is_near(own, right):
        for size in (1e4, -1e4, 1e8):
            right, found = (code.softmax_stable(scores * size) for code in (reference, student))
            assert_close(in_float64(found), right, f"the softmax of scores of up to {18 * size:g}")
        even = in_float64(student.softmax_stable(torch.full((3, 6), 1e8)))
        right = torch.full((3, 6), 1 / 6, dtype=torch.float64)
        assert_close(even, right, "the softmax of equal scores of 1e8 in float32")
    inputs = (rng.permutation(20).view(5, 4).double() - 9) / 8
    if is_near(student.context_vectors(inputs), reference.context_vectors(inputs)):
        context, right = (code.context_vectors(inputs * 250) for code in (student, reference))
        assert_close(in_float64(context), right, "the context vectors for scores of 1e5")


def is_near(found, right, most=1e-5):
    """Return whether an answer is right, whatever its dtype is."""
    is_answer = isinstance(found, Tensor) and found.shape == right.shape
    return is_answer and bool((found.double() - right.double()).abs().max() < most)


@pytest.mark.points(1)
def test_any_size(student, reference, rng):
    """There may be any leading axes, and one token, query, key or feature.

    Guards: axes that are named from the front, and axes of size 1 that get lost.
    """
    for name in VECTORISED:
        function, right = getattr(student, name), getattr(reference, name)
        for leading in ((2,), (1,), (2, 7), (7, 2), (1, 1)):
            x = argument_of(rng, name, *leading)

            def each(function=function, x=x):
                items = [function(item) for item in x.flatten(0, -3)]
                return assert_depends(torch.stack(items).view(*x.shape[:-2], *items[0].shape))

            what = f"what `{name}` returns for leading axes {leading}"
            assert_right_or_own(function(x), right(x), each, what)
        for size in ("n_queries", "n_keys") if name in ON_SCORES else ("n_tokens", "d"):
            for leading in ((), (3,)):
                x = argument_of(rng, name, *leading, **{size: 1})

                def own(function=function, x=x, leading=leading):
                    items = x if leading else torch.stack([x, x])
                    found = torch.stack([function(torch.stack([i, i]))[0] for i in items])
                    return found if leading else found[0]

                what = f"what `{name}` returns with {size} 1 and leading axes {leading}"
                assert_right_or_own(function(x), right(x), own, what)
    for n_tokens, d in ((1, D), (N_TOKENS, 1), (1, 1)):
        shape = tuple(in_float64(student.scores_by_loops(rng.randn(n_tokens, d))).shape)
        says = f"for {n_tokens} tokens of size {d}, `scores_by_loops` returns the shape {shape}"
        expect(shape == (n_tokens, n_tokens), says)


@pytest.mark.points(1)
def test_gradients(student, reference, rng):
    """Gradients reach the argument of every function, and are the slopes of what it returns."""
    for name in EVERY:
        theirs, ours = getattr(student, name), getattr(reference, name)
        for leading in ((),) if name == "scores_by_loops" else ((), (2,)):
            inputs = {"the argument": argument_of(rng, name, *leading)}
            assert_slopes(student, theirs, ours, inputs, rng=rng)


@pytest.mark.points(1)
def test_argument(student, reference, rng):
    """The argument may be a view and of any dtype, is not modified, and decides the dtype."""
    for name in EVERY:
        function, right = getattr(student, name), getattr(reference, name)
        leading = () if name == "scores_by_loops" else (3,)
        x = argument_of(rng, name, *leading) * 0.5
        views = [x, x.mT.contiguous().mT]
        views += [x.transpose(0, 1).contiguous().transpose(0, 1)] if leading else []
        own = function(x)
        if name in ON_SCORES:
            assert_unchanged(student, function, x * 200, names=["the argument"])
        for view in views:
            output = assert_unchanged(student, function, view, names=["the argument"])
            assert_right_or_own(output, right(x), lambda own=own: own, f"`{name}` for a view")
        for dtype in (torch.float64, torch.float32, torch.bfloat16):
            output = function(x.to(dtype))
            assert_dtype(output, dtype, f"what `{name}` returns for {dtype}")
            near = is_near(output, right(x), 0.05) or is_near(output, own, 0.05)
            expect(near, f"what `{name}` returns for {dtype} is another than for float64")
        if name.startswith("scores") and is_near(own, right(x)):
            exact = is_near(own, right(x), 1e-9)
            expect(exact, f"what `{name}` returns for float64 has fewer digits than float64")
    for name in ON_TOKENS:
        function, x = getattr(student, name), argument_of(rng, name, 2, 3)
        view = x.transpose(0, 1).contiguous().transpose(0, 1)  # whose leading axes cannot be merged
        own = functools.partial(function, x)
        right = getattr(reference, name)(x)
        assert_right_or_own(function(view), right, own, f"`{name}` for a view of four axes")


@pytest.mark.points(1)
def test_no_python_loops(student, rng):
    """Except in scores_by_loops, no Python loop runs over any axis."""
    for name in VECTORISED:
        rows = "n_queries" if name in ON_SCORES else "n_tokens"

        def called(batch=2, name=name, **sizes):
            return functools.partial(getattr(student, name), argument_of(rng, name, batch, **sizes))

        assert_depends(called()())
        columns = "n_keys" if name in ON_SCORES else "d"
        grown = {"batch items": {"batch": (7, 19)}, "rows": {rows: (11, 23)}}
        assert_vectorised(student, called, {**grown, "columns": {columns: (16, 33)}})
