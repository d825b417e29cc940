"""The checks of the modern block and their cases."""

import functools

import pytest
import torch

from grader.attention_cases import dropout_cases, each_on_its_own
from grader.authors import (
    ROUGH,
    Aspect,
    Check,
    argument_cases,
    assert_close,
    assert_linear_memory,
    assert_moves,
    assert_vectorised,
    assert_written_by_hand,
    built,
    changed,
    drawn,
    dtype_cases,
    extremes,
    filled,
    gradient,
    in_turn,
    moved,
    only_dtype,
    output,
    output_of,
    parameters,
    reached,
    refused,
    scaled,
    turned,
    twins,
    works_as_well,
)

pytestmark = pytest.mark.needs("test_written_by_hand")

AXES = ("batch item", "token", "feature")
CHUNKS = Aspect("chunks", "the values with a cache")
CACHE = Aspect("cache", "what the cache holds")
BLOCK = Aspect("block", "what `ModernBlock` returns")
LOW = torch.bfloat16
LAYERS = ("W_query", "W_key", "W_value", "out_proj")
D_IN, D_OUT, HEADS, KV = 5, 24, 6, 2  # three heads of size 4 share one of keys
SIZES = D_IN, D_OUT, 40, 0.0, HEADS, KV
D, BLOCK_SIZES = 16, (16, 4, 2, 6, 40)
X, IN_BLOCK = drawn(3, 5, D_IN), drawn(3, 5, D)
FEW, FEW_IN_BLOCK = drawn(2, 3, D_IN), drawn(2, 3, D)


def attention(*, d_out=D_OUT, context=40, dropout=0.0, heads=HEADS, kv=KV, **options):
    """Return what makes an attention with random parameters."""
    sizes = D_IN, d_out, context, dropout, heads, kv
    return built("RotaryAttention", *sizes, layers=LAYERS, **options)


def block(*, context=40, dropout=0.0, heads=4, kv=2, **options):
    """Return what makes a block with random parameters."""
    return built("ModernBlock", D, heads, kv, 6, context, dropout, **options)


class Chunked:
    """A module that reads x in chunks, each with the cache of those before; `cache` is the last.

    Its outputs are in float32 or lower, in which right code may compute angles.
    """

    def __init__(self, module, sizes):
        self.module, self.sizes, self.cache = module, sizes, None

    def __call__(self, x, *given):
        outputs, self.cache = [], given or None
        for chunk in x.split(self.sizes, dim=1) if self.sizes else [x]:
            found, self.cache = self.module(chunk, self.cache)
            outputs.append(found)
        return single(torch.cat(outputs, dim=1))

    def __getattr__(self, name):
        return getattr(self.module, name)

    def train(self, mode=True):
        self.module.train(mode)
        return self

    def eval(self):
        return self.train(False)


def single(x):
    """Return a tensor in float32, if it is in float64."""
    return x.float() if x.dtype == torch.float64 else x


def chunked(make, *sizes, **options):
    """Return what makes a module that reads x in chunks of these sizes, or at once."""
    return lambda student, rng: Chunked(make(**options)(student, rng), list(sizes))


def cache_after(make, *sizes, x, **options):
    """Return a case: the cache after chunks of these sizes."""

    def ask(student, rng):
        module = chunked(make, *sizes, **options)(student, rng)
        module(x(rng))
        return [single(each) for each in module.cache]

    return ask


def pair(n_cached=3, kv=KV, d_head=4, **how):
    """Return the recipes of cached keys and values of three sentences."""
    return [drawn(3, kv, n_cached, d_head, **how) for _ in range(2)]


def slopes(target, *given):
    """Return the case of gradients, in float32."""
    ask = gradient(target, *given)

    def asked(student, rng):
        found = ask(student, rng)
        return {name: single(x) if torch.is_tensor(x) else x for name, x in found.items()}

    return asked


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """Attention and block are written by hand, without torch's own."""
    assert_written_by_hand(
        student,
        lambda: output_of(student.RotaryAttention(*SIZES), rng.randn(2, 4, D_IN).float()),
        lambda: output_of(student.ModernBlock(*BLOCK_SIZES), rng.randn(2, 4, D).float()),
    )


