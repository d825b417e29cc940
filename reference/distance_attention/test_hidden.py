"""Hidden tests, which decide the points."""

import functools
import math

import pytest
import torch

from grader.errors import CheckFailure
from grader.testing import (
    assert_close,
    assert_depends,
    assert_drawn_anew,
    assert_dropped,
    assert_dtype,
    assert_keeps_weights,
    assert_memory,
    assert_right_or_own,
    assert_same,
    assert_slopes,
    assert_unchanged,
    assert_vectorised,
    assert_written_by_hand,
    expect,
    in_float64,
    output_of,
    parameter_shapes,
)

RATE = 0.49  # of the weights that are dropped


def draw(rng, batch=2, n_queries=5, n_keys=6, d_value=8):
    """Return queries, keys and values, whose sizes all differ."""
    queries = rng.randn(batch, n_queries, 4)  # (batch, n_queries, d)
    keys = rng.randn(batch, n_keys, 4)  # (batch, n_keys, d)
    return queries, keys, rng.randn(batch, n_keys, d_value)  # (batch, n_keys, d_value)


def of_valid_keys(attention, queries, keys, values, lens):
    """Return what the module gives for each query alone, with its valid keys only.

    lens  (batch, n_queries)
    """
    rows = torch.zeros(*queries.shape[:2], values.shape[-1], dtype=values.dtype)
    for b, i in lens.nonzero().tolist():
        n = math.ceil(lens[b, i])
        item = slice(b, b + 1)
        row = output_of(attention, queries[item, i : i + 1], keys[item, :n], values[item, :n])
        rows[b, i] = in_float64(row).reshape(-1)
    return rows  # (batch, n_queries, d_value)


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """The work is done by your own code.

    Guards: the calls that the exercise forbids.
    """
    queries, keys, values = draw(rng)
    assert_written_by_hand(
        student,
        lambda: student.distance_scores(queries, keys),
        lambda: student.scores_without_query_norm(queries, keys),
        lambda: student.DistanceAttention(0.0)(queries, keys, values),
    )


@pytest.mark.points(1)
@pytest.mark.needs("test_written_by_hand")
def test_distance_scores(student, rng):
    """distance_scores gives minus half of the squared distance of each query to each key."""
    for factor in (1, 1000):
        queries, keys, _ = (x * factor for x in draw(rng))
        expected = -(torch.cdist(queries, keys) ** 2) / 2  # (batch, n_queries, n_keys)
        assert_close(in_float64(student.distance_scores(queries, keys)), expected, "the scores")


@pytest.mark.points(1)
@pytest.mark.needs("test_written_by_hand")
def test_without_query_norm(student, rng):
    """scores_without_query_norm gives q . k - |k|^2 / 2 for each query and key.

    Guards: the scores of code whose distance_scores does not use them.
    """
    for factor in (1, 1000):
        queries, keys, _ = (x * factor for x in draw(rng))
        right = -(torch.cdist(queries, keys) ** 2) / 2  # (batch, n_queries, n_keys)
        right += queries.square().sum(-1, keepdim=True) / 2
        scores = in_float64(student.scores_without_query_norm(queries, keys))
        assert_close(scores, right, "the scores")


@pytest.mark.points(1)
@pytest.mark.needs("test_written_by_hand")
def test_attention(student, reference, rng):
    """The output is the mean of the values, weighted by the softmax of the scores of the keys."""
    attention = student.DistanceAttention(0.0)
    shapes = parameter_shapes(attention)
    expect(not shapes, f"the module has parameters: {', '.join(shapes)}")
    for factor in (1, 1000):  # scores of a few units, and of some millions
        queries, keys, values = (x * factor for x in draw(rng))
        values = values * factor
        output = in_float64(output_of(attention, queries, keys, values))
        right = output_of(reference.DistanceAttention(0.0), queries, keys, values)

        def from_scores(scores, inputs=(queries, keys), values=values):
            own = in_float64(scores(*inputs))  # (batch, n_queries, n_keys)
            return own.softmax(dim=-1) @ values  # (batch, n_queries, d_value)

        partial = functools.partial(from_scores, student.scores_without_query_norm)
        try:
            assert_right_or_own(output, right, partial)
        except CheckFailure:
            whole = functools.partial(from_scores, student.distance_scores)
            assert_right_or_own(output, right, whole)


