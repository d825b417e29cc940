"""Probes of self-attention: what tells its mistakes apart."""

import torch

from grader.probing import Aspect, gradients, probe, written

AXES = ("batch item", "query", "column")  # of an output, in the singular

N_TOKENS, D, N_QUERIES, N_KEYS = 5, 4, 3, 6
LOOPS = Aspect("loops", "what `scores_by_loops` returns")
PRODUCT = Aspect("product", "what `scores_by_product` returns")
NORMALISE = Aspect("normalise", "what `normalise` returns")
NAIVE = Aspect("naive", "what `softmax_naive` returns")
STABLE = Aspect("stable", "what `softmax_stable` returns")
ON_SCORES = ("normalise", "softmax_naive", "softmax_stable")
KEPT = (torch.float64, torch.bfloat16)
EVERY = ("scores_by_loops", "scores_by_product", *ON_SCORES, "context_vectors")


def tokens(rng, *leading, n_tokens=N_TOKENS, d=D, dtype=torch.float64):
    """Return random tokens."""
    return rng.randn(*leading, n_tokens, d, dtype=dtype) * 0.7


def table(rng, *leading, n_queries=N_QUERIES, n_keys=N_KEYS, dtype=torch.float64):
    """Return random scores, of which no row sums to about 0."""
    return rng.randn(*leading, n_queries, n_keys, dtype=dtype) * 0.3 + 1


def argument(rng, name, *leading, dtype=torch.float64):
    """Return what the function `name` takes."""
    return (table if name in ON_SCORES else tokens)(rng, *leading, dtype=dtype)


@probe("values")
def context(student, rng):
    """The context vectors of five tokens."""
    return student.context_vectors(tokens(rng))


@probe("values")
def more_features(student, rng):
    """The context vectors of three tokens of seven features."""
    return student.context_vectors(tokens(rng, n_tokens=3, d=7))


@probe("square")
def square(student, rng):
    """The context vectors of as many tokens as features."""
    return student.context_vectors(tokens(rng, n_tokens=4))


@probe(LOOPS)
def by_loops(student, rng):
    """The scores of five tokens by loops."""
    return student.scores_by_loops(tokens(rng))


@probe(LOOPS)
def by_loops_of_more_features(student, rng):
    """The scores of four tokens of seven features by loops."""
    return student.scores_by_loops(tokens(rng, n_tokens=4, d=7))


@probe(LOOPS)
def by_loops_square(student, rng):
    """The scores of as many tokens as features by loops."""
    return student.scores_by_loops(tokens(rng, n_tokens=4))


@probe(PRODUCT)
def by_product(student, rng):
    """The scores of five tokens by a product."""
    return student.scores_by_product(tokens(rng))


@probe(PRODUCT)
def by_product_square(student, rng):
    """The scores of as many tokens as features by a product."""
    return student.scores_by_product(tokens(rng, n_tokens=4))


@probe(NORMALISE)
def normalised(student, rng):
    """`normalise` of positive scores."""
    return student.normalise(table(rng).abs())


@probe(NORMALISE)
def normalised_signs(student, rng):
    """`normalise` of scores with other signs."""
    scores = rng.randn(4, N_KEYS)
    scores[:, 0] += 3 - scores.sum(-1)
    return student.normalise(scores)


@probe(NORMALISE)
def normalised_square(student, rng):
    """`normalise` of as many queries as keys."""
    return student.normalise(table(rng, n_queries=4, n_keys=4).abs())


@probe(NORMALISE)
def normalised_small(student, rng):
    """`normalise` of scores of a millionth."""
    return student.normalise(table(rng).abs() * 1e-6)


@probe(NAIVE)
def naive(student, rng):
    """`softmax_naive` of ordinary scores."""
    return student.softmax_naive(rng.randn(N_QUERIES, N_KEYS))


@probe(NAIVE)
def naive_square(student, rng):
    """`softmax_naive` of as many queries as keys."""
    return student.softmax_naive(rng.randn(4, 4))


@probe(STABLE)
def stable(student, rng):
    """`softmax_stable` of ordinary scores."""
    return student.softmax_stable(rng.randn(N_QUERIES, N_KEYS))


@probe(STABLE)
def stable_square(student, rng):
    """`softmax_stable` of as many queries as keys."""
    return student.softmax_stable(rng.randn(4, 4))


@probe("gradient")
def gradient_of_loops(student, rng):
    """The gradient of the inputs of `scores_by_loops`."""
    return gradients(student.scores_by_loops, tokens(rng))


