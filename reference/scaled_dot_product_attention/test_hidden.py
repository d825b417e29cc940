"""The checks of scaled dot-product attention and their cases."""

import functools

import pytest
import torch

from grader.authors import (
    Aspect,
    Check,
    assert_close,
    assert_drawn_anew,
    assert_dropped,
    assert_vectorised,
    assert_written_by_hand,
    built,
    changed,
    drawn,
    expect,
    extremes,
    gradient,
    manual_seed,
    output,
    output_of,
    parameters,
    refused,
    share_of_zeros,
    turned,
    weights_dropped_together,
    without_gradients,
    works,
    works_too,
    written,
)

pytestmark = pytest.mark.needs("test_written_by_hand")

AXES = ("batch item", "query", "feature")
PRODUCT, CLASS = "batched_product", "DotProductAttention"
BFLOAT16 = torch.bfloat16
ROUGH = (0.1, 0.1)  # a tolerance for bfloat16
PER_ITEM, PER_QUERY = torch.tensor([2, 4]), torch.tensor([[2, 4, 3], [5, 1, 2]])


def attention(dropout=0.0, *, training=False):
    """Return what makes a module."""
    return built(CLASS, dropout, training=training)


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
    about=Aspect("product", "what `batched_product` returns"),
)
product = test_batched_product.case
for sentence, batch, n, m, p in (
    ("Two matrices times two.", 2, 3, 4, 5),
    ("Square matrices, as many as they have rows.", 4, 4, 4, 4),
):
    product(sentence, output(PRODUCT, drawn(batch, n, m), drawn(batch, m, p)))
for batch, n, m, p in ((3, 4, 2, 1), (1, 2, 3, 4), (4, 1, 1, 3)):
    both = drawn(batch, n, m, times=1e3), drawn(batch, m, p, times=1e3)
    product(f"{batch} times {n} x {m} and {m} x {p}.", output(PRODUCT, *both), hidden=True)
for sentence, first, second in (
    ("a batch of 2 and one of 1", (2, 3, 4), (1, 4, 5)),
    ("one matrix for all", (2, 3, 4), (4, 5)),
    ("one matrix for all, with as many rows as the batch has items", (4, 3, 4), (4, 5)),
    ("a last axis of 4 and one of 1 to meet it", (2, 3, 4), (2, 1, 5)),
    ("four axes", (2, 2, 3, 4), (2, 2, 4, 5)),
):
    ask = refused(PRODUCT, drawn(*first), drawn(*second))
    product(f"`batched_product` with {sentence}.", ask, about="refusals")
for first, second in (
    ((1, 3, 4), (2, 4, 5)),
    ((2, 3, 4), (3, 4, 5)),
    ((2, 3, 4), (2, 3, 5)),
    ((2, 3, 1), (2, 4, 5)),
    ((4, 4), (4, 4, 3)),
    ((3, 4), (4, 5)),
    ((2, 3, 4), (4,)),
    ((2, 3, 4), (2, 2, 4, 5)),
):
    ask, sentence = refused(PRODUCT, drawn(*first), drawn(*second)), f"Shapes {first} and {second}."
    product(sentence, ask, about="refusals", tells=False)


test_attention = Check(
    "Without lengths, the output is the softmax of the scaled scores times the values.",
    points=2,
)
values = test_attention.case
values("Fewer queries than keys.", output(attention(), *qkv()))
values("More queries than keys.", output(attention(), *qkv(3, 7, 4, 5, 2)))
values(
    "Queries and keys of size 9, and values of size 2.", output(attention(), *qkv(2, 6, 4, 9, 2))
)
values("All sizes equal.", output(attention(), *qkv(4, 4, 4, 4, 4)), about="square")
for sentence, sizes in (
    ("One query.", {"n_queries": 1}),
    ("One key.", {"n_keys": 1}),
    ("One batch item.", {"batch": 1}),
    ("Values of a single number.", {"d_value": 1}),
    (
        "One batch item with one query and one key.",
        {"batch": 1, "n_queries": 1, "n_keys": 1, "d_value": 12},
    ),
):
    values(sentence, output(attention(), *qkv(**sizes)), about="single")
values("Keys of a single number.", output(attention(), *qkv(2, 5, 3, 1, 4)), hidden=True)
values("No parameters.", parameters(CLASS, 0.0), about="layers")


