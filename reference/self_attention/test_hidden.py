"""The checks of self-attention and their cases."""

import contextlib
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
    expect,
    gradient,
    often,
    output,
    turned,
    watched,
)

pytestmark = pytest.mark.needs("test_written_by_hand")

AXES = ("batch item", "query", "column")
N, D, Q, K = 5, 4, 3, 6  # tokens, features, queries, keys
LOOPS = Aspect("loops", "what `scores_by_loops` returns")
PRODUCT = Aspect("product", "what `scores_by_product` returns")
NORMALISE = Aspect("normalise", "what `normalise` returns")
NAIVE = Aspect("naive", "what `softmax_naive` returns")
STABLE = Aspect("stable", "what `softmax_stable` returns")
ON_TOKENS = ("scores_by_product", "context_vectors")
ON_SCORES = ("normalise", "softmax_naive", "softmax_stable")
EVERY = ("scores_by_loops", *ON_TOKENS, *ON_SCORES)


def tokens(*leading, n=N, d=D, dtype=torch.float64):
    """Return the recipe of tokens."""
    return drawn(*leading, n, d, dtype=dtype, times=0.7)


def table(*leading, q=Q, k=K, dtype=torch.float64):
    """Return the recipe of scores, of which no row sums to about 0."""
    return lambda rng: (drawn(*leading, q, k)(rng) * 0.3 + 1).to(dtype)


def argument(name, *leading, **options):
    """Return the recipe of what the function `name` takes."""
    return (table if name in ON_SCORES else tokens)(*leading, **options)


def whole(size=1.0, rows=0.0):
    """Return the recipe of scores that are whole numbers, which are exact in every dtype."""
    return lambda rng: rng.permutation(18).view(3, 6).double() * size + rows


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """The softmax is written by hand, without a torch function that does all of it."""
    calls = [functools.partial(getattr(student, name), argument(name)(rng)) for name in EVERY]
    assert_written_by_hand(student, *calls)
    for call in calls:
        with contextlib.suppress(Exception), watched(student) as seen:
            call()
        found = [name for name in seen.counts if "softmax" in name or "logsumexp" in name]
        says = f"{', '.join(found[:1])} does the work that this exercise asks you to write"
        expect(not found, says)


test_scores_by_loops = Check(
    "scores_by_loops gives the dot products of all pairs, in loops over the tokens.", about=LOOPS
)
test_scores_by_product = Check(
    "scores_by_product gives the dot products of all pairs of tokens.", about=PRODUCT
)
for case, name in (
    (test_scores_by_loops.case, "scores_by_loops"),
    (test_scores_by_product.case, "scores_by_product"),
):
    case(f"Five tokens, {name}.", output(name, tokens()))
    case(f"More features, {name}.", output(name, tokens(n=4, d=7)))
    case(f"As many tokens as features, {name}.", output(name, tokens(n=4)))
    case(f"Three tokens of six features, {name}.", output(name, drawn(3, 6)), hidden=True)


@test_scores_by_loops.case
def one_at_a_time(student, rng):
    """Whether more operations run for more tokens."""
    counts = []
    for n_tokens in (2, 6):
        with watched(student, kernels=False) as seen:
            student.scores_by_loops(rng.randn(n_tokens, D))
        counts.append(seen.operations)
    # Loops over plain numbers are not counted; they have cut the graph, which another check asks.
    cut = not student.scores_by_loops(rng.randn(3, D).requires_grad_()).requires_grad
    return often(counts[1] > counts[0] or cut)


test_normalise = Check(
    "normalise divides each score by the sum of its row, whatever the signs are.", about=NORMALISE
)
sums = test_normalise.case


def with_sums(*sums, size=1.0):
    """Return the recipe of a table whose rows have these sums, times a size."""

    def make(rng):
        scores = rng.randn(len(sums), K)
        right = torch.tensor(sums, dtype=torch.float64).view(-1, 1)
        return (scores + (right - scores.sum(-1, keepdim=True)) / K) * size

    return make


sums("Positive scores.", output("normalise", table()))
sums("Scores of both signs.", output("normalise", with_sums(3.0, 3.0, 3.0, 3.0)))
sums("As many queries as keys.", output("normalise", table(q=4, k=4)))
sums("Scores of a millionth.", output("normalise", lambda rng: table()(rng) * 1e-6))
sums("Rows of negative sums.", output("normalise", with_sums(-3.0, 1.0, -0.5)), hidden=True)
sums("Large scores.", output("normalise", with_sums(2.0, -2.0, 4.0, -1.0, size=1e4)), hidden=True)


