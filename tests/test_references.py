"""The reference solutions are right: torch, worked numbers, stand-ins and other styles agree."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call

from grader.course.course import Course
from grader.grading.programs import program
from grader.sandbox.program import Program
from grader.sandbox.wire import Source
from grader.testing import Rng

OUTSIDE = Path(__file__).parent / "outside"
STYLES = ("einsum", "separate_heads", "terse")
STAND_INS = ("feed_forward", "layer_norm", "multi_head_attention")
PROJECTIONS = ("W_query", "W_key", "W_value")
DROPPING = ("causal_attention", "multi_head_attention", "feed_forward", "transformer_block")
SEEDS = range(6)

Leaves = dict[str, Tensor]
Function = Callable[[Leaves], Tensor]
References = dict[str, ModuleType]


def loaded(texts: dict[str, str], name: str) -> ModuleType:
    """Module `name` of the program that `texts` (module name to text) make up."""
    return Program({key: Source(f"{key}.py", text) for key, text in texts.items()}).load(name)


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Tensors this small only wait for each other on several threads."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def references(solutions: dict[str, str]) -> References:
    """Every reference solution as a module, by the exercise's name."""
    return {name: loaded(solutions, name) for name in solutions}


# --- cases: random calls of an exercise -----------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A call of a class or function: its options, and the tensors that get gradients.

    The leaves of a layer are its input `x` and its parameters by name.
    """

    target: str
    options: dict[str, Any]
    leaves: Leaves

    def function(self, module: ModuleType, *, training: bool = False) -> Function:
        """The output of `module`'s class or function as a function of the leaves."""
        target = getattr(module, self.target)
        if not isinstance(target, type):
            return lambda leaves: target(**leaves, **self.options)
        layer = target(**self.options).double().train(training)
        found, wanted = {name for name, _ in layer.named_parameters()}, {*self.leaves} - {"x"}
        assert found == wanted, f"the parameters are {sorted(found)}, not {sorted(wanted)}"
        return lambda leaves: functional_call(layer, parameters(leaves), (leaves["x"],))


def parameters(leaves: Leaves) -> Leaves:
    return {name: leaf for name, leaf in leaves.items() if name != "x"}


def sizes(rng: Rng, count: int) -> list[int]:
    """Sizes from 1 to 7 that all differ: an axis taken for another cannot pass."""
    return (rng.permutation(7)[:count] + 1).tolist()


def flag(rng: Rng) -> bool:
    return bool(rng.randint(0, 2, 1))


def tracked(**tensors: Tensor) -> Leaves:
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


def masked_case(rng: Rng, module: ModuleType, *, per_query: bool | None = None) -> Case:
    """Lengths for each batch item or each query, of which one is 0, as integers or floats."""
    batch, n_queries, n_keys = sizes(rng, 3)
    per_query = flag(rng) if per_query is None else per_query
    lens = rng.randint(0, n_keys + 1, *((batch, n_queries) if per_query else (batch,)))
    lens.view(-1)[0] = 0
    lens = lens.double() if flag(rng) else lens
    X = rng.randn(batch, n_queries, n_keys)
    return Case("masked_softmax", {"valid_lens": lens}, tracked(X=X))


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


def norm_case(rng: Rng, module: ModuleType) -> Case:
    """Features of scale 0.3, where eps 0.1 counts; the first token's are all alike."""
    x = rng.randn(*sizes(rng, 2 + int(rng.randint(0, 3, 1)))) * 0.3
    x.view(-1, x.shape[-1])[0] = 0.7
    options = {"eps": 0.1} if flag(rng) else {}
    return layer_case(rng, module, "LayerNorm", x, d_model=x.shape[-1], **options)


def feed_forward_case(rng: Rng, module: ModuleType) -> Case:
    d_ff, *shape = sizes(rng, 3 + int(rng.randint(0, 3, 1)))
    options = {"d_model": shape[-1], "d_ff": d_ff, "dropout": 0.5}
    return layer_case(rng, module, "FeedForward", rng.randn(*shape), **options)


def block_case(rng: Rng, module: ModuleType, **chosen: bool) -> Case:
    batch, n_tokens, num_heads, d_head, d_ff = sizes(rng, 5)
    options = {"d_model": num_heads * d_head, "num_heads": num_heads, "d_ff": d_ff, "dropout": 0.5}
    options["context_length"] = n_tokens + int(rng.randint(0, 3, 1))
    options |= {"norm_first": flag(rng), "causal": flag(rng)} | chosen
    x = rng.randn(batch, n_tokens, options["d_model"])
    return layer_case(rng, module, "TransformerBlock", x, **options)


