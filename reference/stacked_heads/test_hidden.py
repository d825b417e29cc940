"""The checks of stacked heads and their cases. The heads are right; only what joins them counts."""

import functools

import pytest
import torch

from grader.authors import (
    ACCEPTED,
    Aspect,
    Check,
    assert_close,
    assert_dropped,
    assert_vectorised,
    assert_written_by_hand,
    built,
    changed,
    drawn,
    dropped_weights,
    expect,
    extremes,
    gradient,
    gradients,
    often,
    output,
    output_of,
    parameters,
    refused,
    seeded,
    share_of_zeros,
    turned,
    twins,
    without_gradients,
    works_too,
    works_when_new,
)

pytestmark = pytest.mark.needs("test_written_by_hand")

AXES = ("batch item", "token", "feature")
CLASS = "StackedHeads"
D_IN, D_OUT, CONTEXT, HEADS = 3, 4, 7, 5
SIZES = D_IN, D_OUT, CONTEXT, 0.0, HEADS
START = Aspect("start", "the numbers that heads start with", is_edge=True)
FLOAT32, BFLOAT16 = torch.float32, torch.bfloat16
ROUGH = (0.1, 0.1)  # a tolerance for bfloat16
X = drawn(2, 6, D_IN)


def stacked(*, d_in=D_IN, d_out=D_OUT, context=CONTEXT, dropout=0.0, heads=HEADS, **options):
    """Return what makes a module whose heads have random parameters."""
    return built(CLASS, d_in, d_out, context, dropout, heads, layers=["heads"], **options)


def matrices(student, module):
    """Return what `split_weights` makes of a module."""
    found = student.split_weights(module)
    expect(isinstance(found, list | tuple), "split_weights does not return three matrices")
    return [each.detach() for each in found]


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """The heads are your own modules, not a torch function that does all of it."""
    x = rng.randn(2, 5, D_IN, dtype=FLOAT32)
    assert_written_by_hand(
        student,
        lambda: output_of(student.StackedHeads(*SIZES), x),
        lambda: student.split_weights(student.StackedHeads(*SIZES)),
    )


test_heads_side_by_side = Check(
    "The outputs of the heads are joined along the features, in the order of the heads.",
    points=2,
)
values = test_heads_side_by_side.case
values("Five heads of size 4.", output(stacked(), X))
values(
    "Two heads of size 3 at the full context.",
    output(stacked(d_in=5, d_out=3, context=4, heads=2), drawn(3, 4, 5)),
)
values("Twelve heads of size 1.", output(stacked(d_in=2, d_out=1, heads=12), drawn(3, 4, 2)))
values(
    "As many features in the output as in the input.",
    output(stacked(d_in=6, d_out=2, heads=3), drawn(2, 4, 6)),
    about="square",
)
values(
    "All sizes equal.",
    output(stacked(d_in=4, d_out=4, context=4, heads=4), drawn(4, 4, 4)),
    about="square",
)
values(
    "Inputs of a hundred.",
    output(stacked(), drawn(2, 6, D_IN, times=100.0)),
    about="extreme scores",
)
values(
    "Three heads of size 2.", output(stacked(d_in=7, d_out=2, heads=3), drawn(4, 3, 7)), hidden=True
)


@values(about="extreme scores", hidden=True)
def large_values(student, rng):
    """Values of a hundred million."""
    module = stacked(heads=3)(student, rng)
    state = {n: each * 1e8 for n, each in module.state_dict().items() if "W_value" in n}
    module.load_state_dict(state, strict=False)
    return module(rng.randn(2, 5, D_IN)) / 1e8


test_parts = Check(
    "The only parameters are those of the heads, each with its own; qkv_bias adds biases.",
    about="layers",
)
parts = test_parts.case
parts("The shapes of the parameters.", parameters(CLASS, *SIZES, layers=["heads"]))
parts(
    "The shapes of the parameters with biases.",
    parameters(CLASS, *SIZES, True, layers=["heads"]),
)
parts(
    "The shapes of the parameters of two heads.",
    parameters(CLASS, 5, 3, 6, 0.0, 2, qkv_bias=True, layers=["heads"]),
    hidden=True,
)


@parts
def names_in_the_state(student, rng):
    """Whether all weights in the state_dict are those of heads."""
    state = stacked()(student, rng).state_dict()
    return often(all(n.startswith("heads.") for n in state if n.endswith(("weight", "bias"))))


@parts(about=START)
def start(student, rng):
    """Which numbers of other heads are those of the first one at the start."""
    with seeded(student, 4):
        module = student.StackedHeads(*SIZES)
    found = {name: each.detach() for name, each in module.named_parameters()}
    first = found.get("heads.0.W_query.weight", torch.zeros(D_OUT, D_IN))
    others = [found.get(f"heads.{head}.W_query.weight", first + 1) for head in range(1, HEADS)]
    return [each == first if each.shape == first.shape else "another shape" for each in others]


