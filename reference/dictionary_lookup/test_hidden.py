"""Hidden tests of dictionary lookup, which decide the points.

One mistake should cost one check. So a check of an edge accepts two answers: the right one, and the
one that follows from what the student's own code gives in the ordinary case.
"""

import pytest
import torch
from torch import Tensor

from grader.testing import (
    assert_close,
    assert_depends,
    assert_dtype,
    assert_refused,
    assert_right_or_own,
    assert_slopes,
    assert_unchanged,
    assert_vectorised,
    assert_written_by_hand,
    expect,
    in_float64,
)

pytestmark = pytest.mark.needs("test_written_by_hand")

N_QUERIES, N_KEYS, D_KEY, D_VALUE = 3, 5, 4, 6
ENTRIES = {0: [2, 3, 1, -4], 1: [5, -7, 0, 6], 2: [3, 2.5, 9, 8]}
# Row -3 of a table with a row for each int up to 40 is that of 38.
ANY_KEYS = {40: [2.5, -3.0], -3: [5.0, 7.5], 38: [-3.0, 2.0], 1: [0.5, 4.0]}
HUGE_KEYS = {2**40: [1.0, 2.0, 3.0], 2**40 + 1: [4.0, 5.0, -6.0], -5: [0.5, 7.0, 2.0]}


def qkv(rng, *leading, n_queries=N_QUERIES, n_keys=N_KEYS, d_key=D_KEY, d_value=D_VALUE):
    """Return random Q, K and V with the sizes of this suite."""
    Q = rng.randn(*leading, n_queries, d_key)
    K = rng.randn(*leading, n_keys, d_key)
    V = rng.randn(*leading, n_keys, d_value)
    return Q, K, V


def looked_up(student, entries, key, temp):
    """Return what the student's own attention gives for the one-hot key of `key`."""
    place, K = list(entries).index(key), torch.eye(len(entries))
    V = torch.tensor([[float(number) for number in value] for value in entries.values()])
    return assert_depends(student.attention(K[place : place + 1], K, V, temp).squeeze(0))


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """The attention is written by hand, without a torch function that does all of it.

    Guards: the calls that the exercise forbids.
    """
    Q, K, V = qkv(rng)
    assert_written_by_hand(
        student,
        lambda: student.attention(Q[None, None], K[None, None], V[None, None]),
        lambda: student.lookup(ENTRIES, 1),
    )


@pytest.mark.points(2)
def test_blend_of_values(student, reference, rng):
    """With the default temp, the output is the plain softmax of the scores times the values."""
    sizes = {(3, 5, 4, 6): 1.0, (7, 4, 3, 5): 1e6, (4, 4, 4, 4): 1.0}
    for (n_queries, n_keys, d_key, d_value), scale in sizes.items():
        Q, K, V = qkv(rng, n_queries=n_queries, n_keys=n_keys, d_key=d_key, d_value=d_value)
        output, right = (code.attention(Q, K, V * scale) for code in (student, reference))
        assert_close(in_float64(output), right, atol=1e-5 * scale)


@pytest.mark.points(1)
def test_temp(student, reference, rng):
    """Dividing by temp does the same as dividing all queries by it, for any temp above 0.

    Guards: a temp near 0 picks the best key, unless others match almost as well; a huge one gives
    the mean.
    """
    Q, K, V = qkv(rng)
    for temp, scale in ((0.125, 1), (3.0, 1), (1e6, 1), (1 / 64, 0.1), (1e-3, 1e-3), (1e-5, 1e-5)):
        assert_right_or_own(
            student.attention(Q * scale, K, V, temp=temp),
            reference.attention(Q * scale, K, V, temp=temp),
            lambda scaled=Q * scale / temp: assert_depends(student.attention(scaled, K, V, 1.0)),
            f"the output with {temp=}",
        )


