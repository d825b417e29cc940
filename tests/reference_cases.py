"""Random calls of every exercise."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any

import torch
from torch import Tensor
from torch.func import functional_call

from grader.sandbox.program import Program
from grader.sandbox.wire import Source
from grader.testing import Rng

PROJECTIONS = ("W_query", "W_key", "W_value")
INPUTS = (
    "x",
    "queries",
    "keys",
    "values",
    "state",
    "encoder_states",
    "context",
    "memory",
)  # of a layer, in the order of its arguments
SEEDS = range(6)
IN_FLOAT32 = {"rtol": 0.0, "atol": 2e-6}
Leaves = dict[str, Tensor]
Function = Callable[[Leaves], Tensor]
References = dict[str, ModuleType]


def loaded(texts: dict[str, str], name: str) -> ModuleType:
    """Module `name` of the program that `texts` (module name to text) make up."""
    return Program({key: Source(f"{key}.py", text) for key, text in texts.items()}).load(name)


@dataclass(frozen=True)
class Case:
    """A call of a class or function: its options, and the tensors that get gradients.

    The leaves of a layer are its inputs, such as `x`, and its parameters by name. `called_with` are
    arguments of its calls that get no gradients. `tolerance` is that of the output, for what right
    code may compute in float32.
    """

    target: str
    options: dict[str, Any]
    leaves: Leaves
    called_with: dict[str, Any] = field(default_factory=dict)
    tolerance: dict[str, float] = field(default_factory=dict)

    def function(self, module: ModuleType, *, training: bool = False) -> Function:
        """The output of `module`'s class or function as a function of the leaves."""
        target = getattr(module, self.target)
        if not isinstance(target, type):
            return lambda leaves: target(**leaves, **self.options)
        layer = target(**self.options).double().train(training)
        found, wanted = {name for name, _ in layer.named_parameters()}, {*parameters(self.leaves)}
        assert found == wanted, f"the parameters are {sorted(found)}, not {sorted(wanted)}"
        inputs = [name for name in INPUTS if name in self.leaves]
        return lambda leaves: functional_call(
            layer, parameters(leaves), tuple(leaves[name] for name in inputs), self.called_with
        )


@dataclass(frozen=True)
class NamedCase(Case):
    """A call with named tensors: the options are the axes of each leaf, and those of `output`."""

    def function(self, module: ModuleType, *, training: bool = False) -> Function:
        """The tensor of the result, with its axes in the order of the option `output`."""
        target = getattr(module, self.target)

        def call(leaves: Leaves) -> Tensor:
            given = ((leaf, self.options[name]) for name, leaf in leaves.items())
            tensor, found = target(*given)
            assert sorted(found) == sorted(self.options["output"]), f"the axes are {found}"
            return ordered(tensor, found, self.options["output"])

        return call


@dataclass(frozen=True)
class ChunkedCase(Case):
    """A sequence, `x` or `tokens`, that comes in chunks of the lengths `called_with["chunks"]`."""

    def function(self, module: ModuleType, *, training: bool = False) -> Function:
        """The outputs of all chunks, one after the other."""
        layer = getattr(module, self.target)(**self.options).double().train(training)

        def call(leaves: Leaves) -> Tensor:
            cache, outputs = None, []
            x = self.called_with.get("tokens", leaves.get("x"))
            for chunk in x.split(self.called_with["chunks"], dim=1):
                output, cache = functional_call(layer, parameters(leaves), (chunk, cache))
                outputs.append(output)
            return torch.cat(outputs, dim=1)

        return call


@dataclass(frozen=True)
class DecoderCase(Case):
    """A decoder, called with `targets`, `source_lens` and `teacher_forcing`."""

    def function(self, module: ModuleType, *, training: bool = False) -> Function:
        """The logits and, beside them, the alignment."""
        layer = getattr(module, self.target)(**self.options).double().train(training)
        targets, lens, forcing = self.called_with.values()

        def call(leaves: Leaves) -> Tensor:
            inputs = targets, leaves["state"], leaves["encoder_states"], lens, forcing
            return torch.cat(functional_call(layer, parameters(leaves), inputs), dim=-1)

        return call


