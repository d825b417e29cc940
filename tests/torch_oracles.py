"""What torch itself gives for a call of an exercise."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType

import torch
import torch.nn.functional as F
from comparing import assert_same
from reference_cases import PROJECTIONS, Case, Leaves, ordered
from torch import Tensor, nn
from torch.func import functional_call


def torch_lookup(case: Case, leaves: Leaves) -> Tensor:
    scale = 1 / case.options["temp"]
    return F.scaled_dot_product_attention(leaves["Q"], leaves["K"], leaves["V"], scale=scale)


def torch_self_attention(case: Case, leaves: Leaves) -> Tensor:
    """What torch gives for each of the six functions."""
    (x,) = leaves.values()
    if case.target.startswith("scores"):
        return torch.einsum("...id,...jd->...ij", x, x)
    if case.target == "normalise":
        return F.normalize(x, p=1, dim=-1)
    if case.target.startswith("softmax"):
        return F.softmax(x, dim=-1)
    return F.scaled_dot_product_attention(x, x, x, scale=1.0)


def torch_trainable_self_attention(case: Case, leaves: Leaves) -> Tensor:
    if case.target == "SelfAttentionV2":
        return F.scaled_dot_product_attention(*projected(case, leaves))
    matrices = [leaves[name] for name in PROJECTIONS]  # (d_in, d_out) each
    return F.scaled_dot_product_attention(*(F.linear(leaves["x"], W.T) for W in matrices))


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


def torch_stacked_heads(case: Case, leaves: Leaves) -> Tensor:
    """Causal attention with the weights of each head, side by side."""
    outputs = []
    for head in range(case.options["num_heads"]):
        prefix = f"heads.{head}."
        own = {n.removeprefix(prefix): leaf for n, leaf in leaves.items() if n.startswith(prefix)}
        outputs.append(torch_causal_attention(case, {"x": leaves["x"], **own}))
    return torch.cat(outputs, dim=-1)


def torch_heads_side_by_side(case: Case, leaves: Leaves) -> Tensor:
    """One attention for each slice of the columns of all tokens, then out_proj."""
    d_head = case.options["d_out"] // case.options["num_heads"]
    heads = zip(*(tensor.split(d_head, dim=-1) for tensor in projected(case, leaves)))
    causal = case.options.get("causal", True)
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


def torch_rms_norm(case: Case, leaves: Leaves) -> Tensor:
    gamma, eps = leaves["gamma"], case.options.get("eps", 1e-5)
    return F.rms_norm(leaves["x"], gamma.shape, gamma, eps)


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


def torch_gated(case: Case, leaves: Leaves) -> Tensor:
    """The sigmoid from a hyperbolic tangent: its argument and its range are halved."""
    gate, up = (F.linear(leaves["x"], leaves[f"{name}.weight"]) for name in ("W_gate", "W_up"))
    return F.linear(gate * up * (1 + (gate / 2).tanh()) / 2, leaves["W_down.weight"])


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


def torch_merged_linear(case: Case, leaves: Leaves) -> Tensor:
    """A linear layer whose weight has the change in it."""
    change = torch.einsum("or,ri->oi", leaves["B"], leaves["A"])
    weight = leaves["linear.weight"] + case.options["alpha"] / case.options["r"] * change
    return F.linear(leaves["x"], weight, leaves["linear.bias"])


def torch_mixture(case: Case, leaves: Leaves) -> Tensor:
    """All experts for all tokens, weighed by a softmax in which those not chosen are -inf."""
    top_k = case.options["top_k"]
    given = "logits" in leaves
    logits = leaves["logits"] if given else F.linear(leaves["x"], leaves["router.weight"])
    smallest = logits.sort(dim=-1, descending=True).values[..., top_k - 1, None]
    gates = F.softmax(logits.masked_fill(logits < smallest, -torch.inf), dim=-1)
    if case.target == "route":
        return gates.sort(dim=-1, descending=True).values[..., :top_k].flatten()
    f = (gates > 0).double().flatten(0, -2).mean(dim=0) / top_k
    P = F.softmax(logits, dim=-1).flatten(0, -2).mean(dim=0)
    loss = logits.shape[-1] * (f @ P)
    if case.target == "load_balance_loss":
        return loss.view(1)
    outputs = []
    for expert in range(logits.shape[-1]):
        layers = (leaves[f"experts.{expert}.W_{name}.weight"] for name in ("gate", "up", "down"))
        gate, up, down = layers
        hidden = F.silu(F.linear(leaves["x"], gate)) * F.linear(leaves["x"], up)
        outputs.append(F.linear(hidden, down))
    output = torch.einsum("...e,...ed->...d", gates, torch.stack(outputs, dim=-2))
    return torch.cat([output.flatten(), loss.view(1)])


def torch_patch_embedding(case: Case, leaves: Leaves) -> Tensor:
    """F.unfold, or a convolution whose weight is that of the projection."""
    patch, stride = case.options["patch"], case.options["stride"] or case.options["patch"]
    if case.target == "patches":
        return F.unfold(leaves["images"], patch, stride=stride).mT
    kernel = leaves["projection.weight"].unflatten(1, (-1, patch, patch))
    found = F.conv2d(leaves["x"], kernel, leaves["projection.bias"], stride=stride)
    class_token = leaves["class_token"].expand(len(found), 1, -1)  # (batch, 1, d_model)
    return torch.cat([class_token, found.flatten(2).mT], dim=1) + leaves["positions"]


def torch_gpt(case: Case, leaves: Leaves) -> Tensor:
    """torch's encoder layers with a causal mask, between the embeddings."""
    tokens, table = case.called_with["tokens"], leaves["token_embedding.weight"]
    x = F.embedding(tokens, table) + leaves["position_embedding.weight"].narrow(
        0, 0, tokens.shape[1]
    )  # (batch, n_tokens, d_model)
    d_model = x.shape[-1]
    of_block = {"d_model": d_model, "num_heads": case.options["num_heads"], "d_ff": 4 * d_model}
    for layer in range(case.options["num_layers"]):
        prefix = f"blocks.{layer}."
        own = {n.removeprefix(prefix): leaf for n, leaf in leaves.items() if n.startswith(prefix)}
        options = of_block | {"norm_first": True, "causal": True}
        x = torch_encoder_layer(Case("TransformerBlock", options, own), {**own, "x": x})
    normed = F.layer_norm(x, (d_model,), leaves["norm.gamma"], leaves["norm.beta"])
    return F.linear(normed, table)  # (batch, n_tokens, vocab)