CASES: dict[str, Callable[[Rng, ModuleType], Case]] = {
    "dictionary_lookup": lookup_case,
    "masked_softmax": masked_case,
    "causal_attention": causal_case,
    "multi_head_attention": multi_head_case,
    "layer_norm": norm_case,
    "feed_forward": feed_forward_case,
    "transformer_block": block_case,
}


# --- oracles: the same, said by torch -------------------------------------------------------------


def torch_lookup(case: Case, leaves: Leaves) -> Tensor:
    scale = 1 / case.options["temp"]
    return F.scaled_dot_product_attention(leaves["Q"], leaves["K"], leaves["V"], scale=scale)


def torch_softmax_of_each_row(case: Case, leaves: Leaves) -> Tensor:
    """F.softmax over the first keys of a row, one row at a time, and zeros behind them."""
    X = leaves["X"]
    batch, n_queries, n_keys = X.shape
    lens = case.options["valid_lens"].view(batch, -1).expand(batch, n_queries).flatten().int()
    rows = [
        F.pad(F.softmax(row[:length], dim=-1), (0, n_keys - length))
        for row, length in zip(X.flatten(0, 1), lens.tolist())
    ]
    return torch.stack(rows).view_as(X)


def torch_masked_attention(case: Case, leaves: Leaves) -> Tensor:
    """Attention under a boolean mask, with one-hot keys and values: its output is the weights."""
    X = leaves["X"]
    batch, n_queries, n_keys = X.shape
    lens = case.options["valid_lens"].view(batch, -1, 1).expand(batch, n_queries, 1)
    one_hot = torch.eye(n_keys, dtype=X.dtype).expand(batch, n_keys, n_keys)
    mask = torch.arange(n_keys) < lens  # (batch, n_queries, n_keys)
    return F.scaled_dot_product_attention(X, one_hot, one_hot, attn_mask=mask, scale=1.0)


def biases(case: Case, leaves: Leaves, prefix: str = "") -> list[Tensor] | None:
    """The biases of queries, keys and values, which are there if qkv_bias is True."""
    if not case.options.get("qkv_bias"):
        return None
    return [leaves[f"{prefix}{name}.bias"] for name in PROJECTIONS]


def projected(case: Case, leaves: Leaves) -> list[Tensor]:
    """Queries, keys and values."""
    weights = [leaves[f"{name}.weight"] for name in PROJECTIONS]
    given = biases(case, leaves) or [None, None, None]
    return [F.linear(leaves["x"], weight, bias) for weight, bias in zip(weights, given)]


def torch_causal_attention(case: Case, leaves: Leaves) -> Tensor:
    return F.scaled_dot_product_attention(*projected(case, leaves), is_causal=True)


def torch_heads_side_by_side(case: Case, leaves: Leaves) -> Tensor:
    """One attention for each slice of the columns, then out_proj."""
    d_head = case.options["d_out"] // case.options["num_heads"]
    heads = zip(*(tensor.split(d_head, dim=-1) for tensor in projected(case, leaves)))
    causal = case.options["causal"]
    outputs = [F.scaled_dot_product_attention(*head, is_causal=causal) for head in heads]
    output = torch.cat(outputs, dim=-1)  # (batch, n_tokens, d_out)
    return F.linear(output, leaves["out_proj.weight"], leaves["out_proj.bias"])


def in_projection(case: Case, leaves: Leaves, prefix: str = "") -> Leaves:
    """W_query, W_key and W_value stacked, under torch's names."""
    weight = torch.cat([leaves[f"{prefix}{name}.weight"] for name in PROJECTIONS])
    given = biases(case, leaves, prefix)
    bias = torch.cat(given) if given else torch.zeros_like(weight[:, 0])
    return {"in_proj_weight": weight, "in_proj_bias": bias}


def hidden(x: Tensor, causal: bool) -> Tensor:
    """torch's mask, (n_tokens, n_tokens): True where a query must not attend to a key."""
    every_pair = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool)
    return every_pair.triu(1) if causal else ~every_pair


def torch_multi_head_attention(case: Case, leaves: Leaves) -> Tensor:
    options, x = case.options, leaves["x"]
    layer = nn.MultiheadAttention(options["d_out"], options["num_heads"], batch_first=True)
    out_proj = {name: leaves[name] for name in ("out_proj.weight", "out_proj.bias")}
    mask = {"attn_mask": hidden(x, options["causal"]), "need_weights": False}
    return functional_call(layer, in_projection(case, leaves) | out_proj, (x, x, x), mask)[0]


