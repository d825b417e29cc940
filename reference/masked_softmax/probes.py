"""Probes of masked softmax: what tells its mistakes apart."""

import torch

from grader.probing import ACCEPTED, finite_too, gradients, probe, works_too, written

AXES = ("batch item", "query", "key")  # of an output, in the singular

BATCH, N_QUERIES, N_KEYS = 4, 3, 5
EMPTY = torch.tensor([[0, 1, 1, 0], [1, 0, 1, 0]])  # 0 where a query attends to nothing


def changed(student, *inputs):
    """Return which numbers of the arguments are others after a call."""
    before = [value.clone() for value in inputs if value is not None]
    after = written(student, student.masked_softmax, *inputs)
    return [new != old for new, old in zip(after, before)]


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


@probe("extreme scores")
def zeros(student, rng):
    """Scores of which a third are exactly 0."""
    X = rng.randint(-1, 2, BATCH, N_QUERIES, N_KEYS).double()
    return student.masked_softmax(X, torch.tensor([2, 4, 3, N_KEYS]))


@probe("values")
def full_lengths_work(student, rng):
    """Whether lengths as large as the number of keys work."""
    X, call = rng.randn(BATCH, N_QUERIES, N_KEYS), student.masked_softmax
    shorter, full = torch.tensor([[2, 4, 1, 3], [2, N_KEYS, 1, 3]])
    return works_too(lambda: call(X, shorter), lambda: call(X, full))


@probe("lengths per query")
def per_query(student, rng):
    """A length for each query."""
    lens = torch.tensor([[2, 4, 3], [5, 1, 2]])
    return student.masked_softmax(rng.randn(2, N_QUERIES, N_KEYS), lens)


@probe("lengths per query")
def square_per_query(student, rng):
    """A length for each query, with as many queries as keys and batch items."""
    lens = torch.tensor([[1, 3, 2], [2, 1, 1], [3, 2, 1]])
    return student.masked_softmax(rng.randn(3, 3, 3), lens)


@probe("lengths per query")
def more_queries(student, rng):
    """A length for each query, with more queries than keys."""
    lens = torch.tensor([[1, 3, 2, 2, 1], [3, 1, 2, 3, 1]])
    return student.masked_softmax(rng.randn(2, 5, 3), lens)


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


@probe("extreme scores", decides=False)
def large_without(student, rng):
    """Scores of a hundred, without lengths, in rows that lie a thousand apart."""
    rows = 1e3 * torch.arange(6).view(1, -1, 1)
    return student.masked_softmax(rng.randn(BATCH, 6, N_KEYS) * 100 + rows, None)


@probe("extreme scores")
def too_large(student, rng):
    """Which rows get finite weights if their scores rise from 20 to 20,000."""
    levels = torch.logspace(1.3, 4.3, 24, dtype=torch.float64).view(6, 4, 1)
    lens = torch.tensor([2, 4, 1, 3, 2, N_KEYS])
    weights = student.masked_softmax(rng.randn(6, 4, N_KEYS) + levels, lens)
    return weights[..., 0].isfinite()


@probe("extreme scores")
def far_apart(student, rng):
    """Scores that fall by 4 from key to key, without lengths."""
    X = rng.randn(BATCH, N_QUERIES, N_KEYS) - 4.0 * torch.arange(N_KEYS)
    return student.masked_softmax(X, None)


@probe("extreme scores", decides=False)
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
def finite_beside_padding(student, rng):
    """Which weights are finite where padded keys have a score of ten thousand."""
    lens = torch.tensor([2, 4, 1, 3])
    padded = torch.arange(N_KEYS) >= lens.view(BATCH, 1, 1)
    X, call = rng.randn(BATCH, N_QUERIES, N_KEYS), student.masked_softmax
    return finite_too(call(X, lens), call(X.masked_fill(padded, 1e4), lens))


@probe("extreme scores", decides=False)
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
def all_empty(student, rng):
    """Queries that all have length 0."""
    return student.masked_softmax(rng.randn(2, 7, N_KEYS), torch.zeros(2, 7, dtype=torch.int64))


@probe("length 0")
def undefined(student, rng):
    """Which weights are nan where some queries have length 0."""
    lens = torch.tensor([[0, 2, 1, 0], [3, 0, 0, 5]])
    return student.masked_softmax(rng.randn(2, 4, N_KEYS), lens).isnan()


@probe("length 0")
def gradient_of_empty_rows(student, rng):
    """The gradient of X where some rows have length 0."""
    X, lens = rng.randn(2, N_QUERIES, N_KEYS), torch.tensor([[0, 4, 3], [5, 1, 2]])
    return gradients(student.masked_softmax, X, lens)


@probe("length 0")
def gradient_of_all_empty(student, rng):
    """The gradient of X where all rows have length 0."""
    X = rng.randn(2, N_QUERIES, N_KEYS)
    return gradients(student.masked_softmax, X, torch.tensor([0, 0]))


@probe("length 0")
def finite_slopes(student, rng):
    """Which numbers of the gradient of X are finite where some rows have length 0."""
    X, lens = rng.randn(2, 4, N_KEYS), torch.tensor([[1, 4, 3, 2], [5, 2, 2, 1]])
    ordinary, found = (gradients(student.masked_softmax, X, each) for each in (lens, lens * EMPTY))
    return {
        name: finite_too(ordinary[name], value)
        for name, value in found.items()
        if torch.is_tensor(value)
    }


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
    """Lengths as floats."""
    X = rng.randn(3, N_QUERIES, N_KEYS)
    return student.masked_softmax(X, torch.tensor([2.0, 4.0, 3.0]))


