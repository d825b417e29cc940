"""The checks of additive attention and their cases."""

import pytest
import torch

from grader.attention_cases import kept_weights, pair_dropout_cases, weights_kept
from grader.authors import (
    Check,
    assert_vectorised,
    assert_written_by_hand,
    built,
    changed,
    drawn,
    gradient,
    gradients,
    often,
    only_dtype,
    output,
    parameters,
    scaled,
    turned,
    works,
    works_as_well,
)

pytestmark = pytest.mark.needs("test_written_by_hand")

AXES = ("batch item", "query", "feature")  # of an output, in the singular
CLASS, BFLOAT16 = "AdditiveAttention", torch.bfloat16
LENS = torch.tensor([4, 2])
LAYERS = ("W_q", "W_k", "w_v")


def attention(dropout=0.0, *, sizes=(4, 3, 7), **options):
    """Return what makes a module for queries of 4, keys of 3 and 7 hidden numbers."""
    return built(CLASS, *sizes, dropout, layers=LAYERS, **options)


def inputs(batch=2, n_queries=5, n_keys=6, d_value=8, **how):
    """Return recipes of queries, keys and values, whose sizes all differ."""
    shapes = (batch, n_queries, 4), (batch, n_keys, 3), (batch, n_keys, d_value)
    return [drawn(*shape, **how) for shape in shapes]


def draw(rng, **sizes):
    """Return queries, keys and values."""
    return [recipe(rng) for recipe in inputs(**sizes)]


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """The work is done by your own code."""
    make = lambda: student.AdditiveAttention(4, 3, 7, 0.0).double()  # noqa: E731
    assert_written_by_hand(student, lambda: make()(*draw(rng)))


test_formula = Check(
    "Each pair is scored by w_v . tanh(W_q q + W_k k), and the output is the weighted mean.",
    points=4,
    about="no lengths",
)
formula = test_formula.case
formula("Without lengths.", output(attention(), *inputs()))
square = output(attention(sizes=(4, 4, 4)), *[drawn(4, 4, 4)] * 3)
formula("As many queries as keys, all of the same size.", square, about="square")
longer = drawn(3, 4, 2), drawn(3, 7, 9), drawn(3, 7, 5)
formula(
    "Longer keys than queries, in training with a dropout of 0.",
    output(attention(sizes=(2, 9, 5), training=True), *longer),
    hidden=True,
)
formula("The shapes of the parameters.", parameters(CLASS, 4, 3, 7, 0.0), about="layers")
large = output(scaled(attention(), w_v=1e4), *inputs())
formula("A w_v that is multiplied by 1e4.", large, about="extreme scores")
for lens in ([4, 2], [[6, 2, 3, 1, 4], [2, 5, 3, 6, 1]]):
    formula(
        f"A large w_v, lengths {lens}.",
        output(scaled(attention(), w_v=1e4), *inputs(), torch.tensor(lens)),
        about="extreme scores",
        hidden=True,
    )


@formula(about="layers", decides=False)
def sizes_exchanged(student, rng):
    """Whether a module for queries of 4 and keys of 3 numbers takes those of 3 and 4."""
    queries, keys, values = draw(rng)
    return often(works(lambda: attention()(student, rng)(keys, queries, values[:, :5])))


test_lengths = Check(
    "A query attends to as many keys as its length says, and to none with length 0.", points=2
)
lengths = test_lengths.case
lengths("A length for each batch item.", output(attention(), *inputs(), LENS))
PER_QUERY = torch.tensor([[6, 2, 3, 1, 4, 5], [2, 5, 3, 6, 1, 4]])
ask = output(attention(), *inputs(n_queries=6), PER_QUERY)
lengths("A length for each of as many queries as keys.", ask, about="lengths per query")
lengths(
    "A length for each query of three batch items.",
    output(attention(), *inputs(3, 2, 4), torch.tensor([[1, 4], [3, 2], [2, 1]])),
    about="lengths per query",
    hidden=True,
)
lengths("Lengths that are not whole.", output(attention(), *inputs(), LENS + 0.5), about="dtype")
ask = output(attention(), *inputs(n_keys=1), torch.tensor([0, 1]))
lengths("One key, which one of two batch items may not attend to.", ask, about="length 0")


@lengths(about="length 0")
def empty(student, rng):
    """Some queries with length 0."""
    lens = torch.tensor([[6, 0, 3, 1, 4], [0, 0, 3, 6, 1]])
    found = attention()(student, rng)(*draw(rng), lens)
    return {"output": found, "finite": found.isfinite()}


test_attention_weights = Check(
    "After a call, attention_weights holds the weights as they are before dropout.",
    about="training",
)
keeping = test_attention_weights.case
keeping("The attention_weights of the second call in training.", weights_kept(attention, inputs))
keeping(
    "The attention_weights of one batch item.", kept_weights(attention(), inputs(1)), about="single"
)
for size in ("n_keys", "n_queries"):
    one = kept_weights(attention(), inputs(**{size: 1}))
    keeping(f"The attention_weights where {size} is 1.", one, about="single", hidden=True)
