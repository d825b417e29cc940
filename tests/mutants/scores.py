"""What the judge of mutants asks of the first half of the course around the core: ways to score."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import torch
from mutants import asking
from torch import Tensor, nn

from grader.authors import build, gradients
from grader.grading.rng import Rng


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


def stacked_heads(module: ModuleType, rng: Rng) -> Iterator[asking.Question]:
    """Draw heads and tokens, and the matrices of all heads."""
    batch, n_tokens, d_in, num_heads, d_out, more = (min(s, 4) for s in asking.sizes(rng, 6))
    context, rate = n_tokens + asking.one_of(rng, 0, 0, more), asking.rate(rng)
    options = dict(asking.one_of(rng, {}, {"qkv_bias": False}, {"qkv_bias": True}))
    make = functools.partial(module.StackedHeads, d_in, d_out, context, rate, num_heads, **options)
    yield from asking.layer(make, rng, (batch, n_tokens, d_in), rate=rate)
    yield from asking.of_tokens(make, rng, batch, n_tokens, d_in, context)
    layer = functools.cache(lambda: build(make, rng=Rng(rng.seed)))

    def split() -> dict[str, Any]:
        found = module.split_weights(layer())
        matrices = {f"matrix {n}": matrix.detach() for n, matrix in enumerate(found)}
        return {**matrices, **{n: p.detach() for n, p in layer().named_parameters()}}

    yield "matrices", split


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
        for wrong in asking.wrong_shapes(batch, n_queries, n_keys):
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