test_softmax = Check("softmax_naive and softmax_stable give the softmax of each row.")
for name, about in (("softmax_naive", NAIVE), ("softmax_stable", STABLE)):
    softmax = test_softmax.case
    softmax(f"Ordinary scores, {name}.", output(name, drawn(Q, K)), about=about)
    softmax(f"As many queries as keys, {name}.", output(name, drawn(4, 4)), about=about)
    tens = output(name, drawn(7, 4, times=10))
    softmax(f"Scores of tens, {name}.", tens, about=about, hidden=True)
    low = output(name, lambda rng: rng.randn(5, 3) - 20)  # exponentials of a billionth
    softmax(f"Scores around -20, {name}.", low, about=about)


test_context_vectors = Check("context_vectors gives the softmax of the scores times the inputs.")
context = test_context_vectors.case
context("Five tokens.", output("context_vectors", tokens()))
context("Three tokens of seven features.", output("context_vectors", tokens(n=3, d=7)))
context("As many tokens as features.", output("context_vectors", tokens(n=4)), about="square")
context("Six tokens of two features.", output("context_vectors", tokens(n=6, d=2)), hidden=True)


test_large_scores = Check(
    "softmax_stable and context_vectors are right for scores of any size, row by row.",
    about="extreme scores",
)
extreme = test_large_scores.case
FAR = torch.tensor([[1e4], [0.0], [-1e4]], dtype=torch.float64)
THOUSANDS = torch.tensor([[0.0], [1e3], [2e3]], dtype=torch.float64)
for sentence, scores in (
    ("Scores of ten thousand.", drawn(4, K, times=1e4)),
    ("Whole numbers around ten thousand.", whole(rows=1e4)),
    ("Whole numbers around minus ten thousand.", whole(rows=-1e4)),
    ("Rows that lie a thousand apart.", whole(rows=THOUSANDS)),
    ("Scores of a hundred million.", whole(1e7)),
):
    extreme(sentence, output("softmax_stable", scores))
extreme("Rows ten thousand apart.", output("softmax_stable", whole(rows=FAR)), hidden=True)
for name, recipe in (
    ("normalise", with_sums(2.0, -2.0, 4.0, size=1e4)),
    ("softmax_stable", whole(rows=FAR)),
):
    extreme(
        f"A batch of large numbers for `{name}`.",
        output(name, lambda rng, recipe=recipe: torch.stack([recipe(rng) for _ in range(2)])),
        hidden=True,
    )
extreme("Scores down to -1e5.", output("softmax_stable", whole(-1e4)), hidden=True)
extreme(
    "Equal scores of a hundred million in float32.",
    output("softmax_stable", torch.full((3, K), 1e8)),
    tells=False,  # a logarithm of the sum loses it, be it torch's or one's own
)
LEVELS = torch.logspace(1.3, 4.3, 24, dtype=torch.float64).view(24, 1)
LADDER = torch.tensor([0.0, 1, -1, 0.5, -0.5], dtype=torch.float64)
STEPS = 200.0 * torch.arange(24, dtype=torch.float64).view(24, 1)


@extreme
def too_large(student, rng):
    """Which rows get finite weights from `softmax_stable` at scores from 20 to 20,000."""
    return student.softmax_stable(rng.randn(24, K) + LEVELS)[:, 0].isfinite()


@extreme
def too_low(student, rng):
    """Which rows get finite weights from `softmax_stable` at scores from -20 to -20,000."""
    return student.softmax_stable(rng.randn(24, K) - LEVELS)[:, 0].isfinite()


@extreme
def apart(student, rng):
    """Which rows get finite weights from `softmax_stable` if each lies 200 above the last."""
    return student.softmax_stable(rng.randn(24, K) + STEPS)[:, 0].isfinite()


@extreme
def spread(student, rng):
    """Which weights from `softmax_stable` are finite as the scores in a row spread."""
    scores = LEVELS * LADDER * (1 + 0.01 * rng.rand(24, 1))  # (24, n_keys)
    return student.softmax_stable(scores).isfinite()


def hundreds(rng):
    """Return tokens of a few hundred, whose scores are exact."""
    return (rng.permutation(20).view(5, 4).double() - 9) * 30


extreme(
    "The context vectors of two items of a few hundred.",
    output("context_vectors", lambda rng: torch.stack([hundreds(rng), hundreds(rng)])),
    hidden=True,
)
extreme("The context vectors of inputs of a few hundred.", output("context_vectors", hundreds))


@extreme
def finite_context(student, rng):
    """Which context vectors are finite for inputs of a few hundred."""
    return student.context_vectors(hundreds(rng)).isfinite()


