"""Hidden tests of named attention, which decide the points.

One mistake should cost one check. So what builds on `contract` may also follow from what the
student's own code gives for the parts, and other orders from what it gives for the usual one.
"""

import math

import pytest
import torch
from torch import Tensor

from grader.errors import Mismatch, StudentFailure
from grader.testing import (
    assert_close,
    assert_dtype,
    assert_refused,
    assert_same,
    assert_slopes,
    assert_unchanged,
    assert_vectorised,
    assert_written_by_hand,
    expect,
    in_float64,
)

pytestmark = pytest.mark.needs("test_written_by_hand")

SIZES = {"batch": 2, "query": 3, "seq": 5, "key": 4, "val": 6, "head": 7, "chans": 8, "side": 9}
QUERY, KEY, VALUE = ("batch", "query", "key"), ("batch", "seq", "key"), ("batch", "seq", "val")
SCORES, OUTPUT = ("batch", "query", "seq"), ("batch", "query", "val")
X, W_Q, W_V = ("batch", "seq", "chans"), ("head", "chans", "key"), ("head", "chans", "val")
MULTI_HEAD = (X, W_Q, W_Q, W_V, ("head", "val", "chans"))


def named(rng, *names, **sizes):
    """Return a random named tensor with these axes; `sizes` replaces sizes of `SIZES`."""
    return rng.randn(*({**SIZES, **sizes}[name] for name in names)), names


def turned(x, *order):
    """Return a named tensor with its axes in another order: a view."""
    order = [place for place in order if place < len(x[1])]
    return x[0].permute(order), tuple(x[1][place] for place in order)


def parts_of(result, what="the result"):
    """Return tensor and names of a named result; raise `Mismatch` if it is none."""
    is_pair = isinstance(result, tuple | list) and len(result) == 2
    expect(is_pair and isinstance(result[0], Tensor), f"{what} is not a pair (tensor, names)")
    tensor, names = result
    is_names = isinstance(names, tuple | list) and all(isinstance(name, str) for name in names)
    expect(is_names, f"the names of {what} are not a tuple of strings")
    says = f"{what} has {tensor.ndim} axes and {len(names)} names"
    expect(tensor.ndim == len(names), says)
    return tensor, list(names)


def in_order(result, names, what="the result"):
    """Return the tensor of a named result with its axes in the order of `names`."""
    tensor, found = parts_of(result, what)
    shown = ", ".join(name[:20] for name in found[:9])
    wanted = f"where {', '.join(names)} are expected, in any order"
    expect(sorted(found) == sorted(names), f"{what} has the axes {shown}; {wanted}")
    return tensor.permute([found.index(name) for name in names])


def assert_named(actual, right, own=None, what="the result"):
    """Raise `Mismatch` unless a result is right, or the same as `own()`."""
    tensor, names = right
    try:
        assert_close(in_float64(in_order(actual, names, what)), tensor, what)
    except Mismatch:
        if own is None:
            raise
        ordinary = own()
        _, own_names = differing(ordinary, what) if tensor.numel() > 1 else parts_of(ordinary)
        assert_same(in_order(actual, own_names, what), in_order(ordinary, own_names, what), what)


def differing(result, what="the result"):
    """Return tensor and names of a named result; raise `Mismatch` unless its numbers differ."""
    tensor, names = parts_of(result, what)
    numbers = tensor.detach().flatten()
    says = f"{what} is {len(numbers)} times the same number"
    expect(len(numbers) and (numbers - numbers[0]).abs().max() > 1e-9, says)
    return tensor, names


def by_parts(student, query, key, value):
    """Return what attention gives with the student's own `contract`."""
    scores, names = parts_of(student.contract(query, key, "key"), "the result of `contract`")
    expect("seq" in names, "the result of `contract` over key has no axis seq")
    d_key = query[0].shape[query[1].index("key")]
    weights = torch.softmax(scores / math.sqrt(d_key), dim=names.index("seq"))
    return student.contract((weights, tuple(names)), value, "seq")


def renamed(x, old, new):
    """Return a named tensor with one name replaced."""
    tensor, names = parts_of(x)
    return tensor, tuple(new if name == old else name for name in names)


def multi_head_by_parts(student, x, W_q, W_k, W_v, W_o):
    """Return what multi-head attention gives with the student's own `contract` and `attend`."""
    queries, keys, values = (student.contract(x, W, "chans") for W in (W_q, W_k, W_v))
    context = student.attend(renamed(queries, "seq", "query"), keys, values)
    return renamed(student.contract(context, W_o, "head", "val"), "query", "seq")


