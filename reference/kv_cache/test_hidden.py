"""The checks of attention with a cache and their cases."""

import pytest
import torch

from grader.authors import (
    Aspect,
    Check,
    assert_drawn_anew,
    assert_dropped,
    assert_linear_memory,
    assert_moves,
    assert_vectorised,
    assert_written_by_hand,
    build,
    dropped_weights,
    extremes,
    finite_too,
    gradients,
    often,
    output_of,
    parameters,
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
D_IN, D_OUT, CONTEXT, HEADS = 5, 12, 40, 3
SHORT = 6  # a context that is exceeded; in the long one, even tokens that are cached twice fit
FLOAT64 = torch.float64
CHUNKS = Aspect("chunks", "the values with a cache")
CACHE = Aspect("cache", "what the cache holds")
MODULE = "CachedAttention"


def attention(
    student,
    rng,
    *,
    d_out=D_OUT,
    context=CONTEXT,
    dropout=0.0,
    heads=HEADS,
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


def whole(batch, n_tokens, **options):
    """Return the case of the output of one call without a cache."""
    return lambda student, rng: attention(student, rng, **options)(
        rng.randn(batch, n_tokens, D_IN)
    )[0]


def chunked(batch, chunks, *, of, factor=1, **options):
    """Return the case of the outputs of chunks, or of the last cache."""

    def ask(student, rng):
        x = rng.randn(batch, sum(chunks), D_IN) * factor
        outputs, cache = in_chunks(attention(student, rng, **options), x, list(chunks))
        return {"outputs": outputs, "cache": cache}[of]

    return ask


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """The attention is written by hand, without a torch function that does all of it.

    Guards: the ban on torch's attention, even if other tests fail for other reasons.
    """
    x = rng.randn(2, 2, D_IN, dtype=torch.float32)
    module = student.CachedAttention(D_IN, D_OUT, CONTEXT, 0.0, HEADS)

    def two_calls():
        _, cache = output_of(module, x)
        output_of(module, x, cache)

    assert_written_by_hand(student, two_calls)


test_whole_sequence = Check("Without a cache, the output is that of causal multi-head attention.")
values = test_whole_sequence.case
values("A sequence in one call, without a cache.", whole(2, 4))
values("Layers with biases, without a cache.", whole(2, 4, qkv_bias=True))
values("Two heads of size 5.", whole(2, 7, heads=2, d_out=10), hidden=True)
values("Five heads of size 1.", whole(2, 7, heads=5, d_out=5), hidden=True)
values(
    "The parameters.", parameters(MODULE, D_IN, D_OUT, CONTEXT, 0.0, HEADS, True), about="layers"
)


@values(hidden=True)
def zeros_in_x(student, rng):
    """Two tokens of zeros, whose scores of 0 hide nothing."""
    x = rng.randn(3, 6, D_IN)
    x[:, 2:4] = 0
    return attention(student, rng)(x)[0]


NAMES = "W_query", "W_key", "W_value"
for factors in ((1e6, 1e-6, 1), (1e-6, 1e6, 1e6), (1e6, 1e6, 1)):

    def large_layers(student, rng, factors=factors):
        module = attention(student, rng)
        state = {
            f"{name}.weight": rng.randn(D_OUT, D_IN) * factor
            for name, factor in zip(NAMES, factors)
        }
        module.load_state_dict(state, strict=False)
        return module(rng.randn(2, 7, D_IN))[0] / factors[2]

    sizes = ", ".join(f"{factor:g}" for factor in factors)
    values(
        f"Weights of queries, keys and values of the sizes {sizes}.",
        large_layers,
        about="extreme scores",
        hidden=True,
    )


test_chunks = Check(
    "The outputs of chunks of any lengths are those of the whole sequence.", points=2, about=CHUNKS
)
parts = test_chunks.case
parts("One token after the other.", chunked(2, (1,) * 4, of="outputs"))
parts("A chunk of two tokens, then one of three.", chunked(2, (2, 3), of="outputs"))
parts(
    "Two chunks of two tokens each, one sentence and one head.",
    chunked(1, (2, 2), of="outputs", heads=1, d_out=4),
)
parts("Sixteen tokens of one sentence.", chunked(1, (5, 4, 4, 1, 2), of="outputs"))
parts("Two chunks with biases.", chunked(2, (2, 3), of="outputs", qkv_bias=True))
for chunks in ((4, 3), (1, 2, 4), (6, 1), (6, 5, 4, 1, 2), (13, 1, 1, 1, 1, 1)):
    shown = ", ".join(map(str, chunks))
    parts(f"Chunks of {shown} tokens.", chunked(3, chunks, of="outputs"), hidden=True)
parts(
    "As many tokens in each chunk as heads.",
    lambda student, rng: dict(
        zip(("outputs", "cache"), in_chunks(attention(student, rng), rng.randn(1, 6, D_IN), 3))
    ),
    about="square",
)


@parts
def given_cache(student, rng):
    """Three new tokens and a given cache of three, one sentence."""
    return attention(student, rng)(rng.randn(1, 3, D_IN), random_cache(rng, batch=1))[0]


@parts
def given_cache_and_one_token(student, rng):
    """One new token and a given cache of three."""
    return attention(student, rng)(rng.randn(2, 1, D_IN), random_cache(rng))[0]


@parts(about="square")
def square(student, rng):
    """Batch, tokens, cached tokens and heads of one size, for a given cache."""
    module = attention(student, rng, d_out=9)
    output, cache = module(rng.randn(3, 3, D_IN), random_cache(rng, batch=3, d_head=3))
    return {"output": output, "keys": cache[0], "values": cache[1]}


@parts(about="extreme scores")
def large(student, rng):
    """Inputs of a hundred, in two chunks."""
    return in_chunks(attention(student, rng), rng.randn(2, 5, D_IN) * 100, [2, 3])[0]


@parts(about="extreme scores")
def finite_before_huge_tokens(student, rng):
    """Which outputs are finite before two opposite tokens, a million times as large."""
    module, x = attention(student, rng), rng.randn(2, 5, D_IN)
    ordinary = module(x)[0]
    x[:, 3] *= 1e6
    x[:, 4] = -x[:, 3]
    return finite_too(ordinary, module(x)[0])


def without_out_proj(module, size):
    """Return a module after its out_proj was made to change nothing."""
    identity = torch.eye(size, dtype=FLOAT64)
    state = {"out_proj.weight": identity, "out_proj.bias": torch.zeros_like(identity[0])}
    module.load_state_dict(state, strict=False)
    return module


@parts(about="extreme scores")
def far_below_zero(student, rng):
    """Scores with the tokens themselves about -1e4, -1e8 and -1e12."""
    module = without_out_proj(attention(student, rng), D_OUT)
    W_query = rng.randn(D_OUT, D_IN)
    module.load_state_dict({"W_query.weight": W_query, "W_key.weight": -W_query}, strict=False)
    scales = torch.tensor([1e2, 1e4, 1e6], dtype=FLOAT64).view(3, 1, 1)
    outputs, _ = in_chunks(module, rng.randn(3, 4, D_IN) * scales, [2, 2])
    return [output / scales for output in outputs]


for scale in (1.0, 1e3, 1e6):
    for chunks in ([2, 5], [5, 2]):

        def before_a_change(student, rng, scale=scale, chunks=chunks):
            module, W_query = attention(student, rng), rng.randn(D_OUT, D_IN)
            state = {"W_query.weight": W_query, "W_key.weight": -W_query}
            module.load_state_dict(state, strict=False)
            x = (rng.randn(2, 1, D_IN) * 3 + rng.randn(2, 7, D_IN) * 0.3) * scale
            later = x.clone()
            later[:, 4:] += rng.randn(2, 3, D_IN) * scale * 1e8
            one, other = (
                torch.cat(in_chunks(module, each, chunks)[0], 1)[:, :4] for each in (x, later)
            )
            near = (one - other).abs() <= 1e-5 + 1e-6 * one.abs()
            return near & one.isfinite()

        parts(
            f"Which outputs stay at a scale of {scale:g} if later tokens change, in {chunks}.",
            before_a_change,
            about="extreme scores",
            hidden=True,
        )


test_cache = Check(
    "The cache holds the keys and values of all tokens; it can be used twice.", about=CACHE
)
cached = test_cache.case
cached("The cache after a first chunk.", chunked(2, (4,), of="cache"))
cached("The cache after three chunks.", chunked(2, (2, 1, 2), of="cache"))
cached("The cache after sixteen tokens.", chunked(1, (5, 4, 4, 1, 2), of="cache"))
for chunks, factor in (((4, 3), 1), ((3, 2), 1e6), ((SHORT + 1, 1), 1), ((13, 1, 1, 1, 1, 1), 1)):
    cached(
        f"The cache after chunks of {chunks} tokens, times {factor:g}.",
        chunked(3, chunks, of="cache", factor=factor),
        hidden=True,
    )
for n_tokens in (1, 2):
    cached(
        f"The cache of one head of size 1, after {n_tokens} and one more token.",
        chunked(1, (n_tokens, 1), of="cache", heads=1, d_out=1),
        about="single",
        tells=False,
        hidden=True,
    )


@cached
def later_cache(student, rng):
    """The cache after two new tokens and a given cache of three."""
    return list(attention(student, rng)(rng.randn(2, 2, D_IN), random_cache(rng))[1])


@cached(hidden=True)
def used_twice(student, rng):
    """The output of a second call with the same cache."""
    module, cache = attention(student, rng), random_cache(rng)
    module(rng.randn(2, 3, D_IN), tuple(each.clone() for each in cache))
    return module(rng.randn(2, 2, D_IN), cache)[0]


def changed_arguments(student, rng):
    """Return which numbers of x and of the cache have changed."""
    module = attention(student, rng)
    inputs = rng.randn(2, 2, D_IN), *random_cache(rng)
    before = [each.clone() for each in inputs]
    after = written(student, lambda x, keys, values: module(x, (keys, values)), *inputs)
    return [new != old for new, old in zip(after, before)]


cached(
    "Which numbers of the cache have changed.",
    lambda student, rng: changed_arguments(student, rng)[1:],
    about="writes",
)


test_too_long = Check(
    "More tokens than context_length, those in the cache included, are refused.", about="refusals"
)
misuses = test_too_long.case
for context, n_tokens in ((SHORT, SHORT + 1), (SHORT, 2 * SHORT), (1, 2)):

    def too_long(student, rng, context=context, n_tokens=n_tokens):
        attention(student, rng, context=context)(rng.randn(2, n_tokens, D_IN))
        return often(True)

    misuses(f"{n_tokens} tokens for a context of {context}.", too_long)


@misuses
def too_long_with_cache(student, rng):
    """One token after as many in the cache as the context is long."""
    cache = random_cache(rng, n_cached=SHORT)
    _, cache = attention(student, rng, context=SHORT)(rng.randn(2, 1, D_IN), cache)
    return often(cache[0].shape[2])  # the values would show other mistakes


for context, n_cached, n_tokens in (
    (SHORT, SHORT - 1, 2),
    (SHORT, SHORT, SHORT),
    (4, 3, 2),
    (1, 1, 1),
):

    def over_the_end(student, rng, context=context, n_cached=n_cached, n_tokens=n_tokens):
        cache = random_cache(rng, n_cached=n_cached)
        attention(student, rng, context=context)(rng.randn(2, n_tokens, D_IN), cache)
        return often(True)

    misuses(
        f"{n_tokens} tokens after {n_cached} for a context of {context}.",
        over_the_end,
    )
for d_out, heads in ((D_OUT, 5), (4, 8), (6, 4)):
    misuses(
        f"{heads} heads for {d_out} features.", refused(MODULE, D_IN, d_out, CONTEXT, 0.0, heads)
    )


@misuses(about="values")
def full_context_works(student, rng):
    """Whether as many tokens work as the context is long."""
    module, x = attention(student, rng), rng.randn(2, CONTEXT, D_IN)
    return works_too(lambda: module(x[:, :-1]), lambda: module(x))


for context in (8, 1):

    def full_context(student, rng, context=context):
        module = attention(student, rng, context=context)
        outputs = [module(rng.randn(2, context, D_IN))[0]]
        if context > 1:
            outputs.append(module(rng.randn(2, 1, D_IN), random_cache(rng, n_cached=7))[0])
        return [often(*output.shape) for output in outputs]

    sentence = f"The shapes of outputs for a full context of {context}."
    misuses(sentence, full_context, about="values", hidden=True)


test_training = Check(
    "In training, weights are dropped and nothing else; gradients reach x and all parameters.",
    about="training",
)
trains = test_training.case
for sentence, n_cached, rate, training in (
    ("with a given cache", 3, 0.0, False),
    ("without a cache", 0, 0.0, False),
    ("with a given cache, in training", 2, 0.0, True),
    ("without a cache, in training", 0, 0.0, True),
):

    def slopes(student, rng, n_cached=n_cached, rate=rate, training=training):
        module = attention(student, rng, d_out=6, dropout=rate).train(training)
        given = [random_cache(rng, n_cached=n_cached, d_head=2)] if n_cached else []
        found = gradients(lambda x: module(x, *given)[0], rng.randn(2, 3, D_IN))
        return found | {name: p.grad for name, p in module.named_parameters()}

    trains(
        f"The gradients of x and of the parameters {sentence}.",
        slopes,
        about="gradient",
    )


@trains(about="gradient", hidden=True)
def reached(student, rng):
    """Which parameters and inputs have a finite gradient while weights are dropped."""
    module = attention(student, rng, dropout=0.4).train()
    found = {}
    for given in ((), (random_cache(rng, batch=16),)):
        x = rng.randn(16, 3, D_IN).requires_grad_()
        module.zero_grad()
        module(x, *given)[0].square().sum().backward()
        for name, each in (("x", x), *module.named_parameters()):
            grad = each.grad
            good = grad is not None and bool(grad.isfinite().all() and (grad != 0).any())
            found[f"{name} {len(given)}"] = often(good)
    return found


@trains
def in_training(student, rng):
    """Training mode without dropout, with a cache."""
    return attention(student, rng).train()(rng.randn(2, 3, D_IN), random_cache(rng))[0]


@trains(about="options")
def evaluated(student, rng):
    """A dropout of a half in evaluation mode, with a cache."""
    module = attention(student, rng, dropout=0.5)
    with seeded(student, 1):
        return module(rng.randn(2, 2, D_IN), random_cache(rng))[0]


@trains(decides=False)
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


@trains
def weights_dropped(student, rng):
    """Which weights of two sentences and heads are dropped together, over 40 draws."""
    made = attention(student, rng, heads=2, d_out=8, context=200, dropout=0.5)
    module, x = without_out_proj(made, 8).train(), rng.randn(1, 3, D_IN).repeat(2, 1, 1) * 0.5
    values = (x @ module.state_dict()["W_value.weight"].T).unflatten(2, (2, 4))
    with seeded(student, 7):
        outputs = torch.stack([module(x)[0] for _ in range(40)]).unflatten(3, (2, 4))
    visible = torch.ones(3, 3).tril().bool()
    return dropped_weights(outputs.transpose(2, 3), values.transpose(1, 2), visible)


@trains
def share_dropped(student, rng):
    """How often the value of a first token is dropped at a rate of 0.3, one head."""
    module = without_out_proj(attention(student, rng, heads=1, dropout=0.3), D_OUT).train()
    return share_of_zeros(student, lambda x: module(x)[0], rng.randn(1, 1, D_IN))


for sentence, batch, n_tokens in (("four tokens", 2, 4), ("one token", 3, 1)):

    def all_dropped(student, rng, batch=batch, n_tokens=n_tokens):
        module = attention(student, rng, dropout=1.0).train()
        return module(rng.randn(batch, n_tokens, D_IN), random_cache(rng, batch=batch))[0]

    trains(f"Training mode with dropout of 1, {sentence} after a cache.", all_dropped)


@trains
def kept_weight(student, rng):
    """The largest and smallest values of a first token at a rate of 0.3, one head."""
    module = without_out_proj(attention(student, rng, heads=1, dropout=0.3), D_OUT).train()
    return extremes(student, lambda x: module(x)[0], rng.randn(1, 1, D_IN))


for n_cached in (3, 0):

    def each_on_its_own(student, rng, n_cached=n_cached, rate=0.39, d_head=6):
        x = rng.randn(1, n_cached + 2, D_IN) * 0.3

        def weights(rate, draws):
            module = attention(student, rng, d_out=18, dropout=rate).train()
            layers = without_out_proj(module, 18).state_dict()
            keys, values = (
                (x @ layers[f"{name}.weight"].T).unflatten(2, (HEADS, d_head)).transpose(1, 2)
                for name in ("W_key", "W_value")
            )
            cache = [each[:, :, :n_cached].repeat(draws, 1, 1, 1) for each in (keys, values)]
            given = [tuple(cache)] if n_cached else []
            output = module(x[:, n_cached:].repeat(draws, 1, 1), *given)[0].detach()
            return output.unflatten(2, (HEADS, d_head)).transpose(1, 2) @ torch.linalg.pinv(values)

        plain, seen = weights(0.0, 1)[0], weights(rate, 200)
        is_dropped = seen.abs() < plain.abs() / 2
        assert_dropped(is_dropped[:, plain.abs() > 1e-3], rate, "weights")
        return seen.masked_fill(is_dropped, 0.0).amax(0)

    trains(
        f"Each weight of two tokens after {n_cached} is dropped on its own.",
        each_on_its_own,
        tells=False,
        hidden=True,
        within=(1e-4, 1e-4),
    )


@trains(tells=False, hidden=True)
def drawn_anew(student, rng):
    """Other weights are dropped in each call, with a cache and without."""
    made = [attention(student, rng, dropout=0.39).train() for _ in range(2)]
    x, cache = rng.randn(2, 3, D_IN).repeat(8, 1, 1), random_cache(rng, batch=16)
    assert_drawn_anew(lambda x: made[0](x)[0], x)
    assert_drawn_anew(lambda x: made[1](x, cache)[0], x[:, :1])


test_any_input = Check(
    "Any batch, one head, views, dtypes and devices work; nothing is kept; x is not modified."
)
usable = test_any_input.case


@usable(about="options")
def second_sequence(student, rng):
    """A second sequence, without a cache."""
    module, x = attention(student, rng), rng.randn(2, 3, D_IN)
    module(rng.randn(2, 2, D_IN))
    output, cache = module(x)
    return {"output": output, "keys": cache[0], "values": cache[1]}


@usable(about="single")
def single(student, rng):
    """One sentence of one token, then one more; heads of size 1."""
    module = attention(student, rng, heads=D_OUT)
    outputs, cache = in_chunks(module, rng.randn(1, 2, D_IN), 1)
    return {"outputs": outputs, "cache": cache}


usable(
    "Three sentences, one head of size 1.",
    chunked(3, (1, 1), of="outputs", heads=1, d_out=1),
    about="single",
    tells=False,
    hidden=True,
)


@usable(about="views")
def transposed(student, rng):
    """x and the cache are transposed views, of two kinds."""
    module, x = attention(student, rng), rng.randn(4, 2, D_IN).transpose(0, 1)
    caches = [
        tuple(each.mT.contiguous().mT for each in random_cache(rng, n_cached=2)),
        tuple(rng.randn(2, 3, HEADS, 4).transpose(1, 2) for _ in range(2)),
    ]
    return [module(x, cache)[0] for cache in caches]


@usable(about="dtype")
def single_precision(student, rng):
    """A module and an input in float32, with a cache."""
    module = attention(student, rng, dtype=torch.float32)
    output, cache = module(rng.randn(2, 2, D_IN).float(), random_cache(rng, dtype=torch.float32))
    return {"output": output, "cache": list(cache)}


@usable(about="dtype", within=(0.1, 0.1))
def half_precision(student, rng):
    """A module and an input in bfloat16, with a cache."""
    module = attention(student, rng, dtype=torch.bfloat16)
    output, cache = module(
        rng.randn(2, 2, D_IN).bfloat16(), random_cache(rng, dtype=torch.bfloat16)
    )
    return {"output": output, "cache": [each * 0 for each in cache]}


@usable(about="dtype", hidden=True)
def dtypes_in_training(student, rng):
    """The dtypes in training mode, in two chunks of bfloat16."""
    module = attention(student, rng, dropout=0.5, dtype=torch.bfloat16).train()
    outputs, cache = in_chunks(module, rng.randn(2, 4, D_IN).bfloat16(), [3, 1])
    return [torch.zeros_like(each) for each in (*outputs, *cache)]


@usable(about="dtype")
def new_module_works(student, rng):
    """Whether a new module works, in float32."""
    module, x = attention(student, rng), rng.randn(2, 4, D_IN)
    return works_when_new(
        module, lambda: student.CachedAttention(D_IN, D_OUT, CONTEXT, 0.0, HEADS), x
    )


@usable(about="devices")
def moved(student, rng):
    """Whether a new module works after a move to another device."""
    return works_elsewhere(
        lambda: student.CachedAttention(D_IN, D_OUT, CONTEXT, 0.5, HEADS),
        rng.randn(2, 4, D_IN).float(),
    )


@usable(about="devices", tells=False, hidden=True)
def moved_with_a_cache(student, rng):
    """A move to another device, with a cache."""
    inputs = rng.randn(2, 3, D_IN).float(), random_cache(rng, dtype=torch.float32)
    assert_moves(lambda: student.CachedAttention(D_IN, D_OUT, CONTEXT, 0.5, HEADS), *inputs)


usable(
    "Which numbers of x have changed.",
    lambda student, rng: changed_arguments(student, rng)[0],
    about="writes",
)


test_cost = Check(
    "For one new token, the memory grows with the cached tokens, not with their square.",
    about="training",
)
cost = test_cost.case


@cost
def table_of_all_tokens(student, rng):
    """Whether one token after 200 makes a table of all tokens by all, in training mode."""
    module = attention(student, rng, context=210).train()
    cache, x = random_cache(rng, batch=1, n_cached=200), rng.randn(1, 1, D_IN)
    with watched(student, kernels=False) as seen:
        module(x, cache)
    return often(seen.largest.elements >= 200**2)


@cost(tells=False, hidden=True)
def growth(student, rng):
    """Memory grows with the cached tokens; no loop runs over sentences, tokens or heads."""
    module = student.CachedAttention(D_IN, 6, 900, 0.0, 2)
    x = rng.randn(1, 1, D_IN).float()

    def cache_of(batch, n_cached, heads=2, d_out=6):
        return tuple(rng.randn(batch, heads, n_cached, d_out // heads).float() for _ in range(2))

    assert_linear_memory(
        student, lambda n_cached: output_of(module, x, cache_of(1, n_cached)), 200, "cached tokens"
    )

    def step(batch=2, n_tokens=3, n_cached=4, heads=2):
        options = D_IN, 12, n_tokens + n_cached + 1, 0.0, heads
        given = rng.randn(batch, n_tokens, D_IN).float(), cache_of(batch, n_cached, heads, 12)
        return lambda: output_of(student.CachedAttention(*options), *given)

    grown = {
        "sentences": {"batch": (9, 19)},
        "tokens": {"n_tokens": (12, 26)},
        "cached tokens": {"n_cached": (14, 29)},
        "heads": {"heads": (6, 12)},
    }
    assert_vectorised(student, step, grown)
