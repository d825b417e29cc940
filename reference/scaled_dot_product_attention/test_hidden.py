"""The checks of scaled dot-product attention and their cases."""

import pytest
import torch

from grader.attention_cases import each_pair_on_its_own, kept_weights, pair_dropout_cases
from grader.authors import (
    ROUGH,
    Aspect,
    Check,
    after_training,
    assert_vectorised,
    assert_written_by_hand,
    built,
    changed,
    drawn,
    extremes,
    gradient,
    in_turn,
    output,
    output_of,
    parameters,
    refused,
    slopes_with_dropout,
    turned,
    without_gradients,
    works,
    works_as_well,
    written,
)

pytestmark = pytest.mark.needs("test_written_by_hand")

AXES = ("batch item", "query", "feature")
PRODUCT, CLASS = "batched_product", "DotProductAttention"
PRODUCTS = Aspect("product", "what `batched_product` returns")
BFLOAT16, NAN, INF = torch.bfloat16, torch.nan, torch.inf
PER_ITEM, PER_QUERY = torch.tensor([2, 4]), torch.tensor([[2, 4, 3], [5, 1, 2]])


def attention(dropout=0.0, **options):
    """Return what makes a module."""
    return built(CLASS, dropout, **options)


def qkv(batch=2, n_queries=3, n_keys=5, d_key=4, d_value=6, **how):
    """Return the recipes of random queries, keys and values."""
    shapes = (n_queries, d_key), (n_keys, d_key), (n_keys, d_value)
    return [drawn(batch, *shape, **how) for shape in shapes]


def tensors(rng, *sizes, **named):
    """Return random queries, keys and values."""
    return [recipe(rng) for recipe in qkv(*sizes, **named)]


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """The attention is written by hand, without a torch function that does all of it."""
    assert_written_by_hand(
        student,
        lambda: student.batched_product(rng.randn(2, 3, 4), rng.randn(2, 4, 5)),
        lambda: output_of(student.DotProductAttention(0.0).eval(), *tensors(rng), PER_ITEM),
        lambda: student.DotProductAttention(0.0).train()(*tensors(rng)),
    )


test_batched_product = Check(
    "`batched_product` multiplies item by item, and refuses shapes that do not fit.",
    about=PRODUCTS,
)
product = test_batched_product.case
product("Two matrices times two.", output(PRODUCT, drawn(2, 3, 4), drawn(2, 4, 5)))
product("Square matrices, as many as rows.", output(PRODUCT, drawn(4, 4, 4), drawn(4, 4, 4)))
for batch, n, m, p in ((3, 4, 2, 1), (1, 2, 3, 4), (4, 1, 1, 3)):
    product(
        f"{batch} times {n} x {m} and {m} x {p}.",
        output(PRODUCT, *(drawn(batch, n, m, times=1e3), drawn(batch, m, p, times=1e3))),
        hidden=True,
    )
for first, second in (
    ((2, 3, 4), (1, 4, 5)),
    ((2, 3, 4), (4, 5)),
    ((4, 3, 4), (4, 5)),
    ((2, 3, 4), (2, 1, 5)),
    ((2, 2, 3, 4), (2, 2, 4, 5)),
    ((1, 3, 4), (2, 4, 5)),
    ((2, 3, 4), (3, 4, 5)),
    ((2, 3, 1), (2, 4, 5)),
    ((4, 4), (4, 4, 3)),
    ((3, 4), (4, 5)),
    ((2, 3, 4), (4,)),
):
    ask = refused(PRODUCT, drawn(*first), drawn(*second))
    product(f"Shapes {first} and {second}.", ask, about="refusals")


test_attention = Check(
    "Without lengths, the output is the softmax of the scaled scores times the values.",
    points=2,
)
values = test_attention.case
values("Fewer queries than keys.", output(attention(), *qkv()))
values("More queries than keys.", output(attention(), *qkv(3, 7, 4, 5, 2)))
values("Queries and keys of size 9.", output(attention(), *qkv(2, 6, 4, 9, 2)))
values("All sizes equal.", output(attention(), *qkv(4, 4, 4, 4, 4)), about="square")
for size in ("n_queries", "n_keys", "batch", "d_value"):
    values(f"{size} is 1.", output(attention(), *qkv(**{size: 1})), about="single")