@values
def other_sizes_before(student, rng):
    """Queries and keys of size 9, after a call of the same module with size 4."""
    module = attention()(student, rng)
    module(*tensors(rng))
    return module(*tensors(rng, d_key=9))


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
lengths("A length for each batch item.", output(attention(), *qkv(4), torch.tensor([2, 4, 1, 5])))
lengths(
    "A length for each batch item, with all sizes equal.",
    output(attention(), *qkv(4, 4, 4, 4, 4), torch.tensor([2, 4, 1, 3])),
)
lengths(
    "A length for each query.", output(attention(), *qkv(), PER_QUERY), about="lengths per query"
)
lengths(
    "A length for each query, with all sizes equal.",
    output(attention(), *qkv(3, 3, 3, 3, 3), torch.tensor([[1, 3, 2], [2, 1, 1], [3, 2, 1]])),
    about="lengths per query",
)
lengths(
    "A length for each of more queries than keys, one of them 0.",
    output(attention(), *qkv(1, 6, 4), torch.tensor([[3, 1, 2, 4, 1, 0]])),
    about="lengths per query",
    hidden=True,
)
lengths(
    "Some queries with length 0.",
    output(attention(), *qkv(), torch.tensor([[0, 2, 1], [3, 0, 0]])),
    about="length 0",
)
lengths(
    "A batch item with length 0.",
    output(attention(), *qkv(4), torch.tensor([0, 3, 5, 1])),
    about="length 0",
    hidden=True,
)
for sentence, lens in (
    ("A length greater than n_keys.", torch.tensor([2, 6])),
    ("A length greater than n_keys for one query.", torch.tensor([[2, 4, 3], [5, 6, 2]])),
    ("As many lengths as queries, but not as batch items.", torch.tensor([2, 3, 4])),
    ("Lengths of shape (n_queries, batch).", torch.ones(3, 2)),
    ("A length for each batch item and key.", torch.ones(2, 5)),
):
    lengths(sentence, refused(attention(), *qkv(), lens), about="refusals")


test_padded_values = Check(
    "The value of a key that is padded for every query has no effect, even if it is nan or inf.",
    about=Aspect("padded values", "the output where padded values are not finite", is_edge=True),
)
padding = test_padded_values.case


def with_padding(student, rng, filler, lens):
    """Return the output for padded values of `filler`, and which of its numbers are finite."""
    queries, keys, values = tensors(rng, 3)
    padded = torch.arange(5) >= lens.view(3, -1).amax(1, keepdim=True)
    spoilt = values.masked_fill(padded.unsqueeze(-1), filler)
    found = attention()(student, rng)(queries, keys, spoilt, lens)
    return {"output": found, "finite": found.isfinite()}


EACH = torch.tensor([[1, 2, 2], [4, 1, 3], [2, 3, 1]])  # (batch, n_queries)
for sentence, filler, lens in (
    ("Padded values of nan.", torch.nan, torch.tensor([2, 4, 3])),
    ("Values of nan that are padded for every query, with lengths for each.", torch.nan, EACH),
    ("Padded values of inf.", torch.inf, torch.tensor([2, 4, 3])),
    ("Padded values of 1e30.", 1e30, torch.tensor([2, 4, 3])),
    (
        "Values that are all nan, and padded, in one of three items.",
        torch.nan,
        torch.tensor([0, 4, 3]),
    ),
):
    padding(sentence, functools.partial(with_padding, filler=filler, lens=lens))
padding(
    "Padded values of -inf, with a length of 0.",
    functools.partial(
        with_padding, filler=-torch.inf, lens=torch.tensor([[0] * 3, [3, 1, 2], [5, 0, 1]])
    ),
    hidden=True,
)
for with_, lens in (("", torch.tensor([2, 4, 3])), (", without lengths", None)):

    def undefined_and_used(student, rng, lens=lens):
        queries, keys, values = tensors(rng, 3)
        values[:, 0, 0] = torch.nan
        found = attention()(student, rng)(queries, keys, values, lens)
        return {"output": found, "finite": found.isfinite()}

    padding(f"A nan in a value that every query uses{with_}.", undefined_and_used)


@padding(about="writes")
def undefined_values_afterwards(student, rng):
    """Which values are nan after a call with padded values of nan."""
    queries, keys, values = tensors(rng)
    values[:, 3:] = torch.nan
    given = queries, keys, values, torch.tensor([3, 2])
    return written(student, attention()(student, rng), *given)[2].isnan()


test_kept_weights = Check(
    "After each call, `attention_weights` holds its weights before dropout, in both modes.",
    about=Aspect("kept weights", "the weights in `attention_weights`"),
)


def kept(*calls, dropout=0.0, training=False):
    """Return a case: the attention_weights after calls with these arguments."""

    def ask(student, rng):
        module = attention(dropout, training=training)(student, rng)
        for arguments in calls:
            module(*(each(rng) if callable(each) else each for each in arguments))
        return {"attention_weights": module.attention_weights.double()}

    return ask