def assert_works(student, rng):
    """Raise `Mismatch` unless both `contract` and `attend` return something."""
    three = [named(rng, *each) for each in (QUERY, KEY, VALUE)]
    differing(student.contract(*three[:2], "key"), "the result of `contract`")
    differing(student.attend(*three), "the result of `attend`")


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """The attention is written by hand, without a torch function that does all of it.

    Guards: the calls that the exercise forbids.
    """
    query, key, value = (named(rng, *names) for names in (QUERY, KEY, VALUE))
    arguments = [named(rng, *names) for names in MULTI_HEAD]
    assert_written_by_hand(
        student,
        lambda: student.attend(query, key, value),
        lambda: student.multi_head(*arguments),
    )


@pytest.mark.points(1)
def test_contract(student, reference, rng):
    """`contract` aligns the axes that share a name, sums over those in `over` and keeps the rest.

    Guards: several summed axes, none that is shared and kept, none that is kept, axes of one tensor
    alone, axes of size 1, and equal sizes.
    """
    equal = dict.fromkeys(SIZES, 3)
    for left, right, over, sizes in (
        (("query", "key"), ("seq", "key"), ("key",), {}),
        (QUERY, KEY, ("key",), {}),
        (SCORES, VALUE, ("seq",), {}),
        (X, W_Q, ("chans",), {}),
        (("batch", "query", "head", "val"), ("head", "val", "chans"), ("head", "val"), {}),
        (("query", "seq"), ("query", "seq"), ("query", "seq"), {}),
        (("batch", "head", "query", "key"), ("side", "head", "seq", "key"), ("key",), {}),
        (("query", "key"), ("batch", "seq", "key"), ("key",), {}),
        (QUERY, KEY, ("key",), {"key": 1}),
        (QUERY, KEY, ("key",), {"batch": 1, "query": 1, "seq": 1}),
        (QUERY, KEY, ("key",), equal),
    ):
        a, b = named(rng, *left, **sizes), named(rng, *right, **sizes)
        right_result = reference.contract(a, b, *over)
        assert_named(student.contract(a, b, *over), right_result)


@pytest.mark.points(1)
def test_attention(student, reference, rng):
    """`attend` is the softmax over seq of the scaled products over key, times the values.

    Guards: further axes in all, some or none of the three; one query, one key and one batch item.
    """
    for names, sizes in (
        ((QUERY, KEY, VALUE), {}),
        ((("query", "key"), ("seq", "key"), ("seq", "val")), {}),
        ((("head", *QUERY), ("head", *KEY), ("head", *VALUE)), {}),
        ((("query", "key"), KEY, VALUE), {}),
        ((QUERY, ("seq", "key"), ("head", "seq", "val")), {}),
        ((("query", "key"), ("side", "seq", "key"), ("side", "seq", "val")), {}),
        ((("batch", "head", "key"), KEY, VALUE), {}),
        ((("key",), ("seq", "key"), ("seq",)), {}),
        ((QUERY, KEY, VALUE), {"batch": 1, "query": 1}),
        ((QUERY, KEY, VALUE), {"seq": 1}),
        ((QUERY, KEY, VALUE), {"key": 1, "val": 1}),
        ((QUERY, KEY, VALUE), {"query": 7, "seq": 4, "key": 9}),
        ((QUERY, KEY, VALUE), dict.fromkeys(SIZES, 4)),
    ):
        three = [named(rng, *each, **sizes) for each in names]
        assert_named(
            student.attend(*three),
            reference.attend(*three),
            lambda three=three: by_parts(student, *three),
        )


@pytest.mark.points(1)
def test_multi_head(student, reference, rng):
    """`multi_head` attends in every head and sums over the heads; the result has the axes of x.

    Guards: no batch and several further axes; one head, one token and one batch item.
    """
    for names, sizes in (
        (X, {}),
        (("seq", "chans"), {}),
        (("batch", "side", "seq", "chans"), {"side": 3}),
        (("out", "seq", "chans"), {"out": 3}),
        (("row", "q", "seq", "chans"), {"row": 3, "q": 2}),
        (("class", "batch-1", "seq", "chans"), {"class": 3, "batch-1": 2}),
        (X, {"head": 1}),
        (X, {"seq": 1}),
        (X, {"batch": 1}),
        (X, {"key": 1, "val": 1}),
        (X, dict.fromkeys(SIZES, 3)),
    ):
        x = named(rng, *names, **sizes)
        weights = [named(rng, *each, **sizes) for each in MULTI_HEAD[1:]]
        weights = [(tensor / 3, names) for tensor, names in weights]
        assert_named(
            student.multi_head(x, *weights),
            reference.multi_head(x, *weights),
            lambda five=(x, *weights): multi_head_by_parts(student, *five),
        )


