"""The checks of named attention and their cases."""

import pytest
import torch
from torch import Tensor

from grader.authors import (
    ACCEPTED,
    Aspect,
    Check,
    assert_vectorised,
    assert_written_by_hand,
    gradients,
    often,
    written,
)
from grader.errors import StudentFailure

pytestmark = pytest.mark.needs("test_written_by_hand")

AXES = ("batch item", "query", "feature")
ORDER = Aspect("order", "tensors whose axes are in another order")
PRODUCT = Aspect("product", "what `contract` returns")
MESSAGES = Aspect("messages", "the messages of errors", is_edge=True)
HEADS = Aspect("heads", "what `multi_head` returns")
SIZES = {"batch": 2, "query": 3, "seq": 5, "key": 4, "val": 6, "head": 7, "chans": 8, "side": 2}
SIZES |= {"out": 3, "row": 1, "q": 2, "class": 1, "batch-1": 1}
QUERY, KEY, VALUE = "batch query key", "batch seq key", "batch seq val"
SCORES, OUTPUT, X = "batch query seq", "batch query val", "batch seq chans"
LAYERS = "head chans key", "head chans key", "head chans val", "head val chans"
USUAL = {  # the axes of the arguments of each function, the axes in `over`, and those of the result
    "contract": ((QUERY, KEY), ("key",), SCORES),
    "attend": ((QUERY, KEY, VALUE), (), OUTPUT),
    "multi_head": ((X, *LAYERS), (), X),
}


def named(rng, axes, **sizes):
    """Return a random named tensor with these axes; `sizes` replaces sizes of `SIZES`."""
    names = tuple(axes.split())
    return rng.randn(*((SIZES | sizes)[name] for name in names)), names


def turned(x, *order):
    """Return a named tensor with its axes in another order, which is a view."""
    return x[0].permute(order), tuple(x[1][place] for place in order)


def in_order(result, axes):
    """Return the tensor of a result with its axes in this order; others, by their names."""
    tensor, found = result
    if not isinstance(tensor, Tensor) or tensor.ndim != len(found):
        return [tensor, list(found)]
    names, found = axes.split(), [str(name)[:20] for name in found[:20]]
    if sorted(found) == sorted(names):
        return tensor.permute([found.index(name) for name in names])
    order = sorted(range(tensor.ndim), key=lambda place: found[place])
    return {"axes": " ".join(sorted(found)), "tensor": tensor.permute(order)}


def result(function, *axes, over=(), gives, orders=(), make=lambda tensor: tensor, **sizes):
    """Return the case of what a function gives for random tensors with these axes.

    `gives` has the axes of the result; `orders` those orders to which the axes are turned.
    """

    def ask(student, rng):
        given = [named(rng, each, **sizes) for each in axes]
        given = [turned(x, *order) for x, order in zip(given, orders)] or given
        given = [(make(tensor), names) for tensor, names in given]
        return in_order(getattr(student, function)(*given, *over), gives)

    return ask


def usual(function, **options):
    """Return the case of what a function gives for the usual axes."""
    axes, over, gives = USUAL[function]
    return result(function, *axes, over=over, gives=gives, **options)


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """The attention is written by hand, without a torch function that does all of it.

    Guards: the calls that the exercise forbids.
    """
    three = [named(rng, axes) for axes in USUAL["attend"][0]]
    five = [named(rng, axes) for axes in USUAL["multi_head"][0]]
    assert_written_by_hand(
        student, lambda: student.attend(*three), lambda: student.multi_head(*five)
    )


test_contract = Check(
    "`contract` aligns the axes that share a name, sums over those in `over` and keeps the rest.",
    points=3,
    about=PRODUCT,
)
product = test_contract.case
product("The product over key of a query and a key with batch.", usual("contract"))
for left, right, over, gives in (
    ("query key", "seq key", "key", "query seq"),
    ("query head val", "head val chans", "head val", "query chans"),
    ("batch query key", "head seq key", "key", "batch query head seq"),
    ("query key", "batch seq key", "key", SCORES),
):
    product(
        f"({left}) and ({right}), summed over {over}.",
        result("contract", left, right, over=over.split(), gives=gives),
    )