def ordered(tensor: Tensor, names: Sequence[str], wanted: Sequence[str]) -> Tensor:
    """A tensor with the axes `names`, with its axes in the order of `wanted`."""
    return tensor.permute([list(names).index(name) for name in wanted])


def parameters(leaves: Leaves) -> Leaves:
    """The parameters of a layer, without its inputs."""
    return {name: leaf for name, leaf in leaves.items() if name not in INPUTS}


def sizes(rng: Rng, count: int) -> list[int]:
    """Sizes from 1 to 7 that all differ: an axis taken for another cannot pass."""
    return (rng.permutation(7)[:count] + 1).tolist()


def flag(rng: Rng) -> bool:
    """True or False."""
    return bool(rng.randint(0, 2, 1))


def tracked(**tensors: Tensor) -> Leaves:
    """Tensors that get gradients, by name."""
    return {name: tensor.requires_grad_() for name, tensor in tensors.items()}


def layer_case(rng: Rng, module: ModuleType, target: str, x: Tensor, **options: Any) -> Case:
    """A layer with random parameters: none stays at 1 or 0, where mistakes would hide."""
    shapes = getattr(module, target)(**options).named_parameters()
    drawn = {name: rng.randn(*parameter.shape) * 0.5 + 0.25 for name, parameter in shapes}
    return Case(target, options, tracked(x=x, **drawn))


def lookup_case(rng: Rng, module: ModuleType) -> Case:
    *leading, n_queries, n_keys, d_key, d_value = sizes(rng, 4 + int(rng.randint(0, 3, 1)))
    Q, K = rng.randn(*leading, n_queries, d_key), rng.randn(*leading, n_keys, d_key)
    temp = 0.2 + float(rng.rand(1)) * 3
    return Case("attention", {"temp": temp}, tracked(Q=Q, K=K, V=rng.randn(*K.shape[:-1], d_value)))


SELF_ATTENTION = {  # function: its argument
    "context_vectors": "inputs",
    "scores_by_loops": "inputs",
    "scores_by_product": "inputs",
    "normalise": "scores",
    "softmax_naive": "scores",
    "softmax_stable": "scores",
}


def self_attention_case(rng: Rng, module: ModuleType) -> Case:
    """One function after the other, as seeds count up; scores that `normalise` can divide."""
    target = list(SELF_ATTENTION)[rng.seed % len(SELF_ATTENTION)]
    *leading, rows, columns = sizes(rng, 2 + int(rng.randint(0, 3, 1)))
    x = rng.randn(*(() if target == "scores_by_loops" else leading), rows, columns)
    x = x.abs() + 0.1 if target == "normalise" else x
    return Case(target, {}, tracked(**{SELF_ATTENTION[target]: x}))


def trainable_case(rng: Rng, module: ModuleType) -> Case:
    """Both classes, as seeds count up."""
    d_in, d_out, n_tokens, *leading = sizes(rng, 3 + int(rng.randint(0, 3, 1)))
    target = f"SelfAttentionV{1 + rng.seed % 2}"
    options = {"d_in": d_in, "d_out": d_out}
    options |= {"qkv_bias": flag(rng)} if target == "SelfAttentionV2" else {}
    return layer_case(rng, module, target, rng.randn(*leading, n_tokens, d_in), **options)


def masked_case(rng: Rng, module: ModuleType, *, per_query: bool | None = None) -> Case:
    """Lengths for each batch item or each query, of which one is 0, as integers or floats."""
    batch, n_queries, n_keys = sizes(rng, 3)
    per_query = flag(rng) if per_query is None else per_query
    lens = rng.randint(0, n_keys + 1, *((batch, n_queries) if per_query else (batch,)))
    lens.view(-1)[0] = 0
    lens = lens.double() if flag(rng) else lens
    X = rng.randn(batch, n_queries, n_keys)
    return Case("masked_softmax", {"valid_lens": lens}, tracked(X=X))


def tempered_case(rng: Rng, module: ModuleType) -> Case:
    scores = rng.randn(*sizes(rng, 1 + int(rng.randint(0, 4, 1))))
    return Case(
        "tempered_softmax",
        {"temperature": 0.2 + float(rng.rand(1)) * 3},
        tracked(scores=scores),
    )