test_layers = Check("The parts have the names of the statement, and no layer has a bias.", points=2)
test_layers.case("The attention.", parameters("RotaryAttention", *SIZES), about="layers")
test_layers.case("The block.", parameters("ModernBlock", *BLOCK_SIZES), about="layers")
ask = parameters("ModernBlock", 12, 3, 1, 5, 9, 0.5, 100.0)
test_layers.case("Another block.", ask, about="layers", hidden=True)


test_attention = Check(
    "Queries and keys of each head are turned by their positions; heads share keys in groups.",
    points=7,
)
values = test_attention.case
values("Three heads share a head of keys.", output(chunked(attention), X))
values("As many heads of keys as heads.", output(chunked(attention, kv=HEADS), FEW))
values("Two heads of size 12.", output(chunked(attention, heads=2, kv=1), FEW))
values("A base of 20.", output(chunked(attention, base=20.0), FEW), about="options")
values("All sizes equal.", output(chunked(attention, d_out=16, heads=4, kv=4), drawn(4, 4, D_IN)))
values("One token of one sentence.", output(chunked(attention), drawn(1, 1, D_IN)), about="single")
ask = output(chunked(attention, d_out=2, heads=1, kv=1), drawn(1, 7, D_IN))
values("One head of one pair.", ask, about="single")
values("Twelve heads.", output(chunked(attention, heads=12, kv=4), drawn(2, 7, D_IN)), hidden=True)
values("A base of 3.", output(chunked(attention, base=3.0), drawn(2, 9, D_IN)), hidden=True)


@values(about="extreme scores")
def before_a_change(student, rng):
    """Which outputs are finite and stay if later tokens change a lot, in chunks and at once."""
    found = []
    for sizes, scale in (([5], 1.0), ([2, 3], 1e2), ([5], 1e4)):
        module, x = chunked(attention, *sizes)(student, rng), rng.randn(2, 5, D_IN) * scale
        later = x.clone()
        later[:, 4:] = rng.randn(2, 1, D_IN) * scale * 1e6
        one, other = (module(each)[:, :4] for each in (x, later))
        found.append(((one - other).abs() <= 1e-5 * (1 + one.abs())) & one.isfinite())
    return found


values(
    "Queries times a million, of one token.",
    output(scaled(chunked(attention), W_query=1e6, W_key=1e6), drawn(2, 1, D_IN)),
    about="extreme scores",
    hidden=True,
)


test_chunks = Check(
    "The outputs of chunks of any lengths are those of the whole sequence.", points=7, about=CHUNKS
)
parts = test_chunks.case
parts("One token after the other.", output(chunked(attention, 1, 1, 1), FEW))
ask = output(chunked(attention, 2, 1, context=3), FEW)
parts("Two tokens, then one.", ask)
parts("Three tokens, then two, in a block.", output(chunked(block, 3, 2), IN_BLOCK))
ask = output(chunked(block, 2, 3, context=5), drawn(1, 5, D))
parts("Chunks that fill the context of a block.", ask, hidden=True)
parts("After a given cache.", output(chunked(attention), X, *pair()))
parts("As many tokens as heads.", output(chunked(attention, 6, 4), drawn(1, 10, D_IN)))
for sizes in ((4, 3), (1, 2, 4), (6, 1), (3, 1, 1, 1)):
    parts(
        f"Chunks of {sizes} tokens.",
        output(chunked(attention, *sizes), drawn(2, sum(sizes), D_IN)),
        hidden=True,
    )
ask = output(chunked(block), drawn(3, 1, D), *pair(7))
parts("One token of a block after a given cache.", ask, hidden=True)


