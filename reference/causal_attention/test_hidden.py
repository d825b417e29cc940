"""The checks of causal attention and their cases."""

import functools

import pytest
import torch

from grader.attention_cases import dropout_cases, each_on_its_own, future_cases
from grader.authors import (
    Check,
    after_training,
    argument_cases,
    assert_vectorised,
    assert_written_by_hand,
    built,
    changed,
    drawn,
    dtype_cases,
    extremes,
    gradient,
    in_turn,
    moved,
    only_dtype,
    other_weights,
    output,
    output_of,
    parameters,
    reached,
    refused,
    scaled,
    slopes_with_dropout,
    turned,
    works,
    works_as_well,
)

pytestmark = pytest.mark.needs("test_written_by_hand")

AXES = ("batch item", "token", "feature")
CLASS = "CausalAttention"
D_IN, D_OUT, CONTEXT = 3, 6, 7
SIZES = D_IN, D_OUT, CONTEXT
LAYERS = ("W_query", "W_key", "W_value")
BFLOAT16 = torch.bfloat16
X = drawn(2, 5, D_IN)


def attention(*options, sizes=SIZES, dropout=0.0, **how):
    """Return what makes a module whose three layers have random parameters."""
    return built(CLASS, *sizes, dropout, *options, layers=LAYERS, **how)


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """The attention is written by hand, without a torch function that does all of it."""
    x = rng.randn(2, 5, D_IN, dtype=torch.float32)
    assert_written_by_hand(student, lambda: output_of(student.CausalAttention(*SIZES, 0.0), x))


test_causal_attention = Check("The output matches the formula.", points=5)
values = test_causal_attention.case
values("Fewer tokens than the context is long.", output(attention(), X))
values("Fewer output than input features.", output(attention(sizes=(7, 2, 9)), drawn(5, 6, 7)))
square = attention(sizes=(4, 4, 4))
values("Batch, tokens and features of one size.", output(square, drawn(4, 4, 4)), about="square")
values("Eight output features.", output(attention(sizes=(4, 8, 6)), drawn(2, 5, 4)), hidden=True)
for size in (1e-6, 1e6):
    values(
        f"Keys times {size:g}, and queries divided by it.",
        output(scaled(attention(), W_query=1 / size, W_key=size, W_value=max(size, 1)), X),
        hidden=True,
        within=(1e-4, 1e-6 * max(size, 1)),  # a softmax in float32 is right
    )


test_gradients = Check(
    "In both modes, gradients reach x and all parameters, and are the slopes of the output.",
    points=2,
    about="gradient",
)
slopes = test_gradients.case
slopes("The gradients of the input and of the parameters.", gradient(attention(), X))
slopes("The gradients in training mode without dropout.", gradient(attention(training=True), X))
dropping = attention(dropout=0.39, training=True)
slopes("What gets a gradient with dropout.", reached(dropping, drawn(8, 4, D_IN)))
slopes("The slopes with dropout.", slopes_with_dropout(dropping, drawn(2, 4, D_IN)), tells=False)
slopes(
    "Training with biases and without dropout.",
    output(attention(True, training=True), X),
    about="training",
    hidden=True,
)


@slopes(about="training", hidden=True)
def extremes_with_biases(student, rng):
    """The largest and smallest outputs of a token alone, with biases and a dropout of 0.3."""
    module = attention(True, dropout=0.3, training=True)(student, rng)
    return extremes(student, module, rng.randn(1, 1, D_IN))


slopes(
    "The slopes with dropout and biases.",
    slopes_with_dropout(attention(True, dropout=0.39, training=True), X),
    tells=False,
    hidden=True,
)
with_biases = attention(True, sizes=(4, 5, 6))
slopes("The gradients with biases.", gradient(with_biases, drawn(3, 4, 4)), hidden=True)


test_any_size = Check(
    "A batch of any size, 1 to context_length tokens and one output feature work.",
    about="single",
)
sizes = test_any_size.case
full = output(attention(sizes=(5, 4, 6)), drawn(3, 6, 5))
sizes("As many tokens as the context is long.", full, about="values")
sizes("One token.", output(attention(sizes=(D_IN, 12, CONTEXT)), drawn(2, 1, D_IN)))
sizes("One sentence.", output(attention(), drawn(1, 5, D_IN)))
sizes("A single output feature.", output(attention(sizes=(D_IN, 1, CONTEXT)), drawn(3, 5, D_IN)))
sizes("A context of one token.", output(attention(sizes=(4, 5, 1)), drawn(3, 1, 4)), hidden=True)
sizes(
    "A token of zeros, whose scores are all 0.",
    output(attention(), lambda rng: X(rng).index_fill(1, torch.tensor(2), 0.0)),
    about="extreme scores",
)
for sentence, one, other in (
    ("Whether fewer tokens work than the context is long.", CONTEXT, CONTEXT - 1),
    ("Whether as many tokens work as the context is long.", CONTEXT - 1, CONTEXT),
):
    ask = works_as_well(attention(), drawn(2, one, D_IN), drawn(2, other, D_IN))
    sizes(sentence, ask, about="values")
growing = in_turn(attention(), *(drawn(3, n, D_IN) for n in (1, 4, CONTEXT, 2)))
sizes("Calls with more tokens than those before.", growing, hidden=True)


