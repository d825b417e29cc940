"""Probes of attention with a cache: what tells its mistakes apart."""

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

D_IN, D_OUT, CONTEXT, HEADS = 5, 12, 40, 3
SHORT = 6  # a context that is exceeded; in the long one, even tokens that are cached twice fit
FLOAT64 = torch.float64
CHUNKS = Aspect("chunks", "the values with a cache")
CACHE = Aspect("cache", "what the cache holds")


def attention(
    student,
    rng,
    *,
    dropout=0.0,
    heads=HEADS,
    d_out=D_OUT,
    context=CONTEXT,
    dtype=FLOAT64,
    **options,
):
    """Return a module in evaluation mode with random parameters."""
    sizes = D_IN, d_out, context, dropout, heads
    return build(student.CachedAttention, *sizes, rng=rng, dtype=dtype, **options)


def random_cache(rng, *, batch=2, n_cached=3, heads=HEADS, d_head=4, dtype=FLOAT64):
    """Return random keys and values, (batch, heads, n_cached, d_head) each."""
    return tuple(rng.randn(batch, heads, n_cached, d_head, dtype=dtype) for _ in range(2))


def in_chunks(module, x, chunks):
    """Return the outputs of all chunks, and the last cache."""
    outputs, cache = [], None
    for chunk in x.split(chunks, dim=1):
        output, cache = module(chunk.clone(), cache)
        outputs.append(output)
    return outputs, list(cache)


@probe("values")
def whole_sequence(student, rng):
    """A sequence in one call, without a cache."""
    return attention(student, rng)(rng.randn(2, 4, D_IN))[0]


@probe("values")
def biases(student, rng):
    """Layers with biases, without a cache."""
    return attention(student, rng, qkv_bias=True)(rng.randn(2, 4, D_IN))[0]


@probe(CHUNKS)
def one_by_one(student, rng):
    """One token after the other."""
    outputs, _ = in_chunks(attention(student, rng), rng.randn(2, 4, D_IN), 1)
    return outputs


@probe(CHUNKS)
def two_chunks(student, rng):
    """A chunk of two tokens, then one of three."""
    outputs, _ = in_chunks(attention(student, rng), rng.randn(2, 5, D_IN), [2, 3])
    return outputs


@probe(CHUNKS)
def equal_chunks(student, rng):
    """Two chunks of two tokens each, one sentence and one head."""
    module = attention(student, rng, heads=1, d_out=4)
    outputs, _ = in_chunks(module, rng.randn(1, 4, D_IN), 2)
    return outputs


@probe(CHUNKS)
def longer_cache(student, rng):
    """Sixteen tokens of one sentence in five chunks."""
    return in_chunks(attention(student, rng), rng.randn(1, 16, D_IN), [5, 4, 4, 1, 2])[0]


@probe(CHUNKS)
def given_cache(student, rng):
    """Three new tokens and a given cache of three, one sentence."""
    cache = random_cache(rng, batch=1)
    return attention(student, rng)(rng.randn(1, 3, D_IN), cache)[0]


@probe(CHUNKS)
def given_cache_and_one_token(student, rng):
    """One new token and a given cache of three."""
    return attention(student, rng)(rng.randn(2, 1, D_IN), random_cache(rng))[0]


@probe("square")
def square(student, rng):
    """Batch, tokens, cached tokens and heads of one size, for a given cache."""
    module = build(student.CachedAttention, D_IN, 9, CONTEXT, 0.0, 3, rng=rng)
    cache = random_cache(rng, batch=3, d_head=3)
    output, cache = module(rng.randn(3, 3, D_IN), cache)
    return {"output": output, "keys": cache[0], "values": cache[1]}


@probe("square")
def as_many_tokens_as_heads(student, rng):
    """As many tokens in each chunk as heads."""
    outputs, cache = in_chunks(attention(student, rng), rng.randn(1, 6, D_IN), 3)
    return {"outputs": outputs, "cache": cache}


@probe(CACHE)
def first_cache(student, rng):
    """The cache after a first chunk."""
    return list(attention(student, rng)(rng.randn(2, 4, D_IN))[1])


@probe(CACHE)
def later_cache(student, rng):
    """The cache after three new tokens and a given cache of three."""
    return list(attention(student, rng)(rng.randn(2, 2, D_IN), random_cache(rng))[1])


@probe(CACHE)
def cache_of_three_chunks(student, rng):
    """The cache after three chunks."""
    return in_chunks(attention(student, rng), rng.randn(2, 5, D_IN), [2, 1, 2])[1]


@probe(CACHE)
def longer_cache_kept(student, rng):
    """The cache after five chunks of sixteen tokens together, one sentence."""
    return in_chunks(attention(student, rng), rng.randn(1, 16, D_IN), [5, 4, 4, 1, 2])[1]


