"""Hidden tests, which decide the points.

A check of anything but the formula compares the student's answers with each other, so that one
mistake costs one check.
"""

import contextlib
import functools

import pytest
import torch

from grader.errors import StudentFailure
from grader.testing import (
    assert_close,
    assert_drawn_anew,
    assert_dropped,
    assert_dtype,
    assert_linear_memory,
    assert_moves,
    assert_refused,
    assert_right_or_own,
    assert_same,
    assert_slopes,
    assert_unchanged,
    assert_vectorised,
    assert_written_by_hand,
    expect,
    in_float64,
    load_parameters,
    manual_seed,
    output_of,
    twins,
)

pytestmark = pytest.mark.needs("test_written_by_hand")

BATCH, N_TOKENS, CONTEXT, D_IN, HEADS, D_HEAD = 2, 7, 8, 5, 3, 4
D_OUT = HEADS * D_HEAD
NAMES = "W_query", "W_key", "W_value"
LONG, LONG_CHUNKS = 18, ((6, 5, 4, 1, 2), (13, 1, 1, 1, 1, 1))  # more tokens, which add up to LONG
DRAWS, RATE = 200, 0.39  # sentences of which the weights are dropped


def weights_of(rng, *, d_out=D_OUT):
    """Return random parameters of the four layers by name."""
    state = {f"{name}.weight": rng.randn(d_out, D_IN) * 0.5 for name in NAMES}
    out_proj = {"out_proj.weight": rng.randn(d_out, d_out) * 0.5, "out_proj.bias": rng.randn(d_out)}
    return {**state, **out_proj}


def made(code, state, *, context=CONTEXT, dropout=0.0, heads=HEADS, d_out=D_OUT):
    """Return a module in float64 and evaluation mode, with the parameters `state`."""
    return load_parameters(code.CachedAttention(D_IN, d_out, context, dropout, heads), state)


def called(module, x, cache=None):
    """Return the output and the cache of a call without gradients."""
    arguments = () if cache is None else (cache,)
    found = output_of(module, x.clone(), *arguments)
    is_pair = isinstance(found, list | tuple) and len(found) == 2
    expect(is_pair, "forward does not return the pair (output, cache)")
    output, cache = found
    is_pair = isinstance(cache, list | tuple) and len(cache) == 2
    expect(is_pair, "the cache is not the pair (keys, values)")
    return output, tuple(cache)


def in_chunks(module, x, chunks):
    """Return the outputs of chunks of these lengths, one after the other, and the last cache."""
    outputs, cache = [], None
    for chunk in x.split(list(chunks), dim=1):
        output, cache = called(module, chunk, cache)
        outputs.append(in_float64(output))
        shape = (len(x), chunk.shape[1])
        found = tuple(outputs[-1].shape)
        expect(found[:2] == shape, f"for {shape[1]} tokens, the output has shape {found}")
    return torch.cat(outputs, dim=1), cache


def own_cache(code, module, state, x):
    """Return the cache that a call gives, or the right one if the call's has the wrong shape.

    Other checks ask for the cache. What follows from a wrong one is not asked for again.
    """
    _, cache = called(module, x)
    _, right = called(made(code, state), x)
    same = all(in_float64(one).shape == other.shape for one, other in zip(cache, right))
    return cache if same else right


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """The attention is written by hand, without a torch function that does all of it.

    Guards: the ban on torch's attention, even if other tests fail for other reasons.
    """
    x = rng.randn(BATCH, 2, D_IN, dtype=torch.float32)
    module = student.CachedAttention(D_IN, D_OUT, CONTEXT, 0.0, HEADS)

    def two_calls():
        _, cache = output_of(module, x)
        output_of(module, x, cache)

    assert_written_by_hand(student, two_calls)


