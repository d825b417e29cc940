"""The reference solutions give the values and gradients of torch."""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType

import pytest
import torch
import torch.nn.functional as F
from comparing import assert_close
from reference_cases import (
    CASES,
    PROJECTIONS,
    SEEDS,
    Case,
    Leaves,
    References,
    block_case,
    dot_product_case,
    entropy_case,
    feed_forward_case,
    loaded,
    masked_case,
    multi_head_case,
    named_case,
    norm_case,
    parameters,
    products_case,
    sizes,
    stacked_case,
    tracked,
)
from torch import Tensor, nn
from torch_oracles import (
    ORACLES,
    prove,
    torch_encoder_layer,
    torch_encoding,
    torch_entropy,
    torch_layer_norm,
    torch_masked_attention,
    torch_multi_head_attention,
    torch_named_attention,
    torch_softmax_of_each_row,
    torch_variance_of_products,
)

from grader.course.course import Course
from grader.testing import Rng

DROPPING = (
    *("causal_attention", "stacked_heads", "multi_head_attention", "feed_forward"),
    *("transformer_block", "kv_cache", "grouped_query_attention", "tiny_gpt", "swiglu"),
    *("modern_block", "tiny_llama"),
)
WITHOUT_TENSORS = ("byte_pair_encoding",)  # see test_token_references.py


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", ORACLES)
def test_a_reference_gives_the_values_and_gradients_of_torch(
    name: str, seed: int, references: References
) -> None:
    prove(CASES[name](Rng(seed), references[name]), references[name], ORACLES[name])


def test_every_reference_is_compared(course: Course) -> None:
    assert {*ORACLES} == {*CASES} == {*course.names} - {*WITHOUT_TENSORS}


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
def test_split_weights_make_a_multi_head_attention_without_a_projection(
    seed: int, references: References
) -> None:
    case = stacked_case(Rng(seed), references["stacked_heads"], qkv_bias=False)
    stacked = references["stacked_heads"].StackedHeads(**case.options).double().eval()
    stacked.load_state_dict(parameters(case.leaves), strict=False)
    options = case.options | {"d_out": case.options["d_out"] * case.options["num_heads"]}
    joint = references["multi_head_attention"].MultiHeadAttention(**options).double().eval()
    matrices = references["stacked_heads"].split_weights(stacked)
    for name, matrix in zip(PROJECTIONS, matrices, strict=True):
        joint.get_submodule(name).weight = nn.Parameter(matrix)
    nn.init.eye_(joint.out_proj.weight)
    nn.init.zeros_(joint.out_proj.bias)
    assert_close(joint(case.leaves["x"]), stacked(case.leaves["x"]), "the output")


@pytest.mark.parametrize("seed", SEEDS)
def test_copied_weights_give_the_same_output(seed: int, references: References) -> None:
    module, rng = references["trainable_self_attention"], Rng(seed)
    d_in, d_out, n_tokens = sizes(rng, 3)
    source, target = module.SelfAttentionV2(d_in, d_out), module.SelfAttentionV1(d_in, d_out)
    module.copy_weights(source, target)
    x = rng.randn(n_tokens, d_in, dtype=torch.float32)
    assert_close(target(x), source(x), "the output of V1", rtol=1e-5, atol=1e-6)
    assert all(parameter.requires_grad for parameter in target.parameters())
    with pytest.raises(ValueError, match="biases"):
        module.copy_weights(module.SelfAttentionV2(d_in, d_out, qkv_bias=True), target)


@pytest.mark.parametrize(("scale", "offset"), [(1e4, 0.0), (1.0, -1e4), (1.0, 1e4)])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_stable_softmax_holds_for_scores_of_any_size(
    seed: int, scale: float, offset: float, references: References
) -> None:
    scores = Rng(seed).randn(*sizes(Rng(seed), 3)) * scale + offset
    weights = references["self_attention"].softmax_stable(scores)
    assert_close(weights, F.softmax(scores, dim=-1), "the weights")


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
def test_weights_by_hand_count(seed: int, references: References) -> None:
    module, rng = references["histogram_transformer"], Rng(seed)
    vocab, more, length = (int(rng.randint(1, most, 1)) for most in (30, 5, 21))
    model = module.CountingTransformer(vocab, length, vocab + more)
    module.set_weights(model)
    for n_tokens in range(1, length + 1):
        tokens = rng.randint(0, vocab, 20, n_tokens)
        counts = [[row.count(token) for token in row] for row in tokens.tolist()]
        assert model(tokens).argmax(dim=-1).tolist() == counts


