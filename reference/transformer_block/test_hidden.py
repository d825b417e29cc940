"""The checks of the Transformer block and their cases."""

import pytest
import torch

from grader.authors import (
    Check,
    argument_cases,
    assert_close,
    assert_dropped,
    assert_vectorised,
    assert_written_by_hand,
    build,
    built,
    changed,
    drawn,
    drops_anew,
    extremes,
    filled,
    gradient,
    load_parameters,
    often,
    only_dtype,
    output,
    output_of,
    parameters,
    refused,
    turned,
    twins,
    without_gradients,
    works_as_well,
    works_when_new,
)

pytestmark = pytest.mark.needs("test_written_by_hand")

AXES = ("batch item", "token", "feature")
B, N, D, HEADS, D_FF, CONTEXT = 2, 4, 6, 3, 5, 7
BLOCK, SIZES = "TransformerBlock", (D, HEADS, D_FF, CONTEXT)
PARTS = ("attention.", "feed_forward.", "norm1.", "norm2.")
ORDERS = (("pre-norm", True), ("post-norm", False))
x = drawn(B, N, D)


def block(**options):
    """Return what makes a block of the usual sizes."""
    return built(BLOCK, *SIZES, **options)


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """The block is wired by hand, without one of torch's Transformer layers."""
    tokens = rng.randn(B, N, D, dtype=torch.float32)
    assert_written_by_hand(student, lambda: output_of(student.TransformerBlock(*SIZES), tokens))


test_parts = Check(
    "The block has the parts attention, feed_forward, norm1, norm2, and no other parameters.",
    about="layers",
)
test_parts.case("The shapes of the parameters.", parameters(BLOCK, *SIZES))
test_parts.case("The shapes for other sizes.", parameters(BLOCK, 4, 2, 9, 3, 0.5), hidden=True)


@test_parts.case
def saved(student, rng):
    """How many names of the state_dict belong to no part of the block."""
    names = student.TransformerBlock(*SIZES).state_dict()
    return often(float(sum(not name.startswith(PARTS) for name in names)))


test_pre_norm = Check(
    "norm_first=True, the default: x + attention(norm1(x)), then x + feed_forward(norm2(x)).",
    points=2,
)
test_post_norm = Check(
    "norm_first=False: norm1(x + attention(x)), then norm2(x + feed_forward(x)).",
    points=2,
    about="post-norm",
)
pre_norm, post_norm = test_pre_norm.case, test_post_norm.case
after = block(norm_first=False)
pre_norm("Pre-norm.", output(block(), x))
pre_norm("Pre-norm at the full context.", output(block(), drawn(3, CONTEXT, D)))
pre_norm("Pre-norm with norm_first=True.", output(block(norm_first=True), x), about="options")
pre_norm("All sizes equal.", output(built(BLOCK, 4, 4, 4, 4), drawn(4, 4, 4)), about="square")
post_norm("Post-norm.", output(after, x))
post_norm("Post-norm at the full context.", output(after, drawn(3, CONTEXT, D)))
others = built(BLOCK, 8, 2, 3, 9, norm_first=False)
post_norm("Post-norm, other sizes.", output(others, drawn(3, 6, 8, times=0.3)), hidden=True)
one = output(built(BLOCK, 1, 1, 9, 9), drawn(B, 5, 1))
pre_norm("One feature.", one, about="single", hidden=True)
thousand = output(block(), drawn(B, N, D, times=1e3))
pre_norm("Inputs of a thousand.", thousand, about="extreme scores")


LAST = ("attention.out_proj", "feed_forward.linear2")  # the last layers of the two sub-layers
LARGE = {f"{layer}.bias": torch.full((D,), 1e4, dtype=torch.float64) for layer in LAST}
for order, norm_first in ORDERS:
    case, made = pre_norm if norm_first else post_norm, block(norm_first=norm_first)
    case(f"One token, {order}.", output(made, drawn(B, 1, D)), about="single")
    case(f"One sentence, {order}.", output(made, drawn(1, N, D)), about="single")
    for sentence, ask in (
        (f"Inputs of a million, {order}.", output(made, drawn(1, N, D, times=1e6))),
        (f"Sub-layers that add ten thousand, {order}.", output(filled(made, LARGE), x)),
    ):
        case(sentence, ask, about="extreme scores", hidden=True)


test_gradients = Check(
    "In both orders, gradients reach x and all parameters, and are the slopes of the output.",
    about="gradient",
)
for order, norm_first in ORDERS:
    slopes = test_gradients.case
    slopes(f"The gradients, {order}.", gradient(block(norm_first=norm_first), x))
    slopes(
        f"The gradients in training mode, {order}.",
        gradient(built(BLOCK, 4, 1, 3, 6, norm_first=norm_first, training=True), drawn(3, 5, 4)),
        hidden=True,
    )


