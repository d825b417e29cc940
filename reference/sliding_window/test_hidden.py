"""The checks of attention in a sliding window and their cases."""

import pytest
import torch

from grader.authors import (
    ROUGH,
    Aspect,
    Check,
    assert_linear_memory,
    assert_vectorised,
    assert_written_by_hand,
    changed,
    drawn,
    gradient,
    often,
    output,
    output_of,
    refused,
    turned,
    watched,
)

pytestmark = pytest.mark.needs("test_written_by_hand")

AXES = ("batch item", "head", "token", "feature")
SLIDING = "sliding_attention"
SLOPES = Aspect("slopes", "what `alibi_slopes` returns")
BIAS = Aspect("bias", "the values with slopes")
MEMORY = Aspect("memory", "the memory of a call")
THREE = torch.tensor([0.5, 0.21, 0.06], dtype=torch.float64)


def inputs(batch=2, heads=3, n_tokens=7, d_head=4, **how):
    """Return the recipes of Q, K and V."""
    return [drawn(batch, heads, n_tokens, d_head, **how) for _ in range(3)]


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """The attention is written by hand, without a torch function that does all of it."""
    given = [recipe(rng) for recipe in inputs(dtype=torch.float32)]
    assert_written_by_hand(student, lambda: student.sliding_attention(*given, 3, THREE.float()))


def slopes(*numbers):
    """Return a case: the slopes of these numbers of heads, in float64."""
    return lambda student, rng: [student.alibi_slopes(n).double() for n in numbers]


test_slopes = Check("The slopes of a power of two are 2 ** (-8 * h / num_heads).", about=SLOPES)
test_slopes.case("16 heads.", slopes(16))
test_slopes.case("1, 2, 4 and 8 heads.", slopes(1, 2, 4, 8))
test_slopes.case("32 and 64 heads.", slopes(32, 64), hidden=True)

test_other_slopes = Check(
    "Others have the slopes of the power below, then every second of the next.", about=SLOPES
)
test_other_slopes.case("12 heads.", slopes(12))
test_other_slopes.case("3, 6 and 20 heads.", slopes(3, 6, 20))
test_other_slopes.case("Many heads.", slopes(5, 7, 9, 15, 24, 31, 40), hidden=True)


test_window = Check("Token i attends to itself and the window - 1 tokens before it.", points=4)
window = test_window.case
window("Seven tokens, a window of three.", output(SLIDING, *inputs(), 3))
window("Six tokens, a window of three.", output(SLIDING, *inputs(n_tokens=6), 3))
window(
    "All sizes and the window are four.", output(SLIDING, *inputs(4, 4, 4, 4), 4), about="square"
)
window("A window of two.", output(SLIDING, *inputs(n_tokens=9), 2))
window("Nine tokens, a window of four.", output(SLIDING, *inputs(1, 2, 9, 5), 4), hidden=True)

test_any_size = Check("Any length and any window work.", points=3, about="options")
size = test_any_size.case
for n_tokens, width in ((7, 1), (7, 7), (7, 6), (7, 8), (7, 50), (8, 5), (11, 4)):
    sentence = f"{n_tokens} tokens, a window of {width}."
    size(sentence, output(SLIDING, *inputs(n_tokens=n_tokens), width))
for n_tokens, width in ((10, 3), (5, 4), (13, 13)):
    size(
        f"Length {n_tokens}, window {width}.",
        output(SLIDING, *inputs(n_tokens=n_tokens), width),
        hidden=True,
    )
for shape in ((2, 3, 1, 4), (1, 3, 7, 4), (2, 1, 7, 4), (2, 3, 7, 1)):
    size(f"Q, K and V of shape {shape}.", output(SLIDING, *inputs(*shape), 3), about="single")
    given = output(SLIDING, *inputs(*shape), 3, THREE[: shape[1]])
    size(f"With slopes, of shape {shape}.", given, about="single", hidden=True)


test_bias = Check(
    "With slopes, a score is lowered by the slope times the distance.", points=3, about=BIAS
)
bias = test_bias.case
bias("Three slopes.", output(SLIDING, *inputs(), 3, THREE))
bias("A window as long as the sequence.", output(SLIDING, *inputs(), 7, THREE))
bias("A longer window.", output(SLIDING, *inputs(), 12, THREE))
bias("A window of one.", output(SLIDING, *inputs(), 1, THREE))
bias("As many heads as batch items.", output(SLIDING, *inputs(3), 4, THREE))
bias("Slopes of zero.", output(SLIDING, *inputs(), 3, 0 * THREE))
bias("Slopes of float32.", output(SLIDING, *inputs(), 3, THREE.float()), within=(1e-5, 1e-5))
bias("Steep slopes.", output(SLIDING, *inputs(n_tokens=9), 4, 9 * THREE), hidden=True)


test_large = Check("Scores of any size give right numbers.", about="extreme scores")
large = test_large.case


