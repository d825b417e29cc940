"""Probes of grouped-query attention: what tells its mistakes apart."""

import torch

from grader.probing import (
    ACCEPTED,
    Aspect,
    build,
    dropped_weights,
    extremes,
    finite_too,
    gradients,
    often,
    probe,
    seeded,
    share_of_zeros,
    works_elsewhere,
    works_too,
    works_when_new,
    written,
)
from grader.testing import watched

AXES = ("batch item", "token", "feature")  # of an output, in the singular

D_IN, D_OUT, CONTEXT, HEADS, KV_HEADS = 5, 24, 6, 6, 2
FLOAT64 = torch.float64
LAYERS = ("W_query", "W_key", "W_value", "out_proj")
SCORES = Aspect("scores", "what `grouped_scores` returns")
CONTEXTS = Aspect("context", "what `grouped_context` returns")
MEMORY = Aspect("memory", "how much memory is needed at once")


def attention(
    student, rng, *, dropout=0.0, heads=HEADS, kv_heads=KV_HEADS, d_out=D_OUT, dtype=FLOAT64
):
    """Return a module in evaluation mode, whose layers have random parameters."""
    sizes = D_IN, d_out, CONTEXT, dropout, heads, kv_heads
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


@probe(SCORES)
def scores(student, rng):
    """Scores of six heads with two of keys."""
    return student.grouped_scores(*products_of(rng)[:2])


@probe(SCORES)
def scores_of_groups_of_two(student, rng):
    """Scores of six heads with three of keys."""
    return student.grouped_scores(*products_of(rng, kv_heads=3)[:2])


@probe(SCORES)
def scores_of_one_group(student, rng):
    """Scores of six heads with one of keys."""
    return student.grouped_scores(*products_of(rng, kv_heads=1)[:2])


@probe(SCORES)
def scores_without_groups(student, rng):
    """Scores of six heads with six of keys."""
    return student.grouped_scores(*products_of(rng, kv_heads=6)[:2])


@probe(CONTEXTS)
def context(student, rng):
    """The context of six heads with two of values."""
    return student.grouped_context(*products_of(rng)[2:])


@probe(CONTEXTS)
def context_of_groups_of_two(student, rng):
    """The context of six heads with three of values."""
    return student.grouped_context(*products_of(rng, kv_heads=3)[2:])


@probe(CONTEXTS)
def context_of_one_group(student, rng):
    """The context of six heads with one of values."""
    return student.grouped_context(*products_of(rng, kv_heads=1)[2:])


@probe(CONTEXTS)
def context_without_groups(student, rng):
    """The context of six heads with six of values."""
    return student.grouped_context(*products_of(rng, kv_heads=6)[2:])


@probe("values")
def six_heads(student, rng):
    """The class with six heads and two of keys."""
    return attention(student, rng)(rng.randn(2, 4, D_IN))


@probe("values")
def without_groups(student, rng):
    """The class with as many heads of keys as heads."""
    return attention(student, rng, kv_heads=6)(rng.randn(2, 4, D_IN))


@probe("values")
def one_group(student, rng):
    """The class with one head of keys, in a full context."""
    return attention(student, rng, kv_heads=1, d_out=12)(rng.randn(3, CONTEXT, D_IN))


@probe("square")
def square(student, rng):
    """Batch, heads, queries, keys and numbers of one size."""
    sizes = dict.fromkeys(("batch", "heads", "n_queries", "n_keys", "d_head", "d_value"), 4)
    queries, keys, weights, values = products_of(rng, **sizes)
    module = attention(student, rng, heads=4, d_out=8)
    return {
        "scores": student.grouped_scores(queries, keys),
        "context": student.grouped_context(weights, values),
        "output": module(rng.randn(4, 4, D_IN)),
    }


@probe("options")
def evaluated(student, rng):
    """A dropout of a half in evaluation mode."""
    module = attention(student, rng, dropout=0.5)
    with seeded(student, 1):
        return module(rng.randn(2, 4, D_IN))


