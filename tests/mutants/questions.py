"""The calls that the judge of mutants asks of an exercise, drawn at random.

A function for each exercise draws sizes (equal ones and ones too), dtypes, lengths, flags, modes,
gradients, arguments afterwards, misuse.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import torch
from mutants import asking
from torch import Tensor, nn

from grader.grading.rng import Rng
from grader.probing import build, gradients


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


def self_attention(module: ModuleType, rng: Rng) -> Iterator[asking.Question]:
    """Draw tokens, and tables of scores, with leading axes."""
    n_tokens, d, n_queries, n_keys, *leading = asking.sizes(rng, 6)
    leading = leading[: int(rng.randint(0, 3, 1))]
    yield from asking.function(module.scores_by_loops, rng, rng.randn(n_tokens, d))
    for function in (module.scores_by_product, module.context_vectors):
        yield from asking.function(function, rng, asking.drawn(rng, *leading, n_tokens, d))
    yield from asking.function(
        module.softmax_stable, rng, asking.drawn(rng, *leading, n_queries, n_keys)
    )
    yield from asking.function(
        module.softmax_naive, rng, rng.randn(*leading, n_queries, n_keys) * 3
    )
    scores = rng.randn(*leading, n_queries, n_keys).abs() + 0.2
    yield from asking.function(module.normalise, rng, scores * float(asking.one_of(rng, 1.0, -2.0)))
    signs = torch.tensor([[3.0, -1.0, 0.5], [-4.0, 1.0, 2.0]]).double()
    yield from asking.function(module.normalise, rng, signs)


def trainable_self_attention(module: ModuleType, rng: Rng) -> Iterator[asking.Question]:
    """Draw both classes with leading axes, and copies from one to the other."""
    n_tokens, d_in, d_out, *leading = asking.sizes(rng, 5)
    shape = (*leading[: int(rng.randint(0, 3, 1))], n_tokens, d_in)
    options = asking.one_of(rng, {}, {"qkv_bias": False}, {"qkv_bias": True})
    first = functools.partial(module.SelfAttentionV1, d_in, d_out)
    second = functools.partial(module.SelfAttentionV2, d_in, d_out, **options)
    yield from asking.layer(first, rng, shape)
    yield from asking.layer(second, rng, shape)
    yield "the start", lambda: _spread(module.SelfAttentionV1(30, 40))

    def copied() -> dict[str, Any]:
        source, target = (build(make, rng=Rng(rng.seed)) for make in (second, first))
        before = [parameter.data_ptr() for parameter in target.parameters()]
        module.copy_weights(source, target)
        after = {f"source {name}": p.detach() for name, p in source.named_parameters()}
        after |= {f"target {name}": p.detach().clone() for name, p in target.named_parameters()}
        for parameter in source.parameters():
            parameter.data.zero_()
        again = {f"later {name}": p.detach() for name, p in target.named_parameters()}
        kinds = [f"{p.requires_grad} {p.is_leaf} {p.dtype}" for p in target.parameters()]
        return {**after, **again, "kinds": kinds, "count": len(before)}

    yield "a copy of weights", copied


def _spread(layer: nn.Module) -> dict[str, Any]:
    """Return whether the parameters look uniform in [0, 1)."""
    found = {name: p.detach() for name, p in layer.named_parameters()}
    inside = {f"{name} inside": bool(p.min() >= 0 and p.max() < 1) for name, p in found.items()}
    near = {
        name: abs(p.mean() - 0.5) < 0.05 and abs(p.std() - 0.289) < 0.03
        for name, p in found.items()
    }
    return {**inside, **{name: bool(value) for name, value in near.items()}}


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
    for wrong in _wrong_shapes(batch, n_queries, n_keys):
        yield (
            f"lengths of shape {wrong}",
            functools.partial(module.masked_softmax, X, torch.ones(wrong, dtype=torch.int64)),
        )


def _wrong_shapes(batch: int, n_queries: int, n_keys: int) -> Iterator[tuple[int, ...]]:
    shapes = (
        *((batch + 1,), (n_queries,), (n_keys,), (batch, n_keys), (n_queries, batch), (batch, 1)),
        *((batch, n_queries + 1), (batch + 1, n_queries), (batch, n_queries, 1), (1,), ()),
        *((1, n_queries), (batch, n_queries, n_keys), (batch, 1, n_queries), (batch * n_queries,)),
    )
    yield from (s for s in shapes if s not in ((batch,), (batch, n_queries)))


def causal_attention(module: ModuleType, rng: Rng) -> Iterator[asking.Question]:
    """Draw layers and tokens, up to the context's length and beyond."""
    batch, n_tokens, d_in, d_out, more = asking.sizes(rng, 5)
    context, rate = n_tokens + asking.one_of(rng, 0, 0, more), asking.rate(rng)
    options = asking.one_of(rng, {}, {"qkv_bias": False}, {"qkv_bias": True}, {"qkv_bias": True})
    make = functools.partial(module.CausalAttention, d_in, d_out, context, rate, **options)
    yield from asking.layer(make, rng, (batch, n_tokens, d_in), rate=rate)
    yield from _tokens(make, rng, batch, n_tokens, d_in, context)