@pytest.mark.points(1)
@pytest.mark.needs("test_written_by_hand")
def test_lengths(student, reference, rng):
    """A query attends to as many keys as its length says, and to none with length 0."""
    theirs, ours = student.DistanceAttention(0.0), reference.DistanceAttention(0.0)
    inputs = draw(rng)
    of_items = torch.tensor([4, 2])  # (batch,)
    of_queries = torch.tensor([[6, 0, 3, 1, 4], [2, 5, 0, 6, 1]])  # (batch, n_queries)
    one_key = draw(rng, n_keys=1)
    cases = [(inputs, lens) for lens in (of_items, of_queries, of_items + 0.5)]
    for given, lens in (*cases, (one_key, torch.tensor([0, 1]))):
        output, right = (output_of(module, *given, lens) for module in (theirs, ours))
        each = lens if lens.ndim == 2 else lens[:, None].expand(2, 5)
        own = functools.partial(of_valid_keys, theirs, *given, each)
        assert_right_or_own(in_float64(output), right, own)
    queries, keys, values = inputs
    padded = torch.arange(6) >= of_items[:, None]  # (batch, n_keys)
    far = keys.masked_fill(padded.unsqueeze(-1), 1e8)  # (batch, n_keys, d)
    output = in_float64(output_of(theirs, queries, far, values, of_items))
    right = output_of(ours, queries, far, values, of_items)
    own = functools.partial(of_valid_keys, theirs, *inputs, of_items[:, None].expand(2, 5))
    assert_right_or_own(output, right, own, "the output for padded keys of 1e8")


@pytest.mark.points(1)
@pytest.mark.needs("test_written_by_hand")
def test_dropout(student, reference, rng):
    """In training mode, weights are dropped; attention_weights holds them as they are before."""
    theirs = student.DistanceAttention(RATE).eval()
    queries, keys, _ = draw(rng, batch=1)
    eye = torch.eye(6, dtype=torch.float64)  # (n_keys, n_keys)
    # With these values, the output is the weights, twice.
    one = queries, keys, torch.cat([eye, eye], dim=1)[None]
    many = [x.repeat(200, 1, 1) for x in one]
    without = student.DistanceAttention(0.0)
    weights = in_float64(output_of(without, *many))
    assert_same(
        in_float64(output_of(theirs, *many)),
        weights,
        "the output in evaluation mode",
        shape=(200, 5, 12),
    )
    theirs.train()
    output = in_float64(output_of(theirs, *many))
    expect(output.shape == weights.shape, "the output has another shape in training mode")
    expect(
        torch.equal(output[..., :6] == 0, output[..., 6:] == 0),
        "numbers of the output are dropped, not weights",
    )
    dropped = output == 0
    assert_close(
        output, torch.where(dropped, 0.0, weights / (1 - RATE)), "the output in training mode"
    )
    assert_dropped(dropped[..., :6], RATE, "weights")
    assert_drawn_anew(theirs.train(), *many)
    lost = in_float64(output_of(theirs, *many, torch.full((200, 5), 6))) == 0
    expect(lost.any(), "nothing is dropped with a length for each query")
    assert_keeps_weights(lambda: student.DistanceAttention(RATE).eval(), *draw(rng)[:2])


@pytest.mark.points(1)
@pytest.mark.needs("test_written_by_hand")
def test_gradients(student, reference, rng):
    """Gradients reach the queries, the keys and the values, with length 0 too."""
    theirs, ours = student.DistanceAttention(0.0), reference.DistanceAttention(0.0)
    queries, keys, values = draw(rng)
    keys[0, 1] = 0.0  # a square has a slope at 0, and a root has none
    inputs = {"queries": queries, "keys": keys}
    for name in ("distance_scores", "scores_without_query_norm"):
        scores = getattr(student, name), getattr(reference, name)
        assert_slopes(student, *scores, inputs, rng=rng)
    inputs["values"] = values
    assert_slopes(student, theirs, ours, inputs, rng=rng)
    lens = torch.tensor([0, 3])  # (batch,)

    def under_lengths(attention):
        return lambda *given: attention(*given, lens)

    assert_slopes(student, under_lengths(theirs), under_lengths(ours), inputs, rng=rng)