@probe("dtype")
def fractions(student, rng):
    """Lengths that are not whole."""
    X = rng.randn(3, N_QUERIES, N_KEYS)
    return student.masked_softmax(X, torch.tensor([2.5, 0.5, 3.1]))


@probe("dtype")
def single_precision(student, rng):
    """X in float32."""
    X = rng.randn(2, N_QUERIES, N_KEYS, dtype=torch.float32)
    return student.masked_softmax(X, torch.tensor([2, 4]))


@probe("dtype")
def single_precision_without(student, rng):
    """X in float32, without lengths."""
    return student.masked_softmax(rng.randn(2, N_QUERIES, N_KEYS, dtype=torch.float32), None)


@probe("dtype")
def half_precision(student, rng):
    """X in bfloat16."""
    X = rng.randn(2, N_QUERIES, N_KEYS, dtype=torch.bfloat16)
    return student.masked_softmax(X, torch.tensor([2, 4]))


@probe("writes")
def argument(student, rng):
    """Which scores in X are others after a call with a length for each batch item."""
    X, lens = rng.randn(3, N_QUERIES, N_KEYS), torch.tensor([1, 2, 3])
    return changed(student, X, lens)


@probe("writes")
def argument_per_query(student, rng):
    """Which scores in X are others after a call with a length for each query."""
    X, lens = rng.randn(2, N_QUERIES, N_KEYS), torch.tensor([[1, 2, 3], [3, 1, 2]])
    return changed(student, X, lens)


@probe("writes")
def argument_without(student, rng):
    """Which scores in X are others after a call without lengths."""
    return changed(student, rng.randn(2, N_QUERIES, N_KEYS), None)


@probe("refusals")
def too_long(student, rng):
    """A length greater than n_keys."""
    student.masked_softmax(rng.randn(2, N_QUERIES, N_KEYS), torch.tensor([2, 6]))
    return ACCEPTED


@probe("refusals")
def too_long_per_query(student, rng):
    """A length greater than n_keys for one query."""
    lens = torch.tensor([[2, 4, 6], [5, 1, 2]])
    student.masked_softmax(rng.randn(2, N_QUERIES, N_KEYS), lens)
    return ACCEPTED


@probe("refusals")
def wrong_batch(student, rng):
    """As many lengths as queries, but not as batch items."""
    student.masked_softmax(rng.randn(2, N_QUERIES, N_KEYS), torch.tensor([2, 3, 4]))
    return ACCEPTED


@probe("refusals")
def wrong_queries(student, rng):
    """One length for each batch item and key."""
    student.masked_softmax(rng.randn(2, N_QUERIES, N_KEYS), torch.ones(2, N_KEYS))
    return ACCEPTED


@probe("refusals")
def one_column(student, rng):
    """Lengths of shape (batch, 1)."""
    student.masked_softmax(rng.randn(2, N_QUERIES, N_KEYS), torch.ones(2, 1))
    return ACCEPTED


@probe("dtype")
def more_keys_than_bfloat16_counts(student, rng):
    """Which of 300 keys get a weight, for X in bfloat16."""
    X = rng.randn(2, 1, 300, dtype=torch.bfloat16)
    return student.masked_softmax(X, torch.tensor([257, 299])) != 0


@probe("writes")
def fractions_afterwards(student, rng):
    """Which lengths of 2.5 are others after a call."""
    lens = torch.full((2, 6), 2.5)
    return written(student, student.masked_softmax, rng.randn(2, 6, N_KEYS), lens)[1] != 2.5


@probe("views")
def transposed_works(student, rng):
    """Whether a transposed X works."""
    X, lens = rng.randn(2, N_KEYS, N_QUERIES).transpose(1, 2), torch.tensor([2, 4])
    call = student.masked_softmax
    return works_too(lambda: call(X.contiguous(), lens), lambda: call(X, lens))


@probe("gradient")
def finite_slopes_beside_padding(student, rng):
    """Which numbers of the gradient of X are finite where padded keys have a large score."""
    X, lens = rng.randn(2, 4, N_KEYS), torch.tensor([2, 4])
    ordinary = gradients(student.masked_softmax, X, lens)
    X[:, :, -1] = 1e4
    found = gradients(student.masked_softmax, X, lens)
    return {
        name: finite_too(ordinary[name], value)
        for name, value in found.items()
        if torch.is_tensor(value)
    }


@probe("refusals")
def half_a_key_too_long(student, rng):
    """A length of half a key more than there are."""
    student.masked_softmax(rng.randn(2, N_QUERIES, N_KEYS), torch.tensor([2.0, N_KEYS + 0.5]))
    return ACCEPTED


@probe("dtype")
def fractions_per_query(student, rng):
    """Lengths per query that are not whole."""
    lens = torch.tensor([[2.5, 1.0, 0.3], [4.7, 5.0, 1.2]])
    return student.masked_softmax(rng.randn(2, N_QUERIES, N_KEYS), lens)
