"""The checks of rotary position embedding and their cases."""

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
    refused,
    turned,
    works,
)

pytestmark = pytest.mark.needs("test_written_by_hand")

AXES = ("batch item", "token", "head", "column")
ATTENTION = Aspect("attention", "what `rotary_attention` returns")
POSITIONS = Aspect("positions", "positions that are not small whole numbers", is_edge=True)
ORDER = torch.tensor([3, 0, 7, 1, 4])
FOUR = torch.tensor([1, 3, 0, 2])
FAR = torch.tensor([2015, 1013, 3011, 1509, 2503])
X = drawn(2, 5, 3, 6)  # (batch, n_tokens, num_heads, d_head)
QKV = X, X, drawn(2, 5, 3, 4)  # d_value is 4


def in_float32(ask):
    """Return the case of the same numbers in float32, in which angles may be computed."""

    def asked(student, rng):
        found = ask(student, rng)
        if isinstance(found, dict):
            return {
                name: each.float() if torch.is_tensor(each) else each
                for name, each in found.items()
            }
        return found.float()

    return asked


def rotated(*args, **options):
    """Return the case of what `rotate` returns, in float32."""
    return in_float32(output("rotate", *args, **options))


def attended(*args):
    """Return the case of what `rotary_attention` returns, in float32."""
    return in_float32(output("rotary_attention", *args))


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """Attention is written by hand, without torch's own.

    Guards: the calls that the exercise forbids.
    """
    queries, keys, values = (each(rng) for each in QKV)
    assert_written_by_hand(
        student,
        lambda: student.rotate(queries, ORDER),
        lambda: student.rotary_attention(queries, keys, values, ORDER),
    )


test_pairs = Check(
    "Columns 2i and 2i + 1 are turned by the position over base^(2i / d_head), in every head.",
    points=4,
)
pairs = test_pairs.case
pairs("Interleaved pairs with a base of 4.", rotated(X, ORDER, 4.0))
pairs("Interleaved pairs with the default base.", rotated(drawn(2, 5, 3, 8), ORDER))
pairs("A single pair of columns.", rotated(drawn(2, 5, 3, 2), ORDER))
pairs("A base of 3, which is named.", rotated(X, ORDER, base=3), hidden=True)
pairs(
    "Eight columns of two heads, a base of 100.", rotated(drawn(4, 2, 8), FOUR, 100.0), hidden=True
)
pairs("As many tokens as heads and columns.", rotated(drawn(4, 4, 4, 4), FOUR, 4.0), about="square")
pairs("No leading axes.", rotated(drawn(5, 3, 6), ORDER, 4.0), about="leading axes")
pairs("Two leading axes.", rotated(drawn(2, 2, 5, 3, 4), ORDER, 4.0), about="leading axes")
pairs("Three leading axes.", rotated(drawn(2, 1, 3, 5, 3, 4), ORDER, 4.0), hidden=True)
pairs("One token.", rotated(drawn(3, 1, 4, 6), torch.tensor([2]), 4.0), about="single")
pairs("One head.", rotated(drawn(2, 5, 1, 6), ORDER, 4.0), about="single")
pairs(
    "Numbers of some millions.",
    rotated(drawn(2, 5, 3, 6, times=1e6), ORDER),
    tells=False,
    hidden=True,
    within=(1e-4, 100),
)


@pairs(about="square", decides=False)
def works_where_sizes_differ(student, rng):
    """Whether calls work where all sizes differ."""
    x = X(rng)
    return often(works(lambda: expect(student.rotate(x, ORDER).shape == x.shape, "it is another")))


test_halves = Check(
    "With interleaved=False, a pair is one column of each half.", points=2, about="options"
)
halves = test_halves.case
halves("interleaved=False with a base of 4.", rotated(X, ORDER, 4.0, interleaved=False))
halves(
    "interleaved=False with as many tokens as heads and columns.",
    rotated(drawn(4, 4, 4, 4), FOUR, 4.0, interleaved=False),
)
for shape in ((4, 2, 8), (1, 4, 1, 2), (2, 3, 4, 1, 10)):
    halves(
        f"interleaved=False for x of shape {shape}.",
        rotated(drawn(*shape), FOUR, 50.0, interleaved=False),
        hidden=True,
    )


test_positions = Check(
    "Positions may be large, negative or fractions, in half precision as well.",
    points=3,
    about=POSITIONS,
)
places = test_positions.case
places("All positions are 0.", rotated(X, torch.zeros(5, dtype=torch.int64)))
places("Negative positions.", rotated(X, -ORDER, 4.0))
places("Positions with fractions.", rotated(X, ORDER + 0.375, 4.0))
places("Whole positions in float64.", rotated(X, ORDER.double(), 4.0))
places("Negative fractions in float64.", rotated(X, -ORDER.double() - 0.625), hidden=True)
for name, dtype in (("bfloat16", torch.bfloat16), ("float16", torch.float16)):
    exact = (torch.arange(5) * 1.25 + 3).to(dtype)
    places(f"Positions in {name}, of which each is exact.", rotated(X, exact, 4.0))