for left, right, over, gives in (
    ("query seq", "query seq", "query seq", ""),
    ("batch head query key", "side head seq key", "key", "batch side head query seq"),
    (X, "head chans key", "chans", "batch seq head key"),
    (SCORES, VALUE, "seq", OUTPUT),
):
    product(
        f"({left}) and ({right}), summed over {over}.",
        result("contract", left, right, over=over.split(), gives=gives, seq=4),
        hidden=True,
    )
product("A product where all sizes are equal.", usual("contract", **dict.fromkeys(SIZES, 4)))
product("One number along key.", usual("contract", key=1), about="single")
product(
    "One batch item, query and key.", usual("contract", batch=1, query=1, seq=1), about="single"
)


test_attention = Check(
    "`attend` is the softmax over seq of the scaled products over key, times the values.", points=2
)
attention = test_attention.case
attention("`attend` with batch in all three.", usual("attend"))
attention("`attend` with more queries than keys.", usual("attend", query=7, seq=4, key=9))
attention(
    "`attend` with all sizes equal.", usual("attend", **dict.fromkeys(SIZES, 4)), about="square"
)


@attention
def weights(student, rng):
    """The weights of `attend`, with unit vectors as values."""
    value = torch.eye(5, dtype=torch.float64), ("seq", "val")
    return in_order(student.attend(named(rng, QUERY), named(rng, KEY), value), OUTPUT)


for sentence, query, key, value, gives in (
    ("`attend` without batch.", "query key", "seq key", "seq val", "query val"),
    ("Queries without batch.", "query key", KEY, VALUE, OUTPUT),
    (
        "Batch and head, of which the value has head alone.",
        *("batch head query key", "batch head seq key", "head seq val", "batch head query val"),
    ),
):
    case = result("attend", query, key, value, gives=gives)
    attention(sentence, case, about="leading axes")
for sentence, query, key, value, gives in (
    (
        "Only the query has batch, only the value head.",
        QUERY,
        "seq key",
        "head seq val",
        "head " + OUTPUT,
    ),
    ("Queries with head in the place of query.", "batch head key", KEY, VALUE, "batch head val"),
    ("A single query, and one number a value.", "key", "seq key", "seq", ""),
    ("Side instead of batch.", "query key", "side seq key", "side seq val", "side query val"),
):
    case = result("attend", query, key, value, gives=gives, query=4)
    attention(sentence, case, about="leading axes", hidden=True)
attention("One key.", usual("attend", seq=1), about="single")
attention("One query of one batch item.", usual("attend", batch=1, query=1), about="single")
attention("Keys and values of one number.", usual("attend", key=1, val=1), about="single")


test_multi_head = Check(
    "`multi_head` attends in every head and sums over the heads; the result has the axes of x.",
    points=2,
    about=HEADS,
)
heads = test_multi_head.case
heads("`multi_head` with batch.", usual("multi_head"))
heads("`multi_head` with all sizes equal.", usual("multi_head", **dict.fromkeys(SIZES, 3)))
heads("`multi_head` with one head.", usual("multi_head", head=1))
heads("`multi_head` with one token.", usual("multi_head", seq=1), about="single")
heads("One batch item.", usual("multi_head", batch=1), about="single", hidden=True)
heads(
    "Keys and values of one number in each head.", usual("multi_head", key=1, val=1), about="single"
)
for axes in ("seq chans", "out seq chans", "row q class batch-1 seq chans", "batch side seq chans"):
    heads(
        f"`multi_head` of an x with the axes {axes}.",
        result("multi_head", axes, *LAYERS, gives=axes),
        about="leading axes",
    )


test_any_order_of_axes = Check(
    "The axes of the arguments may be in any order, also as views; the result means the same.",
    points=2,
    about=ORDER,
)
orders = test_any_order_of_axes.case
AS_IS = (0, 1, 2)
for sentence, function, turns in (
    ("`contract` with the axes of both tensors turned.", "contract", [(2, 0, 1), (1, 2, 0)]),
    ("`attend` with the query as (key, query, batch).", "attend", [(2, 1, 0), AS_IS, AS_IS]),
    ("`attend` with the key as (key, seq, batch).", "attend", [AS_IS, (2, 1, 0), AS_IS]),
    ("`attend` with key and value as (seq, batch, …).", "attend", [AS_IS, (1, 0, 2), (1, 0, 2)]),
    ("`multi_head` with the axes of every tensor turned.", "multi_head", [(2, 0, 1)] * 5),
):
    orders(sentence, usual(function, orders=turns, make=lambda tensor: tensor.contiguous()))