def torch_named_attention(case: Case, leaves: Leaves) -> Tensor:
    """torch's attention, with the axes in the order that torch asks for."""
    wanted = {"query": "batch query key", "key": "batch seq key", "value": "batch seq val"}
    Q, K, V = (ordered(leaves[n], case.options[n], each.split()) for n, each in wanted.items())
    return F.scaled_dot_product_attention(Q, K, V)


def torch_named_heads(case: Case, leaves: Leaves) -> Tensor:
    """torch's attention for one head after the other, and their sum."""
    wanted = {"W_q": "head key chans", "W_k": "head key chans", "W_v": "head val chans"}
    wanted |= {"W_o": "head chans val", "x": "batch seq chans"}
    *heads, x = (ordered(leaves[n], case.options[n], each.split()) for n, each in wanted.items())
    outputs = [
        F.linear(F.scaled_dot_product_attention(*(F.linear(x, W) for W in projections)), W_o)
        for *projections, W_o in zip(*heads)
    ]
    return torch.stack(outputs).sum(0)  # (batch, seq, chans)


def torch_tempered_softmax(case: Case, leaves: Leaves) -> Tensor:
    """The probabilities of a categorical distribution, over logits that torch normalises."""
    logits = leaves["scores"] / case.options["temperature"]
    return torch.distributions.Categorical(logits=logits).probs


