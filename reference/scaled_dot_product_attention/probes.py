"""Probes of scaled dot-product attention: what tells its mistakes apart."""

import torch

from grader.probing import (
    ACCEPTED,
    Aspect,
    extremes,
    gradients,
    probe,
    share_of_zeros,
    weights_dropped_together,
    works_too,
    written,
)

AXES = ("batch item", "query", "feature")  # of an output, in the singular

PRODUCT = Aspect("product", "what `batched_product` returns")
KEPT = Aspect("kept weights", "the weights in `attention_weights`")
PADDED = Aspect("padded values", "the output where padded values are not finite", is_edge=True)


def qkv(rng, batch=2, n_queries=3, n_keys=5, d_key=4, d_value=6, dtype=torch.float64):
    """Return random queries, keys and values."""
    queries = rng.randn(batch, n_queries, d_key, dtype=dtype)
    keys = rng.randn(batch, n_keys, d_key, dtype=dtype)
    return queries, keys, rng.randn(batch, n_keys, d_value, dtype=dtype)


def attention(student, dropout=0.0):
    """Return a module in evaluation mode."""
    return student.DotProductAttention(dropout).eval()


def extremes_of(student, module, rng, n_keys=4):
    """Return the largest and the smallest outputs of two queries in many draws."""
    inputs = qkv(rng, 1, 2, n_keys)

    def two_keys(*many):
        return module(*many, torch.tensor([[1, 2]]).repeat(len(many[0]), 1))

    return extremes(student, module, *inputs, two_keys=two_keys)


@probe(PRODUCT)
def product(student, rng):
    """Two matrices times two."""
    return student.batched_product(rng.randn(2, 3, 4), rng.randn(2, 4, 5))


@probe(PRODUCT)
def product_of_squares(student, rng):
    """Square matrices, as many as they have rows."""
    return student.batched_product(rng.randn(4, 4, 4), rng.randn(4, 4, 4))


@probe(PRODUCT)
def gradient_of_product(student, rng):
    """The gradients of both factors."""
    return gradients(student.batched_product, rng.randn(2, 3, 4), rng.randn(2, 4, 5))


@probe("values")
def ordinary(student, rng):
    """Fewer queries than keys."""
    return attention(student)(*qkv(rng))


@probe("values")
def more_queries(student, rng):
    """More queries than keys."""
    return attention(student)(*qkv(rng, 3, 7, 4, 5, 2))


@probe("values")
def long_vectors(student, rng):
    """Queries and keys of size 9, and values of size 2."""
    return attention(student)(*qkv(rng, 2, 6, 4, 9, 2))


@probe("values")
def other_sizes_before(student, rng):
    """Queries and keys of size 9, after a call of the same module with size 4."""
    module = attention(student)
    module(*qkv(rng))
    return module(*qkv(rng, d_key=9))


@probe("square")
def square(student, rng):
    """All sizes equal."""
    return attention(student)(*qkv(rng, 4, 4, 4, 4, 4))


@probe("options")
def lengths_of_items(student, rng):
    """A length for each batch item."""
    return attention(student)(*qkv(rng, 4), torch.tensor([2, 4, 1, 5]))


@probe("options")
def lengths_of_items_in_a_square(student, rng):
    """A length for each batch item, with all sizes equal."""
    return attention(student)(*qkv(rng, 4, 4, 4, 4, 4), torch.tensor([2, 4, 1, 3]))


@probe("options")
def dropout_in_evaluation(student, rng):
    """Evaluation mode with a dropout rate of a half."""
    return extremes_of(student, attention(student, 0.5), rng)


@probe("lengths per query")
def lengths_of_queries(student, rng):
    """A length for each query."""
    return attention(student)(*qkv(rng), torch.tensor([[2, 4, 3], [5, 1, 2]]))


@probe("lengths per query")
def lengths_of_queries_in_a_square(student, rng):
    """A length for each query, with all sizes equal."""
    lens = torch.tensor([[1, 3, 2], [2, 1, 1], [3, 2, 1]])
    return attention(student)(*qkv(rng, 3, 3, 3, 3, 3), lens)


@probe(KEPT)
def kept(student, rng):
    """The weights of the last call in evaluation mode."""
    module = attention(student, 0.5)
    module(*qkv(rng))
    return {"attention_weights": module.attention_weights.double()}