keeping = test_kept_weights.case
keeping("The weights of the last call in evaluation mode.", kept(qkv(), dropout=0.5))
keeping("The weights of the last call with lengths.", kept([*qkv(), PER_ITEM]))
keeping("The weights of the second call of a module.", kept(qkv(), qkv()))
keeping("The weights of the last call, for one key.", kept(qkv(2, 12, 1)), about="single")
keeping(
    "The weights after calls of several sizes, in training.",
    kept(qkv(1, 1, 4), qkv(2, 3, 1), qkv(3, 4, 6), dropout=0.5, training=True),
    tells=False,
    hidden=True,
)
keeping(
    "The weights of a call with length 0.",
    kept([*qkv(), torch.tensor([0, 2])]),
    about="length 0",
)


@keeping
def kept_in_training(student, rng):
    """The weights of the last call in training mode with dropout of a half, over many draws."""
    module = attention(0.5, training=True)(student, rng)

    def kept_weights(*many):
        module(*many, torch.tensor([[1, 2, 3]]).repeat(len(many[0]), 1))
        return module.attention_weights.double()

    return extremes(student, kept_weights, *tensors(rng, 1), two_keys=kept_weights)


test_dropout = Check(
    "In training, each weight is dropped on its own at the rate; in eval mode none is.",
    about="training",
)
dropping = test_dropout.case
dropping("Training mode without dropout.", output(attention(training=True), *qkv()))
dropping("Training mode with dropout of 1.", output(attention(1.0, training=True), *qkv()))


@dropping
def weights_dropped(student, rng):
    """Which weights of two items are dropped together, over 40 draws."""
    inputs = (tensor * 0.5 for tensor in tensors(rng, n_queries=3, n_keys=3))
    return weights_dropped_together(student, attention(0.5, training=True)(student, rng), *inputs)


@dropping
def share_dropped(student, rng):
    """How often the only key is dropped at a rate of 0.3."""
    module = attention(0.3, training=True)(student, rng)
    return share_of_zeros(student, module, *tensors(rng, 1, 2, 1))


def largest_and_smallest(student, rng, rate, n_keys=4, training=True):
    """Return the largest and the smallest outputs of two queries in many draws."""
    module = attention(rate, training=training)(student, rng)

    def two_keys(*many):
        return module(*many, torch.tensor([[1, 2]]).repeat(len(many[0]), 1))

    return extremes(student, module, *tensors(rng, 1, 2, n_keys), two_keys=two_keys)


half, less = (
    functools.partial(largest_and_smallest, rate=rate, n_keys=n) for rate, n in ((0.5, 4), (0.3, 3))
)
dropping("Training mode with dropout of a half.", half, decides=False)
dropping("Training mode with a dropout of 0.3.", less, decides=False)
dropping(
    "Evaluation mode with a dropout rate of a half.",
    functools.partial(largest_and_smallest, rate=0.5, training=False),
    about="options",
)


def weights_in_training(student, rng, *lens, rate=0.39):
    """Return weights without dropout and with it in 400 items, computed from the outputs."""
    inputs = [tensor.repeat(400, 1, 1) for tensor in tensors(rng, 1, d_value=9)]
    inverse = torch.linalg.pinv(inputs[2][0])  # as there are more features than keys
    both = (attention(p, training=True)(student, rng) for p in (0.0, rate))
    return [output_of(module, *inputs, *lens) @ inverse for module in both]


@dropping
def single_key_kept(student, rng):
    """The largest and smallest outputs with one key in training with a dropout of 0.3."""
    module = attention(0.3, training=True)(student, rng)
    return extremes(student, module, *tensors(rng, 1, 3, 1))


@dropping(tells=False)
def dropped_with_lengths(student, rng):
    """Whether a weight is dropped in 400 items, with lengths of both kinds."""
    found = []
    for lens in (torch.full((400,), 4), torch.tensor([[5, 2, 3]]).repeat(400, 1)):
        weights, seen = weights_in_training(student, rng, lens)
        found.append(((seen.abs() < weights.abs() / 2) & (weights.abs() > 1e-3)).any())
    return found


@dropping(tells=False, hidden=True)
def each_on_its_own(student, rng):
    """Whether each weight is dropped on its own or scaled up, and others in the next call."""
    weights, seen = weights_in_training(student, rng)
    dropped = seen.abs() < weights.abs() / 2
    assert_close(seen, (weights / (1 - 0.39)).masked_fill(dropped, 0.0), "the weights", atol=1e-4)
    assert_dropped(dropped[:, weights[0].abs() > 1e-3], 0.39, "weights")
    assert_drawn_anew(attention(0.5, training=True)(student, rng), *tensors(rng, 20))


@dropping(about="options", hidden=True)
def after_training(student, rng):
    """Evaluation mode after a call in training mode."""
    module, inputs = attention(0.5, training=True)(student, rng), tensors(rng, 3, 2, 4)
    module(*inputs)
    return module.eval()(*inputs)


