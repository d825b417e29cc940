"""The reference solutions give the numbers that the course works out by hand."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from comparing import assert_rounds_to
from reference_cases import PROJECTIONS, SEEDS, References, sizes
from torch import Tensor, nn

from grader.testing import Rng

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


def test_a_model_of_three_tokens_reads_and_writes(references: References) -> None:
    module = references["tiny_gpt"]
    model = module.TinyGPT(3, 2, 1, 1, 2, 0.0).eval()
    state = {name: p.detach() * ("norm" in name) for name, p in model.named_parameters()}
    state["token_embedding.weight"] = torch.tensor([[1.0, 2], [3, 1], [0, 2]])
    state["position_embedding.weight"] = torch.tensor([[0.0, 1], [2, 0]])
    state["blocks.0.attention.W_value.weight"] = torch.eye(2)
    state["blocks.0.attention.out_proj.weight"] = 3 * torch.eye(2)
    model.load_state_dict(state, strict=False)
    tokens = torch.tensor([[0, 1]])
    x = state["token_embedding.weight"][tokens] + state["position_embedding.weight"]
    assert_rounds_to(x, [[[1, 3], [5, 1]]], "x")
    block = model.blocks[0]
    attended = block.attention(block.norm1(x))
    assert_rounds_to(attended, [[[-3, 3], [0, 0]]], "the attention")
    assert_rounds_to(x + attended, [[[-2, 6], [5, 1]]], "x after it")
    normed = model.norm(x + attended)
    assert_rounds_to(normed, [[[-1, 1], [1, -1]]], "the norm")
    assert_rounds_to(model(tokens), [[[1, -2, 2], [-1, 2, -2]]], "the logits")
    for window, loss in (([0, 1], 4.3266), ([0, 1, 1], 2.1962)):
        found = module.next_token_loss(model, torch.tensor([window]))
        assert_rounds_to(found, loss, f"the loss of {window}")
    for prompt, text in (([0], [0, 2, 2, 2]), ([0, 1], [0, 1, 1, 1, 1])):
        assert module.generate(model, torch.tensor([prompt]), 3, 0.0).tolist() == [text]


def test_a_third_token_meets_a_cache_of_two(references: References) -> None:
    layer = references["kv_cache"].CachedAttention(4, 4, 3, 0.0, 2)
    identity(layer, *PROJECTIONS, "out_proj")
    nn.init.zeros_(layer.out_proj.bias)
    x = torch.tensor([[[1.0, 0, 2, 0], [0, 2, 1, 1], [1, 1, 0, 2]]])
    output, cache = layer(x[:, :2])
    assert_rounds_to(output, [[[1, 0, 2, 0], [0.0558, 1.8884, 1.5, 0.5]]], "the first output")
    for kept in cache:
        assert_rounds_to(kept, [[[[1, 0], [0, 2]], [[2, 0], [1, 1]]]], "the cache")
    queries = x[0, 2].view(2, 1, 2)  # (heads, 1, d_head)
    output, (keys, _) = layer(x[:, 2:], cache)
    assert_rounds_to(output, [[[0.5989, 1.2033, 0.2775, 1.7225]]], "the second output")
    products = queries @ keys[0].mT  # (heads, 1, n_keys)
    assert_rounds_to(products, [[[1, 2, 2]], [[0, 2, 4]]], "the products")
    weights = torch.softmax(products / math.sqrt(2), dim=-1)  # (heads, 1, n_keys)
    expected = [[[0.1978, 0.4011, 0.4011]], [[0.0454, 0.1867, 0.7679]]]
    assert_rounds_to(weights, expected, "the weights")


def test_two_heads_of_keys_serve_four_heads(references: References) -> None:
    module = references["grouped_query_attention"]
    queries = torch.tensor([[2.0, 0, 0, 0], [0, 2, 0, 0], [0, 0, 2, 0], [2, 2, 0, 0]])
    keys = torch.tensor([[1.0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [1, 1, 0, 0]])
    values = torch.tensor([[1.0, 0], [0, 1], [10, 0], [0, 10]])
    scores = module.grouped_scores(queries.view(1, 4, 1, 4), keys.view(1, 2, 2, 4))
    assert_rounds_to(scores[0, :, 0], [[1, 0], [0, 1], [1, 0], [0, 2]], "the scores")
    weights = torch.softmax(scores, dim=-1)  # (1, num_heads, 1, n_keys)
    expected = [[0.7311, 0.2689], [0.2689, 0.7311], [0.7311, 0.2689], [0.1192, 0.8808]]
    assert_rounds_to(weights[0, :, 0], expected, "the weights")
    context = module.grouped_context(weights, values.view(1, 2, 2, 2))
    expected[2:] = [[7.3106, 2.6894], [1.1920, 8.8080]]
    assert_rounds_to(context[0, :, 0], expected, "the context")


@pytest.mark.parametrize("seed", SEEDS)
def test_as_many_heads_of_keys_as_heads_is_multi_head_attention(
    seed: int, references: References
) -> None:
    rng = Rng(seed)
    d_in, num_heads, d_head, n_tokens = sizes(rng, 4)
    sizes_of_both = (d_in, num_heads * d_head, n_tokens, 0.0, num_heads)
    grouped = references["grouped_query_attention"].GroupedQueryAttention(*sizes_of_both, num_heads)
    plain = references["multi_head_attention"].MultiHeadAttention(*sizes_of_both)
    plain.load_state_dict(grouped.state_dict(), strict=False)
    x = rng.randn(2, n_tokens, d_in).float()
    assert_rounds_to(grouped(x), plain(x).tolist(), "the output")


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


def test_waves_and_gaps_are_as_worked_out(references: References) -> None:
    module = references["positional_encoding"]
    table = [[0, 1, 0, 1], [0.8415, 0.5403, 0.0998, 0.9950]]
    table += [[0.9093, -0.4161, 0.1987, 0.9801], [0.1411, -0.9900, 0.2955, 0.9553]]
    assert_rounds_to(module.sinusoidal(4, 4, base=100.0), table, "the table")
    encode, x = module.PositionalEncoding(2, 3), torch.tensor([[[1.0, 0], [0, 1], [1, 1]]])

    def attend(x: Tensor) -> Tensor:
        return torch.softmax(x @ x.mT, dim=-1) @ x

    blocks = {attend: 0.0, lambda x: attend(encode(x)): 0.8821, encode: 1.4161}
    for block, gap in blocks.items():
        found = module.permutation_gap(block, x, torch.tensor([1, 2, 0]))
        assert_rounds_to(found, gap, "the gap")


def test_turned_tokens_are_as_worked_out(references: References) -> None:
    module, x = references["rotary_embedding"], torch.tensor([1.0, 0, 1, 0]).repeat(3, 1, 1)
    found = module.rotate(x, torch.arange(3), base=100.0)
    neighbours = [[1, 0, 1, 0], [0.5403, 0.8415, 0.9950, 0.0998], [-0.4161, 0.9093, 0.9801, 0.1987]]
    assert_rounds_to(found[:, 0], neighbours, "the tokens with interleaved pairs")
    found = module.rotate(x, torch.arange(3), base=100.0, interleaved=False)
    halves = [[1, 0, 1, 0], [-0.3012, 0, 1.3818, 0], [-1.3254, 0, 0.4932, 0]]
    assert_rounds_to(found[:, 0], halves, "the tokens with pairs of both halves")
    queries = torch.tensor([2.0, 0]).repeat(3, 1, 1)
    rotated = module.rotate(queries, torch.arange(3))[:, 0]
    scores = [[2.8284, 1.5282, -1.1770], [1.5282, 2.8284, 1.5282], [-1.1770, 1.5282, 2.8284]]
    assert_rounds_to(rotated @ rotated.T / math.sqrt(2), scores, "the scores")
    values = torch.tensor([[[1.0, 0]], [[0, 1]], [[5, 5]]])
    output = [[0.8453, 0.2817], [1.0582, 1.5291], [3.8880, 4.0850]]
    for first in (0, 7):
        found = module.rotary_attention(queries, queries, values, torch.arange(first, first + 3))
        assert_rounds_to(found[:, 0], output, f"the output at positions from {first}")


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


def test_an_online_softmax_keeps_the_worked_maxima_and_totals(references: References) -> None:
    online_softmax = references["online_softmax"].online_softmax
    chunks = [[[1.0, 3], [0, 1]], [[2, 5], [-1, -2]], [[4], [1]]]
    state, seen = None, []
    for chunk, maximum, total in zip(
        map(torch.tensor, chunks),
        ([3, 1], [5, 1], [5, 1]),
        ([1.1353, 1.3679], [1.2034, 1.5530], [1.5713, 2.5530]),
    ):
        seen.append(chunk.float())
        state = online_softmax([seen[-1]], state)
        for found in (state, online_softmax(seen)):
            assert_rounds_to(found[0], maximum, "the maximum")
            assert_rounds_to(found[1], total, "the total")


def test_weights_by_hand_count_the_worked_sequence(references: References) -> None:
    module = references["histogram_transformer"]
    model = module.CountingTransformer(vocab=3, length=6, d_model=4)
    module.set_weights(model)
    found = model(torch.tensor([[2, 0, 2, 1, 2, 0]])).argmax(dim=-1)
    assert found.tolist() == [[3, 2, 3, 1, 3, 2]]


def test_tiles_give_the_worked_output(references: References) -> None:
    tiled_attention = references["online_softmax"].tiled_attention
    Q = torch.tensor([[1.0, 0], [0, 2], [1, 1]])
    K = torch.tensor([[1.0, 1], [2, 0], [0, 3]])
    V = torch.tensor([[1.0, 0], [0, 1], [5, 5]])
    for tile in (1, 2, 3, 4):
        rows = [[0.9841, 1.2761], [4.7128, 4.6712], [2.7657, 2.7657]]
        assert_rounds_to(tiled_attention(Q, K, V, tile), rows, "the output")
        rows[:2] = [[1, 0], [0.8044, 0.1956]]
        assert_rounds_to(tiled_attention(Q, K, V, tile, causal=True), rows, "the causal output")


def test_another_sequence_gives_the_worked_outputs(references: References) -> None:
    x = torch.tensor([[[1.0, 0], [0, 1], [1, 1]]])
    context = torch.tensor([[[2.0, 0], [0, 1], [1, 1], [5, 5]]])
    rows = {True: [[0, 0], [0, 1], [0.6698, 1]]}
    rows[False] = [[1.4359, 0.4240], [0.7967, 0.8022], [1.2033, 0.5989]]
    for causal, wanted in rows.items():
        module = references["cross_attention"].CrossAttention(2, 2, 2, 0.0, 1, causal)
        for layer in module.children():
            if isinstance(layer, nn.Linear):
                nn.init.eye_(layer.weight)
        nn.init.zeros_(module.out_proj.bias)
        mask = torch.tensor([[False, True, True] if causal else [True, True, True, False]])
        output = module(x, None if causal else context, mask)
        assert_rounds_to(output, [wanted], "the output")


def test_a_window_gives_the_worked_outputs(references: References) -> None:
    module, V = references["sliding_window"], torch.arange(5.0).view(1, 1, 5, 1)
    for slopes, wanted in (
        (None, [0, 0.5, 1, 2, 3]),
        (torch.tensor([2.0]).log(), [0, 0.6667, 1.4286, 2.4286, 3.4286]),
    ):
        output = module.sliding_attention(0 * V, 0 * V, V, 3, slopes)
        assert_rounds_to(output.flatten(), wanted, "the output")
    six = [0.25, 0.0625, 0.0156, 0.0039, 0.5, 0.125]
    assert_rounds_to(module.alibi_slopes(6), six, "six slopes")
    assert_rounds_to(module.alibi_slopes(4), six[:4], "four slopes")


def test_the_worked_places_get_the_worked_weights(references: References) -> None:
    network = references["seq2seq_attention"].AlignmentNetwork(2, 3, 2)
    with torch.no_grad():
        network.W_state.weight.copy_(torch.eye(2))
        network.W_source.weight.copy_(torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]]))
        network.v.weight.copy_(torch.tensor([[2.0, 1.0]]))
        places = torch.tensor([[[1.0, 0.0, 0.0], [0.0, 2.0, 0.0], [-1.0, 0.0, 1.0]]])
        scores = network(torch.tensor([[0.5, -1.0]]), places)
    assert_rounds_to(scores, [[1.0487, 1.6858, -0.9242]], "the scores")
    assert_rounds_to(scores.softmax(dim=-1), [[0.3300, 0.6241, 0.0459]], "the weights")
    two = scores[:, :2].softmax(dim=-1)
    assert_rounds_to(two, [[0.3459, 0.6541]], "the weights of two places")


@pytest.mark.parametrize(
    ("forced", "last"),
    [(True, [-3.1333, -1.3552, 0.4228, 2.2009]), (False, [-4.6772, -1.5963, 1.4846, 4.5656])],
)
def test_a_decoder_gives_the_worked_logits(
    forced: bool, last: list[float], references: References
) -> None:
    decoder = references["seq2seq_attention"].AttentionDecoder(4, 2, 3, 5, 2)
    with torch.no_grad():
        for parameter in decoder.parameters():
            parameter.copy_(torch.linspace(-1, 1, parameter.numel()).view_as(parameter))
        state = torch.tensor([[1.0, 0.0, -1.0]])  # (batch, d_decoder)
        inputs = torch.tensor([[3, 1, 2]]), state, torch.eye(3, 5).unsqueeze(0)
        logits, alignment = decoder(*inputs, None, forced)
    first = [[-1.4182, -0.8182, -0.2182, 0.3817], [-4.2698, -1.4124, 1.4450, 4.3024]]
    assert_rounds_to(logits, [[*first, last]], "the logits")
    rows = [[0.2879, 0.3289, 0.3832], [0.2799, 0.3352, 0.3849], [0.3021, 0.3369, 0.3611]]
    assert_rounds_to(alignment, [rows], "the alignment")


def test_the_worked_loss_and_its_gradient(references: References) -> None:
    module = references["cross_entropy"]
    logits = torch.tensor([[2.0, 1.0, 0.0], [0.0, 0.0, 0.0], [1.0, 5.0, 1.0]])
    targets = torch.tensor([0, 2, -100])
    assert_rounds_to(module.cross_entropy(logits, targets), 0.7531, "the loss")
    smoothed = module.cross_entropy(logits, targets, label_smoothing=0.3)
    assert_rounds_to(smoothed, 0.9031, "the smoothed loss")
    gradient = module.cross_entropy_gradient(logits, targets, label_smoothing=0.3)
    rows = [[-0.0674, 0.0724, -0.0050], [0.1167, 0.1167, -0.2333], [0.0, 0.0, 0.0]]
    assert_rounds_to(gradient, rows, "the gradient")


def test_a_llama_reads_writes_and_counts_bits(references: References) -> None:
    module = references["tiny_llama"]
    model = module.TinyLlama(5, 4, 2, 1, 2, 8, 0.0).double().eval()
    assert sum(each.numel() for each in model.parameters()) == 520
    for i, (_, each) in enumerate(sorted(model.named_parameters())):
        each.data.copy_((torch.arange(each.numel()) + 100 * i).double().sin().view(each.shape))
    logits = model(torch.tensor([[0, 1, 2]]))[0][0, 2]
    assert_rounds_to(logits, [0.1863, 0.2541, -0.5185, 0.4237, -0.0354], "the logits")
    uniforms = torch.tensor([0.1, 0.3, 0.5, 0.7, 0.9])
    for temperature, text in ((0.0, [4, 2, 1, 0, 1, 0]), (1.0, [4, 0, 1, 2, 3, 4])):
        found = module.continue_text(model, torch.tensor([4]), uniforms, temperature)
        assert found.tolist() == text
    model = module.TinyLlama(257, 4, 2, 1, 2, 8, 0.0).eval()
    nn.init.zeros_(model.token_embedding.weight)
    bits = module.bits_per_byte(model, b"abab", [(97, 98)])
    assert_rounds_to(torch.tensor(bits), 2.0014, "the bits per byte")


def test_the_worked_steps_rates_and_norms(references: References) -> None:
    module, gradients = references["adamw"], torch.tensor([[0.5], [-0.5], [0.1]])
    groups, given = [{"params": [torch.ones(1)]}], [[gradient] for gradient in gradients]
    history, _ = module.run_steps(groups, given, lr=0.1, weight_decay=0.5)
    steps = torch.cat([params[0] for params in history])
    assert_rounds_to(steps, [0.85, 0.8128, 0.7672], "the steps")
    rates = [module.learning_rate(step, 1.0, 4, 12, 0.1) for step in (1, 4, 8, 10, 12)]
    assert_rounds_to(torch.tensor(rates), [0.25, 1.0, 0.55, 0.2318, 0.1], "the rates")
    clipped, norm = module.clipped([torch.tensor([3.0]), torch.tensor([4.0])], 1.0)
    assert_rounds_to(torch.cat(clipped), [0.6, 0.8], "the gradients")
    assert norm == 5