@probe("layers")
def parameters(student, rng):
    """The shapes of the parameters."""
    shapes = {name: list(each.shape) for name, each in attention(student, rng).named_parameters()}
    others = [shapes.pop(name) for name in list(shapes) if name.partition(".")[0] not in LAYERS]
    sizes = {name: often(*(float(size) for size in shape)) for name, shape in shapes.items()}
    return {**sizes, "others": often(float(len(others)))}


@probe("layers")
def biases(student, rng):
    """Which layers have a bias."""
    names = {name for name, _ in attention(student, rng).named_parameters()}
    return {layer: often(f"{layer}.bias" in names) for layer in LAYERS}


@probe("gradient")
def gradient(student, rng):
    """The gradients of the input and of the parameters."""
    module = attention(student, rng, d_out=12)
    found = gradients(module, rng.randn(2, 4, D_IN))
    return {
        name: value
        for name, value in found.items()
        if not name.startswith("parameter") or name.split()[1].partition(".")[0] in LAYERS
    }


@probe("gradient")
def gradients_of_products(student, rng):
    """The gradients of both products."""
    queries, keys, weights, values = products_of(rng, batch=1, n_queries=2, n_keys=3)
    return {
        "scores": gradients(student.grouped_scores, queries, keys),
        "context": gradients(student.grouped_context, weights, values),
    }


@probe("training")
def in_training(student, rng):
    """Training mode without dropout."""
    return attention(student, rng).train()(rng.randn(2, 4, D_IN))


@probe("training", decides=False)
def dropped(student, rng):
    """The largest and smallest outputs in training with dropout of a half, one head."""
    module = without_out_proj(attention(student, rng, heads=1, kv_heads=1, dropout=0.5)).train()
    return extremes(student, module, rng.randn(1, 4, D_IN), two_keys=module)


@probe("training")
def weights_dropped(student, rng):
    """Which weights of two sentences and heads are dropped together, over 40 draws."""
    made = attention(student, rng, heads=4, kv_heads=2, d_out=16, dropout=0.5)
    module, x = without_out_proj(made, 16).train(), rng.randn(1, 3, D_IN).repeat(2, 1, 1) * 0.5
    values = (x @ module.state_dict()["W_value.weight"].T).unflatten(2, (2, 4))
    values = values.transpose(1, 2).repeat_interleave(2, 1)  # (batch, heads, n_tokens, d_head)
    with seeded(student, 7):
        outputs = torch.stack([module(x) for _ in range(40)]).unflatten(3, (4, 4))
    return dropped_weights(outputs.transpose(2, 3), values, torch.ones(3, 3).tril().bool())


@probe("training")
def share_dropped(student, rng):
    """How often the value of a first token is dropped at a rate of 0.3, one head."""
    module = without_out_proj(attention(student, rng, heads=1, kv_heads=1, dropout=0.3)).train()
    return share_of_zeros(student, lambda x: module(x)[:, 0], rng.randn(1, 2, D_IN))


@probe("extreme scores")
def large(student, rng):
    """Inputs of a hundred."""
    return attention(student, rng)(rng.randn(2, 4, D_IN) * 100)


@probe("extreme scores")
def finite_before_huge_tokens(student, rng):
    """Which outputs are finite before two opposite tokens, a million times as large."""
    module, x = attention(student, rng), rng.randn(2, 5, D_IN)
    ordinary = module(x)
    x[:, 3] *= 1e6
    x[:, 4] = -x[:, 3]
    return finite_too(ordinary, module(x))


@probe("extreme scores")
def far_below_zero(student, rng):
    """Scores with the tokens themselves about -1e4, -1e8 and -1e12, one head."""
    module = without_out_proj(attention(student, rng, heads=1, kv_heads=1))
    W_query = rng.randn(D_OUT, D_IN)
    module.load_state_dict({"W_query.weight": W_query, "W_key.weight": -W_query}, strict=False)
    scales = torch.tensor([1e2, 1e4, 1e6], dtype=FLOAT64).view(3, 1, 1)
    return module(rng.randn(3, 4, D_IN) * scales) / scales


