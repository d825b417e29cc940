"""What the judge of mutants asks of the exercises on today's models."""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import torch
from mutants import asking
from torch import Tensor

from grader.authors import build, gradients
from grader.grading.rng import Rng


def rms_norm(module: ModuleType, rng: Rng) -> Iterator[asking.Question]:
    """Draw eps, leading axes, large features in half precision, and tokens of zeros."""
    d_model, *leading = asking.sizes(rng, 4)
    leading = leading[: 1 + int(rng.randint(0, 3, 1))]
    options = asking.one_of(rng, {}, {}, {"eps": 0.1}, {"eps": 0.5}, {"eps": 1e-8}, {"eps": 2.0})
    make = functools.partial(module.RMSNorm, d_model, **options)
    yield from asking.layer(make, rng, (*leading, d_model))
    layer = build(make, rng=Rng(rng.seed))
    yield "gradients of zeros", lambda: gradients(layer, torch.zeros(3, d_model).double())
    large = (rng.randn(*leading, d_model) * 400).half()
    yield "hundreds in float16", lambda: build(make, rng=Rng(1), dtype=torch.float16)(large)
    yield "the dtype of x", lambda: str(build(make, rng=Rng(1), dtype=torch.float32)(large).dtype)


def swiglu(module: ModuleType, rng: Rng) -> Iterator[asking.Question]:
    """Draw widths, rates, and multiples of hidden sizes."""
    d_model, d_ff, *leading = asking.sizes(rng, 5)
    leading = leading[: 1 + int(rng.randint(0, 3, 1))]
    rate = asking.rate(rng)
    make = functools.partial(module.SwiGLU, d_model, d_ff, *([rate] if rate else []))
    yield from asking.layer(make, rng, (*leading, d_model), rate=rate)
    for size in (1, 3, 64, 100, 4096, asking.size(rng, 5000)):
        yield f"hidden size of {size}", functools.partial(module.hidden_size, size)
        for multiple in (1, 8, 32, asking.size(rng, 500), 0, -1):
            call = functools.partial(module.hidden_size, size, multiple)
            yield f"hidden size of {size}, a multiple of {multiple}", call


def modern_block(module: ModuleType, rng: Rng) -> Iterator[asking.Question]:
    """Draw attentions and blocks, in chunks and with caches, and sizes that are refused."""
    batch, n_tokens, n_cached, groups, shared = (min(s, 3) for s in asking.sizes(rng, 5))
    heads, d_head, d_ff = groups * shared, 2 * asking.size(rng, 2), asking.size(rng)
    d_out, context = heads * d_head, n_cached + n_tokens + asking.one_of(rng, 0, 1)
    rate, base = asking.rate(rng), asking.one_of(rng, 10000.0, 10000.0, 20.0, 3)
    attention = (5, d_out, context, rate, heads, shared, base)
    block = (d_out, heads, shared, d_ff, context, rate, base)
    cache = [rng.randn(batch, shared, n_cached, d_head) for _ in range(2)]
    for name, sizes in (("RotaryAttention", attention), ("ModernBlock", block)):
        make = functools.partial(getattr(module, name), *sizes)
        x = rng.randn(batch, n_tokens, 5 if name == "RotaryAttention" else d_out)

        def made(make: Any = make, **options: Any) -> Any:
            return build(make, rng=Rng(rng.seed), **options)

        def slopes(*given: Tensor, made: Any = made, x: Tensor = x) -> dict[str, Any]:
            layer = made()
            found = gradients(lambda x: layer(x, given or None)[0], x)
            return found | {name: p.grad for name, p in layer.named_parameters()}

        def chunks(length: int, made: Any = made, x: Tensor = x) -> list[Any]:
            layer, found, kept = made(), [], None
            for chunk in x.split(length, dim=1):
                output, kept = layer(chunk, kept)
                found += [output, *kept]
            return found

        def low(dtype: torch.dtype, made: Any = made, x: Tensor = x) -> Any:
            given = tuple(each.to(dtype) for each in cache)
            return made(dtype=torch.float32).to(dtype)(x.to(dtype), given)

        yield f"parameters of {name}", lambda made=made: dict(made().state_dict())
        yield f"gradients of {name}", slopes
        yield f"gradients of {name} after a cache", functools.partial(slopes, *cache)
        yield f"a cache of {name}", lambda made=made, x=x: made()(x, tuple(cache))
        for length in (1, 2):
            yield f"chunks of {length} of {name}", functools.partial(chunks, length)
        for dtype in asking.LOW:
            yield f"{dtype} of {name}", functools.partial(low, dtype)
        more = torch.cat([x, x, x, x, x], dim=1)
        yield f"too many tokens for {name}", lambda made=made, x=more: made()(x, tuple(cache))
        if rate in (0.0, 1.0):
            yield f"training of {name}", lambda made=made, x=x: made().train()(x)[0]
    for out, count, kv in ((6, 2, 1), (5, 1, 1), (10, 4, 2), (16, 4, 3), (8, 2, 4)):
        sizes = (5, out, 9, 0.0, count, kv)
        call = functools.partial(asking.refusal, module.RotaryAttention, *sizes)
        yield f"{count} heads and {kv} of keys for {out}", call


