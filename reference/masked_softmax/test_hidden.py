"""The checks of masked softmax and their cases."""

import functools

import pytest
import torch

from grader.authors import (
    Check,
    assert_vectorised,
    assert_written_by_hand,
    changed,
    drawn,
    finite_too,
    gradient,
    gradients,
    output,
    refused,
    turned,
    works,
    works_as_well,
    works_too,
    written,
)

pytestmark = pytest.mark.needs("test_written_by_hand")

AXES = ("batch item", "query", "key")
B, Q, K = 4, 3, 5  # batch items, queries, keys
SOFTMAX = "masked_softmax"
LENS = torch.tensor([2, 4, 1, 3])
PER_QUERY = torch.tensor([[2, 4, 3], [5, 1, 2]])


def weights(*shape, lens=None):
    """Return a case: the weights of random scores with these lengths."""
    return output(SOFTMAX, drawn(*shape), None if lens is None else torch.tensor(lens))


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """The masking is written by hand, without a torch function that does all of it."""
    X = rng.randn(2, Q, K)
    some, all_ = (functools.partial(student.masked_softmax, X, each) for each in (LENS[:2], None))
    assert_written_by_hand(student, some, all_)


test_no_lengths = Check(
    "Without lengths, every key is valid: the result is the plain softmax over the keys.",
    points=1,
    about="no lengths",
)
test_no_lengths.case("No lengths at all.", weights(B, Q, K))
for shape in ((3, 7, 4), (1, 1, 1), (2, 1, 5)):
    test_no_lengths.case(f"X of shape {shape}.", weights(*shape), hidden=True)


test_a_length_for_each_batch_item = Check(
    "One length per batch item, from 1 to n_keys, masks the same keys for all its queries.",
    points=2,
)
values = test_a_length_for_each_batch_item.case
values("A length for each batch item.", output(SOFTMAX, drawn(B, Q, K), LENS))
square = weights(4, 4, 4, lens=[2, 3, 1, 4])
values("As many batch items, queries and keys.", square, about="square")
values("More queries.", weights(2, 6, 4, lens=[3, 2]), hidden=True)
for sentence, shape, lens in (
    ("One query.", (2, 1, 6), [2, 4]),
    ("One batch item.", (1, 4, 6), [3]),
    ("One key.", (3, 4, 1), [1, 1, 1]),
):
    values(sentence, weights(*shape, lens=lens), about="single")


test_a_length_for_each_query = Check(
    "With one length per query, each row is masked as by that length for its batch item.",
    points=2,
    about="lengths per query",
)
per_query = test_a_length_for_each_query.case
per_query("A length for each query.", output(SOFTMAX, drawn(2, Q, K), PER_QUERY))
square = weights(3, 3, 3, lens=[[1, 3, 2], [2, 1, 1], [3, 2, 1]])
per_query("A length for each query, with as many queries as keys and batch items.", square)
more = weights(2, 5, 3, lens=[[1, 3, 2, 2, 1], [3, 1, 2, 3, 1]])
per_query("A length for each query, with more queries than keys.", more)
per_query("A length for the only query.", weights(3, 1, 4, lens=[[2], [4], [1]]), hidden=True)


test_length_zero = Check(
    "A row with nothing to attend to gets zeros, not nan and not uniform weights.",
    points=2,
    about="length 0",
)
empty = test_length_zero.case
empty("Some queries with length 0.", weights(2, Q, K, lens=[[0, 2, 1], [3, 0, 0]]))
empty("A batch item with length 0.", weights(B, Q, K, lens=[0, 2, 1, K]))
empty("All items with length 0.", weights(3, Q, K, lens=[0] * 3), hidden=True)
empty("Queries that all have length 0.", weights(2, 7, K, lens=[[0] * 7] * 2))


@empty
def undefined(student, rng):
    """Which weights are nan where some queries have length 0."""
    lens = torch.tensor([[0, 2, 1, 0], [3, 0, 0, 5]])
    return student.masked_softmax(rng.randn(2, 4, K), lens).isnan()


test_masked_weights_are_exactly_zero = Check(
    "A padded key has a weight of exactly 0, not just a small one."
)


@test_masked_weights_are_exactly_zero.case
def exact_zeros(student, rng):
    """Which weights are exactly 0."""
    return student.masked_softmax(rng.randn(B, Q, K), LENS) == 0


