"""Probes of masked softmax: what tells its mistakes apart."""

import torch

from grader.probing import gradients, probe, written

AXES = ("batch item", "query", "key")  # of an output, in the singular

BATCH, N_QUERIES, N_KEYS = 4, 3, 5


@probe("values")
def ordinary(student, rng):
    """One length for each batch item, from 1 to n_keys."""
    lens = torch.tensor([2, 4, 1, N_KEYS])
    return student.masked_softmax(rng.randn(BATCH, N_QUERIES, N_KEYS), lens)


@probe("values")
def wider(student, rng):
    """More queries than keys."""
    return student.masked_softmax(rng.randn(2, 6, 4), torch.tensor([3, 2]))


@probe("square")
def square(student, rng):
    """As many queries as keys and batch items."""
    return student.masked_softmax(rng.randn(4, 4, 4), torch.tensor([2, 3, 1, 4]))


@probe("lengths per query")
def per_query(student, rng):
    """A length for each query."""
    lens = torch.tensor([[2, 4, 3], [5, 1, 2]])
    return student.masked_softmax(rng.randn(2, N_QUERIES, N_KEYS), lens)


@probe("no lengths")
def without(student, rng):
    """No lengths at all."""
    return student.masked_softmax(rng.randn(BATCH, N_QUERIES, N_KEYS), None)


@probe("gradient")
def gradient(student, rng):
    """The gradient of X with a length for each batch item."""
    X, lens = rng.randn(2, N_QUERIES, N_KEYS), torch.tensor([2, 4])
    return gradients(student.masked_softmax, X, lens)


@probe("gradient")
def gradient_without(student, rng):
    """The gradient of X without lengths."""
    return gradients(student.masked_softmax, rng.randn(2, N_QUERIES, N_KEYS), None)


@probe("extreme scores")
def large(student, rng):
    """Scores of ten thousand."""
    X = rng.randn(BATCH, N_QUERIES, N_KEYS) * 1e4
    return student.masked_softmax(X, torch.tensor([2, 4, 1, N_KEYS]))


@probe("extreme scores")
def low(student, rng):
    """Scores around -1e7."""
    X = rng.randn(BATCH, N_QUERIES, N_KEYS) - 1e7
    return student.masked_softmax(X, torch.tensor([2, 4, 1, 3]))


@probe("extreme scores")
def slightly_low(student, rng):
    """Scores around -30."""
    X = rng.randn(BATCH, N_QUERIES, N_KEYS) - 30
    return student.masked_softmax(X, torch.tensor([2, 4, 1, 3]))


@probe("extreme scores")
def padded_high(student, rng):
    """A score of a thousand at each padded key."""
    lens = torch.tensor([2, 4, 1, 3])
    padded = torch.arange(N_KEYS) >= lens.view(BATCH, 1, 1)
    X = rng.randn(BATCH, N_QUERIES, N_KEYS).masked_fill(padded, 1e3)
    return student.masked_softmax(X, lens)


@probe("extreme scores")
def rows_apart(student, rng):
    """Rows whose scores lie a thousand apart."""
    X = rng.randn(BATCH, N_QUERIES, N_KEYS) + 1e3 * torch.arange(N_QUERIES).view(1, -1, 1)
    return student.masked_softmax(X, torch.tensor([2, 4, 1, 3]))


@probe("length 0")
def empty_rows(student, rng):
    """Some queries with length 0."""
    lens = torch.tensor([[0, 2, 1], [3, 0, 0]])
    return student.masked_softmax(rng.randn(2, N_QUERIES, N_KEYS), lens)


@probe("length 0")
def empty_items(student, rng):
    """A batch item with length 0."""
    X = rng.randn(BATCH, N_QUERIES, N_KEYS)
    return student.masked_softmax(X, torch.tensor([0, 2, 1, N_KEYS]))


@probe("length 0")
def gradient_of_empty_rows(student, rng):
    """The gradient of X where some rows have length 0."""
    X, lens = rng.randn(2, N_QUERIES, N_KEYS), torch.tensor([[0, 4, 3], [5, 1, 2]])
    return gradients(student.masked_softmax, X, lens)


@probe("single")
def one_query(student, rng):
    """One query."""
    return student.masked_softmax(rng.randn(2, 1, 6), torch.tensor([2, 4]))


@probe("single")
def one_item(student, rng):
    """One batch item."""
    return student.masked_softmax(rng.randn(1, 4, 6), torch.tensor([3]))


@probe("single")
def one_key(student, rng):
    """One key."""
    return student.masked_softmax(rng.randn(3, 4, 1), torch.tensor([1, 1, 1]))


@probe("views")
def transposed(student, rng):
    """X is a transposed view."""
    X = rng.randn(2, N_KEYS, N_QUERIES).transpose(1, 2)
    return student.masked_softmax(X, torch.tensor([2, 4]))


@probe("dtype")
def float_lengths(student, rng):
    """Lengths as floats, whole and not."""
    X = rng.randn(3, N_QUERIES, N_KEYS)
    return student.masked_softmax(X, torch.tensor([2.0, 4.0, 2.5]))


@probe("dtype")
def single_precision(student, rng):
    """X in float32."""
    X = rng.randn(2, N_QUERIES, N_KEYS, dtype=torch.float32)
    return student.masked_softmax(X, torch.tensor([2, 4]))


@probe("dtype")
def half_precision(student, rng):
    """X in bfloat16."""
    X = rng.randn(2, N_QUERIES, N_KEYS, dtype=torch.bfloat16)
    return student.masked_softmax(X, torch.tensor([2, 4]))


@probe("writes")
def argument(student, rng):
    """X after the call."""
    X, lens = rng.randn(2, N_QUERIES, N_KEYS), torch.tensor([2, 4])
    return written(student, student.masked_softmax, X, lens)


@probe("refusals")
def too_long(student, rng):
    """A length greater than n_keys."""
    return student.masked_softmax(rng.randn(2, N_QUERIES, N_KEYS), torch.tensor([2, 6]))


@probe("refusals")
def too_long_per_query(student, rng):
    """A length greater than n_keys for one query."""
    lens = torch.tensor([[2, 4, 6], [5, 1, 2]])
    return student.masked_softmax(rng.randn(2, N_QUERIES, N_KEYS), lens)


@probe("refusals")
def wrong_batch(student, rng):
    """As many lengths as queries, but not as batch items."""
    return student.masked_softmax(rng.randn(2, N_QUERIES, N_KEYS), torch.tensor([2, 3, 4]))


@probe("refusals")
def wrong_queries(student, rng):
    """One length for each batch item and key."""
    lens = torch.ones(2, N_KEYS)
    return student.masked_softmax(rng.randn(2, N_QUERIES, N_KEYS), lens)