@pytest.mark.points(1)
def test_whole_sequence(student, reference, rng):
    """Without a cache, the output is that of causal multi-head attention."""
    makes = student.CachedAttention, reference.CachedAttention
    for heads, d_head, options in ((3, 4, {}), (2, 5, {"qkv_bias": True}), (5, 1, {})):
        sizes = D_IN, heads * d_head, CONTEXT, 0.0, heads
        theirs, ours = twins(*makes, *sizes, rng=rng, **options)
        x = rng.randn(BATCH, N_TOKENS, D_IN)
        x[:, 2:4] = 0  # scores of 0 hide nothing
        assert_close(in_float64(called(theirs, x)[0]), called(ours, x)[0])
    # Large queries with small keys, the reverse, large values, and large scores.
    state, x = weights_of(rng), rng.randn(BATCH, N_TOKENS, D_IN)
    for factors in ((1e6, 1e-6, 1), (1e-6, 1e6, 1e6), (1e6, 1e6, 1)):
        scaled = {f"{n}.weight": state[f"{n}.weight"] * size for n, size in zip(NAMES, factors)}
        output, right = (called(made(c, {**state, **scaled}), x)[0] for c in (student, reference))
        what = "the output for large numbers"
        assert_close(in_float64(output), right, what, atol=1e-5 * factors[2])


@pytest.mark.points(2)
def test_chunks(student, reference, rng):
    """The outputs of chunks of any lengths are those of the whole sequence."""
    state = weights_of(rng)
    theirs, ours = (made(code, state) for code in (student, reference))
    x = rng.randn(BATCH, N_TOKENS, D_IN)
    right, _ = called(ours, x)
    for chunks in ((1,) * N_TOKENS, (4, 3), (1, 2, 4), (3, 3, 1), (6, 1)):
        output, _ = in_chunks(theirs, x, chunks)
        what = f"the output in chunks of {', '.join(map(str, chunks))} tokens"
        assert_right_or_own(output, right, lambda: in_float64(called(theirs, x)[0]), what)
    makes, sizes = (c.CachedAttention for c in (student, reference)), (D_IN, D_OUT, CONTEXT, 0.0)
    biased, right = twins(*makes, *sizes, HEADS, rng=rng, qkv_bias=True)
    output, _ = in_chunks(biased, x, (4, 3))
    own = lambda: in_float64(called(biased, x)[0])  # noqa: E731
    assert_right_or_own(output, called(right, x)[0], own, "the output in chunks with biases")
    longer, wide = (made(code, state, context=LONG + 3) for code in (student, reference))
    x = rng.randn(BATCH, LONG, D_IN)
    right, _ = called(wide, x)
    for chunks in LONG_CHUNKS:
        output, _ = in_chunks(longer, x, chunks)
        what = f"the output in chunks of {', '.join(map(str, chunks))} tokens"
        whole = lambda x=x: in_float64(called(longer, x)[0])  # noqa: E731
        assert_right_or_own(output, right, whole, what)
    # Tokens that are nearly alike, whose scores are all far below 0, and far larger later ones.
    state["W_key.weight"] = -state["W_query.weight"]
    theirs = made(student, state)
    for scale in (1.0, 1e3, 1e6):
        x = (rng.randn(BATCH, 1, D_IN) * 3 + rng.randn(BATCH, N_TOKENS, D_IN) * 0.3) * scale
        changed = x.clone()
        changed[:, 4:] += rng.randn(BATCH, N_TOKENS - 4, D_IN) * scale * 1e8
        for chunks in ((2, 5), (5, 2)):
            before, after = (in_chunks(theirs, each, chunks)[0][:, :4] for each in (x, changed))
            finite = before.isfinite().all()
            expect(finite, f"for an x of scale {scale:.0e} the output is not finite")
            assert_same(after, before, "the output for the tokens before a change")