def torch_distribution(case: Case, leaves: Leaves) -> Tensor:
    """Categorical distributions over fewer and fewer tokens, one row and one token at a time."""
    temperature, top_k, top_p = case.options.values()
    rows = []
    for logits in leaves["logits"].flatten(0, -2):
        order = logits.argsort(descending=True)[:top_k]
        law = torch.distributions.Categorical(logits=logits[order] / temperature).probs
        count = next((n for n in range(1, len(order)) if law[:n].sum() >= top_p), len(order))
        kept = torch.distributions.Categorical(logits=logits[order[:count]] / temperature).probs
        rows.append(torch.zeros_like(logits).scatter(0, order[:count], kept))
    return torch.stack(rows).view_as(leaves["logits"])


def torch_entropy(case: Case, leaves: Leaves) -> Tensor:
    return torch.special.entr(leaves["weights"]).sum(dim=-1)


def torch_variance_of_products(case: Case, leaves: Leaves) -> Tensor:
    """The covariance of each row of products with itself, one row at a time."""
    products = F.bilinear(
        leaves["queries"], leaves["keys"], torch.eye(leaves["keys"].shape[-1]).double()[None]
    ).squeeze(-1)
    rows = products.view(-1, products.shape[-1])
    return torch.stack([row.cov(correction=0) for row in rows]).view(products.shape[:-1])


def torch_dot_product_attention(case: Case, leaves: Leaves) -> Tensor:
    queries, keys, values = (leaves[name] for name in ("queries", "keys", "values"))
    mask, lens = None, case.called_with["valid_lens"]
    if lens is not None:
        mask = torch.arange(keys.shape[1]) < lens.view(len(keys), -1, 1)
        mask = mask.expand(-1, queries.shape[1], -1)  # (batch, n_queries, n_keys)
    return F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask)


def torch_dropout(case: Case, leaves: Leaves) -> Tensor:
    return F.dropout(leaves["weights"], case.options["rate"], case.options["training"])


def weighted(case: Case, leaves: Leaves, scores: Tensor) -> Tensor:
    """torch's attention with the scores as its mask, which is added to products of zero."""
    hidden_keys = torch.arange(scores.shape[-1]) >= lengths(case, scores)
    zeros = (
        scores.new_zeros(*scores.shape[:2], 1),
        scores.new_zeros(len(scores), scores.shape[2], 1),
    )
    mask = scores.masked_fill(hidden_keys, -torch.inf)  # (batch, n_queries, n_keys)
    return F.scaled_dot_product_attention(*zeros, leaves["values"], attn_mask=mask)


def lengths(case: Case, scores: Tensor) -> Tensor:
    """The lengths of a call, (batch, n_queries or 1, 1)."""
    found: Tensor = case.called_with["valid_lens"].view(len(scores), -1, 1)
    return found


def pairs(leaves: Leaves) -> tuple[Tensor, Tensor]:
    """Every query beside every key, (batch, n_queries, n_keys, their own sizes)."""
    queries, keys = leaves["queries"].unsqueeze(2), leaves["keys"].unsqueeze(1)
    n_queries, n_keys = queries.shape[1], keys.shape[2]
    return queries.expand(-1, -1, n_keys, -1), keys.expand(-1, n_queries, -1, -1)


def torch_joined_pairs(case: Case, leaves: Leaves) -> Tensor:
    """One hidden layer over each query joined with each key."""
    layer = torch.cat([leaves["W_q.weight"], leaves["W_k.weight"]], dim=1)
    hiddens = F.linear(torch.cat(pairs(leaves), dim=-1), layer).tanh()
    scores = F.linear(hiddens, leaves["w_v.weight"]).squeeze(-1)
    return weighted(case, leaves, scores)


def torch_distances(case: Case, leaves: Leaves) -> Tensor:
    queries, keys = pairs(leaves)
    return weighted(case, leaves, -F.mse_loss(queries, keys, reduction="none").sum(-1) / 2)