@probe("gradient")
def gradient_of_product(student, rng):
    """The gradient of the inputs of `scores_by_product`."""
    return gradients(student.scores_by_product, tokens(rng))


@probe("gradient")
def gradient_of_weights(student, rng):
    """The gradients of the scores of the three functions that make weights."""
    return [gradients(getattr(student, name), table(rng)) for name in ON_SCORES]


@probe("gradient")
def gradient(student, rng):
    """The gradient of the inputs of `context_vectors`."""
    return gradients(student.context_vectors, tokens(rng))


@probe("leading axes")
def batch_of_scores(student, rng):
    """One leading axis for `scores_by_product`."""
    return student.scores_by_product(tokens(rng, 2))


@probe("leading axes")
def batch_of_rows(student, rng):
    """One leading axis for `normalise`."""
    return student.normalise(table(rng, 2).abs())


@probe("leading axes")
def batch_for_naive(student, rng):
    """One leading axis for `softmax_naive`."""
    return student.softmax_naive(table(rng, 2))


@probe("leading axes")
def batch_for_stable(student, rng):
    """One leading axis for `softmax_stable`."""
    return student.softmax_stable(table(rng, 2))


@probe("leading axes")
def batch(student, rng):
    """One leading axis for `context_vectors`."""
    return student.context_vectors(tokens(rng, 2))


@probe("leading axes")
def as_many_items_as_tokens(student, rng):
    """As many batch items as tokens and features, for both functions of tokens."""
    inputs = tokens(rng, 4, n_tokens=4)
    return [student.scores_by_product(inputs), student.context_vectors(inputs)]


@probe("leading axes")
def two_leading_axes(student, rng):
    """Two leading axes for `context_vectors`."""
    return student.context_vectors(tokens(rng, 2, 3))


@probe("leading axes")
def two_leading_axes_of_weights(student, rng):
    """Two leading axes for the functions that make weights."""
    return [getattr(student, name)(table(rng, 2, 3).abs()) for name in ON_SCORES]


@probe("extreme scores")
def large(student, rng):
    """`softmax_stable` of scores of ten thousand."""
    return student.softmax_stable(rng.randn(4, N_KEYS) * 1e4)


@probe("extreme scores")
def around(student, rng):
    """`softmax_stable` of whole numbers around ten thousand."""
    return student.softmax_stable(rng.permutation(18).view(3, 6).double() + 1e4)


@probe("extreme scores")
def around_below(student, rng):
    """`softmax_stable` of whole numbers around minus ten thousand."""
    return student.softmax_stable(rng.permutation(18).view(3, 6).double() - 1e4)


@probe("extreme scores")
def rows_apart(student, rng):
    """`softmax_stable` of rows that lie a thousand apart."""
    rows = 1e3 * torch.arange(3).view(3, 1)
    return student.softmax_stable(rng.permutation(18).view(3, 6).double() + rows)


@probe("extreme scores")
def too_large(student, rng):
    """Which rows get finite weights from `softmax_stable` at scores from 20 to 20,000."""
    levels = torch.logspace(1.3, 4.3, 24, dtype=torch.float64).view(24, 1)
    return student.softmax_stable(rng.randn(24, N_KEYS) + levels)[:, 0].isfinite()


@probe("extreme scores")
def apart(student, rng):
    """Which rows get finite weights from `softmax_stable` if each lies 200 above the last."""
    levels = 200.0 * torch.arange(24, dtype=torch.float64).view(24, 1)
    return student.softmax_stable(rng.randn(24, N_KEYS) + levels)[:, 0].isfinite()


@probe("extreme scores")
def spread(student, rng):
    """Which weights from `softmax_stable` are finite as the scores in a row spread."""
    levels = torch.logspace(1.3, 4.3, 24, dtype=torch.float64).view(24, 1)
    ladder = torch.tensor([0.0, 1, -1, 0.5, -0.5], dtype=torch.float64)
    return student.softmax_stable(levels * ladder).isfinite()


@probe("extreme scores")
def large_context(student, rng):
    """The context vectors of inputs of a few hundred."""
    return student.context_vectors((rng.permutation(20).view(5, 4).double() - 9) * 30)


@probe("extreme scores")
def finite_context(student, rng):
    """Which context vectors are finite for inputs of a few hundred."""
    return student.context_vectors((rng.permutation(20).view(5, 4).double() - 9) * 30).isfinite()


