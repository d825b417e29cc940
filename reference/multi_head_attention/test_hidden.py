"""The checks of multi-head attention and their cases."""

import functools

import pytest
import torch

from grader.authors import (
    Check,
    assert_close,
    assert_drawn_anew,
    assert_dropped,
    assert_vectorised,
    assert_written_by_hand,
    built,
    changed,
    drawn,
    dropped_weights,
    expect,
    extremes,
    finite_too,
    gradient,
    gradients,
    manual_seed,
    moved,
    often,
    output,
    output_of,
    parameters,
    refused,
    seeded,
    share_of_zeros,
    turned,
    without_gradients,
    works,
    works_too,
    works_when_new,
)

pytestmark = pytest.mark.needs("test_written_by_hand")

AXES = ("batch item", "token", "feature")
CLASS = "MultiHeadAttention"
D_IN, D_OUT, CONTEXT, HEADS = 5, 12, 6, 3
SIZES = D_IN, D_OUT, CONTEXT, 0.0, HEADS
LAYERS = ("W_query", "W_key", "W_value", "out_proj")
FLOAT32, BFLOAT16 = torch.float32, torch.bfloat16
ROUGH = (0.1, 0.1)  # a tolerance for bfloat16
X = drawn(2, 4, D_IN)


def attention(*, d_in=D_IN, d_out=D_OUT, context=CONTEXT, dropout=0.0, heads=HEADS, **options):
    """Return what makes a module whose four layers have random parameters."""
    return built(CLASS, d_in, d_out, context, dropout, heads, layers=LAYERS, **options)


def without_out_proj(*, d_out=D_OUT, **options):
    """Return what makes a module whose out_proj changes nothing."""

    def make(student, rng):
        module = attention(d_out=d_out, **options)(student, rng)
        identity = torch.eye(d_out, dtype=torch.float64)
        state = {"out_proj.weight": identity, "out_proj.bias": torch.zeros_like(identity[0])}
        module.load_state_dict(state, strict=False)
        return module

    return make


def with_token(place, times):
    """Return the recipe of tokens of which one is `times` as large as the others."""
    factors = torch.ones(5, 1, dtype=torch.float64).index_fill(0, torch.tensor(place % 5), times)
    return lambda rng: rng.randn(2, 5, D_IN) * factors


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """The attention is written by hand, without a torch function that does all of it."""
    x = rng.randn(2, 4, D_IN, dtype=FLOAT32)
    assert_written_by_hand(student, lambda: output_of(student.MultiHeadAttention(*SIZES), x))


test_multi_head_attention = Check("The output matches the formula.", points=4)
values = test_multi_head_attention.case
values("Fewer tokens than the context is long.", output(attention(), X))
values("Four heads of three features.", output(attention(heads=4), drawn(2, 5, D_IN)))
values(
    "Batch, tokens and heads of one size.",
    output(attention(heads=4, d_out=16), drawn(4, 4, D_IN)),
    about="square",
)
values("Heads of size 1.", output(attention(heads=D_OUT), X), about="single")
values(
    "Two heads of size 5.",
    output(attention(d_in=7, d_out=10, heads=2), drawn(3, 5, 7)),
    hidden=True,
)


@values(hidden=True)
def other_scales(student, rng):
    """Queries and keys of very different sizes, but ordinary scores."""
    found = []
    for size in (1e-6, 1e6):
        module = attention()(student, rng)
        state, most = module.state_dict(), max(size, 1)
        times = {"W_query.weight": 1 / size, "W_key.weight": size, "W_value.weight": most}
        scaled = {name: state[name] * each for name, each in times.items() if name in state}
        module.load_state_dict(scaled, strict=False)
        found.append(module(rng.randn(2, 4, D_IN)) / most)
    return found