@pytest.mark.points(1)
def test_cache(student, reference, rng):
    """The cache holds the keys and values of all tokens; it can be used twice."""

    def assert_holds(found, right, when):
        for name, one, other in zip(("keys", "values"), found, right):
            assert_close(in_float64(one), other, f"the {name} in the cache {when}")

    def after(chunks):
        return f"after chunks of {', '.join(map(str, chunks))} tokens"

    state = weights_of(rng)
    theirs, ours = (made(code, state) for code in (student, reference))
    x = rng.randn(BATCH, N_TOKENS, D_IN)
    for chunks, factor in (((4,), 1), ((4, 3), 1), ((2, 1, 2), 1), ((3, 2), 1e6)):
        tokens = x[:, : sum(chunks)] * factor
        _, found = in_chunks(theirs, tokens, chunks)
        assert_holds(found, called(ours, tokens)[1], after(chunks))
    full, chunks = rng.randn(BATCH, CONTEXT, D_IN), (CONTEXT - 1, 1)
    with contextlib.suppress(StudentFailure):  # another check asks whether a full context works
        _, found = in_chunks(theirs, full, chunks)
        assert_holds(found, called(ours, full)[1], after(chunks))
    longer, wide = (made(code, state, context=LONG + 3) for code in (student, reference))
    tokens = rng.randn(BATCH, LONG, D_IN)
    _, right = called(wide, tokens)
    for chunks in LONG_CHUNKS:
        _, found = in_chunks(longer, tokens, chunks)
        assert_holds(found, right, after(chunks))
    small = weights_of(rng, d_out=1)  # no axis of size 1 is lost
    theirs_small, ours_small = (made(c, small, heads=1, d_out=1) for c in (student, reference))
    for tokens in (x[:1, :1], x[:1, :2]):
        found, right = (called(each, tokens)[1] for each in (theirs_small, ours_small))
        for _ in range(2):
            assert_holds(found, right, "for a batch of 1, and one head of size 1")
            found, right = (
                called(each, x[:1, 2:3], right)[1] for each in (theirs_small, ours_small)
            )
    _, cache = called(ours, x[:, :4])

    def with_cache(keys, values):
        return called(theirs, x[:, 4:], (keys, values))[0]

    one = assert_unchanged(student, with_cache, *cache, names=("cache[0]", "cache[1]"))
    called(theirs, x[:, 2:5], cache)
    assert_same(with_cache(*cache), one, "the output of a second call with the same cache")


@pytest.mark.points(1)
def test_too_long(student, reference, rng):
    """More tokens than context_length, those in the cache included, are refused."""
    for context, chunks in ((CONTEXT, (5, 3)), (CONTEXT, (CONTEXT,)), (4, (1, 2, 1)), (1, (1,))):
        state = weights_of(rng)
        module, ours = (made(code, state, context=context) for code in (student, reference))
        x = rng.randn(BATCH, 2 * context, D_IN)
        _, cache = in_chunks(ours, x[:, :context], chunks)
        if context > 2:
            _, half = in_chunks(ours, x[:, : context - 1], (context - 1,))
            over = functools.partial(called, module, x[:, :2], half)
            assert_refused(student, over, f"2 more tokens after {context - 1} of {context}")
        for n_tokens in (1, context):
            more = functools.partial(called, module, x[:, :n_tokens], cache)
            shown = f"{n_tokens} more tokens after {context}, at a context_length of {context},"
            assert_refused(student, more, shown)
        for n_tokens in (context + 1, 2 * context):
            whole = functools.partial(called, module, x[:, :n_tokens])
            assert_refused(student, whole, f"{n_tokens} tokens at a context_length of {context}")
        # The full context itself is not refused.
        last, right = chunks[-1], called(ours, x[:, :context])[0]
        _, cache = called(ours, x[:, : context - last]) if last < context else (None, None)
        output, _ = called(module, x[:, context - last : context], cache)
        found, wanted = tuple(in_float64(output).shape), (BATCH, last, right.shape[-1])
        expect(found == wanted, f"for a full context, the output has shape {found}, not {wanted}")
    for d_out, heads in ((D_OUT, 5), (6, 4), (4, 8)):
        call = functools.partial(student.CachedAttention, D_IN, d_out, CONTEXT, 0.0, heads)
        assert_refused(student, call, f"CachedAttention({D_IN}, {d_out}, {CONTEXT}, 0.0, {heads})")