@pytest.mark.parametrize("seed", SEEDS)
def test_an_online_softmax_is_torchs_softmax(seed: int, references: References) -> None:
    rng = Rng(seed)
    *rows, width = sizes(rng, 3)
    widths = [*sizes(rng, 4), width]
    chunks = [(rng.randn(*rows, n) * 9).requires_grad_() for n in widths]
    for chunk in chunks[:2]:
        chunk.data[0, 0] = -torch.inf
    state = None
    for some in (chunks[:2], chunks[2:3], chunks[3:]):
        state = references["online_softmax"].online_softmax(some, state)
    scores, (maximum, total) = torch.cat(chunks, dim=-1), state
    assert_close(maximum, scores.amax(dim=-1), "the maximum")
    weights = (scores - maximum.unsqueeze(-1)).exp() / total.unsqueeze(-1)
    assert_close(weights, F.softmax(scores, dim=-1), "the weights")
    logs = maximum + total.log(), scores.logsumexp(dim=-1)
    found, wanted = (torch.autograd.grad(log.sum(), chunks, retain_graph=True) for log in logs)
    for actual, expected in zip(found, wanted):
        assert_close(actual, expected, "the gradient of the log of the sum")


@pytest.mark.parametrize("seed", SEEDS)
def test_named_attention_is_torchs_attention(seed: int, references: References) -> None:
    module = references["named_attention"]
    prove(named_case(Rng(seed), module, target="attend"), module, torch_named_attention)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_contraction_is_torchs_tensordot(seed: int, references: References) -> None:
    rng = Rng(seed)
    a, b, c, d, e = sizes(rng, 5)
    left, right = rng.randn(a, b, c, d), rng.randn(d, e, b)
    contract = references["named_attention"].contract
    found, names = contract((left, ("a", "b", "c", "d")), (right, ("d", "e", "b")), "d", "b")
    assert names == ("a", "c", "e")
    assert_close(found, torch.tensordot(left, right, ([3, 1], [0, 2])), "the contraction")


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


@pytest.mark.parametrize("seed", SEEDS)
def test_entropy_and_variance_are_torchs(seed: int, references: References) -> None:
    module = references["softmax_temperature"]
    prove(entropy_case(Rng(seed)), module, torch_entropy)
    prove(products_case(Rng(seed)), module, torch_variance_of_products)
    check_gradients(entropy_case(Rng(seed)), module)
    check_gradients(products_case(Rng(seed)), module)


def test_the_entropy_of_saturated_weights_has_a_gradient(references: References) -> None:
    module = references["softmax_temperature"]
    scores = (Rng(0).permutation(12).double().view(3, 4) * 1000).requires_grad_()
    entropy = module.entropy(module.tempered_softmax(scores, 0.5))
    entropy.sum().backward()
    assert_close(entropy, torch.zeros_like(entropy), "the entropy of one-hot weights")
    assert_close(scores.grad, torch.zeros_like(scores), "its gradient")


@pytest.mark.parametrize("seed", SEEDS)
def test_products_are_scaled_to_variance_1(seed: int, references: References) -> None:
    module = references["softmax_temperature"]
    for d_key in (4, 64, 256):
        queries, keys = (Rng(seed + n).randn(8000, d_key) for n in (0, 100))
        variance = module.variance_of_products(queries, keys)
        assert abs(variance / d_key - 1) < 0.15, f"{variance} for d_key {d_key}"
        scores = module.scale((queries * keys).sum(dim=-1), d_key)
        assert abs(scores.var() - 1) < 0.15, f"{scores.var()} for d_key {d_key}, scaled"