@probe(KEPT)
def kept_with_lengths(student, rng):
    """The weights of the last call with lengths."""
    module = attention(student)
    module(*qkv(rng), torch.tensor([2, 4]))
    return {"attention_weights": module.attention_weights.double()}


@probe(KEPT)
def kept_after_another_call(student, rng):
    """The weights of the second call of a module."""
    module = attention(student)
    for _ in range(2):
        module(*qkv(rng))
    return {"attention_weights": module.attention_weights.double()}


@probe(KEPT)
def kept_in_training(student, rng):
    """The weights of the last call in training mode with dropout of a half, over many draws."""
    module = attention(student, 0.5).train()

    def kept(*many):
        module(*many, torch.tensor([[1, 2, 3]]).repeat(len(many[0]), 1))
        return module.attention_weights.double()

    return extremes(student, kept, *qkv(rng, 1), two_keys=kept)


@probe("gradient")
def gradient(student, rng):
    """The gradients without lengths."""
    return gradients(attention(student), *qkv(rng))


@probe("gradient")
def gradient_with_lengths(student, rng):
    """The gradients with a length for each batch item."""
    return gradients(attention(student), *qkv(rng), torch.tensor([2, 4]))


@probe("training")
def training(student, rng):
    """Training mode without dropout."""
    return attention(student).train()(*qkv(rng))


@probe("training", decides=False)
def dropped(student, rng):
    """Training mode with dropout of a half."""
    return extremes_of(student, attention(student, 0.5).train(), rng)


@probe("training", decides=False)
def dropped_less(student, rng):
    """Training mode with a dropout of 0.3."""
    return extremes_of(student, attention(student, 0.3).train(), rng, n_keys=3)


@probe("training")
def weights_dropped(student, rng):
    """Which weights of two items are dropped together, over 40 draws."""
    inputs = (tensor * 0.5 for tensor in qkv(rng, n_queries=3, n_keys=3))
    return weights_dropped_together(student, attention(student, 0.5).train(), *inputs)


@probe("training")
def share_dropped(student, rng):
    """How often the only key is dropped at a rate of 0.3."""
    return share_of_zeros(student, attention(student, 0.3).train(), *qkv(rng, 1, 2, 1))


@probe("training")
def all_dropped(student, rng):
    """Training mode with dropout of 1."""
    return attention(student, 1.0).train()(*qkv(rng))


@probe("length 0")
def empty(student, rng):
    """Some queries with length 0."""
    return attention(student)(*qkv(rng), torch.tensor([[0, 2, 1], [3, 0, 0]]))


@probe(PADDED)
def undefined(student, rng):
    """Padded values of nan."""
    return _with_padding(student, rng, torch.nan, torch.tensor([2, 4, 3]))


@probe(PADDED)
def undefined_for_every_query(student, rng):
    """Values of nan that are padded for every query, each with a length of its own."""
    lens = torch.tensor([[1, 2, 2], [4, 1, 3], [2, 3, 1]])  # (batch, n_queries)
    return _with_padding(student, rng, torch.nan, lens)


@probe(PADDED)
def infinite(student, rng):
    """Padded values of inf."""
    return _with_padding(student, rng, torch.inf, torch.tensor([2, 4, 3]))


def _with_padding(student, rng, filler, lens):
    queries, keys, values = qkv(rng, 3)
    padded = torch.arange(5) >= lens.view(3, -1).amax(1, keepdim=True)
    spoilt = values.masked_fill(padded.unsqueeze(-1), filler)
    output = attention(student)(queries, keys, spoilt, lens)
    return {"output": output, "finite": output.isfinite()}


@probe(PADDED)
def undefined_and_used(student, rng):
    """A nan in a value that every query uses."""
    queries, keys, values = qkv(rng, 3)
    values[:, 0, 0] = torch.nan
    output = attention(student)(queries, keys, values, torch.tensor([2, 4, 3]))
    return {"output": output, "finite": output.isfinite()}


@probe("single")
def one_query(student, rng):
    """One query."""
    return attention(student)(*qkv(rng, n_queries=1))


@probe("single")
def one_key(student, rng):
    """One key."""
    return attention(student)(*qkv(rng, n_keys=1))


@probe("single")
def one_item(student, rng):
    """One batch item."""
    return attention(student)(*qkv(rng, 1))