@probe("single")
def one_token(student, rng):
    """One token."""
    return [
        student.context_vectors(tokens(rng, n_tokens=1, d=12)),
        student.scores_by_loops(tokens(rng, n_tokens=1)),
        student.scores_by_product(tokens(rng, n_tokens=1)),
    ]


@probe("single")
def one_token_in_batches(student, rng):
    """One token in each of twelve items, for `context_vectors`."""
    return student.context_vectors(tokens(rng, 12, n_tokens=1))


@probe("single")
def scores_of_one_token_in_batches(student, rng):
    """One token in each of twelve items, for `scores_by_product`."""
    return student.scores_by_product(tokens(rng, 12, n_tokens=1))


@probe("single")
def one_feature(student, rng):
    """One feature for `context_vectors`."""
    return student.context_vectors(tokens(rng, n_tokens=12, d=1))


@probe("single")
def one_query(student, rng):
    """One query for the functions that make weights, with and without a batch."""
    tables = [table(rng, *batch, n_queries=1, n_keys=12) for batch in ((), (3,))]
    return [getattr(student, name)(scores) for name in ON_SCORES for scores in tables]


@probe("single")
def one_key(student, rng):
    """One key for the functions that make weights."""
    return [getattr(student, name)(table(rng, n_queries=12, n_keys=1)) for name in ON_SCORES]


@probe("single")
def one_item(student, rng):
    """One batch item for `context_vectors`."""
    return student.context_vectors(tokens(rng, 1))


@probe("views")
def transposed(student, rng):
    """Transposed views for all functions."""
    inputs, scores = rng.randn(D, N_TOKENS).T * 0.7, (rng.randn(N_KEYS, N_QUERIES) * 0.3 + 1).T
    return [getattr(student, name)(scores if name in ON_SCORES else inputs) for name in EVERY]


@probe("dtype")
def single_precision(student, rng):
    """Arguments in float32."""
    dtype = torch.float32
    return [getattr(student, name)(argument(rng, name, dtype=dtype)) for name in EVERY]


@probe("dtype")
def half_precision_by_loops(student, rng):
    """Inputs of `scores_by_loops` in bfloat16."""
    return student.scores_by_loops(tokens(rng, dtype=torch.bfloat16))


@probe("dtype")
def half_precision(student, rng):
    """Arguments of the other functions in bfloat16."""
    dtype = torch.bfloat16
    return [getattr(student, name)(argument(rng, name, dtype=dtype)) for name in EVERY[1:]]


@probe("dtype")
def kept_dtypes(student, rng):
    """Whether each function keeps float64 and bfloat16."""
    return {name: [keeps(student, rng, name, dtype) for dtype in KEPT * 6] for name in EVERY}


@probe("dtype")
def exact_by_loops(student, rng):
    """Which scores by loops are those of float64, to twelve digits."""
    inputs = tokens(rng)
    return (student.scores_by_loops(inputs) - inputs @ inputs.mT).abs() < 1e-12


def keeps(student, rng, name, dtype):
    """Return whether the result of the function `name` has the dtype of its argument."""
    return getattr(student, name)(argument(rng, name, dtype=dtype)).dtype == dtype


@probe("writes")
def arguments(student, rng):
    """Which numbers of the arguments of all functions are others after a call."""
    return [changed(student, name, argument(rng, name)) for name in EVERY]


@probe("writes")
def arguments_with_leading_axes(student, rng):
    """Which numbers of arguments with a leading axis are others after a call."""
    return [changed(student, name, argument(rng, name, 2)) for name in EVERY[1:]]


def changed(student, name, value):
    """Return which numbers of `value` are others after a call of the function `name`."""
    return written(student, getattr(student, name), value.clone())[0] != value


@probe("writes")
def large_arguments(student, rng):
    """Which scores have changed after a call, where they are of hundreds."""
    found = []
    for name in ON_SCORES:
        scores = table(rng) * 200
        found.append(written(student, getattr(student, name), scores.clone())[0] != scores)
    return found


@probe("extreme scores")
def huge(student, rng):
    """Scores of a hundred million for `softmax_stable`."""
    return student.softmax_stable(rng.permutation(18).view(3, 6).double() * 1e7)


@probe(STABLE)
def equal_and_huge(student, rng):
    """`softmax_stable` of equal scores of a hundred million in float32."""
    return student.softmax_stable(torch.full((3, N_KEYS), 1e8))