@test_masked_weights_are_exactly_zero.case(hidden=True)
def exact_zeros_per_query(student, rng):
    """Which weights are exactly 0 with a length for each query, and scores ten times as large."""
    return student.masked_softmax(10 * rng.randn(2, Q, K), PER_QUERY) == 0


test_scores_of_any_size = Check(
    "A number added to all scores of a row changes nothing, nor does any score of a padded key.",
    points=1,
    about="extreme scores",
)
scores = test_scores_of_any_size.case
PADDED = torch.arange(K) >= LENS.view(B, 1, 1)


def whole(rng):
    """Return whole numbers, whose sums are exact in every floating type that code computes in."""
    X = rng.randint(-3, 4, B, Q, K).double()
    X[..., 0] = 4  # the one largest of its row: rounded, a logarithm of ties' sum is lost
    return X


FAR = torch.tensor([1e4, 0.0, -1e7]).view(1, Q, 1)
scores("Scores of ten thousand.", output(SOFTMAX, drawn(B, Q, K, times=1e4), LENS))
falling = output(SOFTMAX, lambda rng: rng.randn(B, Q, K) - 4.0 * torch.arange(K), None)
scores("Scores that fall by 4 from key to key.", falling, within=(1e-2, 1e-12))
scores("Scores around -30.", output(SOFTMAX, lambda rng: rng.randn(B, Q, K) - 30, LENS))
scores("Rows from -1e7 to 1e4.", output(SOFTMAX, lambda rng: whole(rng) + FAR, LENS), hidden=True)
scores(
    "Rows from -1e7 to 1e4, with lengths per query.",
    output(SOFTMAX, lambda rng: whole(rng)[:2] + FAR, PER_QUERY),
    hidden=True,
)
ask = output(SOFTMAX, lambda rng: whole(rng) + FAR, None)
scores("Rows from -1e7 to 1e4, without lengths.", ask, hidden=True)
for size in (1e12, -1e12):
    # The tolerance is what a logarithm of their sum rounds away.
    scores(
        f"Scores of {size:g}.",
        output(SOFTMAX, torch.full((B, Q, K), size, dtype=torch.float64), LENS),
        within=(1e-3, 1e-12),
    )
for size in (1e3, 1e12, -1e12):
    ask = output(SOFTMAX, lambda rng, size=size: whole(rng).masked_fill(PADDED, size), LENS)
    scores(f"A score of {size:g} at each padded key.", ask)


@scores
def some_zero(student, rng):
    """Scores of which some are 0."""
    X = rng.randint(0, 2, B, Q, K).double() - 0.5
    X[..., :2] = 0.0
    return student.masked_softmax(X, LENS)


@scores
def too_large(student, rng):
    """Which rows get finite weights if their scores rise from 20 to 20,000."""
    levels = torch.logspace(1.3, 4.3, 24, dtype=torch.float64).view(6, 4, 1)
    lens = torch.tensor([2, 4, 1, 3, 2, K])
    return student.masked_softmax(rng.randn(6, 4, K) + levels, lens)[..., 0].isfinite()


@scores
def finite_beside_padding(student, rng):
    """Which weights are finite where padded keys have a score of ten thousand."""
    X, call = rng.randn(B, Q, K), student.masked_softmax
    return finite_too(call(X, LENS), call(X.masked_fill(PADDED, 1e4), LENS))


THOUSANDS = 1e3 * torch.arange(6.0).view(6, 1)
apart = output(SOFTMAX, lambda rng: rng.randn(B, 6, K) * 100 + THOUSANDS, None)
sentence = "Scores of a hundred, without lengths, in rows that lie a thousand apart."
scores(sentence, apart, decides=False)
low = output(SOFTMAX, lambda rng: rng.randn(B, Q, K) - 1e7, LENS)
scores("Scores around -1e7.", low, decides=False)
apart = output(SOFTMAX, lambda rng: rng.randn(B, Q, K) + THOUSANDS[:Q], LENS)
scores("Rows whose scores lie a thousand apart.", apart, decides=False)