test_dropout = Check(
    "Training drops the outputs of both sub-layers before they are added, never x itself.",
    points=1,
    about="training",
)
training = test_dropout.case


def silenced(block, *layers):
    """Return a block in training mode, whose parameters that are called so are zero."""
    state = {n: 0 * value for n, value in block.state_dict().items() if n.startswith(layers)}
    return load_parameters(block, state).train()


def small(student, rng, norm_first):
    """Return a block with so few features that each combination of dropped ones comes up."""
    return build(student.TransformerBlock, 3, 1, 2, 4, 0.5, norm_first, rng=rng)


def most_and_least(norm_first, *silent):
    """Return a case: the extremes where some parameters are zero, so that little is dropped."""

    def ask(student, rng):
        module = silenced(small(student, rng, norm_first), *silent)
        return extremes(student, module, rng.randn(1, 2, 3))

    return ask


def next_call(make):
    """Return a case: whether the next call drops other values."""
    return lambda student, rng: drops_anew(student, make(student, rng), rng.randn(B, N, D))


for order, norm_first in ORDERS:
    default = block(norm_first=norm_first, training=True)
    some, half, all_ = (
        block(norm_first=norm_first, dropout=rate, training=True) for rate in (0.25, 0.5, 1.0)
    )
    training(f"Training mode with the default rate, {order}.", output(default, x))
    training(f"Training mode with dropout of 1, {order}.", output(all_, x))
    training(f"The next call drops other values, {order}.", next_call(half))
    training(f"Dropout of a quarter, {order}.", output(some, x), decides=False)
    for layer, other in (LAST, LAST[::-1]):  # one adds its last bias, the other zeros
        ask = most_and_least(norm_first, f"{layer}.weight", other)
        training(f"The extremes, {layer}, {order}.", ask)
    some, all_ = (block(norm_first=norm_first, dropout=rate) for rate in (0.4, 1.0))
    training(f"Evaluation with dropout of 0.4, {order}.", output(some, x), about="options")
    training(f"Evaluation with dropout of 1, {order}.", output(all_, x), about="options")


@training
def both_dropped(student, rng):
    """The extremes where both sub-layers add biases, of opposite signs, with dropout of 0.3."""
    module = silenced(build(student.TransformerBlock, *SIZES, 0.3, rng=rng), *LAST)
    biases = {f"{layer}.bias": sign * torch.ones(D) for layer, sign in zip(LAST, (1.0, -0.5))}
    return extremes(student, load_parameters(module, biases).train(), rng.randn(1, 3, D))


@test_dropout.case(tells=False, hidden=True)
def each_value_at_the_rate(student, rng):
    """Each value that attention or feed_forward adds is dropped on its own at a rate of 0.37."""
    tokens = torch.zeros(200, N, D, dtype=torch.float64)
    for layer in LAST:
        module = silenced(build(student.TransformerBlock, *SIZES, 0.37, rng=rng), *LAST)
        module = load_parameters(module, {f"{layer}.bias": torch.full((D,), 0.63)}).train()
        added = output_of(module, tokens)
        assert_close(added, added.round().clamp(0, 1), f"what {layer} adds, 0.63 / (1 - 0.37) or 0")
        assert_dropped(added < 0.5, 0.37, f"values of the output of {layer}")


test_parts_get_the_dropout = Check(
    "attention and feed_forward are built with the dropout rate and drop values inside.",
    about="training",
)
inside = test_parts_get_the_dropout.case
for layer, other in (LAST, LAST[::-1]):  # one drops values inside, the other adds zeros
    inside(f"The extremes inside {layer}.", most_and_least(True, other))
    inside(f"Inside {layer}, post-norm.", most_and_least(False, other), hidden=True)


test_causal = Check(
    "causal decides whether tokens attend to later ones, in both orders; it is on by default.",
    about="options",
)
for order, norm_first in ORDERS:
    seeing, causal = (block(norm_first=norm_first, causal=each) for each in (False, True))
    test_causal.case(f"Without the causal mask, {order}.", output(seeing, x))
    test_causal.case(f"With causal=True, {order}.", output(causal, x), hidden=True)
without_mask = block(causal=False)
for sentence, ask, about in (
    ("The gradients", gradient(without_mask, x), "gradient"),
    ("A large view", output(without_mask, turned(drawn(1, N, D, times=1e6))), "views"),
    ("x after a call", changed(without_mask, x), "writes"),
    ("Dropout of 1", output(block(causal=False, dropout=1.0, training=True), x), "training"),
):
    test_causal.case(f"{sentence} without the causal mask.", ask, about=about, hidden=True)