def distribution_case(rng: Rng, module: ModuleType) -> Case:
    options = {
        "temperature": 0.3 + float(rng.rand(1)) * 2,
        "top_k": 1 + int(rng.randint(0, 8, 1)),
        "top_p": 0.05 + 0.95 * float(rng.rand(1)),
    }
    return Case("distribution", options, tracked(logits=rng.randn(*sizes(rng, 3))))


def entropy_case(rng: Rng) -> Case:
    """Weights none of which is 0, where the entropy has a slope."""
    weights = rng.randn(*sizes(rng, 1 + int(rng.randint(0, 4, 1)))).softmax(dim=-1)
    return Case("entropy", {}, tracked(weights=weights))


def products_case(rng: Rng) -> Case:
    shape = sizes(rng, 2 + int(rng.randint(0, 3, 1)))
    vectors = {name: rng.randn(*shape) + 0.5 for name in ("queries", "keys")}
    return Case("variance_of_products", {}, tracked(**vectors))


def dot_product_case(rng: Rng, module: ModuleType) -> Case:
    """Lengths for each batch item or each query, of which one is 0, or none."""
    batch, n_queries, n_keys, d_key, d_value = sizes(rng, 5)
    shape = [(batch,), (batch, n_queries), None][int(rng.randint(0, 3, 1))]
    lens = None if shape is None else rng.randint(0, n_keys + 1, *shape)
    if lens is not None:
        lens.view(-1)[0] = 0
    leaves = tracked(
        queries=rng.randn(batch, n_queries, d_key),
        keys=rng.randn(batch, n_keys, d_key),
        values=rng.randn(batch, n_keys, d_value),
    )
    return Case("DotProductAttention", {"dropout": 0.5}, leaves, {"valid_lens": lens})


def drop_case(rng: Rng, module: ModuleType) -> Case:
    """Dropout where nothing is left to chance: in evaluation, or at a rate of 0 or 1."""
    training = flag(rng)
    rate = float(rng.randint(0, 2, 1)) if training else float(rng.rand(1))
    weights = rng.randn(*sizes(rng, 3)).softmax(dim=-1)
    return Case("drop", {"rate": rate, "training": training}, tracked(weights=weights))


def causal_case(rng: Rng, module: ModuleType) -> Case:
    batch, n_tokens, d_in, d_out = sizes(rng, 4)
    options = {"context_length": n_tokens + int(rng.randint(0, 3, 1)), "qkv_bias": flag(rng)}
    x = rng.randn(batch, n_tokens, d_in)
    options |= {"d_in": d_in, "d_out": d_out, "dropout": 0.5}
    return layer_case(rng, module, "CausalAttention", x, **options)


def multi_head_case(rng: Rng, module: ModuleType, *, square: bool = False, **chosen: bool) -> Case:
    batch, n_tokens, d_in, num_heads, d_head = sizes(rng, 5)
    d_out = num_heads * d_head
    d_in = d_out if square else d_in
    options = {"d_in": d_in, "d_out": d_out, "num_heads": num_heads, "dropout": 0.5}
    options["context_length"] = n_tokens + int(rng.randint(0, 3, 1))
    options |= {"qkv_bias": flag(rng), "causal": flag(rng)} | chosen
    x = rng.randn(batch, n_tokens, d_in)
    return layer_case(rng, module, "MultiHeadAttention", x, **options)


def stacked_case(rng: Rng, module: ModuleType, **chosen: bool) -> Case:
    batch, n_tokens, d_in, num_heads, d_out = sizes(rng, 5)
    options = {"d_in": d_in, "d_out": d_out, "num_heads": num_heads, "dropout": 0.5}
    options["context_length"] = n_tokens + int(rng.randint(0, 3, 1))
    options |= {"qkv_bias": flag(rng)} | chosen
    x = rng.randn(batch, n_tokens, d_in)
    return layer_case(rng, module, "StackedHeads", x, **options)


def norm_case(rng: Rng, module: ModuleType, *, target: str = "LayerNorm") -> Case:
    """Features of scale 0.3, where eps 0.1 counts; the first token's are all alike."""
    x = rng.randn(*sizes(rng, 2 + int(rng.randint(0, 3, 1)))) * 0.3
    x.view(-1, x.shape[-1])[0] = 0.7
    options = {"eps": 0.1} if flag(rng) else {}
    return layer_case(rng, module, target, x, d_model=x.shape[-1], **options)