def torch_layer_norm(case: Case, leaves: Leaves) -> Tensor:
    layer = nn.LayerNorm(case.options["d_model"], case.options.get("eps", 1e-5))
    weights = {"weight": leaves["gamma"], "bias": leaves["beta"]}
    return functional_call(layer, weights, (leaves["x"],))


def torch_sequential(case: Case, leaves: Leaves) -> Tensor:
    d_model, d_ff = case.options["d_model"], case.options["d_ff"]
    layers = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))
    places = {"linear1": "0", "linear2": "2"}
    weights = {
        f"{place}.{kind}": leaves[f"{name}.{kind}"]
        for name, place in places.items()
        for kind in ("weight", "bias")
    }
    return functional_call(layers, weights, (leaves["x"],))


def torch_encoder_layer(case: Case, leaves: Leaves) -> Tensor:
    names = ("d_model", "num_heads", "d_ff")
    layer = nn.TransformerEncoderLayer(
        *(case.options[name] for name in names),
        dropout=0.0,
        batch_first=True,
        norm_first=case.options["norm_first"],
    )
    mask = {"src_mask": hidden(leaves["x"], case.options["causal"])}
    return functional_call(layer, encoder_names(case, leaves), (leaves["x"],), mask)


def encoder_names(case: Case, leaves: Leaves) -> Leaves:
    """A block's parameters under the names that nn.TransformerEncoderLayer gives them."""
    stacked = in_projection(case, leaves, "attention.")
    named = {f"self_attn.{name}": tensor for name, tensor in stacked.items()}
    for kind, ours in (("weight", "gamma"), ("bias", "beta")):
        named[f"self_attn.out_proj.{kind}"] = leaves[f"attention.out_proj.{kind}"]
        for n in (1, 2):
            named[f"linear{n}.{kind}"] = leaves[f"feed_forward.linear{n}.{kind}"]
            named[f"norm{n}.{kind}"] = leaves[f"norm{n}.{ours}"]
    return named


Oracle = Callable[[Case, Leaves], Tensor]
ORACLES: dict[str, Oracle] = {
    "dictionary_lookup": torch_lookup,
    "masked_softmax": torch_softmax_of_each_row,
    "causal_attention": torch_causal_attention,
    "multi_head_attention": torch_heads_side_by_side,
    "layer_norm": torch_layer_norm,
    "feed_forward": torch_sequential,
    "transformer_block": torch_encoder_layer,
}


# --- comparing ------------------------------------------------------------------------------------


def assert_close(actual: Tensor, expected: Tensor, what: str, **tolerance: float) -> None:
    tolerance = tolerance or {"rtol": 1e-9, "atol": 1e-10}
    torch.testing.assert_close(actual, expected, **tolerance, msg=lambda text: f"{what}: {text}")


def assert_same(actual: Function, expected: Function, leaves: Leaves) -> None:
    """Both give the same output, and the same gradient for every leaf."""
    outputs = actual(leaves), expected(leaves)
    assert_close(*outputs, "the output")
    upstream = Rng(0).randn(*outputs[1].shape)
    gradients = [torch.autograd.grad(o, list(leaves.values()), upstream) for o in outputs]
    for name, found, wanted in zip(leaves, *gradients):
        assert_close(found, wanted, f"the gradient of {name}")


def prove(case: Case, module: ModuleType, oracle: Oracle) -> None:
    """`module` gives the values and gradients of torch."""
    assert_same(case.function(module), lambda leaves: oracle(case, leaves), case.leaves)


# --- torch agrees ---------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", ORACLES)
def test_a_reference_gives_the_values_and_gradients_of_torch(
    name: str, seed: int, references: References
) -> None:
    prove(CASES[name](Rng(seed), references[name]), references[name], ORACLES[name])


def test_every_reference_is_compared(course: Course) -> None:
    assert {*ORACLES} == {*CASES} == {*course.names}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("qkv_bias", [False, True], ids=["no_bias", "bias"])
@pytest.mark.parametrize("causal", [False, True], ids=["all_tokens", "causal"])
def test_multi_head_attention_is_torchs_module(
    causal: bool, qkv_bias: bool, seed: int, references: References
) -> None:
    module = references["multi_head_attention"]
    case = multi_head_case(Rng(seed), module, square=True, causal=causal, qkv_bias=qkv_bias)
    prove(case, module, torch_multi_head_attention)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("norm_first", [False, True], ids=["post_norm", "pre_norm"])
