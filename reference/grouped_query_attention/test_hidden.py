"""The checks of grouped-query attention and their cases."""

import functools

import pytest
import torch

from grader.authors import (
    Aspect,
    Check,
    assert_drawn_anew,
    assert_dropped,
    assert_memory,
    assert_vectorised,
    assert_written_by_hand,
    build,
    dropped_weights,
    extremes,
    finite_too,
    gradients,
    often,
    output_of,
    refused,
    seeded,
    share_of_zeros,
    watched,
    works_elsewhere,
    works_too,
    works_when_new,
    written,
)

pytestmark = pytest.mark.needs("test_written_by_hand")

AXES = ("batch item", "token", "feature")
D_IN, D_OUT, CONTEXT, HEADS, KV_HEADS = 5, 24, 6, 6, 2
FLOAT64 = torch.float64
LAYERS = ("W_query", "W_key", "W_value", "out_proj")
SCORES = Aspect("scores", "what `grouped_scores` returns")
CONTEXTS = Aspect("context", "what `grouped_context` returns")
MEMORY = Aspect("memory", "how much memory is needed at once")
CLASS = "GroupedQueryAttention"


def attention(
    student,
    rng,
    *,
    d_in=D_IN,
    d_out=D_OUT,
    context=CONTEXT,
    dropout=0.0,
    heads=HEADS,
    kv_heads=KV_HEADS,
    dtype=FLOAT64,
):
    """Return a module in evaluation mode, whose layers have random parameters."""
    sizes = d_in, d_out, context, dropout, heads, kv_heads
    return build(student.GroupedQueryAttention, *sizes, rng=rng, dtype=dtype, layers=LAYERS)


def products_of(rng, *, batch=2, heads=6, kv_heads=2, n_queries=5, n_keys=7, d_head=4, d_value=3):
    """Return random queries, keys, weights and values, whose sizes all differ."""
    queries = rng.randn(batch, heads, n_queries, d_head)
    keys = rng.randn(batch, kv_heads, n_keys, d_head)
    weights = rng.randn(batch, heads, n_queries, n_keys)
    return queries, keys, weights, rng.randn(batch, kv_heads, n_keys, d_value)


def without_out_proj(module, size=D_OUT):
    """Return a module after its out_proj was made to change nothing."""
    identity = torch.eye(size, dtype=FLOAT64)
    state = {"out_proj.weight": identity, "out_proj.bias": torch.zeros_like(identity[0])}
    module.load_state_dict(state, strict=False)
    return module


def scores(student, rng, *, factor=1.0, **sizes):
    """Return the scores of random queries and keys."""
    queries, keys, *_ = products_of(rng, **sizes)
    return student.grouped_scores(queries * factor, keys)


def context(student, rng, *, factor=1.0, **sizes):
    """Return the context of random weights and values."""
    *_, weights, values = products_of(rng, **sizes)
    return student.grouped_context(weights, values * factor)


def output(student, rng, *, batch=2, n_tokens=4, factor=1.0, **sizes):
    """Return the output of the class for a random x."""
    return attention(student, rng, **sizes)(rng.randn(batch, n_tokens, D_IN) * factor)


def of(ask, **sizes):
    """Return the case of one of these three, for these sizes."""
    return lambda student, rng: ask(student, rng, **sizes)


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """The attention is written by hand, without a torch function that does all of it.

    Guards: the ban on torch's attention, even if other tests fail for other reasons.
    """
    queries, keys, weights, values = products_of(rng)
    x = rng.randn(2, 5, D_IN).float()
    sizes = D_IN, D_OUT, CONTEXT, 0.0, HEADS, 2
    assert_written_by_hand(
        student,
        lambda: student.grouped_scores(queries, keys),
        lambda: student.grouped_context(weights, values),
        lambda: output_of(student.GroupedQueryAttention(*sizes), x),
    )