def mean_square_case(rng: Rng, module: ModuleType) -> Case:
    """The tokens of layer norm's cases, one of which is zeros."""
    given = norm_case(rng, module, target="RMSNorm")
    given.leaves["x"].data.view(-1, given.options["d_model"])[-1] = 0
    return given


def feed_forward_case(rng: Rng, module: ModuleType, *, target: str = "FeedForward") -> Case:
    d_ff, *shape = sizes(rng, 3 + int(rng.randint(0, 3, 1)))
    options = {"d_model": shape[-1], "d_ff": d_ff, "dropout": 0.5}
    return layer_case(rng, module, target, rng.randn(*shape), **options)


def gated_case(rng: Rng, module: ModuleType) -> Case:
    case = feed_forward_case(rng, module, target="SwiGLU")
    return replace(case, leaves=case.leaves | tracked(x=case.leaves["x"].detach() * 3))


def block_case(rng: Rng, module: ModuleType, **chosen: bool) -> Case:
    batch, n_tokens, num_heads, d_head, d_ff = sizes(rng, 5)
    options = {"d_model": num_heads * d_head, "num_heads": num_heads, "d_ff": d_ff, "dropout": 0.5}
    options["context_length"] = n_tokens + int(rng.randint(0, 3, 1))
    options |= {"norm_first": flag(rng), "causal": flag(rng)} | chosen
    x = rng.randn(batch, n_tokens, options["d_model"])
    return layer_case(rng, module, "TransformerBlock", x, **options)


def gpt_case(rng: Rng, module: ModuleType) -> Case:
    """Tokens that a model of some layers reads; its parameters are the leaves."""
    vocab, batch, n_tokens, num_heads, d_head, more = sizes(rng, 6)
    options = {"vocab": vocab, "d_model": num_heads * d_head, "num_heads": num_heads}
    options |= {"num_layers": 1 + more % 3, "context_length": n_tokens + more % 2, "dropout": 0.5}
    layer = module.TinyGPT(**options)
    leaves = {name: rng.randn(*p.shape) / 2 for name, p in layer.named_parameters()}
    tokens = rng.randint(0, vocab, batch, n_tokens)
    return Case("TinyGPT", options, tracked(**leaves), {"tokens": tokens})


def named_case(rng: Rng, module: ModuleType, *, target: str = "multi_head") -> Case:
    """Named tensors whose axes are in random order, never in that of the statement."""
    arguments = {
        "attend": {"query": "batch query key", "key": "batch seq key", "value": "batch seq val"},
        "multi_head": {
            **{"x": "batch seq chans", "W_q": "head chans key", "W_k": "head chans key"},
            **{"W_v": "head chans val", "W_o": "head val chans"},
        },
    }[target]
    names = ("batch", "query", "seq", "key", "val", "head", "chans")
    size = dict(zip(names, sizes(rng, len(names))))
    axes = {}
    for name, each in arguments.items():
        axes[name] = tuple(each.split()[place] for place in rng.permutation(3).tolist())
    leaves = {n: rng.randn(*(size[axis] for axis in each)) / 2 for n, each in axes.items()}
    output = {"attend": "batch query val", "multi_head": "batch seq chans"}[target].split()
    return NamedCase(target, {**axes, "output": output}, tracked(**leaves))


def scoring_case(
    rng: Rng, module: ModuleType, target: str, *, equal: bool = False, **options: Any
) -> Case:
    """A layer that scores queries with keys, under lengths of which one is 0.

    With `equal`, queries and keys have one size.
    """
    batch, n_queries, n_keys, d_query, d_key, d_value = sizes(rng, 6)
    if equal:
        d_key = d_query
    elif "d_query" in inspect.signature(getattr(module, target)).parameters:
        options |= {"d_query": d_query, "d_key": d_key}
    lens = rng.randint(0, n_keys + 1, *((batch, n_queries) if flag(rng) else (batch,)))
    lens.view(-1)[0] = 0
    layer = layer_case(rng, module, target, rng.randn(0), dropout=0.5, **options)
    inputs = tracked(
        queries=rng.randn(batch, n_queries, d_query),
        keys=rng.randn(batch, n_keys, d_key),
        values=rng.randn(batch, n_keys, d_value),
    )
    leaves = inputs | parameters(layer.leaves)
    return Case(target, layer.options, leaves, {"valid_lens": lens})