test_causal.case(
    "bfloat16 without the causal mask.",
    output(block(causal=False, dtype=torch.bfloat16), drawn(B, N, D, dtype=torch.bfloat16)),
    about="dtype",
    within=(0.1, 0.3),
    hidden=True,
)


@test_causal.case(about="training", hidden=True)
def extremes_without_the_mask(student, rng):
    """The extremes without the causal mask where attention adds biases, with dropout of a half."""
    module = build(student.TransformerBlock, 3, 1, 2, 4, 0.5, True, False, rng=rng)
    silent = silenced(module, "attention.out_proj.weight", "feed_forward.linear2")
    return extremes(student, silent, rng.randn(1, 2, 3))


test_context_length = Check("Up to context_length tokens are accepted; more are refused.")
long = drawn(B, CONTEXT + 1, D)
for causal in (True, False):
    refusals = test_context_length.case
    evaluating, training = (block(causal=causal, training=mode) for mode in (False, True))
    shown = f"One token too many, with causal={causal}"
    refusals(f"{shown}.", refused(evaluating, long), about="refusals")
    refusals(f"{shown}, in training.", refused(training, long), about="refusals", hidden=True)
    refusals(
        f"A context of three, causal={causal}.",
        refused(built(BLOCK, D, HEADS, D_FF, 3, causal=causal), x),
        about="refusals",
        hidden=True,
    )


full = works_as_well(block(), drawn(B, CONTEXT - 1, D), drawn(B, CONTEXT, D))
test_context_length.case("Whether a full context works.", full, about="options")


test_argument = Check("x may be a transposed view, and is not modified.", about="views")
argument_cases(test_argument, block, x)
test_argument.case("x after a call, post-norm.", changed(after, x), about="writes")
ask = without_gradients(changed(after, x))
test_argument.case("x after a call without gradients, post-norm.", ask, about="writes")
view = output(after, turned(drawn(3, N, D)))
test_argument.case("x is another view, post-norm.", view, hidden=True)


test_dtype = Check(
    "`block.to(dtype)` is enough to compute in another dtype; the output has the dtype of x.",
    about="dtype",
)
for name, dtype, within in (
    ("float32", torch.float32, (1e-3, 1e-3)),
    ("bfloat16", torch.bfloat16, (0.1, 0.3)),
):
    for order, norm_first in ORDERS:
        made, tokens = block(norm_first=norm_first, dtype=dtype), drawn(B, N, D, dtype=dtype)
        test_dtype.case(f"{name}, {order}.", output(made, tokens), within=within)
        test_dtype.case(
            f"The dtype of {name} in training, {order}.",
            only_dtype(
                block(norm_first=norm_first, dropout=0.5, dtype=dtype, training=True), tokens
            ),
            hidden=True,
        )


@test_dtype.case
def new_module_works(student, rng):
    """Whether a new module works, in float32."""
    made = student.TransformerBlock
    return works_when_new(block()(student, rng), lambda: made(*SIZES), rng.randn(B, N, D))


test_no_python_loops = Check(
    "No Python loop runs over batch or tokens, nor over the places of the mask."
)


@test_no_python_loops.case(tells=False, hidden=True)
def growth(student, rng):
    """The work of a call does not grow with the number of sentences or tokens."""
    for options in ({}, {"norm_first": False}, {"causal": False}):

        def called(batch=2, n_tokens=3, options=options):
            sizes = D, HEADS, n_tokens + 2, n_tokens + 1
            module = student.TransformerBlock(*sizes, **options)
            return lambda: output_of(module, rng.randn(batch, n_tokens, D).float())

        grown = {"sentences": {"batch": (105, 211)}, "tokens": {"n_tokens": (108, 217)}}
        assert_vectorised(student, called, grown)


for shape in ((105, 3, D), (2, 108, D)):
    test_no_python_loops.case(
        f"x of shape {shape}.",
        output(built(BLOCK, D, HEADS, D_FF, 110), drawn(*shape)),
        hidden=True,
    )


@pytest.mark.own_parts
@pytest.mark.points(0)
def test_on_your_own_parts(student, reference, rng):
    """With your own attention, norm and feed-forward, the block gives the same output."""
    theirs, ours = twins(student.TransformerBlock, reference.TransformerBlock, *SIZES, rng=rng)
    tokens = rng.randn(B, N, D)
    assert_close(output_of(theirs, tokens), output_of(ours, tokens))
