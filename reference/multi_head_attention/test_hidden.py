"""The checks of multi-head attention and their cases."""

import functools

import pytest
import torch

from grader.attention_cases import dropout_cases, each_on_its_own, future_cases, identity
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
CLASS = "MultiHeadAttention"
D_IN, D_OUT, CONTEXT, HEADS = 5, 12, 6, 3
SIZES = D_IN, D_OUT, CONTEXT, 0.0, HEADS
LAYERS = ("W_query", "W_key", "W_value", "out_proj")
BFLOAT16 = torch.bfloat16
X = drawn(2, 4, D_IN)


def attention(*, d_in=D_IN, d_out=D_OUT, context=CONTEXT, dropout=0.0, heads=HEADS, **options):
    """Return what makes a module whose four layers have random parameters."""
    return built(CLASS, d_in, d_out, context, dropout, heads, layers=LAYERS, **options)


def plain(*, heads=2, **options):
    """Return what makes a module whose output is that of its heads, side by side."""
    return identity("out_proj", 8, attention(heads=heads, d_out=8, **options))


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """The attention is written by hand, without a torch function that does all of it."""
    x = rng.randn(2, 4, D_IN, dtype=torch.float32)
    assert_written_by_hand(student, lambda: output_of(student.MultiHeadAttention(*SIZES), x))


test_multi_head_attention = Check("The output matches the formula.", points=6)
values = test_multi_head_attention.case
values("Fewer tokens than the context is long.", output(attention(), X))
values("Four heads of three features.", output(attention(heads=4), drawn(2, 5, D_IN)))
square = output(attention(heads=4, d_out=16), drawn(4, 4, D_IN))
values("Batch, tokens and heads of one size.", square, about="square")
values("Heads of size 1.", output(attention(heads=D_OUT), X), about="single")
fives = output(attention(d_in=7, d_out=10, heads=2), drawn(3, 5, 7))
values("Two heads of size 5.", fives, hidden=True)
for size in (1e-6, 1e6):
    values(
        f"Keys times {size:g}, and queries divided by it.",
        output(scaled(attention(), W_query=1 / size, W_key=size, W_value=max(size, 1)), X),
        hidden=True,
        within=(1e-4, 1e-6 * max(size, 1)),  # a softmax in float32 is right
    )


test_not_causal = Check(
    "With causal=False, every token attends to all tokens, as the last one does otherwise.",
    points=3,
    about="options",
)
options = test_not_causal.case
options("Without the causal mask.", output(attention(causal=False), X))
options("With the causal mask by name.", output(attention(causal=True), X))
options("Biases, without the causal mask.", output(attention(qkv_bias=True, causal=False), X))
full = attention(d_in=4, d_out=6, heads=2, context=5, causal=False)
options("Without it, at the full context.", output(full, drawn(3, 5, 4)), hidden=True)


test_gradients = Check(
    "In both modes, gradients reach x and all parameters, and are the slopes of the output.",
    points=3,
    about="gradient",
)
slopes = test_gradients.case
slopes("The gradients of the input and of the parameters.", gradient(attention(), X))
seeing = attention(causal=False, training=True)
slopes("The gradients without the causal mask, in training mode.", gradient(seeing, X))
dropping = attention(dropout=0.39, training=True)
slopes("What gets a gradient with dropout.", reached(dropping, drawn(8, 4, D_IN)))
slopes("The slopes with dropout.", slopes_with_dropout(dropping, X), tells=False)
with_biases = gradient(attention(d_in=4, d_out=6, heads=2, qkv_bias=True), drawn(3, 5, 4))
slopes("The gradients with biases.", with_biases, hidden=True)


