"""The checks of grouped-query attention and their cases."""

import functools

import pytest
import torch

from grader.attention_cases import dropout_cases, each_on_its_own, future_cases, identity
from grader.authors import (
    Aspect,
    Check,
    argument_cases,
    assert_memory,
    assert_vectorised,
    assert_written_by_hand,
    built,
    changed,
    drawn,
    dtype_cases,
    gradient,
    often,
    only_dtype,
    output,
    output_of,
    parameters,
    reached,
    refused,
    scaled,
    turned,
    watched,
    works_as_well,
)

pytestmark = pytest.mark.needs("test_written_by_hand")

AXES = ("batch item", "token", "feature")
CLASS = "GroupedQueryAttention"
D_IN, D_OUT, CONTEXT, HEADS, KV_HEADS = 5, 24, 6, 6, 2
LAYERS = ("W_query", "W_key", "W_value", "out_proj")
FLOAT32, BFLOAT16 = torch.float32, torch.bfloat16
SCORES, WEIGHTED = FUNCTIONS = "grouped_scores", "grouped_context"
MEMORY = Aspect("memory", "how much memory is needed at once")
X = drawn(2, 4, D_IN)


def attention(
    *, d_out=D_OUT, context=CONTEXT, dropout=0.0, heads=HEADS, kv_heads=KV_HEADS, **options
):
    """Return what makes a module, whose layers have random parameters."""
    return built(CLASS, D_IN, d_out, context, dropout, heads, kv_heads, layers=LAYERS, **options)


def one_head(**options):
    """Return what makes a module with one head of keys for one of queries."""
    return identity("out_proj", 8, attention(d_out=8, heads=1, kv_heads=1, **options))


def four_heads(**options):
    """Return what makes a module of two groups, which returns what its four heads give."""
    return identity("out_proj", 20, attention(d_out=20, heads=4, **options))


def shared_values(state):
    """Return the rows of all four heads that make values, two of which are the same."""
    return state["W_value.weight"].unflatten(0, (2, 5)).repeat_interleave(2, 0).flatten(0, 1)


def operands(
    name, *, batch=2, heads=6, kv_heads=2, n_queries=4, n_keys=5, d_head=7, d_value=3, **how
):
    """Return the recipes of queries and keys, or of weights and values, whose sizes all differ."""
    left, right = ((n_queries, d_head), (n_keys, d_head))
    if name == WEIGHTED:
        left, right = (n_queries, n_keys), (n_keys, d_value)
    return drawn(batch, heads, *left, **how), drawn(batch, kv_heads, *right, **how)


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """The attention is written by hand, without a torch function that does all of it.

    Guards: the ban on torch's attention, even if other tests fail for other reasons.
    """
    sizes = D_IN, D_OUT, CONTEXT, 0.0, HEADS, KV_HEADS
    assert_written_by_hand(
        student,
        lambda: output(SCORES, *operands(SCORES))(student, rng),
        lambda: output(WEIGHTED, *operands(WEIGHTED))(student, rng),
        lambda: output_of(student.GroupedQueryAttention(*sizes), rng.randn(2, 5, D_IN).float()),
    )


test_grouped_scores = Check(
    "grouped_scores multiplies each query with the keys of its group, divided by sqrt(d_head).",
    points=3,
    about=Aspect("scores", "what `grouped_scores` returns"),
)
test_grouped_context = Check(
    "grouped_context adds up the values of each head's group with the head's weights.",
    points=3,
    about=Aspect("context", "what `grouped_context` returns"),
)
EQUAL = dict.fromkeys(("batch", "heads", "n_queries", "n_keys", "d_head", "d_value"), 4)
for case, name in ((test_grouped_scores.case, SCORES), (test_grouped_context.case, WEIGHTED)):
    for kv_heads in (2, 3, 1, 6):
        ask = output(name, *operands(name, kv_heads=kv_heads))
        case(f"{name} of six heads, with groups: {kv_heads}.", ask)
    equal = output(name, *operands(name, **EQUAL))
    case(f"{name} where all sizes are equal.", equal, about="square")
    for sizes in ({"heads": 8, "kv_heads": 4, "n_queries": 1}, {"heads": 10, "kv_heads": 5}):
        case(
            f"{name} of {sizes['heads']} heads, a thousand times as large.",
            output(name, *operands(name, times=1e3, **sizes)),
            hidden=True,
        )


test_class = Check(
    "The class joins these products to causal attention; its parameters are those stated.", points=3
)
values = test_class.case
values("Six heads and two of keys.", output(attention(), X))
values("As many heads of keys as heads.", output(attention(kv_heads=6), X))
one = output(attention(kv_heads=1, d_out=12), drawn(3, CONTEXT, D_IN))
values("One head of keys, in a full context.", one)
square = output(attention(heads=4, d_out=8), drawn(4, 4, D_IN))
values("Batch, heads, tokens and numbers of one size.", square, about="square")
for heads, kv_heads, d_out in ((6, 3, 24), (4, 1, 20), (3, 3, 12), (2, 1, 2)):
    values(
        f"Heads: {heads}, of keys: {kv_heads}, numbers: {d_out}.",
        output(attention(heads=heads, kv_heads=kv_heads, d_out=d_out), drawn(2, 5, D_IN)),
        hidden=True,
    )
