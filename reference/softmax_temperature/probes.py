"""Probes of softmax and temperature: what tells its mistakes apart."""

import torch

from grader.probing import ACCEPTED, Aspect, gradients, probe, written

AXES = ("batch item", "query", "key")  # of an output, in the singular

ENTROPY = Aspect("entropy", "what `entropy` returns")
ZEROS = Aspect("weights of 0", "the entropy of weights that are 0", is_edge=True)
PRODUCTS = Aspect("products", "what `variance_of_products` returns")
SCALE = Aspect("scale", "what `scale` returns")


def weights_of(rng, *shape):
    """Return random weights, whose rows sum to 1."""
    return torch.softmax(rng.randn(*shape) * 2, dim=-1)


@probe("values")
def sharp(student, rng):
    """A temperature of a half."""
    return student.tempered_softmax(rng.randn(2, 3, 5), 0.5)


@probe("values")
def even(student, rng):
    """A temperature of 3, without leading axes."""
    return student.tempered_softmax(rng.randn(12), 3.0)


@probe("values")
def plain(student, rng):
    """A temperature of 1."""
    return student.tempered_softmax(rng.randn(3, 6), 1.0)


@probe("square")
def square(student, rng):
    """As many queries as keys."""
    return student.tempered_softmax(rng.randn(4, 4), 0.7)


@probe("leading axes")
def three_leading_axes(student, rng):
    """Scores with three leading axes."""
    return student.tempered_softmax(rng.randn(2, 3, 4, 5), 2.0)


@probe(ENTROPY)
def entropies(student, rng):
    """The entropy of twelve rows."""
    return student.entropy(weights_of(rng, 3, 4, 5))


@probe(ENTROPY)
def entropies_of_a_matrix(student, rng):
    """The entropy of as many rows as there are keys."""
    return student.entropy(weights_of(rng, 12, 12))


@probe(ENTROPY)
def entropy_of_one_row(student, rng):
    """The entropy of single rows without leading axes."""
    return [student.entropy(weights_of(rng, n)) for n in range(2, 14)]


@probe(ENTROPY)
def gradient_of_entropy(student, rng):
    """The gradient of the entropy."""
    return gradients(student.entropy, weights_of(rng, 2, 3, 5))


@probe(ZEROS)
def padded(student, rng):
    """The entropy of rows in which two weights are 0."""
    weights = torch.cat([weights_of(rng, 3, 4, 5), torch.zeros(3, 4, 2)], dim=-1)
    return student.entropy(weights)


@probe(ZEROS)
def padded_is_finite(student, rng):
    """Which rows with two weights of 0 have a finite entropy."""
    weights = torch.cat([weights_of(rng, 3, 4, 5), torch.zeros(3, 4, 2)], dim=-1)
    return student.entropy(weights).isfinite()


@probe(ZEROS)
def half_precision_is_finite(student, rng):
    """Which rows with two weights of 0 have a finite entropy in float16."""
    weights = torch.cat([weights_of(rng, 3, 4, 5), torch.zeros(3, 4, 2)], dim=-1)
    return student.entropy(weights.half()).isfinite()


@probe(ZEROS)
def gradient_is_finite(student, rng):
    """Where the gradient of the entropy is finite, with two weights of 0 in each row."""
    weights = torch.cat([weights_of(rng, 3, 4, 5), torch.zeros(3, 4, 2)], dim=-1)
    found = gradients(student.entropy, weights)
    return {name: value.isfinite() for name, value in found.items() if torch.is_tensor(value)}


@probe(PRODUCTS)
def variances(student, rng):
    """The variance of five products, twelve times."""
    queries, keys = rng.randn(3, 4, 5, 6) + 0.5, rng.randn(3, 4, 5, 6) + 0.5
    return student.variance_of_products(queries, keys)


@probe(PRODUCTS)
def variances_of_squares(student, rng):
    """As many products as vectors have numbers."""
    return student.variance_of_products(rng.randn(12, 4, 4) + 0.5, rng.randn(12, 4, 4) + 0.5)


@probe(PRODUCTS)
def single_matrices(student, rng):
    """Queries and keys without leading axes."""
    pairs = [(rng.randn(n, 3) + 0.5, rng.randn(n, 3) + 0.5) for n in range(2, 14)]
    return [student.variance_of_products(*pair) for pair in pairs]


@probe(PRODUCTS)
def single_products(student, rng):
    """The variance of a single product."""
    variance = student.variance_of_products(rng.randn(3, 4, 1, 6), rng.randn(3, 4, 1, 6))
    return {"variance": variance, "finite": variance.isfinite()}


@probe(PRODUCTS)
def gradient_of_variances(student, rng):
    """The gradients of queries and keys."""
    return gradients(student.variance_of_products, rng.randn(2, 5, 4), rng.randn(2, 5, 4))


@probe(SCALE)
def scaled(student, rng):
    """Scores of vectors of size 7."""
    return student.scale(rng.randn(2, 3, 5), 7)


@probe(SCALE)
def scaled_much(student, rng):
    """Scores of vectors of size 64, without leading axes."""
    return student.scale(rng.randn(12), 64)


@probe(SCALE)
def gradient_of_scaled(student, rng):
    """The gradient of scores that are scaled."""
    return gradients(student.scale, rng.randn(2, 3, 5), 7)


@probe("gradient")
def gradient(student, rng):
    """The gradient of the scores at temperature 0.5."""
    return gradients(student.tempered_softmax, rng.randn(2, 3, 5), 0.5)


@probe("extreme scores")
def high(student, rng):
    """Scores of ten thousand."""
    return student.tempered_softmax(rng.permutation(12).double().view(3, 4) * 1e4, 1.0)