@pytest.mark.parametrize("causal", [False, True], ids=["all_tokens", "causal"])
def test_the_block_is_torchs_encoder_layer(
    causal: bool, norm_first: bool, seed: int, references: References
) -> None:
    module = references["transformer_block"]
    case = block_case(Rng(seed), module, causal=causal, norm_first=norm_first)
    prove(case, module, torch_encoder_layer)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("per_query", [False, True], ids=["per_batch_item", "per_query"])
def test_masked_softmax_is_torchs_attention_under_a_boolean_mask(
    per_query: bool, seed: int, references: References
) -> None:
    module = references["masked_softmax"]
    case = masked_case(Rng(seed), module, per_query=per_query)
    prove(case, module, torch_masked_attention)
    weights = case.function(module)(case.leaves)
    assert torch.equal(weights[0, 0], torch.zeros_like(weights[0, 0])), "length 0: not all zeros"


@pytest.mark.parametrize("seed", SEEDS)
def test_masked_softmax_without_lengths_is_softmax(seed: int, references: References) -> None:
    module = references["masked_softmax"]
    case = replace(masked_case(Rng(seed), module), options={"valid_lens": None})
    prove(case, module, lambda case, leaves: F.softmax(leaves["X"], dim=-1))


@pytest.mark.parametrize(("scale", "offset"), [(1e4, 0.0), (1.0, -2e6), (1.0, 1e4)])
@pytest.mark.parametrize("seed", SEEDS)
def test_masked_softmax_holds_for_scores_of_any_size(
    seed: int, scale: float, offset: float, references: References
) -> None:
    module = references["masked_softmax"]
    case = masked_case(Rng(seed), module)
    X = case.leaves["X"].detach() * scale + offset
    prove(replace(case, leaves=tracked(X=X)), module, torch_softmax_of_each_row)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("name", "leaf", "scale"),
    [
        ("dictionary_lookup", "Q", 1e4),
        ("causal_attention", "x", 1e3),
        ("multi_head_attention", "x", 1e3),
    ],
)
def test_attention_holds_for_scores_of_any_size(
    name: str, leaf: str, scale: float, seed: int, references: References
) -> None:
    case = CASES[name](Rng(seed), references[name])
    leaves = case.leaves | {leaf: case.leaves[leaf] * scale}
    outputs = case.function(references[name])(leaves), ORACLES[name](case, leaves)
    assert_close(*outputs, "the output", rtol=1e-7, atol=1e-6)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_fresh_layer_norm_is_torchs(seed: int, references: References) -> None:
    rng = Rng(seed)
    x = rng.randn(*sizes(rng, 3)) * 0.01  # so small that eps counts
    classes = references["layer_norm"].LayerNorm, nn.LayerNorm
    ours, torchs = (layer(x.shape[-1]).double()(x) for layer in classes)
    assert_close(ours, torchs, "the output of a fresh layer")


@pytest.mark.parametrize("seed", SEEDS)
def test_layer_norm_keeps_its_digits_far_from_zero(seed: int, references: References) -> None:
    case = norm_case(Rng(seed), references["layer_norm"])
    leaves = case.leaves | {"x": case.leaves["x"] + 1e6}
    outputs = case.function(references["layer_norm"])(leaves), torch_layer_norm(case, leaves)
    assert_close(*outputs, "the output", rtol=1e-6, atol=1e-6)


BLOCK_LAYERS = (
    *(f"attention.{name}" for name in (*PROJECTIONS, "out_proj")),
    "feed_forward.linear1",
    "feed_forward.linear2",
)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("name", "layers"),
    [
        ("causal_attention", PROJECTIONS),
        ("multi_head_attention", (*PROJECTIONS, "out_proj")),
        ("feed_forward", ("linear1", "linear2")),
        ("transformer_block", BLOCK_LAYERS),
    ],
)
def test_a_seed_gives_the_linear_layers_in_the_order_stated(
    name: str, layers: tuple[str, ...], seed: int, references: References
) -> None:
    case = CASES[name](Rng(seed), references[name])
    torch.manual_seed(seed)
    fresh = getattr(references[name], case.target)(**case.options)
    torch.manual_seed(seed)
    for layer in layers:
        found = fresh.get_submodule(layer)
        wanted = nn.Linear(found.in_features, found.out_features, found.bias is not None)
        assert_close(found.weight, wanted.weight, f"the weight of {layer}", rtol=0, atol=0)