@pytest.mark.parametrize("seed", SEEDS)
def test_attention_weights_are_those_before_dropout(seed: int, references: References) -> None:
    case = dot_product_case(Rng(seed), references["scaled_dot_product_attention"])
    layer = references["scaled_dot_product_attention"].DotProductAttention(0.9).double()
    queries, keys, values = (case.leaves[name] for name in ("queries", "keys", "values"))
    layer(queries, keys, values, case.called_with["valid_lens"])
    one_hot = torch.eye(keys.shape[1], dtype=keys.dtype).expand(len(keys), -1, -1)
    leaves = {"queries": queries, "keys": keys, "values": one_hot}
    weights = ORACLES["scaled_dot_product_attention"](case, leaves)
    assert_close(layer.attention_weights, weights, "the weights")


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("rate", [0.2, 0.5, 0.9])
def test_dropout_has_the_moments_of_torchs(rate: float, seed: int, references: References) -> None:
    weights = Rng(seed).randn(2, 3).softmax(dim=-1).repeat(4000, 1, 1)
    torch.manual_seed(seed)
    found = references["attention_dropout"].drop(weights, rate, True)
    wanted = F.dropout(weights, rate)
    both = (found != 0) & (wanted != 0)
    assert_close(found[both], wanted[both], "what is left")
    error = weights[0] * (rate / (1 - rate) / 4000) ** 0.5  # of a mean of 4,000 draws
    assert ((found.mean(0) - weights[0]).abs() < 5 * error).all()
    assert ((found == 0).double().mean(0) - rate).abs().max() < 0.05


@pytest.mark.parametrize("seed", SEEDS)
def test_a_step_turns_each_pair_of_waves_by_one_angle(seed: int, references: References) -> None:
    length, d_model, step = (2 * size for size in sizes(Rng(seed), 3))
    table = references["positional_encoding"].sinusoidal(length + step, d_model, 50.0)
    sines, cosines = table[:, 0::2], table[:, 1::2]
    turn = table[step]  # the sine and the cosine of each pair's angle
    moved = sines[:length] * turn[1::2] + cosines[:length] * turn[0::2]
    assert_close(moved, sines[step:], "the sines after the step", rtol=0, atol=1e-5)


@pytest.mark.parametrize("seed", SEEDS)
def test_only_order_makes_a_gap(seed: int, references: References) -> None:
    module, blocks = references["positional_encoding"], references["transformer_block"]
    case = block_case(Rng(seed), blocks, causal=False)
    case.options.update(dropout=0.0, context_length=9)
    x = Rng(seed).randn(2, 7, case.options["d_model"])
    plain = blocks.TransformerBlock(**case.options).double()
    causal = blocks.TransformerBlock(**case.options | {"causal": True}).double()
    encode = module.PositionalEncoding(x.shape[-1], 9).double()
    order = Rng(seed).permutation(7)
    assert module.permutation_gap(plain, x, order) < 1e-12
    for ordered in (causal, lambda x: plain(encode(x))):
        assert module.permutation_gap(ordered, x, order) > 1e-3


@pytest.mark.parametrize("seed", SEEDS)
def test_long_tables_are_powers_of_complex_numbers(seed: int, references: References) -> None:
    length, d_model, base = *sizes(Rng(seed), 2), 2 + 9 * float(Rng(seed).rand(1))
    found = references["positional_encoding"].sinusoidal(30 * length, d_model, base)
    wanted = torch_encoding(30 * length, d_model, base).float()
    assert_close(found, wanted, "the table", rtol=0, atol=1e-4)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("interleaved", [True, False], ids=["neighbours", "halves"])
def test_products_of_rotated_vectors_depend_on_the_distance_alone(
    interleaved: bool, seed: int, references: References
) -> None:
    rng, rotate = Rng(seed), references["rotary_embedding"].rotate
    query, key = rng.randn(1, 3, 8), rng.randn(1, 3, 8)
    products = []
    for position in (0, 5, 300, -17):
        at = (torch.tensor([position + offset]) for offset in (4, 0))
        turned = [rotate(x, p, interleaved=interleaved) for x, p in zip((query, key), at)]
        products.append((turned[0] * turned[1]).sum(-1))
        for x, y in zip((query, key), turned):
            assert_close(y.norm(dim=-1), x.norm(dim=-1), "the length of a vector")
    for other in products[1:]:
        assert_close(other, products[0], "the product at other positions")