@probe("extreme scores")
def too_large(student, rng):
    """Which rows get finite weights if their scores rise from 20 to 20,000."""
    levels = torch.logspace(1.3, 4.3, 24, dtype=torch.float64).view(24, 1)
    return student.tempered_softmax(rng.randn(24, 5) + levels, 1.0)[:, 0].isfinite()


@probe("extreme scores")
def low(student, rng):
    """Scores around minus ten thousand."""
    return student.tempered_softmax(rng.permutation(12).double().view(3, 4) - 1e4, 1.0)


@probe("extreme scores")
def apart(student, rng):
    """Rows whose scores lie ten thousand apart."""
    rows = 1e4 * torch.arange(3).view(3, 1)
    weights = student.tempered_softmax(rng.permutation(12).double().view(3, 4) + rows, 1.0)
    return {"weights": weights, "finite": weights.isfinite()}


@probe("extreme scores")
def picks(student, rng):
    """A temperature of 0.001."""
    return student.tempered_softmax(rng.permutation(12).double().view(3, 4), 1e-3)


@probe("extreme scores")
def small(student, rng):
    """Scores of a thousandth at a temperature of a thousandth."""
    return student.tempered_softmax(rng.permutation(12).double().view(3, 4) / 1024, 1 / 1024)


@probe("extreme scores")
def averages(student, rng):
    """A temperature of a hundred million."""
    return student.tempered_softmax(rng.permutation(12).double().view(3, 4), 1e8)


@probe("single")
def one_key(student, rng):
    """One key."""
    return student.tempered_softmax(rng.randn(3, 4, 1), 0.5)


@probe("single")
def one_row(student, rng):
    """One row."""
    return student.tempered_softmax(rng.randn(1, 12), 0.5)


@probe("views")
def transposed(student, rng):
    """Transposed views."""
    weights, scores = weights_of(rng, 5, 3, 4).mT.contiguous().mT, rng.randn(5, 3, 4).mT
    queries, keys = rng.randn(4, 5, 3).mT, rng.randn(4, 5, 3).mT
    return {
        "weights": student.tempered_softmax(scores, 0.5),
        "entropy": student.entropy(weights),
        "variance": student.variance_of_products(queries, keys),
        "scaled": student.scale(scores, 7),
    }


@probe("views")
def swapped_leading_axes(student, rng):
    """`variance_of_products` of views whose two leading axes were swapped."""
    queries, keys = (rng.randn(4, 3, 3, 5).transpose(0, 1) for _ in range(2))
    return student.variance_of_products(queries, keys)


@probe("dtype")
def single_precision(student, rng):
    """float32."""
    return _results(student, rng, torch.float32)


@probe("dtype")
def half_precision(student, rng):
    """bfloat16."""
    return _results(student, rng, torch.bfloat16)


def _results(student, rng, dtype):
    scores, weights = rng.randn(3, 4, 5, dtype=dtype), weights_of(rng, 3, 4, 5).to(dtype)
    vectors = rng.randn(12, 3, 4, dtype=dtype)
    return {
        "weights": student.tempered_softmax(scores, 0.5),
        "entropy": student.entropy(weights),
        "variance": student.variance_of_products(vectors, vectors),
        "scaled": student.scale(scores, 7),
    }


@probe("writes")
def scores_afterwards(student, rng):
    """Which scores are others after `tempered_softmax`."""
    return _changed(student, student.tempered_softmax, rng.randn(3, 5), 0.5)


@probe("writes")
def weights_afterwards(student, rng):
    """Which weights are others after `entropy`."""
    return _changed(student, student.entropy, weights_of(rng, 3, 5))


@probe("writes")
def vectors_afterwards(student, rng):
    """Which numbers in queries and keys are others after `variance_of_products`."""
    return _changed(student, student.variance_of_products, rng.randn(4, 5), rng.randn(4, 5))


@probe("writes")
def scaled_afterwards(student, rng):
    """Which scores are others after `scale`."""
    return _changed(student, student.scale, rng.randn(3, 5), 7)


def _changed(student, function, *inputs):
    before = [value.clone() for value in inputs if torch.is_tensor(value)]
    return [new != old for new, old in zip(written(student, function, *inputs), before)]


@probe("refusals")
def zero(student, rng):
    """A temperature of 0."""
    student.tempered_softmax(rng.randn(3, 5), 0.0)
    return ACCEPTED


@probe("refusals")
def negative(student, rng):
    """A negative temperature."""
    student.tempered_softmax(rng.randn(3, 5), -1.0)
    return ACCEPTED


@probe("writes")
def zeros_afterwards(student, rng):
    """Which weights are others after `entropy`, where most are 0."""
    return _changed(student, student.entropy, torch.eye(4, dtype=torch.float64))


@probe(PRODUCTS)
def far_products(student, rng):
    """The variances of products around a hundred million."""
    queries = rng.permutation(60).view(10, 6, 1).double() + 1e8
    return student.variance_of_products(queries, torch.ones_like(queries))


@probe("single")
def one_group(student, rng):
    """`variance_of_products` with a leading axis of one, and of one query."""
    return [
        student.variance_of_products(*(rng.randn(*shape, 3) for _ in range(2)))
        for shape in ((1, 5), (4, 1), (1, 1, 6))
    ]


@probe(ENTROPY)
def small_weights(student, rng):
    """Ten million times the entropy of rows with weights of a ten-millionth."""
    small = torch.tensor([1 - 2e-7, 1e-7, 1e-7], dtype=torch.float64).expand(12, 3)
    return student.entropy(small).to(torch.bfloat16) * 1e7


@probe(SCALE)
def single_score(student, rng):
    """A single score in float32, scaled."""
    return student.scale(torch.tensor(3.0), 7)
