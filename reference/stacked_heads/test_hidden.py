"""The checks of stacked heads and their cases. The heads are right; only what joins them counts."""

import pytest
import torch

from grader.attention_cases import dropout_cases
from grader.authors import (
    ACCEPTED,
    ROUGH,
    Aspect,
    Check,
    argument_cases,
    assert_close,
    assert_dropped,
    assert_vectorised,
    assert_written_by_hand,
    built,
    changed,
    drawn,
    expect,
    extremes,
    gradient,
    often,
    output,
    output_of,
    parameters,
    reached,
    refused,
    seeded,
    slopes_with_dropout,
    turned,
    twins,
    works_as_well,
    works_when_new,
)

pytestmark = pytest.mark.needs("test_written_by_hand")

AXES = ("batch item", "token", "feature")
CLASS = "StackedHeads"
D_IN, D_OUT, CONTEXT, HEADS = 3, 4, 7, 5
SIZES = D_IN, D_OUT, CONTEXT, 0.0, HEADS
START = Aspect("start", "the numbers that heads start with", is_edge=True)
X = drawn(2, 6, D_IN)


def stacked(*, d_in=D_IN, d_out=D_OUT, context=CONTEXT, dropout=0.0, heads=HEADS, **options):
    """Return what makes a module whose heads have random parameters."""
    return built(CLASS, d_in, d_out, context, dropout, heads, layers=["heads"], **options)


def split(student, module):
    """Return what `split_weights` makes of a module."""
    found = student.split_weights(module)
    expect(isinstance(found, list | tuple), "split_weights does not return three matrices")
    return [each.detach() for each in found]


def split_of(target):
    """Return a case: what `split_weights` makes of a new module."""
    return lambda student, rng: split(student, target(student, rng))


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """The heads are your own modules, not a torch function that does all of it."""
    x = rng.randn(2, 5, D_IN, dtype=torch.float32)
    assert_written_by_hand(
        student,
        lambda: output_of(student.StackedHeads(*SIZES), x),
        lambda: student.split_weights(student.StackedHeads(*SIZES)),
    )


test_heads_side_by_side = Check(
    "The outputs of the heads are joined along the features, in the order of the heads.",
    points=3,
)
values = test_heads_side_by_side.case
values("Five heads of size 4.", output(stacked(), X))
full = stacked(d_in=5, d_out=3, context=4, heads=2)
values("Two heads of size 3 at the full context.", output(full, drawn(3, 4, 5)))
ones = stacked(d_in=2, d_out=1, heads=12)
values("Twelve heads of size 1.", output(ones, drawn(3, 4, 2)))
as_many = output(stacked(d_in=6, d_out=2, heads=3), drawn(2, 4, 6))
values("As many features in the output as in the input.", as_many, about="square")
square = output(stacked(d_in=4, d_out=4, context=4, heads=4), drawn(4, 4, 4))
values("All sizes equal.", square, about="square")
large = output(stacked(), drawn(2, 6, D_IN, times=100.0))
values("Inputs of a hundred.", large, about="extreme scores")
other = stacked(d_in=7, d_out=2, heads=3)
values("Three heads of size 2.", output(other, drawn(4, 3, 7)), hidden=True)


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
biases = parameters(CLASS, *SIZES, True, layers=["heads"])
parts("The shapes of the parameters with biases.", biases)
two = parameters(CLASS, 5, 3, 6, 0.0, 2, qkv_bias=True, layers=["heads"])
parts("The shapes of the parameters of two heads.", two, hidden=True)


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
x = drawn(2, 5, D_IN)
slopes("The gradients of the input and of the parameters.", gradient(stacked(heads=2), x))
dropping = stacked(dropout=0.5, heads=2, training=True)
slopes("What gets a gradient with dropout.", reached(dropping, drawn(8, 4, D_IN)))
biased = gradient(stacked(d_in=4, heads=3, qkv_bias=True, training=True), drawn(3, 4, 4))
slopes("The gradients in training mode, with biases.", biased, hidden=True)


test_options = Check(
    "dropout, context_length and qkv_bias reach the heads, and nothing else is dropped.",
    about="training",
)
options = test_options.case
dropout_cases(
    test_options,
    stacked,
    D_IN,
    heads=HEADS,
    values=lambda state: torch.cat([state[f"heads.{n}.W_value.weight"] for n in range(HEADS)]),
)
options("Heads with biases.", output(stacked(qkv_bias=True), X), about="options")
options("Training mode with dropout of 1.", output(stacked(dropout=1.0, training=True), X))
options("A dropout of a half in evaluation mode.", output(stacked(dropout=0.5), X), about="options")


