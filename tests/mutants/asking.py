"""How a judge of mutants asks: what is drawn, and what is asked of any function or layer."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from grader.authors import build, gradients
from grader.grading.rng import Rng

LOW = (torch.float32, torch.bfloat16)
Question = tuple[str, Callable[[], Any]]  # what is asked, in words, and the call


@dataclass(frozen=True)
class Random:
    """An answer that depends on torch's generator: what to call for one more draw of it."""

    draw: Callable[[], Tensor]


def one_of(rng: Rng, *values: Any) -> Any:
    return values[int(rng.randint(0, len(values), 1))]


def size(rng: Rng, most: int = 6) -> int:
    return int(rng.randint(1, most + 1, 1))


def sizes(rng: Rng, count: int) -> list[int]:
    """Return sizes from 1 to 6; sometimes all equal, sometimes one is 1."""
    sizes = [size(rng) for _ in range(count)]
    kind = one_of(rng, "any", "any", "equal", "one")
    if kind == "equal":
        sizes = [sizes[0]] * count
    if kind == "one":
        sizes[int(rng.randint(0, count, 1))] = 1
    return sizes


def drawn(rng: Rng, *shape: int) -> Tensor:
    """Return float64 numbers: ordinary, large, small, shifted, many equal, or all 0."""
    kind = one_of(rng, "any", "any", "any", "large", "huge", "small", "shifted", "rounded", "zero")
    x = rng.randn(*shape)
    factor = {"large": 40.0, "huge": 1e4, "small": 1e-2, "zero": 0.0}.get(kind, 1.0)
    if kind == "shifted":
        return x + float(one_of(rng, -3.0, 10.0))
    return (x * factor).round() if kind == "rounded" else x * factor


def as_view(x: Tensor) -> Tensor:
    """Return the same numbers in memory that is not contiguous."""
    return x.transpose(0, -1).contiguous().transpose(0, -1) if x.dim() > 1 else x


def afterwards(call: Callable[..., Any], *inputs: Any) -> dict[str, Tensor]:
    """Return the arguments after a call on contiguous and on strided copies of them."""
    found = {}
    for kind, change in (("plain", Tensor.clone), ("strided", lambda x: as_view(x.clone()))):
        given = [change(value) if isinstance(value, Tensor) else value for value in inputs]
        call(*given)
        for place, value in enumerate(given):
            if isinstance(value, Tensor):
                found[f"{kind} argument {place}"] = value
    return found


def low(call: Callable[..., Any], dtype: torch.dtype, *inputs: Any) -> Any:
    """Return the output on inputs of another dtype."""
    return call(
        *[
            value.to(dtype) if isinstance(value, Tensor) and value.is_floating_point() else value
            for value in inputs
        ]
    )


def function(call: Callable[..., Any], rng: Rng, *inputs: Any) -> Iterator[Question]:
    """Ask a function: values, gradients, dtypes, views, arguments afterwards."""
    yield "values and gradients", lambda: gradients(call, *inputs)
    yield "values", lambda: call(*inputs)
    strided = [as_view(v) if isinstance(v, Tensor) else v for v in inputs]
    yield "views", lambda: gradients(call, *strided)
    yield "views without gradients", lambda: call(*strided)
    yield "arguments", lambda: afterwards(call, *inputs)
    ordinary = all(v.abs().max() < 5 for v in inputs if isinstance(v, Tensor))
    if ordinary:  # where rounding decides little
        for dtype in (*LOW, torch.float16):
            yield f"{dtype}", functools.partial(low, call, dtype, *inputs)


