"""The checks of bilinear attention and their cases."""

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
    other_weights,
    output,
    scaled,
    turned,
)

pytestmark = pytest.mark.needs("test_written_by_hand")

AXES = ("batch item", "query", "feature")  # of an output, in the singular
CLASS, BFLOAT16 = "BilinearAttention", torch.bfloat16
LENS = torch.tensor([4, 2])


def attention(dropout=0.0, *, sizes=(4, 3), **options):
    """Return what makes a module for queries of 4 and keys of 3 numbers."""
    return built(CLASS, *sizes, dropout, **options)


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
    make = lambda: student.BilinearAttention(4, 3, 0.0).double()  # noqa: E731
    assert_written_by_hand(student, lambda: make()(*draw(rng)))


test_formula = Check(
    "Each pair is scored by q . M k / sqrt(d_key), and the output is the weighted mean.",
    points=3,
    about="no lengths",
)
formula = test_formula.case
formula("Without lengths.", output(attention(), *inputs()))
square = output(attention(sizes=(4, 4)), *[drawn(4, 4, 4)] * 3)
formula("As many queries as keys, all of the same size.", square, about="square")
longer = output(attention(sizes=(2, 9)), drawn(3, 4, 2), drawn(3, 7, 9), drawn(3, 7, 5))
formula("Longer keys than queries.", longer, hidden=True)
formula("After a call with another M.", other_weights(attention(), *inputs()), about="values")
large = output(scaled(attention(), M=1e4), *inputs())
formula("An M that is multiplied by 1e4.", large, about="extreme scores")
for lens in ([4, 2], [[6, 2, 3, 1, 4], [2, 5, 3, 6, 1]]):
    formula(
        f"A large M, lengths {lens}.",
        output(scaled(attention(), M=1e4), *inputs(), torch.tensor(lens)),
        about="extreme scores",
        hidden=True,
    )


@formula(about="layers")
def parameters(student, rng):
    """The parameters."""
    found = {name: list(x.shape) for name, x in attention()(student, rng).named_parameters()}
    others = often(float(len(found.keys() - {"M"})))
    return {"M": often(*(float(n) for n in found.get("M", [0, 0]))), "others": others}


test_lengths = Check(
    "A query attends to as many keys as its length says, and to none with length 0.", points=2
)
lengths = test_lengths.case
lengths("A length for each batch item.", output(attention(), *inputs(), LENS))
ask = output(attention(), *inputs(n_queries=2), torch.tensor([1, 5]))
lengths("A length for each of two batch items with two queries.", ask)
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


test_dropout = Check(
    "In training mode, weights are dropped; attention_weights holds them as they are before.",
    about="training",
)
dropout = test_dropout.case
pair_dropout_cases(test_dropout, attention, inputs)
dropout("A dropout of 1 in training.", output(attention(1.0, training=True), *inputs(3, 2)))
dropout("The attention_weights of a second call in training.", weights_kept(attention, inputs))
one = kept_weights(attention(), inputs(1))
dropout("The attention_weights of one batch item.", one, about="single")
for size in ("n_keys", "n_queries"):
    one = kept_weights(attention(), inputs(**{size: 1}))
    dropout(f"The attention_weights where {size} is 1.", one, about="single", hidden=True)


test_gradients = Check(
    "Gradients reach the queries, the keys, the values and M, with length 0 too.",
    about="gradient",
)
slopes = test_gradients.case
slopes("The gradients of the inputs and of M.", gradient(attention(), *inputs()))
slopes(
    "The gradients with a length for each query.",
    gradient(attention(), *inputs(2, 2), torch.tensor([[1, 6], [4, 2]])),
    hidden=True,
)
slopes("The gradients at other sizes.", gradient(attention(), *inputs(3, 4, 7, 2)), hidden=True)
ask = gradient(attention(), *inputs(), torch.tensor([3, 5]))
slopes("The gradients with lengths.", ask)


@slopes(about="length 0")
def empty_slopes(student, rng):
    """Which gradients are finite if all queries of a batch item have length 0."""
    module, lens = attention()(student, rng), torch.tensor([0, 3])
    found = gradients(lambda *given: module(*given, lens), *draw(rng))
    return {name: value.isfinite() for name, value in found.items() if torch.is_tensor(value)}


test_any_input = Check(
    "Sizes of one, views and other dtypes work; no loop is needed, and no input is modified."
)
anything = test_any_input.case
for size in ("n_queries", "n_keys", "batch"):
    anything(f"{size} is 1.", output(attention(), *inputs(**{size: 1})), about="single")
small = attention(sizes=(1, 1), dtype=torch.float32, training=True)
ones = output(small, *[drawn(2, 1, 1, dtype=torch.float32)] * 3)
anything("Sizes of one, in training with a dropout of 0.", ones, about="single")
anything("Transposed views.", output(attention(), *map(turned, inputs())), about="views")
anything(
    "Lengths and transposed views.",
    output(attention(), *map(turned, inputs(3)), torch.tensor([4, 2, 5])),
    about="views",
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
anything(
    "Transposed views with lengths per query.",
    output(attention(), *map(turned, inputs()), PER_FIVE),
    about="views",
    hidden=True,
)
new = lambda student, rng: student.BilinearAttention(4, 3, 0.0)  # noqa: E731
ask = only_dtype(new, *inputs(dtype=torch.float32))
anything("The dtype of a new module in float32.", ask, about="dtype")
for lens in (LENS, torch.tensor([0, 3])):
    ask = changed(attention(), *inputs(), lens)
    anything(f"What is changed with lengths {lens.tolist()}.", ask, about="writes")


@anything(tells=False, hidden=True)
def growth(student, rng):
    """The work of a call does not grow with the number of batch items, queries or keys."""

    def called(**sizes):
        given, module = draw(rng, **sizes), student.BilinearAttention(4, 3, 0.0).double()
        lens = torch.full(given[0].shape[:2], 2)
        return lambda: [module(*given, each) for each in (None, lens[:, 0], lens)]

    grown = {"batch items": {"batch": (9, 19)}, "queries": {"n_queries": (15, 31)}}
    assert_vectorised(student, called, {**grown, "keys": {"n_keys": (16, 33)}})