def additive_case(rng: Rng, module: ModuleType) -> Case:
    num_hiddens = int(rng.randint(1, 9, 1))
    return scoring_case(rng, module, "AdditiveAttention", num_hiddens=num_hiddens)


def distance_case(rng: Rng, module: ModuleType) -> Case:
    return scoring_case(rng, module, "DistanceAttention", equal=True)


def bilinear_case(rng: Rng, module: ModuleType) -> Case:
    return scoring_case(rng, module, "BilinearAttention")


def encoding_case(rng: Rng, module: ModuleType) -> Case:
    """Tokens of which the context has room for more."""
    batch, n_tokens, d_model = sizes(rng, 3)
    options = {"d_model": d_model, "context_length": n_tokens + int(rng.randint(0, 3, 1))}
    x = rng.randn(batch, n_tokens, d_model)
    case = layer_case(rng, module, "PositionalEncoding", x, **options, dropout=0.5)
    return replace(case, tolerance=IN_FLOAT32)


def rotary_case(rng: Rng, module: ModuleType) -> Case:
    """Both functions, as seeds count up; pairs of both kinds, and positions with fractions."""
    n_tokens, num_heads, n_pairs, d_value, *leading = sizes(rng, 4 + int(rng.randint(0, 3, 1)))
    shape = (*leading, n_tokens, num_heads, 2 * n_pairs)
    positions = rng.randint(-20, 21, n_tokens) + rng.rand(n_tokens).round(decimals=2)
    if rng.seed % 2:
        inputs = {name: rng.randn(*shape) for name in ("queries", "keys")}
        inputs["values"] = rng.randn(*shape[:-1], d_value)
        options: dict[str, Any] = {"positions": positions}
        return Case("rotary_attention", options, tracked(**inputs), tolerance=IN_FLOAT32)
    options = {"positions": positions, "base": 20.0, "interleaved": flag(rng)}
    return Case("rotate", options, tracked(x=rng.randn(*shape)), tolerance=IN_FLOAT32)


def grouped_case(rng: Rng, module: ModuleType) -> Case:
    """The class, or one of the two products, as seeds count up."""
    batch, kv_heads, group, n_queries, n_keys, d_head, d_value = sizes(rng, 7)
    num_heads = kv_heads * group
    if rng.seed % 3 == 1:
        queries = rng.randn(batch, num_heads, n_queries, d_head)
        keys = rng.randn(batch, kv_heads, n_keys, d_head)
        return Case("grouped_scores", {}, tracked(queries=queries, keys=keys))
    if rng.seed % 3 == 2:
        weights = rng.randn(batch, num_heads, n_queries, n_keys)
        values = rng.randn(batch, kv_heads, n_keys, d_value)
        return Case("grouped_context", {}, tracked(weights=weights, values=values))
    options = {"d_in": d_value, "d_out": num_heads * d_head, "dropout": 0.5}
    options |= {"num_heads": num_heads, "num_kv_heads": kv_heads}
    options["context_length"] = n_keys + int(rng.randint(0, 3, 1))
    x = rng.randn(batch, n_keys, d_value)
    return layer_case(rng, module, "GroupedQueryAttention", x, **options)


def chunks_of(n_tokens: int, rng: Rng) -> list[int]:
    """Random lengths of chunks that make up n_tokens, one of them all tokens at times."""
    chunks, left = [], n_tokens
    while left:
        chunks.append(int(rng.randint(1, left + 1, 1)))
        left -= chunks[-1]
    return chunks


def cached_case(rng: Rng, module: ModuleType) -> Case:
    batch, n_tokens, d_in, num_heads, d_head = sizes(rng, 5)
    chunks = chunks_of(n_tokens, rng)
    options = {"d_in": d_in, "d_out": num_heads * d_head, "num_heads": num_heads, "dropout": 0.5}
    options["context_length"] = n_tokens + int(rng.randint(0, 3, 1))
    options["qkv_bias"] = flag(rng)
    x = rng.randn(batch, n_tokens, d_in)
    layer = layer_case(rng, module, "CachedAttention", x, **options)
    return ChunkedCase(layer.target, layer.options, layer.leaves, {"chunks": chunks})


