"""Public tests of scaled dot-product attention, which students can read and run."""

import functools

import pytest
import torch

from grader.testing import (
    assert_close,
    assert_dtype,
    assert_refused,
    assert_unchanged,
    assert_vectorised,
    assert_weights_dropped,
    assert_written_by_hand,
    expect,
    output_of,
)

pytestmark = pytest.mark.needs("test_by_hand")


def qkv(rng, batch=2, n_queries=3, n_keys=5, d_key=4, d_value=6):
    """Return random queries, keys and values."""
    queries, keys = rng.randn(batch, n_queries, d_key), rng.randn(batch, n_keys, d_key)
    return queries, keys, rng.randn(batch, n_keys, d_value)


def called(student, rng, **sizes):
    """Return a call of a module of its own on random arguments."""
    queries, keys, values = qkv(rng, **sizes)
    lens = torch.full((len(queries),), 2)
    return lambda: output_of(student.DotProductAttention(0.0), queries, keys, values, lens)


@pytest.mark.points(0)
def test_by_hand(student, rng):
    """No function of torch computes the attention."""
    assert_written_by_hand(student, called(student, rng))


@pytest.mark.points(1)
def test_product(student, rng):
    """`batched_product` multiplies each matrix of a with the same one of b."""
    a, b = rng.randn(2, 3, 4), rng.randn(2, 4, 5)
    expected = torch.stack([a[0] @ b[0], a[1] @ b[1]])
    assert_close(student.batched_product(a, b), expected, "the product")
    for other in (rng.randn(1, 4, 5), rng.randn(3, 4, 5), rng.randn(2, 5, 4), rng.randn(4, 5)):
        shown = f"batched_product with shapes {tuple(a.shape)} and {tuple(other.shape)}"
        assert_refused(student, lambda b=other: student.batched_product(a, b), shown)


@pytest.mark.points(2)
def test_worked_example(student):
    """The worked example: two keys and one of padding, whose value is nan."""
    queries = torch.tensor([[[2.0, 0.0, 0.0, 0.0]]])
    keys = torch.tensor([[[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [9.0, 0.0, 0.0, 0.0]]])
    values = torch.tensor([[[10.0, 0.0], [0.0, 10.0], [torch.nan, torch.nan]]])
    attention = student.DotProductAttention(0.0)
    output = output_of(attention, queries, keys, values, torch.tensor([2]))
    weights = torch.tensor([[[0.7311, 0.2689, 0.0]]])
    assert_close(attention.attention_weights, weights, "attention_weights", atol=1e-4)
    assert_close(output, torch.tensor([[[7.3106, 2.6894]]]), atol=1e-4)


@pytest.mark.points(2)
def test_without_lengths(student, rng):
    """Without lengths, every query attends to every key."""
    queries, keys, values = qkv(rng)
    expected = torch.softmax(queries @ keys.mT / 2, dim=-1) @ values  # d_key is 4
    assert_close(output_of(student.DotProductAttention(0.0), queries, keys, values), expected)


@pytest.mark.points(2)
def test_lengths(student, rng):
    """Padded keys count for nothing, with a length for each batch item or each query."""
    queries, keys, values = qkv(rng)
    attention = student.DotProductAttention(0.0)
    output = output_of(attention, queries, keys, values, torch.tensor([2, 4]))
    for item, length in enumerate((2, 4)):
        first = queries[item, None], keys[item, None, :length], values[item, None, :length]
        expected = output_of(attention, *first)[0]
        assert_close(output[item], expected, f"the output for the length {length}")
    lens = torch.tensor([[2, 2, 2], [0, 4, 4]])
    per_query = output_of(attention, queries, keys, values, lens)
    output[1, 0] = 0  # a query of length 0
    assert_close(per_query, output, "the output with a length for each query")


@pytest.mark.points(1)
def test_lengths_that_do_not_fit(student, rng):
    """A length greater than n_keys is refused."""
    attention, arguments = student.DotProductAttention(0.0), qkv(rng)
    output_of(attention, *arguments, torch.tensor([2, 5]))
    call = lambda: output_of(attention, *arguments, torch.tensor([2, 6]))  # noqa: E731
    assert_refused(student, call, "forward with the length 6 for 5 keys")


@pytest.mark.points(2)
def test_dropout(student, rng):
    """Weights are dropped in training, and `attention_weights` are those before dropout."""
    attention = student.DotProductAttention(0.4)
    assert_weights_dropped(attention, 0.4, *qkv(rng, batch=1))


@pytest.mark.points(0)
def test_whole_tensors(student, rng):
    """No Python loop runs over batch items, queries or keys."""
    more = {"batch items": {"batch": (7, 15)}, "queries": {"n_queries": (11, 23)}}
    more["keys"] = {"n_keys": (17, 35)}
    assert_vectorised(student, functools.partial(called, student, rng), more)


@pytest.mark.points(0)
def test_arguments_stay(student, rng):
    """No argument is modified, and the output has its dtype."""
    attention, lens = student.DotProductAttention(0.0), torch.tensor([2, 4])
    names = ("queries", "keys", "values", "valid_lens")
    assert_unchanged(student, attention, *qkv(rng), lens, names=names)
    narrow = (tensor.to(torch.bfloat16) for tensor in qkv(rng))
    output = output_of(attention, *narrow, lens)
    assert_dtype(output, torch.bfloat16, "the output for bfloat16")
    expect(output.isfinite().all(), "the output for bfloat16 is not finite")