test_grouped_scores = Check(
    "grouped_scores multiplies each query with the keys of its group, divided by sqrt(d_head).",
    about=SCORES,
)
test_grouped_context = Check(
    "grouped_context adds up the values of each head's group with the head's weights.",
    about=CONTEXTS,
)
EQUAL = dict.fromkeys(("batch", "heads", "n_queries", "n_keys", "d_head", "d_value"), 4)
for case, ask, name in (
    (test_grouped_scores.case, scores, "Scores"),
    (test_grouped_context.case, context, "The context"),
):
    for kv_heads in (2, 3, 1, 6):
        case(f"{name} of six heads, with groups: {kv_heads}.", of(ask, kv_heads=kv_heads))
    case(f"{name} where all sizes are equal.", of(ask, **EQUAL), about="square")
    for sizes in ({"heads": 8, "kv_heads": 4, "n_queries": 1}, {"heads": 10, "kv_heads": 5}):
        shown = f"{name} of {sizes['heads']} heads, with groups: {sizes['kv_heads']}"
        case(f"{shown}.", of(ask, **sizes), hidden=True)
        case(f"{shown}, times a million.", of(ask, factor=1e6, **sizes), hidden=True)


test_class = Check(
    "The class joins these products to causal attention; its parameters are those stated."
)
values = test_class.case
values("Six heads and two of keys.", of(output))
values("As many heads of keys as heads.", of(output, kv_heads=6))
values(
    "One head of keys, in a full context.",
    of(output, batch=3, n_tokens=CONTEXT, kv_heads=1, d_out=12),
)
values(
    "Batch, heads, tokens and numbers of one size.",
    of(output, batch=4, heads=4, d_out=8),
    about="square",
)
for heads, kv_heads, d_out in ((6, 3, 24), (4, 1, 20), (3, 3, 12), (2, 1, 2)):
    values(
        f"Heads: {heads}, of keys: {kv_heads}, numbers: {d_out}.",
        of(output, n_tokens=5, heads=heads, kv_heads=kv_heads, d_out=d_out),
        hidden=True,
    )


@values(hidden=True)
def zeros_in_x(student, rng):
    """Two tokens of zeros, whose scores of 0 hide nothing."""
    x = rng.randn(3, 5, D_IN)
    x[:, 2:4] = 0
    return attention(student, rng)(x)


@values(about="layers")
def the_parameters(student, rng):
    """The shapes of the parameters."""
    shapes = {name: list(each.shape) for name, each in attention(student, rng).named_parameters()}
    others = [shapes.pop(name) for name in list(shapes) if name.partition(".")[0] not in LAYERS]
    sizes = {name: often(*(float(size) for size in shape)) for name, shape in shapes.items()}
    return {**sizes, "others": often(float(len(others)))}


@values(about="layers")
def biases(student, rng):
    """Which layers have a bias."""
    names = {name for name, _ in attention(student, rng).named_parameters()}
    return {layer: often(f"{layer}.bias" in names) for layer in LAYERS}


def scaled_layers(student, rng, factors):
    """Return the output where the weights of queries, keys and values have other scales."""
    module, rows = attention(student, rng), (D_OUT, 8, 8)
    state = {
        f"{name}.weight": rng.randn(n, D_IN) * factor
        for name, n, factor in zip(LAYERS, rows, factors)
    }
    module.load_state_dict(state, strict=False)
    return module(rng.randn(2, 5, D_IN)) / factors[2]


for sentence, factors in (
    ("Large queries and small keys.", (1e6, 1e-6, 1)),
    ("Small queries and large keys and values.", (1e-6, 1e6, 1e6)),
):
    values(sentence, of(scaled_layers, factors=factors), about="extreme scores", hidden=True)


test_future_is_invisible = Check(
    "Later tokens change no earlier output, whatever the scores are.", about="extreme scores"
)
future = test_future_is_invisible.case
future("Inputs of a hundred.", of(output, factor=100))
future("Large queries and keys.", of(scaled_layers, factors=(1e6, 1e6, 1)), hidden=True)


@future
def finite_before_huge_tokens(student, rng):
    """Which outputs are finite before two opposite tokens, a million times as large."""
    module, x = attention(student, rng), rng.randn(2, 5, D_IN)
    ordinary = module(x)
    x[:, 3] *= 1e6
    x[:, 4] = -x[:, 3]
    return finite_too(ordinary, module(x))


