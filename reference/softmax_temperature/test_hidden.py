"""The checks of softmax and temperature and their cases."""

import functools

import pytest
import torch

from grader.authors import (
    Aspect,
    Check,
    assert_vectorised,
    assert_written_by_hand,
    changed,
    drawn,
    gradient,
    gradients,
    output,
    refused,
    turned,
)

pytestmark = pytest.mark.needs("test_written_by_hand")

AXES = ("batch item", "query", "key")  # of an output, in the singular
ENTROPY = Aspect("entropy", "what `entropy` returns")
ZEROS = Aspect("weights of 0", "the entropy of weights that are 0", is_edge=True)
PRODUCTS = Aspect("products", "what `variance_of_products` returns")
SCALE = Aspect("scale", "what `scale` returns")


def weights_of(*shape):
    """Return the recipe of random weights, whose rows sum to 1."""
    return lambda rng: torch.softmax(rng.randn(*shape) * 2, dim=-1)


def vectors(*shape):
    """Return recipes of queries and keys whose numbers have a mean of a half."""
    return [lambda rng: rng.randn(*shape) + 0.5] * 2


def arguments(rng, *leading, n_keys=5, n=6, d_key=4):
    """Return arguments for each function by its name."""
    scores = rng.randn(*leading, n_keys)
    return {
        "tempered_softmax": (scores, 0.5),
        "entropy": (weights_of(*leading, n_keys)(rng),),
        "variance_of_products": (rng.randn(*leading, n, d_key), rng.randn(*leading, n, d_key)),
        "scale": (scores, 7),
    }


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """Entropy and weights are written by hand, without a torch function that does all of it."""
    calls = [functools.partial(getattr(student, n), *a) for n, a in arguments(rng, 2, 3).items()]
    assert_written_by_hand(student, *calls)


test_weights = Check(
    "The weights are the softmax over the keys of scores divided by the temperature.", points=2
)
for shape, temperature, aspect in (
    ((2, 3, 5), 0.5, "values"),
    ((12,), 3.0, "values"),
    ((3, 6), 1.0, "values"),
    ((4, 4), 0.7, "square"),
    ((2, 3, 4, 5), 2, "leading axes"),
    ((3, 4, 1), 0.5, "single"),
    ((1, 12), 0.5, "single"),
):
    test_weights.case(
        f"Scores of shape {shape} at temperature {temperature}.",
        output("tempered_softmax", drawn(*shape), temperature),
        about=aspect,
    )
test_weights.case(
    "Scores of other sizes.", output("tempered_softmax", drawn(4, 2, 7), 1.6), hidden=True
)


test_limits = Check(
    "Temperatures near 0 and huge ones, scores of any size; 0 and below are refused.",
    about="extreme scores",
)
limits = test_limits.case


def whole(factor=1.0, add=0.0):
    """Return the recipe of whole numbers, whose sums are exact in every floating type."""
    return lambda rng: rng.permutation(24).double().view(6, 4) * factor + add


APART = 1e4 * torch.arange(6).view(6, 1)
for sentence, scores, temperature in (
    ("Scores of ten thousand.", whole(1e4), 1.0),
    ("Scores around minus ten thousand.", whole(add=-1e4), 1.0),
    ("A temperature of 0.001.", whole(), 1e-3),
    ("Scores of a thousandth at a temperature of a thousandth.", whole(1 / 1024), 1 / 1024),
    ("Scores of a million at a temperature of a million.", whole(1e6), 1e6),
    ("A temperature of a hundred million.", whole(), 1e8),
):
    limits(sentence, output("tempered_softmax", scores, temperature))
limits(
    "Scores of ten thousand with two leading axes.",
    output("tempered_softmax", lambda rng: whole(1e4)(rng).view(2, 3, 4), 1.0),
    hidden=True,
)
limits("Scores of -1e5.", output("tempered_softmax", whole(-1e4), 0.5), hidden=True)


@limits
def apart(student, rng):
    """Rows whose scores lie ten thousand apart."""
    weights = student.tempered_softmax(whole(add=APART)(rng), 1.0)
    return {"weights": weights, "finite": weights.isfinite()}


@limits
def too_large(student, rng):
    """Which rows get finite weights if their scores rise from 20 to 20,000."""
    levels = torch.logspace(1.3, 4.3, 24, dtype=torch.float64).view(24, 1)
    return student.tempered_softmax(rng.randn(24, 5) + levels, 1.0)[:, 0].isfinite()


for temperature in (0, 0.0, -1.0):
    limits(
        f"A temperature of {temperature}.",
        refused("tempered_softmax", drawn(3, 5), temperature),
        about="refusals",
    )
limits(
    "A temperature of -0.001.",
    refused("tempered_softmax", drawn(2, 4), -1e-3),
    about="refusals",
    hidden=True,
)