test_not_causal = Check(
    "With causal=False, every token attends to all tokens, as the last one does otherwise.",
    points=2,
    about="options",
)
options = test_not_causal.case
options("Without the causal mask.", output(attention(causal=False), X))
options("With the causal mask by name.", output(attention(causal=True), X))
options("Biases, without the causal mask.", output(attention(qkv_bias=True, causal=False), X))
options(
    "Without the causal mask, at the full context.",
    output(attention(d_in=4, d_out=6, heads=2, context=5, causal=False), drawn(3, 5, 4)),
    hidden=True,
)


test_gradients = Check(
    "In both modes, gradients reach x and all parameters, and are the slopes of the output.",
    points=2,
    about="gradient",
)
slopes = test_gradients.case
slopes("The gradients of the input and of the parameters.", gradient(attention(), X))
slopes(
    "The gradients without the causal mask, in training mode.",
    gradient(attention(causal=False, training=True), X),
)
slopes(
    "The gradients with biases.",
    gradient(attention(d_in=4, d_out=6, heads=2, qkv_bias=True), drawn(3, 5, 4)),
    hidden=True,
)


@slopes
def reached_in_training(student, rng):
    """Which parameters get gradients in training mode with dropout of a half."""
    module, x = attention(dropout=0.5, training=True)(student, rng), rng.randn(8, 4, D_IN)
    with seeded(student, 10):
        found = gradients(module, x)
    return {name: often(torch.is_tensor(g) and bool((g != 0).any())) for name, g in found.items()}


@slopes(tells=False)
def slopes_with_dropout(student, rng):
    """In training with dropout, the gradients of x are the slopes of the output."""
    module = attention(dropout=0.39, training=True)(student, rng)

    def seeded_output(x):
        manual_seed(student, 1)
        return module(x)

    x = rng.randn(2, 4, D_IN).requires_grad_()
    if seeded_output(x).isfinite().all():  # else another check says so
        # Code may compute in float32, so steps are large.
        how = {"eps": 1e-3, "atol": 1e-3, "rtol": 1e-2, "raise_exception": False}
        are_slopes = torch.autograd.gradcheck(seeded_output, x, **how)
        expect(are_slopes, "the gradients are not the slopes of the output")


test_any_size = Check(
    "A batch of any size, 1 to context_length tokens, one head and one output feature work.",
    about="single",
)
sizes = test_any_size.case
sizes(
    "As many tokens as the context is long.", output(attention(), drawn(4, 6, D_IN)), about="values"
)
sizes("One token.", output(attention(), drawn(2, 1, D_IN)))
sizes("A context of one token.", output(attention(context=1), drawn(2, 1, D_IN)))
sizes("One sentence.", output(attention(), drawn(1, 4, D_IN)))
sizes("One sentence of one token.", output(attention(), drawn(1, 1, D_IN)))
sizes("One head, with fewer features than tokens.", output(attention(heads=1, d_out=3), X))
sizes("One output feature.", output(attention(heads=1, d_out=1), drawn(3, 5, D_IN)), hidden=True)


sizes(
    "A token of zeros, whose scores are all 0.",
    output(attention(), with_token(2, 0.0)),
    about="extreme scores",
)


for sentence, one, other in (
    ("Whether fewer tokens work than the context is long.", CONTEXT, CONTEXT - 1),
    ("Whether as many tokens work as the context is long.", CONTEXT - 1, CONTEXT),
):

    def works_with(student, rng, one=one, other=other):
        module, x = attention()(student, rng), rng.randn(2, CONTEXT, D_IN)
        return works_too(lambda: module(x[:, :one]), lambda: module(x[:, :other]))

    sizes(sentence, works_with, about="values")


@sizes(hidden=True)
def growing(student, rng):
    """More tokens after a call with fewer, which a mask of that call does not fit."""
    module, x = attention()(student, rng), rng.randn(3, CONTEXT, D_IN)
    return [module(x[:, :n]) for n in (1, 4, CONTEXT, 2)]


test_future_is_invisible = Check(
    "In both modes, later tokens change no earlier output, whatever the scores are.",
    about="extreme scores",
)
future = test_future_is_invisible.case
future("Inputs of a hundred.", output(attention(), drawn(2, 4, D_IN, times=100.0)))