test_any_size = Check(
    "There may be any leading axes, and one token, query, key or feature.", about="leading axes"
)
sizes = test_any_size.case
for name in (*ON_TOKENS, *ON_SCORES):
    sizes(f"One leading axis for `{name}`.", output(name, argument(name, 2)))
    sizes(f"Two leading axes for `{name}`.", output(name, argument(name, 2, 3)))
    sizes(f"Seven and two items for `{name}`.", output(name, argument(name, 7, 2)), hidden=True)
    sizes(f"Three leading axes for `{name}`.", output(name, argument(name, 2, 1, 3)), hidden=True)
    sizes(f"One batch item for `{name}`.", output(name, argument(name, 1)), about="single")
for name in ON_TOKENS:
    sizes(f"As many items as tokens for `{name}`.", output(name, tokens(4, n=4)))
for name, options in (
    *((name, {"n": 1, "d": 12}) for name in ("scores_by_loops", *ON_TOKENS)),
    *((name, {"n": 12, "d": 1}) for name in ("scores_by_loops", *ON_TOKENS)),
    *((name, {"q": 1, "k": 12}) for name in ON_SCORES),
    *((name, {"q": 12, "k": 1}) for name in ON_SCORES),
):
    shown = " and ".join(f"{size} {axis}" for axis, size in options.items())
    sizes(
        f"Sizes of {shown} for `{name}`.", output(name, argument(name, **options)), about="single"
    )
    if name != "scores_by_loops":
        ask = output(name, argument(name, 3, **options))
        sizes(f"Sizes of {shown} in three items for `{name}`.", ask, about="single")


test_gradients = Check(
    "Gradients reach the argument of every function, and are the slopes of what it returns.",
    about="gradient",
)
for name in EVERY:
    slopes = test_gradients.case
    slopes(f"The gradient of the argument of `{name}`.", gradient(name, argument(name)))
    if name != "scores_by_loops":
        ask = gradient(name, argument(name, 2))
        slopes(f"The gradient with a leading axis of `{name}`.", ask, hidden=True)


test_argument = Check(
    "The argument may be a view and of any dtype, is not modified, and decides the dtype.",
    about="dtype",
)
given = test_argument.case
for name in EVERY:
    x = argument(name)
    given(f"A transposed view for `{name}`.", output(name, turned(x)), about="views")
    given(f"Others after a call of `{name}`.", changed(name, x), about="writes")
    for dtype in (torch.float32, torch.bfloat16):
        ask = output(name, argument(name, dtype=dtype))
        given(f"{dtype} for `{name}`.".replace("torch.", ""), ask, within=(0.05, 0.05))
    if name == "scores_by_loops":
        continue
    swapped = output(name, turned(argument(name, 3, 2), 0, 1))
    given(f"Leading axes swapped for `{name}`.", swapped, about="views", hidden=True)
    given(
        f"A batch in bfloat16 for `{name}`.",
        output(name, argument(name, 2, dtype=torch.bfloat16)),
        within=(0.05, 0.05),
        hidden=True,
    )
    given(f"Others of a batch after `{name}`.", changed(name, argument(name, 2)), about="writes")
for name in ON_SCORES:
    given(
        f"Others of large scores after `{name}`.",
        changed(name, lambda rng: table()(rng) * 200),
        about="writes",
    )


@given
def kept_dtypes(student, rng):
    """Whether each function keeps float64 and bfloat16."""
    kept = (torch.float64, torch.bfloat16)
    return {
        name: often(
            *(getattr(student, name)(argument(name, dtype=d)(rng)).dtype == d for d in kept)
        )
        for name in EVERY
    }


@given
def exact(student, rng):
    """Which scores are those of float64, to twelve digits."""
    inputs = tokens()(rng)
    found = student.scores_by_loops(inputs), student.scores_by_product(inputs)
    return [(each - inputs @ inputs.mT).abs() < 1e-12 for each in found]


test_no_python_loops = Check("Except in scores_by_loops, no Python loop runs over any axis.")


@test_no_python_loops.case(tells=False, hidden=True)
def growth(student, rng):
    """The work of a call does not grow with the number of batch items, rows or columns."""
    for name in (*ON_TOKENS, *ON_SCORES):

        def called(batch=2, name=name, **options):
            call, x = getattr(student, name), argument(name, batch, **options)(rng)
            return lambda: (call(x), call(x[0]))

        rows, columns = ("q", "k") if name in ON_SCORES else ("n", "d")
        grown = {"batch items": {"batch": (7, 19)}, "rows": {rows: (11, 23)}}
        assert_vectorised(student, called, {**grown, "columns": {columns: (16, 33)}})


for name in (*ON_TOKENS, *ON_SCORES):
    larger = {"q": 23, "k": 33} if name in ON_SCORES else {"n": 23, "d": 33}
    ask = output(name, argument(name, 19, **larger))
    test_no_python_loops.case(f"19 items of 23 rows for `{name}`.", ask, hidden=True)