@pytest.mark.points(1)
def test_training(student, reference, rng):
    """In training, weights are dropped and nothing else; gradients reach x and all parameters."""
    state = weights_of(rng)
    x = rng.randn(BATCH, N_TOKENS, D_IN)
    theirs, ours = (made(code, state, dropout=RATE) for code in (student, reference))
    cache = own_cache(reference, theirs, state, x[:, :2])
    for given in ((), (cache,)):

        def output(module, given=given):
            return lambda x: module(x, *given)[0]

        for training in (False, True):
            pair = theirs.train(training), ours.train(training)
            assert_slopes(student, *map(output, pair), {"x": x[:, 2:]}, rng=rng)
            assert_reached(student, *map(output, pair), *pair, x[:, 2:])
    without = called(made(student, state), x)[0]
    undropped = called(made(student, state).train(), x)[0]
    assert_same(undropped, without, "the output in training with a dropout of 0")
    for module in (made(student, state, dropout=0.5), theirs.eval()):
        assert_same(called(module, x)[0], without, "the output in eval mode")
    for n_cached in (3, 0):
        assert_weights_dropped(student, reference, rng, n_cached)
    module = made(student, state, dropout=RATE).train()
    assert_drawn_anew(lambda x: module(x)[0], x.repeat(8, 1, 1))
    cache = tuple(each.repeat(8, 1, 1, 1) for each in cache)
    assert_drawn_anew(lambda x: module(x, cache)[0], x[:, -1:].repeat(8, 1, 1))


def assert_reached(student, theirs, ours, module, right, x):
    """Raise `Mismatch` unless gradients reach all parameters, the right ones if the output is."""
    manual_seed(student, 1)
    torch.manual_seed(1)
    outputs = theirs(x), ours(x)
    for each, output in zip((module, right), outputs):
        each.zero_grad()
        output.square().sum().backward()
    same = outputs[0].shape == outputs[1].shape and torch.allclose(*outputs, rtol=1e-6, atol=1e-5)
    expected = {name: parameter.grad for name, parameter in right.named_parameters()}
    for name, parameter in module.named_parameters():
        grad = parameter.grad
        reached = grad is not None and bool(grad.isfinite().all() and (grad != 0).any())
        expect(reached, f"no gradient reaches {name}")
        if same and name in expected:
            assert_close(grad, expected[name], f"the gradient of {name}")


def assert_weights_dropped(student, reference, rng, n_cached):
    """Raise `Mismatch` unless each weight is dropped on its own, and nothing else.

    The weights of two new tokens after n_cached ones are computed from the output.
    """
    d_head = 6
    d_out = HEADS * d_head
    state = weights_of(rng, d_out=d_out)
    state["out_proj.weight"] = torch.eye(d_out, dtype=torch.float64)
    state["out_proj.bias"] = torch.zeros(d_out, dtype=torch.float64)
    x = rng.randn(1, n_cached + 2, D_IN).repeat(DRAWS, 1, 1) * 0.3
    ours = made(reference, state, d_out=d_out)
    right = called(ours, x[:1, :n_cached])[1] if n_cached else None
    values = called(ours, x[:1])[1][1][0]  # (heads, n_keys, d_head)
    inverse = torch.linalg.pinv(values)  # (heads, d_head, n_keys)

    def weights(rate, draws):
        module = made(student, state, dropout=rate, d_out=d_out).train()
        cache = right and tuple(each.repeat(draws, 1, 1, 1) for each in right)
        output, _ = called(module, x[:draws, n_cached:], cache)
        output = in_float64(output)
        expect(output.shape == (draws, 2, d_out), "the output in training has another shape")
        expect(output.isfinite().all(), "the output in training is not finite")
        return output.unflatten(-1, (HEADS, d_head)).transpose(1, 2) @ inverse

    plain, seen, nothing = weights(0.0, 2)[0], weights(RATE, DRAWS), weights(1.0, 1)
    dropped = seen.abs() < plain.abs() / 2
    expected = (plain / (1 - RATE)).masked_fill(dropped, 0.0)
    assert_close(seen, expected, "the weights in training (computed from the output)", atol=1e-4)
    assert_dropped(dropped[:, plain.abs() > 1e-3], RATE, "weights")
    assert_close(nothing, torch.zeros_like(nothing), "the output at rate 1, less the bias")