values("Keys of a single number.", output(attention(), *qkv(2, 5, 3, 1, 4)), hidden=True)
values("No parameters.", parameters(CLASS, 0.0), about="layers")
values("Size 9, after a call with size 4.", in_turn(attention(), qkv(), qkv(d_key=9)))


@values(about="extreme scores", hidden=True)
def far(student, rng):
    """Scores near 5e4 and -5e4, and values of a million."""
    # Whole numbers, whose sums are exact in every floating type that code may compute in.
    queries, keys = (rng.randint(-2, 3, 2, n, 4).double() for n in (3, 5))
    keys[..., 0] = 1.0
    found = []
    for shift in (1e5, -1e5):
        queries[..., 0] = shift
        found.append(attention()(student, rng)(queries, keys, rng.randn(2, 5, 6) * 1e6) / 1e6)
    return found


test_lengths = Check(
    "Padded keys are left out, for each batch item or for each query; length 0 gives zeros.",
    about="options",
)
lengths = test_lengths.case
for sentence, about, sizes, lens in (
    ("A length for each batch item.", "options", (4,), [2, 4, 1, 5]),
    ("A length for each item, with all sizes equal.", "options", [4] * 5, [2, 4, 1, 3]),
    ("A length for each query.", "lengths per query", (), [[2, 4, 3], [5, 1, 2]]),
    (
        "A length for each query, with all sizes equal.",
        "lengths per query",
        [3] * 5,
        [[1, 3, 2], [2, 1, 1], [3, 2, 1]],
    ),
    ("Some queries with length 0.", "length 0", (), [[0, 2, 1], [3, 0, 0]]),
):
    lengths(sentence, output(attention(), *qkv(*sizes), torch.tensor(lens)), about=about)
item = output(attention(), *qkv(4), torch.tensor([0, 3, 5, 1]))
lengths("A batch item with length 0.", item, about="length 0", hidden=True)
more = output(attention(), *qkv(1, 6, 4), torch.tensor([[3, 1, 2, 4, 1, 0]]))
lengths("More queries than keys, one of length 0.", more, about="lengths per query", hidden=True)
lengths(
    "A length for the only batch item.",
    output(attention(), *qkv(1), torch.tensor([3])),
    about="single",
    hidden=True,
)


@lengths(about="extreme scores", hidden=True)
def far_with_lengths(student, rng):
    """Scores of ten thousand, with a length for each query."""
    queries, keys = (rng.randint(-2, 3, 2, n, 4).double() for n in (3, 5))
    return attention()(student, rng)(queries * 1e4, keys, rng.randn(2, 5, 6), PER_QUERY)


for sentence, lens in (
    ("A length greater than n_keys.", [2, 6]),
    ("A length greater than n_keys for one query.", [[2, 4, 3], [5, 6, 2]]),
    ("As many lengths as queries, but not as batch items.", [2, 3, 4]),
    ("Lengths of shape (n_queries, batch).", [[1, 1]] * 3),
    ("A length for each batch item and key.", [[1] * 5] * 2),
):
    lengths(sentence, refused(attention(), *qkv(), torch.tensor(lens)), about="refusals")


test_padded_values = Check(
    "The value of a key that is padded for every query has no effect, even if it is nan or inf.",
    about=Aspect("padded values", "the output where padded values are not finite", is_edge=True),
)
padding = test_padded_values.case


def padded(filler, lens):
    """Return a case: the output for padded values of `filler`, and which numbers are finite."""

    def ask(student, rng):
        queries, keys, values = tensors(rng, 3)
        if lens:
            most = torch.tensor(lens).view(3, -1).amax(1, keepdim=True)  # (batch, 1)
            values[torch.arange(5) >= most] = filler
        else:
            values[:, 0, 0] = filler
        given = torch.tensor(lens) if lens else None
        found = attention()(student, rng)(queries, keys, values, given)
        return {"output": found, "finite": found.isfinite()}

    return ask


