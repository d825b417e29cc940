"""The checks of attention with a cache and their cases."""

import functools

import pytest
import torch

from grader.attention_cases import dropout_cases, each_on_its_own, future_cases, identity
from grader.authors import (
    Aspect,
    Check,
    argument_cases,
    assert_linear_memory,
    assert_moves,
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
MODULE, FLOAT32, BFLOAT16 = "CachedAttention", torch.float32, torch.bfloat16
D_IN, D_OUT, CONTEXT, HEADS = 5, 12, 40, 3
SIZES = D_IN, D_OUT, CONTEXT, 0.0, HEADS
SHORT = 6  # a context that is exceeded; in the long one, even tokens that are cached twice fit
CHUNKS = Aspect("chunks", "the values with a cache")
CACHE = Aspect("cache", "what the cache holds")
LAYERS = ("W_query", "W_key", "W_value", "out_proj")
X = drawn(2, 4, D_IN)


def attention(*, d_out=D_OUT, context=CONTEXT, dropout=0.0, heads=HEADS, **options):
    """Return what makes a module with random parameters."""
    return built(MODULE, D_IN, d_out, context, dropout, heads, layers=LAYERS, **options)


class Chunked:
    """A module that reads x in chunks, each with the cache of those before; `cache` is the last."""

    def __init__(self, module, sizes, first=None):
        self.module, self.sizes, self.first, self.cache = module, sizes, first, None

    def __call__(self, x):
        outputs, self.cache = [], self.first
        for chunk in x.split(self.sizes, dim=1) if self.sizes else [x]:
            output, self.cache = self.module(chunk, self.cache)
            outputs.append(output)
        return torch.cat(outputs, dim=1)

    def __getattr__(self, name):
        return getattr(self.module, name)

    def train(self, mode=True):
        self.module.train(mode)
        return self

    def eval(self):
        return self.train(False)


def chunked(*sizes, **options):
    """Return what makes a module that reads x in chunks of these sizes, or all of one size.

    Without sizes, it reads x at once.
    """
    given = sizes[0] if len(sizes) == 1 else list(sizes)
    return lambda student, rng: Chunked(attention(**options)(student, rng), given)


def with_cache(n_cached=3, **options):
    """Return what makes a module that reads x after a given cache of two sentences."""

    def make(student, rng):
        d_head = options.get("d_out", D_OUT) // HEADS
        cache = cache_of(n_cached=n_cached, d_head=d_head)(rng)
        return Chunked(attention(**options)(student, rng), [], cache)

    return make


def two_heads(*sizes, **options):
    """Return what makes a module that returns what its two heads give, side by side."""
    return identity("out_proj", 8, chunked(*sizes, heads=2, d_out=8, **options))


def cache_of(batch=2, n_cached=3, heads=HEADS, d_head=4, **how):
    """Return the recipe of a cache."""
    return lambda rng: tuple(rng.randn(batch, heads, n_cached, d_head, **how) for _ in range(2))


def cache_after(*sizes, x, **options):
    """Return a case: the cache after chunks of these sizes."""

    def ask(student, rng):
        module = chunked(*sizes, **options)(student, rng)
        module(x(rng))
        return list(module.cache)

    return ask


def going_on(**options):
    """Return what makes a function of x, keys and values, which returns the output."""

    def make(student, rng):
        module = attention(**options)(student, rng)
        return lambda x, keys, values: module(x, (keys, values))[0]

    return make


def pair(n_cached=3, batch=2, **how):
    """Return the recipes of keys and values."""
    return [drawn(batch, HEADS, n_cached, 4, **how) for _ in range(2)]


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """The attention is written by hand, without a torch function that does all of it.

    Guards: the ban on torch's attention, even if other tests fail for other reasons.
    """
    chunks = lambda: Chunked(student.CachedAttention(*SIZES), 2)  # noqa: E731
    assert_written_by_hand(student, lambda: output_of(chunks(), rng.randn(2, 4, D_IN).float()))


test_whole_sequence = Check(
    "Without a cache, the output is that of causal multi-head attention.", points=2
)
values = test_whole_sequence.case
values("A sequence in one call, without a cache.", output(chunked(), X))
values("Layers with biases, without a cache.", output(chunked(qkv_bias=True), X))
x = drawn(2, 7, D_IN)
values("Two heads of size 5.", output(chunked(heads=2, d_out=10), x), hidden=True)
values("Five heads of size 1.", output(chunked(heads=5, d_out=5), x), hidden=True)
values("The parameters.", parameters(MODULE, *SIZES, True), about="layers")
zeros = output(chunked(), lambda rng: x(rng).index_fill(1, torch.tensor([2, 3]), 0.0))
values("Two tokens of zeros, whose scores of 0 hide nothing.", zeros, hidden=True)
for query, key, value in ((1e6, 1e-6, 1), (1e-6, 1e6, 1e6), (1e6, 1e6, 1)):
    values(
        f"Queries times {query:g}, keys times {key:g}, values times {value:g}.",
        output(scaled(chunked(), W_query=query, W_key=key, W_value=value), x),
        about="extreme scores",
        hidden=True,
        within=(1e-4, 1e-6 * value),  # a softmax in float32 is right
    )


test_chunks = Check(
    "The outputs of chunks of any lengths are those of the whole sequence.", points=6, about=CHUNKS
)
parts = test_chunks.case
parts("One token after the other.", output(chunked(1, 1, 1, 1), X))
parts("A chunk of two tokens, then one of three.", output(chunked(2, 3), drawn(2, 5, D_IN)))
parts("One sentence and one head.", output(chunked(2, 2, heads=1, d_out=4), drawn(1, 4, D_IN)))
parts("Sixteen tokens of one sentence.", output(chunked(5, 4, 4, 1, 2), drawn(1, 16, D_IN)))
parts("Two chunks with biases.", output(chunked(2, 3, qkv_bias=True), drawn(2, 5, D_IN)))
parts("As many tokens as heads.", output(chunked(3, 3), drawn(1, 6, D_IN)), about="square")
for sizes in ((4, 3), (1, 2, 4), (6, 1), (6, 5, 4, 1, 2), (13, 1, 1, 1, 1, 1)):
    parts(
        f"Chunks of {sizes} tokens.",
        output(chunked(*sizes), drawn(3, sum(sizes), D_IN)),
        hidden=True,
    )
parts("Three tokens after a given cache.", output(going_on(), drawn(1, 3, D_IN), *pair(batch=1)))
parts("One token after a given cache.", output(going_on(), drawn(2, 1, D_IN), *pair()))
future_cases(test_chunks, functools.partial(two_heads, 2), D_IN)


@parts(about="square")
def square(student, rng):
    """Batch, tokens, cached tokens and heads of one size, for a given cache."""
    module, cache = attention(d_out=9)(student, rng), cache_of(batch=3, d_head=3)(rng)
    found, (keys, values) = module(rng.randn(3, 3, D_IN), cache)
    return {"output": found, "keys": keys, "values": values}


@parts(about="extreme scores", hidden=True)
def before_a_change(student, rng):
    """Which outputs stay if later tokens change, at several scales, in chunks."""
    found = []
    for scale, sizes in ((1.0, (2, 5)), (1e3, (5, 2)), (1e6, (2, 5)), (1e6, (5, 2))):
        module, W_query = chunked(*sizes)(student, rng), rng.randn(D_OUT, D_IN)
        state = {"W_query.weight": W_query, "W_key.weight": -W_query}
        module.load_state_dict(state, strict=False)
        x = (rng.randn(2, 1, D_IN) * 3 + rng.randn(2, 7, D_IN) * 0.3) * scale
        later = x.clone()
        later[:, 4:] += rng.randn(2, 3, D_IN) * scale * 1e8
        one, other = (module(each)[:, :4] for each in (x, later))
        found.append(((one - other).abs() <= 1e-5 + 1e-6 * one.abs()) & one.isfinite())
    return found


test_cache = Check(
    "The cache holds the keys and values of all tokens; it can be used twice.",
    points=3,
    about=CACHE,
)
cached = test_cache.case
cached("The cache after a first chunk.", cache_after(x=X))
cached("The cache after three chunks.", cache_after(2, 1, 2, x=drawn(2, 5, D_IN)))
cached("The cache after sixteen tokens.", cache_after(5, 4, 4, 1, 2, x=drawn(1, 16, D_IN)))
for sizes, factor in (((4, 3), 1), ((3, 2), 1e6), ((SHORT + 1, 1), 1), ((13, 1, 1, 1, 1, 1), 1)):
    cached(
        f"The cache after chunks of {sizes} tokens, times {factor:g}.",
        cache_after(*sizes, x=drawn(3, sum(sizes), D_IN, times=factor)),
        hidden=True,
    )
cached(
    "One head of size 1.",
    cache_after(1, 1, heads=1, d_out=1, x=drawn(1, 2, D_IN)),
    about="single",
    hidden=True,
)


@cached
def later_cache(student, rng):
    """The cache after two new tokens and a given cache of three."""
    return list(attention()(student, rng)(rng.randn(2, 2, D_IN), cache_of()(rng))[1])


@cached(hidden=True)
def used_twice(student, rng):
    """The output of a second call with the same cache."""
    module, cache = attention()(student, rng), cache_of()(rng)
    module(rng.randn(2, 3, D_IN), tuple(each.clone() for each in cache))
    return module(rng.randn(2, 2, D_IN), cache)[0]


ask = changed(going_on(), drawn(2, 2, D_IN), *pair())
cached("Which numbers of x and of the cache have changed.", ask, about="writes")


test_too_long = Check(
    "More tokens than context_length, those in the cache included, are refused.",
    points=2,
    about="refusals",
)
misuses = test_too_long.case
for context, n_tokens in ((SHORT, SHORT + 1), (SHORT, 2 * SHORT), (1, 2)):
    ask = refused(attention(context=context), drawn(2, n_tokens, D_IN))
    misuses(f"{n_tokens} tokens for a context of {context}.", ask)
for context, n_cached, n_tokens in (
    (SHORT, SHORT, 1),
    (SHORT, SHORT - 1, 2),
    (SHORT, SHORT, SHORT),
    (4, 3, 2),
    (1, 1, 1),
):
    given = drawn(2, n_tokens, D_IN), cache_of(n_cached=n_cached)
    sentence = f"{n_tokens} tokens after {n_cached} for a context of {context}."
    misuses(sentence, refused(attention(context=context), *given))
for d_out, heads in ((D_OUT, 5), (4, 8), (6, 4)):
    ask = refused(MODULE, D_IN, d_out, CONTEXT, 0.0, heads)
    misuses(f"{heads} heads for {d_out} features.", ask)
full = works_as_well(attention(), drawn(2, CONTEXT - 1, D_IN), drawn(2, CONTEXT, D_IN))
misuses("Whether as many tokens work as the context is long.", full, about="values")
for context, sizes in ((8, (7, 1)), (8, (8,)), (1, (1,))):
    misuses(
        f"A context of {context}, filled by {sizes}.",
        only_dtype(chunked(*sizes, context=context), drawn(2, context, D_IN)),
        about="values",
        hidden=True,
    )


test_training = Check(
    "In training, weights are dropped and nothing else; gradients reach x and all parameters.",
    points=2,
    about="training",
)
trains = test_training.case
for training in (False, True):
    for sentence, make in (("without a cache", chunked), ("with a given cache", with_cache)):
        ask = gradient(make(d_out=6, training=training), drawn(2, 3, D_IN))
        trains(f"The gradients {sentence}, training {training}.", ask, about="gradient")
for sentence, make in (("without a cache", chunked), ("with a given cache", with_cache)):
    trains(
        f"What gets a gradient with dropout, {sentence}.",
        reached(make(dropout=0.4, training=True), drawn(2, 3, D_IN)),
        about="gradient",
        hidden=True,
    )
dropout_cases(test_training, two_heads, D_IN, heads=2)
given = output(going_on(training=True), drawn(2, 3, D_IN), *pair())
trains("Training without dropout, with a given cache.", given)
for n_tokens in (4, 1):
    ask = output(going_on(dropout=1.0, training=True), drawn(2, n_tokens, D_IN), *pair())
    trains(f"A dropout of 1, {n_tokens} tokens after a cache.", ask)
    ask = output(going_on(dropout=0.5), drawn(2, n_tokens, D_IN), *pair())
    trains(f"A dropout of a half in evaluation, {n_tokens} tokens.", ask, about="options")
for sizes in ((), (3, 2)):

    def heads_of_six(dropout, sizes=sizes):
        return identity("out_proj", 18, chunked(*sizes, d_out=18, dropout=dropout))

    trains(
        f"Each weight on its own, in chunks {sizes}.",
        each_on_its_own(heads_of_six, D_IN, heads=HEADS, n_tokens=5),
        tells=False,
        hidden=True,
    )


test_any_input = Check(
    "Any batch, one head, views, dtypes and devices work; nothing is kept; x is not modified.",
    points=2,
)
usable = test_any_input.case
second = in_turn(chunked(), drawn(2, 2, D_IN), drawn(2, 3, D_IN))
usable("A second sequence, without a cache.", second, about="options")


@usable(about="single")
def single(student, rng):
    """One sentence of one token, then one more; heads of size 1."""
    module = attention(heads=D_OUT)(student, rng)
    first, cache = module(rng.randn(1, 1, D_IN))
    second, cache = module(rng.randn(1, 1, D_IN), cache)
    return {"outputs": [first, second], "cache": list(cache)}


usable(
    "Three sentences, one head of size 1.",
    output(chunked(1, 1, heads=1, d_out=1), drawn(3, 2, D_IN)),
    about="single",
    hidden=True,
)
argument_cases(test_any_input, chunked, X)
for axes in ((2, 3), (1, 2)):
    views = [turned(each, *axes) for each in pair()]
    ask = output(going_on(), turned(X, 0, 1), *views)
    usable(f"x and the cache are views, whose axes {axes} are swapped.", ask, about="views")
dtype_cases(test_any_input, chunked, (2, 4, D_IN), MODULE, D_IN, D_OUT, CONTEXT, 0.5, HEADS)
for dtype in (FLOAT32, BFLOAT16):
    low, given = drawn(2, 2, D_IN, dtype=dtype), cache_of(dtype=dtype)

    def dtypes(student, rng, dtype=dtype, low=low, given=given):
        found, cache = attention(dtype=dtype)(student, rng)(low(rng), given(rng))
        return [torch.zeros_like(each) for each in (found, *cache)]

    usable(f"The dtypes in {dtype}, with a cache.", dtypes, about="dtype")
usable(
    "bfloat16 after a given cache.",
    output(going_on(dtype=BFLOAT16), drawn(2, 2, D_IN, dtype=BFLOAT16), *pair(dtype=BFLOAT16)),
    about="dtype",
    within=(0.1, 0.1),
    hidden=True,
)


@usable(about="training", hidden=True)
def extremes_with_biases(student, rng):
    """The largest and smallest outputs of a token alone, with biases and a dropout of 0.3."""
    module = chunked(dropout=0.3, training=True, qkv_bias=True)(student, rng)
    return extremes(student, module, rng.randn(1, 1, D_IN))


biased = chunked(2, 2, qkv_bias=True)
for sentence, ask, about in (
    ("The gradients", gradient(chunked(qkv_bias=True), X), "gradient"),
    (
        "What gets a gradient",
        reached(chunked(dropout=0.4, training=True, qkv_bias=True), X),
        "gradient",
    ),
    ("Dropout of 1", output(chunked(dropout=1.0, training=True, qkv_bias=True), X), "training"),
    ("A large sentence", output(biased, drawn(1, 4, D_IN, times=1e3)), "extreme scores"),
    ("Which numbers of x have changed", changed(chunked(qkv_bias=True), X), "writes"),
):
    usable(f"{sentence}, with biases.", ask, about=about, hidden=True)
usable(
    "bfloat16 with biases.",
    output(chunked(2, 2, qkv_bias=True, dtype=BFLOAT16), drawn(2, 4, D_IN, dtype=BFLOAT16)),
    about="dtype",
    within=(0.1, 0.1),
    hidden=True,
)
usable(
    "On another device, with biases.",
    moved(MODULE, D_IN, D_OUT, CONTEXT, 0.5, HEADS, True, x=drawn(2, 4, D_IN, dtype=FLOAT32)),
    about="devices",
    hidden=True,
)
half = chunked(3, 1, dropout=0.5, dtype=BFLOAT16, training=True)
usable(
    "bfloat16 in training, in two chunks.",
    only_dtype(half, drawn(2, 4, D_IN, dtype=BFLOAT16)),
    about="dtype",
    hidden=True,
)


@usable(about="devices", tells=False, hidden=True)
def moved_with_a_cache(student, rng):
    """A move to another device, with a cache."""
    inputs = rng.randn(2, 3, D_IN).float(), cache_of(dtype=FLOAT32)(rng)
    assert_moves(lambda: student.CachedAttention(D_IN, D_OUT, CONTEXT, 0.5, HEADS), *inputs)


test_cost = Check(
    "For one new token, the memory grows with the cached tokens, not with their square.",
    points=2,
    about="training",
)
cost = test_cost.case


@cost
def table_of_all_tokens(student, rng):
    """Whether one token after 200 makes a table of all tokens by all, in training mode."""
    module = attention(context=210, training=True)(student, rng)
    cache, x = cache_of(batch=1, n_cached=200)(rng), rng.randn(1, 1, D_IN)
    with watched(student, kernels=False) as seen:
        module(x, cache)
    return often(seen.largest.elements >= 200**2)


@cost(tells=False, hidden=True)
def growth(student, rng):
    """Memory grows with the cached tokens; no loop runs over sentences, tokens or heads."""

    def given(batch, n_tokens, n_cached, heads):
        x = rng.randn(batch, n_tokens, D_IN).float()
        return x, cache_of(batch, n_cached, heads, 12 // heads, dtype=FLOAT32)(rng)

    def step(batch=2, n_tokens=3, n_cached=4, heads=2):
        sizes = D_IN, 12, n_tokens + n_cached + 1, 0.0, heads
        modules = [student.CachedAttention(*sizes, qkv_bias) for qkv_bias in (False, True)]
        x, cache = given(batch, n_tokens, n_cached, heads)
        return lambda: [output_of(each, x, kept) for each in modules for kept in (cache, None)]

    for qkv_bias in (False, True):
        module = student.CachedAttention(D_IN, 12, 900, 0.0, 2, qkv_bias)
        one_token = lambda n, module=module: output_of(module, *given(1, 1, n, 2))  # noqa: E731
        assert_linear_memory(student, one_token, 200, "cached tokens")
    grown = {"sentences": {"batch": (9, 19)}, "tokens": {"n_tokens": (12, 26)}}
    grown |= {"cached tokens": {"n_cached": (14, 29)}, "heads": {"heads": (6, 12)}}
    assert_vectorised(student, step, grown)