def modern_case(rng: Rng, module: ModuleType) -> Case:
    """The block or its attention, as seeds count up, over chunks of random lengths."""
    batch, n_tokens, kv_heads, group, n_pairs, other = sizes(rng, 6)
    d_out, target = 2 * n_pairs * kv_heads * group, ("ModernBlock", "RotaryAttention")[rng.seed % 2]
    options = {"num_heads": kv_heads * group, "num_kv_heads": kv_heads, "dropout": 0.5}
    options |= {"context_length": n_tokens + int(rng.randint(0, 3, 1)), "base": 20.0}
    if target == "ModernBlock":
        options |= {"d_model": d_out, "d_ff": other}
    else:
        options |= {"d_in": other, "d_out": d_out}
    x = rng.randn(batch, n_tokens, options.get("d_in", d_out))
    layer = layer_case(rng, module, target, x, **options)
    called_with, rough = {"chunks": chunks_of(n_tokens, rng)}, {"rtol": 1e-5, "atol": 1e-4}
    return ChunkedCase(target, layer.options, layer.leaves, called_with, rough)


def llama_case(rng: Rng, module: ModuleType) -> Case:
    """Tokens that a model of some layers reads in chunks; its parameters are the leaves."""
    vocab, batch, n_tokens, kv_heads, group = (min(s, 3) for s in sizes(rng, 5))
    options = {"vocab": vocab, "d_model": 2 * kv_heads * group, "dropout": 0.5}
    options |= {"num_heads": kv_heads * group, "num_kv_heads": kv_heads}
    options |= {"num_layers": 1 + rng.seed % 2, "context_length": n_tokens + rng.seed % 2}
    layer = module.TinyLlama(**options)
    leaves = {name: rng.randn(*p.shape) / 2 for name, p in layer.named_parameters()}
    called_with = {"tokens": rng.randint(0, vocab, batch, n_tokens)}
    called_with["chunks"] = chunks_of(n_tokens, rng)
    rough = {"rtol": 1e-5, "atol": 1e-4}
    return ChunkedCase("TinyLlama", options, tracked(**leaves), called_with, rough)


def decoder_case(rng: Rng, module: ModuleType) -> Case:
    """With teacher forcing and without, under lengths of which one is 0."""
    batch, n_source, n_target, d_embed, d_decoder, d_encoder, d_hidden = sizes(rng, 7)
    options = {"vocab": 9, "d_embed": d_embed, "d_decoder": d_decoder}
    options |= {"d_encoder": d_encoder, "d_hidden": d_hidden}
    layer = layer_case(rng, module, "AttentionDecoder", rng.randn(0), **options)
    inputs = tracked(
        state=rng.randn(batch, d_decoder), encoder_states=rng.randn(batch, n_source, d_encoder)
    )
    lens = rng.randint(0, n_source + 1, batch)
    lens[0] = 0
    called_with = {
        "targets": rng.randint(0, 9, batch, n_target),
        "source_lens": lens,
        "teacher_forcing": flag(rng),
    }
    return DecoderCase(layer.target, options, inputs | parameters(layer.leaves), called_with)


def tiled_case(rng: Rng, module: ModuleType) -> Case:
    """Any tile size, causal or not, with other leading axes."""
    n_queries, n_keys, d_key, d_value, *leading = sizes(rng, 4 + int(rng.randint(0, 3, 1)))
    leaves = tracked(
        Q=rng.randn(*leading, n_queries, d_key),
        K=rng.randn(*leading, n_keys, d_key),
        V=rng.randn(*leading, n_keys, d_value),
    )
    options = {"tile": int(rng.randint(1, 9, 1)), "causal": flag(rng)}
    return Case("tiled_attention", options, leaves)