@pytest.mark.parametrize("seed", SEEDS)
def test_feed_forward_drops_hidden_units_as_torch_does(seed: int, references: References) -> None:
    case = feed_forward_case(Rng(seed), references["feed_forward"])
    case = replace(case, options=case.options | {"dropout": 0.3})
    function, at = case.function(references["feed_forward"], training=True), case.leaves
    torch.manual_seed(seed)
    found = function(at)
    torch.manual_seed(seed)
    units = F.dropout(F.relu(F.linear(at["x"], at["linear1.weight"], at["linear1.bias"])), 0.3)
    wanted = F.linear(units, at["linear2.weight"], at["linear2.bias"])
    assert_close(found, wanted, "the output in training")


def nothing_left(case: Case, leaves: Leaves) -> Tensor:
    """What a layer gives if all that it may drop is dropped."""
    x = leaves["x"]
    if case.target == "CausalAttention":
        return x.new_zeros(*x.shape[:-1], case.options["d_out"])
    if case.target != "TransformerBlock":
        bias = leaves["out_proj.bias" if case.target == "MultiHeadAttention" else "linear2.bias"]
        return bias.expand(*x.shape[:-1], -1)
    if case.options["norm_first"]:
        return x
    for n in (1, 2):
        x = F.layer_norm(x, x.shape[-1:], leaves[f"norm{n}.gamma"], leaves[f"norm{n}.beta"])
    return x


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", DROPPING)
def test_at_rate_1_all_that_may_be_dropped_is_dropped(
    name: str, seed: int, references: References
) -> None:
    case = CASES[name](Rng(seed), references[name])
    case = replace(case, options=case.options | {"dropout": 1.0})
    output = case.function(references[name], training=True)(case.leaves)
    assert_close(output, nothing_left(case, case.leaves), "the output in training")


def check_gradients(case: Case, module: ModuleType) -> None:
    """The gradients of every leaf are those of finite differences."""
    function = case.function(module)

    def positional(*tensors: Tensor) -> Tensor:
        return function(dict(zip(case.leaves, tensors)))

    assert torch.autograd.gradcheck(positional, tuple(case.leaves.values()), fast_mode=True)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", CASES)
def test_gradients_are_those_of_finite_differences(
    name: str, seed: int, references: References
) -> None:
    check_gradients(CASES[name](Rng(seed), references[name]), references[name])


# --- the comparison itself ------------------------------------------------------------------------

BROKEN = {  # fault: exercise, what the solution says, what is put there, what is told
    "root of the temperature": ("dictionary_lookup", "/ temp", "/ temp**0.5", "the output"),
    "one key too many": ("masked_softmax", "(n_keys) < lens", "(n_keys) <= lens", "the output"),
    "nan at length 0": ("masked_softmax", ".masked_fill(~valid, 0.0)", "", "the output"),
    "scale of the input": ("causal_attention", "d_out**-0.5", "d_in**-0.5", "the output"),
    "one token ahead": ("causal_attention", ".tril()", ".tril(1)", "the output"),
    "scale of all heads": ("multi_head_attention", "self.d_head**", "d_out**", "the output"),
    "heads mixed": ("multi_head_attention", "flatten(2)", "roll(1, 2).flatten(2)", "the output"),
    "unbiased variance": ("layer_norm", "correction=0", "correction=1", "the output"),
    "gradient cut": ("layer_norm", "x.var(", "x.detach().var(", "the gradient of x"),
    "another activation": ("feed_forward", "torch.relu", "torch.tanh", "the output"),
    "causal flag lost": ("transformer_block", ", causal=causal", "", "the output"),
    "norm skipped": ("transformer_block", "(self.norm2(x))", "(x)", "the output"),
}


def broken(solutions: dict[str, str], name: str, right: str, wrong: str) -> ModuleType:
    """The solution with a fault in it."""
    text = solutions[name]
    assert right in text, f"the {name} solution no longer says {right!r}"
    return loaded(solutions | {name: text.replace(right, wrong)}, name)


def prove_for_all_seeds(name: str, module: ModuleType) -> None:
    for seed in SEEDS:
        prove(CASES[name](Rng(seed), module), module, ORACLES[name])