@pytest.mark.points(1)
def test_leading_axes_and_views(student, reference, rng):
    """Q, K and V may have any leading axes and may be views, such as transposed tensors.

    Guards: single queries, keys, values and items along the leading axes.
    """
    for leading in ((2,), (1,), (2, 7), (1, 1)):
        _assert_each_item(student, reference, *qkv(rng, *leading), "the output")
    for size in ("n_queries", "n_keys", "d_key", "d_value"):
        single = qkv(rng, 2, **{size: 1})
        _assert_each_item(student, reference, *single, f"the output with {size} 1")
    single = qkv(rng, 1, n_queries=1, n_keys=1)
    _assert_each_item(student, reference, *single, "the output with one query and one key")
    for leading in ((7, 2), (2, 7)):
        Q, K, V = (tensor.transpose(0, 1) for tensor in qkv(rng, *leading))
        _assert_each_item(student, reference, Q, K, V, "the output for views")
    Q, K, V = (tensor.mT.contiguous().mT for tensor in qkv(rng))
    own = (Q.contiguous(), K.contiguous(), V.contiguous())
    output, right = student.attention(Q, K, V, 1.0), reference.attention(Q, K, V, 1.0)
    assert_right_or_own(
        output,
        right,
        lambda: assert_depends(student.attention(*own, 1.0)),
        "the output for transposed Q, K, V",
    )


def _assert_each_item(student, reference, Q, K, V, what):
    """Compare attention with leading axes with that for each item along them."""
    output, right = student.attention(Q, K, V, 1.0), reference.attention(Q, K, V, 1.0)
    flat = [tensor.contiguous().flatten(0, -3) for tensor in (Q, K, V)]

    def each():
        items = [student.attention(*item, 1.0) for item in zip(*flat)]
        return assert_depends(torch.stack(items).view(right.shape))

    assert_right_or_own(output, right, each, what)


@pytest.mark.points(1)
def test_arguments_are_left_alone(student, rng):
    """Q, K, V and the entries are not modified.

    Guards: writes that leave the output right, into views as well.
    """
    names = ("Q", "K", "V", "temp")
    for tensors in (qkv(rng), [tensor.mT.contiguous().mT for tensor in qkv(rng, 2)]):
        for temp in (0.8, 1.0):
            output = assert_unchanged(student, student.attention, *tensors, temp, names=names)
            assert_depends(output)
    for entries, key in ((ANY_KEYS, 38), (ENTRIES, 1), ({5: [2.5, -3]}, 5)):
        assert_unchanged(student, student.lookup, entries, key, names=("entries", "key"))


@pytest.mark.points(1)
def test_scores_of_any_size(student, reference, rng):
    """Scores of ±1e4 give finite results, whatever the scores of the other queries are.

    Guards: a temp near 0, which makes any score as large.
    """
    # Whole numbers, so that scores are exact in every floating type.
    Q = torch.tensor([[1, -2, 0, 0], [0, 1, 2, 0], [-1, 1, -1, 0]], dtype=torch.float64)
    K = torch.tensor([[2, 0, 1, 1], [1, -1, 0, 1], [0, 2, -2, 1], [-1, 1, 2, 1], [-2, 1, 1, 1]])
    signs = torch.cat([1 - 2 * rng.randint(0, 2, 3), torch.ones(1)]).double()
    Q, K = Q[rng.permutation(3)] * signs, K[rng.permutation(5)] * signs
    V = rng.randn(5, 6)
    shifted = Q + torch.tensor([[0, 0, 0, 1e4], [0, 0, 0, 0], [0, 0, 0, -1e4]], dtype=Q.dtype)
    ordinary = student.attention(Q, K, V, 1.0)
    assert_depends(ordinary)
    right = reference.attention(Q, K, V)
    is_right = torch.allclose(ordinary.double(), right, rtol=1e-6, atol=1e-5)
    for queries, temp in ((shifted, 1.0), (Q * 1e4, 1.0), (-1e4 * Q, 1.0), (Q, 1e-4)):
        output = student.attention(queries, K, V, temp)
        expect(isinstance(output, Tensor) and output.isfinite().all(), "the output is not finite")
        if is_right and temp == 1.0:
            assert_close(output.double(), reference.attention(queries, K, V, temp))


@pytest.mark.points(1)
def test_gradients(student, reference, rng):
    """Gradients reach Q, K and V, and are those of what the code computes.

    Guards: with leading axes and at other temps, too.
    """
    for leading, temp in (((), 1.0), ((2,), 1.0), ((3, 2), 0.5), ((), 2.0)):
        inputs = {**dict(zip("QKV", qkv(rng, *leading))), "temp": temp}
        assert_slopes(student, student.attention, reference.attention, inputs, rng=rng)