@pytest.mark.points(1)
def test_any_input(student, reference, rng):
    """Any batch, one head, views, dtypes and devices work; nothing is kept; x is not modified."""
    state = weights_of(rng)
    module = made(student, state)
    x = rng.randn(3, N_TOKENS, D_IN)
    cache = own_cache(reference, module, state, x[:, :4])
    first, _ = called(module, x[:, :4])
    second, _ = called(module, x[:, 4:], cache)
    again, _ = called(module, x[:, :4])
    assert_same(again, first, "the output of a second sequence")
    alone, _ = called(module, x[1:2, 4:], tuple(each[1:2] for each in cache))
    what = "the output for one sentence of the batch, with its cache,"
    assert_same(alone, in_float64(second)[1:2], what)
    alone, _ = called(module, x[1:2, :4])
    what = "the output for one sentence of the batch, without a cache,"
    assert_same(alone, in_float64(first)[1:2], what)
    small = made(student, weights_of(rng, d_out=1), heads=1, d_out=1)
    _, right = called(made(reference, weights_of(rng, d_out=1), heads=1, d_out=1), x[:, :1])
    found = tuple(in_float64(called(small, x[:, 1:2], right)[0]).shape)
    expect(found == (3, 1, 1), f"the output for one head of size 1 has shape {found}")

    def call(x, *cache):
        return in_float64(output_of(module, x, *([cache] if cache else []))[0])

    assert_unchanged(student, call, x, names=("x",))
    given = x[:, 4:], *cache
    output = call(*given)
    for axes in ((1, 2), (0, 1)):
        views = [each.transpose(*axes).contiguous().transpose(*axes) for each in given]
        assert_same(call(*views), output, "the output for transposed views")
    make = functools.partial(student.CachedAttention, D_IN, D_OUT, CONTEXT, 0.5, HEADS)
    for inputs in ((x.float(),), (x[:, 4:].float(), tuple(each.float() for each in cache))):
        assert_moves(make, *inputs)
    for dtype in (torch.float32, torch.bfloat16):
        low = made(student, state, dropout=0.5).to(dtype)
        shown = f"after module.to({dtype}), the output"
        for training in (True, False):
            low.train(training)
            start, kept = called(low, x[:, :4].to(dtype))
            rest, kept = called(low, x[:, 4:].to(dtype), kept)
            for each in (start, rest):
                assert_dtype(each, dtype, shown)
            for each in kept:
                assert_dtype(each, dtype, f"after module.to({dtype}), the cache")
        wide = torch.cat([in_float64(first), in_float64(second)], dim=1)
        both = torch.cat([start, rest], dim=1).double()
        assert_close(both, wide, f"the output in {dtype}", rtol=0.1, atol=0.1)


@pytest.mark.points(1)
def test_cost(student, reference, rng):
    """For one new token, the memory grows with the cached tokens, not with their square."""
    module = student.CachedAttention(D_IN, 6, 900, 0.0, 2)
    x = rng.randn(1, 1, D_IN).float()

    def cache_of(batch, n_cached, heads=2, d_out=6):
        return tuple(rng.randn(batch, heads, n_cached, d_out // heads).float() for _ in range(2))

    def call(n_cached):
        return output_of(module, x, cache_of(1, n_cached))

    assert_linear_memory(student, call, 200, "cached tokens")

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