test_future_is_invisible = Check(
    "In both modes, later tokens change no earlier output, whatever the scores are.",
    points=2,
    about="extreme scores",
)
future_cases(test_future_is_invisible, attention, D_IN)
huge = scaled(attention(sizes=(7, 4, 6)), W_query=1e6, W_key=1e6)
test_future_is_invisible.case("Scores of 1e12.", output(huge, drawn(2, 5, 7)), hidden=True)


test_parts = Check(
    "The only parameters are those of three linear layers; qkv_bias switches their biases on.",
    about="layers",
)
parts = test_parts.case
parts("The shapes of the parameters.", parameters(CLASS, *SIZES, 0.0, layers=LAYERS))
biased = parameters(CLASS, *SIZES, 0.0, True, layers=LAYERS)
parts("The shapes of the parameters with biases.", biased)
parts("Layers with biases.", output(attention(True), X), about="options")
by_name = output(attention(sizes=(4, 5, 6), qkv_bias=True), drawn(2, 4, 4))
parts("Layers with biases, of other sizes.", by_name, about="options", hidden=True)
parts("After a call with other weights.", other_weights(attention(), X), about="values")


test_dropout = Check(
    "In training, each weight is dropped on its own at the rate; the rest are scaled up.",
    points=3,
    about="training",
)
dropout_cases(test_dropout, attention, D_IN)
nothing = output(attention(dropout=1.0, training=True), X)
test_dropout.case("Training mode at rate 1.", nothing, tells=False)
on_its_own = each_on_its_own(attention, D_IN)
test_dropout.case("Each weight on its own.", on_its_own, tells=False, hidden=True)


test_nothing_dropped_in_eval_mode = Check(
    "In eval mode nothing is dropped, whatever the rate is.", about="options"
)
evaluation = test_nothing_dropped_in_eval_mode.case


@evaluation
def dropout_in_evaluation(student, rng):
    """Evaluation mode with a dropout rate of a half, and with a rate of 1."""
    module = attention(dropout=0.5)(student, rng)
    found = extremes(student, module, rng.randn(1, 3, D_IN), two_keys=module)
    return found | {"rate 1": attention(dropout=1.0)(student, rng)(rng.randn(2, 5, D_IN))}


trained = after_training(attention(sizes=(4, 5, 6), dropout=0.5), drawn(3, 4, 4))
evaluation("Evaluation mode after a call in training mode.", trained, hidden=True)


test_argument = Check("x may be a transposed view, and is not modified.", about="views")
argument_cases(test_argument, attention, X)
test_argument.case("Its last axes are swapped.", output(attention(), turned(X)), hidden=True)
test_argument.case(
    "A large view of one sentence, with biases.",
    output(attention(True), turned(drawn(1, 5, D_IN, times=1e3))),
    hidden=True,
)
test_argument.case(
    "x after a call with biases.", changed(attention(True), X), about="writes", hidden=True
)


test_moves = Check(
    "`module.to(…)` is enough to move everything to another device or dtype, such as bfloat16.",
    about="dtype",
)
dtype_cases(test_moves, attention, (2, 5, D_IN), CLASS, *SIZES, 0.5)
half = attention(dropout=0.5, dtype=BFLOAT16, training=True)
test_moves.case(
    "bfloat16 with biases.",
    output(attention(True, dtype=BFLOAT16), drawn(2, 5, D_IN, dtype=BFLOAT16)),
    within=(0.1, 0.1),
    hidden=True,
)
test_moves.case(
    "Biases on another device.",
    moved(CLASS, *SIZES, 0.5, True, x=drawn(2, 5, D_IN, dtype=torch.float32)),
    about="devices",
    hidden=True,
)
test_moves.case(
    "bfloat16 in training.", only_dtype(half, drawn(2, 4, D_IN, dtype=BFLOAT16)), hidden=True
)


test_too_many_tokens = Check(
    "More tokens than context_length are refused, in both modes.", about="refusals"
)
misuses = test_too_many_tokens.case
for with_, training in (("", False), (", in training mode", True)):
    one = attention(sizes=(D_IN, D_OUT, 1), training=training)
    many = refused(attention(training=training), drawn(2, CONTEXT + 1, D_IN))
    misuses(f"One token more than the context is long{with_}.", many)
    misuses(f"Two tokens with a context of one{with_}.", refused(one, drawn(2, 2, D_IN)))
twice = refused(attention(sizes=(4, 5, 6)), drawn(3, 12, 4))
misuses("Twice as many tokens as the context is long.", twice, hidden=True)


test_no_python_loops = Check(
    "No Python loop runs over batch or tokens, nor over the places of the mask."
)


@test_no_python_loops.case(tells=False, hidden=True)
def growth(student, rng):
    """The work of a call does not grow with the number of sentences or tokens."""

    def called(batch=2, n_tokens=3, more=0):
        sizes = D_IN, D_OUT, n_tokens + more
        modules = [attention(bias, sizes=sizes)(student, rng) for bias in (False, True)]
        return lambda: [output_of(each, rng.randn(batch, n_tokens, D_IN)) for each in modules]

    if not works(called()):  # a full context is refused, as another check will say
        called = functools.partial(called, more=1)
    grown = {"sentences": {"batch": (105, 211)}, "tokens": {"n_tokens": (108, 217)}}
    assert_vectorised(student, called, grown)