@future
def far_below_zero(student, rng):
    """Scores with the tokens themselves about -1e4, -1e8 and -1e12, one head."""
    module = without_out_proj(attention(student, rng, heads=1, kv_heads=1))
    W_query = rng.randn(D_OUT, D_IN)
    module.load_state_dict({"W_query.weight": W_query, "W_key.weight": -W_query}, strict=False)
    scales = torch.tensor([1e2, 1e4, 1e6], dtype=FLOAT64).view(3, 1, 1)
    return module(rng.randn(3, 4, D_IN) * scales) / scales


for scale in (1.0, 1e3, 1e6):

    def before_a_change(student, rng, scale=scale):
        module, d_head = attention(student, rng), 4
        keys = rng.randn(KV_HEADS, 1, d_head, D_IN)  # whose queries are alike in each group
        queries = keys.expand(-1, HEADS // KV_HEADS, -1, -1).reshape(-1, D_IN)
        state = {"W_query.weight": queries, "W_key.weight": -keys.flatten(0, 2)}
        module.load_state_dict(state, strict=False)
        x = (rng.randn(2, 1, D_IN) * 3 + rng.randn(2, 5, D_IN) * 0.3) * scale
        later = x.clone()
        later[:, 3:] += rng.randn(2, 2, D_IN) * scale * 1e8
        before, after = (module(each)[:, :3] for each in (x, later))
        near = (after - before).abs() <= 1e-5 + 1e-6 * before.abs()
        return near & before.isfinite()

    sentence = f"Which outputs stay at a scale of {scale:g} if later tokens change."
    future(sentence, before_a_change, hidden=True)


test_memory = Check(
    "Keys and values are not copied to all heads, and no Python loop is needed.", about=MEMORY
)
memory = test_memory.case
MANY = {"heads": 12, "n_queries": 1, "n_keys": 400, "d_head": 32, "d_value": 32}


@memory
def memory_of_one_group(student, rng):
    """Whether keys or values of one head are copied to twelve heads."""
    queries, keys, weights, values = products_of(rng, kv_heads=1, **MANY)
    enough = 2 * 12 * 400 * 32 * 8 / 2  # bytes: half of such a copy
    found = {}
    with torch.no_grad():
        for name, (call, *inputs) in {
            "scores": (student.grouped_scores, queries, keys),
            "context": (student.grouped_context, weights, values),
        }.items():
            with watched(student, memory=True) as seen:
                call(*inputs)
            found[name] = often(float(seen.peak > enough))
    return found


@memory(tells=False, hidden=True)
def growth(student, rng):
    """Two heads of keys are not copied, either, and no operations are added for larger axes."""
    enough = 2 * 12 * 400 * 32 * 4 / 2
    for kv_heads in (2, 1):
        sizes = {"num_heads": 12, "num_kv_heads": kv_heads, "n_keys": 400, "d_head": 32}
        inputs = products_of(rng, kv_heads=kv_heads, **MANY)
        queries, keys, weights, values = (each.float() for each in inputs)
        calls = (
            lambda q=queries, k=keys: student.grouped_scores(q, k),
            lambda w=weights, v=values: student.grouped_context(w, v),
        )
        with torch.no_grad():
            for call in calls:
                assert_memory(student, call, enough, sizes)

    def all_three(batch=2, n_queries=3, n_keys=5, heads=6, kv_heads=2):
        sizes = {"batch": batch, "heads": heads, "kv_heads": kv_heads}
        queries, keys, weights, values = products_of(
            rng, n_queries=n_queries, n_keys=n_keys, **sizes
        )
        options = D_IN, heads * 2, n_queries + 3, 0.0, heads, kv_heads
        x = rng.randn(batch, n_queries, D_IN).float()
        return lambda: (
            student.grouped_scores(queries, keys),
            student.grouped_context(weights, values),
            output_of(student.GroupedQueryAttention(*options), x),
        )

    grown = {
        "sentences": {"batch": (7, 15)},
        "queries and tokens": {"n_queries": (13, 27)},
        "keys": {"n_keys": (11, 23)},
        "heads": {"heads": (12, 24)},
        "heads of keys": {"heads": (12, 24), "kv_heads": (6, 12)},
    }
    assert_vectorised(student, all_three, grown)


test_misuse = Check(
    "Heads that do not divide and more tokens than context_length are refused.", about="refusals"
)
misuses = test_misuse.case
for d_out, heads, kv_heads in (
    (24, 5, 1),
    (24, 6, 4),
    (12, 4, 3),
    (12, 2, 4),
    (20, 6, 2),
    (6, 4, 2),
):
    misuses(
        f"Numbers: {d_out}, heads: {heads}, of keys: {kv_heads}.",
        refused(CLASS, D_IN, d_out, CONTEXT, 0.0, heads, kv_heads),
    )
misuses("Nine numbers, four heads.", refused(CLASS, D_IN, 9, CONTEXT, 0.0, 4, 2), hidden=True)
for heads, kv_heads, n_queries in ((6, 4, 2), (6, 4, 12), (4, 3, 12), (2, 4, 12), (3, 2, 12)):
    for name, ask in (("Scores", scores), ("The context", context)):

        def unequal(student, rng, ask=ask, heads=heads, kv_heads=kv_heads, n_queries=n_queries):
            ask(student, rng, heads=heads, kv_heads=kv_heads, n_queries=n_queries)
            return often(True)

        sentence = f"{name} of {heads} heads, with groups: {kv_heads}, and {n_queries} queries."
        misuses(sentence, unequal)
for length, n_tokens, training in (
    (CONTEXT, CONTEXT + 1, False),
    (CONTEXT, 2 * CONTEXT, True),
    (1, 2, False),
):

    def too_long(student, rng, length=length, n_tokens=n_tokens, training=training):
        attention(student, rng, context=length).train(training)(rng.randn(2, n_tokens, D_IN))
        return often(True)

    mode = "training" if training else "evaluation"
    misuses(f"{n_tokens} tokens for a context of {length}, in {mode} mode.", too_long)


@misuses(about="values")
def full_context_works(student, rng):
    """Whether as many tokens work as the context is long."""
    module, x = attention(student, rng), rng.randn(2, CONTEXT, D_IN)
    return works_too(lambda: module(x[:, :-1]), lambda: module(x))


test_training = Check(
    "In training, weights are dropped and nothing else; gradients reach inputs and parameters.",
    about="training",
)
trains = test_training.case
for sentence, training, batch, n_tokens in (
    ("The gradients of the input and of the parameters.", False, 2, 4),
    ("The gradients in training mode, without dropout.", True, 3, 5),
):

    def slopes(student, rng, training=training, batch=batch, n_tokens=n_tokens):
        module = attention(student, rng, d_out=12).train(training)
        found = gradients(module, rng.randn(batch, n_tokens, D_IN))
        return {
            name: value
            for name, value in found.items()
            if not name.startswith("parameter") or name.split()[1].partition(".")[0] in LAYERS
        }

    trains(sentence, slopes, about="gradient")


@trains(about="gradient")
def gradients_of_products(student, rng):
    """The gradients of both products."""
    queries, keys, weights, values = products_of(rng, batch=1, n_queries=2, n_keys=3)
    return {
        "scores": gradients(student.grouped_scores, queries, keys),
        "context": gradients(student.grouped_context, weights, values),
    }


@trains
def in_training(student, rng):
    """Training mode without dropout."""
    return attention(student, rng).train()(rng.randn(2, 4, D_IN))


@trains(about="options")
def evaluated(student, rng):
    """A dropout of a half in evaluation mode."""
    module = attention(student, rng, dropout=0.5)
    with seeded(student, 1):
        return module(rng.randn(2, 4, D_IN))


@trains(decides=False)
def dropped(student, rng):
    """The largest and smallest outputs in training with dropout of a half, one head."""
    module = without_out_proj(attention(student, rng, heads=1, kv_heads=1, dropout=0.5)).train()
    return extremes(student, module, rng.randn(1, 4, D_IN), two_keys=module)


@trains
def weights_dropped(student, rng):
    """Which weights of two sentences and heads are dropped together, over 40 draws."""
    made = attention(student, rng, heads=4, kv_heads=2, d_out=16, dropout=0.5)
    module, x = without_out_proj(made, 16).train(), rng.randn(1, 3, D_IN).repeat(2, 1, 1) * 0.5
    values = (x @ module.state_dict()["W_value.weight"].T).unflatten(2, (2, 4))
    values = values.transpose(1, 2).repeat_interleave(2, 1)  # (batch, heads, n_tokens, d_head)
    with seeded(student, 7):
        outputs = torch.stack([module(x) for _ in range(40)]).unflatten(3, (4, 4))
    return dropped_weights(outputs.transpose(2, 3), values, torch.ones(3, 3).tril().bool())


@trains
def share_dropped(student, rng):
    """How often the value of a first token is dropped at a rate of 0.3, one head."""
    module = without_out_proj(attention(student, rng, heads=1, kv_heads=1, dropout=0.3)).train()
    return share_of_zeros(student, lambda x: module(x)[:, 0], rng.randn(1, 2, D_IN))


@trains
def kept_weight(student, rng):
    """The largest and smallest values of a first token at a rate of 0.3, one head."""
    module = without_out_proj(attention(student, rng, heads=1, kv_heads=1, dropout=0.3)).train()
    return extremes(student, lambda x: module(x)[:, 0], rng.randn(1, 2, D_IN))


@trains(hidden=True)
def all_dropped(student, rng):
    """Training mode with dropout of 1."""
    return attention(student, rng, dropout=1.0).train()(rng.randn(2, 4, D_IN))


@trains(tells=False, hidden=True, within=(1e-4, 1e-4))
def each_on_its_own(student, rng):
    """Each weight is dropped on its own, where all heads have the same values."""
    x, values, rate = rng.randn(1, 5, D_IN) * 0.3, rng.randn(6, D_IN), 0.39

    def weights(rate, draws):
        module = attention(student, rng, d_out=36, dropout=rate).train()
        state = {"W_value.weight": values.repeat(KV_HEADS, 1)}
        without_out_proj(module, 36).load_state_dict(state, strict=False)
        output = module(x.repeat(draws, 1, 1)).detach()
        return output.unflatten(2, (HEADS, 6)).transpose(1, 2) @ torch.linalg.pinv(x @ values.T)

    plain, seen = weights(0.0, 1)[0], weights(rate, 200)
    is_dropped = seen.abs() < plain.abs() / 2
    assert_dropped(is_dropped[:, plain.abs() > 1e-3], rate, "weights")
    return seen.masked_fill(is_dropped, 0.0).amax(0)


@trains(tells=False, hidden=True)
def drawn_anew(student, rng):
    """Other weights are dropped in each call."""
    module = attention(student, rng, dropout=0.39).train()
    assert_drawn_anew(module, rng.randn(2, 5, D_IN).repeat(8, 1, 1))


test_any_input = Check(
    "Sizes of 1, views, dtypes and other devices work, and no input is modified."
)
usable = test_any_input.case


@usable(about="single")
def single(student, rng):
    """One query, one key, one sentence; a value of size 1."""
    queries, keys, weights, values = products_of(rng)
    return {
        "one query": student.grouped_scores(queries[:, :, :1], keys),
        "one key": student.grouped_scores(queries, keys[:, :, :1]),
        "one sentence": student.grouped_scores(queries[:1], keys[:1]),
        "context of one query": student.grouped_context(weights[:, :, :1], values),
        "values of size 1": student.grouped_context(weights, values[..., :1]),
    }


usable("One token.", of(output, n_tokens=1), about="single")
usable("One sentence.", of(output, batch=1), about="single")
usable("Three sentences of a full context.", of(output, batch=3, n_tokens=CONTEXT), hidden=True)
usable(
    "One head of size 1.",
    of(output, batch=1, n_tokens=1, heads=1, kv_heads=1, d_out=1),
    about="single",
    hidden=True,
)
for axes in ((2, 3), (1, 2), (0, 1)):

    def views(student, rng, axes=axes):
        inputs = products_of(rng, batch=2, n_queries=3, n_keys=5)
        queries, keys, weights, values = (
            each.transpose(*axes).contiguous().transpose(*axes) for each in inputs
        )
        return {
            "scores": student.grouped_scores(queries, keys),
            "context": student.grouped_context(weights, values),
            "output": attention(student, rng, d_out=12)(rng.randn(4, 2, D_IN).transpose(0, 1)),
        }

    usable(f"Views whose axes {axes} are swapped.", views, about="views")


@usable(about="views")
def views_work(student, rng):
    """Whether transposed views work."""
    inputs = products_of(rng)
    views = [each.transpose(1, 2).contiguous().transpose(1, 2) for each in inputs]
    module, x = attention(student, rng), rng.randn(4, 2, D_IN)
    return [
        works_too(functools.partial(call, *given), functools.partial(call, *other))
        for call, given, other in (
            (student.grouped_scores, inputs[:2], views[:2]),
            (student.grouped_context, inputs[2:], views[2:]),
            (module, (x,), (x.mT.contiguous().mT,)),
        )
    ]


@usable(about="dtype")
def single_precision(student, rng):
    """A module and inputs in float32."""
    sizes = {"batch": 1, "n_queries": 3, "n_keys": 5}
    queries, keys, weights, values = (each.float() for each in products_of(rng, **sizes))
    return {
        "scores": student.grouped_scores(queries, keys),
        "context": student.grouped_context(weights, values),
        "output": attention(student, rng, dtype=torch.float32)(rng.randn(2, 4, D_IN).float()),
    }


@usable(about="dtype", within=(0.1, 0.1))
def half_precision(student, rng):
    """A module and an input in bfloat16."""
    return attention(student, rng, dtype=torch.bfloat16)(rng.randn(2, 4, D_IN).bfloat16())


@usable(about="dtype")
def products_in_half_precision(student, rng):
    """The dtypes of the products in bfloat16."""
    queries, keys, weights, values = (each.bfloat16() for each in products_of(rng))
    return {
        "scores": torch.zeros_like(student.grouped_scores(queries, keys)),
        "context": torch.zeros_like(student.grouped_context(weights, values)),
    }


@usable(about="dtype", hidden=True)
def half_precision_in_training(student, rng):
    """The dtype of the output in training mode, in bfloat16."""
    module = attention(student, rng, dropout=0.5, dtype=torch.bfloat16).train()
    return torch.zeros_like(module(rng.randn(2, 4, D_IN).bfloat16()))


@usable(about="dtype")
def new_module_works(student, rng):
    """Whether a new module works, in float32."""
    module, x = attention(student, rng), rng.randn(2, 4, D_IN)
    sizes = D_IN, D_OUT, CONTEXT, 0.0, HEADS, KV_HEADS
    return works_when_new(module, lambda: student.GroupedQueryAttention(*sizes), x)


@usable(about="devices")
def moved(student, rng):
    """Whether a new module works after a move to another device."""
    sizes = D_IN, D_OUT, CONTEXT, 0.5, HEADS, KV_HEADS
    x = rng.randn(2, 4, D_IN).float()
    return works_elsewhere(lambda: student.GroupedQueryAttention(*sizes), x)


@usable(about="writes")
def arguments(student, rng):
    """Which numbers of the arguments have changed."""
    queries, keys, weights, values = products_of(rng)
    calls = {
        "scores": (student.grouped_scores, queries, keys),
        "context": (student.grouped_context, weights, values),
        "class": (attention(student, rng), rng.randn(2, 4, D_IN)),
    }
    found = {}
    for name, (call, *inputs) in calls.items():
        before = [each.clone() for each in inputs]
        after = written(student, call, *inputs)
        found[name] = [new != old for new, old in zip(after, before)]
    return found