@pytest.mark.filterwarnings("ignore:var")  # the unbiased variance of a single feature
@pytest.mark.parametrize("fault", BROKEN)
def test_the_comparison_rejects_a_broken_solution(fault: str, solutions: dict[str, str]) -> None:
    name, right, wrong, told = BROKEN[fault]
    module = broken(solutions, name, right, wrong)
    with pytest.raises(AssertionError, match=f"^{told}: "):
        prove_for_all_seeds(name, module)


def test_finite_differences_reject_a_cut_gradient(solutions: dict[str, str]) -> None:
    module = broken(solutions, "layer_norm", "x.var(", "x.detach().var(")
    with pytest.raises(RuntimeError, match="Jacobian mismatch"):
        check_gradients(norm_case(Rng(1), module), module)


# --- the worked numbers ---------------------------------------------------------------------------

ENTRIES = {0: [2, 3], 1: [5, 7], 2: [3, 2]}
TOKENS = [
    [0.43, 0.15, 0.89],
    [0.55, 0.87, 0.66],
    [0.57, 0.85, 0.64],
    [0.22, 0.58, 0.33],
    [0.77, 0.25, 0.10],
    [0.05, 0.80, 0.55],
]
SECOND_TOKEN_SCORES = [0.9544, 1.4950, 1.4754, 0.8434, 0.7070, 1.0865]
SECOND_TOKEN_WEIGHTS = [0.1385, 0.2379, 0.2333, 0.1240, 0.1082, 0.1581]
SECOND_TOKEN_CONTEXT = [0.4419, 0.6515, 0.5683]
CAUSAL_WEIGHTS = {
    2: [0.5517, 0.4483, 0, 0, 0, 0],
    3: [0.3800, 0.3097, 0.3103, 0, 0, 0],
    6: [0.1935, 0.1663, 0.1666, 0.1542, 0.1666, 0.1529],
}
FIRST_HEAD = [
    [0.2745, 0.6584, 0.2775, 0.8573],
    [0.8993, 0.0390, 0.9268, 0.7388],
    [0.7179, 0.7058, 0.9156, 0.4340],
]
FIRST_HEAD_PRODUCTS = [
    [1.3208, 1.1631, 1.2879],
    [1.1631, 2.2150, 1.8424],
    [1.2879, 1.8424, 2.0402],
]


def assert_rounds_to(actual: Tensor, expected: Any, what: str) -> None:
    """The same to four decimals."""
    assert_close(actual.double(), torch.tensor(expected).double(), what, rtol=0, atol=6e-5)


def with_zeros(rows: Tensor) -> Tensor:
    """A row of zeros in front: its score with every query is 0."""
    return F.pad(rows, (0, 0, 1, 0))


def scores_behind(weights: Tensor) -> Tensor:
    """The scores that softmax made `weights` of, where the first key has the score 0."""
    return (weights[..., 1:] / weights[..., :1]).log()


def show_weights(layer: nn.Module, one_hot: Tensor) -> None:
    """Make the values `one_hot`, (n_tokens, d_out): the output is then the weights."""
    layer.W_value.register_forward_hook(lambda *_: one_hot[None])


def identity(layer: nn.Module, *names: str) -> None:
    for name in names:
        nn.init.eye_(layer.get_submodule(name).weight)


def test_a_lookup_blends_or_finds_as_worked_out(references: References) -> None:
    module = references["dictionary_lookup"]
    blend = [3.9403, 5.0925]
    keys, values = torch.eye(3), torch.tensor(list(ENTRIES.values())).float()
    assert_rounds_to(module.attention(keys[1:2], keys, values)[0], blend, "plain attention")
    assert_rounds_to(module.lookup(ENTRIES, 1, temp=1.0), blend, "lookup at temp 1")
    assert_rounds_to(module.lookup(ENTRIES, 1, temp=0.01), [5, 7], "lookup at temp 0.01")
    assert_rounds_to(module.lookup(ENTRIES, 1), [5, 7], "lookup")


def test_three_keys_get_the_worked_scores_and_weights(references: References) -> None:
    attention = references["dictionary_lookup"].attention
    s = torch.tensor([[0.4685, 0.9785]])
    h = torch.tensor([[0.5539, 0.7239], [0.4111, 0.3878], [0.2376, 0.1264]])
    scores = scores_behind(attention(s, with_zeros(h), torch.eye(4)))
    assert_rounds_to(scores[0], [0.9678, 0.5721, 0.2350], "the scores")
    assert_rounds_to(attention(s, h, torch.eye(3))[0], [0.4643, 0.3126, 0.2231], "the weights")


