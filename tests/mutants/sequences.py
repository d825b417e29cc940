"""What the judge of mutants asks of the second half of the course: sequences and training."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import torch
from mutants import asking
from torch import Tensor

from grader.grading.rng import Rng
from grader.probing import build, gradients


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


def histogram_transformer(module: ModuleType, rng: Rng) -> Iterator[asking.Question]:
    """Draw models and sequences; train for some steps on copies of one sequence."""
    vocab, length, d_model, batch = asking.sizes(rng, 4)
    n_tokens = int(rng.randint(1, length + 1, 1))
    tokens, seed = rng.randint(0, vocab, batch, n_tokens), Rng(rng.seed)
    make = functools.partial(module.CountingTransformer, vocab, length, d_model)

    def model(dtype: torch.dtype = torch.float64) -> Any:
        return build(make, rng=seed, dtype=dtype)

    def trained(steps: int) -> Any:
        # A narrow model needs more steps, or fewer at another rate.
        sizes, reports = (vocab, length, max(16, d_model)), []
        copy = build(functools.partial(module.CountingTransformer, *sizes), rng=seed).float()
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
    # At temperature 0, the statement says "whatever top_k is".
    for given in ((-1.0,), (-1e-6,), (1.0, 0), (1.0, -1)):
        yield f"refused: {given}", functools.partial(written, 1, *given)
