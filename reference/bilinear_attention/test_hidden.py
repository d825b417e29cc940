"""Hidden tests, which decide the points."""

import functools
import math

import pytest
import torch

from grader.testing import (
    assert_close,
    assert_depends,
    assert_drawn_anew,
    assert_dropped,
    assert_dtype,
    assert_keeps_weights,
    assert_right_or_own,
    assert_same,
    assert_slopes,
    assert_unchanged,
    assert_vectorised,
    assert_written_by_hand,
    expect,
    in_float64,
    load_parameters,
    output_of,
    twins,
)

SIZES = (4, 3, 0.0)  # d_query, d_key, dropout
RATE = 0.49  # of the weights that are dropped


def draw(rng, batch=2, n_queries=5, n_keys=6, d_value=8):
    """Return queries, keys and values, whose sizes all differ."""
    queries = rng.randn(batch, n_queries, 4)  # (batch, n_queries, d_query)
    keys = rng.randn(batch, n_keys, 3)  # (batch, n_keys, d_key)
    return queries, keys, rng.randn(batch, n_keys, d_value)  # (batch, n_keys, d_value)


def pair(student, reference, rng, dropout=0.0):
    """Return both modules with the same parameters, and the student's with those that it has."""
    state = {"M": rng.randn(4, 3)}
    sizes = (*SIZES[:2], dropout)
    theirs = load_parameters(student.BilinearAttention(*sizes), state)
    return theirs, load_parameters(reference.BilinearAttention(*sizes), state)


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
    inputs = draw(rng)
    assert_written_by_hand(student, lambda: student.BilinearAttention(*SIZES).double()(*inputs))


@pytest.mark.points(2)
@pytest.mark.needs("test_written_by_hand")
def test_formula(student, reference, rng):
    """Each pair is scored by q . M k / sqrt(d_key), and the output is the weighted mean."""
    makes = student.BilinearAttention, reference.BilinearAttention
    theirs, ours = twins(*makes, *SIZES, rng=rng)
    inputs = draw(rng)
    assert_close(in_float64(output_of(theirs, *inputs)), output_of(ours, *inputs))
    large = inputs[0] * 1e6, inputs[1], inputs[2] * 1e6
    output = in_float64(output_of(theirs, *large))
    assert_close(output, output_of(ours, *large), "the output for scores of some millions")
    theirs, ours = twins(*makes, 4, 4, 0.0, rng=rng)
    inputs = [rng.randn(4, 4, 4) for _ in range(3)]
    output = in_float64(output_of(theirs, *inputs))
    assert_close(output, output_of(ours, *inputs), "the output where all sizes are equal")


@pytest.mark.points(1)
@pytest.mark.needs("test_written_by_hand")
def test_lengths(student, reference, rng):
    """A query attends to as many keys as its length says, and to none with length 0."""
    theirs, ours = pair(student, reference, rng)
    inputs = draw(rng)
    of_items = torch.tensor([4, 2])  # (batch,)
    of_queries = torch.tensor([[6, 0, 3, 1, 4], [2, 5, 0, 6, 1]])  # (batch, n_queries)
    one_key = draw(rng, n_keys=1)
    as_many = draw(rng, n_queries=2)  # queries as batch items: the lengths are of items
    cases = [(inputs, lens) for lens in (of_items, of_queries, of_items + 0.5)]
    for given, lens in (*cases, (one_key, torch.tensor([0, 1])), (as_many, torch.tensor([1, 5]))):
        output, right = (output_of(module, *given, lens) for module in (theirs, ours))
        each = lens if lens.ndim == 2 else lens[:, None].expand(2, given[0].shape[1])
        own = functools.partial(of_valid_keys, theirs, *given, each)
        assert_right_or_own(in_float64(output), right, own)


@pytest.mark.points(1)
@pytest.mark.needs("test_written_by_hand")
def test_dropout(student, reference, rng):
    """In training mode, weights are dropped; attention_weights holds them as they are before."""
    theirs, _ = pair(student, reference, rng, RATE)
    queries, keys, _ = draw(rng, batch=1)
    eye = torch.eye(6, dtype=torch.float64)  # (n_keys, n_keys)
    # With these values, the output is the weights, twice.
    one = queries, keys, torch.cat([eye, eye], dim=1)[None]
    many = [x.repeat(200, 1, 1) for x in one]
    without = load_parameters(student.BilinearAttention(*SIZES), theirs.state_dict())
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
    sizes, state = (*SIZES[:2], RATE), theirs.state_dict()
    every = load_parameters(student.BilinearAttention(*SIZES[:2], 1.0), state).train()
    nothing = in_float64(output_of(every, *one))
    assert_close(nothing, torch.zeros(1, 5, 12, dtype=torch.float64), "the output at rate 1")
    assert_keeps_weights(
        lambda: load_parameters(student.BilinearAttention(*sizes), state), *draw(rng)[:2]
    )


@pytest.mark.points(1)
@pytest.mark.needs("test_written_by_hand")
def test_gradients(student, reference, rng):
    """Gradients reach the queries, the keys, the values and M, with length 0 too."""
    theirs, ours = pair(student, reference, rng)
    queries, keys, values = draw(rng)
    inputs = {"queries": queries, "keys": keys, "values": values}
    assert_slopes(student, theirs, ours, inputs, rng=rng)
    lens = torch.tensor([0, 3])  # (batch,)

    def under_lengths(attention):
        return lambda *given: attention(*given, lens)

    assert_slopes(student, under_lengths(theirs), under_lengths(ours), inputs, rng=rng)


@pytest.mark.points(1)
@pytest.mark.needs("test_written_by_hand")
def test_any_input(student, reference, rng):
    """Sizes of one, views and other dtypes work; no loop is needed, and no input is modified."""
    theirs, ours = pair(student, reference, rng)
    lens = torch.tensor([4, 2])  # (batch,)
    queries, keys, values = inputs = draw(rng)
    names = ["queries", "keys", "values", "valid_lens"]
    assert_unchanged(student, theirs, *inputs, torch.tensor([0, 3]), names=names)
    kept, other = pair(student, reference, rng)[0], {"M": rng.randn(4, 3)}
    output_of(kept, *inputs)  # what is kept of the old M must not count later
    again = output_of(load_parameters(kept, other), *inputs)
    right = output_of(load_parameters(student.BilinearAttention(*SIZES), other), *inputs)
    assert_same(again, right, "the output with another M")
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
    tiny = student.BilinearAttention(1, 1, 0.0).to(torch.float64)
    value = rng.randn(2, 1, 1)  # (batch, n_keys, d_value)
    output = in_float64(output_of(tiny, rng.randn(2, 1, 1), rng.randn(2, 1, 1), value))
    assert_close(output, value, "the output for sizes of one")
    for dtype in (torch.float32, torch.bfloat16):
        new = student.BilinearAttention(*SIZES)
        module = new if dtype == torch.float32 else new.to(dtype)
        output = output_of(module, *(x.to(dtype) for x in inputs), torch.tensor([4, 2]))
        assert_dtype(output, dtype, f"the output for inputs in {dtype}")

    def called(**sizes):
        inputs = draw(rng, **sizes)
        return lambda: student.BilinearAttention(*SIZES).to(torch.float64)(*inputs)

    grown = {"batch items": {"batch": (9, 19)}, "queries": {"n_queries": (15, 31)}}
    assert_vectorised(student, called, {**grown, "keys": {"n_keys": (16, 33)}})