test_any_size = Check(
    "A batch of any size, 1 to context_length tokens, one head and one output feature work.",
    points=2,
    about="single",
)
sizes = test_any_size.case
most = output(attention(), drawn(4, CONTEXT, D_IN))
sizes("As many tokens as the context is long.", most, about="values")
sizes("One token.", output(attention(), drawn(2, 1, D_IN)))
sizes("One sentence.", output(attention(), drawn(1, 4, D_IN)))
sizes("One head, with fewer features than tokens.", output(attention(heads=1, d_out=3), X))
sizes("One output feature.", output(attention(heads=1, d_out=1), drawn(3, 5, D_IN)), hidden=True)
sizes("A context of one token.", output(attention(context=1), drawn(2, 1, D_IN)))
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
future_cases(test_future_is_invisible, plain, D_IN)
huge = scaled(attention(d_in=7, d_out=8, heads=2), W_query=1e6, W_key=1e6)
test_future_is_invisible.case("Scores of 1e12.", output(huge, drawn(2, 5, 7)), hidden=True)


test_parts = Check(
    "The only parameters are those of four linear layers; qkv_bias switches three biases on.",
    about="layers",
)
parts = test_parts.case
parts("The shapes of the parameters.", parameters(CLASS, *SIZES, layers=LAYERS))
for how, given, named in (("by name", (), {"qkv_bias": True}), ("by place", (True,), {})):
    shapes = parameters(CLASS, *SIZES, *given, layers=LAYERS, **named)
    parts(f"The shapes of the parameters with biases that are asked for {how}.", shapes)
parts("Layers with biases.", output(attention(qkv_bias=True), X), about="options")
others = output(attention(d_in=4, d_out=6, heads=2, qkv_bias=True), drawn(2, 5, 4))
parts("Layers with biases, of other sizes.", others, about="options", hidden=True)
parts("After a call with other weights.", other_weights(attention(), X), about="values")


test_dropout = Check(
    "In training, each weight is dropped on its own at the rate; the rest are scaled up.",
    points=3,
    about="training",
)
dropout_cases(test_dropout, plain, D_IN, heads=2)
nothing = output(attention(dropout=1.0, training=True), X)
test_dropout.case("Training mode at rate 1.", nothing, tells=False)


@test_dropout.case
def dropped_in_a_head_alone(student, rng):
    """The largest and smallest outputs of a single head for one token, with a dropout of 0.3."""
    module = plain(heads=1, dropout=0.3, training=True)(student, rng)
    return extremes(student, module, rng.randn(1, 1, D_IN))


for heads, causal in ((1, True), (2, True), (2, False)):
    test_dropout.case(
        f"Each weight on its own, with {heads} heads, causal {causal}.",
        each_on_its_own(functools.partial(plain, heads=heads, causal=causal), D_IN, heads=heads),
        tells=False,
        hidden=True,
    )


@test_dropout.case(decides=False)
def dropped_without_the_mask(student, rng):
    """The largest and smallest outputs without the causal mask, with a dropout of 0.3."""
    module, causal = (plain(dropout=0.3, training=True, causal=each) for each in (False, True))
    x = rng.randn(1, 3, D_IN)
    return extremes(student, module(student, rng), x, two_keys=causal(student, rng))


test_nothing_dropped_in_eval_mode = Check(
    "In eval mode nothing is dropped, whatever the rate is.", about="options"
)
evaluation = test_nothing_dropped_in_eval_mode.case


@evaluation
def dropout_in_evaluation(student, rng):
    """Evaluation mode with a dropout rate of a half, and with a rate of 1."""
    module = plain(dropout=0.5)(student, rng)
    found = extremes(student, module, rng.randn(1, 3, D_IN), two_keys=module)
    return found | {"rate 1": attention(dropout=1.0)(student, rng)(rng.randn(2, 4, D_IN))}


trained = after_training(attention(d_in=4, dropout=0.5), drawn(3, 5, 4))
evaluation("Evaluation mode after a call in training mode.", trained, hidden=True)


test_argument = Check("x may be a transposed view, and is not modified.", about="views")
argument_cases(test_argument, attention, X)
test_argument.case("Its last axes are swapped.", output(attention(), turned(X)), hidden=True)


