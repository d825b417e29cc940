"""The checks of bilinear attention and their cases."""

import pytest
import torch

from grader.authors import (
    Check,
    assert_vectorised,
    assert_written_by_hand,
    built,
    changed,
    drawn,
    drops_anew,
    factors_of_kept_weights,
    gradient,
    gradients,
    often,
    output,
    seeded,
    share_of_weights_dropped,
    turned,
    weights_dropped_together,
    weights_kept_in_training,
)

pytestmark = pytest.mark.needs("test_written_by_hand")

AXES = ("batch item", "query", "feature")  # of an output, in the singular
ATTENTION = built("BilinearAttention", 4, 3, 0.0)
LENS = torch.tensor([4, 2])
PER_QUERY = torch.tensor([[6, 2, 3, 1, 4, 5], [2, 5, 3, 6, 1, 4]])
EMPTY_ROWS = torch.tensor([[6, 0, 3, 1, 4], [0, 0, 3, 6, 1]])


def inputs(batch=2, n_queries=5, n_keys=6, d_value=8, **how):
    """Return recipes of queries, keys and values, whose sizes all differ."""
    shapes = (batch, n_queries, 4), (batch, n_keys, 3), (batch, n_keys, d_value)
    return [drawn(*shape, **how) for shape in shapes]


def draw(rng, **sizes):
    """Return queries, keys and values."""
    return [recipe(rng) for recipe in inputs(**sizes)]


def in_training(student, rng, dropout):
    """Return a module with random parameters in training mode."""
    return built("BilinearAttention", 4, 3, dropout, training=True)(student, rng)


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """The work is done by your own code."""
    given = draw(rng)
    assert_written_by_hand(student, lambda: student.BilinearAttention(4, 3, 0.0).double()(*given))


test_formula = Check(
    "Each pair is scored by q . M k / sqrt(d_key), and the output is the weighted mean.",
    points=2,
    about="no lengths",
)
formula = test_formula.case
formula("Without lengths.", output(ATTENTION, *inputs()))
formula(
    "As many queries as keys, all of the same size.",
    output(built("BilinearAttention", 4, 4, 0.0), *[drawn(4, 4, 4)] * 3),
    about="square",
)
formula(
    "Longer keys than queries.",
    output(built("BilinearAttention", 2, 9, 0.0), drawn(3, 4, 2), drawn(3, 7, 9), drawn(3, 7, 5)),
    hidden=True,
)


@formula(about="layers")
def parameters(student, rng):
    """The parameters."""
    shapes = {name: list(x.shape) for name, x in ATTENTION(student, rng).named_parameters()}
    others = often(float(len(shapes.keys() - {"M"})))
    return {"M": often(*(float(n) for n in shapes.get("M", [0, 0]))), "others": others}


@formula(about="values")
def another_matrix(student, rng):
    """The output without gradients, after a call with another M."""
    attention = ATTENTION(student, rng)
    with torch.no_grad():
        attention(*draw(rng))
        attention.load_state_dict({"M": rng.randn(4, 3)}, strict=False)
        return attention(*draw(rng))


@formula(about="extreme scores")
def large(student, rng):
    """Values of an M that is multiplied by 1e4."""
    attention = ATTENTION(student, rng)
    state = attention.state_dict()
    attention.load_state_dict({**state, "M": state["M"] * 1e4})
    found = attention(*draw(rng))
    return {"output": found, "finite": found.isfinite()}


test_lengths = Check(
    "A query attends to as many keys as its length says, and to none with length 0."
)
lengths = test_lengths.case
lengths("A length for each batch item.", output(ATTENTION, *inputs(), LENS))
lengths(
    "A length for each of two batch items with two queries.",
    output(ATTENTION, *inputs(n_queries=2), torch.tensor([1, 5])),
)
lengths(
    "A length for each of as many queries as keys.",
    output(ATTENTION, *inputs(n_queries=6), PER_QUERY),
    about="lengths per query",
)
lengths(
    "A length for each query of three batch items.",
    output(ATTENTION, *inputs(3, 2, 4), torch.tensor([[1, 4], [3, 2], [2, 1]])),
    about="lengths per query",
    hidden=True,
)
lengths("Lengths that are not whole.", output(ATTENTION, *inputs(), LENS + 0.5), about="dtype")
lengths(
    "One key, which one of two batch items may not attend to.",
    output(ATTENTION, *inputs(n_keys=1), torch.tensor([0, 1])),
    about="length 0",
)


@lengths(about="length 0")
def empty(student, rng):
    """Some queries with length 0."""
    found = ATTENTION(student, rng)(*draw(rng), EMPTY_ROWS)
    return {"output": found, "finite": found.isfinite()}


test_dropout = Check(
    "In training mode, weights are dropped; attention_weights holds them as they are before.",
    about="training",
)
dropout = test_dropout.case


@dropout
def factors(student, rng):
    """What dropout makes of weights, where the values are the unit matrix, twice."""
    attention, without = in_training(student, rng, 0.4), ATTENTION(student, rng)
    return factors_of_kept_weights(student, attention, without, *draw(rng)[:2])


@dropout
def weights_dropped(student, rng):
    """Which weights of two items are dropped together, over 40 draws."""
    given = [tensor * 0.5 for tensor in draw(rng, n_queries=3, n_keys=3)]
    return weights_dropped_together(student, in_training(student, rng, 0.5), *given)