future(
    "A last token a thousand times as large as the others.",
    output(attention(), with_token(-1, 1e3)),
)


@future
def finite_before_huge_tokens(student, rng):
    """Which outputs are finite before two opposite tokens, a million times as large."""
    module, x = attention()(student, rng), rng.randn(2, 5, D_IN)
    ordinary = module(x)
    x[:, 3] *= 1e6
    x[:, 4] = -x[:, 3]
    return finite_too(ordinary, module(x))


@future
def far_below_zero(student, rng):
    """Scores with the tokens themselves about -1e4, -1e8 and -1e12."""
    module, W_query = without_out_proj()(student, rng), rng.randn(D_OUT, D_IN)
    module.load_state_dict({"W_query.weight": W_query, "W_key.weight": -W_query}, strict=False)
    scales = torch.tensor([1e2, 1e4, 1e6], dtype=torch.float64).view(3, 1, 1)
    return module(rng.randn(3, 4, D_IN) * scales) / scales


@future
def unchanged_before(student, rng):
    """Which outputs stay as they are, in evaluation and in training, if the last token changes."""
    x, found = rng.randn(2, 5, D_IN), []
    after = x.clone()
    after[:, 4] += 1.0
    for training in (False, True):
        module = attention(dropout=0.2, training=training)(student, rng)
        pair = []
        for each in (x, after):
            with seeded(student, 1):
                pair.append(module(each)[:, :4])
        found.append((pair[0] - pair[1]).abs() < 1e-6)
    return found


@future(hidden=True)
def huge_scores(student, rng):
    """Scores of 1e12, in a module of other sizes."""
    module = attention(d_in=7, d_out=8, heads=2)(student, rng)
    huge = {f"{name}.weight": rng.randn(8, 7) * 1e6 for name in LAYERS[:2]}
    module.load_state_dict(huge, strict=False)
    return module(rng.randn(2, 5, 7))


test_parts = Check(
    "The only parameters are those of four linear layers; qkv_bias switches three biases on.",
    about="layers",
)
parts = test_parts.case
parts("The shapes of the parameters.", parameters(CLASS, *SIZES, layers=LAYERS))
parts(
    "The shapes of the parameters with biases.",
    parameters(CLASS, *SIZES, qkv_bias=True, layers=LAYERS),
)
parts(
    "The shapes of the parameters with biases that are asked for by place.",
    parameters(CLASS, *SIZES, True, layers=LAYERS),
)
parts("Layers with biases.", output(attention(qkv_bias=True), X), about="options")
parts(
    "Layers with biases, of other sizes.",
    output(attention(d_in=4, d_out=6, heads=2, qkv_bias=True), drawn(2, 5, 4)),
    about="options",
    hidden=True,
)


@parts(about="values")
def other_weights(student, rng):
    """The output without gradients, after a call with other weights."""
    module, x = attention()(student, rng), rng.randn(2, 5, D_IN)
    state = {n: each for n, each in module.state_dict().items() if n.partition(".")[0] in LAYERS}
    with torch.no_grad():
        module(x)
        module.load_state_dict({name: -each for name, each in state.items()}, strict=False)
        return module(x)


test_dropout = Check(
    "In training, each weight is dropped on its own at the rate; the rest are scaled up.",
    points=2,
    about="training",
)
dropping = test_dropout.case
dropping("Training mode without dropout.", output(attention(training=True), X))
dropping("Training mode at rate 1.", output(attention(dropout=1.0, training=True), X), tells=False)


@dropping
def weights_dropped(student, rng):
    """Which weights of two sentences and heads are dropped together, over 40 draws."""
    module = without_out_proj(heads=2, d_out=8, dropout=0.5, training=True)(student, rng)
    x = rng.randn(1, 3, D_IN).repeat(2, 1, 1) * 0.5
    v = (x @ module.state_dict()["W_value.weight"].T).unflatten(2, (2, 4))
    with seeded(student, 7):
        outputs = torch.stack([module(x) for _ in range(40)]).unflatten(3, (2, 4))
    visible = torch.ones(3, 3).tril().bool()
    return dropped_weights(outputs.transpose(2, 3), v.transpose(1, 2), visible)