test_gradients = Check(
    "Gradients reach queries, keys and values, and are those of what the code computes.",
    about="gradient",
)
slopes = test_gradients.case
slopes("The gradients without lengths.", gradient(attention(), *qkv()))
slopes("The gradients with a length for each batch item.", gradient(attention(), *qkv(), PER_ITEM))
slopes(
    "The gradients with a length for each query.",
    gradient(attention(), *qkv(), PER_QUERY),
    hidden=True,
)
slopes(
    "The gradients where some queries have length 0.",
    gradient(attention(), *qkv(), torch.tensor([[0, 4, 0], [5, 1, 2]])),
)
slopes(
    "The gradients of both factors of a product.",
    gradient(PRODUCT, drawn(2, 3, 4), drawn(2, 4, 5)),
    about=test_batched_product.cases[0].about,
)


@slopes(tells=False)
def slopes_with_dropout(student, rng):
    """In training with dropout, the gradients are the slopes of the output."""
    module = attention(0.3, training=True)(student, rng)

    def seeded_output(*inputs):
        manual_seed(student, 1)
        return module(*(each.clone() for each in inputs), PER_ITEM)

    inputs = [tensor.requires_grad_() for tensor in tensors(rng)]
    if seeded_output(*inputs).isfinite().all():  # else another check says so
        # Code may compute in float32, so steps are large.
        how = {"eps": 1e-3, "atol": 1e-3, "rtol": 1e-2, "raise_exception": False}
        are_slopes = torch.autograd.gradcheck(seeded_output, inputs, **how)
        expect(are_slopes, "the gradients are not the slopes of the output")


test_tensors = Check(
    "The output has the dtype of the arguments, which may be views and are not modified.",
    about="dtype",
)
dtypes = test_tensors.case
dtypes("float32.", output(attention(), *qkv(dtype=torch.float32)))
for with_, lens in (("", None), (", with lengths", PER_ITEM), (", lengths per query", PER_QUERY)):
    dtypes(f"bfloat16{with_}.", output(attention(), *qkv(dtype=BFLOAT16), lens), within=ROUGH)
dtypes(
    "A product of matrices in bfloat16.",
    output(PRODUCT, drawn(3, 2, 4, dtype=BFLOAT16), drawn(3, 4, 1, dtype=BFLOAT16)),
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
dtypes(
    "The product of transposed matrices.",
    output(PRODUCT, turned(drawn(2, 3, 4)), turned(drawn(2, 4, 5))),
    about="views",
)


@dtypes(about="views")
def transposed_works(student, rng):
    """Whether transposed views work."""
    module, inputs = attention()(student, rng), tensors(rng)
    views = [tensor.mT.contiguous().mT for tensor in inputs]
    return works_too(lambda: module(*inputs), lambda: module(*views))


for sentence, ask in (
    ("", changed(attention(), *qkv())),
    (" with lengths", changed(attention(), *qkv(), PER_ITEM)),
    (" without gradients", without_gradients(changed(attention(), *qkv()))),
    (
        " with a length for each query, of transposed views",
        changed(attention(), *map(turned, qkv()), PER_QUERY),
    ),
    (" of `batched_product`", changed(PRODUCT, drawn(2, 3, 4), drawn(2, 4, 5))),
):
    dtypes(
        f"Which numbers of the arguments are others after a call{sentence}.", ask, about="writes"
    )


test_no_python_loops = Check("No Python loop runs over batch, queries or keys.")


@test_no_python_loops.case(tells=False, hidden=True)
def growth(student, rng):
    """The work of a call does not grow with the number of batch items, queries or keys."""
    for kind in range(3):

        def called(batch=2, n_queries=3, n_keys=5, kind=kind):
            inputs, lens = (
                tensors(rng, batch, n_queries, n_keys),
                rng.randint(2, n_keys, batch, n_queries),
            )
            module, chosen = attention()(student, rng), (lens[:, 0], lens, None)[kind]
            return lambda: output_of(module, *inputs, chosen)

        grown = {"batch": (105, 211), "n_queries": (106, 213), "n_keys": (109, 219)}
        axes = zip(("batch items", "queries", "keys"), grown.items())
        if works(called()):  # else other checks say so
            assert_vectorised(student, called, {axis: dict([sizes]) for axis, sizes in axes})


@test_no_python_loops.case(tells=False, hidden=True)
def growth_of_product(student, rng):
    """The work of a product does not grow with the sizes of its factors."""

    def called(batch=2, n=3, m=4, p=5):
        a, b = rng.randn(batch, n, m), rng.randn(batch, m, p)
        return lambda: student.batched_product(a, b)

    grown = {"batch items": {"batch": (105, 211)}, "rows": {"n": (103, 207)}}
    grown |= {"columns": {"p": (101, 203)}, "terms": {"m": (107, 215)}}
    assert_vectorised(student, called, grown)