@options(tells=False, hidden=True)
def each_head_on_its_own(student, rng):
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
full = works_as_well(stacked(), drawn(2, CONTEXT - 1, D_IN), drawn(2, CONTEXT, D_IN))
options("Whether as many tokens work as the context is long.", full, about="values")


test_split_weights = Check(
    "split_weights gives three matrices with the rows of all heads; biases are refused.",
    points=2,
    about=Aspect("split", "what `split_weights` returns"),
)
splitting = test_split_weights.case
splitting("Of twelve heads of size 2.", split_of(stacked(d_out=2, heads=12)))
splitting("Of two heads, with as many features as a token.", split_of(stacked(d_in=4, heads=2)))
splitting("Of one head of size 5.", split_of(stacked(d_out=5, heads=1)), hidden=True)
splitting("Of heads and tokens of one feature.", split_of(stacked(d_in=1, d_out=1)), about="single")


@splitting
def after_split(student, rng):
    """The output in both modes, with dropout of 1, after `split_weights`."""
    modules = [stacked(dropout=1.0, training=each)(student, rng) for each in (False, True)]
    for module in modules:
        student.split_weights(module)
    return [module(rng.randn(2, 6, D_IN)) for module in modules]


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
    return split(student, module)


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
inputs("One feature and heads of size 1.", output(stacked(d_in=1, d_out=1), drawn(2, 6, 1)))
inputs("One of each.", output(stacked(d_out=1, heads=1), drawn(1, 1, D_IN)), hidden=True)
argument_cases(test_any_input, stacked, X)
inputs("The last axes of x are swapped.", output(stacked(), turned(X)), about="views", hidden=True)
inputs(
    "A large view of one sentence, with biases.",
    output(stacked(qkv_bias=True), turned(drawn(1, 6, D_IN, times=1e3))),
    about="views",
    hidden=True,
)
inputs(
    "x after a call with biases.", changed(stacked(qkv_bias=True), X), about="writes", hidden=True
)
inputs(
    "bfloat16 with biases.",
    output(stacked(qkv_bias=True, dtype=torch.bfloat16), drawn(2, 6, D_IN, dtype=torch.bfloat16)),
    about="dtype",
    within=ROUGH,
    hidden=True,
)


@inputs(about="training", hidden=True)
def extremes_with_biases(student, rng):
    """The largest and smallest outputs of a token alone, with biases and a dropout of 0.3."""
    module = stacked(dropout=0.3, qkv_bias=True, training=True)(student, rng)
    return extremes(student, module, rng.randn(1, 1, D_IN))


inputs(
    "The slopes with dropout and biases.",
    slopes_with_dropout(stacked(dropout=0.39, qkv_bias=True, training=True), X),
    about="gradient",
    tells=False,
    hidden=True,
)


@inputs(about="dtype", within=ROUGH)
def converted(student, rng):
    """Modules, inputs and matrices in float32 and bfloat16, and whether a new module works."""
    found = []
    for dtype in (torch.float32, torch.bfloat16):
        module = stacked(dtype=dtype)(student, rng)
        found += [module(rng.randn(2, 6, D_IN, dtype=dtype)), *split(student, module)]
    return found


@inputs(about="dtype")
def new_module_works(student, rng):
    """Whether a new module works, in float32."""
    make = lambda: student.StackedHeads(*SIZES)  # noqa: E731
    return works_when_new(stacked()(student, rng), make, rng.randn(2, 6, D_IN))


test_no_python_loops = Check(
    "No Python loop runs over batch or tokens, nor over the places of a mask."
)


@test_no_python_loops.case(tells=False, hidden=True)
def growth(student, rng):
    """The work of a call does not grow with the number of sentences or tokens."""

    def called(batch=2, n_tokens=3):
        x = rng.randn(batch, n_tokens, D_IN, dtype=torch.float32)
        sizes = D_IN, D_OUT, n_tokens + 1, 0.0, HEADS
        return lambda: [output_of(student.StackedHeads(*sizes, b), x) for b in (False, True)]

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
