"""What the judge of mutants asks of the core exercises."""

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


def dictionary_lookup(module: ModuleType, rng: Rng) -> Iterator[asking.Question]:
    """Draw calls of `attention` and of `lookup`."""
    n_queries, n_keys, d_key, d_value, *leading = asking.sizes(rng, 6)
    leading = leading[: int(rng.randint(0, 3, 1))]
    Q, K = asking.drawn(rng, *leading, n_queries, d_key), asking.drawn(rng, *leading, n_keys, d_key)
    V = asking.drawn(rng, *leading, n_keys, d_value)
    temp = asking.one_of(rng, 1.0, 1, 0.3, 0.7, 2.0, 5, 1e-2, 1e-4, 1e6)
    yield from asking.function(module.attention, rng, Q, K, V)
    yield from asking.function(functools.partial(module.attention, temp=temp), rng, Q, K, V)
    yield "temp without a name", lambda: module.attention(Q, K, V, temp)
    for wrong in (0, 0.0, -1, -1e-6, -0.5, -1e4):
        yield f"temp {wrong}", functools.partial(module.attention, Q, K, V, wrong)
    keys = (rng.permutation(30)[: asking.size(rng)] - 12).tolist()
    whole = asking.one_of(rng, True, False)
    rows = (rng.randn(len(keys), d_value) * asking.one_of(rng, 1.0, 9.0, 1e3)).tolist()
    entries = {k: [round(v) if whole else v for v in row] for k, row in zip(keys, rows)}
    for key in keys:
        yield f"lookup of {key}", functools.partial(module.lookup, entries, key)
        yield f"lookup of {key} at temp", functools.partial(module.lookup, entries, key, temp)
        yield (
            f"lookup of {key}, named",
            functools.partial(module.lookup, entries=entries, key=key, temp=0.4),
        )
    for key in {50, -1, 0, 1, len(keys)} - {*keys}:
        yield f"lookup of {key}, which is not there", functools.partial(module.lookup, entries, key)
    for wrong in (0, -1, -1e-3):
        yield f"lookup at temp {wrong}", functools.partial(module.lookup, entries, keys[0], wrong)
    yield (
        "entries",
        lambda: {
            "after": (module.lookup(entries, keys[0]), list(entries.items()))[1]
            == list(zip(keys, entries.values())),
            "rows": [list(row) for row in entries.values()],
        },
    )


def masked_softmax(module: ModuleType, rng: Rng) -> Iterator[asking.Question]:
    """Draw scores, and lengths of each kind."""
    batch, n_queries, n_keys = asking.sizes(rng, 3)
    X = asking.drawn(rng, batch, n_queries, n_keys)
    kind = asking.one_of(rng, "none", "batch", "batch", "query", "query")
    shape = {"none": (), "batch": (batch,), "query": (batch, n_queries)}[kind]
    lens = None if kind == "none" else rng.randint(0, n_keys + 1, *shape)
    if lens is not None:
        lens = lens.to(asking.one_of(rng, torch.int64, torch.int32, torch.float32, torch.float64))
        if lens.is_floating_point() and asking.one_of(rng, True, False):
            lens = (lens - 0.5).clamp(min=0)

    def call(x: Tensor) -> Any:  # lengths have no gradient
        return module.masked_softmax(x, lens)

    yield from asking.function(call, rng, X)
    yield "named", lambda: module.masked_softmax(X=X, valid_lens=lens)
    if lens is None:
        return
    padded = torch.arange(n_keys) >= lens.reshape(batch, -1, 1)
    for more in (1e3, 1e8, torch.inf):
        yield f"padding {more} larger", functools.partial(call, X + padded * 1.0 * min(more, 1e8))
    yield "all scores far below 0", functools.partial(call, X - 1e7)
    yield "the sum in one dtype", lambda: call(X.float()).sum(-1)
    yield "lengths afterwards", lambda: asking.afterwards(module.masked_softmax, X, lens)
    yield "lengths as a view", lambda: module.masked_softmax(X, asking.as_view(lens))
    for amount in (1, 0.5, 100):
        far = lens.double().clone()
        far.view(-1)[int(rng.randint(0, far.numel(), 1))] = n_keys + amount
        yield f"a length of n_keys + {amount}", functools.partial(module.masked_softmax, X, far)
    long = torch.full(shape, n_keys + 1)
    yield "every length too long", lambda: module.masked_softmax(X, long)
    for wrong in asking.wrong_shapes(batch, n_queries, n_keys):
        yield (
            f"lengths of shape {wrong}",
            functools.partial(module.masked_softmax, X, torch.ones(wrong, dtype=torch.int64)),
        )


def causal_attention(module: ModuleType, rng: Rng) -> Iterator[asking.Question]:
    """Draw layers and tokens, up to the context's length and beyond."""
    batch, n_tokens, d_in, d_out, more = asking.sizes(rng, 5)
    context, rate = n_tokens + asking.one_of(rng, 0, 0, more), asking.rate(rng)
    options = asking.one_of(rng, {}, {"qkv_bias": False}, {"qkv_bias": True}, {"qkv_bias": True})
    make = functools.partial(module.CausalAttention, d_in, d_out, context, rate, **options)
    yield from asking.layer(make, rng, (batch, n_tokens, d_in), rate=rate)
    yield from asking.of_tokens(make, rng, batch, n_tokens, d_in, context)