def cross_case(rng: Rng, module: ModuleType) -> Case:
    """The three classes, as seeds count up, with masks; in the attention, some rows have no key."""
    batch, n_queries, n_keys, num_heads, d_head, d_ff, d_context = sizes(rng, 7)
    target = ("CrossAttention", "EncoderBlock", "DecoderBlock")[rng.seed % 3]
    masks = [rng.rand(batch, n) < 0.6 for n in (n_queries, n_keys)]
    d_model = num_heads * d_head
    if target != "CrossAttention":
        for mask in masks:
            mask[:, 0] = True  # torch's layers give nan in a row without keys
        options = {"d_model": d_model, "num_heads": num_heads, "d_ff": d_ff, "dropout": 0.5}
        called_with = dict(zip(("key_mask", "memory_mask"), masks[: 1 + (target[0] == "D")]))
        more = {"memory": rng.randn(batch, n_keys, d_model)} if target[0] == "D" else {}
        x = rng.randn(batch, n_queries, d_model)
    else:
        is_causal = flag(rng)
        d_context = d_ff if is_causal else d_context
        options = {"d_query": d_ff, "d_context": d_context, "d_out": d_model, "dropout": 0.5}
        options |= {"num_heads": num_heads, "causal": is_causal}
        masks[1 - is_causal][0] = False
        called_with = {"key_mask": masks[1 - is_causal]}
        more = {} if is_causal else {"context": rng.randn(batch, n_keys, d_context)}
        x = rng.randn(batch, n_queries, d_ff)
    case = layer_case(rng, module, target, x, **options)
    return replace(case, leaves=case.leaves | tracked(**more), called_with=called_with)


def sliding_case(rng: Rng, module: ModuleType) -> Case:
    """Any window, with slopes and without."""
    batch, num_heads, n_tokens, d_head, window = sizes(rng, 5)
    leaves = {name: rng.randn(batch, num_heads, n_tokens, d_head) for name in "QKV"}
    leaves |= {"slopes": rng.rand(num_heads)} if flag(rng) else {}
    return Case("sliding_attention", {"window": window}, tracked(**leaves))


@dataclass(frozen=True)
class TokenCase(Case):
    """A call of a model of tokens, which get no gradients: `called_with` holds them."""

    def function(self, module: ModuleType, *, training: bool = False) -> Function:
        """The logits as a function of the parameters."""
        model = getattr(module, self.target)(**self.options).double().train(training)
        tokens = self.called_with["tokens"]
        return lambda leaves: functional_call(model, leaves, (tokens,))


def counting_case(rng: Rng, module: ModuleType) -> Case:
    batch, n_tokens, vocab, d_model = sizes(rng, 4)
    length = n_tokens + int(rng.randint(0, 3, 1))
    options = {"vocab": vocab, "length": length, "d_model": d_model}
    layer = layer_case(rng, module, "CountingTransformer", rng.randn(0), **options)
    tokens = {"tokens": rng.randint(0, vocab, batch, n_tokens)}
    return TokenCase(layer.target, options, parameters(layer.leaves), tokens)


def loss_case(rng: Rng, module: ModuleType) -> Case:
    """Targets of which some are ignored, not the first one, with label smoothing or without."""
    logits = rng.randn(*sizes(rng, 1 + int(rng.randint(0, 4, 1)))) * 3
    index = int(rng.randint(-2, logits.shape[-1], 1))
    targets = rng.randint(0, logits.shape[-1], *logits.shape[:-1])
    targets = targets.masked_fill(rng.rand(*targets.shape) < 0.3, index)
    targets.view(-1)[0] = int(index == 0) % logits.shape[-1]
    options = {"targets": targets, "ignore_index": index}
    options["label_smoothing"] = float(rng.rand(1)) if flag(rng) else 0.0
    return Case("cross_entropy", options, tracked(logits=logits))


def rate_case(rng: Rng, module: ModuleType) -> Case:
    """A rate on the cosine, between the end of the warm-up and the last step."""
    warmup, more = sizes(rng, 2)
    step = warmup + 1 + int(rng.randint(0, more, 1))
    limits = tracked(peak=1 + rng.rand(1), floor=rng.rand(1))
    return Case(
        "learning_rate", {"step": step, "warmup": warmup, "total": warmup + more + 1}, limits
    )


def patch_case(rng: Rng, module: ModuleType) -> Case:
    """The function, or the class, as seeds count up; patches that touch, or overlap."""
    batch, channels, patch, rows, columns, d_model = sizes(rng, 6)
    stride = int(rng.randint(1, patch + 1, 1)) if flag(rng) else None
    height, width = (patch + n * (stride or patch) for n in (rows - 1, columns - 1))
    images, options = rng.randn(batch, channels, height, width), {"patch": patch, "stride": stride}
    if rng.seed % 2:
        return Case("patches", options, tracked(images=images))
    options |= {"height": height, "width": width, "channels": channels, "d_model": d_model}
    return layer_case(rng, module, "PatchEmbedding", images, **options)