for function, (axes, _, _) in USUAL.items():
    for place in range(len(axes)):
        for order in ((2, 1, 0), (1, 2, 0), (0, 2, 1)):
            turns = [order if place == other else AS_IS for other in range(len(axes))]
            orders(
                f"`{function}` with argument {place + 1} turned to {order}.",
                usual(function, orders=turns),
                hidden=True,
            )
for sentence, axes, turns, gives in (
    (
        "`attend` of queries without batch and keys as (seq, batch, key).",
        *(("query key", KEY, VALUE), [(0, 1), (1, 0, 2), AS_IS], OUTPUT),
    ),
    (
        "`attend` of keys as (seq, side, key), where only they have side.",
        *(("query key", "side seq key", "seq val"), [(0, 1), (1, 0, 2), (0, 1)], "side query val"),
    ),
):
    orders(sentence, result("attend", *axes, gives=gives, orders=turns))
for function in USUAL:
    orders(
        f"`{function}` of transposed views.",
        usual(function, make=lambda tensor: tensor.mT.contiguous().mT),
        about="views",
    )


test_refusals = Check(
    "A missing, doubled or unequal axis and a query with seq are refused, with the axis's name.",
    points=2,
    about="refusals",
)
misuses = test_refusals.case


def misused(function, *axes, place=0, sizes=None):
    """Return the call of a function with these axes, and the argument at a place of other sizes."""

    def call(student, rng):
        other = {place: sizes or {}}
        given = [named(rng, each, **other.get(i, {})) for i, each in enumerate(axes)]
        return getattr(student, function)(*given, *USUAL[function][1])

    return call


def must_raise(call):
    """Return the case of a call that must be refused."""
    return lambda student, rng: (call(student, rng), ACCEPTED)[1]


def names_it(axis, call):
    """Return the case whether no error hides an axis: what is accepted hides nothing."""

    def ask(student, rng):
        try:
            call(student, rng)
        except StudentFailure as failure:
            if failure.kind not in ("ValueError", "AssertionError", "RuntimeError", "IndexError"):
                raise
            return often(axis in failure.message)
        except (ValueError, AssertionError, RuntimeError, IndexError) as error:  # in this process
            if isinstance(error, NotImplementedError):
                raise
            return often(axis in str(error))
        return ACCEPTED

    return ask


for sentence, axis, function, axes in (
    ("Right without key", "key", "contract", (QUERY, "batch seq")),
    ("Left without key", "key", "contract", ("batch query", KEY)),
    ("Left with query twice", "query", "contract", ("query query key", KEY)),
    ("Right with seq twice", "seq", "contract", (QUERY, "seq seq key")),
    ("Left with key twice", "key", "contract", ("query key key", KEY)),
    ("Right with key twice", "key", "contract", (QUERY, "seq key key")),
    ("A key without seq", "seq", "attend", (QUERY, "batch key", VALUE)),
    ("A value without seq", "seq", "attend", (QUERY, KEY, "batch val")),
    ("A query with seq", "seq", "attend", (KEY, KEY, VALUE)),
):
    call = misused(function, *axes)
    misuses(f"{sentence}.", must_raise(call))
    misuses(f"{sentence}: whether the message names {axis}.", names_it(axis, call), about=MESSAGES)
for axis, function, axes in (  # which the mistakes may refuse for another reason
    ("key", "attend", ("batch query", KEY, VALUE)),
    ("key", "attend", (QUERY, "batch seq", VALUE)),
    ("batch", "attend", ("batch batch query key", KEY, VALUE)),
    ("val", "attend", (QUERY, KEY, "seq val val")),
    ("seq", "attend", ("query seq key", KEY, VALUE)),
    ("seq", "multi_head", ("batch chans", *LAYERS)),
    ("chans", "multi_head", ("batch seq", *LAYERS)),
    ("key", "multi_head", (X, "head chans", *LAYERS[1:])),
    ("chans", "multi_head", (X, LAYERS[0], "head key", *LAYERS[2:])),
):
    call, shown = misused(function, *axes), f"`{function}` of ({'), ('.join(axes)})"
    misuses(f"{shown}.", must_raise(call), tells=False, hidden=True)
    message = f"Whether the message names {axis}: {shown}."
    misuses(message, names_it(axis, call), about=MESSAGES, tells=False, hidden=True)