places(
    "Positions of thousands for x in float32.",
    rotated(lambda rng: X(rng).float(), FAR + 7),
    tells=False,
    hidden=True,
    within=(0, 0.003),
)


@places(within=(0.06, 0.02))
def far(student, rng):
    """Positions of thousands."""
    return student.rotate(X(rng), FAR).to(torch.bfloat16)


for layout, options in (("", {}), (", with interleaved=False", {"interleaved": False})):
    places(
        f"Positions of thousands in bfloat16, for a pair whose angle is the position{layout}.",
        output("rotate", drawn(2, 5, 3, 2, dtype=torch.bfloat16), FAR, **options),
        within=(0, 0.06),
    )
places(
    "Positions of thousands in bfloat16, with two leading axes.",
    output("rotate", drawn(2, 2, 5, 3, 2, dtype=torch.bfloat16), FAR),
    hidden=True,
    within=(0, 0.06),
)


@places
def far_to_three_digits(student, rng):
    """Whether a pair is turned by an angle of thousands to about three digits."""
    positions = torch.arange(12) * 250 + 1013
    x = torch.tensor([1.0, 0.0], dtype=torch.float64).expand(12, 1, 2)
    right = torch.stack((positions.double().cos(), positions.double().sin()), dim=-1)
    return (student.rotate(x, positions)[:, 0] - right).abs().amax(-1) < 0.003


test_attention = Check(
    "Rotated queries and keys meet in each head; values are not rotated.",
    points=2,
    about=ATTENTION,
)
attention = test_attention.case
attention("Attention.", attended(*QKV, ORDER))
attention("Attention where all sizes are equal.", attended(*[drawn(4, 4, 4, 4)] * 3, FOUR))
attention("Attention with values as wide as queries.", attended(X, X, X, ORDER))
attention(
    "Attention where all positions are 0.", attended(X, X, X, torch.zeros(5, dtype=torch.int64))
)
attention("Attention with negative positions.", attended(*QKV, -ORDER))
attention(
    "Scores of some thousands.",
    attended(drawn(2, 5, 3, 6, times=3e3), X, X, ORDER),
    about="extreme scores",
    within=(0, 0.05),
)
TWO_AXES = drawn(2, 2, 5, 3, 6)
attention(
    "Scores of some thousands, with two leading axes.",
    attended(drawn(2, 2, 5, 3, 6, times=3e3), TWO_AXES, TWO_AXES, ORDER),
    about="extreme scores",
    hidden=True,
    within=(0, 0.05),
)
for sentence, shape, d_value, positions in (
    ("Attention of one batch item.", (1, 5, 3, 6), 4, ORDER),
    ("Attention of one token.", (2, 1, 3, 6), 4, ORDER[:1]),
    ("Attention of one head.", (2, 5, 1, 6), 4, ORDER),
    ("Attention with values of size 1.", (2, 5, 3, 6), 1, ORDER),
    ("Two tokens without leading axes.", (2, 1, 2), 1, torch.tensor([3, 0])),
):
    queries, values = drawn(*shape), drawn(*shape[:-1], d_value)
    attention(sentence, attended(queries, queries, values, positions), about="single")
queries = drawn(2, 3, 4, 1, 8)
attention(
    "Two leading axes and negative positions.",
    attended(queries, queries, drawn(2, 3, 4, 1, 5), FOUR - 3),
    hidden=True,
)


@attention(about="extreme scores")
def finite(student, rng):
    """Which outputs are finite if the queries grow from 20 to 20,000."""
    growth = torch.logspace(1.3, 4.3, 12, dtype=torch.float64).view(12, 1, 1, 1)
    queries, keys = rng.randn(12, 5, 3, 6) * growth, rng.randn(12, 5, 3, 6)
    return student.rotary_attention(queries, keys, keys, ORDER).isfinite()


@attention
def other_positions(student, rng):
    """The second of two calls, whose positions have the same ends."""
    inputs = [each(rng) for each in QKV]
    student.rotary_attention(*inputs, torch.tensor([0, 1, 2, 3, 9]))
    return student.rotary_attention(*inputs, torch.tensor([0, 5, 1, 7, 9])).float()


test_refusals = Check(
    "An odd d_head is refused, and so is another number of positions than tokens.",
    points=2,
    about="refusals",
)
misuses = test_refusals.case
for d_head in (7, 3, 1):
    odd = drawn(2, 5, 3, d_head)
    misuses(f"A d_head of {d_head}.", refused("rotate", odd, ORDER))
    misuses(
        f"A d_head of {d_head} with interleaved=False.",
        refused("rotate", odd, ORDER, interleaved=False),
    )
    misuses(
        f"Attention with a d_head of {d_head}.",
        refused("rotary_attention", odd, odd, QKV[2], ORDER),
        hidden=True,
    )
for count in (1, 3, 4, 6):
    few = torch.arange(count)
    misuses(f"Positions for five tokens: {count}.", refused("rotate", X, few))
    misuses(
        f"Attention with positions for five tokens: {count}.",
        refused("rotary_attention", *QKV, few),
        hidden=True,
    )