@probe("options")
def second_sequence(student, rng):
    """A second sequence, without a cache."""
    module, x = attention(student, rng), rng.randn(2, 3, D_IN)
    module(rng.randn(2, 2, D_IN))
    output, cache = module(x)
    return {"output": output, "keys": cache[0], "values": cache[1]}


@probe("options")
def evaluated(student, rng):
    """A dropout of a half in evaluation mode, with a cache."""
    module = attention(student, rng, dropout=0.5)
    with seeded(student, 1):
        return module(rng.randn(2, 2, D_IN), random_cache(rng))[0]


@probe("layers")
def parameters(student, rng):
    """The shapes of the parameters."""
    found = attention(student, rng, qkv_bias=True).named_parameters()
    return {name: often(*(float(size) for size in each.shape)) for name, each in found}


@probe("gradient")
def gradient(student, rng):
    """The gradients of x and of the parameters, with a given cache."""
    module, cache = attention(student, rng, d_out=6), random_cache(rng, d_head=2)
    found = gradients(lambda x: module(x, cache)[0], rng.randn(2, 3, D_IN))
    return found | {name: p.grad for name, p in module.named_parameters()}


@probe("gradient")
def gradient_without_cache(student, rng):
    """The gradients of x and of the parameters, without a cache."""
    module = attention(student, rng, d_out=6)
    found = gradients(lambda x: module(x)[0], rng.randn(2, 3, D_IN))
    return found | {name: p.grad for name, p in module.named_parameters()}


def without_out_proj(module, size):
    """Return a module after its out_proj was made to change nothing."""
    identity = torch.eye(size, dtype=FLOAT64)
    state = {"out_proj.weight": identity, "out_proj.bias": torch.zeros_like(identity[0])}
    module.load_state_dict(state, strict=False)
    return module


@probe("training")
def in_training(student, rng):
    """Training mode without dropout, with a cache."""
    return attention(student, rng).train()(rng.randn(2, 3, D_IN), random_cache(rng))[0]


@probe("training", decides=False)
def dropped(student, rng):
    """The largest and smallest outputs in training with dropout of a half, one head and a cache."""
    module = without_out_proj(attention(student, rng, heads=1, dropout=0.5), D_OUT).train()
    cache = random_cache(rng, batch=1, n_cached=2, heads=1, d_head=D_OUT)
    return extremes(
        student,
        lambda x, *cache: module(x, cache)[0],
        *(rng.randn(1, 2, D_IN), *cache),
        two_keys=lambda x, *_: module(x)[0],
    )


@probe("training")
def weights_dropped(student, rng):
    """Which weights of two sentences and heads are dropped together, over 40 draws."""
    made = attention(student, rng, heads=2, d_out=8, context=200, dropout=0.5)
    module, x = without_out_proj(made, 8).train(), rng.randn(1, 3, D_IN).repeat(2, 1, 1) * 0.5
    values = (x @ module.state_dict()["W_value.weight"].T).unflatten(2, (2, 4))
    with seeded(student, 7):
        outputs = torch.stack([module(x)[0] for _ in range(40)]).unflatten(3, (2, 4))
    visible = torch.ones(3, 3).tril().bool()
    return dropped_weights(outputs.transpose(2, 3), values.transpose(1, 2), visible)


@probe("training")
def share_dropped(student, rng):
    """How often the value of a first token is dropped at a rate of 0.3, one head."""
    module = without_out_proj(attention(student, rng, heads=1, dropout=0.3), D_OUT).train()
    return share_of_zeros(student, lambda x: module(x)[0], rng.randn(1, 1, D_IN))


@probe("extreme scores")
def large(student, rng):
    """Inputs of a hundred, in two chunks."""
    return in_chunks(attention(student, rng), rng.randn(2, 5, D_IN) * 100, [2, 3])[0]


@probe("extreme scores")
def finite_before_huge_tokens(student, rng):
    """Which outputs are finite before two opposite tokens, a million times as large."""
    module, x = attention(student, rng), rng.randn(2, 5, D_IN)
    ordinary = module(x)[0]
    x[:, 3] *= 1e6
    x[:, 4] = -x[:, 3]
    return finite_too(ordinary, module(x)[0])


@probe("extreme scores")
def far_below_zero(student, rng):
    """Scores with the tokens themselves about -1e4, -1e8 and -1e12."""
    module = without_out_proj(attention(student, rng), D_OUT)
    W_query = rng.randn(D_OUT, D_IN)
    module.load_state_dict({"W_query.weight": W_query, "W_key.weight": -W_query}, strict=False)
    scales = torch.tensor([1e2, 1e4, 1e6], dtype=FLOAT64).view(3, 1, 1)
    outputs, _ = in_chunks(module, rng.randn(3, 4, D_IN) * scales, [2, 2])
    return [output / scales for output in outputs]


@probe("single")
def single(student, rng):
    """One sentence of one token, then one more; heads of size 1."""
    module = attention(student, rng, heads=D_OUT)
    outputs, cache = in_chunks(module, rng.randn(1, 2, D_IN), 1)
    return {"outputs": outputs, "cache": cache}