def test_plain_attention_among_six_tokens_is_as_worked_out(references: References) -> None:
    attention, X = references["dictionary_lookup"].attention, torch.tensor(TOKENS)
    scores = scores_behind(attention(X, with_zeros(X), torch.eye(7)))
    assert_rounds_to(scores[1], SECOND_TOKEN_SCORES, "row 2 of X Xᵀ")
    assert_rounds_to(attention(X, X, torch.eye(6))[1], SECOND_TOKEN_WEIGHTS, "its softmax")
    assert_rounds_to(attention(X, X, X)[1], SECOND_TOKEN_CONTEXT, "its context")


def test_causal_attention_without_learning_is_as_worked_out(references: References) -> None:
    layer = references["causal_attention"].CausalAttention(3, 3, 7, 0.0)
    identity(layer, *PROJECTIONS)
    layer.W_query.weight.data *= math.sqrt(3)  # undoes the scale
    order = torch.tensor([0, 2, 3, 4, 5, 1])  # the second token last: it attends to all
    x = torch.tensor(TOKENS)[order]
    assert_rounds_to(layer(x[None])[0, -1], SECOND_TOKEN_CONTEXT, "the context")
    show_weights(layer, torch.eye(7))
    scores = scores_behind(layer(with_zeros(x)[None])[0, -1])
    assert_rounds_to(scores, torch.tensor(SECOND_TOKEN_SCORES)[order].tolist(), "the scores")


def test_seed_789_gives_the_worked_causal_weights(references: References) -> None:
    torch.manual_seed(789)
    layer = references["causal_attention"].CausalAttention(3, 2, 6, 0.0)
    show_weights(layer, torch.eye(6))
    weights = layer(torch.tensor([TOKENS]))[0]
    for token, row in CAUSAL_WEIGHTS.items():
        assert_rounds_to(weights[token - 1], row, f"the weights of token {token}")


def test_seed_123_gives_the_worked_outputs(references: References) -> None:
    torch.manual_seed(123)
    layer = references["causal_attention"].CausalAttention(3, 2, 6, 0.0)
    expected = [[-0.4519, 0.2216], [-0.5874, 0.0058]]
    assert_rounds_to(layer(torch.tensor([TOKENS]))[0, :2], expected, "the first two outputs")


def test_two_heads_give_the_worked_products(references: References) -> None:
    layer = references["multi_head_attention"].MultiHeadAttention(8, 8, 4, 0.0, 2, causal=False)
    identity(layer, *PROJECTIONS, "out_proj")
    nn.init.zeros_(layer.out_proj.bias)
    show_weights(layer, torch.eye(4).repeat(1, 2))
    second_head = Rng(0).randn(3, 4, dtype=torch.float32)
    x = with_zeros(torch.cat([torch.tensor(FIRST_HEAD), second_head], dim=1))  # (4, 8)
    weights = layer(x[None])[0, 1:]  # (3, 8), one head's four columns after the other's
    products = [scores_behind(head) * math.sqrt(4) for head in weights.split(4, dim=1)]
    assert_rounds_to(products[0], FIRST_HEAD_PRODUCTS, "the first head's products")
    assert_rounds_to(products[1], (second_head @ second_head.T).tolist(), "the second head's")


def count(layer: nn.Module) -> int:
    return sum(parameter.numel() for parameter in layer.parameters())


@pytest.mark.parametrize("seed", SEEDS)
def test_layers_have_as_many_parameters_as_stated(seed: int, references: References) -> None:
    d_in, num_heads, d_head, d_model, d_ff = sizes(Rng(seed), 5)
    d_out = num_heads * d_head
    attention = references["multi_head_attention"].MultiHeadAttention
    assert count(attention(d_in, d_out, 9, 0.0, num_heads)) == 3 * d_in * d_out + d_out**2 + d_out
    feed_forward = references["feed_forward"].FeedForward(d_model, d_ff)
    assert count(feed_forward) == 2 * d_model * d_ff + d_ff + d_model


SIGNATURES = {
    "dictionary_lookup.attention": "Q, K, V, temp=1.0",
    "dictionary_lookup.lookup": "entries, key, temp=0.01",
    "masked_softmax.masked_softmax": "X, valid_lens",
    "causal_attention.CausalAttention": "d_in, d_out, context_length, dropout, qkv_bias=False",
    "multi_head_attention.MultiHeadAttention": (
        "d_in, d_out, context_length, dropout, num_heads, qkv_bias=False, causal=True"
    ),
    "layer_norm.LayerNorm": "d_model, eps=1e-05",
    "feed_forward.FeedForward": "d_model, d_ff, dropout=0.0",
    "transformer_block.TransformerBlock": (
        "d_model, num_heads, d_ff, context_length, dropout=0.0, norm_first=True, causal=True"
    ),
}