misuses("Three positions for one token.", refused("rotate", drawn(2, 1, 3, 6), torch.arange(3)))


test_gradients = Check(
    "Gradients reach x, the queries, the keys and the values.", points=2, about="gradient"
)
slopes = test_gradients.case
slopes("The gradient of x.", in_float32(gradient("rotate", X, ORDER, 4.0)))
slopes(
    "The gradient of x with interleaved=False.",
    in_float32(gradient("rotate", X, ORDER, 4.0, False)),
)
slopes(
    "The gradient of x with two leading axes.",
    in_float32(gradient("rotate", drawn(2, 2, 5, 3, 6), ORDER, 4.0)),
    hidden=True,
)
slopes(
    "The gradients of queries, keys and values.",
    in_float32(gradient("rotary_attention", *QKV, ORDER)),
)
slopes(
    "The gradients of rotary_attention without leading axes.",
    in_float32(gradient("rotary_attention", drawn(4, 2, 8), drawn(4, 2, 8), drawn(4, 2, 5), FOUR)),
    hidden=True,
)


test_any_input = Check(
    "Views and other dtypes work; no loop is needed, and no input is modified.", points=2
)
inputs = test_any_input.case


@inputs(about="views")
def permuted(student, rng):
    """Views whose axes are all permuted."""
    x = rng.randn(4, 3, 5, 2).permute(3, 2, 1, 0)
    return [
        student.rotate(x, ORDER, 4.0).float(),
        student.rotate(x, ORDER, 4.0, interleaved=False).float(),
        student.rotary_attention(x, x, x, ORDER).float(),
    ]


for name, dtype in (("float32", torch.float32), ("bfloat16", torch.bfloat16)):
    inputs(
        f"The rotated x in {name}.",
        output("rotate", drawn(2, 5, 3, 6, dtype=dtype), ORDER, 4.0),
        about="dtype",
        within=(6e-2, 5e-2),
    )
    inputs(
        f"The rotated x in {name} with interleaved=False.",
        output("rotate", drawn(2, 5, 3, 6, dtype=dtype), ORDER, 4.0, interleaved=False),
        about="dtype",
        within=(6e-2, 5e-2),
    )


@inputs(about="dtype")
def double_precision(student, rng):
    """Inputs of 0 in float64, of which the shape and the dtype count."""
    return student.rotate(torch.zeros(2, 5, 3, 6, dtype=torch.float64), ORDER) * 0


for name, dtype in (("float32", torch.float32), ("bfloat16", torch.bfloat16)):

    def shape_and_dtype(student, rng, dtype=dtype):
        return student.rotary_attention(*(each(rng).to(dtype) for each in QKV), ORDER) * 0

    inputs(f"The shape and the dtype of attention in {name}.", shape_and_dtype, about="dtype")


inputs(
    "Two leading axes in bfloat16.",
    output("rotate", drawn(2, 2, 5, 3, 6, dtype=torch.bfloat16), ORDER, 4.0),
    about="dtype",
    within=(6e-2, 5e-2),
    hidden=True,
)
inputs(
    "Attention with two leading axes that were swapped.",
    attended(*(turned(drawn(2, 2, 5, 3, d), 0, 1) for d in (6, 6, 4)), ORDER),
    about="views",
    hidden=True,
)
inputs(
    "Which numbers are others with two leading axes.",
    changed("rotate", drawn(2, 2, 5, 3, 6), ORDER, 4.0),
    about="writes",
    hidden=True,
)
inputs(
    "Which numbers are others after attention without leading axes.",
    changed("rotary_attention", drawn(5, 3, 6), drawn(5, 3, 6), drawn(5, 3, 4), ORDER),
    about="writes",
    hidden=True,
)
inputs("Which numbers are others after a call.", changed("rotate", X, ORDER, 4.0), about="writes")
inputs(
    "Which numbers are others after a call with interleaved=False.",
    changed("rotate", X, ORDER, 4.0, False),
    about="writes",
)
inputs(
    "Which numbers are others after attention.",
    changed("rotary_attention", *QKV, ORDER),
    about="writes",
)


@inputs(tells=False, hidden=True)
def growth(student, rng):
    """The work of a call does not grow with batch items, tokens, heads or columns."""

    def called(batch=2, n_tokens=3, heads=2, d=4):
        x, positions = rng.randn(batch, n_tokens, heads, d), torch.arange(n_tokens)
        return lambda: (
            student.rotate(x, positions),
            student.rotate(x, positions, interleaved=False),
            student.rotary_attention(x, x, x, positions),
            student.rotate(x[:, None], positions),
            student.rotary_attention(x[:, None], x[:, None], x[:, None], positions),
        )

    grown = {
        "batch items": {"batch": (9, 19)},
        "tokens": {"n_tokens": (11, 24)},
        "heads": {"heads": (7, 15)},
        "columns": {"d": (14, 30)},
    }
    assert_vectorised(student, called, grown)