@dataclass(frozen=True)
class AroundCase(Case):
    """A layer around a linear layer, whose sizes are those of the leaf `linear.weight`."""

    def function(self, module: ModuleType, *, training: bool = False) -> Function:
        """The output as a function of the leaves."""
        linear = torch.nn.Linear(*reversed(self.leaves["linear.weight"].shape))
        layer = getattr(module, self.target)(linear, **self.options).double().train(training)
        return lambda leaves: functional_call(layer, parameters(leaves), (leaves["x"],))


def low_rank_case(rng: Rng, module: ModuleType) -> Case:
    r, d_out, *shape = sizes(rng, 3 + int(rng.randint(0, 3, 1)))
    shapes = {"x": shape, "linear.weight": (d_out, shape[-1]), "linear.bias": (d_out,)}
    shapes |= {"A": (r, shape[-1]), "B": (d_out, r)}
    leaves = {name: rng.randn(*each) for name, each in shapes.items()}
    options = {"r": r, "alpha": 0.5 + float(rng.rand(1)) * 9, "dropout": 0.5}
    return AroundCase("LowRankLinear", options, tracked(**leaves))


@dataclass(frozen=True)
class RoutedCase(Case):
    """A mixture of experts, or one of its functions."""

    def function(self, module: ModuleType, *, training: bool = False) -> Function:
        """The output or the gates, and the loss behind them."""
        call = super().function(module, training=training)

        def joined(leaves: Leaves) -> Tensor:
            found = call(leaves)
            results = found if isinstance(found, tuple) else (found,)
            return torch.cat([each.flatten() for each in results if each.is_floating_point()])

        return joined


def routed_case(rng: Rng, module: ModuleType) -> Case:
    """The class, or one of the functions, as seeds count up."""
    num_experts, d_model, d_ff, *leading = sizes(rng, 4 + int(rng.randint(0, 3, 1)))
    top_k = int(rng.randint(1, num_experts + 1, 1))
    if rng.seed % 3:
        logits = tracked(logits=rng.randn(*leading, num_experts))
        target = ("route", "load_balance_loss")[rng.seed % 3 - 1]
        return RoutedCase(target, {"top_k": top_k}, logits)
    options = {"d_model": d_model, "d_ff": d_ff, "num_experts": num_experts, "top_k": top_k}
    x = rng.randn(*leading, d_model)
    layer = layer_case(rng, module, "MixtureOfExperts", x, **options)
    return RoutedCase(layer.target, options, layer.leaves)


CASES: dict[str, Callable[[Rng, ModuleType], Case]] = {
    "dictionary_lookup": lookup_case,
    "masked_softmax": masked_case,
    "self_attention": self_attention_case,
    "trainable_self_attention": trainable_case,
    "causal_attention": causal_case,
    "stacked_heads": stacked_case,
    "multi_head_attention": multi_head_case,
    "layer_norm": norm_case,
    "rms_norm": mean_square_case,
    "feed_forward": feed_forward_case,
    "swiglu": gated_case,
    "transformer_block": block_case,
    "named_attention": named_case,
    "softmax_temperature": tempered_case,
    "scaled_dot_product_attention": dot_product_case,
    "attention_dropout": drop_case,
    "additive_attention": additive_case,
    "distance_attention": distance_case,
    "bilinear_attention": bilinear_case,
    "positional_encoding": encoding_case,
    "rotary_embedding": rotary_case,
    "kv_cache": cached_case,
    "modern_block": modern_case,
    "grouped_query_attention": grouped_case,
    "histogram_transformer": counting_case,
    "online_softmax": tiled_case,
    "seq2seq_attention": decoder_case,
    "tiny_gpt": gpt_case,
    "tiny_llama": llama_case,
    "cross_attention": cross_case,
    "sliding_window": sliding_case,
    "sampling": distribution_case,
    "cross_entropy": loss_case,
    "adamw": rate_case,
    "patch_embedding": patch_case,
    "low_rank_adaptation": low_rank_case,
    "mixture_of_experts": routed_case,
}
