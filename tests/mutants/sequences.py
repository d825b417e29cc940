"""What the judge of mutants asks of the second half of the course, training apart."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import torch
from mutants import asking
from torch import Tensor

from grader.authors import build, gradients
from grader.grading.rng import Rng


def positional_encoding(module: ModuleType, rng: Rng) -> Iterator[asking.Question]:
    """Draw tables, layers that are not trained, and permutations."""
    batch, n_tokens, d_model = asking.sizes(rng, 3)
    context, rate = n_tokens + int(rng.randint(0, 3, 1)), asking.rate(rng)
    base = asking.one_of(rng, 2.0, 5, 30.0)
    yield "a table", lambda: module.sinusoidal(context, d_model, base)
    yield "a named base", lambda: module.sinusoidal(context, d_model, base=base)
    yield "the default base", lambda: module.sinusoidal(3, 6).to(torch.bfloat16)
    make = functools.partial(module.PositionalEncoding, d_model, context, rate)
    for what, call in asking.layer(make, rng, (batch, n_tokens, d_model), rate=rate):
        yield what, functools.partial(_rounded, call)
    yield "state", lambda: sorted(make().state_dict())
    for extra in (1, 2, 9):
        x = rng.randn(batch, context + extra, d_model)
        yield f"{extra} tokens too many", lambda x=x: make().double().eval()(x)
    x, order = rng.randn(batch, n_tokens, d_model), torch.arange(n_tokens).roll(2)
    order = order if n_tokens == 1 else order[rng.permutation(n_tokens)]

    def gap(block: Callable[[Tensor], Tensor]) -> Tensor:
        return torch.tensor(float(module.permutation_gap(block, x, order)))

    encode = make().double().eval()
    blocks = {
        "the module": encode,
        "a sum": lambda x: x.cumsum(1),
        "a mean": lambda x: x - x.mean(),
    }
    for what, block in blocks.items():
        yield f"the gap of {what}", functools.partial(gap, block)
    yield (
        "arguments of the gap",
        lambda: asking.afterwards(module.permutation_gap, encode, x, order),
    )


def _rounded(call: Callable[[], Any]) -> Any:
    """Return an answer with its float64 tensors in float32, to which the encoding is rounded."""
    found = call()
    if isinstance(found, Tensor) and found.dtype == torch.float64:
        return found.float()
    is_mapping = isinstance(found, dict)
    return {name: _rounded(lambda v=v: v) for name, v in found.items()} if is_mapping else found


def rotary_embedding(module: ModuleType, rng: Rng) -> Iterator[asking.Question]:
    """Draw tokens, positions of each kind, and both kinds of pairs."""
    n_tokens, num_heads, n_pairs, d_value, *leading = asking.sizes(rng, 6)
    shape = (*leading[: int(rng.randint(0, 3, 1))], n_tokens, num_heads, 2 * n_pairs)
    positions = rng.randint(-9, 30, n_tokens)
    positions = positions + asking.one_of(rng, 0, 0.0, 0.4)
    # Angles may be in float32, so that tokens are of ordinary size.
    x, keys = (rng.randn(*shape) * asking.one_of(rng, 1.0, 1.0, 0.1, 0.0) for _ in range(2))
    values = asking.drawn(rng, *shape[:-1], d_value).clamp(-9, 9)
    base = asking.one_of(rng, 2.0, 5, 30.0, 10000.0)
    for interleaved in (True, False):
        options = {"base": base, "interleaved": interleaved}
        call = functools.partial(module.rotate, positions=positions, **options)
        for what, asked in asking.function(call, rng, x):
            yield what, functools.partial(_rounded, asked)
    yield "options without names", lambda: module.rotate(x, positions, base, False).float()
    yield "the default base", lambda: module.rotate(x, positions).float()
    far = positions + 1000
    yield "thousands", lambda: module.rotate(x, far).to(torch.bfloat16)
    yield "millions", lambda: module.rotate(x * 1e6, positions).div(1e6).float()
    yield "positions afterwards", lambda: asking.afterwards(module.rotate, x, positions)
    call = functools.partial(module.rotary_attention, positions=positions)
    for what, asked in asking.function(call, rng, x, keys, values):
        yield what, functools.partial(_rounded, asked)
    named = {"queries": x, "keys": keys, "values": values, "positions": positions}
    yield "named", lambda: module.rotary_attention(**named).float()
    for count in {1, 2, num_heads, n_tokens - 1, n_tokens + 1, 2 * n_tokens} - {n_tokens}:
        few = torch.arange(count)
        yield f"{count} positions", lambda few=few: module.rotate(x, few)
        yield (
            f"attention with {count} positions",
            lambda few=few: module.rotary_attention(x, keys, values, few),
        )
    for interleaved in (True, False):
        odd = functools.partial(module.rotate, x[..., :-1], positions, interleaved=interleaved)
        yield "an odd d_head", odd


def kv_cache(module: ModuleType, rng: Rng) -> Iterator[asking.Question]:
    """Draw sequences in chunks, caches, too many tokens, and layers in both modes."""
    batch, n_tokens, d_in, num_heads, d_head, n_cached = (min(s, 4) for s in asking.sizes(rng, 6))
    context = n_cached + n_tokens + asking.one_of(rng, 0, 0, 2)
    rate, d_out, seed = asking.rate(rng), num_heads * d_head, Rng(rng.seed)
    options = dict(asking.one_of(rng, {}, {"qkv_bias": False}, {"qkv_bias": True}))
    make = functools.partial(
        module.CachedAttention, d_in, d_out, context, rate, num_heads, **options
    )
    x, small = asking.drawn(rng, batch, n_tokens, d_in), rng.randn(batch, n_tokens, d_in)
    cache = tuple(rng.randn(batch, num_heads, n_cached, d_head) for _ in range(2))

    def made(training: bool = False) -> Any:
        return build(make, rng=seed).train(training)

    def flat(found: Any) -> dict[str, Any]:
        output, (keys, values) = found
        return {"output": output, "keys": keys, "values": values}

    def slopes(training: bool, *given: Any) -> dict[str, Any]:
        layer = made(training)
        found = gradients(lambda x: layer(x, *given)[0], small)
        return found | {f"of {name}": p.grad for name, p in layer.named_parameters()}

    def in_chunks(x: Tensor, length: int) -> dict[str, Any]:
        layer, found, kept = made(), {}, None
        for number, chunk in enumerate(x.split(length, dim=1)):
            output, kept = layer(chunk, kept)
            found |= {f"{number} {name}": each for name, each in flat((output, kept)).items()}
        return found

    def low(dtype: torch.dtype) -> dict[str, Any]:
        layer = build(make, rng=seed, dtype=torch.float32).to(dtype)
        return flat(layer(small.to(dtype), tuple(each.to(dtype) for each in cache)))

    yield (
        "parameters",
        lambda: {
            name: f"{tuple(p.shape)} {p.dtype} {p.requires_grad}"
            for name, p in make().named_parameters()
        },
    )
    yield "no cache", lambda: flat(made()(x))
    yield "a cache", lambda: flat(made()(x, cache))
    yield "named", lambda: flat(made()(x=x, cache=cache))
    yield "one token", lambda: flat(made()(x[:, :1], cache))
    for length in (1, n_tokens // 2 + 1):
        yield f"chunks of {length}", functools.partial(in_chunks, x, length)
    far = x.clone()
    far[:, n_tokens // 2 :] += 1e6
    yield "later tokens larger", lambda: flat(made()(far, cache))
    yield "gradients", lambda: slopes(False)
    yield "gradients with a cache", lambda: slopes(False, cache)
    yield "views", lambda: flat(made()(asking.as_view(x), tuple(map(asking.as_view, cache))))

    def afterwards() -> dict[str, Tensor]:
        return asking.afterwards(lambda x, *kept: made()(x, kept), x, *cache)

    yield "arguments", afterwards
    for dtype in asking.LOW:
        yield f"{dtype}", functools.partial(low, dtype)
    yield "meta", lambda: flat(make().to("meta")(x.to("meta")))
    for more in (context - n_cached, context - n_cached + 1, context + 1):
        tokens = rng.randn(batch, more, d_in)
        yield f"{more} tokens and {n_cached}", lambda x=tokens: flat(made()(x, cache))
        yield f"{more} tokens of {context}", lambda x=tokens: flat(made()(x))
    for heads, width in ((num_heads + 1, d_out), (5, 7), (4, 6), (2, 1)):
        if width % heads:
            yield (
                f"{heads} heads for {width}",
                functools.partial(
                    asking.refusal, module.CachedAttention, d_in, width, context, rate, heads
                ),
            )
    if rate in (0.0, 1.0):
        yield "training", lambda: slopes(True, cache)
    else:
        for place in ("output", "input 0"):
            yield (
                f"{place} in training",
                lambda p=place: asking.Random(lambda: slopes(True, cache)[p]),
            )


def grouped_query_attention(module: ModuleType, rng: Rng) -> Iterator[asking.Question]:
    """Draw both products, and layers with groups of any size."""
    batch, n_tokens, d_in, kv_heads, group, d_head, more = (min(s, 4) for s in asking.sizes(rng, 7))
    n_queries, n_keys, d_value = asking.sizes(rng, 3)
    heads, rate = kv_heads * group, asking.rate(rng)
    queries = asking.drawn(rng, batch, heads, n_queries, d_head)
    keys = rng.randn(batch, kv_heads, n_keys, d_head)
    weights = rng.randn(batch, heads, n_queries, n_keys)
    values = asking.drawn(rng, batch, kv_heads, n_keys, d_value)
    yield from asking.function(module.grouped_scores, rng, queries, keys)
    yield from asking.function(module.grouped_context, rng, weights, values)
    yield "scores, named", lambda: module.grouped_scores(queries=queries, keys=keys)
    yield "context, named", lambda: module.grouped_context(weights=weights, values=values)
    for count, shared in ((6, 4), (3, 2), (2, 4), (1, 3)):
        q, w = rng.randn(batch, count, 12, d_head), rng.randn(batch, count, 12, n_keys)
        k, v = (
            rng.randn(batch, shared, n_keys, d_head),
            rng.randn(batch, shared, n_keys, d_value),
        )
        given = f"{count} heads and {shared} of keys"
        yield f"scores of {given}", functools.partial(module.grouped_scores, q, k)
        yield f"context of {given}", functools.partial(module.grouped_context, w, v)
        width = 12 * d_head
        sizes = (d_in, width, 5, rate, count, shared)
        yield given, functools.partial(asking.refusal, module.GroupedQueryAttention, *sizes)
    for count, width in ((heads + 1, heads * d_head), (5, 7), (4, 6), (2, 1)):
        if width % count:
            sizes = (d_in, width, 5, rate, count, 1)
            yield (
                f"{count} heads for {width}",
                functools.partial(asking.refusal, module.GroupedQueryAttention, *sizes),
            )
    context = n_tokens + asking.one_of(rng, 0, 0, more)
    sizes = (d_in, heads * d_head, context, rate, heads, kv_heads)
    make = functools.partial(module.GroupedQueryAttention, *sizes)
    yield from asking.layer(make, rng, (batch, n_tokens, d_in), rate=rate)
    yield from asking.of_tokens(make, rng, batch, n_tokens, d_in, context)


def cross_attention(module: ModuleType, rng: Rng) -> Iterator[asking.Question]:
    """Draw attention to itself and to another sequence, both blocks, and masks with empty rows."""
    batch, n_queries, n_keys, heads, d_head, width, d_ff = asking.sizes(rng, 7)
    d_model = heads * d_head
    x, context = rng.randn(batch, n_queries, width), rng.randn(batch, n_keys, d_model)
    tokens = rng.randn(batch, n_queries, d_model)
    own, other = (rng.rand(batch, n) < 0.6 for n in (n_queries, n_keys))
    padded = context.masked_fill(~other.unsqueeze(2), torch.nan)
    sizes = {"CrossAttention": (width, d_model, d_model, 0.0, heads)}
    sizes |= dict.fromkeys(("EncoderBlock", "DecoderBlock"), (d_model, heads, d_ff, 0.0))

    def made(name: str, *options: Any) -> Any:
        given = (width, width, d_model, 0.0, heads) if options else sizes[name]
        return build(getattr(module, name), *given, *options, rng=Rng(rng.seed))

    for shown, name, options, given in (
        ("self", "CrossAttention", (False,), (x, None, own)),
        ("causal", "CrossAttention", (True,), (x, None, own)),
        ("cross", "CrossAttention", (), (x, context)),
        ("masked", "CrossAttention", (), (x, context, other)),
        ("nan", "CrossAttention", (), (x, padded, other)),
        ("encoder", "EncoderBlock", (), (tokens, own)),
        ("decoder", "DecoderBlock", (), (tokens, context, own, other)),
    ):
        make = functools.partial(made, name, *options)
        yield f"{shown}", lambda make=make, given=given: gradients(make(), *given)
        yield (
            f"arguments, {shown}",
            lambda make=make, given=given: asking.afterwards(make(), *given),
        )
        for dtype in asking.LOW:
            yield (
                f"{dtype}, {shown}",
                lambda make=make, given=given, dtype=dtype: asking.low(
                    make().to(dtype), dtype, *given
                ),
            )
    yield "a context if causal", lambda: made("CrossAttention", True)(x, x)
    for count, size in ((heads + 1, d_model), (5, 7), (4, 6)):
        if size % count:
            call = functools.partial(module.CrossAttention, width, width, size, 0.0, count)
            yield f"{count} heads for {size}", functools.partial(asking.refusal, call)


def sliding_window(module: ModuleType, rng: Rng) -> Iterator[asking.Question]:
    """Draw numbers of heads, windows and slopes."""
    batch, heads, n_tokens, d_head, window = asking.sizes(rng, 5)
    Q, K, V = (asking.drawn(rng, batch, heads, n_tokens, d_head) for _ in range(3))
    slopes = rng.rand(heads)
    for n in (heads, asking.size(rng, 40)):
        yield f"{n} slopes", functools.partial(module.alibi_slopes, n)
    plain = lambda Q, K, V: module.sliding_attention(Q, K, V, window)  # noqa: E731
    steep = lambda Q, K, V, slopes: module.sliding_attention(Q, K, V, window, slopes)  # noqa: E731
    yield from asking.function(plain, rng, Q, K, V)
    yield from asking.function(steep, rng, Q, K, V, slopes)
    for wrong in (0, -1, -3):
        yield f"a window of {wrong}", functools.partial(module.sliding_attention, Q, K, V, wrong)


def online_softmax(module: ModuleType, rng: Rng) -> Iterator[asking.Question]:
    """Draw chunks, states, tiles, and how much memory they may take."""
    *rows, tile = asking.sizes(rng, 1 + int(rng.randint(0, 4, 1)))
    widths = asking.sizes(rng, asking.size(rng, 4))
    chunks = [asking.drawn(rng, *rows, width) for width in widths]
    hidden = [chunk.clone().flatten(0, -2) if rows else chunk.clone()[None] for chunk in chunks]
    for chunk in hidden[: asking.size(rng)]:
        chunk[0] = -torch.inf
    cut = int(rng.randint(0, len(chunks), 1))

    def folded(*given: Tensor) -> Any:
        state = module.online_softmax(list(given[:cut])) if cut else None
        return module.online_softmax(list(given[cut:]), state)

    def log_of_sum(*given: Tensor) -> Tensor:
        maximum, total = folded(*given)
        found: Tensor = maximum + total.log()
        return found

    def low(dtype: torch.dtype) -> dict[str, Tensor]:
        return dict(enumerate(folded(*(chunk.to(dtype) for chunk in small))))

    def total_slopes() -> Any:
        return gradients(lambda *given: folded(*given)[1].masked_fill(found > 0, 0.0), *hidden)

    def added(maximum: Tensor, total: Tensor, *given: Tensor) -> Any:
        return dict(enumerate(module.online_softmax(list(given), (maximum, total))))

    found = functools.reduce(torch.maximum, (each.amax(dim=-1) for each in hidden)).isfinite()
    small = [rng.randn(*rows, width) for width in widths]
    yield "state", lambda: dict(enumerate(folded(*chunks)))
    yield "views", lambda: dict(enumerate(folded(*map(asking.as_view, chunks))))
    yield "named", lambda: dict(enumerate(module.online_softmax(chunks=chunks, state=None)))
    yield "hidden", lambda: dict(enumerate(folded(*hidden)))
    yield "gradients", lambda: gradients(log_of_sum, *chunks)
    yield "gradients of hidden rows", total_slopes
    state = rng.randn(*rows) + 1, rng.rand(*rows) + 1
    yield "arguments", lambda: asking.afterwards(added, *state, *chunks)
    yield "given state", lambda: added(*state, *chunks)
    for dtype in asking.LOW:
        yield f"{dtype}", functools.partial(low, dtype)
    yield from _tiled(module, rng, tile, rows)


def _tiled(
    module: ModuleType, rng: Rng, tile: int, leading: list[int]
) -> Iterator[asking.Question]:
    n_queries, n_keys, d_key, d_value = asking.sizes(rng, 4)
    leading = leading[:2]
    inputs = (
        asking.drawn(rng, *leading, n_queries, d_key),
        asking.drawn(rng, *leading, n_keys, d_key),
        asking.drawn(rng, *leading, n_keys, d_value),
    )
    for causal in (False, True):
        call = functools.partial(module.tiled_attention, tile=tile, causal=causal)
        questions = asking.function(call, rng, *inputs)
        yield from (each for each in questions if each[0] != "torch.float16")  # not promised
    yield "not causal", lambda: module.tiled_attention(*inputs, tile)
    for wrong in (0, -1, -7):
        yield f"tile {wrong}", functools.partial(module.tiled_attention, *inputs, wrong)