test_gradients = Check(
    "In both modes, gradients reach x and all parameters, and are the slopes of the output.",
    about="gradient",
)
slopes = test_gradients.case
slopes(
    "The gradients of the input and of the parameters.",
    gradient(stacked(heads=2), drawn(2, 5, D_IN)),
)
slopes(
    "The gradients in training mode, with biases.",
    gradient(stacked(d_in=4, heads=3, qkv_bias=True, training=True), drawn(3, 4, 4)),
    hidden=True,
)


@slopes
def reached_in_training(student, rng):
    """Which parameters get gradients in training mode with dropout of a half."""
    module = stacked(dropout=0.5, heads=2, training=True)(student, rng)
    with seeded(student, 10):
        found = gradients(module, rng.randn(8, 4, D_IN))
    return {name: often(torch.is_tensor(g) and bool((g != 0).any())) for name, g in found.items()}


test_options = Check(
    "dropout, context_length and qkv_bias reach the heads, and nothing else is dropped.",
    about="training",
)
options = test_options.case
options("Heads with biases.", output(stacked(qkv_bias=True), X), about="options")
options("Training mode without dropout.", output(stacked(training=True), X))
options("Training mode with dropout of 1.", output(stacked(dropout=1.0, training=True), X))
options(
    "Training mode with dropout of 1, for one token.",
    output(stacked(dropout=1.0, training=True), drawn(4, 1, D_IN)),
)


@options(about="options")
def dropout_in_evaluation(student, rng):
    """Evaluation mode with a dropout rate of a half."""
    module = stacked(dropout=0.5)(student, rng)
    with seeded(student, 3):
        return module(rng.randn(2, 6, D_IN))


@options
def weights_dropped(student, rng):
    """Which weights of two sentences and heads are dropped together, over 40 draws."""
    module = stacked(dropout=0.5, heads=2, training=True)(student, rng)
    x, state = rng.randn(1, 3, D_IN).repeat(2, 1, 1) * 0.5, module.state_dict()
    layers = torch.stack([state[f"heads.{head}.W_value.weight"] for head in range(2)])
    v = (x.unsqueeze(1) @ layers.mT).detach()  # (batch, heads, tokens, d_out)
    with seeded(student, 7):
        outputs = torch.stack([module(x) for _ in range(40)]).unflatten(3, (2, -1))
    return dropped_weights(outputs.transpose(2, 3), v, torch.ones(3, 3).tril().bool())


@options
def share_dropped(student, rng):
    """How often the value of a single token is dropped at a rate of 0.3."""
    module = stacked(dropout=0.3, training=True)(student, rng)
    return share_of_zeros(student, module, rng.randn(1, 1, D_IN))


@options
def single_token_kept(student, rng):
    """The largest and smallest outputs of a single token in training with dropout of a half."""
    module = stacked(dropout=0.5, training=True)(student, rng)
    return extremes(student, module, rng.randn(1, 1, D_IN))


@options(decides=False)
def dropped(student, rng):
    """What is left in training with dropout of a half: the largest and smallest outputs."""
    module = stacked(dropout=0.5, training=True)(student, rng)
    return extremes(student, module, rng.randn(1, 2, D_IN))


@options(tells=False, hidden=True)
def each_on_its_own(student, rng):
    """Whether each of three heads drops its weights at the rate, on its own."""
    module = stacked(dropout=0.39, heads=3, training=True)(student, rng)
    outputs = output_of(module, rng.randn(1, 1, D_IN).repeat(200, 1, 1))
    assert_dropped((outputs == 0).reshape(200, 3, -1).all(-1), 0.39, "weights of the heads")


for sentence, n_tokens, context, training in (
    ("One token more than the context is long.", 8, 7, False),
    ("One token more than the context is long, in training mode.", 8, 7, True),
    ("Two tokens with a context of one.", 2, 1, False),
):
    module = stacked(context=context, training=training)
    options(sentence, refused(module, drawn(2, n_tokens, D_IN)), about="refusals")


@options(about="values")
def full_context_works(student, rng):
    """Whether as many tokens work as the context is long."""
    module, x = stacked()(student, rng), rng.randn(2, CONTEXT, D_IN)
    return works_too(lambda: module(x[:, :-1]), lambda: module(x))


test_split_weights = Check(
    "split_weights gives three matrices with the rows of all heads; biases are refused.",
    about=Aspect("split", "what `split_weights` returns"),
)
splitting = test_split_weights.case
for sentence, sizes in (
    ("The three matrices of twelve heads of size 2.", {"d_out": 2, "heads": 12}),
    ("The three matrices of two heads with as many features as a token.", {"d_in": 4, "heads": 2}),
):
    splitting(
        sentence,
        lambda student, rng, sizes=sizes: matrices(student, stacked(**sizes)(student, rng)),
    )