@dropping
def share_dropped(student, rng):
    """How often the value of a first token is dropped at a rate of 0.3, one head."""
    module = without_out_proj(heads=1, dropout=0.3, training=True)(student, rng)
    return share_of_zeros(student, lambda x: module(x)[:, 0], rng.randn(1, 2, D_IN))


@dropping
def share_of_single_tokens(student, rng):
    """How often the value of a token alone is dropped at a rate of 0.3, three heads."""
    module = without_out_proj(dropout=0.3, training=True)(student, rng)
    return share_of_zeros(student, module, rng.randn(1, 1, D_IN))


def largest_and_smallest(student, rng, rate, tokens, causal):
    """Return the extremes of the outputs of one sentence and head in training, over many draws."""
    of_one = functools.partial(without_out_proj, heads=1, dropout=rate, training=True)
    module, two_keys = (of_one(causal=each)(student, rng) for each in (causal, True))
    return extremes(student, module, rng.randn(1, tokens, D_IN), two_keys=two_keys)


for sentence, rate, tokens, causal in (
    ("Training mode with dropout of a half, one head.", 0.5, 4, True),
    ("Training mode with a dropout of 0.3, one head, without the causal mask.", 0.3, 3, False),
):
    ask = functools.partial(largest_and_smallest, rate=rate, tokens=tokens, causal=causal)
    dropping(sentence, ask, decides=False)


def weights_in_training(student, rng, rate=0.39):
    """Return weights without dropout and with it in 200 sentences, computed from the outputs."""
    x = rng.randn(1, 3, D_IN).repeat(200, 1, 1) * 0.3  # no more tokens than features of a head
    plain, module = (without_out_proj(dropout=p)(student, rng) for p in (0.0, rate))
    output_of(module, x)  # a call in evaluation mode ends nothing

    def by_head(tensor):
        return tensor.unflatten(-1, (HEADS, -1)).transpose(-3, -2)

    inverse = torch.linalg.pinv(by_head(x[0] @ module.state_dict()["W_value.weight"].T))
    return (by_head(output_of(each.train(), x)) @ inverse for each in (plain, module))


@dropping
def single_token_kept(student, rng):
    """The largest and smallest outputs of a token alone in training with a dropout of 0.3."""
    return extremes(
        student, without_out_proj(dropout=0.3, training=True)(student, rng), rng.randn(1, 1, D_IN)
    )


@dropping(tells=False, hidden=True)
def each_on_its_own(student, rng):
    """Whether each weight is dropped on its own or scaled up, and others in the next call."""
    weights, seen = weights_in_training(student, rng)
    dropped = seen.abs() < weights.abs() / 2
    assert_close(seen, (weights / (1 - 0.39)).masked_fill(dropped, 0.0), "the weights", atol=1e-4)
    assert_dropped(dropped[:, weights[0].abs() > 1e-3], 0.39, "weights")
    assert_drawn_anew(attention(dropout=0.5, training=True)(student, rng), rng.randn(20, 5, D_IN))


test_nothing_dropped_in_eval_mode = Check(
    "In eval mode nothing is dropped, whatever the rate is.", about="options"
)
evaluation = test_nothing_dropped_in_eval_mode.case


@evaluation
def dropout_in_evaluation(student, rng):
    """Evaluation mode with a dropout rate of a half, one head, and with a rate of 1."""
    module = without_out_proj(heads=1, dropout=0.5)(student, rng)
    found = extremes(student, module, rng.randn(1, 3, D_IN), two_keys=module)
    return found | {"rate 1": attention(dropout=1.0)(student, rng)(rng.randn(2, 4, D_IN))}


@evaluation(hidden=True)
def after_training(student, rng):
    """Evaluation mode after a call in training mode."""
    module, x = attention(d_in=4, dropout=0.5)(student, rng), rng.randn(3, 5, 4)
    module.train()(x)
    return module.eval()(x)