@dropout
def share_of_a_quarter(student, rng):
    """Whether about a quarter of the weights are dropped at a rate of 0.25, without gradients."""
    attention, given = in_training(student, rng, 0.25), draw(rng, batch=1)[:2]
    with torch.no_grad():
        share = share_of_weights_dropped(student, attention, *given)
    return often(abs(share - 0.25) < 0.03)  # ten standard deviations


@dropout
def weights_kept(student, rng):
    """The attention_weights of the second call in training mode."""
    first, last = ((*draw(rng), torch.tensor(lens)) for lens in ([3, 5], [4, 2]))
    return weights_kept_in_training(student, in_training(student, rng, 0.4), first, last)


@dropout
def next_call(student, rng):
    """Whether the next call drops other weights."""
    return drops_anew(student, in_training(student, rng, 0.4), *draw(rng, batch=12))


@dropout
def apart(student, rng):
    """Whether weights are dropped with a length for each query, and not in whole rows."""
    attention, lens = in_training(student, rng, 0.3), torch.full((12, 5), 6)
    eye = torch.eye(6, dtype=torch.float64).repeat(12, 1, 1)
    dropped = attention(*draw(rng, batch=12)[:2], eye, lens) == 0  # (batch, n_queries, n_keys)
    return often(bool(dropped.any()), bool((dropped.any(-1) > dropped.all(-1)).any()))


@dropout(about="options")
def evaluated(student, rng):
    """A dropout of 0.4 in evaluation mode."""
    attention = in_training(student, rng, 0.4).eval()
    with seeded(student, 1):
        return attention(*draw(rng))


dropout(
    "A dropout of 1 in training.",
    output(built("BilinearAttention", 4, 3, 1.0, training=True), *inputs(3, 2)),
)


@dropout(about="single")
def kept_of_one_item(student, rng):
    """The attention_weights of one batch item."""
    attention = ATTENTION(student, rng)
    attention(*draw(rng, batch=1))
    return attention.attention_weights


@dropout(about="single", hidden=True)
def kept_of_one_key(student, rng):
    """The attention_weights of one key."""
    attention = ATTENTION(student, rng)
    attention(*draw(rng, n_keys=1))
    return attention.attention_weights


@dropout(about="single", hidden=True)
def kept_of_one_query(student, rng):
    """The attention_weights of one query."""
    attention = ATTENTION(student, rng)
    attention(*draw(rng, n_queries=1))
    return attention.attention_weights


test_gradients = Check(
    "Gradients reach the queries, the keys, the values and M, with length 0 too.",
    about="gradient",
)
slopes = test_gradients.case
slopes("The gradients of the inputs and of M.", gradient(ATTENTION, *inputs()))
slopes("The gradients at other sizes.", gradient(ATTENTION, *inputs(3, 4, 7, 2)), hidden=True)
slopes(
    "The gradients with lengths.",
    gradient(ATTENTION, *inputs(), torch.tensor([3, 5])),
)


@slopes(about="length 0")
def empty_slopes(student, rng):
    """Which gradients are finite if all queries of a batch item have length 0."""
    attention, lens = ATTENTION(student, rng), torch.tensor([0, 3])
    found = gradients(lambda *given: attention(*given, lens), *draw(rng))
    return {name: value.isfinite() for name, value in found.items() if torch.is_tensor(value)}


test_any_input = Check(
    "Sizes of one, views and other dtypes work; no loop is needed, and no input is modified."
)
anything = test_any_input.case
for what, sizes in (
    ("query", {"n_queries": 1}),
    ("key", {"n_keys": 1}),
    ("batch item", {"batch": 1}),
):
    anything(f"One {what}.", output(ATTENTION, *inputs(**sizes)), about="single")
anything(
    "Sizes of one, in training with a dropout of 0.",
    output(
        built("BilinearAttention", 1, 1, 0.0, dtype=torch.float32, training=True),
        *[drawn(2, 1, 1, dtype=torch.float32)] * 3,
    ),
    about="single",
)
anything("Transposed views.", output(ATTENTION, *map(turned, inputs())), about="views")
anything(
    "Lengths and transposed views.",
    output(ATTENTION, *map(turned, inputs(3)), torch.tensor([4, 2, 5])),
    about="views",
    hidden=True,
)
anything(
    "Inputs in bfloat16.",
    output(
        built("BilinearAttention", 4, 3, 0.0, dtype=torch.bfloat16),
        *inputs(dtype=torch.bfloat16),
        LENS,
    ),
    about="dtype",
    within=(6e-2, 5e-2),
)


@anything(about="dtype")
def single_precision(student, rng):
    """Inputs in float32, of which only the shape and the dtype of the output count."""
    attention = student.BilinearAttention(4, 3, 0.0)
    return attention(*draw(rng, dtype=torch.float32)) * 0  # M may start with any numbers


for sentence, lens in (("", LENS), (", where one of the lengths is 0", torch.tensor([0, 3]))):
    anything(
        f"Which numbers of the arguments have changed{sentence}.",
        changed(ATTENTION, *inputs(), lens),
        about="writes",
    )


@anything(tells=False, hidden=True)
def growth(student, rng):
    """The work of a call does not grow with the number of batch items, queries or keys."""

    def called(**sizes):
        given = draw(rng, **sizes)
        return lambda: student.BilinearAttention(4, 3, 0.0).double()(*given)

    grown = {"batch items": {"batch": (9, 19)}, "queries": {"n_queries": (15, 31)}}
    assert_vectorised(student, called, {**grown, "keys": {"n_keys": (16, 33)}})