def multi_head_attention(module: ModuleType, rng: Rng) -> Iterator[asking.Question]:
    """Draw layers, heads and tokens, causal or not."""
    batch, n_tokens, d_in, num_heads, d_head, more = (min(s, 4) for s in asking.sizes(rng, 6))
    context, rate = n_tokens + asking.one_of(rng, 0, 0, more), asking.rate(rng)
    options = dict(asking.one_of(rng, {}, {"qkv_bias": False}, {"qkv_bias": True}))
    options |= asking.one_of(rng, {}, {"causal": True}, {"causal": False}, {"causal": False})
    d_out = num_heads * d_head
    make = functools.partial(
        module.MultiHeadAttention, d_in, d_out, context, rate, num_heads, **options
    )
    yield from asking.layer(make, rng, (batch, n_tokens, d_in), rate=rate)
    yield from asking.of_tokens(make, rng, batch, n_tokens, d_in, context)
    undivided = ((num_heads + 1, d_out), (5, 7), (d_out + 1, d_out), (4, 6), (6, 4), (2, 1))
    for heads, width in undivided:
        if width % heads:
            yield (
                f"{heads} heads for {width}",
                functools.partial(
                    asking.refusal,
                    module.MultiHeadAttention,
                    d_in,
                    width,
                    context,
                    rate,
                    heads,
                    **options,
                ),
            )


def layer_norm(module: ModuleType, rng: Rng) -> Iterator[asking.Question]:
    """Draw eps, leading axes, and features far from 0 or all equal."""
    d_model, *leading = asking.sizes(rng, 4)
    leading = leading[: 1 + int(rng.randint(0, 3, 1))]
    options = asking.one_of(rng, {}, {}, {"eps": 0.1}, {"eps": 0.5}, {"eps": 1e-8}, {"eps": 2.0})
    make = functools.partial(module.LayerNorm, d_model, **options)
    shape = (*leading, d_model)
    yield from asking.layer(make, rng, shape)
    layer = functools.cache(lambda: build(make, rng=Rng(rng.seed)))
    for offset, scale in ((1e3, 0.3), (1e3, 1.0), (1000000.3, 0.3), (1000000.3, 1.0)):
        far = rng.randn(*shape) * scale + offset
        yield f"features near {offset}", functools.partial(asking.called, layer, far)
        if offset < 1e4:
            yield f"gradients near {offset}", functools.partial(_gradients, layer, far)
    flat = rng.randn(*leading, 1).expand(shape).contiguous()
    small = rng.randn(*shape) * 3e-3
    yield "equal features", lambda: gradients(layer().eval(), flat)
    yield "small features", lambda: gradients(layer().eval(), small)
    if len(options):
        yield (
            "eps without a name",
            lambda: build(module.LayerNorm, d_model, options["eps"], rng=Rng(rng.seed))(small),
        )


def _gradients(layer: Callable[[], Any], x: Tensor) -> Any:
    return gradients(layer().eval(), x)


def feed_forward(module: ModuleType, rng: Rng) -> Iterator[asking.Question]:
    """Draw widths, leading axes and rates."""
    d_model, d_ff, *leading = asking.sizes(rng, 5)
    leading = leading[: 1 + int(rng.randint(0, 3, 1))]
    rate = asking.rate(rng)
    make = functools.partial(module.FeedForward, d_model, d_ff, rate)
    if rate == 0.0:
        make = functools.partial(module.FeedForward, d_model, d_ff)
    yield from asking.layer(make, rng, (*leading, d_model), rate=rate)
    yield (
        "named",
        lambda: build(
            module.FeedForward, d_model=d_model, d_ff=d_ff, dropout=0.2, rng=Rng(rng.seed)
        )(torch.ones(2, d_model, dtype=torch.float64)),
    )


def transformer_block(module: ModuleType, rng: Rng) -> Iterator[asking.Question]:
    """Draw widths, heads, flags and tokens."""
    batch, n_tokens, num_heads, d_head, d_ff, more = (min(s, 4) for s in asking.sizes(rng, 6))
    context, rate = n_tokens + asking.one_of(rng, 0, 0, more), asking.rate(rng)
    options = dict(asking.one_of(rng, {}, {"norm_first": True}, {"norm_first": False}))
    options |= asking.one_of(rng, {}, {"causal": True}, {"causal": False})
    if rate or asking.one_of(rng, True, False):
        options["dropout"] = rate
    d_model = num_heads * d_head
    make = functools.partial(module.TransformerBlock, d_model, num_heads, d_ff, context, **options)
    yield from asking.layer(make, rng, (batch, n_tokens, d_model), rate=rate)
    yield from asking.of_tokens(make, rng, batch, n_tokens, d_model, context)
    if "dropout" in options:
        flags = options.get("norm_first", True), options.get("causal", True)
        places = d_model, num_heads, d_ff, context, rate, *flags
        x = rng.randn(batch, n_tokens, d_model)
        yield (
            "arguments by place",
            functools.partial(
                asking.called, lambda: build(module.TransformerBlock, *places, rng=Rng(rng.seed)), x
            ),
        )
