"""Hidden tests of rotary position embedding, which decide the points.

One mistake should cost one check. So a check of anything but the formula also accepts what follows
from what the student's own `rotate` gives in the ordinary case.
"""

import functools

import pytest
import torch

from grader.testing import (
    assert_close,
    assert_depends,
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

BATCH, N_TOKENS, HEADS, D_HEAD, D_VALUE = 2, 5, 3, 6, 4
EXACT = 1e-4  # of numbers that are turned by angles in float32, for positions of some tens
SHAPES = ((2, 5, 3, 6), (4, 2, 8), (2, 3, 1, 5, 4), (1, 6, 1, 2), (1, 1, 4), (4, 4, 4, 4))
NAMES = ("queries", "keys", "values", "positions")


def positions_of(rng, n_tokens):
    """Return positions in random order, of which some are left out."""
    return rng.permutation(2 * n_tokens + 1)[:n_tokens]


def draw(rng, batch=BATCH, n_tokens=N_TOKENS, heads=HEADS):
    """Return queries, keys, values and positions."""
    shapes = [(batch, n_tokens, heads, d) for d in (D_HEAD, D_HEAD, D_VALUE)]
    return *(rng.randn(*shape) for shape in shapes), positions_of(rng, n_tokens)


def attention_of(queries, keys, values):
    """Return the output of attention for queries and keys as they are."""
    queries, keys, values = (x.transpose(-3, -2) for x in (queries, keys, values))
    weights = torch.softmax(queries @ keys.mT / queries.shape[-1] ** 0.5, dim=-1)
    return (weights @ values).transpose(-3, -2)  # (..., n_tokens, num_heads, d_value)


def assert_follows(found, right, own, what, atol=EXACT):
    """Raise `Mismatch` unless an output is right, or what `own` returns.

    Angles may be computed in float32, so numbers are compared with a tolerance for that.
    """
    found = in_float64(found)
    if found.shape != right.shape or not torch.allclose(found, right.double(), atol=atol):
        assert_close(found, assert_depends(in_float64(own())), what, rtol=atol, atol=atol)


def attention_by(student, queries, keys, values, positions):
    """Return the output of attention for queries and keys that the student's own code rotates."""
    turned = [in_float64(student.rotate(each, positions)) for each in (queries, keys)]
    return attention_of(*turned, values)


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """Attention is written by hand, without torch's own.

    Guards: the calls that the exercise forbids.
    """
    queries, keys, values, positions = draw(rng)
    assert_written_by_hand(
        student,
        lambda: student.rotate(queries, positions),
        lambda: student.rotary_attention(queries, keys, values, positions),
    )


@pytest.mark.points(2)
def test_pairs(student, reference, rng):
    """Columns 2i and 2i + 1 are turned by the position over base^(2i / d_head), in every head."""
    for shape in SHAPES:
        x, positions = rng.randn(*shape), positions_of(rng, shape[-3])
        right = reference.rotate(x, positions)
        found = in_float64(student.rotate(x, positions))
        what = f"the rotated x of shape {shape} for positions {positions.tolist()}"
        assert_close(found, right, what, atol=EXACT)
    for base in (100.0, 3):
        x, positions = rng.randn(BATCH, N_TOKENS, HEADS, D_HEAD), positions_of(rng, N_TOKENS)
        found = in_float64(student.rotate(x, positions, base=base))
        right = reference.rotate(x, positions, base=base)
        assert_close(found, right, f"the rotated x with base={base}", atol=EXACT)
        found = in_float64(student.rotate(x, positions, base))
        assert_close(found, right, f"the rotated x with the base {base}", atol=EXACT)
    x, far = rng.randn(6, 2, 8), rng.permutation(6) * 500 + 1013
    found = in_float64(student.rotate(x, far))
    right = reference.rotate(x, far)
    assert_close(found, right, "the rotated x for positions of thousands", rtol=0, atol=0.003)
    x = rng.randn(BATCH, N_TOKENS, HEADS, D_HEAD) * 1e6
    found = in_float64(student.rotate(x, torch.arange(N_TOKENS)))
    right = reference.rotate(x, torch.arange(N_TOKENS))
    assert_close(found / 1e6, right / 1e6, "the rotated x for numbers of some millions", atol=EXACT)


@pytest.mark.points(1)
def test_halves(student, reference, rng):
    """With interleaved=False, a pair is one column of each half."""
    for shape in SHAPES[:5]:
        x, positions = rng.randn(*shape), positions_of(rng, shape[-3])
        order = torch.arange(shape[-1]).view(2, -1).T.flatten()  # partners side by side
        found = student.rotate(x, positions, 50.0, interleaved=False)
        right = reference.rotate(x, positions, 50.0, interleaved=False)

        def own(x=x, positions=positions, order=order):
            turned = in_float64(student.rotate(x[..., order], positions, 50.0, interleaved=True))
            expect(turned.shape == x.shape, "the rotated x has another shape than x")
            return turned[..., order.argsort()]

        assert_follows(found, right, own, f"the rotated x of shape {shape}, interleaved=False")


@pytest.mark.points(1)
def test_positions(student, reference, rng):
    """Positions may be large, negative or fractions, in half precision as well."""
    x, whole = rng.randn(N_TOKENS, HEADS, D_HEAD), positions_of(rng, N_TOKENS)
    unturned = in_float64(student.rotate(x, torch.zeros(N_TOKENS, dtype=torch.int64)))
    assert_close(unturned, x, "the rotated x at position 0", atol=EXACT)
    far = rng.permutation(N_TOKENS) * 500 + 1013
    cases = {  # positions in two parts; no cast of the parts to whole numbers gives one of the sum
        "negative positions": (-2 * whole, whole),
        "fractions": (torch.full((N_TOKENS,), 0.75), whole + 0.625),
        "positions in float64": (torch.full((N_TOKENS,), -0.75).double(), -0.625 - whole),
        "whole positions in float32": (whole.float(), torch.zeros(N_TOKENS)),
    }
    for shown, (first, second) in cases.items():
        positions = first + second
        right = reference.rotate(x, positions)

        def own(first=first, second=second):
            return student.rotate(in_float64(student.rotate(x, first)), second)

        assert_follows(student.rotate(x, positions), right, own, f"the rotated x for {shown}")
    exact = torch.arange(N_TOKENS) * 1.25 + 3  # in bfloat16, too
    for dtype in (torch.bfloat16, torch.float16):
        own = functools.partial(student.rotate, x, exact.double())
        what = f"the rotated x for positions in {str(dtype).removeprefix('torch.')}"
        right = reference.rotate(x, exact.double())
        assert_follows(student.rotate(x, exact.to(dtype)), right, own, what)
    for dtype, atol in ((torch.float32, 0.003), (torch.bfloat16, 0.06)):
        found = student.rotate(x.to(dtype), far)
        right = reference.rotate(x.to(dtype).double(), far)

        def own():
            return student.rotate(in_float64(student.rotate(x, far - whole)), whole)

        what = f"the rotated x in {str(dtype).removeprefix('torch.')} for positions of thousands"
        assert_follows(found, right, own, what, atol)


@pytest.mark.points(1)
def test_attention(student, reference, rng):
    """Rotated queries and keys meet in each head; values are not rotated."""
    calls = [
        (draw(rng, *sizes), f"the output for {sizes[0]} batch items, {sizes[1]} tokens", EXACT)
        for sizes in ((2, 5, 3), (1, 4, 2), (4, 6, 6), (3, 1, 2), (2, 7, 1))
    ]
    queries, keys, _, positions = draw(rng, 2, 4, 3)
    values = rng.randn(2, 4, 3, D_HEAD)
    calls.append(((queries, keys, values, positions), "the output for d_value = d_head", EXACT))
    large = queries * 3000, keys, values, positions
    calls.append((large, "the output for scores of some thousands", 0.05))
    tiny = *(rng.randn(2, 1, d) for d in (2, 2, 1)), torch.tensor([3, 0])
    calls.append((tiny, "the output without leading axes, for one head", EXACT))
    axes = *(rng.randn(2, 3, 4, 1, d) for d in (4, 4, 5)), torch.tensor([3, 0, 7, 2])
    calls.append((axes, "the output for two leading axes", EXACT))
    negative = queries, keys, values, torch.tensor([-3, 2, 0, -7])
    calls.append((negative, "the output for negative positions", EXACT))
    between = queries, keys, values, torch.tensor([-3, 5, 1, -7])
    calls.append((between, "the output for other positions with the same ends", EXACT))
    for inputs, what, atol in calls:
        found = student.rotary_attention(*inputs)
        own = functools.partial(attention_by, student, *inputs)
        assert_follows(found, reference.rotary_attention(*inputs), own, what, atol)


@pytest.mark.points(1)
def test_refusals(student, rng):
    """An odd d_head is refused, and so is another number of positions than tokens."""
    queries, keys, values, positions = draw(rng)
    student.rotate(queries, positions)
    student.rotary_attention(queries, keys, values, positions)
    for d_head in (1, 3, 5):
        x = rng.randn(BATCH, N_TOKENS, HEADS, d_head)
        for interleaved in (True, False):
            call = functools.partial(student.rotate, x, positions, interleaved=interleaved)
            assert_refused(student, call, f"rotate for d_head {d_head}, {interleaved=}")
        call = functools.partial(student.rotary_attention, x, x, values, positions)
        assert_refused(student, call, f"rotary_attention for d_head {d_head}")
    for count in (1, HEADS, N_TOKENS - 1, N_TOKENS + 1):
        few = torch.arange(count)
        shown = f"for {count} positions and {N_TOKENS} tokens"
        assert_refused(student, lambda few=few: student.rotate(queries, few), f"rotate {shown}")
        call = functools.partial(student.rotary_attention, queries, keys, values, few)
        assert_refused(student, call, f"rotary_attention {shown}")
    call = functools.partial(student.rotate, queries[:, :1], torch.arange(3))
    assert_refused(student, call, "rotate for 3 positions and one token")


@pytest.mark.points(1)
def test_gradients(student, reference, rng):
    """Gradients reach x, the queries, the keys and the values."""
    queries, keys, values, positions = draw(rng)
    for interleaved in (True, False):

        def turned(code, interleaved=interleaved):
            return lambda x: code.rotate(x, positions, 50.0, interleaved=interleaved)

        assert_slopes(student, turned(student), turned(reference), {"x": queries}, rng=rng)
    inputs = {"queries": queries, "keys": keys, "values": values}

    def attended(code):
        return lambda *given: code.rotary_attention(*given, positions)

    assert_slopes(student, attended(student), attended(reference), inputs, rng=rng)


@pytest.mark.points(1)
def test_any_input(student, rng):
    """Views and other dtypes work; no loop is needed, and no input is modified."""
    *inputs, positions = draw(rng)
    turned = {}
    for interleaved in (True, False):
        rotate = functools.partial(student.rotate, interleaved=interleaved)
        names = ("x", "positions")
        turned[interleaved] = assert_unchanged(student, rotate, inputs[0], positions, names=names)
    every = assert_unchanged(student, student.rotary_attention, *inputs, positions, names=NAMES)
    assert_depends(every)
    for first, second in ((1, 3), (0, 2), (1, 2)):
        views = [x.transpose(first, second).contiguous().transpose(first, second) for x in inputs]
        for interleaved, plain in turned.items():
            found = student.rotate(views[0], positions, interleaved=interleaved)
            assert_same(in_float64(found), in_float64(plain), "the rotated x for a view")
        found = student.rotary_attention(*views, positions)
        assert_same(in_float64(found), in_float64(every), "the output for views")
    for dtype in (torch.float64, torch.float32, torch.bfloat16):
        given = [x.to(dtype) for x in inputs]
        for interleaved in (True, False):
            found = student.rotate(given[0], positions, interleaved=interleaved)
            assert_dtype(found, dtype, f"the rotated x in {dtype}, {interleaved=}")
        found = student.rotary_attention(*given, positions)
        assert_dtype(found, dtype, f"the output in {dtype}")

    def called(batch=2, n_tokens=3, heads=2, d=4):
        x, positions = rng.randn(batch, n_tokens, heads, d), torch.arange(n_tokens)
        return lambda: (
            student.rotate(x, positions),
            student.rotate(x, positions, interleaved=False),
            student.rotary_attention(x, x, x, positions),
        )

    grown = {
        "batch items": {"batch": (9, 19)},
        "tokens": {"n_tokens": (11, 24)},
        "heads": {"heads": (7, 15)},
        "columns": {"d": (14, 30)},
    }
    assert_vectorised(student, called, grown)