@probe("single")
def one_of_each(student, rng):
    """One batch item with one query and one key."""
    return attention(student)(*qkv(rng, 1, 1, 1, 4, 12))


@probe("views")
def transposed(student, rng):
    """Transposed views."""
    return attention(student)(*(tensor.mT.contiguous().mT for tensor in qkv(rng)))


@probe("views")
def swapped(student, rng):
    """Views whose leading axes were swapped."""
    views = (tensor.transpose(0, 1).contiguous().transpose(0, 1) for tensor in qkv(rng))
    return attention(student)(*views)


@probe("views")
def product_of_views(student, rng):
    """The product of transposed matrices."""
    return student.batched_product(rng.randn(2, 4, 3).mT, rng.randn(2, 5, 4).mT)


@probe("dtype")
def single_precision(student, rng):
    """float32."""
    return attention(student)(*qkv(rng, dtype=torch.float32))


@probe("dtype")
def half_precision(student, rng):
    """bfloat16."""
    return attention(student)(*qkv(rng, dtype=torch.bfloat16))


@probe("writes")
def arguments(student, rng):
    """Which numbers in queries, keys and values are others after a call."""
    return _changed(student, attention(student), *qkv(rng))


@probe("writes")
def undefined_values_afterwards(student, rng):
    """Which values are nan after a call with padded values of nan."""
    queries, keys, values = qkv(rng)
    values[:, 3:] = torch.nan
    module, lens = attention(student), torch.tensor([3, 2])
    return written(student, module, queries, keys, values, lens)[2].isnan()


@probe("writes")
def arguments_with_lengths(student, rng):
    """Which numbers in queries, keys and values are others after a call with lengths."""
    return _changed(student, attention(student), *qkv(rng), torch.tensor([2, 4]))


def _changed(student, call, *inputs):
    before = [value.clone() for value in inputs]
    return [new != old for new, old in zip(written(student, call, *inputs), before)]


@probe("refusals")
def other_batch(student, rng):
    """`batched_product` with a batch of 1 and one of 2."""
    student.batched_product(rng.randn(2, 3, 4), rng.randn(1, 4, 5))
    return ACCEPTED


@probe("refusals")
def matrices(student, rng):
    """`batched_product` with one matrix for all."""
    student.batched_product(rng.randn(2, 3, 4), rng.randn(4, 5))
    return ACCEPTED


@probe("refusals")
def four_axes(student, rng):
    """`batched_product` with four axes."""
    student.batched_product(rng.randn(2, 2, 3, 4), rng.randn(2, 2, 4, 5))
    return ACCEPTED


@probe("refusals")
def other_terms(student, rng):
    """`batched_product` with a last axis of 4 and one of 1 to meet it."""
    student.batched_product(rng.randn(2, 3, 4), rng.randn(2, 1, 5))
    return ACCEPTED


@probe("refusals")
def too_long(student, rng):
    """A length greater than n_keys."""
    attention(student)(*qkv(rng), torch.tensor([2, 6]))
    return ACCEPTED


@probe("refusals")
def wrong_lengths(student, rng):
    """As many lengths as queries, but not as batch items."""
    attention(student)(*qkv(rng), torch.tensor([2, 3, 4]))
    return ACCEPTED


@probe("views")
def transposed_works(student, rng):
    """Whether transposed views work."""
    module, inputs = attention(student), qkv(rng)
    views = [tensor.mT.contiguous().mT for tensor in inputs]
    return works_too(lambda: module(*inputs), lambda: module(*views))


@probe("single")
def one_value(student, rng):
    """Values of a single number."""
    return attention(student)(*qkv(rng, d_value=1))


@probe("single")
def kept_for_one_key(student, rng):
    """The weights of the last call, for one key."""
    module = attention(student)
    module(*qkv(rng, n_queries=12, n_keys=1))
    return module.attention_weights


@probe(PADDED)
def undefined_at_length_zero(student, rng):
    """Values that are all nan, and padded for every query, in one of three items."""
    return _with_padding(student, rng, torch.nan, torch.tensor([0, 4, 3]))


@probe("refusals")
def one_matrix_of_the_same_size(student, rng):
    """`batched_product` with one matrix for all, with as many rows as the batch has items."""
    student.batched_product(rng.randn(4, 3, 4), rng.randn(4, 5))
    return ACCEPTED