@pytest.mark.points(1)
def test_any_order_of_axes(student, reference, rng):
    """The axes of the arguments may be in any order, also as views; the result means the same."""
    cases = {
        "contract": ([QUERY, KEY], ("key",), [(0, 1, 2), (2, 0, 1), (1, 2, 0)]),
        "attend": ([QUERY, KEY, VALUE], (), [(0, 1, 2), (2, 1, 0), (1, 2, 0), (0, 2, 1)]),
        "attend, with an axis that only the keys have": (
            [("query", "key"), ("side", "seq", "key"), ("batch", "seq", "val")],
            (),
            [(0, 1, 2), (1, 0, 2), (2, 1, 0)],
        ),
        "multi_head": (MULTI_HEAD, (), [(2, 1, 0), (1, 2, 0), (2, 0, 1)]),
    }
    for case, (names, over, orders) in cases.items():
        name = case.partition(",")[0]
        function, right = getattr(student, name), getattr(reference, name)
        usual = [(tensor / 2, each) for tensor, each in (named(rng, *each) for each in names)]
        for place in range(len(names)):
            for order in orders:
                given = [turned(x, *order) if place == i else x for i, x in enumerate(usual)]
                axes = f"`{name}` with argument {place + 1} as ({', '.join(given[place][1])})"
                assert_named(
                    function(*given, *over),
                    right(*given, *over),
                    lambda f=function, usual=usual, over=over: f(*usual, *over),
                    f"the result of {axes}",
                )
        for order in orders:
            given = [turned(x, *order) for x in usual]
            given = [(tensor.contiguous(), names) for tensor, names in given]
            assert_named(
                function(*given, *over),
                right(*given, *over),
                lambda f=function, usual=usual, over=over: f(*usual, *over),
                f"the result of `{name}` with all axes in another order",
            )


@pytest.mark.points(1)
def test_refusals(student, rng):
    """A missing, doubled or unequal axis and a query with seq are refused, with the axis's name.

    Guards: each tensor, sizes of 1 on both sides, and all three functions.
    """
    assert_works(student, rng)
    q, k, v = ((*QUERY,), (*KEY,), (*VALUE,))
    for left, right, axis, sizes in (
        (("batch", "query"), k, "key", {}),
        (q, ("batch", "seq"), "key", {}),
        (("query", "query", "key"), k, "query", {}),
        (q, ("seq", "seq", "key"), "seq", {}),
        (("query", "key", "key"), k, "key", {}),
        (q, ("seq", "key", "key"), "key", {}),
        (q, k, "key", {"key": 3}),
        (q, k, "key", {"key": 1}),
        (q, k, "batch", {"batch": 3}),
        (q, k, "batch", {"batch": 1}),
    ):
        for turn in (1, -1) if sizes else (1,):
            a, b = (named(rng, *left), named(rng, *right, **sizes))[::turn]
            call = ("contract", a, b, "key")
            _assert_refused(student, axis, *call)
    for names, axis, sizes in (
        ((("batch", "query"), k, v), "key", {}),
        ((q, ("batch", "seq"), v), "key", {}),
        ((q, ("batch", "key"), v), "seq", {}),
        ((q, k, ("batch", "val")), "seq", {}),
        ((("batch", "batch", "query", "key"), k, v), "batch", {}),
        ((q, k, ("seq", "val", "val")), "val", {}),
        ((q, k, v), "seq", {"seq": 1}),
        ((("batch", "seq", "key"), k, v), "seq", {}),
        ((("query", "seq", "key"), k, v), "seq", {}),
    ):
        three = [named(rng, *each) for each in names[:2]]
        _assert_refused(student, axis, "attend", *three, named(rng, *names[2], **sizes))
    arguments = [named(rng, *names) for names in MULTI_HEAD]
    for place, names, axis, sizes in (
        (0, ("batch", "chans"), "seq", {}),
        (0, ("batch", "seq"), "chans", {}),
        (1, ("head", "chans"), "key", {}),
        (2, ("head", "key"), "chans", {}),
        (3, W_V, "chans", {"chans": 1}),
        (3, W_V, "head", {"head": 1}),
        (4, MULTI_HEAD[4], "head", {"head": 1}),
    ):
        given = [*arguments[:place], named(rng, *names, **sizes), *arguments[place + 1 :]]
        _assert_refused(student, axis, "multi_head", *given)