def layer(
    make: Callable[[], Any], rng: Rng, shape: tuple[int, ...], *, rate: float = 0.0
) -> Iterator[Question]:
    """Ask a layer: parameters, values, gradients, modes, dtypes, devices, arguments afterwards."""
    x, seed = drawn(rng, *shape), Rng(rng.seed)
    layer = functools.cache(lambda: build(make, rng=seed))

    def trained() -> Any:
        return layer().train()

    yield (
        "parameters",
        lambda: {
            name: f"{tuple(p.shape)} {p.dtype} {p.requires_grad}"
            for name, p in make().named_parameters()
        },
    )
    yield "a new layer", lambda: initial(make())
    yield "values and gradients", lambda: gradients(layer().eval(), x)
    yield "values", lambda: layer().eval()(x)
    yield "views", lambda: gradients(layer().eval(), as_view(x))
    yield "arguments", lambda: afterwards(layer().eval(), x)
    yield "arguments in training", lambda: afterwards(trained(), x)
    yield (
        "parameters afterwards",
        lambda: {name: p.detach().clone() for name, p in layer().named_parameters()},
    )
    yield "training and fewer tokens, then evaluation", lambda: again(layer(), x)
    for dtype in (torch.float64, *LOW):
        small = rng.randn(*shape).to(dtype)
        yield f"to {dtype}", functools.partial(converted, make, seed, dtype, small)
    yield "meta", lambda: make().to("meta")(torch.empty(shape, device="meta"))
    yield "a copy", lambda: copy.deepcopy(layer().eval())(x)
    if rate in (0.0, 1.0):
        yield "training", lambda: gradients(trained(), x)
    else:
        y = rng.randn(*shape)
        for place in ("output", "input 0"):
            yield f"{place} in training", functools.partial(draws, trained, y, place)


def draws(trained: Callable[[], Any], x: Tensor, place: str) -> Random:
    layer = trained()
    layer(x)
    return Random(lambda: gradients(layer, x)[place])


def initial(layer: nn.Module) -> dict[str, Any]:
    """Return the parameters that have no random numbers to begin with."""
    return {n: p.detach() for n, p in layer.named_parameters() if n.endswith(("gamma", "beta"))}


def again(layer: nn.Module, x: Tensor) -> Tensor:
    layer.train()(x[..., :1, :])
    output: Tensor = layer.eval()(x)
    return output


def converted(make: Callable[[], Any], rng: Rng, dtype: torch.dtype, x: Tensor) -> Any:
    """Return the output after `.to(dtype)`, and of what type it is in training."""
    layer = build(make, rng=rng, dtype=torch.float32).to(dtype)
    output = layer(x)
    in_training = layer.train()(x)
    finite = bool(in_training.isfinite().all())
    return {"output": output, "training": f"{in_training.dtype} {in_training.shape} {finite}"}


def rate(rng: Rng) -> float:
    return float(one_of(rng, 0.0, 0.0, 0.3, 0.6, 0.8, 1.0))


def wrong_shapes(batch: int, n_queries: int, n_keys: int) -> Iterator[tuple[int, ...]]:
    shapes = (
        *((batch + 1,), (n_queries,), (n_keys,), (batch, n_keys), (n_queries, batch), (batch, 1)),
        *((batch, n_queries + 1), (batch + 1, n_queries), (batch, n_queries, 1), (1,), ()),
        *((1, n_queries), (batch, n_queries, n_keys), (batch, 1, n_queries), (batch * n_queries,)),
    )
    yield from (s for s in shapes if s not in ((batch,), (batch, n_queries)))


def of_tokens(
    make: Callable[[], Any], rng: Rng, batch: int, n_tokens: int, d_in: int, context: int
) -> Iterator[Question]:
    """Ask a layer about changed later tokens, all numbers of tokens, and too many."""
    layer = functools.cache(lambda: build(make, rng=Rng(rng.seed)))
    x = rng.randn(batch, n_tokens, d_in)
    for far in (1e3, 1e6):
        changed = x.clone()
        changed[:, n_tokens // 2 :] += far
        yield f"later tokens {far} larger", functools.partial(called, layer, changed)
    for count in {1, 2, context, context + 1, context + 2, 10 * context + 7}:
        tokens = rng.randn(size(rng, 3), count, d_in)
        yield f"{count} of {context} tokens", functools.partial(called, layer, tokens)
        yield (
            f"{count} of {context} tokens in training",
            functools.partial(called, layer, tokens, training=True),
        )


def called(layer: Callable[[], Any], x: Tensor, *, training: bool = False) -> Any:
    """Return the output; in training only that there is one."""
    output = layer().train(training)(x)
    return "an output" if training else output


def refusal(make: Callable[..., Any], *args: Any, **kwargs: Any) -> str:
    make(*args, **kwargs)
    return "a layer"