padding("Padded values of nan.", padded(NAN, [2, 4, 3]))
padding("Values of nan, with lengths per query.", padded(NAN, [[1, 2, 2], [4, 1, 3], [2, 3, 1]]))
padding("Padded values of infinity.", padded(INF, [2, 4, 3]))
padding("Padded values of 1e30.", padded(1e30, [2, 4, 3]))
padding("Padded values of nan, one item with length 0.", padded(NAN, [0, 4, 3]))
padding("A nan in a value that every query uses.", padded(NAN, None))
padding(
    "Padded values of -inf, with a length of 0.",
    padded(-INF, [[0] * 3, [3, 1, 2], [5, 0, 1]]),
    hidden=True,
)


@padding
def undefined_and_used(student, rng):
    """A nan in a value that every query uses, with lengths."""
    queries, keys, values = tensors(rng, 3)
    values[:, 0, 0] = NAN
    found = attention()(student, rng)(queries, keys, values, torch.tensor([2, 4, 3]))
    return {"output": found, "finite": found.isfinite()}


@padding(about="writes")
def undefined_values_afterwards(student, rng):
    """Which values are nan after a call with padded values of nan."""
    queries, keys, values = tensors(rng)
    values[:, 3:] = NAN
    given = queries, keys, values, torch.tensor([3, 2])
    return written(student, attention()(student, rng), *given)[2].isnan()


test_kept_weights = Check(
    "After each call, `attention_weights` holds its weights before dropout, in both modes.",
    about=Aspect("kept weights", "the weights in `attention_weights`"),
)
keeping = test_kept_weights.case
keeping("The weights in evaluation mode.", kept_weights(attention(0.5), qkv()))
keeping("The weights with lengths.", kept_weights(attention(), [*qkv(), PER_ITEM]))
keeping("The weights of the second call.", kept_weights(attention(), qkv(), qkv()))
keeping("The weights for one key.", kept_weights(attention(), qkv(2, 12, 1)), about="single")
empty = kept_weights(attention(), [*qkv(), torch.tensor([0, 2])])
keeping("The weights of a call with length 0.", empty, about="length 0")
calls = qkv(1, 1, 4), qkv(2, 3, 1), qkv(3, 4, 6)
several = kept_weights(attention(0.5, training=True), *calls)
keeping("The weights after calls in training.", several, tells=False, hidden=True)


@keeping
def kept_in_training(student, rng):
    """The weights of the last call in training mode with dropout of a half, over many draws."""
    module = attention(0.5, training=True)(student, rng)

    def last_weights(*many):
        module(*many, torch.tensor([[1, 2, 3]]).repeat(len(many[0]), 1))
        return module.attention_weights.double()

    return extremes(student, last_weights, *tensors(rng, 1), two_keys=last_weights)


test_dropout = Check(
    "In training, each weight is dropped on its own at the rate; in eval mode none is.",
    about="training",
)
dropping = test_dropout.case
dropping("Training mode without dropout.", output(attention(training=True), *qkv()))
dropping("Training mode with dropout of 1.", output(attention(1.0, training=True), *qkv()))
pair_dropout_cases(test_dropout, attention, qkv)
for lens in (None, [4], [[5, 2, 3]]):
    dropping(
        f"Each weight on its own, with lengths {lens}.",
        each_pair_on_its_own(attention, qkv(1, d_value=9), lens),
        tells=False,
        hidden=True,
    )


@dropping
def single_key(student, rng):
    """The largest and smallest outputs with one key in training with a dropout of 0.3."""
    module = attention(0.3, training=True)(student, rng)
    return extremes(student, module, *tensors(rng, 1, 3, 1))


trained = after_training(attention(0.5), *qkv(3, 2, 4))
dropping("Evaluation after a call in training.", trained, about="options", hidden=True)