@pytest.mark.points(1)
@pytest.mark.needs("test_written_by_hand")
def test_any_input(student, reference, rng):
    """Sizes of one, transposed views and other dtypes work, and no input is modified."""
    theirs, ours = student.DistanceAttention(0.0), reference.DistanceAttention(0.0)
    lens = torch.tensor([4, 2])  # (batch,)
    queries, keys, values = inputs = draw(rng)
    for scores in (student.distance_scores, student.scores_without_query_norm):
        found = assert_unchanged(student, scores, queries, keys, names=["queries", "keys"])
        found = assert_depends(in_float64(found))
        views = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in (queries, keys)]
        again = in_float64(scores(*views))
        assert_same(again, found, "the scores for transposed views", shape=(2, 5, 6))
        again = in_float64(scores(queries[1:], keys[1:]))
        assert_same(again, found[1:], "the scores of one batch item", shape=(1, 5, 6))
        again = in_float64(scores(queries[:, 3:4], keys))
        assert_same(again, found[:, 3:4], "the scores of one query", shape=(2, 1, 6))
        again = in_float64(scores(queries, keys[:, 3:4]))
        assert_same(again, found[..., 3:4], "the scores of one key", shape=(2, 5, 1))
        for dtype in (torch.float32, torch.bfloat16):
            low = scores(queries.to(dtype), keys.to(dtype))
            assert_dtype(low, dtype, f"the scores for inputs in {dtype}")
    names = ["queries", "keys", "values", "valid_lens"]
    assert_unchanged(student, theirs, *inputs, torch.tensor([0, 3]), names=names)
    every = in_float64(assert_unchanged(student, theirs, *inputs, lens, names=names))
    assert_depends(every[:, 0])
    views = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in inputs]
    again = in_float64(output_of(theirs, *views, lens))
    assert_same(again, every, "the output for transposed views", shape=(2, 5, 8))
    for item, query in ((slice(1, 2), slice(5)), (slice(2), slice(3, 4))):
        one = queries[item, query], keys[item], values[item], lens[item]
        output = in_float64(output_of(theirs, *one))
        right, own = output_of(ours, *one), every[item, query]
        what = "the output for one batch item, or for one query"
        assert_right_or_own(output, right, lambda own=own: own, what)
    output = in_float64(output_of(theirs, queries[:1], keys[:1, :1], values[:1, :1]))
    value = values[:1, :1].expand(1, 5, 8)  # (1, n_queries, d_value)
    assert_close(output, value, "the output for one key, which is its value")
    tiny = student.DistanceAttention(0.0)
    value = rng.randn(2, 1, 1)  # (batch, n_keys, d_value)
    output = in_float64(output_of(tiny, rng.randn(2, 1, 1), rng.randn(2, 1, 1), value))
    assert_close(output, value, "the output for sizes of one")
    for dtype in (torch.float32, torch.bfloat16):
        module = student.DistanceAttention(0.0)
        output = output_of(module, *(x.to(dtype) for x in inputs), torch.tensor([4, 2]))
        assert_dtype(output, dtype, f"the output for inputs in {dtype}")


@pytest.mark.points(1)
@pytest.mark.needs("test_written_by_hand")
def test_memory(student, rng):
    """The differences of all queries and keys never exist at once, and no loop is needed."""
    queries, keys = rng.randn(1, 31, 23), rng.randn(1, 37, 23)
    values = rng.randn(1, 37, 5)  # (batch, n_keys, d_value)
    sizes = {"n_queries": 31, "n_keys": 37, "d": 23}
    enough = 31 * 37 * 23 * 8 / 2  # bytes: half of the differences
    attention = student.DistanceAttention(0.0)
    for scores in (student.distance_scores, student.scores_without_query_norm):
        assert_depends(in_float64(scores(queries, keys))[0])
        assert_memory(student, lambda scores=scores: scores(queries, keys), enough, sizes)
    assert_depends(in_float64(output_of(attention, queries, keys, values))[0])
    for lens in (None, torch.full((1,), 37), torch.full((1, 31), 37)):
        call = lambda lens=lens: attention(queries, keys, values, lens)  # noqa: E731
        assert_memory(student, call, enough, sizes)
    flat = rng.randn(1, 31, 7), rng.randn(1, 37, 7)  # for which differences are few as well
    sizes = {"n_queries": 31, "n_keys": 37, "d": 7}
    enough = 31 * 37 * 7 * 8 - 1  # bytes
    assert_memory(student, lambda: student.distance_scores(*flat), enough, sizes)

    def all_three(**sizes):
        queries, keys, values = draw(rng, **sizes)
        return lambda: (
            student.distance_scores(queries, keys),
            student.scores_without_query_norm(queries, keys),
            attention(queries, keys, values),
        )

    grown = {"batch items": {"batch": (9, 19)}, "queries": {"n_queries": (15, 31)}}
    assert_vectorised(student, all_three, {**grown, "keys": {"n_keys": (16, 33)}})