def _tokens(
    make: Callable[[], Any], rng: Rng, batch: int, n_tokens: int, d_in: int, context: int
) -> Iterator[asking.Question]:
    """Ask a layer about changed later tokens, all numbers of tokens, and too many."""
    layer = functools.cache(lambda: build(make, rng=Rng(rng.seed)))
    x = rng.randn(batch, n_tokens, d_in)
    for far in (1e3, 1e6):
        changed = x.clone()
        changed[:, n_tokens // 2 :] += far
        yield f"later tokens {far} larger", functools.partial(_called, layer, changed)
    for count in {1, 2, context, context + 1, context + 2, 10 * context + 7}:
        tokens = rng.randn(asking.size(rng, 3), count, d_in)
        yield f"{count} of {context} tokens", functools.partial(_called, layer, tokens)
        yield (
            f"{count} of {context} tokens in training",
            functools.partial(_called, layer, tokens, training=True),
        )


def _called(layer: Callable[[], Any], x: Tensor, *, training: bool = False) -> Any:
    """Return the output; in training only that there is one."""
    output = layer().train(training)(x)
    return "an output" if training else output


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
    yield from _tokens(make, rng, batch, n_tokens, d_in, context)
    undivided = ((num_heads + 1, d_out), (5, 7), (d_out + 1, d_out), (4, 6), (6, 4), (2, 1))
    for heads, width in undivided:
        if width % heads:
            yield (
                f"{heads} heads for {width}",
                functools.partial(
                    _made, module.MultiHeadAttention, d_in, width, context, rate, heads, **options
                ),
            )


def stacked_heads(module: ModuleType, rng: Rng) -> Iterator[asking.Question]:
    """Draw heads and tokens, and the matrices of all heads."""
    batch, n_tokens, d_in, num_heads, d_out, more = (min(s, 4) for s in asking.sizes(rng, 6))
    context, rate = n_tokens + asking.one_of(rng, 0, 0, more), asking.rate(rng)
    options = dict(asking.one_of(rng, {}, {"qkv_bias": False}, {"qkv_bias": True}))
    make = functools.partial(module.StackedHeads, d_in, d_out, context, rate, num_heads, **options)
    yield from asking.layer(make, rng, (batch, n_tokens, d_in), rate=rate)
    yield from _tokens(make, rng, batch, n_tokens, d_in, context)
    layer = functools.cache(lambda: build(make, rng=Rng(rng.seed)))

    def split() -> dict[str, Any]:
        found = module.split_weights(layer())
        matrices = {f"matrix {n}": matrix.detach() for n, matrix in enumerate(found)}
        return {**matrices, **{n: p.detach() for n, p in layer().named_parameters()}}

    yield "matrices", split


def _made(make: Callable[..., Any], *args: Any, **kwargs: Any) -> str:
    make(*args, **kwargs)
    return "a layer"


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
        yield f"features near {offset}", functools.partial(_called, layer, far)
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
    yield from _tokens(make, rng, batch, n_tokens, d_model, context)
    if "dropout" in options:
        flags = options.get("norm_first", True), options.get("causal", True)
        places = d_model, num_heads, d_ff, context, rate, *flags
        x = rng.randn(batch, n_tokens, d_model)
        yield (
            "arguments by place",
            functools.partial(
                _called, lambda: build(module.TransformerBlock, *places, rng=Rng(rng.seed)), x
            ),
        )


NAMED = {  # the axes of each argument of a function of `named_attention`
    "contract": ("batch query key", "batch seq key"),
    "attend": ("batch query key", "batch seq key", "batch seq val"),
    "multi_head": ("batch seq chans", *["head chans key"] * 2, "head chans val", "head val chans"),
}


def named_attention(module: ModuleType, rng: Rng) -> Iterator[asking.Question]:
    """Draw axes in any order, further axes in some of the tensors, and each kind of misuse."""
    every = "batch", "query", "seq", "key", "val", "head", "chans", "more"
    sizes = dict(zip(every, asking.sizes(rng, len(every))))
    for function, plain in NAMED.items():
        axes = [_axes(rng, each.split(), function != "multi_head") for each in plain]
        if function == "multi_head":
            axes[0] = _axes(rng, plain[0].split(), True)
        over = ("key",) if function == "contract" else ()
        if function == "contract" and asking.one_of(rng, True, False):
            axes, over = (
                [[*each, "val"] for each in axes],
                asking.one_of(rng, ("key", "val"), ("val",)),
            )
        if asking.one_of(rng, True, False):
            axes = [[each[i] for i in rng.permutation(len(each)).tolist()] for each in axes]
        tensors = [asking.drawn(rng, *(sizes[name] for name in each)) for each in axes]
        call = functools.partial(_named, module, function, axes, over)
        for what, ask in asking.function(call, rng, *tensors):
            yield f"{function} of {axes}: {what}", ask
        names = functools.partial(_names, module, function, axes, over, tensors)
        yield f"{function} of {axes}: names", names
        for place, each in enumerate(axes):
            for axis in range(len(each)):
                for what, bad, names in (
                    ("without", tensors[place].select(axis, 0), [*each[:axis], *each[axis + 1 :]]),
                    ("twice", tensors[place].unsqueeze(axis).repeat_interleave(2, axis), None),
                    ("larger", tensors[place].repeat_interleave(2, axis), each),
                    ("of size 1", tensors[place].narrow(axis, 0, 1), each),
                    ("as seq", tensors[place], [*each[:axis], "seq", *each[axis + 1 :]]),
                ):
                    if function == "multi_head" and _is_open(what, place, each[axis]):
                        continue
                    changed = [*each[:axis], each[axis], *each[axis:]] if names is None else names
                    given = [*tensors[:place], bad, *tensors[place + 1 :]]
                    all_axes = [*axes[:place], changed, *axes[place + 1 :]]
                    ask = functools.partial(_named, module, function, all_axes, over, *given)
                    yield f"{function} of {axes}: {each[axis]} {what} in {place}", ask


def _is_open(what: str, place: int, axis: str) -> bool:
    """Return whether the statement leaves open what `multi_head` does with a changed argument.

    It does with another seq among the weights, and with an axis that no product sums over.
    """
    is_kept = (axis == "head" and place in (1, 2, 3)) or (axis == "chans" and place == 4)
    return what == "as seq" or (what == "without" and is_kept)


def _axes(rng: Rng, names: list[str], changes: bool) -> list[str]:
    """Return names of axes; sometimes without batch, sometimes with one more."""
    if not changes:
        return names
    kind = asking.one_of(rng, "plain", "plain", "less", "more")
    names = [name for name in names if kind != "less" or name != "batch"]
    return ["more", *names] if kind == "more" else names


def _named(
    module: ModuleType,
    function: str,
    axes: list[list[str]],
    over: tuple[str, ...],
    *tensors: Tensor,
) -> Any:
    """Return the tensor of a named result, its axes in the alphabetical order of their names."""
    named = ((tensor, tuple(each)) for tensor, each in zip(tensors, axes))
    tensor, names = getattr(module, function)(*named, *over)
    return tensor.permute(sorted(range(len(names)), key=lambda place: names[place]))


def _names(
    module: ModuleType,
    function: str,
    axes: list[list[str]],
    over: tuple[str, ...],
    tensors: list[Tensor],
) -> list[str]:
    """Return the names of a result in alphabetical order."""
    named = ((tensor, tuple(each)) for tensor, each in zip(tensors, axes))
    return sorted(getattr(module, function)(*named, *over)[1])


def softmax_temperature(module: ModuleType, rng: Rng) -> Iterator[asking.Question]:
    """Draw scores, temperatures, weights, and vectors."""
    n_keys, n, d_key, *leading = asking.sizes(rng, 5)
    leading = leading[: int(rng.randint(0, 3, 1))]
    scores = asking.drawn(rng, *leading, n_keys)
    temperature = asking.one_of(rng, 1.0, 1, 0.3, 0.7, 2.0, 5, 1e-2, 1e-4, 1e6)
    small = scores * min(temperature, 1.0)  # or low precision decides
    yield from asking.function(lambda x: module.tempered_softmax(x, temperature), rng, small)
    yield "named", lambda: module.tempered_softmax(scores=scores, temperature=temperature)
    for wrong in (0, 0.0, -1, -1e-6, -0.5, -1e4):
        yield f"temperature {wrong}", functools.partial(module.tempered_softmax, scores, wrong)
    weights = scores.clamp(-9, 9).softmax(dim=-1)
    if n_keys > 1:  # the entropy of one key is 0, where it has no slope on one side
        yield from asking.function(module.entropy, rng, weights)
    yield "entropy", functools.partial(module.entropy, weights)
    padded = torch.cat([weights, torch.zeros(*leading, 2)], dim=-1)
    one_hot = torch.eye(n_keys, dtype=torch.float64)
    for zeros in (padded, one_hot, scores.mul(100).softmax(dim=-1)):
        yield "entropy of zeros", functools.partial(module.entropy, weights=zeros)
        yield "is its gradient finite", functools.partial(_finite, module.entropy, zeros)
    yield "entropy of zeros in float16", lambda: module.entropy(padded.half()).isfinite()
    vectors = asking.drawn(rng, *leading, n, d_key), rng.randn(*leading, n, d_key) + 0.5
    yield from asking.function(module.variance_of_products, rng, *vectors)
    yield from asking.function(lambda x: module.scale(x, d_key), rng, scores)
    for size in (1, 7, 64):
        yield f"d_key {size}", functools.partial(module.scale, scores, size)


def _finite(call: Callable[..., Any], x: Tensor) -> dict[str, Tensor]:
    """Return where the output and the gradient are finite."""
    found = gradients(call, x)
    return {name: each.isfinite() for name, each in found.items() if isinstance(each, Tensor)}


def scaled_dot_product_attention(module: ModuleType, rng: Rng) -> Iterator[asking.Question]:
    """Draw queries, keys, values, lengths of each kind, and padded values that are not finite."""
    batch, n_queries, n_keys, d_key, d_value = asking.sizes(rng, 5)
    queries, keys = asking.drawn(rng, batch, n_queries, d_key), rng.randn(batch, n_keys, d_key)
    values, rate = asking.drawn(rng, batch, n_keys, d_value), asking.rate(rng)
    shape = asking.one_of(rng, None, (batch,), (batch, n_queries))
    lens = None if shape is None else rng.randint(0, n_keys + 1, *shape)

    def made(training: bool = False) -> Any:
        return module.DotProductAttention(rate).double().train(training)

    def call(*inputs: Tensor) -> Any:
        return made()(*inputs, lens)

    def kept(training: bool) -> Any:
        layer = made(training)
        layer(queries[..., :1], keys[..., :1], values)
        layer(queries, keys, values, valid_lens=lens)
        return layer.attention_weights.detach().double()  # the statement leaves the dtype open

    yield from asking.function(call, rng, queries, keys, values)
    yield "lengths left out", lambda: made()(queries, keys, values)
    named = {"queries": queries, "keys": keys, "values": values, "valid_lens": lens}
    yield "named", lambda: module.DotProductAttention(dropout=rate).eval()(**named)
    yield "parameters", lambda: len(list(made().parameters()))
    for training in (False, True):
        yield f"weights with training {training}", functools.partial(kept, training)
    if lens is not None:
        longest = lens.view(batch, -1).amax(dim=1, keepdim=True)
        padded = (torch.arange(n_keys) >= longest).unsqueeze(-1)
        for filler in (torch.nan, torch.inf, -torch.inf):
            yield f"{filler}", functools.partial(call, queries, keys, values.where(~padded, filler))
        long = torch.full(shape, n_keys + 1)
        yield "lengths too long", lambda: made()(queries, keys, values, long)
        for wrong in _wrong_shapes(batch, n_queries, n_keys):
            other = torch.ones(wrong, dtype=torch.int64)
            yield f"{wrong}", functools.partial(made(), queries, keys, values, other)
    small = [rng.randn(*each.shape) for each in (queries, keys, values)]
    used = small[2].index_fill(1, torch.tensor([0]), torch.nan)
    yield "nan that is used", lambda: made()(*small[:2], used)
    if rate in (0.0, 1.0):
        yield "training", lambda: gradients(made(True), *small, lens)
    else:
        for place in ("output", "input 0", "input 2"):
            yield (
                f"{place} in training",
                lambda p=place: asking.Random(lambda: gradients(made(True), *small, lens)[p]),
            )
    a, b = rng.randn(batch, n_queries, n_keys), rng.randn(batch, n_keys, d_key)
    yield from asking.function(module.batched_product, rng, a, b)
    misfits = {
        "batches": (a, b[:1].repeat(batch + 1, 1, 1)),
        "a batch of 1": (a.repeat(2, 1, 1), b[:1]),
        "terms": (a, rng.randn(batch, n_keys + 1, d_key)),
        "one matrix": (a, b[0]),
        "one first matrix": (a[0], b),
        "matrices": (a[0], b[0]),
        "four axes": (a[None], b[None]),
        "a vector": (a, b[0, :, 0]),
    }
    for what, pair in misfits.items():
        yield what, functools.partial(module.batched_product, *pair)


def attention_dropout(module: ModuleType, rng: Rng) -> Iterator[asking.Question]:
    """Draw weights, rates and modes."""
    shape = asking.sizes(rng, 3)[: 1 + int(rng.randint(0, 3, 1))]
    weights, rate = (
        asking.drawn(rng, *shape).clamp(-9, 9).softmax(dim=-1),
        asking.one_of(rng, 0.1, 0.3, 0.5, 0.8),
    )
    for fixed, training in ((rate, False), (0.0, True), (0, True), (1.0, True), (1, True)):
        call = functools.partial(module.drop, rate=fixed, training=training)
        yield from asking.function(call, rng, weights)
    for wrong in (-1e-9, -0.5, -1, 1.0001, 1.5, 2):
        for training in (False, True):
            yield f"rate {wrong}", functools.partial(module.drop, weights, wrong, training)
    yield "afterwards", lambda: asking.afterwards(module.drop, weights, rate, True)
    for place in ("output", "input 0"):
        yield (
            f"{place} in training",
            lambda p=place: asking.Random(lambda: gradients(module.drop, weights, rate, True)[p]),
        )
    for dtype in (torch.float64, *asking.LOW):
        low = weights.to(dtype)
        yield f"{dtype} in training", lambda x=low: str(module.drop(x, rate, True).dtype)
    many = rng.randn(6, 5).softmax(dim=-1)
    yield "seeded", lambda: asking.Random(lambda: _twice(module.drop, many))


def _twice(call: Callable[..., Any], weights: Tensor) -> Tensor:
    """Return where two draws after the same seed differ, and where the next one does."""
    seed = int(torch.randint(0, 2**31, ()))
    drawn = []
    for _ in range(2):
        torch.manual_seed(seed)
        drawn.append(call(weights, 0.5, True))
    drawn.append(call(weights, 0.5, True))
    torch.manual_seed(seed + 1)
    return torch.stack([(drawn[0] != drawn[1]).any(), (drawn[0] != drawn[2]).any()]).double()


def _scoring(
    make: Callable[[], Any], rng: Rng, inputs: tuple[Tensor, Tensor, Tensor], rate: float
) -> Iterator[asking.Question]:
    """Ask a layer that scores queries with keys: lengths of each kind, modes, what it keeps."""
    queries, keys, values = inputs
    batch, n_queries, n_keys = len(queries), queries.shape[1], keys.shape[1]
    shape = asking.one_of(rng, None, (batch,), (batch, n_queries))
    lens = None if shape is None else rng.randint(0, n_keys + 1, *shape)
    seed = Rng(rng.seed)

    def made(training: bool = False) -> Any:
        return build(make, rng=seed).train(training)

    def call(*given: Tensor) -> Any:
        return made()(*given, lens)

    def slopes(training: bool, *given: Tensor) -> dict[str, Any]:
        layer = made(training)
        found = gradients(lambda *x: layer(*x, lens), *given)
        return found | {f"of {name}": p.grad for name, p in layer.named_parameters()}

    def kept(training: bool) -> Any:
        layer = made(training)
        layer(queries[:1], keys[:1, :1], values[:1, :1])
        layer(queries, keys, values, valid_lens=lens)
        return layer.attention_weights.detach().double()  # the statement leaves the dtype open

    def low(dtype: torch.dtype, *given: Tensor) -> Any:
        layer = build(make, rng=seed, dtype=torch.float32).to(dtype)
        return layer(*(each.to(dtype) for each in given), lens)

    yield (
        "parameters",
        lambda: {
            name: f"{tuple(p.shape)} {p.dtype} {p.requires_grad}"
            for name, p in make().named_parameters()
        },
    )
    yield "values", lambda: call(*inputs)
    yield "values and gradients", lambda: slopes(False, *inputs)
    yield "views", lambda: slopes(False, *map(asking.as_view, inputs))
    yield "arguments", lambda: asking.afterwards(made(), *inputs, lens)
    yield "arguments in training", lambda: asking.afterwards(made(True), *inputs, lens)
    yield "lengths left out", lambda: made()(*inputs)
    named = {"queries": queries, "keys": keys, "values": values, "valid_lens": lens}
    yield "named", lambda: made()(**named)
    for training in (False, True):
        yield f"weights with training {training}", functools.partial(kept, training)
    if lens is not None:
        padded = (torch.arange(n_keys) >= lens.view(batch, -1).amax(1, keepdim=True)).unsqueeze(-1)
        others = keys.where(~padded, 30.0), values.where(~padded, -1e3)
        yield "other padding", lambda: slopes(False, queries, *others)
    small = [rng.randn(*each.shape) for each in inputs]
    for dtype in asking.LOW:
        yield f"{dtype}", functools.partial(low, dtype, *small)
    if rate in (0.0, 1.0):
        yield "training", lambda: slopes(True, *small)
    else:
        for place in ("output", "input 0", "input 2"):
            yield (
                f"{place} in training",
                lambda p=place: asking.Random(lambda: slopes(True, *small)[p]),
            )


def _pairs(rng: Rng, d_query: int, d_key: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return queries, keys and values, whose number and size are drawn."""
    batch, n_queries, n_keys, d_value = asking.sizes(rng, 4)
    keys = rng.randn(batch, n_keys, d_key)
    return (
        asking.drawn(rng, batch, n_queries, d_query),
        keys,
        asking.drawn(rng, batch, n_keys, d_value),
    )


def additive_attention(module: ModuleType, rng: Rng) -> Iterator[asking.Question]:
    """Draw layers, queries, keys and values."""
    d_query, d_key, num_hiddens = asking.sizes(rng, 3)
    rate = asking.rate(rng)
    make = functools.partial(module.AdditiveAttention, d_query, d_key, num_hiddens, rate)
    yield from _scoring(make, rng, _pairs(rng, d_query, d_key), rate)


def distance_attention(module: ModuleType, rng: Rng) -> Iterator[asking.Question]:
    """Draw queries, keys and values, for the module and for both functions."""
    d, rate = asking.size(rng), asking.rate(rng)
    queries, keys, values = _pairs(rng, d, d)
    for function in (module.distance_scores, module.scores_without_query_norm):
        yield from asking.function(function, rng, queries, keys)
    make = functools.partial(module.DistanceAttention, rate)
    yield from _scoring(make, rng, (queries, keys, values), rate)


def bilinear_attention(module: ModuleType, rng: Rng) -> Iterator[asking.Question]:
    """Draw layers, queries, keys and values."""
    (d_query, d_key), rate = asking.sizes(rng, 2), asking.rate(rng)
    make = functools.partial(module.BilinearAttention, d_query, d_key, rate)
    yield from _scoring(make, rng, _pairs(rng, d_query, d_key), rate)


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
                functools.partial(_made, module.CachedAttention, d_in, width, context, rate, heads),
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
        yield given, functools.partial(_made, module.GroupedQueryAttention, *sizes)
    for count, width in ((heads + 1, heads * d_head), (5, 7), (4, 6), (2, 1)):
        if width % count:
            sizes = (d_in, width, 5, rate, count, 1)
            yield (
                f"{count} heads for {width}",
                functools.partial(_made, module.GroupedQueryAttention, *sizes),
            )
    context = n_tokens + asking.one_of(rng, 0, 0, more)
    sizes = (d_in, heads * d_head, context, rate, heads, kv_heads)
    make = functools.partial(module.GroupedQueryAttention, *sizes)
    yield from asking.layer(make, rng, (batch, n_tokens, d_in), rate=rate)
    yield from _tokens(make, rng, batch, n_tokens, d_in, context)


def histogram_transformer(module: ModuleType, rng: Rng) -> Iterator[asking.Question]:
    """Draw models and sequences; train for some steps on copies of one sequence."""
    vocab, length, d_model, batch = asking.sizes(rng, 4)
    n_tokens = int(rng.randint(1, length + 1, 1))
    tokens, seed = rng.randint(0, vocab, batch, n_tokens), Rng(rng.seed)
    make = functools.partial(module.CountingTransformer, vocab, length, d_model)

    def model(dtype: torch.dtype = torch.float64) -> Any:
        return build(make, rng=seed, dtype=dtype)

    def trained(steps: int) -> Any:
        copy, reports = model(torch.float32), []
        given = tokens[:1].expand(3, -1).clone(), labels.expand(3, -1).clone()
        report = functools.partial(lambda *each: reports.append(each[0]))
        module.train_counter(copy, *given, steps, report)
        right = (copy(given[0]).argmax(-1) == given[1]).double().mean() if steps > 50 else 0.0
        return {"steps": str(reports), "right": bool(right > 0.9), "given": given[0]}

    def by_hand() -> Any:
        wide = module.CountingTransformer(vocab, 3 * length, vocab + 1 + d_model)
        module.set_weights(wide)
        longer = rng_of_hand.randint(0, vocab, 40, 3 * length)
        trainable = all(p.requires_grad for p in wide.parameters())
        return {"counts": wide(longer).argmax(-1), "trainable": trainable}

    labels = tokens[:1] % (length + 1)
    rng_of_hand = Rng(rng.seed + 1)
    yield "logits", lambda: model()(tokens)
    yield "gradients", lambda: gradients(model(), tokens)
    yield "training mode", lambda: model().train()(tokens)
    yield "view", lambda: model()(tokens.T.contiguous().T)
    yield "tokens", lambda: asking.afterwards(model(), tokens)
    yield "too long", lambda: model()(rng_of_hand.randint(0, vocab, 1, length + 1))
    yield (
        "parameters",
        lambda: {n: f"{tuple(p.shape)}" for n, p in make().named_parameters()},
    )
    for dtype in asking.LOW:
        yield f"{dtype}", functools.partial(lambda dtype: model(dtype)(tokens), dtype)
    yield "by hand", by_hand
    narrow = functools.partial(module.CountingTransformer, vocab, length, vocab)
    yield "by hand, too narrow", lambda: module.set_weights(narrow())
    for steps in (0, 1, 7, 60):
        yield f"{steps} steps", functools.partial(trained, steps)


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


def seq2seq_attention(module: ModuleType, rng: Rng) -> Iterator[asking.Question]:
    """Draw decoders, what they write from and with, and a few steps of training."""
    batch, n_source, n_target, d_embed, d_decoder = asking.sizes(rng, 5)
    d_encoder, d_hidden = asking.sizes(rng, 2)
    sizes, seed = (7, d_embed, d_decoder, d_encoder, d_hidden), Rng(rng.seed)
    targets = rng.randint(0, 7, batch, n_target)
    state = asking.drawn(rng, batch, d_decoder)
    source = asking.drawn(rng, batch, n_source, d_encoder)
    lens = asking.one_of(rng, None, rng.randint(0, n_source + 1, batch))
    network = functools.partial(module.AlignmentNetwork, d_decoder, d_encoder, d_hidden)
    yield from asking.function(build(network, rng=seed), rng, state, source)

    def made(dtype: torch.dtype = torch.float64) -> Any:
        return build(module.AttentionDecoder, *sizes, rng=seed, dtype=dtype)

    def slopes(place: int, forced: bool, *given: Tensor) -> dict[str, Any]:
        decoder = made()
        found = gradients(lambda *x: decoder(targets, *x, lens, forced)[place], *given)
        return found | {f"of {name}": p.grad for name, p in decoder.named_parameters()}

    def step(*given: Tensor) -> dict[int, Any]:
        return dict(enumerate(made().step(targets[:, 0], *given, lens)))

    def written(decoder: Any, *given: Any) -> dict[int, Any]:
        return dict(enumerate(decoder(*given)))

    yield (
        "parameters",
        lambda: {
            name: f"{tuple(p.shape)} {p.dtype} {p.requires_grad}"
            for name, p in module.AttentionDecoder(*sizes).named_parameters()
        },
    )
    yield "a step", lambda: step(state, source)
    yield "a step with views", lambda: step(asking.as_view(state), asking.as_view(source))
    yield "without lengths", lambda: written(made(), targets, state, source)
    for forced in (True, False):
        for place in (0, 1):
            yield (
                f"output {place}, {forced}",
                functools.partial(slopes, place, forced, state, source),
            )
        yield (
            f"arguments, {forced}",
            lambda f=forced: asking.afterwards(made(), targets, state, source, lens, f),
        )
    small = rng.randn(batch, d_decoder), rng.randn(batch, n_source, d_encoder)
    for dtype in asking.LOW:
        yield (
            f"{dtype}",
            lambda d=dtype: written(made(d), targets, *(x.to(d) for x in small), lens),
        )
    yield from _training(module, made, small[1], targets)


def _training(
    module: ModuleType, made: Callable[..., Any], source: Tensor, targets: Tensor
) -> Iterator[asking.Question]:
    """Ask for what is the same in every right training: examples that are all alike."""
    examples = source[:1].float().repeat(40, 1, 1), targets[:1].repeat(40, 1)

    def train(steps: int, *given: Tensor, by_name: bool = False) -> dict[str, Any]:
        decoder, reported = made(torch.float32), []
        before = {name: p.detach().clone() for name, p in decoder.named_parameters()}
        report = None if by_name else lambda *each: reported.append(each)
        more = {"report": report} if by_name else {}
        rest = () if by_name else (report,)
        losses = module.train_decoder(decoder, *given, steps, *rest, **more)
        moved = {name: bool((p != before[name]).any()) for name, p in decoder.named_parameters()}
        same = by_name or [loss for _, loss in reported] == losses
        return {
            "first": torch.tensor(losses[:1]),
            "others": f"{[type(x).__name__ for x in losses]} {[n for n, _ in reported]} {same}",
            "moved": f"{moved}",
            "falls": steps < 30 or losses[-1] < max(0.9 * losses[0], 0.05),
        }

    yield "a step of training", lambda: train(1, *examples)
    yield "no report", lambda: train(2, *examples, by_name=True)
    yield "no step", lambda: train(0, *examples)
    yield "thirty steps", lambda: train(30, *examples)
    yield "arguments of training", lambda: asking.afterwards(functools.partial(train, 2), *examples)


def tiny_gpt(module: ModuleType, rng: Rng) -> Iterator[asking.Question]:
    """Draw models, their losses, a few steps of training, windows and texts."""
    batch, n_tokens, heads, d_head, layers, more = (min(s, 3) for s in asking.sizes(rng, 6))
    vocab, context = asking.size(rng) + 2, n_tokens + asking.one_of(rng, 0, 1, more)
    rate, seed = asking.rate(rng), Rng(rng.seed)
    sizes = vocab, heads * d_head, heads, layers, context
    make = functools.partial(module.TinyGPT, *sizes, rate)
    tokens = rng.randint(0, vocab, batch, n_tokens)
    windows = rng.randint(0, vocab, batch, n_tokens + 1)
    text = rng.permutation(context + 1 + asking.one_of(rng, 0, 1, more))

    def made(training: bool = False) -> Any:
        return build(make, rng=seed).train(training)

    def slopes(call: Callable[[Any], Tensor], training: bool = False) -> dict[str, Any]:
        model = made(training)
        output = call(model)
        (
            output * torch.linspace(-1, 1, output.numel()).view(output.shape).double()
        ).sum().backward()
        return {"output": output} | {f"of {n}": p.grad for n, p in model.named_parameters()}

    def state(model: Any) -> dict[str, Any]:
        found = {name: p.detach().clone() for name, p in model.named_parameters()}
        return found | {"mode": str(model.training)}

    def after_steps(steps: int, *given: Any, rate: float = 0.0) -> dict[str, Any]:
        model = build(module.TinyGPT, *sizes, rate, rng=seed)
        told: list[tuple[int, float]] = []
        one = text[: context + 1] % vocab
        module.train_gpt(model, one, steps, *given, report=lambda *each: told.append(each))
        steps_told = str([step for step, _ in told])
        losses = torch.tensor([loss for _, loss in told], dtype=torch.float64)
        return state(model) | {"steps": steps_told, "losses": losses}

    yield (
        "parameters",
        lambda: {n: f"{tuple(p.shape)} {p.requires_grad}" for n, p in make().named_parameters()},
    )
    yield (
        "how large a new model is",
        lambda: {
            n: p.std() > 0.07 for n, p in module.TinyGPT(40, 30, 2, 1, 30, 0.0).named_parameters()
        },
    )
    yield "values and gradients", lambda: slopes(lambda model: model(tokens))
    yield "views", lambda: made()(asking.as_view(tokens))
    yield "arguments", lambda: asking.afterwards(made(), tokens)
    for many in (1, context, context + 1, context + 3):
        other = rng.randint(0, vocab, batch, many)
        yield f"{many} tokens of {context}", lambda other=other: made()(other)
    for dtype in asking.LOW:
        yield f"{dtype}", lambda dtype=dtype: made().to(dtype)(tokens)
    yield "meta", lambda: make().to("meta")(tokens.to("meta"))
    yield "the loss", lambda: slopes(lambda model: module.next_token_loss(model, windows))
    yield (
        "arguments of the loss",
        lambda: asking.afterwards(lambda it: module.next_token_loss(made(), it), windows),
    )
    for steps, *given in ((0,), (1,), (3,), (2, 4, 0.05)):
        yield f"{steps} steps {given}", functools.partial(after_steps, steps, *given)
    yield "steps with dropout of 1", lambda: after_steps(2, rate=1.0)
    if rate in (0.0, 1.0):
        yield "training", lambda: slopes(lambda model: model(tokens), True)
    else:
        yield "training", lambda: asking.Random(lambda: made(True)(tokens).detach())
    yield from _gpt_texts(module, rng, make, tokens)


def _gpt_texts(
    module: ModuleType, rng: Rng, make: Callable[[], Any], tokens: Tensor
) -> Iterator[asking.Question]:
    """Draw windows of a text, and what a model writes after `tokens`."""
    model = build(make, rng=Rng(rng.seed))
    vocab, n_tokens = model.token_embedding.weight.shape[0], model.context_length
    text = rng.permutation(n_tokens + asking.size(rng, 3))

    def made(training: bool = False) -> Any:
        return model.train(training)

    def written(n: int, *given: Any, training: bool = False, prompt: Tensor = tokens) -> Any:
        made(training)
        found = module.generate(model, prompt, n, *given)
        return {"text": found, "mode": str(model.training), "graph": str(found.requires_grad)}

    def places(n_windows: int, length: int) -> Tensor:
        return module.random_windows(text, n_windows, length).double()

    for length in (1, len(text) - 1, len(text), len(text) + 1):
        yield (
            f"windows of {length}",
            lambda length=length: asking.Random(lambda: places(3, length)),
        )
    yield "a dozen windows", lambda: module.random_windows(text, 12, 2).sub(text[0]).shape
    for given in ((0.0,), (0, 2), (1e-4,), (1.0, 1)):
        yield f"a text with {given}", functools.partial(written, n_tokens + 2, *given)
    yield "a text in training mode", lambda: written(3, 0.0, training=True)
    yield "no text", lambda: written(0)
    yield (
        "a text and its prompt",
        lambda: asking.afterwards(lambda it: module.generate(made(), it, 2, 0.0), tokens),
    )
    for given in ((), (0.5,), (2.0,), (1.0, 2), (3.0, vocab), (1.5, vocab + 2)):

        def one(given: tuple[Any, ...] = given) -> Tensor:
            drawn = module.generate(made(), tokens, 1, *given)[:, -1]
            return torch.nn.functional.one_hot(drawn, vocab).double()

        yield f"a token drawn with {given}", lambda one=one: asking.Random(one)
    for given in ((-1.0,), (-1e-6,), (1.0, 0), (1.0, -1), (0.0, 0)):
        yield f"refused: {given}", functools.partial(written, 1, *given)


CALLS: dict[str, Callable[[Any, Rng], Iterator[asking.Question]]] = {
    call.__name__: call
    for call in (
        *(dictionary_lookup, masked_softmax, self_attention, softmax_temperature),
        *(trainable_self_attention, scaled_dot_product_attention, attention_dropout),
        *(additive_attention, distance_attention, bilinear_attention, causal_attention),
        *(stacked_heads, multi_head_attention, named_attention),
        *(layer_norm, feed_forward, transformer_block),
        *(positional_encoding, kv_cache, rotary_embedding, grouped_query_attention),
        *(online_softmax, seq2seq_attention, histogram_transformer, tiny_gpt),
    )
}