test_gradients = Check(
    "Gradients reach X, are those of what the code computes, and stay finite at length 0.",
    about="gradient",
)
slopes = test_gradients.case
for sentence, about, lens in (
    ("The gradient of X with a length for each batch item.", "gradient", [2, 4]),
    ("The gradient of X where some rows have length 0.", "length 0", [[0, 4, 3], [5, 1, 2]]),
    ("The gradient of X where all rows have length 0.", "length 0", [0, 0]),
):
    slopes(sentence, gradient(SOFTMAX, drawn(2, Q, K), torch.tensor(lens)), about=about)
slopes("The gradient of X without lengths.", gradient(SOFTMAX, drawn(2, Q, K), None))
ask = gradient(SOFTMAX, drawn(2, Q, K), PER_QUERY)
slopes("The gradient with a length for each query.", ask, hidden=True)
for with_, lens in (("with lengths per query", PER_QUERY), ("without lengths", None)):
    slopes(
        f"The gradient of scores around ten thousand, {with_}.",
        gradient(SOFTMAX, lambda rng: whole(rng)[:2] + 1e4, lens),
        hidden=True,
    )


def finite_gradients(student, X, other, lens, lens_of_other):
    """Return which numbers of other gradients are finite, as those of ordinary ones are."""
    ordinary = gradients(student.masked_softmax, X, lens)
    found = gradients(student.masked_softmax, other, lens_of_other)
    return {
        name: finite_too(ordinary[name], value)
        for name, value in found.items()
        if torch.is_tensor(value)
    }


@test_gradients.case(about="length 0")
def finite_slopes(student, rng):
    """Which numbers of the gradient of X are finite where some rows have length 0."""
    X, lens = rng.randn(2, 4, K), torch.tensor([[1, 4, 3, 2], [5, 2, 2, 1]])
    empty = lens * torch.tensor([[0, 1, 1, 0], [1, 0, 1, 1]])
    return finite_gradients(student, X, X, lens, empty)


@slopes
def finite_slopes_beside_padding(student, rng):
    """Which numbers of the gradient of X are finite where padded keys have a large score."""
    X, lens = rng.randn(2, 4, K), torch.tensor([2, 4])
    large = X.clone()
    large[:, :, -1] = 1e4
    return finite_gradients(student, X, large, lens, lens)


test_lengths_as_floats = Check(
    "Lengths may be floats: key j is valid if j is less than the length, which may be 2.5.",
    about="dtype",
)
floats = test_lengths_as_floats.case
floats("Lengths as floats.", weights(3, Q, K, lens=[2.0, 4.0, 3.0]))
floats("Lengths that are not whole.", weights(3, Q, K, lens=[2.5, 0.5, 3.1]))
some = weights(2, Q, K, lens=[[2.5, 1.0, 0.3], [4.7, 5.0, 1.2]])
floats("Lengths per query that are not whole.", some)
double = output(SOFTMAX, drawn(1, Q, K), torch.tensor([[2.0, 3.9, 3.5]]).double())
floats("Lengths per query in float64.", double, hidden=True)


test_views_and_arguments = Check(
    "X and valid_lens may be views, such as a transposed X, and neither is modified.",
    about="views",
)
views = test_views_and_arguments.case
views("X is a transposed view.", output(SOFTMAX, turned(drawn(2, Q, K)), torch.tensor([2, 4])))
swapped = output(SOFTMAX, turned(drawn(2, Q, K), 0, 1), PER_QUERY)
views("Other axes of X are swapped.", swapped, hidden=True)
views("No lengths, and X is a view.", output(SOFTMAX, turned(drawn(2, Q, K)), None), hidden=True)
views("valid_lens is a view.", output(SOFTMAX, drawn(2, Q, K), turned(PER_QUERY)))


@views
def transposed_works(student, rng):
    """Whether a transposed X works."""
    X, lens = rng.randn(2, K, Q).transpose(1, 2), torch.tensor([2, 4])
    call = student.masked_softmax
    return works_too(lambda: call(X.contiguous(), lens), lambda: call(X, lens))


for sentence, lens in (
    ("with a length for each batch item", torch.tensor([1, 2])),
    ("with a length for each query", PER_QUERY),
    ("without lengths", None),
    ("with lengths of 0", torch.tensor([[0, 2, 1], [3, 0, 0]])),
):
    ask = changed(SOFTMAX, drawn(2, Q, K), lens)
    views(f"Which scores or lengths are others after a call {sentence}.", ask, about="writes")