test_argument = Check("x may be a transposed view, and is not modified.", about="views")
views = test_argument.case
views("x is a transposed view.", output(attention(), turned(X, 0, 1)))
views("The last axes of x are swapped.", output(attention(), turned(X)), hidden=True)


@views
def transposed_works(student, rng):
    """Whether a transposed x works."""
    module, x = attention()(student, rng), rng.randn(5, 2, D_IN).transpose(0, 1)
    return works_too(lambda: module(x.contiguous()), lambda: module(x))


for sentence, ask in (
    ("evaluation mode", changed(attention(), X)),
    ("training mode", changed(attention(training=True), X)),
    ("evaluation mode, without gradients", without_gradients(changed(attention(), X))),
):
    views(f"Which numbers of x are others after a call in {sentence}.", ask, about="writes")


test_moves = Check(
    "`module.to(…)` is enough to move everything to another device or dtype, such as bfloat16.",
    about="dtype",
)
moves = test_moves.case
moves(
    "A move of a new module to another device.",
    moved(CLASS, D_IN, D_OUT, CONTEXT, 0.5, HEADS, x=drawn(2, 4, D_IN, dtype=FLOAT32)),
    about="devices",
)
moves(
    "A module and an input in float32.",
    output(attention(dtype=FLOAT32), drawn(2, 4, D_IN, dtype=FLOAT32)),
)
for sentence, causal in (("", True), (", without the causal mask", False)):
    moves(
        f"A module and an input in bfloat16{sentence}.",
        output(attention(dtype=BFLOAT16, causal=causal), drawn(2, 4, D_IN, dtype=BFLOAT16)),
        within=ROUGH,
    )


@moves(hidden=True)
def half_precision_in_training(student, rng):
    """The dtype in training mode with dropout, for a module and an input in bfloat16."""
    module = attention(dropout=0.5, dtype=BFLOAT16, training=True)(student, rng)
    return module(rng.randn(2, 4, D_IN, dtype=BFLOAT16)) * 0


@moves
def new_module_works(student, rng):
    """Whether a new module works, in float32."""
    make = functools.partial(student.MultiHeadAttention, *SIZES)
    return works_when_new(attention()(student, rng), make, rng.randn(2, 4, D_IN))


@moves(within=ROUGH)
def converted_after_a_call(student, rng):
    """A module that was converted to bfloat16 after a call in float64."""
    module, x = attention()(student, rng), rng.randn(2, 4, D_IN)
    module(x)
    return module.to(BFLOAT16)(x.bfloat16())


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
misuses(
    "Twice as many tokens as the context is long.",
    refused(attention(d_in=4, context=5), drawn(3, 10, 4)),
    hidden=True,
)
for sentence, d_out, heads in (
    ("Five heads for twelve features.", 12, 5),
    ("Four heads for six features.", 6, 4),
    ("Eight heads for four features.", 4, 8),
):
    misuses(sentence, refused(CLASS, D_IN, d_out, CONTEXT, 0.0, heads))


test_no_python_loops = Check(
    "No Python loop runs over batch, heads or tokens, nor over the places of the mask."
)


@test_no_python_loops.case(tells=False, hidden=True)
def growth(student, rng):
    """The work of a call does not grow with the number of sentences, tokens or heads."""

    def called(batch=2, n_tokens=4, heads=3, more=0):
        x = rng.randn(batch, n_tokens, D_IN)
        module = attention(heads=heads, context=n_tokens + more)
        return lambda: output_of(module(student, rng), x)

    # What does not work for small sizes, such as a full context, other checks report.
    working = [more for more in (0, 1) if works(called(more=more))]
    if working:
        grown = {"batch": (105, 211), "n_tokens": (108, 217), "heads": (6, 12)}
        axes = zip(("sentences", "tokens", "heads"), grown.items())
        larger = {axis: dict([sizes]) for axis, sizes in axes}
        assert_vectorised(student, functools.partial(called, more=working[0]), larger)