zeros = output(attention(), lambda rng: X(rng).index_fill(1, torch.tensor([1, 2]), 0.0))
values("Two tokens of zeros, whose scores of 0 hide nothing.", zeros, hidden=True)
sizes = D_IN, D_OUT, CONTEXT, 0.0, HEADS, KV_HEADS
shapes = parameters(CLASS, *sizes, layers=LAYERS)
values("The shapes of the parameters.", shapes, about="layers")
for query, key, value in ((1e6, 1e-6, 1), (1e-6, 1e6, 1e6)):
    values(
        f"Queries times {query:g}, keys times {key:g}, values times {value:g}.",
        output(scaled(attention(), W_query=query, W_key=key, W_value=value), X),
        about="extreme scores",
        hidden=True,
        within=(1e-4, 1e-6 * value),  # a softmax in float32 is right
    )


test_future_is_invisible = Check(
    "Later tokens change no earlier output, whatever the scores are.",
    points=2,
    about="extreme scores",
)
future = test_future_is_invisible.case
future_cases(test_future_is_invisible, one_head, D_IN)
huge = output(scaled(attention(), W_query=1e6, W_key=1e6), drawn(2, 5, D_IN))
future("Scores of 1e12.", huge, hidden=True)


@future(hidden=True)
def before_a_change(student, rng):
    """Which outputs stay if later tokens change, at several scales, where groups have one query."""
    found = []
    for scale in (1.0, 1e3, 1e6):
        module, keys = attention()(student, rng), rng.randn(KV_HEADS, 1, 4, D_IN)
        queries = keys.expand(-1, HEADS // KV_HEADS, -1, -1).reshape(-1, D_IN)
        state = {"W_query.weight": queries, "W_key.weight": -keys.flatten(0, 2)}
        module.load_state_dict(state, strict=False)
        x = (rng.randn(2, 1, D_IN) * 3 + rng.randn(2, 5, D_IN) * 0.3) * scale
        later = x.clone()
        later[:, 3:] += rng.randn(2, 2, D_IN) * scale * 1e8
        one, other = (module(each)[:, :3] for each in (x, later))
        found.append(((one - other).abs() <= 1e-5 + 1e-6 * one.abs()) & one.isfinite())
    return found


test_memory = Check(
    "Keys and values are not copied to all heads, and no Python loop is needed.",
    points=2,
    about=MEMORY,
)
memory = test_memory.case
MANY = {"heads": 12, "n_queries": 1, "n_keys": 400, "d_head": 32, "d_value": 32}
COPY = 2 * 12 * 400 * 32  # numbers in a copy of the keys to all heads


def call_of(student, rng, name, **sizes):
    """Return a call of a function with random operands."""
    given = [recipe(rng) for recipe in operands(name, **sizes)]
    return functools.partial(getattr(student, name), *given)


@memory
def memory_of_one_group(student, rng):
    """Whether keys or values of one head are copied to twelve heads."""
    found = {}
    for name in FUNCTIONS:
        call = call_of(student, rng, name, kv_heads=1, **MANY)
        with torch.no_grad(), watched(student, memory=True) as seen:
            call()
        found[name] = often(float(seen.peak > 8 * COPY / 2))
    return found


@memory(tells=False, hidden=True)
def memory_of_two_groups(student, rng):
    """Two heads of keys are not copied, either."""
    for kv_heads in (2, 1):
        sizes = {"num_heads": 12, "num_kv_heads": kv_heads, "n_keys": 400, "d_head": 32}
        for name in FUNCTIONS:
            call = call_of(student, rng, name, kv_heads=kv_heads, dtype=FLOAT32, **MANY)
            with torch.no_grad():
                assert_memory(student, call, 4 * COPY / 2, sizes)


@memory(tells=False, hidden=True)
def growth(student, rng):
    """No operations are added for larger axes."""

    def all_three(n_queries=3, heads=6, kv_heads=2, **sizes):
        sizes |= {"n_queries": n_queries, "heads": heads, "kv_heads": kv_heads}
        both = [call_of(student, rng, name, **sizes) for name in FUNCTIONS]
        options = D_IN, heads * 2, n_queries + 3, 0.0, heads, kv_heads
        module = student.GroupedQueryAttention(*options)
        x = rng.randn(sizes.get("batch", 2), n_queries, D_IN).float()
        return lambda: (*(call() for call in both), output_of(module, x))

    grown = {
        "sentences": {"batch": (7, 15)},
        "queries and tokens": {"n_queries": (13, 27)},
        "keys": {"n_keys": (11, 23)},
        "heads": {"heads": (12, 24)},
        "heads of keys": {"heads": (12, 24), "kv_heads": (6, 12)},
    }
    assert_vectorised(student, all_three, grown)


test_misuse = Check(
    "Heads that do not divide and more tokens than context_length are refused.",
    points=2,
    about="refusals",
)
misuses = test_misuse.case
for d_out, heads, kv_heads in ((24, 5, 1), (24, 6, 4), (12, 4, 3), (12, 2, 4), (20, 6, 2)):
    ask = refused(CLASS, D_IN, d_out, CONTEXT, 0.0, heads, kv_heads)
    misuses(f"Numbers: {d_out}, heads: {heads}, of keys: {kv_heads}.", ask)
misuses("Nine numbers, four heads.", refused(CLASS, D_IN, 9, CONTEXT, 0.0, 4, 2), hidden=True)
for heads, kv_heads, n_queries in ((6, 4, 2), (6, 4, 12), (4, 3, 12), (2, 4, 12)):
    for name in FUNCTIONS:
        given = operands(name, heads=heads, kv_heads=kv_heads, n_queries=n_queries)
        sentence = f"{name} of {heads} heads, with groups: {kv_heads}, and {n_queries} queries."
        misuses(sentence, refused(name, *given))
for length, n_tokens, training in ((6, 7, False), (6, 12, True), (1, 2, False)):
    ask = refused(attention(context=length, training=training), drawn(2, n_tokens, D_IN))
    misuses(f"{n_tokens} tokens for a context of {length}, training {training}.", ask)
full = works_as_well(attention(), drawn(2, CONTEXT - 1, D_IN), drawn(2, CONTEXT, D_IN))
misuses("Whether as many tokens work as the context is long.", full, about="values")


test_training = Check(
    "In training, weights are dropped and nothing else; gradients reach inputs and parameters.",
    points=2,
    about="training",
)
trains = test_training.case
ask = gradient(attention(d_out=12), X)
trains("The gradients of the input and of the parameters.", ask, about="gradient")
ask = gradient(attention(d_out=12, training=True), drawn(3, 5, D_IN))
trains("The gradients in training mode, without dropout.", ask, about="gradient")
for name in FUNCTIONS:
    ask = gradient(name, *operands(name, batch=1, n_queries=2, n_keys=3))
    trains(f"The gradients of {name}.", ask, about="gradient")
ask = reached(attention(dropout=0.4, training=True), drawn(8, 4, D_IN))
trains("What gets a gradient with dropout.", ask, about="gradient")
dropout_cases(test_training, four_heads, D_IN, heads=4, values=shared_values)
ask = output(attention(dropout=0.5), X)
trains("A dropout of a half in evaluation mode.", ask, about="options")
trains(
    "Training mode with dropout of 1.",
    output(attention(dropout=1.0, training=True), X),
    hidden=True,
)


@trains
def after_evaluation(student, rng):
    """Training mode with dropout of 1, after a call in evaluation mode."""
    made, x = attention(dropout=1.0)(student, rng), X(rng)
    made(x)
    return made.train()(x)


ask = each_on_its_own(four_heads, D_IN, heads=4, values=shared_values, n_tokens=4)
trains("Each weight on its own.", ask, tells=False, hidden=True)


test_any_input = Check(
    "Sizes of 1, views, dtypes and other devices work, and no input is modified.", points=2
)
usable = test_any_input.case
for name in FUNCTIONS:
    for size in ("n_queries", "n_keys", "batch", "d_value"):
        ask = output(name, *operands(name, **{size: 1}))
        usable(f"{name} where {size} is 1.", ask, about="single")
    for axes in ((2, 3), (1, 2), (0, 1)):
        views = [turned(each, *axes) for each in operands(name, n_queries=3, n_keys=5)]
        usable(
            f"{name} of views whose axes {axes} are swapped.", output(name, *views), about="views"
        )
    views = [turned(each, 1, 2) for each in operands(name)]
    ask = works_as_well(name, [*operands(name)], views)
    usable(f"Whether views work in {name}.", ask, about="views")
    ask = output(name, *operands(name, batch=1, dtype=FLOAT32))
    usable(f"{name} in float32.", ask, about="dtype")
    ask = only_dtype(name, *operands(name, dtype=BFLOAT16))
    usable(f"The dtype of {name} in bfloat16.", ask, about="dtype")
    usable(f"What {name} changes.", changed(name, *operands(name)), about="writes")
usable("One token.", output(attention(), drawn(2, 1, D_IN)), about="single")
usable("One sentence.", output(attention(), drawn(1, 4, D_IN)), about="single")
usable(
    "One head of size 1.",
    output(attention(heads=1, kv_heads=1, d_out=1), drawn(1, 1, D_IN)),
    about="single",
    hidden=True,
)
argument_cases(test_any_input, attention, X)
sizes = D_IN, D_OUT, CONTEXT, 0.5, HEADS, KV_HEADS
dtype_cases(test_any_input, attention, (2, 4, D_IN), CLASS, *sizes)
half = attention(dropout=0.5, dtype=BFLOAT16, training=True)
usable(
    "bfloat16 in training.",
    only_dtype(half, drawn(2, 4, D_IN, dtype=BFLOAT16)),
    about="dtype",
    hidden=True,
)