def mixture_of_experts(module: ModuleType, rng: Rng) -> Iterator[asking.Question]:
    """Draw logits without ties, experts and axes; the output and the loss apart and together."""
    experts, d_model, d_ff, *leading = asking.sizes(rng, 6)
    leading = leading[: 1 + int(rng.randint(0, 3, 1))]
    logits, x = rng.randn(*leading, experts), rng.randn(*leading, d_model)
    for top_k in (1, 2, experts, experts + 1, 0):
        for name in ("route", "load_balance_loss"):
            call = functools.partial(getattr(module, name), top_k=top_k)
            yield f"{name}, {top_k}", functools.partial(call, logits)
            yield f"arguments of {name}, {top_k}", lambda c=call: asking.afterwards(c, logits)
            yield f"views for {name}, {top_k}", functools.partial(call, asking.as_view(logits))
        make = functools.partial(module.MixtureOfExperts, d_model, d_ff, experts, top_k)

        def slopes(place: int, make: Any = make) -> dict[str, Any]:
            layer = build(make, rng=Rng(rng.seed))
            found = gradients(lambda x: layer(x)[place], x)
            return found | {name: p.grad for name, p in layer.named_parameters()}

        yield f"output, {top_k}", functools.partial(slopes, 0)
        yield f"loss, {top_k}", functools.partial(slopes, 1)
        yield f"parameters, {top_k}", lambda make=make: dict(build(make, rng=Rng(1)).state_dict())
        yield (
            f"training, {top_k}",
            lambda make=make: build(make, rng=Rng(rng.seed)).train()(asking.as_view(x)),
        )
    low = rng.randn(*leading, experts).bfloat16()
    yield "loss in bfloat16", functools.partial(module.load_balance_loss, low, 1)


def byte_pair_encoding(module: ModuleType, rng: Rng) -> Iterator[asking.Question]:
    """Draw texts of few letters, bytes of any kind, special tokens, and ids that nobody knows."""
    letters = asking.one_of(rng, 2, 3, 5, 256)
    text = bytes(rng.randint(0, letters, asking.size(rng, 60)).tolist())
    other = bytes(rng.randint(0, letters, asking.size(rng, 60)).tolist())
    count = asking.one_of(rng, 0, 1, 3, 8, 40)
    merges = [(0, 1), (256, 256), (1, 0), (0, 0), (257, 259)][: asking.size(rng, 5)]
    special = {bytes([0, 1]): 900, bytes([0, 1, 1]): 901, bytes([1, 1, 0, 0]): 902}
    yield "merges", lambda: module.train(text, count)
    yield "merges of nothing", lambda: [module.train(b"", 3), module.train(b"a", 3)]
    yield "one merge", lambda: module.merged([*text], (0, 1), 999)
    for given in (text, other, b""):
        yield "tokens", functools.partial(module.encode, given, merges)
        yield "tokens of own merges", lambda t=given: module.encode(t, module.train(text, count))
        yield "tokens with special ones", functools.partial(module.encode, given, merges, special)
        yield (
            "there and back",
            lambda t=given: module.decode(module.encode(t, merges, special), merges, special),
        )
    yield "a special id that is taken", lambda: module.encode(text, merges, {b"a": 256})
    for unknown in (-1, 256 + len(merges), 5000):
        yield f"the bytes of {unknown}", functools.partial(module.decode, [0, unknown], merges)
    kept = [*merges], copy.copy(special)
    module.encode(text, merges, special)
    yield "arguments", lambda: [[*merges] == kept[0], special == kept[1]]