for function, place, axis, size in (
    ("contract", 1, "key", 3),
    ("contract", 1, "key", 1),
    ("contract", 0, "key", 1),
    ("contract", 0, "batch", 1),
    ("contract", 1, "batch", 1),
    ("contract", 1, "batch", 3),
    ("attend", 2, "seq", 1),
    ("multi_head", 3, "chans", 1),
    ("multi_head", 3, "head", 1),
    ("multi_head", 4, "head", 1),
):
    call = misused(function, *USUAL[function][0], place=place, sizes={axis: size})
    shown = f"{axis} of size {size} in argument {place + 1} of `{function}` alone"
    misuses(f"{shown}.", must_raise(call))
    misuses(f"Named in the message: {shown}.", names_it(axis, call), about=MESSAGES)


test_gradients = Check(
    "Gradients reach all tensors, and are those of what the code computes.",
    points=2,
    about="gradient",
)
for function, (axes, over, gives) in USUAL.items():
    for sizes in ({}, {"head": 3, "chans": 4, "val": 2, "key": 5, "seq": 6}):

        def slopes(student, rng, function=function, axes=axes, over=over, gives=gives, sizes=sizes):
            given = [named(rng, each, **sizes) for each in axes]

            def call(*tensors):
                arguments = zip(tensors, (names for _, names in given))
                return in_order(getattr(student, function)(*arguments, *over), gives)

            return gradients(call, *(tensor / 3 for tensor, _ in given))

        sentence = f"The gradients of `{function}`{' with other sizes' if sizes else ''}."
        if sizes:
            test_gradients.case(sentence, slopes, hidden=True)
        else:
            test_gradients.case(sentence, slopes)


test_numbers_of_any_kind = Check(
    "The result has the dtype of the tensors, also in half precision; scores of 1e4 are finite.",
    points=2,
    about="dtype",
)
kinds = test_numbers_of_any_kind.case
for function in USUAL:
    for name, dtype in (("float32", torch.float32), ("bfloat16", torch.bfloat16)):
        case = usual(function, make=lambda tensor, dtype=dtype: (tensor * 0.3).to(dtype))
        kinds(f"`{function}` in {name}.", case, within=(0.06, 0.1))
    kinds(f"`{function}` in float64.", usual(function, seq=6), hidden=True)
for size in (1e4, -1e4):

    def large(student, rng, size=size):
        # Whole numbers and a root of 2, so that scores are exact in every floating type.
        query = rng.randint(-3, 4, 2, 3, 4).double() * size
        key = rng.randint(-3, 4, 2, 5, 4).double()
        three = (query, tuple(QUERY.split())), (key, tuple(KEY.split())), named(rng, VALUE)
        return in_order(student.attend(*three), OUTPUT)

    kinds(f"`attend` with scores of {size:g}.", large, about="extreme scores")


@kinds(about="extreme scores")
def finite(student, rng):
    """Which outputs are finite if the scores rise from 20 to 20,000."""
    query, key, value = named(rng, QUERY, query=8), named(rng, KEY), named(rng, VALUE)
    rising = torch.logspace(1.3, 4.3, 8, dtype=torch.float64).view(1, 8, 1)
    found = in_order(student.attend((query[0] * rising, query[1]), key, value), OUTPUT)
    return found.isfinite() if isinstance(found, Tensor) else found


test_whole_tensors = Check(
    "No Python loop runs over the entries of an axis, and no argument is modified.", points=2
)
whole = test_whole_tensors.case
for function, (axes, over, _) in USUAL.items():

    def modified(student, rng, function=function, axes=axes, over=over):
        given = [named(rng, each) for each in axes]
        before, names = zip(*given)
        call = getattr(student, function)
        copies = (tensor.clone() for tensor in before)
        after = written(student, lambda *tensors: call(*zip(tensors, names), *over), *copies)
        return [new != old for new, old in zip(after, before)]

    whole(f"Which numbers are others after a call of `{function}`.", modified, about="writes")

    def growth(student, rng, function=function, axes=axes, over=over):
        def called(**sizes):
            given = [named(rng, each, **sizes) for each in axes]
            return lambda: getattr(student, function)(*given, *over)

        grown = {
            f"entries of {axis}": {axis: (13, 28)} for axis in sorted({*" ".join(axes).split()})
        }
        assert_vectorised(student, called, grown)

    whole(f"The work of `{function}` does not grow.", growth, tells=False, hidden=True)