def torch_bilinear(case: Case, leaves: Leaves) -> Tensor:
    queries, keys = (x.contiguous() for x in pairs(leaves))
    products = F.bilinear(queries, keys, leaves["M"].unsqueeze(0)).squeeze(-1)
    return weighted(case, leaves, products * keys.shape[-1] ** -0.5)


def torch_encoding(context_length: int, d_model: int, base: float = 10000.0) -> Tensor:
    """Powers of complex numbers on the unit circle: the sine is the imaginary part."""
    turns = [torch.tensor(1j / base ** (2 * (j // 2) / d_model)).exp() for j in range(d_model)]
    waves = torch.linalg.vander(torch.stack(turns).to(torch.complex128), N=context_length).T
    return torch.stack([(w.real if j % 2 else w.imag) for j, w in enumerate(waves.T)], dim=1)


def torch_encoded(case: Case, leaves: Leaves) -> Tensor:
    x = leaves["x"]
    encoding = torch_encoding(case.options["context_length"], x.shape[-1])
    return x + encoding[: x.shape[1]].float().double()


def torch_turned(
    x: Tensor, positions: Tensor, base: float = 10000.0, interleaved: bool = True
) -> Tensor:
    """Each pair as a complex number, times the exponential of its angle."""
    n_pairs = x.shape[-1] // 2
    angles = torch.outer(positions.double(), base ** -(torch.arange(n_pairs).double() / n_pairs))
    a, b = (x[..., ::2], x[..., 1::2]) if interleaved else x.chunk(2, dim=-1)
    turned = torch.complex(a, b) * torch.exp(1j * angles)[:, None]
    if interleaved:
        return torch.view_as_real(turned).flatten(-2)
    return torch.cat([turned.real, turned.imag], dim=-1)


def torch_rotary(case: Case, leaves: Leaves) -> Tensor:
    if case.target == "rotate":
        return torch_turned(leaves["x"], **case.options)
    positions = case.options["positions"]
    turned = [torch_turned(leaves[name], positions) for name in ("queries", "keys")]
    heads = (x.transpose(-3, -2) for x in (*turned, leaves["values"]))
    return F.scaled_dot_product_attention(*heads).transpose(-3, -2)


def torch_grouped_heads(case: Case, leaves: Leaves) -> Tensor:
    """Each head on its own, with torch's attention or products, and a copy of its group's keys."""
    first, second = list(leaves.values())[:2]
    if case.target == "grouped_scores":
        keys = second.repeat_interleave(first.shape[1] // second.shape[1], dim=1)
        return torch.einsum("bhqd,bhkd->bhqk", first, keys) * first.shape[-1] ** -0.5
    if case.target == "grouped_context":
        values = second.repeat_interleave(first.shape[1] // second.shape[1], dim=1)
        return torch.einsum("bhqk,bhkd->bhqd", first, values)
    num_heads, num_kv_heads = (case.options[name] for name in ("num_heads", "num_kv_heads"))
    queries, keys, values = projected(case, leaves)
    d_head = queries.shape[-1] // num_heads
    heads = []
    for head, query in enumerate(queries.split(d_head, dim=-1)):
        group = slice(head * num_kv_heads // num_heads * d_head, None)
        shared = (each[..., group][..., :d_head] for each in (keys, values))
        heads.append(F.scaled_dot_product_attention(query, *shared, is_causal=True))
    output = torch.cat(heads, dim=-1)  # (batch, n_tokens, d_out)
    return F.linear(output, leaves["out_proj.weight"], leaves["out_proj.bias"])


def torch_modern(case: Case, leaves: Leaves) -> Tensor:
    """The whole sequence at once: torch's attention, which shares heads, and its norm."""
    if case.target == "RotaryAttention":
        return torch_shared_heads(case, leaves, leaves["x"])
    own = {name.removeprefix("attention."): leaf for name, leaf in leaves.items()}
    normed = [
        functools.partial(
            F.rms_norm,
            eps=1e-5,
            weight=leaves[f"norm{n}.gamma"],
            normalized_shape=leaves["x"].shape[-1:],
        )
        for n in (1, 2)
    ]
    x = leaves["x"] + torch_shared_heads(case, own, normed[0](leaves["x"]))
    own = {name.removeprefix("feed_forward."): leaf for name, leaf in leaves.items()}
    return x + torch_gated(case, own | {"x": normed[1](x)})


def torch_llama(case: Case, leaves: Leaves) -> Tensor:
    """All tokens at once, through blocks of torch's attention and norm."""
    table = leaves["token_embedding.weight"]
    x = F.embedding(case.called_with["tokens"], table)  # (batch, n_tokens, d_model)
    options = case.options | {"base": 10000.0}
    for layer in range(case.options["num_layers"]):
        prefix = f"blocks.{layer}."
        own = {n.removeprefix(prefix): leaf for n, leaf in leaves.items() if n.startswith(prefix)}
        x = torch_modern(Case("ModernBlock", options, own), own | {"x": x})
    normed = F.rms_norm(x, x.shape[-1:], leaves["norm.gamma"], 1e-5)
    return F.linear(normed, table)  # (batch, n_tokens, vocab)


def torch_shared_heads(case: Case, leaves: Leaves, x: Tensor) -> Tensor:
    """Attention of queries and keys that are turned as complex numbers."""
    d_head = leaves["W_query.weight"].shape[0] // case.options["num_heads"]
    heads = [F.linear(x, leaves[f"{n}.weight"]).unflatten(2, (-1, d_head)) for n in PROJECTIONS]
    positions = torch.arange(x.shape[1])
    heads[:2] = [torch_turned(each, positions, case.options["base"]) for each in heads[:2]]
    given = (each.transpose(1, 2) for each in heads)
    context = F.scaled_dot_product_attention(*given, is_causal=True, enable_gqa=True)
    return F.linear(context.transpose(1, 2).flatten(2), leaves["out_proj.weight"])


def torch_causal_or_not(case: Case, leaves: Leaves) -> Tensor:
    return F.scaled_dot_product_attention(*leaves.values(), is_causal=case.options["causal"])


def torch_decoder(case: Case, leaves: Leaves) -> Tensor:
    """nn.GRU over one token at a time, beside torch's attention with the scores as its mask."""
    sizes, (targets, lens, forcing) = case.options, case.called_with.values()
    gru = nn.GRU(sizes["d_embed"] + sizes["d_encoder"], sizes["d_decoder"]).double()
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    weights = {f"{name}_l0": leaves[f"cell.{name}"] for name in names}
    source = leaves["encoder_states"]
    n_source = source.shape[1]
    joined = torch.cat([leaves["alignment.W_state.weight"], leaves["alignment.W_source.weight"]], 1)
    values = torch.cat([source, torch.eye(n_source).double().expand(len(source), -1, -1)], dim=2)
    hidden_places = torch.arange(n_source) >= lens.unsqueeze(1)
    state, token, outputs = leaves["state"], torch.zeros_like(targets[:, 0]), []
    for place in range(targets.shape[1]):
        pairs = torch.cat([state.unsqueeze(1).expand(-1, n_source, -1), source], dim=2)
        scores = F.linear(F.linear(pairs, joined).tanh(), leaves["alignment.v.weight"]).squeeze(2)
        mask = scores.masked_fill(hidden_places, -torch.inf).unsqueeze(1)
        zeros = source.new_zeros(len(source), 1, 1), source.new_zeros(len(source), n_source, 1)
        read = F.scaled_dot_product_attention(*zeros, values, attn_mask=mask).squeeze(1)
        context, alignment = read.split([sizes["d_encoder"], n_source], dim=1)
        word = F.one_hot(token, sizes["vocab"]).double() @ leaves["embedding.weight"]
        given = torch.cat([word, context], dim=1).unsqueeze(0), state.unsqueeze(0)
        state = functional_call(gru, weights, given)[1].squeeze(0)
        parts = leaves["out.weight"].split([x.shape[1] for x in (state, context, word)], dim=1)
        products = (x @ part.T for x, part in zip((state, context, word), parts))
        logits = sum(products, leaves["out.bias"])
        outputs.append(torch.cat([logits, alignment], dim=1))
        token = targets[:, place] if forcing else logits.max(dim=1).indices
    return torch.stack(outputs, dim=1)


def torch_counting(case: Case, leaves: Leaves) -> Tensor:
    """torch's attention with one head, between its embedding and its linear layers."""
    tokens = case.called_with["tokens"]
    bos = tokens.new_full((len(tokens), 1), case.options["vocab"])
    x = F.embedding(torch.cat([bos, tokens], dim=1), leaves["embedding.weight"])
    projections = (F.linear(x, leaves[f"{name}.weight"]) for name in PROJECTIONS)
    x = x + F.scaled_dot_product_attention(*projections)
    hidden = F.relu(F.linear(x, leaves["linear1.weight"], leaves["linear1.bias"]))
    return F.linear(hidden, leaves["linear2.weight"], leaves["linear2.bias"])[:, 1:]


def torch_cross_attention(case: Case, leaves: Leaves) -> Tensor:
    """torch's attention under a boolean mask, or its encoder's or decoder's layer, pre-norm."""
    x, mask = leaves["x"], case.called_with["key_mask"]
    if case.target != "CrossAttention":
        return torch_coder_layer(case, leaves)
    context = leaves.get("context", x)
    pairs = mask.unsqueeze(1).expand(-1, x.shape[1], -1)  # (batch, n_queries, n_keys)
    pairs = pairs.tril() if case.options["causal"] else pairs
    queries, keys, values = (
        F.linear(given, leaves[f"{name}.weight"]).unflatten(2, (case.options["num_heads"], -1)).mT
        for name, given in zip(PROJECTIONS, (x, context, context))
    )  # (batch, n_tokens, d_head, heads) each
    heads = [
        F.scaled_dot_product_attention(*each, attn_mask=pairs)
        for each in zip(*(projection.unbind(-1) for projection in (queries, keys, values)))
    ]
    output = torch.cat(heads, dim=-1)  # (batch, n_queries, d_out)
    return F.linear(output, leaves["out_proj.weight"], leaves["out_proj.bias"])


def torch_coder_layer(case: Case, leaves: Leaves) -> Tensor:
    """torch's encoder or decoder layer, whose masks are True for padding."""
    is_decoder = case.target == "DecoderBlock"
    named = {}
    parts = {"attention": "self_attn"}
    if is_decoder:
        parts = {"self_attention": "self_attn", "cross_attention": "multihead_attn"}
    for ours, theirs in parts.items():
        stacked = in_projection(case, leaves, f"{ours}.")
        named |= {f"{theirs}.{name}": tensor for name, tensor in stacked.items()}
        for kind in ("weight", "bias"):
            named[f"{theirs}.out_proj.{kind}"] = leaves[f"{ours}.out_proj.{kind}"]
    for kind, ours in (("weight", "gamma"), ("bias", "beta")):
        named |= {f"linear{n}.{kind}": leaves[f"feed_forward.linear{n}.{kind}"] for n in (1, 2)}
        norms = range(1, 3 + is_decoder)
        named |= {f"norm{n}.{kind}": leaves[f"norm{n}.{ours}"] for n in norms}
    made = nn.TransformerDecoderLayer if is_decoder else nn.TransformerEncoderLayer
    sizes = (case.options[name] for name in ("d_model", "num_heads", "d_ff"))
    layer = made(*sizes, dropout=0.0, batch_first=True, norm_first=True)
    x, padding = leaves["x"], ~case.called_with["key_mask"]
    if not is_decoder:
        return functional_call(layer, named, (x,), {"src_key_padding_mask": padding})
    masks = {"tgt_mask": hidden(x, True), "tgt_key_padding_mask": padding}
    masks["memory_key_padding_mask"] = ~case.called_with["memory_mask"]
    return functional_call(layer, named, (x, leaves["memory"]), masks)


def torch_sliding_attention(case: Case, leaves: Leaves) -> Tensor:
    """torch's attention with a mask for all pairs, which is added to the scores."""
    Q, K, V, *slopes = leaves.values()
    apart = torch.arange(Q.shape[2]).unsqueeze(1) - torch.arange(Q.shape[2])  # i - j
    mask = torch.zeros(Q.shape[1], *apart.shape).double()  # (num_heads, n_tokens, n_tokens)
    for each in slopes:
        mask = -each.view(-1, 1, 1) * apart
    mask = mask.masked_fill((apart < 0) | (apart >= case.options["window"]), -torch.inf)
    return F.scaled_dot_product_attention(Q, K, V, attn_mask=mask)


def torch_loss(case: Case, leaves: Leaves) -> Tensor:
    given = {name: case.options[name] for name in ("ignore_index", "label_smoothing")}
    rows = leaves["logits"].reshape(-1, leaves["logits"].shape[-1])
    return F.cross_entropy(rows, case.options["targets"].reshape(-1), **given)


def torch_rate(case: Case, leaves: Leaves) -> Tensor:
    """The rate of torch's scheduler, for a rate of 1, between floor and peak."""
    step, warmup, total = (case.options[name] for name in ("step", "warmup", "total"))
    optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, total - warmup)
    for _ in range(step - warmup):
        optimizer.step()
        scheduler.step()
    return leaves["floor"] + (leaves["peak"] - leaves["floor"]) * scheduler.get_last_lr()[0]


Oracle = Callable[[Case, Leaves], Tensor]
ORACLES: dict[str, Oracle] = {
    "dictionary_lookup": torch_lookup,
    "masked_softmax": torch_softmax_of_each_row,
    "self_attention": torch_self_attention,
    "trainable_self_attention": torch_trainable_self_attention,
    "causal_attention": torch_causal_attention,
    "stacked_heads": torch_stacked_heads,
    "multi_head_attention": torch_heads_side_by_side,
    "layer_norm": torch_layer_norm,
    "rms_norm": torch_rms_norm,
    "feed_forward": torch_sequential,
    "swiglu": torch_gated,
    "transformer_block": torch_encoder_layer,
    "named_attention": torch_named_heads,
    "softmax_temperature": torch_tempered_softmax,
    "scaled_dot_product_attention": torch_dot_product_attention,
    "attention_dropout": torch_dropout,
    "additive_attention": torch_joined_pairs,
    "distance_attention": torch_distances,
    "bilinear_attention": torch_bilinear,
    "positional_encoding": torch_encoded,
    "rotary_embedding": torch_rotary,
    "kv_cache": torch_heads_side_by_side,
    "modern_block": torch_modern,
    "grouped_query_attention": torch_grouped_heads,
    "histogram_transformer": torch_counting,
    "online_softmax": torch_causal_or_not,
    "seq2seq_attention": torch_decoder,
    "tiny_gpt": torch_gpt,
    "tiny_llama": torch_llama,
    "cross_attention": torch_cross_attention,
    "sliding_window": torch_sliding_attention,
    "sampling": torch_distribution,
    "cross_entropy": torch_loss,
    "adamw": torch_rate,
    "patch_embedding": torch_patch_embedding,
    "low_rank_adaptation": torch_merged_linear,
    "mixture_of_experts": torch_mixture,
}


def prove(case: Case, module: ModuleType, oracle: Oracle) -> None:
    """`module` gives the values and gradients of torch."""
    expected = functools.partial(oracle, case)
    assert_same(case.function(module), expected, case.leaves, **case.tolerance)