def _assert_refused(student, axis, function, *given):
    """Raise `Mismatch` unless a call is refused by an error whose message names the axis."""
    axes = [
        "(" + ", ".join(f"{name} {size}" for name, size in zip(x[1], x[0].shape)) + ")"
        for x in given
        if isinstance(x, tuple)
    ]
    over = [repr(name) for name in given if isinstance(name, str)]
    shown = f"{function} of {' and '.join([', '.join(axes), *over])}"

    def call():
        return getattr(student, function)(*given)

    assert_refused(student, call, shown)
    try:
        call()
    except Exception as error:  # in a plain pytest run, what the code raises
        message = error.message if isinstance(error, StudentFailure) else str(error)
        says = f"the message of the error does not name the axis {axis}"
        expect(axis in message, f"{shown} is refused, but {says}")


@pytest.mark.points(1)
def test_gradients(student, reference, rng):
    """Gradients reach all tensors, and are those of what the code computes."""

    def of(code, function, names, *over):
        def call(*tensors):
            result = getattr(code, function)(*zip(tensors, names), *over)
            tensor, found = differing(result)
            order = sorted(range(tensor.ndim), key=lambda place: found[place])
            return tensor.permute(order)  # in the alphabetical order of the names

        return call

    for function, names, over in (
        ("contract", [QUERY, KEY], ["key"]),
        ("attend", [QUERY, KEY, VALUE], []),
        ("multi_head", MULTI_HEAD, []),
    ):
        inputs = {}
        for place, each in enumerate(names):
            inputs[f"tensor {place + 1} of `{function}`"] = named(rng, *each)[0] / 3
        programs = [of(code, function, names, *over) for code in (student, reference)]
        assert_slopes(student, *programs, inputs, rng=rng)


@pytest.mark.points(1)
def test_numbers_of_any_kind(student, reference, rng):
    """The result has the dtype of the tensors, also in half precision; scores of 1e4 are finite."""
    for function, names, over in (
        ("contract", [QUERY, KEY], ["key"]),
        ("attend", [QUERY, KEY, VALUE], []),
        ("multi_head", MULTI_HEAD, []),
    ):
        exact = [named(rng, *each) for each in names]
        exact = [(tensor * 0.3, each) for tensor, each in exact]
        right, axes = getattr(reference, function)(*exact, *over)
        own = right
        for dtype in (torch.float64, torch.float32, torch.bfloat16):
            given = [(tensor.to(dtype), each) for tensor, each in exact]
            result = getattr(student, function)(*given, *over)
            shown = f"the result of `{function}` for {dtype}"
            tensor, found = differing(result, shown)
            assert_dtype(tensor, dtype, shown)
            if sorted(found) == sorted(axes):
                tensor = in_order(result, axes, shown)
            own = tensor if dtype == torch.float64 else own
            near = tensor.shape == right.shape and (tensor.double() - right).abs().max() < 0.1
            same = tensor.shape == own.shape and (tensor.double() - own).abs().max() < 0.1
            expect(near or same, f"{shown} is another than for float64")
    # Whole numbers and a root of 2, so that scores are exact in every floating type.
    query, key = (rng.randint(-3, 4, *(SIZES[axis] for axis in each)) for each in (QUERY, KEY))
    query, key, value = query.double(), (key.double(), KEY), named(rng, *VALUE)
    ordinary = student.attend((query, QUERY), key, value)
    right = in_order(reference.attend((query, QUERY), key, value), OUTPUT)
    is_right = sorted(parts_of(ordinary)[1]) == sorted(OUTPUT) and torch.allclose(
        in_order(ordinary, OUTPUT).double(), right, rtol=1e-6, atol=1e-5
    )
    for scale in (1e4, -1e4):
        three = ((query * scale, QUERY), key, value)
        result, shown = student.attend(*three), f"the result for scores of {scale:.0e}"
        expect(parts_of(result, shown)[0].isfinite().all(), f"{shown} is not finite")
        if is_right:
            assert_named(result, reference.attend(*three), what=shown)


@pytest.mark.points(1)
def test_whole_tensors(student, rng):
    """No Python loop runs over the entries of an axis, and no argument is modified."""
    for function, names, over in (
        ("contract", [QUERY, KEY], ["key"]),
        ("attend", [QUERY, KEY, VALUE], []),
        ("multi_head", MULTI_HEAD, []),
    ):
        code = getattr(student, function)
        tensors = [named(rng, *each)[0] for each in names]
        result = assert_unchanged(
            student,
            lambda *tensors, f=code, names=names, over=over: f(*zip(tensors, names), *over),
            *tensors,
            names=[f"number {place + 1} of `{function}`" for place in range(len(names))],
        )
        differing(result, f"the result of `{function}`")

        def called(f=code, names=names, over=over, **sizes):
            given = [named(rng, *each, **sizes) for each in names]
            return lambda: f(*given, *over)

        axes = {axis for each in names for axis in each}
        grown = {f"entries of {axis}": {axis: (13, 28)} for axis in sorted(axes)}
        assert_vectorised(student, called, grown)