@probe("views")
def transposed(student, rng):
    """x and the cache are transposed views, of two kinds."""
    module, x = attention(student, rng), rng.randn(4, 2, D_IN).transpose(0, 1)
    caches = [
        tuple(each.mT.contiguous().mT for each in random_cache(rng, n_cached=2)),
        tuple(rng.randn(2, 3, HEADS, 4).transpose(1, 2) for _ in range(2)),
    ]
    return [module(x, cache)[0] for cache in caches]


@probe("dtype")
def single_precision(student, rng):
    """A module and an input in float32, with a cache."""
    module = attention(student, rng, dtype=torch.float32)
    output, cache = module(rng.randn(2, 2, D_IN).float(), random_cache(rng, dtype=torch.float32))
    return {"output": output, "cache": list(cache)}


@probe("dtype")
def half_precision(student, rng):
    """A module and an input in bfloat16, with a cache."""
    module = attention(student, rng, dtype=torch.bfloat16)
    cache = random_cache(rng, dtype=torch.bfloat16)
    return module(rng.randn(2, 2, D_IN).bfloat16(), cache)[0]


@probe("writes")
def arguments(student, rng):
    """Which numbers of x and of the cache have changed."""
    module = attention(student, rng)
    inputs = rng.randn(2, 2, D_IN), *random_cache(rng)
    before = [each.clone() for each in inputs]
    after = written(student, lambda x, keys, values: module(x, (keys, values)), *inputs)
    return [new != old for new, old in zip(after, before)]


@probe("refusals")
def too_long(student, rng):
    """One token more than the context is long."""
    attention(student, rng, context=SHORT)(rng.randn(2, SHORT + 1, D_IN))
    return ACCEPTED


@probe("refusals")
def too_long_with_cache(student, rng):
    """One token after as many in the cache as the context is long."""
    cache = random_cache(rng, n_cached=SHORT)
    _, cache = attention(student, rng, context=SHORT)(rng.randn(2, 1, D_IN), cache)
    return often(cache[0].shape[2])  # the values would show other mistakes


@probe("refusals")
def heads_do_not_divide(student, rng):
    """Five heads for twelve features."""
    student.CachedAttention(D_IN, 12, SHORT, 0.0, 5)
    return ACCEPTED


@probe("values")
def full_context_works(student, rng):
    """Whether as many tokens work as the context is long."""
    module, x = attention(student, rng), rng.randn(2, CONTEXT, D_IN)
    return works_too(lambda: module(x[:, :-1]), lambda: module(x))


@probe(CHUNKS)
def chunks_with_biases(student, rng):
    """Two chunks in a module with biases."""
    return in_chunks(attention(student, rng, qkv_bias=True), rng.randn(2, 5, D_IN), [2, 3])[0]


@probe("dtype")
def new_module_works(student, rng):
    """Whether a new module works, in float32."""
    module, x = attention(student, rng), rng.randn(2, 4, D_IN)
    return works_when_new(
        module, lambda: student.CachedAttention(D_IN, D_OUT, CONTEXT, 0.0, HEADS), x
    )


@probe("training")
def all_dropped_with_a_cache(student, rng):
    """Training mode with dropout of 1, with a cache."""
    module = attention(student, rng, dropout=1.0).train()
    return module(rng.randn(2, 4, D_IN), random_cache(rng))[0]


@probe("refusals")
def chunk_over_the_end(student, rng):
    """Two tokens after one less in the cache than the context is long."""
    cache = random_cache(rng, n_cached=SHORT - 1)
    attention(student, rng, context=SHORT)(rng.randn(2, 2, D_IN), cache)
    return ACCEPTED


@probe("training")
def one_token_dropped_with_a_cache(student, rng):
    """Training mode with dropout of 1, for one token after a cache."""
    module = attention(student, rng, dropout=1.0).train()
    return module(rng.randn(3, 1, D_IN), random_cache(rng, batch=3))[0]


@probe("refusals")
def more_heads_than_features(student, rng):
    """Eight heads for four features."""
    student.CachedAttention(D_IN, 4, CONTEXT, 0.0, 8)
    return ACCEPTED


@probe("training")
def table_of_all_tokens(student, rng):
    """Whether one token after 200 makes a table of all tokens by all, in training mode."""
    module = attention(student, rng, context=210).train()
    cache, x = random_cache(rng, batch=1, n_cached=200), rng.randn(1, 1, D_IN)
    with watched(student, kernels=False) as seen:
        module(x, cache)
    return often(seen.largest.elements >= 200**2)


@probe("devices")
def moved(student, rng):
    """Whether a new module works after a move to another device."""
    return works_elsewhere(
        lambda: student.CachedAttention(D_IN, D_OUT, CONTEXT, 0.5, HEADS),
        rng.randn(2, 4, D_IN).float(),
    )