test_moves = Check(
    "`module.to(…)` is enough to move everything to another device or dtype, such as bfloat16.",
    about="dtype",
)
dtype_cases(test_moves, attention, (2, 4, D_IN), CLASS, D_IN, D_OUT, CONTEXT, 0.5, HEADS)
x = drawn(2, 4, D_IN, dtype=BFLOAT16)
seeing = output(attention(dtype=BFLOAT16, causal=False), x)
test_moves.case("bfloat16, without the causal mask.", seeing, within=(0.1, 0.1))
test_moves.case(
    "bfloat16 with biases.",
    output(attention(dtype=BFLOAT16, qkv_bias=True), x),
    within=(0.1, 0.1),
    hidden=True,
)
for shown, options in (
    ("with biases", {"qkv_bias": True}),
    ("without the mask", {"causal": False}),
):
    test_moves.case(
        f"On another device {shown}.",
        moved(
            CLASS,
            D_IN,
            D_OUT,
            CONTEXT,
            0.5,
            HEADS,
            x=drawn(2, 4, D_IN, dtype=torch.float32),
            **options,
        ),
        about="devices",
        hidden=True,
    )
    test_argument.case(
        f"A large view of one sentence {shown}.",
        output(attention(**options), turned(drawn(1, 4, D_IN, times=1e3))),
        hidden=True,
    )
    test_argument.case(
        f"x after a call {shown}.", changed(attention(**options), X), about="writes", hidden=True
    )
    test_dropout.case(
        f"Training without dropout {shown}.",
        output(attention(training=True, **options), X),
        hidden=True,
    )

    @test_dropout.case(f"The extremes of the outputs of a token alone {shown}.", hidden=True)
    def alone(student, rng, options=options):
        module = attention(dropout=0.3, training=True, **options)(student, rng)
        return extremes(student, module, rng.randn(1, 1, D_IN))

    slopes(
        f"The slopes with dropout {shown}.",
        slopes_with_dropout(attention(dropout=0.39, training=True, **options), X),
        tells=False,
        hidden=True,
    )
half = attention(dropout=0.5, dtype=BFLOAT16, training=True)
test_moves.case("bfloat16 in training.", only_dtype(half, x), hidden=True)


test_misuse = Check(
    "More tokens than context_length, and heads that do not divide d_out, are refused.",
    about="refusals",
)
misuses = test_misuse.case
for sentence, n_tokens, module in (
    ("One token more than the context is long.", 7, attention()),
    ("One token too many, in training mode.", 7, attention(training=True)),
    ("One token too many, without the causal mask.", 7, attention(causal=False)),
    ("Two tokens with a context of one.", 2, attention(context=1)),
    ("Two tokens with a context of one, in training.", 2, attention(context=1, training=True)),
):
    misuses(sentence, refused(module, drawn(2, n_tokens, D_IN)))
twice = refused(attention(d_in=4, context=5), drawn(3, 10, 4))
misuses("Twice as many tokens as the context is long.", twice, hidden=True)
for d_out, heads in ((12, 5), (6, 4), (4, 8)):
    misuses(f"{heads} heads, {d_out} features.", refused(CLASS, D_IN, d_out, CONTEXT, 0.0, heads))


test_no_python_loops = Check(
    "No Python loop runs over batch, heads or tokens, nor over the places of the mask."
)


@test_no_python_loops.case(tells=False, hidden=True)
def growth(student, rng):
    """The work of a call does not grow with the number of sentences, tokens or heads."""

    def called(batch=2, n_tokens=4, heads=3, more=0):
        sizes = {"heads": heads, "context": n_tokens + more}
        options = {}, {"qkv_bias": True}, {"causal": False}
        modules = [attention(**sizes, **each)(student, rng) for each in options]
        return lambda: [output_of(each, rng.randn(batch, n_tokens, D_IN)) for each in modules]

    if not works(called()):  # a full context is refused, as another check will say
        called = functools.partial(called, more=1)
    if works(called()):  # else others say so, too
        grown = {"sentences": {"batch": (105, 211)}, "tokens": {"n_tokens": (108, 217)}}
        assert_vectorised(student, called, {**grown, "heads": {"heads": (6, 12)}})