@probe("single")
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


@probe("single")
def one_token(student, rng):
    """One token, and one sentence."""
    module = attention(student, rng)
    return {"token": module(rng.randn(2, 1, D_IN)), "sentence": module(rng.randn(1, 4, D_IN))}


@probe("views")
def transposed(student, rng):
    """Transposed views."""
    inputs = products_of(rng, batch=1, n_queries=3, n_keys=5)
    queries, keys, weights, values = (each.mT.contiguous().mT for each in inputs)
    return {
        "scores": student.grouped_scores(queries, keys),
        "context": student.grouped_context(weights, values),
        "output": attention(student, rng, d_out=12)(rng.randn(4, 2, D_IN).transpose(0, 1)),
    }


@probe("dtype")
def single_precision(student, rng):
    """A module and inputs in float32."""
    sizes = {"batch": 1, "n_queries": 3, "n_keys": 5}
    queries, keys, weights, values = (each.float() for each in products_of(rng, **sizes))
    return {
        "scores": student.grouped_scores(queries, keys),
        "context": student.grouped_context(weights, values),
        "output": attention(student, rng, dtype=torch.float32)(rng.randn(2, 4, D_IN).float()),
    }


@probe("dtype")
def half_precision(student, rng):
    """A module and an input in bfloat16."""
    return attention(student, rng, dtype=torch.bfloat16)(rng.randn(2, 4, D_IN).bfloat16())


@probe("writes")
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


@probe("refusals")
def too_long(student, rng):
    """One token more than the context is long."""
    attention(student, rng)(rng.randn(2, CONTEXT + 1, D_IN))
    return ACCEPTED


@probe("refusals")
def heads_do_not_divide(student, rng):
    """Five heads for 24 features."""
    student.GroupedQueryAttention(D_IN, 24, CONTEXT, 0.0, 5, 1)
    return ACCEPTED


@probe("refusals")
def groups_do_not_divide(student, rng):
    """Four heads of keys for six heads."""
    student.GroupedQueryAttention(D_IN, 24, CONTEXT, 0.0, 6, 4)
    return ACCEPTED


@probe("refusals")
def scores_of_unequal_groups(student, rng):
    """Scores of six heads with four of keys."""
    student.grouped_scores(*products_of(rng, kv_heads=4, n_queries=2)[:2])
    return ACCEPTED


@probe("refusals")
def context_of_unequal_groups(student, rng):
    """The context of six heads with four of values."""
    student.grouped_context(*products_of(rng, kv_heads=4, n_queries=2)[2:])
    return ACCEPTED


@probe(MEMORY)
def memory_of_one_group(student, rng):
    """Whether keys or values of one head are copied to twelve heads."""
    sizes = {"heads": 12, "kv_heads": 1, "n_queries": 1, "n_keys": 400}
    queries, keys, weights, values = products_of(rng, **sizes, d_head=32, d_value=32)
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


@probe("values")
def full_context_works(student, rng):
    """Whether as many tokens work as the context is long."""
    module, x = attention(student, rng), rng.randn(2, CONTEXT, D_IN)
    return works_too(lambda: module(x[:, :-1]), lambda: module(x))


@probe("dtype")
def new_module_works(student, rng):
    """Whether a new module works, in float32."""
    module, x = attention(student, rng), rng.randn(2, 4, D_IN)
    return works_when_new(
        module, lambda: student.GroupedQueryAttention(D_IN, D_OUT, CONTEXT, 0.0, HEADS, KV_HEADS), x
    )


@probe("devices")
def moved(student, rng):
    """Whether a new module works after a move to another device."""
    return works_elsewhere(
        lambda: student.GroupedQueryAttention(D_IN, D_OUT, CONTEXT, 0.5, HEADS, KV_HEADS),
        rng.randn(2, 4, D_IN).float(),
    )