@pytest.mark.parametrize("place", SIGNATURES)
def test_arguments_and_defaults_are_those_stated(place: str, references: References) -> None:
    module, _, target = place.partition(".")
    found = inspect.signature(getattr(references[module], target)).parameters.values()
    plain = [argument.replace(annotation=inspect.Parameter.empty) for argument in found]
    assert ", ".join(str(argument) for argument in plain) == SIGNATURES[place]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("style", ["reference", *STYLES])
def test_a_lookup_finds_what_the_dictionary_holds(
    style: str, seed: int, references: References
) -> None:
    name = "dictionary_lookup"
    module = references[name] if style == "reference" else loaded(styled(style), name)
    rng = Rng(seed)
    n_keys, d_value = sizes(rng, 2)
    keys = (rng.permutation(40)[:n_keys] - 20).tolist()
    entries = dict(zip(keys, rng.randn(n_keys, d_value).tolist()))
    for key, value in entries.items():
        assert_rounds_to(module.lookup(entries, key), value, f"the value under {key}")


# --- the stand-ins agree --------------------------------------------------------------------------


def standing_in(course: Course, name: str) -> ModuleType:
    text = course[name].stand_in
    assert text is not None, f"{name} has no stand-in"
    return loaded({name: text}, name)


def test_every_stand_in_is_compared(course: Course) -> None:
    assert {name for name in course.names if course[name].stand_in} == {*STAND_INS}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", STAND_INS)
def test_a_stand_in_gives_what_the_reference_gives(
    name: str, seed: int, course: Course, references: References
) -> None:
    case = CASES[name](Rng(seed), references[name])
    modules = standing_in(course, name), references[name]
    assert_same(*(case.function(module) for module in modules), case.leaves)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("rate", [0.0, 1.0])
@pytest.mark.parametrize("name", ["feed_forward", "multi_head_attention"])
def test_a_stand_in_drops_nothing_or_all_in_training_as_the_reference_does(
    name: str, rate: float, seed: int, course: Course, references: References
) -> None:
    case = CASES[name](Rng(seed), references[name])
    case = replace(case, options=case.options | {"dropout": rate})
    modules = standing_in(course, name), references[name]
    assert_same(*(case.function(module, training=True) for module in modules), case.leaves)


@pytest.mark.parametrize("name", STAND_INS)
def test_a_seed_gives_a_stand_in_the_parameters_of_the_reference(
    name: str, course: Course, references: References
) -> None:
    case = CASES[name](Rng(1), references[name])
    layers = []
    for module in (standing_in(course, name), references[name]):
        torch.manual_seed(5)
        layers.append(getattr(module, case.target)(**case.options))
    found, wanted = (dict(layer.named_parameters()) for layer in layers)
    assert list(found) == list(wanted)
    for key, parameter in wanted.items():
        assert_close(found[key], parameter, key, rtol=0, atol=0)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("training", [False, True], ids=["eval", "training"])
def test_the_block_gives_on_stand_ins_what_it_gives_on_the_references(
    training: bool, seed: int, course: Course, solutions: dict[str, str], references: References
) -> None:
    name = "transformer_block"
    _, sources = program(course, course[name], solutions)
    modules = Program(sources).load(name), references[name]
    case = block_case(Rng(seed), references[name])
    case = replace(case, options=case.options | {"dropout": 0.0 if training else 0.5})
    assert_same(*(case.function(module, training=training) for module in modules), case.leaves)


# --- other styles agree ---------------------------------------------------------------------------


def styled(style: str) -> dict[str, str]:
    return {name: (OUTSIDE / style / f"{name}.py").read_text("utf-8") for name in CASES}


def test_every_style_is_compared() -> None:
    assert {path.name for path in OUTSIDE.iterdir() if path.is_dir()} == {*STYLES}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("style", STYLES)
def test_another_style_gives_what_the_reference_gives(
    style: str, name: str, seed: int, references: References
) -> None:
    case = CASES[name](Rng(seed), references[name])
    modules = loaded(styled(style), name), references[name]
    assert_same(*(case.function(module) for module in modules), case.leaves)