test_cache = Check(
    "The cache holds turned keys and values of num_kv_heads heads; it can be used twice.",
    points=5,
    about=CACHE,
)
cached = test_cache.case
cached("The cache after one call.", cache_after(attention, x=X))
cached("The cache after three chunks.", cache_after(attention, 2, 1, 2, x=X))
cached("The cache of a block.", cache_after(block, 3, 2, x=IN_BLOCK))
ask = cache_after(attention, 4, 3, 2, x=drawn(2, 9, D_IN), base=7.0)
cached("The cache after nine tokens, a base of 7.", ask, hidden=True)
for name, make, x in (("attention", attention, X), ("a block", block, IN_BLOCK)):
    ask = changed(chunked(make), x, *pair())
    cached(f"What {name} changes in x and in a cache.", ask, about="writes")
cached("What a block changes in x.", changed(chunked(block), IN_BLOCK), about="writes")


@cached
def used_twice(student, rng):
    """The output of a second call with the same cache."""
    module, (keys, given) = attention()(student, rng), (each(rng) for each in pair())
    module(X(rng), (keys.clone(), given.clone()))
    return single(module(X(rng), (keys, given))[0])


@cached(within=(0, 0.06), hidden=True)
def far(student, rng):
    """The keys of tokens after some 3000 others, in bfloat16."""
    module = attention(d_out=6, heads=1, kv=1, context=4000, dtype=LOW)(student, rng)
    found = [
        module(
            rng.randn(3, 1, D_IN).to(LOW), tuple(each(rng) for each in pair(n, 1, 6, dtype=LOW))
        )[1][0][:, :, -1]
        for n in (2013, 3007)
    ]
    return found


cached("A second sequence.", in_turn(chunked(attention, 2, 1), FEW, FEW), about="options")


test_refusals = Check(
    "Too many tokens, an odd d_head and heads that do not divide are refused.",
    points=2,
    about="refusals",
)
misuses = test_refusals.case
for context, n_cached, n_tokens in ((4, 3, 2), (5, 5, 1), (4, 1, 4)):
    says = f"{n_tokens} tokens after {n_cached} for a context of {context}"
    for name, make, d in (("attention", attention, D_IN), ("block", block, D)):
        ask = refused(chunked(make, context=context), drawn(3, n_tokens, d), *pair(n_cached))
        misuses(f"{says}, {name}.", ask)
misuses("Six tokens for a context of five.", refused(attention(context=5), drawn(2, 6, D_IN)))
for d_out, heads, kv in ((6, 2, 1), (5, 1, 1), (10, 4, 2), (16, 4, 3), (8, 2, 4)):
    ask = refused("RotaryAttention", D_IN, d_out, 9, 0.0, heads, kv)
    misuses(f"{heads} heads, {kv} of keys, for {d_out} columns.", ask)
misuses("An odd head in a block.", refused("ModernBlock", 9, 3, 1, 5, 9), hidden=True)
full = works_as_well(attention(context=7), drawn(2, 6, D_IN), drawn(2, 7, D_IN))
misuses("Whether a full context works.", full, about="values")


test_block = Check(
    "x + attention(norm1(x)), then that sum + feed_forward(norm2(that sum)).",
    points=4,
    about=BLOCK,
)
wired = test_block.case
wired("A block.", output(chunked(block), FEW_IN_BLOCK))
wired("A block with a base of 20.", output(chunked(block, base=20.0), FEW_IN_BLOCK))
wired("A block with as many heads of keys as heads.", output(chunked(block, kv=4), FEW_IN_BLOCK))
wired("A block with inputs of a thousand.", output(chunked(block), drawn(2, 3, D, times=1e3)))
large = drawn(3, 2, D, times=1e3)
wired("A block with inputs of a thousand after a cache.", output(chunked(block), large, *pair()))
ask = output(chunked(block, heads=8, kv=2, base=50.0), drawn(2, 7, D))
wired("A block of eight heads.", ask, hidden=True)
wired("A block and one token.", output(chunked(block), drawn(2, 1, D)), hidden=True)
SILENT = {"attention.out_proj.weight": torch.zeros(D, D, dtype=torch.float64)}
SILENT["feed_forward.W_down.weight"] = torch.zeros(D, 6, dtype=torch.float64)
for name, zeros in SILENT.items():
    ask = output(filled(chunked(block), {name: zeros}), FEW_IN_BLOCK)
    wired(f"A block whose {name} is zero.", ask)