def cross_entropy(module: ModuleType, rng: Rng) -> Iterator[asking.Question]:
    """Draw logits of all sizes, ignored positions, smoothing, and targets out of range."""
    n_classes, *leading = asking.sizes(rng, 4)
    leading = leading[: int(rng.randint(0, 4, 1))]
    logits = asking.drawn(rng, *leading, n_classes)
    targets = rng.randint(0, n_classes, *leading)
    index = asking.one_of(rng, -100, -1, 0, n_classes - 1)
    hidden = targets.masked_fill(rng.rand(*leading) < 0.4, index)
    for smoothing in (0.0, 0.3, 1.0):
        more = {"ignore_index": index, "label_smoothing": smoothing}
        for name in ("cross_entropy", "cross_entropy_gradient"):
            call = functools.partial(getattr(module, name), targets=hidden, **more)
            yield f"{name} at {smoothing}", functools.partial(call, logits)
            yield (
                f"{name} without options",
                functools.partial(getattr(module, name), logits, targets),
            )
            yield f"arguments of {name}", lambda call=call: asking.afterwards(call, logits)
            for dtype in (*asking.LOW, torch.float16):
                small = rng.randn(*leading, n_classes).to(dtype)
                yield f"{name} in {dtype}", functools.partial(call, small)
        loss = functools.partial(module.cross_entropy, targets=hidden, **more)
        yield f"gradients at {smoothing}", lambda loss=loss: gradients(loss, logits)
    yield "nothing kept", lambda: module.cross_entropy(logits, torch.full_like(targets, -100))
    for wrong in (n_classes, -1, 10**6):
        bad = torch.full_like(targets, wrong)
        yield f"a target of {wrong}", functools.partial(module.cross_entropy, logits, bad)
    for wrong in (-0.1, 1.1):
        call = functools.partial(module.cross_entropy, logits, targets, label_smoothing=wrong)
        yield f"a smoothing of {wrong}", call


def adamw(module: ModuleType, rng: Rng) -> Iterator[asking.Question]:
    """Draw parameters, groups, missing gradients, rates, and norms."""
    params = [rng.randn(*asking.sizes(rng, n)) for n in (1, 2)]
    steps = [[rng.randn(*p.shape) for p in params] for _ in range(4)]
    steps[1][0] = None
    options = {"lr": 0.1, "betas": (0.6, 0.8), "eps": 0.01, "weight_decay": 0.3}
    for given in ({}, options, {"weight_decay": 0.0}):
        call = functools.partial(module.run_steps, [{"params": params}], steps, **given)
        yield f"steps with {sorted(given)}", lambda call=call: call()[0]
    groups = [{"params": params[:1]}, {"params": params[1:], "lr": 0.2, "weight_decay": 0.5}]
    yield "groups", lambda: module.run_steps(groups, steps, **options)[0]
    for step in (1, 2, 4, 7, 12):
        for given in ((1.0, 4, 12), (0.3, 1, 12, 0.1)):
            yield f"rate {step} of {given}", functools.partial(module.learning_rate, step, *given)
    for most in (0.1, 1.0, 1e6):
        yield f"a norm of {most}", functools.partial(module.clipped, steps[1], most)


