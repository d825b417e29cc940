"""What the judge of mutants asks of models that are trained."""

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


def tiny_llama(module: ModuleType, rng: Rng) -> Iterator[asking.Question]:
    """Draw models, chunks with caches, a few steps of training, bits of bytes, and texts."""
    batch, n_tokens, kv_heads, group, layers, more = (min(s, 3) for s in asking.sizes(rng, 6))
    vocab, context = asking.size(rng) + 2, n_tokens + asking.one_of(rng, 1, 2, more)
    rate, d_model = asking.rate(rng), 2 * kv_heads * group * asking.one_of(rng, 1, 2)
    sizes = d_model, kv_heads * group, kv_heads, layers, context
    make = functools.partial(module.TinyLlama, vocab, *sizes, rate)
    tokens = rng.randint(0, vocab, batch, n_tokens)

    def made(training: bool = False) -> Any:
        return build(make, rng=Rng(rng.seed)).train(training)

    def read(*chunks: Tensor, training: bool = False) -> dict[str, Any]:
        model, caches, found = made(training), None, []
        for chunk in chunks:
            logits, caches = model(chunk, caches)
            found.append(logits)
        output = torch.cat(found, dim=1)
        weights = torch.linspace(-1, 1, output.numel()).view(output.shape).double()
        (output * weights).sum().backward()
        kept = {f"cache {i}": torch.stack(list(pair)) for i, pair in enumerate(caches or [])}
        slopes = {f"of {n}": p.grad for n, p in model.named_parameters()}
        return {"output": output} | kept | slopes

    def after_steps(steps: int, *given: Any, rate: float = 0.0) -> dict[str, Any]:
        model = build(module.TinyLlama, vocab, *sizes, rate, rng=Rng(rng.seed))
        told: list[tuple[int, float]] = []
        text = rng.permutation(context + 1) % vocab
        module.train_llama(model, text, steps, *given, report=lambda *each: told.append(each))
        found = {name: p.detach().clone() for name, p in model.named_parameters()}
        losses = torch.tensor([loss for _, loss in told], dtype=torch.float64)
        return found | {"losses": losses, "others": f"{model.training} {[n for n, _ in told]}"}

    yield (
        "parameters",
        lambda: {n: f"{tuple(p.shape)} {p.requires_grad}" for n, p in make().named_parameters()},
    )
    yield (
        "how large a new model is",
        lambda: module.TinyLlama(40, 30, 1, 1, 1, 9, 0.0).token_embedding.weight.std() > 0.07,
    )
    yield "values and gradients", lambda: read(tokens)
    yield "one by one", lambda: read(*tokens.split(1, dim=1))
    yield "a token more", lambda: read(tokens, tokens[:, :1])
    yield "views", lambda: made()(asking.as_view(tokens))[0]
    yield "arguments", lambda: asking.afterwards(made(), tokens)
    for many in (context, context + 1):
        other = rng.randint(0, vocab, batch, many)
        yield f"{many} tokens of {context}", lambda other=other: made()(other)[0]
    yield "bfloat16", lambda: made().to(torch.bfloat16)(tokens)[0]
    yield "meta", lambda: make().to("meta")(tokens.to("meta"))[0]
    if rate in (0.0, 1.0):
        yield "training", lambda: read(tokens, training=True)
    for steps, *given in ((0,), (1,), (3, 2), (6, 2, 0.05, 2), (4, 3, 0.02, 0)):
        yield f"{steps} steps {given}", functools.partial(after_steps, steps, *given)
    yield "steps with dropout of 1", lambda: after_steps(3, 2, 0.05, 1, rate=1.0)
    merges = [(97, 98), (256, 99), (99, 99)]
    reader = build(module.TinyLlama, 259, *sizes, 0.0, rng=Rng(rng.seed)).eval()
    for n in (4, context, 2 * context + 1, 40):
        data = bytes([97, 98, *rng.randint(97, 100, n).tolist()])
        yield f"bits of {data!r}", lambda data=data: module.bits_per_byte(reader, data, merges)
    uniforms = rng.rand(context)
    for n, *options in (
        (0,),
        (1,),
        (context, 0.0),
        (context,),
        (context, 3.0, 2),
        (3, 4.0, None, 0.6),
    ):
        given = tokens[0, :1], uniforms[: min(n, context)], *options
        yield f"{n} tokens {options}", lambda given=given: module.continue_text(made(), *given)
    prompt = tokens[0]
    yield "too many", lambda: module.continue_text(made(), prompt, rng.rand(context + 2))
    yield (
        "a text and its prompt",
        lambda: asking.afterwards(
            lambda *it: module.continue_text(made(), *it), prompt, uniforms[:1]
        ),
    )