test_gradients = Check(
    "Gradients reach queries, keys and values, and are those of what the code computes.",
    about="gradient",
)
slopes = test_gradients.case
slopes("The gradients without lengths.", gradient(attention(), *qkv()))
slopes("The gradients with a length for each batch item.", gradient(attention(), *qkv(), PER_ITEM))
empty = gradient(attention(), *qkv(), torch.tensor([[0, 4, 0], [5, 1, 2]]))
slopes("The gradients where some queries have length 0.", empty)
of_product = gradient(PRODUCT, drawn(2, 3, 4), drawn(2, 4, 5))
slopes("The gradients of both factors of a product.", of_product, about=PRODUCTS)
dropped = slopes_with_dropout(attention(0.3, training=True), *qkv(), PER_ITEM)
slopes("The slopes with dropout.", dropped, tells=False)
for with_, lens in (("without lengths", None), ("with lengths per query", PER_QUERY)):
    slopes(
        f"The slopes with dropout, {with_}.",
        slopes_with_dropout(attention(0.3, training=True), *qkv(), lens),
        tells=False,
        hidden=True,
    )
per_query = gradient(attention(), *qkv(), PER_QUERY)
slopes("The gradients with a length for each query.", per_query, hidden=True)


test_tensors = Check(
    "The output has the dtype of the arguments, which may be views and are not modified.",
    about="dtype",
)
dtypes = test_tensors.case
dtypes("float32.", output(attention(), *qkv(dtype=torch.float32)))
for with_, lens in (("", None), (", with lengths", PER_ITEM), (", lengths per query", PER_QUERY)):
    dtypes(f"bfloat16{with_}.", output(attention(), *qkv(dtype=BFLOAT16), lens), within=ROUGH)
dtypes(
    "A product in bfloat16.",
    output(PRODUCT, *(drawn(3, 2, 4, dtype=BFLOAT16), drawn(3, 4, 1, dtype=BFLOAT16))),
    within=ROUGH,
    hidden=True,
)
for sentence, axes, lens in (
    ("Transposed views.", (1, 2), None),
    ("Views whose leading axes were swapped.", (0, 1), None),
    ("Transposed views, with lengths.", (1, 2), PER_QUERY),
):
    views = [turned(each, *axes) for each in qkv()]
    dtypes(sentence, output(attention(), *views, lens), about="views")
views = works_as_well(attention(), qkv(), [*map(turned, qkv())])
dtypes("Whether transposed views work.", views, about="views")
factors = turned(drawn(2, 3, 4)), turned(drawn(2, 4, 5))
dtypes("The product of transposed matrices.", output(PRODUCT, *factors), about="views")
for sentence, ask in (
    ("", changed(attention(), *qkv())),
    (" with lengths", changed(attention(), *qkv(), PER_ITEM)),
    (" without gradients", without_gradients(changed(attention(), *qkv()))),
    (" with transposed views", changed(attention(), *map(turned, qkv()), PER_QUERY)),
    (" of `batched_product`", changed(PRODUCT, drawn(2, 3, 4), drawn(2, 4, 5))),
):
    dtypes(f"Which arguments are others after a call{sentence}.", ask, about="writes")


test_no_python_loops = Check("No Python loop runs over batch, queries or keys.")


@test_no_python_loops.case(tells=False, hidden=True)
def growth(student, rng):
    """The work of a call does not grow with the number of batch items, queries or keys."""
    for kind in range(3):

        def called(batch=2, n_queries=3, n_keys=5, kind=kind):
            inputs = tensors(rng, batch, n_queries, n_keys)
            lens = rng.randint(2, n_keys, batch, n_queries)
            chosen = (lens[:, 0], lens, None)[kind]
            return lambda: output_of(attention()(student, rng), *inputs, chosen)

        grown = {"batch items": {"batch": (105, 211)}, "queries": {"n_queries": (106, 213)}}
        if works(called()):  # else other checks say so
            assert_vectorised(student, called, {**grown, "keys": {"n_keys": (109, 219)}})


@test_no_python_loops.case(tells=False, hidden=True)
def growth_of_product(student, rng):
    """The work of a product does not grow with the sizes of its factors."""

    def called(batch=2, n=3, m=4, p=5):
        a, b = rng.randn(batch, n, m), rng.randn(batch, m, p)
        return lambda: student.batched_product(a, b)

    grown = {"batch items": {"batch": (105, 211)}, "rows": {"n": (103, 207)}}
    grown |= {"columns": {"p": (101, 203)}, "terms": {"m": (107, 215)}}
    assert_vectorised(student, called, grown)