@pytest.mark.points(1)
def test_dtypes(student, reference, rng):
    """The output has the dtype of the inputs, also in half precision; `lookup` gives float32."""
    inputs = [tensor * 0.3 for tensor in qkv(rng, 2)]
    right = exact = reference.attention(*inputs, 1.0)
    for dtype in (torch.float64, torch.float32, torch.bfloat16):
        output = student.attention(*(tensor.to(dtype) for tensor in inputs), 1.0)
        assert_dtype(output, dtype, f"the output for inputs of {dtype}")
        assert_depends(output.double())
        exact = output if dtype == torch.float64 else exact
        near = (output.double() - right).abs().max() < 0.05
        own = exact.shape == output.shape and (output.double() - exact).abs().max() < 0.05
        expect(near or own, f"the output for inputs of {dtype} is another than for float64")
    for entries in (ENTRIES, ANY_KEYS, {0: [2, 3], 1: [5, 7]}):
        assert_dtype(student.lookup(entries, 1), torch.float32, "the value that `lookup` returns")


@pytest.mark.points(1)
def test_misuse(student, rng):
    """A temp of 0 or below raises ValueError, and an unknown key raises KeyError."""
    Q, K, V = qkv(rng)
    student.attention(Q, K, V, 1.0)
    student.lookup(ENTRIES, 1, 1.0)
    one = {1: [5.5, -7]}
    student.lookup(one, 1, 1.0)
    for temp in (-1.0, 0.0, 0):
        calls = {
            f"attention(Q, K, V, temp={temp})": lambda t=temp: student.attention(Q, K, V, t),
            f"lookup(entries, 1, temp={temp})": lambda t=temp: student.lookup(ENTRIES, 1, t),
            f"lookup({one}, 1, temp={temp})": lambda t=temp: student.lookup(one, 1, t),
        }
        for shown, call in calls.items():
            assert_refused(student, call, shown)
    for key in (-1, 3):
        shown = f"lookup(entries, {key}) with the keys 0, 1 and 2"
        assert_refused(student, lambda k=key: student.lookup(ENTRIES, k), shown, "KeyError")
    for entries, key in ((one, 0), (ANY_KEYS, 39), (ANY_KEYS, 0)):
        shown = f"lookup({entries}, {key})"
        assert_refused(student, lambda e=entries, k=key: student.lookup(e, k), shown, "KeyError")


@pytest.mark.points(1)
def test_lookup(student, reference):
    """`lookup` returns the value of a key; a larger temp mixes in the other values.

    Guards: negative values, ints and floats, lists of one number and a single entry.
    """
    whole = {0: [2, -3, 1], 1: [5, 7, 0], 2: [3, 2, 9]}
    for entries in (ENTRIES, whole, {0: [2], 1: [-4.5], 2: [7]}, {0: [1.5, -2.0]}, {0: [2500]}):
        for key in entries:
            _assert_found(student, reference, entries, key)
        for temp in (1.0, 0.4):
            _assert_found(student, reference, entries, key, temp)


@pytest.mark.points(1)
def test_lookup_of_any_keys(student, reference):
    """The keys may be any ints, in any order, and the values may be floats."""
    backwards = dict(reversed(ANY_KEYS.items()))
    few = {3: [1.0, 2.0, 3.0], 0: [4.0, 5.0, -6.0]}
    for entries in (ANY_KEYS, backwards, few, HUGE_KEYS):
        for key in entries:
            _assert_found(student, reference, entries, key)
        _assert_found(student, reference, entries, key, 1.0)


def _assert_found(student, reference, entries, key, *temp):
    found, right = student.lookup(entries, key, *temp), reference.lookup(entries, key, *temp)
    is_float = isinstance(found, Tensor) and found.is_floating_point()
    expect(is_float, f"the value of {key} is not a tensor of floating-point numbers")
    assert_right_or_own(
        found,
        right,
        lambda: looked_up(student, entries, key, *(temp or (0.01,))),
        f"the value of {key}" + "".join(f" with temp={each}" for each in temp),
    )


@pytest.mark.points(1)
def test_no_python_loops(student, reference, rng):
    """No Python loop runs over batch, queries or keys."""

    def called(batch=2, n_queries=3, n_keys=5):
        inputs = qkv(rng, batch, n_queries=n_queries, n_keys=n_keys)
        return lambda code: code.attention(*inputs, 1.0)

    assert_depends(called()(student))
    grown = {"batch items": {"batch": (105, 211)}, "queries": {"n_queries": (106, 213)}}
    grown["keys"] = {"n_keys": (109, 219)}
    assert_vectorised(student, called, grown, reference)