test_entropy = Check("The entropy of each row of weights, in nats.", about=ENTROPY)
nats = test_entropy.case
nats("The entropy of twelve rows.", output("entropy", weights_of(3, 4, 5)))
nats("The entropy of as many rows as there are keys.", output("entropy", weights_of(12, 12)))
nats("The entropy of even weights.", output("entropy", torch.full((12, 5), 0.2).double()))
nats("The entropy of rows of one key.", output("entropy", weights_of(4, 3, 1)), about="single")
nats("The entropy of more axes.", output("entropy", weights_of(2, 3, 2, 7)), hidden=True)


@nats
def entropy_of_one_row(student, rng):
    """The entropy of single rows without leading axes."""
    return [student.entropy(weights_of(n)(rng)) for n in range(2, 14)]


@nats
def small_weights(student, rng):
    """Ten million times the entropy of rows with weights of a ten-millionth."""
    small = torch.tensor([1 - 2e-7, 1e-7, 1e-7], dtype=torch.float64).expand(12, 3)
    return student.entropy(small).to(torch.bfloat16) * 1e7


test_weights_of_zero = Check(
    "A weight of 0 adds 0 to the entropy, in half precision, too; the gradient is finite there.",
    about=ZEROS,
)
zeros = test_weights_of_zero.case


def padded(*shape):
    """Return the recipe of rows of weights with two weights of 0 at the end."""
    return lambda rng: torch.nn.functional.pad(weights_of(*shape)(rng), (0, 2))


zeros("The entropy of rows in which two weights are 0.", output("entropy", padded(3, 4, 5)))
zeros("The entropy of one-hot rows.", output("entropy", torch.eye(12).double()), hidden=True)
zeros(
    "Which weights are others after `entropy`, where most are 0.",
    changed("entropy", torch.eye(4).double()),
    about="writes",
)


@zeros
def padded_is_finite(student, rng):
    """Which rows with two weights of 0 have a finite entropy."""
    return student.entropy(padded(3, 4, 5)(rng)).isfinite()


@zeros
def half_precision_is_finite(student, rng):
    """Which rows with two weights of 0 have a finite entropy in float16."""
    return student.entropy(padded(3, 4, 5)(rng).half()).isfinite()


@zeros
def gradient_is_finite(student, rng):
    """Where the gradient of the entropy is finite, with two weights of 0 in each row."""
    found = gradients(student.entropy, padded(3, 4, 5)(rng))
    return {name: value.isfinite() for name, value in found.items() if torch.is_tensor(value)}


test_variance = Check(
    "The variance of the dot products of queries and keys, dividing by n.",
    about=PRODUCTS,
)
variance = test_variance.case
VARIANCE = "variance_of_products"
variance("The variance of five products, twelve times.", output(VARIANCE, *vectors(3, 4, 5, 6)))
variance("As many products as vectors have numbers.", output(VARIANCE, *vectors(12, 4, 4)))
variance("Vectors of one number.", output(VARIANCE, *vectors(12, 5, 1)), about="single")
variance(
    "The variance of products of some millions.",
    output(VARIANCE, *[drawn(2, 3, 5, 4, times=1e3)] * 2),
    hidden=True,
)
variance("The variance at other sizes.", output(VARIANCE, *vectors(2, 7, 3)), hidden=True)


@variance
def single_matrices(student, rng):
    """Queries and keys without leading axes."""
    pairs = [[make(rng) for make in vectors(n, 3)] for n in range(2, 14)]
    return [student.variance_of_products(*pair) for pair in pairs]


@variance
def single_products(student, rng):
    """The variance of a single product."""
    found = student.variance_of_products(*(make(rng) for make in vectors(3, 4, 1, 6)))
    return {"variance": found, "finite": found.isfinite()}


@variance(about="single")
def one_group(student, rng):
    """`variance_of_products` with a leading axis of one, and of one query."""
    shapes = ((1, 5, 3), (4, 1, 3), (1, 1, 6, 3))
    return [student.variance_of_products(*(rng.randn(*s) for _ in range(2))) for s in shapes]


@variance
def far_products(student, rng):
    """The variances of products around a hundred million."""
    queries = rng.permutation(60).view(10, 6, 1).double() + 1e8
    return student.variance_of_products(queries, torch.ones_like(queries))


test_scale = Check("`scale` divides the scores by the root of d_key.", points=2, about=SCALE)
scaled = test_scale.case
for sentence, shape, d_key in (
    ("Scores of vectors of size 7.", (2, 3, 5), 7),
    ("Scores of vectors of size 64, without leading axes.", (12,), 64),
    ("As many scores as d_key.", (4, 4), 4),
):
    scaled(sentence, output("scale", drawn(*shape), d_key))
scaled("A d_key of 1.", output("scale", drawn(3, 4), 1), about="single")
scaled("Scores of any size.", output("scale", drawn(3, 1, 6, times=1e3), 9), hidden=True)
ask = output("scale", drawn(3, 6, times=1e3), 9)
scaled("A table of scores of any size.", ask, hidden=True)
scaled("A single score in float32.", output("scale", torch.tensor(3.0), 7), about="dtype")


