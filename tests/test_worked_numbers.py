"""The reference solutions give the numbers that the course works out by hand."""

from __future__ import annotations

import inspect
import math

import pytest
import torch
import torch.nn.functional as F
from reference_cases import (
    PROJECTIONS,
    SEEDS,
    References,
    assert_rounds_to,
    sizes,
)
from torch import Tensor, nn

from grader.testing import Rng

pytestmark = pytest.mark.usefixtures("one_thread")
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
SECOND_TOKEN_SHARES = [0.1455, 0.2278, 0.2249, 0.1285, 0.1077, 0.1656]
STACKED_HEADS = [
    [-0.4519, 0.2216, 0.4772, 0.1063],
    [-0.5874, 0.0058, 0.5891, 0.3257],
    [-0.6300, -0.0632, 0.6202, 0.3860],
    [-0.5299, -0.1081, 0.5077, 0.3493],
]
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


def test_self_attention_among_six_tokens_is_as_worked_out(references: References) -> None:
    module, X = references["self_attention"], torch.tensor(TOKENS)
    for scores in (module.scores_by_loops(X), module.scores_by_product(X)):
        assert_rounds_to(scores[1], SECOND_TOKEN_SCORES, "the scores of token 2")
    assert_rounds_to(scores[1].sum(), 6.5617, "their sum")
    assert_rounds_to(module.normalise(scores)[1], SECOND_TOKEN_SHARES, "divided by their sum")
    for softmax in (module.softmax_naive, module.softmax_stable):
        assert_rounds_to(softmax(scores)[1], SECOND_TOKEN_WEIGHTS, "their softmax")
        weights = softmax(torch.tensor([[2.0, -2.0]]))
        assert_rounds_to(weights[0], [0.9820, 0.0180], "the weights of 2 and -2")
    assert module.softmax_stable(torch.tensor([1e4, -1e4])).isfinite().all()
    assert module.softmax_naive(torch.tensor([1000.0, 999.0])).isnan().any()
    assert_rounds_to(module.context_vectors(X)[1], SECOND_TOKEN_CONTEXT, "the context")


def test_seeds_give_the_worked_trainable_attention(references: References) -> None:
    module, x = references["trainable_self_attention"], torch.tensor(TOKENS)
    torch.manual_seed(123)
    first = module.SelfAttentionV1(3, 2)
    assert_rounds_to(first(x)[1], [0.3061, 0.8210], "the output of V1 for token 2")
    scores = (x[1] @ first.W_query) @ (x @ first.W_key).T
    assert_rounds_to(scores, [1.2705, 1.8524, 1.8111, 1.0795, 0.5577, 1.5440], "its scores")
    weights = module.scaled_attention(x @ first.W_query, x @ first.W_key, torch.eye(6))[1]
    assert_rounds_to(weights, [0.1500, 0.2264, 0.2199, 0.1311, 0.0906, 0.1820], "its weights")
    torch.manual_seed(789)
    second = module.SelfAttentionV2(3, 2)
    module.copy_weights(second, first)
    for layer in (second, first):
        assert_rounds_to(layer(x)[1], [-0.0748, 0.0703], "the output of V2 for token 2")
    show_weights(second, torch.eye(6))
    weights = [0.2041, 0.1659, 0.1662, 0.1496, 0.1665, 0.1477]
    assert_rounds_to(second(x)[0, 1], weights, "the weights of V2 for token 2")


def test_seed_123_gives_the_worked_heads(references: References) -> None:
    torch.manual_seed(123)
    stacked = references["stacked_heads"].StackedHeads(3, 2, 6, 0.0, 2)
    x = torch.tensor([TOKENS])
    output = stacked(x.repeat(2, 1, 1))
    assert output.shape == (2, 6, 4)
    for sentence in output:
        assert_rounds_to(sentence[[0, 1, 2, 5]], STACKED_HEADS, "tokens 1, 2, 3 and 6")
    W_query, W_key, W_value = references["stacked_heads"].split_weights(stacked)
    assert W_query.shape == W_key.shape == W_value.shape == (4, 3)
    assert_rounds_to(W_query[0], [-0.2354, 0.0191, -0.2867], "the first row of W_query")
    assert_rounds_to(W_value[0], [-0.4900, -0.3503, -0.2120], "the first row of W_value")
    for number, head in enumerate(stacked.heads):
        alone = references["causal_attention"].CausalAttention(3, 2, 6, 0.0)
        alone.load_state_dict(head.state_dict())
        columns = slice(2 * number, 2 * number + 2)
        assert_rounds_to(output[0, :, columns], alone(x)[0].tolist(), "a head")


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