def loud(place, factor):
    """Return a case: the output, and where it is finite, with one token's key `factor` times."""

    def ask(student, rng):
        Q, K, V = (recipe(rng) for recipe in inputs())
        K[:, :, place] *= factor
        found = [student.sliding_attention(Q, K, V, 3, each) for each in (None, THREE)]
        return found + [each.isfinite() for each in found]

    return ask


large("A first key a million times as large.", loud(0, 1e6))
large("A fourth key a million times as large.", loud(3, 1e6))
large("A fourth key of zeros.", loud(3, 0.0), about="values")
far = [
    lambda rng: rng.rand(2, 3, 7, 4) * 1e2 + 1,
    lambda rng: -rng.rand(2, 3, 7, 4) * 1e2 - 1,
    drawn(2, 3, 7, 4),
]
large("Scores of about -1e4.", output(SLIDING, *far, 3))
large("Scores of about -1e4, with slopes.", output(SLIDING, *far, 3, THREE))
large("Q, K and V times a hundred.", output(SLIDING, *inputs(times=100.0), 4), hidden=True)
large("Q, K and V times a hundred thousand.", output(SLIDING, *inputs(times=1e5), 4), hidden=True)


test_gradients = Check("Gradients reach Q, K, V and slopes.", about="gradient")
test_gradients.case("Without slopes.", gradient(SLIDING, *inputs(), 3))
test_gradients.case("With slopes.", gradient(SLIDING, *inputs(), 3, THREE))
test_gradients.case(
    "A window of five.", gradient(SLIDING, *inputs(1, 3, 9, 5), 5, THREE), hidden=True
)


test_memory = Check(
    "Memory and operations do not grow faster than n_tokens * window.", points=3, about=MEMORY
)


@test_memory.case
def table(student, rng):
    """Whether memory grows with the square of the length, without slopes and with them."""
    given = [recipe(rng) for recipe in inputs(1, 3, 640, 2)]

    def peak(n, with_slopes):
        with torch.no_grad(), watched(student, memory=True) as seen:
            student.sliding_attention(*(x[:, :, :n] for x in given), 4, with_slopes)
        return seen.peak

    return [often(float(peak(640, each) > 5 * peak(160, each))) for each in (None, THREE)]


@test_memory.case(tells=False, hidden=True)
def growth(student, rng):
    """Memory grows with the length alone, and no loop runs over the batch, heads or tokens."""
    x = rng.randn(1, 1, 2400, 2)
    for slope in (None, THREE[:1]):

        def call(n, slope=slope):
            return output_of(student.sliding_attention, *[x[:, :, :n]] * 3, 5, slope)

        assert_linear_memory(student, call, 600, "n_tokens")

    def called(batch=2, heads=3, n_tokens=4):
        given = [recipe(rng) for recipe in inputs(batch, heads, n_tokens)]
        some = rng.rand(heads)
        return lambda: [student.sliding_attention(*given, 4, each) for each in (None, some)]

    grown = {"sentences": {"batch": (105, 211)}, "heads": {"heads": (106, 213)}}
    assert_vectorised(student, called, {**grown, "tokens": {"n_tokens": (108, 217)}})


test_anything = Check("Views and other dtypes work; arguments are not modified.", about="dtype")
anything = test_anything.case
for shown, more in (("without slopes", ()), ("with slopes", (THREE,))):
    views = [turned(each, 1, 2) for each in inputs()]
    anything(
        f"Views of (batch, n_tokens, heads, d_head), {shown}.",
        output(SLIDING, *views, 3, *more),
        about="views",
    )
    views = [turned(each) for each in inputs(1, times=1e3)]
    anything(
        f"Large views, {shown}.", output(SLIDING, *views, 3, *more), about="views", hidden=True
    )
    anything(
        f"Which numbers have changed, {shown}.",
        changed(SLIDING, *inputs(), 3, *more),
        about="writes",
    )
    for dtype, within in ((torch.float32, (1e-4, 1e-4)), (torch.bfloat16, ROUGH)):
        given, steep = inputs(dtype=dtype), [each.to(dtype) for each in more]
        anything(f"{dtype}, {shown}.", output(SLIDING, *given, 3, *steep), within=within)
mixed = output(SLIDING, *inputs(dtype=torch.bfloat16), 3, THREE)
anything("Q, K and V in bfloat16, slopes in float64.", mixed, within=ROUGH)
mixed = output(SLIDING, *inputs(dtype=torch.float32), 3, THREE)
anything("Q, K and V in float32, slopes in float64.", mixed, within=(1e-4, 1e-4), hidden=True)


test_misuse = Check("A window below 1 is refused.", about="refusals")
for width in (0, -1, -5):
    test_misuse.case(f"A window of {width}.", refused(SLIDING, *inputs(), width))
test_misuse.case(
    "A window of -2, with slopes.", refused(SLIDING, *inputs(), -2, THREE), hidden=True
)