def sampling(module: ModuleType, rng: Rng) -> Iterator[asking.Question]:
    """Draw logits with ties, temperatures, cuts, uniforms, and drafts."""
    vocab, *leading = asking.sizes(rng, 3)
    leading = leading[: int(rng.randint(0, 3, 1))]
    logits = asking.drawn(rng, *leading, vocab)
    for temperature in (1.0, 0.3, 5, 0, -1):
        for top_k in (None, 1, 2, vocab, 100, 0):
            for top_p in (None, 0.3, 0.8, 1.0, 0, 1.5):
                call = functools.partial(module.distribution, logits, temperature, top_k, top_p)
                yield f"{temperature}, {top_k} and {top_p}", call
    yield "defaults", lambda: module.distribution(logits)
    yield "arguments", lambda: asking.afterwards(module.distribution, logits)
    for dtype in (*asking.LOW, torch.float16):
        yield f"{dtype}", functools.partial(asking.low, module.distribution, dtype, logits / 100)
    rows = torch.softmax(rng.randn(4, vocab), dim=-1)
    for u in (0.0, 0.25, 0.5, 0.99, float(rng.rand(1))):
        yield f"a draw at {u}", functools.partial(module.draw, rows[0], u)
    drafts = rng.randint(0, vocab, 3)
    theirs = torch.softmax(rng.randn(3, vocab), dim=-1)
    for number in range(6):
        u, v = rng.rand(3) * (0.4 if number < 3 else 1.0), float(rng.rand(1))
        yield (
            f"drafts {number}",
            lambda u=u, v=v: [int(t) for t in module.speculate(drafts, theirs, rows, u, v)],
        )


def low_rank_adaptation(module: ModuleType, rng: Rng) -> Iterator[asking.Question]:
    """Draw ranks, scales and rates, merges, and models of which some layers are adapted."""
    d_in, d_hidden, d_out, r, *leading = asking.sizes(rng, 6)
    rate, alpha = asking.rate(rng), asking.one_of(rng, 1.0, 2, 7.5)

    def linear() -> Any:
        return build(lambda: module.make_model(d_in, d_hidden, d_out), rng=Rng(rng.seed)).head

    def make() -> Any:
        return module.LowRankLinear(linear(), r, alpha, rate)

    yield from asking.layer(make, rng, (*leading, d_in), rate=rate)
    x = rng.randn(3, d_in)

    def merged(*calls: str) -> list[Tensor]:
        layer = build(make, rng=Rng(rng.seed)).eval()
        found = []
        for call in calls:
            getattr(layer, call)()
            found += [layer(x), layer.linear.weight.detach().clone()]
        return found

    yield "merged", lambda: merged("merge", "merge", "unmerge", "unmerge", "merge")
    yield "unmerged first", lambda: merged("unmerge", "merge", "unmerge")
    yield "a new layer", lambda: [make().eval()(x), bool((make().B == 0).all())]
    for names in (["head"], ["up"], ["second.down"], ["down", "head"], ["p"], ["none"]):

        def adapted(names: list[str] = names) -> dict[str, Any]:
            model = module.make_model(d_in, d_hidden, d_out)
            count = module.adapt(model, names, r, alpha)
            trained = sorted(n for n, p in model.named_parameters() if p.requires_grad)
            return {"count": count, "trained": trained}

        yield f"adapting {names}", adapted
    for wrong in (0, -1):
        call = functools.partial(asking.refusal, module.LowRankLinear)
        yield f"a rank of {wrong}", lambda call=call, wrong=wrong: call(linear(), wrong, 1.0)


def patch_embedding(module: ModuleType, rng: Rng) -> Iterator[asking.Question]:
    """Draw sizes of patches, strides, and images that do not fit."""
    batch, channels, patch, d_model, rows, columns = (min(s, 4) for s in asking.sizes(rng, 6))
    step = asking.one_of(rng, None, None, 1, 2, patch)
    stride = step or patch
    height, width = (patch + stride * (count - 1) for count in (rows, columns))
    images = asking.drawn(rng, batch, channels, height, width)
    options = {} if step is None else {"stride": step}
    cut = functools.partial(module.patches, patch=patch, **options)
    yield from asking.function(cut, rng, images)
    make = functools.partial(module.PatchEmbedding, height, width, patch, channels, d_model)
    make = functools.partial(make, **options)
    yield from asking.layer(make, rng, (batch, channels, height, width))
    layer = build(make, rng=Rng(rng.seed))
    for more in ((1, 0), (0, 1), (stride, 0), (0, stride), (1, 1)):
        other = rng.randn(batch, channels, height + more[0], width + more[1])
        yield f"patches of {more} pixels more", functools.partial(cut, other)
        yield f"a layer for {more} pixels more", functools.partial(layer, other)