def nothing_left(case: Case, leaves: Leaves) -> Tensor:
    """What a layer gives if all that it may drop is dropped."""
    if case.target == "TinyLlama":  # the embedding is not dropped
        table, tokens = leaves["token_embedding.weight"], case.called_with["tokens"]
        normed = F.rms_norm(table[tokens], table.shape[1:], leaves["norm.gamma"], 1e-5)
        return F.linear(normed, table)
    if "token_embedding.weight" in leaves:  # the final norm turns zeros into beta
        logits = leaves["norm.beta"] @ leaves["token_embedding.weight"].T  # (vocab,)
        return logits.expand(*case.called_with["tokens"].shape, -1)
    x = leaves["x"]
    if case.target in ("SwiGLU", "RotaryAttention"):
        return x.new_zeros(*x.shape[:-1], case.options.get("d_out", x.shape[-1]))
    if case.target == "ModernBlock":
        return x
    if case.target in ("CausalAttention", "StackedHeads"):
        return x.new_zeros(*x.shape[:-1], case.options["d_out"] * case.options.get("num_heads", 1))
    if case.target != "TransformerBlock":
        bias = leaves["linear2.bias" if case.target == "FeedForward" else "out_proj.bias"]
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
    seeds = (seed * n for n in range(1, 10))  # some draw a function, which drops nothing
    cases = (CASES[name](Rng(each), references[name]) for each in seeds)
    case = next(case for case in cases if "dropout" in case.options)
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


BROKEN = {  # fault: exercise, what the solution says, what is put there, what is told
    "root of the temperature": ("dictionary_lookup", "/ temp", "/ temp**0.5", "the output"),
    "one key too many": ("masked_softmax", "(n_keys) < lens", "(n_keys) <= lens", "the output"),
    "nan at length 0": ("masked_softmax", ".masked_fill(~valid, 0.0)", "", "the output"),
    "weights transposed": ("self_attention", "return weights", "return weights.mT", "the output"),
    "sum of a column": ("self_attention", "sum(dim=-1,", "sum(dim=-2,", "the output"),
    "scale of n_tokens": ("trainable_self_attention", "shape[-1]", "shape[-2]", "the output"),
    "heads in reverse": ("stacked_heads", "in self.heads]", "in self.heads[::-1]]", "the output"),
    "scale of the input": ("causal_attention", "d_out**-0.5", "d_in**-0.5", "the output"),
    "one token ahead": ("causal_attention", ".tril()", ".tril(1)", "the output"),
    "scale of all heads": ("multi_head_attention", "self.d_head**", "d_out**", "the output"),
    "heads mixed": ("multi_head_attention", "flatten(2)", "roll(1, 2).flatten(2)", "the output"),
    "head not tied": (
        "tiny_gpt",
        "token_embedding.weight.T",
        "token_embedding.weight.flip(0).T",
        "the output",
    ),
    "mask not shifted": ("kv_cache", "diagonal=n_cached", "diagonal=0", "the output"),
    "scale of all groups": (
        *("grouped_query_attention", "products * d_head**", "products * (2 * d_head) **"),
        "the output",
    ),
    "unbiased variance": ("layer_norm", "correction=0", "correction=1", "the output"),
    "gradient cut": ("layer_norm", "x.var(", "x.detach().var(", "the gradient of x"),
    "squares added up": ("rms_norm", ".mean(dim", ".sum(dim", "the output"),
    "positions restart": (
        *("modern_block", "torch.arange(n_cached, n_keys", "torch.arange(n_tokens"),
        "the output",
    ),
    "one cache for all": (
        *("tiny_llama", "x, kept = block(x, cache)", "x, kept = block(x, before[0])"),
        "the output",
    ),
    "gate added": ("swiglu", "gate * self.W_up", "gate + self.W_up", "the output"),
    "another activation": ("feed_forward", "torch.relu", "torch.tanh", "the output"),
    "causal flag lost": ("transformer_block", ", causal=causal", "", "the output"),
    "scale of the last axis": (
        "named_attention",
        'query[1].index("key")',
        "-1",
        "the output",
    ),
    "temperature inverted": ("softmax_temperature", "scores /", "scores *", "the output"),
    "scale of the values": (
        "scaled_dot_product_attention",
        "queries.shape[-1]",
        "values.shape[-1]",
        "the output",
    ),
    "dropped in evaluation": ("attention_dropout", "if not training", "if training", "the output"),
    "cosines first": ("positional_encoding", "angles.sin()", "angles.cos()", "the output"),
    "turned back": ("rotary_embedding", "+ b * cos", "- b * cos", "the output"),
    "mean over all": ("cross_entropy", "max(len(losses), 1)", "targets.numel()", "the output"),
    "whole wave": ("adamw", "cos(math.pi", "cos(2 * math.pi", "the output"),
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