test_training = Check(
    "In training, weights and hidden units are dropped and nothing else; gradients reach all.",
    points=2,
    about="training",
)
trains = test_training.case


def two_heads(*sizes, **options):
    """Return what makes an attention that returns what its two heads give, side by side."""
    made = chunked(attention, *sizes, heads=2, kv=1, d_out=8, **options)
    return filled(made, {"out_proj.weight": torch.eye(8, dtype=torch.float64)})


def shared_values(state):
    """Return the weights of the values of both heads."""
    return state["W_value.weight"].repeat(2, 1)


dropout_cases(test_training, two_heads, D_IN, heads=2, values=shared_values)
each = functools.partial(each_on_its_own, d_in=D_IN, heads=2, values=shared_values, n_tokens=3)
trains("Each weight on its own.", each(two_heads), tells=False, hidden=True)
ask = each(functools.partial(two_heads, 2, 1))
trains("Each weight on its own, in chunks.", ask, tells=False, hidden=True)
trains("A dropout of a half in evaluation.", output(chunked(attention, dropout=0.5), FEW))
unsaid = functools.partial(built, "ModernBlock", *BLOCK_SIZES, training=True)
trains("Training where no dropout is asked for.", output(chunked(unsaid), FEW_IN_BLOCK))
trains("The same of one sentence.", output(chunked(unsaid), drawn(1, 7, D)), hidden=True)
for name, make, x in (("attention", attention, X), ("a block", block, IN_BLOCK)):
    all_ = chunked(make, dropout=1.0, training=True)
    trains(f"A dropout of 1, {name}.", output(all_, x))
    trains(f"A dropout of 1 after a given cache, {name}.", output(all_, x, *pair()))
    ask = slopes(chunked(make, training=True), x, *pair())
    trains(f"The gradients after a given cache, {name}.", ask, about="gradient", hidden=True)
    some = chunked(make, dropout=0.4, training=True)
    trains(f"What gets a gradient with dropout, {name}.", reached(some, x), about="gradient")
# Small ones, because a gradient has as many numbers as there are parameters.
small = functools.partial(attention, d_out=8, heads=2, kv=1)
small_block = functools.partial(built, "ModernBlock", 8, 2, 1, 3, 40)
for name, make, d in (("attention", small, D_IN), ("a block", small_block, 8)):
    ask = slopes(chunked(make), drawn(2, 5, d))
    trains(f"The gradients, {name}.", ask, about="gradient", hidden=True)
    ask = slopes(chunked(make), drawn(3, 4, d), *pair(2, 1))
    trains(f"The gradients of four tokens after two, {name}.", ask, about="gradient")
ask = reached(chunked(block, dropout=0.4, training=True), IN_BLOCK, *pair())
trains("What gets a gradient in a block with a cache.", ask, about="gradient", hidden=True)
ask = reached(chunked(attention, dropout=0.4, training=True), X, *pair())
trains("What gets a gradient in an attention with a cache.", ask, about="gradient", hidden=True)
for name in SILENT:

    def inside(student, rng, name=name):
        made = built("ModernBlock", 4, 1, 1, 3, 9, 0.5, training=True)
        silent = filled(chunked(lambda: made), {name: 0 * SILENT[name][:4, : 3 + ("out" in name)]})
        return extremes(student, silent(student, rng), rng.randn(1, 2, 4))

    trains(f"The extremes of a block whose {name} is zero.", inside)


test_any_input = Check(
    "Any view, dtype and device works; no loop is needed; nothing is written.", points=2
)
usable = test_any_input.case
for name, make, x in (("attention", attention, X), ("a block", block, IN_BLOCK)):
    views = [turned(each) for each in pair()]
    ask = output(chunked(make), turned(x, 0, 1), *views)
    usable(f"x and the cache are views, {name}.", ask, about="views")
    ask = output(chunked(make), turned(x), *(turned(each, 1, 2) for each in pair()))
    usable(f"Other axes of x and the cache are swapped, {name}.", ask, about="views", hidden=True)