@test_views_and_arguments.case(about="writes")
def fractions_afterwards(student, rng):
    """Which lengths of 2.5 are others after a call."""
    X, lens = rng.randn(2, 6, K), torch.full((2, 6), 2.5)
    if not works(lambda: student.masked_softmax(X, lens)):  # as another check will say
        return lens != 2.5
    return written(student, student.masked_softmax, X, lens)[1] != 2.5


test_dtypes = Check("The weights have the dtype of X, also in half precision.", about="dtype")
dtypes = test_dtypes.case
for name, dtype in (("float32", torch.float32), ("bfloat16", torch.bfloat16)):
    for with_, lens in ((", with lengths", torch.tensor([2, 4])), (", without lengths", None)):
        X = drawn(2, Q, K, dtype=dtype)
        dtypes(f"X in {name}{with_}.", output(SOFTMAX, X, lens), within=(6e-2, 5e-2))
dtypes(
    "X in bfloat16, with lengths per query.",
    output(SOFTMAX, drawn(2, Q, K, dtype=torch.bfloat16), PER_QUERY),
    within=(6e-2, 5e-2),
    hidden=True,
)
for with_, lens in (("lengths", LENS[:2]), ("lengths per query", PER_QUERY), ("no lengths", None)):
    dtypes(
        f"Hundreds in bfloat16, with {with_}.",
        output(SOFTMAX, lambda rng: (100 * whole(rng)[:2]).bfloat16(), lens),
        within=(6e-2, 5e-2),
        hidden=True,
    )
dtypes("X in float64.", output(SOFTMAX, drawn(2, Q, K), PER_QUERY), hidden=True)


@dtypes
def more_keys_than_bfloat16_counts(student, rng):
    """Which of 300 keys get a weight, for X in bfloat16."""
    X = rng.randn(2, 1, 300, dtype=torch.bfloat16)
    return student.masked_softmax(X, torch.tensor([257, 299])) != 0


test_lengths_that_do_not_fit = Check(
    "A length greater than n_keys, or a valid_lens of any other shape, raises ValueError.",
    about="refusals",
)
misuses = test_lengths_that_do_not_fit.case
for sentence, lens in (
    ("A length greater than n_keys.", torch.tensor([2, K + 1])),
    ("A length greater than n_keys for one query.", torch.tensor([[2, 4, 6], [5, 1, 2]])),
    ("A length of half a key more than there are.", torch.tensor([2.0, K + 0.5])),
    ("As many lengths as queries, but not as batch items.", torch.tensor([2, 3, 4])),
    ("One length for each batch item and key.", torch.ones(2, K)),
    ("Lengths of shape (batch, 1).", torch.ones(2, 1)),
    ("A single length.", torch.tensor([2])),
    ("Lengths of shape (1, n_queries).", torch.ones(1, Q)),
    ("Lengths of shape (n_queries, batch).", torch.ones(Q, 2)),
    ("Lengths of shape (batch, n_queries, 1).", torch.ones(2, Q, 1)),
):
    misuses(sentence, refused(SOFTMAX, drawn(2, Q, K), lens))
many = refused(SOFTMAX, drawn(2, Q, K), torch.ones(2, Q, K))
misuses("A length for each score.", many, hidden=True)
misuses("A length for every key works.", weights(2, Q, K, lens=[2, K]), about="values")
X = drawn(2, Q, K)
ask = works_as_well(SOFTMAX, [X, torch.tensor([2, K - 1])], [X, torch.tensor([2, K])])
misuses("Whether a length for every key works.", ask, about="values")


test_no_python_loops = Check("No Python loop runs over batch, queries or keys.")


@test_no_python_loops.case(tells=False, hidden=True)
def growth(student, rng):
    """The work of a call does not grow with the number of batch items, queries or keys."""
    for kind in range(3):

        def called(batch=2, n_queries=3, n_keys=5, kind=kind):
            X, lens = rng.randn(batch, n_queries, n_keys), rng.randint(2, n_keys, batch, n_queries)
            chosen = (lens[:, 0], lens, None)[kind]
            return lambda: student.masked_softmax(X, chosen)

        grown = {"batch items": {"batch": (105, 211)}, "queries": {"n_queries": (106, 213)}}
        assert_vectorised(student, called, {**grown, "keys": {"n_keys": (109, 219)}})