splitting(
    "The three matrices of a single head of size 5.",
    lambda student, rng: matrices(student, stacked(d_out=5, heads=1)(student, rng)),
    hidden=True,
)
for mode, training in (("evaluation", False), ("training", True)):

    def after_split(student, rng, training=training):
        module = stacked(dropout=1.0, training=training)(student, rng)
        student.split_weights(module)
        return module(rng.randn(2, 6, D_IN))

    splitting(f"The output in {mode} mode, with dropout of 1, after `split_weights`.", after_split)


@splitting
def learns_after_split(student, rng):
    """Whether the parameters need gradients after `split_weights`."""
    module = stacked()(student, rng)
    student.split_weights(module)
    return {name: often(each.requires_grad) for name, each in module.named_parameters()}


@splitting
def split_after_a_change(student, rng):
    """The matrices of heads whose weights have changed since the last call."""
    module = stacked()(student, rng)
    student.split_weights(module)
    state = {name: each + 1 for name, each in module.state_dict().items() if "weight" in name}
    module.load_state_dict(state, strict=False)
    return matrices(student, module)


@splitting(about="single")
def split_of_one(student, rng):
    """The matrices of heads of one feature each, for tokens of one feature."""
    return matrices(student, stacked(d_in=1, d_out=1)(student, rng))


for sentence, times in (("", 1.0), (", which are all 0", 0.0)):

    def split_of_biases(student, rng, times=times):
        module = stacked(qkv_bias=True)(student, rng)
        biases = {n: each * times for n, each in module.state_dict().items() if "bias" in n}
        module.load_state_dict(biases, strict=False)
        student.split_weights(module)
        return ACCEPTED

    splitting(f"`split_weights` of heads with biases{sentence}.", split_of_biases, about="refusals")


test_any_input = Check(
    "Any batch, one token, one head and one feature work; views and dtypes, too; x stays.",
    about="single",
)
inputs = test_any_input.case
inputs("One token.", output(stacked(), drawn(2, 1, D_IN)))
inputs("One sentence.", output(stacked(), drawn(1, 6, D_IN)))
inputs("One head.", output(stacked(heads=1), X))
inputs("Heads of size 1.", output(stacked(d_out=1), X))
inputs("One feature and heads of size 1.", output(stacked(d_in=1, d_out=1), drawn(2, 6, 1)))
inputs("One of each.", output(stacked(d_out=1, heads=1), drawn(1, 1, D_IN)), hidden=True)
inputs("x is a transposed view.", output(stacked(), turned(X, 0, 1)), about="views")
inputs("The last axes of x are swapped.", output(stacked(), turned(X)), about="views", hidden=True)
for sentence, ask in (
    ("evaluation mode", changed(stacked(), X)),
    ("training mode", changed(stacked(training=True), X)),
    ("evaluation mode, without gradients", without_gradients(changed(stacked(), X))),
):
    inputs(f"Which numbers of x are others after a call in {sentence}.", ask, about="writes")


@inputs(about="views")
def transposed_works(student, rng):
    """Whether a transposed x works."""
    module, x = stacked()(student, rng), rng.randn(6, 2, D_IN).transpose(0, 1)
    return works_too(lambda: module(x.contiguous()), lambda: module(x))


for name, dtype in (("float32", FLOAT32), ("bfloat16", BFLOAT16)):

    def converted(student, rng, dtype=dtype):
        module = stacked(dtype=dtype)(student, rng)
        return [module(rng.randn(2, 6, D_IN, dtype=dtype)), *matrices(student, module)]

    within = ROUGH if dtype == BFLOAT16 else None
    inputs(f"A module and an input in {name}.", converted, about="dtype", within=within)


@inputs(about="dtype")
def new_module_works(student, rng):
    """Whether a new module works, in float32."""
    make = functools.partial(student.StackedHeads, *SIZES)
    return works_when_new(stacked()(student, rng), make, rng.randn(2, 6, D_IN))


test_no_python_loops = Check(
    "No Python loop runs over batch or tokens, nor over the places of a mask."
)


@test_no_python_loops.case(tells=False, hidden=True)
def growth(student, rng):
    """The work of a call does not grow with the number of sentences or tokens."""

    def called(batch=2, n_tokens=3):
        x = rng.randn(batch, n_tokens, D_IN, dtype=FLOAT32)
        return lambda: output_of(student.StackedHeads(D_IN, D_OUT, n_tokens + 1, 0.0, HEADS), x)

    grown = {"sentences": {"batch": (9, 19)}, "tokens": {"n_tokens": (14, 31)}}
    assert_vectorised(student, called, grown)


@pytest.mark.own_parts
@pytest.mark.points(0)
def test_on_your_own_attention(student, reference, rng):
    """With your own causal attention, the heads give the same output.

    Guards: the student's earlier exercise works here. A mistake in it has already cost points
    there, so this test is worth none.
    """
    theirs, ours = twins(student.StackedHeads, reference.StackedHeads, *SIZES, rng=rng)
    x = rng.randn(2, 5, D_IN)
    assert_close(output_of(theirs, x), output_of(ours, x))