argument_cases(test_any_input, functools.partial(chunked, attention), X)
dtype_cases(
    test_any_input,
    functools.partial(chunked, block),
    (2, 4, D),
    *("ModernBlock", *BLOCK_SIZES, 0.5),
)
ask = moved("RotaryAttention", *SIZES, x=drawn(2, 4, D_IN, dtype=torch.float32))
usable("A move of an attention.", ask, about="devices")
ask = output(chunked(attention, dtype=LOW), drawn(3, 2, D_IN, dtype=LOW))
usable("An attention in bfloat16.", ask, about="dtype", within=ROUGH)
for name, make, shape in (("attention", attention, (3, 2, D_IN)), ("a block", block, (3, 2, D))):
    low, given = drawn(*shape, dtype=LOW), pair(dtype=LOW)
    usable(
        f"bfloat16 after a given cache, {name}.",
        output(chunked(make, dtype=LOW), low, *given),
        about="dtype",
        within=ROUGH,
    )
    ask = only_dtype(chunked(make, dtype=LOW, dropout=0.5, training=True), low, *given)
    usable(f"bfloat16 in training, {name}.", ask, about="dtype", hidden=True)

    def dtypes(student, rng, make=make, low=low, given=given):
        _, cache = make(dtype=LOW)(student, rng)(low(rng), tuple(each(rng) for each in given))
        return [torch.zeros_like(each) for each in cache]

    usable(f"The dtypes of a cache in bfloat16, {name}.", dtypes, about="dtype")


@usable(about="devices", tells=False, hidden=True)
def moved_with_a_cache(student, rng):
    """A move to another device, with a cache."""
    x, cache = rng.randn(3, 2, D).float(), tuple(each(rng).float() for each in pair())
    assert_moves(lambda: student.ModernBlock(*BLOCK_SIZES, 0.5), x, cache)
    x = rng.randn(3, 2, D_IN).float()
    assert_moves(lambda: student.RotaryAttention(*SIZES), x, cache)


@usable(tells=False, hidden=True)
def growth(student, rng):
    """Memory grows with the cached tokens; no loop runs over sentences, tokens or heads."""

    def given(batch, n_tokens, n_cached, heads, d):
        kept = [rng.randn(batch, heads, n_cached, 24 // heads).float() for _ in range(2)]
        return rng.randn(batch, n_tokens, d).float(), tuple(kept)

    def step(batch=2, n_tokens=3, n_cached=4, heads=2):
        inner = student.RotaryAttention(D_IN, 24, 80, 0.0, heads, heads)
        outer = student.ModernBlock(24, heads, heads, 5, 80)
        calls = [
            (m, *given(batch, n_tokens, n_cached, heads, d))
            for m, d in ((inner, D_IN), (outer, 24))
        ]
        return lambda: [output_of(m, x, kept) for m, x, cache in calls for kept in (cache, None)]

    for module, d in (
        (student.RotaryAttention(D_IN, 24, 900, 0.0, 2, 2), D_IN),
        (student.ModernBlock(24, 2, 2, 5, 900), 24),
    ):
        one = lambda n, m=module, d=d: output_of(m, *given(1, 1, n, 2, d))  # noqa: E731
        assert_linear_memory(student, one, 200, "cached tokens")
    grown = {"sentences": {"batch": (9, 19)}, "tokens": {"n_tokens": (12, 26)}}
    grown |= {"cached tokens": {"n_cached": (14, 29)}, "heads": {"heads": (6, 12)}}
    assert_vectorised(student, step, grown)


@pytest.mark.own_parts
@pytest.mark.points(0)
def test_on_your_own_parts(student, reference, rng):
    """With your own norm and SwiGLU, the block gives the same output."""
    theirs, ours = twins(student.ModernBlock, reference.ModernBlock, *BLOCK_SIZES, rng=rng)
    x = rng.randn(2, 5, D)
    assert_close(output_of(theirs, x)[0], output_of(ours, x)[0], "the output", atol=1e-5)