keeping(
    "The attention_weights of a batch item with length 0.",
    kept_weights(attention(), [*inputs(3, 4), torch.tensor([0, 5, 1])]),
    about="length 0",
    hidden=True,
)


test_dropout = Check(
    "In training mode, weights are dropped, each on its own; the others are divided by 1 - p.",
    points=2,
    about="training",
)
pair_dropout_cases(test_dropout, attention, inputs)
nothing = output(attention(1.0, training=True), *inputs(3, 2))
test_dropout.case("A dropout of 1 in training.", nothing, hidden=True)


test_gradients = Check(
    "Gradients reach the queries, the keys, the values and the layers, with length 0 too.",
    about="gradient",
)
slopes = test_gradients.case
slopes("The gradients of the inputs and of the layers.", gradient(attention(), *inputs()))
slopes(
    "The gradients with a length for each query.",
    gradient(attention(), *inputs(n_queries=6), PER_QUERY),
    hidden=True,
)
slopes("The gradients at other sizes.", gradient(attention(), *inputs(3, 4, 7, 2)), hidden=True)


@slopes(about="length 0")
def empty_slopes(student, rng):
    """Which gradients are finite if all queries of a batch item have length 0."""
    module, lens = attention()(student, rng), torch.tensor([0, 3])
    found = gradients(lambda *given: module(*given, lens), *draw(rng))
    return {name: value.isfinite() for name, value in found.items() if torch.is_tensor(value)}


test_any_input = Check(
    "Sizes of one, transposed views and other dtypes work, and no input is modified.",
    about="views",
)
anything = test_any_input.case
for size in ("n_queries", "n_keys", "batch"):
    anything(f"{size} is 1.", output(attention(), *inputs(**{size: 1})), about="single")
one = output(attention(sizes=(4, 3, 1)), *inputs())
anything("A single hidden number.", one, about="single")
ones = output(attention(sizes=(1, 1, 1)), *[drawn(2, 1, 1)] * 3)
anything("Sizes of one.", ones, about="single")
anything("Transposed views.", output(attention(), *map(turned, inputs())))
lens = turned(torch.tensor([[6, 3, 4, 1, 2], [2, 1, 5, 6, 3]]))
anything("Lengths that are a transposed view.", output(attention(), *inputs(), lens))
anything(
    "Lengths and transposed views.",
    output(attention(), *map(turned, inputs(3)), torch.tensor([4, 2, 5])),
    hidden=True,
)
ask = output(attention(dtype=BFLOAT16), *inputs(dtype=BFLOAT16), LENS)
anything("Inputs in bfloat16.", ask, about="dtype", within=(6e-2, 5e-2))
PER_FIVE = torch.tensor([[6, 2, 3, 1, 4], [2, 5, 3, 6, 1]])
for with_, lens in (("without lengths", None), ("with lengths per query", PER_FIVE)):
    anything(
        f"bfloat16 {with_}.",
        output(attention(dtype=BFLOAT16), *inputs(dtype=BFLOAT16), lens),
        about="dtype",
        within=(6e-2, 5e-2),
        hidden=True,
    )
    anything(
        f"What is changed {with_}.",
        changed(attention(), *inputs(), lens),
        about="writes",
        hidden=True,
    )
anything(
    "One batch item with a length for each query.",
    output(attention(), *inputs(1), PER_FIVE[:1]),
    about="single",
    hidden=True,
)
new = lambda student, rng: student.AdditiveAttention(4, 3, 7, 0.0)  # noqa: E731
ask = only_dtype(new, *inputs(dtype=torch.float32))
anything("The dtype of a new module in float32.", ask, about="dtype")
for lens in (LENS, torch.tensor([0, 3])):
    ask = changed(attention(), *inputs(), lens)
    anything(f"What is changed with lengths {lens.tolist()}.", ask, about="writes")


one = works_as_well(attention(), inputs(), inputs(n_keys=1))
anything("Whether one key works.", one, about="single")


test_no_loop = Check("No Python loop runs over batch, queries or keys.")


@test_no_loop.case
def larger(student, rng):
    """Which numbers of the output for many queries and keys are finite."""
    return attention()(student, rng)(*draw(rng, n_queries=15, n_keys=16)).isfinite()


@test_no_loop.case(tells=False, hidden=True)
def growth(student, rng):
    """The work of a call does not grow with the number of batch items, queries or keys."""

    def called(**sizes):
        given, module = draw(rng, **sizes), student.AdditiveAttention(4, 3, 7, 0.0).double()
        lens = torch.full(given[0].shape[:2], 2)
        return lambda: [module(*given, each) for each in (None, lens[:, 0], lens)]

    grown = {"batch items": {"batch": (9, 19)}, "queries": {"n_queries": (15, 31)}}
    assert_vectorised(student, called, {**grown, "keys": {"n_keys": (16, 33)}})