test_gradients = Check(
    "Gradients reach scores, weights, queries and keys, and are those of what the code computes.",
    about="gradient",
)
slopes = test_gradients.case
slopes("The gradient at temperature 0.5.", gradient("tempered_softmax", drawn(2, 3, 5), 0.5))
slopes("The gradient of the entropy.", gradient("entropy", weights_of(2, 3, 5)), about=ENTROPY)
slopes("The gradients of queries and keys.", gradient(VARIANCE, *vectors(2, 5, 4)), about=PRODUCTS)
slopes("The gradient of scaled scores.", gradient("scale", drawn(2, 3, 5), 7), about=SCALE)
for sentence, ask, about in (
    ("The gradient of the entropy of a table.", gradient("entropy", weights_of(3, 5)), ENTROPY),
    ("The gradient of a scaled table.", gradient("scale", drawn(3, 5), 7), SCALE),
    ("The gradients of more axes.", gradient(VARIANCE, *vectors(2, 3, 5, 4)), PRODUCTS),
):
    slopes(sentence, ask, about=about, hidden=True)
slopes(
    "The gradient for hundreds with two leading axes.",
    gradient("tempered_softmax", lambda rng: whole(100.0)(rng).view(2, 3, 4), 2.0),
    about="extreme scores",
    hidden=True,
)
slopes(
    "The gradient for scores of some hundreds.",
    gradient("tempered_softmax", whole(100.0), 2.0),
    about="extreme scores",
    hidden=True,
)


test_tensors = Check(
    "Dtypes are kept, views work, nothing is modified, and no Python loop runs over an axis.",
    about="writes",
)
tensors = test_tensors.case


def results(student, given):
    """Return what each function gives for its arguments."""
    return {name: getattr(student, name)(*inputs) for name, inputs in given.items()}


def converted(rng, change):
    """Return arguments for each function, whose tensors are changed."""
    return {
        name: [change(each) if torch.is_tensor(each) else each for each in inputs]
        for name, inputs in arguments(rng, 3, 4).items()
    }


for name, dtype in (("float32", torch.float32), ("bfloat16", torch.bfloat16)):
    tensors(
        f"Arguments in {name}.",
        lambda student, rng, dtype=dtype: results(
            student, converted(rng, lambda each: each.to(dtype))
        ),
        about="dtype",
        within=(0.1, 0.1),
    )
for sentence, axes in (("Transposed views.", (-2, -1)), ("Swapped leading axes.", (0, 1))):
    tensors(
        sentence,
        lambda student, rng, axes=axes: results(
            student, converted(rng, lambda each: turned(each, *axes)(rng))
        ),
        about="views",
    )


def with_one_axis(change):
    """Return a case: what the functions make of changed arguments with one leading axis."""

    def ask(student, rng):
        given = arguments(rng, 4).items()
        return {
            name: getattr(student, name)(
                *(change(each) if torch.is_tensor(each) else each for each in inputs)
            )
            for name, inputs in given
        }

    return ask


tensors(
    "One leading axis in bfloat16.",
    with_one_axis(torch.Tensor.bfloat16),
    about="dtype",
    within=(0.1, 0.1),
    hidden=True,
)
tensors(
    "Transposed views with one leading axis.",
    with_one_axis(lambda each: turned(each)(None)),
    about="views",
    hidden=True,
)
tensors(
    "A leading axis of one.",
    lambda student, rng: results(student, arguments(rng, 1)),
    about="single",
    hidden=True,
)
for name, inputs in {
    "tempered_softmax": (drawn(2, 3, 5), 0.5),
    "entropy": (weights_of(2, 3, 5),),
    "variance_of_products": vectors(2, 3, 4, 5),
    "scale": (drawn(2, 3, 5), 7),
}.items():
    tensors(
        f"Which numbers of more axes are others after `{name}`.",
        changed(name, *inputs),
        hidden=True,
    )
for name, inputs in {
    "tempered_softmax": (drawn(3, 5), 0.5),
    "entropy": (weights_of(3, 5),),
    "variance_of_products": vectors(4, 5),
    "scale": (drawn(3, 5), 7),
}.items():
    tensors(f"Which numbers are others after `{name}`.", changed(name, *inputs))


@tensors(tells=False, hidden=True)
def growth(student, rng):
    """The work of a call does not grow with the size of any axis."""
    grown = {
        "rows": {"batch": (9, 19)},
        "queries": {"n_queries": (11, 23)},
        "keys": {"n_keys": (17, 36)},
        "products": {"n": (19, 40)},
        "features": {"d_key": (15, 31)},
    }
    for name in arguments(rng, 2, 3):

        def called(batch=2, n_queries=3, name=name, **sizes):
            call, leading = getattr(student, name), ((batch, n_queries), (n_queries,))
            given = [arguments(rng, *each, **sizes)[name] for each in leading]
            return lambda: [call(*each) for each in given]

        named = {f"{axis} (`{name}`)": sizes for axis, sizes in grown.items()}
        assert_vectorised(student, called, named)