def test_named_attention_gives_the_numbers_of_its_example(references: References) -> None:
    module = references["named_attention"]
    query = torch.tensor([[1.0, 0.0, 1.0], [0.0, 2.0, 0.0]]), ("query", "key")
    key = torch.tensor([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
    value = torch.tensor([[1.0, 3.0, 0.0], [2.0, 4.0, 1.0]])
    for named_key in ((key, ("seq", "key")), (key.T, ("key", "seq"))):
        products, names = module.contract(query, named_key, "key")
        assert names == ("query", "seq")
        assert_rounds_to(products, [[2.0, 1.0], [0.0, 2.0]], "the products")
        for values, wanted in (
            (torch.eye(2), [[0.6405, 0.3595], [0.2396, 0.7604]]),
            (value, [[1.3595, 3.3595, 0.3595], [1.7604, 3.7604, 0.7604]]),
        ):
            output, names = module.attend(query, named_key, (values, ("seq", "val")))
            assert names == ("query", "val")
            assert_rounds_to(output, wanted, "the output")


TEMPERED = {  # temperature: weights of the scores 1, 2, 3, and their entropy
    0.1: ([0.0000, 0.0000, 1.0000], 0.0005),
    0.5: ([0.0159, 0.1173, 0.8668], 0.4411),
    1: ([0.0900, 0.2447, 0.6652], 0.8324),
    2: ([0.1863, 0.3072, 0.5065], 1.0202),
    10: ([0.3006, 0.3322, 0.3672], 1.0953),
}


def test_the_entropy_falls_with_the_temperature_as_worked_out(references: References) -> None:
    module, scores = references["softmax_temperature"], torch.tensor([1.0, 2.0, 3.0])
    for temperature, (weights, nats) in TEMPERED.items():
        found = module.tempered_softmax(scores, temperature)
        assert_rounds_to(found, weights, f"the weights at {temperature}")
        assert_rounds_to(module.entropy(found), nats, f"the entropy at {temperature}")
    assert_rounds_to(module.entropy(torch.full((3,), 1 / 3)), 1.0986, "the largest entropy")


def test_scores_times_100_saturate(references: References) -> None:
    module = references["softmax_temperature"]
    scores = torch.tensor([100.0, 200.0, 300.0], requires_grad=True)
    weights = module.tempered_softmax(scores, 1.0)
    assert_rounds_to(weights, [0, 0, 1], "the weights")
    assert_rounds_to(module.entropy(weights), 0.0, "the entropy")
    slopes = torch.stack([torch.autograd.grad(w, scores, retain_graph=True)[0] for w in weights])
    assert_rounds_to(slopes, [[0, 0, 0]] * 3, "the gradients of the weights")


def test_three_products_have_the_worked_variance(references: References) -> None:
    queries = torch.tensor([[1.0, 2.0], [3.0, -1.0], [0.0, 2.0]])
    keys = torch.tensor([[2.0, 1.0], [1.0, 1.0], [4.0, 0.0]])
    variance = references["softmax_temperature"].variance_of_products(queries, keys)
    assert_rounds_to(variance, 2.6667, "the variance")


def test_two_keys_and_padding_give_the_worked_weights(references: References) -> None:
    layer = references["scaled_dot_product_attention"].DotProductAttention(0.0)
    queries = torch.tensor([[[2.0, 0, 0, 0]]])
    keys = torch.tensor([[[1.0, 0, 0, 0], [0, 1.0, 0, 0], [9.0, 0, 0, 0]]])
    values = torch.tensor([[[10.0, 0], [0, 10.0], [math.nan, math.nan]]])
    output = layer(queries, keys, values, torch.tensor([2]))
    assert_rounds_to(layer.attention_weights[0, 0], [0.7311, 0.2689, 0], "the weights")
    assert_rounds_to(output[0, 0], [7.3106, 2.6894], "the output")
    scores = scores_behind(layer.attention_weights[0, 0, :2].flip(0))
    assert_rounds_to(scores, [1.0], "the first score, where the second is 0")


def test_dropped_weights_are_as_worked_out(references: References) -> None:
    drop, weights = references["attention_dropout"].drop, torch.tensor([0.1, 0.2, 0.3, 0.4])
    for rate, kept in ((0.5, [0.2, 0.4, 0.6, 0.8]), (0.2, [0.125, 0.25, 0.375, 0.5])):
        torch.manual_seed(0)
        rows = drop(weights.repeat(200, 1), rate, True)
        assert_rounds_to(rows.amax(0), kept, f"what is left at rate {rate}")
        assert_rounds_to(rows.amin(0), [0, 0, 0, 0], f"what is dropped at rate {rate}")
    assert_rounds_to(drop(weights, 0.5, False), weights.tolist(), "the weights in evaluation")


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


def test_additive_attention_takes_queries_and_keys_of_different_sizes(
    references: References,
) -> None:
    """Keys that are all the same get the same weight, so an output is the mean of its values."""
    attention = references["additive_attention"].AdditiveAttention(20, 2, 8, 0.1).eval()
    values = torch.arange(40.0).view(1, 10, 4).expand(2, 10, 4)
    lens = torch.tensor([2, 6])
    output = attention(torch.randn(2, 1, 20), torch.ones(2, 10, 2), values, lens)
    assert_rounds_to(output, [[[2, 3, 4, 5]], [[10, 11, 12, 13]]], "the output")
    weights = [[[0.5] * 2 + [0] * 8], [[1 / 6] * 6 + [0] * 4]]
    assert_rounds_to(attention.attention_weights, weights, "the weights")


SIGNATURES = {
    "dictionary_lookup.attention": "Q, K, V, temp=1.0",
    "dictionary_lookup.lookup": "entries, key, temp=0.01",
    "masked_softmax.masked_softmax": "X, valid_lens",
    "self_attention.scores_by_loops": "inputs",
    "self_attention.scores_by_product": "inputs",
    "self_attention.normalise": "scores",
    "self_attention.softmax_naive": "scores",
    "self_attention.softmax_stable": "scores",
    "self_attention.context_vectors": "inputs",
    "trainable_self_attention.SelfAttentionV1": "d_in, d_out",
    "trainable_self_attention.SelfAttentionV2": "d_in, d_out, qkv_bias=False",
    "trainable_self_attention.copy_weights": "source_v2, target_v1",
    "stacked_heads.StackedHeads": (
        "d_in, d_out, context_length, dropout, num_heads, qkv_bias=False"
    ),
    "stacked_heads.split_weights": "stacked",
    "causal_attention.CausalAttention": "d_in, d_out, context_length, dropout, qkv_bias=False",
    "multi_head_attention.MultiHeadAttention": (
        "d_in, d_out, context_length, dropout, num_heads, qkv_bias=False, causal=True"
    ),
    "layer_norm.LayerNorm": "d_model, eps=1e-05",
    "named_attention.contract": "left, right, *over",
    "named_attention.attend": "query, key, value",
    "named_attention.multi_head": "x, W_q, W_k, W_v, W_o",
    "feed_forward.FeedForward": "d_model, d_ff, dropout=0.0",
    "softmax_temperature.tempered_softmax": "scores, temperature",
    "softmax_temperature.entropy": "weights",
    "softmax_temperature.variance_of_products": "queries, keys",
    "softmax_temperature.scale": "scores, d_key",
    "scaled_dot_product_attention.batched_product": "a, b",
    "scaled_dot_product_attention.DotProductAttention": "dropout",
    "attention_dropout.drop": "weights, rate, training",
    "additive_attention.AdditiveAttention": "d_query, d_key, num_hiddens, dropout",
    "distance_attention.DistanceAttention": "dropout",
    "distance_attention.distance_scores": "queries, keys",
    "distance_attention.scores_without_query_norm": "queries, keys",
    "bilinear_attention.BilinearAttention": "d_query, d_key, dropout",
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
