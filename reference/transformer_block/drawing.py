"""One sentence through a model whose numbers were chosen by hand, stage by stage.

A vector has three parts: which word it is, at which position, and which word came before. The
first head looks one position back, the second one at equal words; the feed-forward network knows
which word follows two others. PyTorch's own layer computes what each stage should be.
"""

import torch
import torch.nn.functional as F
from torch import nn

TOKENS = ("the", "cat", "sat", "on", "the", "mat")
WORDS = ("the", "cat", "sat", "on", "mat")
N_TOKENS, N_WORDS = len(TOKENS), len(WORDS)
HEADS, D_HEAD = 2, 8
D_MODEL, D_FF = HEADS * D_HEAD, N_WORDS  # D_MODEL is also N_WORDS + N_TOKENS + N_WORDS
POSITIONS, BEFORE = N_WORDS, N_WORDS + N_TOKENS  # where the second and the third part begin
PROJECTIONS = ("query", "key", "value")
FOLLOWS = {  # of two words in order, where the first token is its own predecessor
    ("the", "the"): "cat",
    ("the", "cat"): "sat",
    ("cat", "sat"): "on",
    ("sat", "on"): "the",
    ("on", "the"): "mat",
}
FEATURES = (*WORDS, *(f"at {n}" for n in range(1, N_TOKENS + 1)), *(f"← {w}" for w in WORDS))
SHARP, COPIED, BIAS, WRITTEN = 2.0, 0.35, 3.0, 3.0  # how strongly each part does its work


def tokens():
    """Return the words and positions of the sentence, (N_TOKENS, D_MODEL)."""
    words = F.one_hot(torch.tensor([WORDS.index(token) for token in TOKENS]), N_WORDS)
    return torch.cat([words, torch.eye(N_TOKENS), torch.zeros(N_TOKENS, N_WORDS)], dim=1)


def attention_state():
    """Return the parameters of both heads."""
    query, key, value, out = (torch.zeros(D_MODEL, D_MODEL) for _ in range(4))
    for n in range(N_TOKENS):
        key[n, POSITIONS + n] = 1.0
        if n:  # the token at n asks for the one before it
            query[n - 1, POSITIONS + n] = SHARP
    for word in range(N_WORDS):
        query[D_HEAD + word, word] = key[D_HEAD + word, word] = 1.0
        value[word, word] = value[D_HEAD + word, word] = COPIED
        out[BEFORE + word, word] = out[word, D_HEAD + word] = 1.0
    return {
        "W_query.weight": query,
        "W_key.weight": key,
        "W_value.weight": value,
        "out_proj.weight": out,
        "out_proj.bias": torch.zeros(D_MODEL),
    }


def feed_forward_state():
    """Return the parameters of a network with a hidden unit for each pair of words."""
    first, second = torch.zeros(D_FF, D_MODEL), torch.zeros(D_MODEL, D_FF)
    for unit, ((before, word), following) in enumerate(FOLLOWS.items()):
        first[unit, WORDS.index(word)] = first[unit, BEFORE + WORDS.index(before)] = 1.0
        second[WORDS.index(following), unit] = WRITTEN
    return {
        "linear1.weight": first,
        "linear1.bias": torch.full((D_FF,), -BIAS),
        "linear2.weight": second,
        "linear2.bias": torch.zeros(D_MODEL),
    }


def pytorch_layer(attention, feed_forward):
    """Return PyTorch's own block with these parameters."""
    layer = nn.TransformerEncoderLayer(D_MODEL, HEADS, D_FF, 0.0, batch_first=True, norm_first=True)
    projections = [attention[f"W_{name}.weight"] for name in PROJECTIONS]
    state = {
        "self_attn.in_proj_weight": torch.cat(projections),
        "self_attn.in_proj_bias": torch.zeros(3 * D_MODEL),
        **{f"self_attn.{name}": attention[name] for name in ("out_proj.weight", "out_proj.bias")},
        **feed_forward,
    }
    layer.load_state_dict(state, strict=False)
    return layer.eval()


def loaded(module, state):
    """Return a student's module with these parameters, without dropout."""
    module.load_state_dict(state, strict=False)
    return module.eval()


@torch.no_grad()
def tour(stage):
    """Show the sentence at each stage, from the student's parts where they are right."""
    attention, feed_forward = attention_state(), feed_forward_state()
    layer = pytorch_layer(attention, feed_forward)
    x = tokens().unsqueeze(0)  # (1, N_TOKENS, D_MODEL)
    future = torch.ones(N_TOKENS, N_TOKENS).triu(1).bool()  # (N_TOKENS, N_TOKENS)
    vectors = {"rows": TOKENS, "columns": FEATURES}
    stage(
        "Words become vectors",
        "A row is a token: which word it is, and at which position. Both times, “the” has the same "
        "word and another position. The last part, the word before, is still empty.",
        x,
        **vectors,
    )
    normed = stage(
        "Each token is normalised",
        "The block reads a copy in which each row has mean 0 and variance 1.",
        layer.norm1(x),
        "layer_norm",
        lambda own: own.LayerNorm(D_MODEL)(x),
        **vectors,
    )
    queries, keys, values = (
        (normed @ attention[f"W_{name}.weight"].T).unflatten(-1, (HEADS, D_HEAD)).transpose(1, 2)[0]
        for name in PROJECTIONS
    )  # (HEADS, N_TOKENS, D_HEAD) each
    temp = D_HEAD**0.5
    everything = torch.eye(N_TOKENS)  # as values, so that the output is the weights
    stage(
        "A query looks everything up",
        "The first head without a mask. A row is a token that asks; it finds the one before it. "
        "The first token has none, so it takes a bit of everything, also of what is to come.",
        F.scaled_dot_product_attention(queries[:1], keys[:1], everything[None])[0],
        "dictionary_lookup",
        lambda own: own.attention(queries[0], keys[0], everything, temp),
        rows=TOKENS,
        columns=TOKENS,
    )
    lengths = torch.arange(1, N_TOKENS + 1).expand(HEADS, -1)  # a token sees itself and the past
    stage(
        "The future is masked",
        "The weights of both heads: head 0 looks one token back, head 1 at equal words. A token "
        "sees itself and what came before, and nothing after it.",
        layer.self_attn(normed, normed, normed, attn_mask=future, average_attn_weights=False)[1][0],
        "masked_softmax",
        lambda own: own.masked_softmax(queries @ keys.mT / temp, lengths),
        rows=TOKENS,
        columns=TOKENS,
    )
    one_head = {f"W_{name}.weight": attention[f"W_{name}.weight"][:D_HEAD] for name in PROJECTIONS}
    stage(
        "One head copies the word before",
        "The values of head 0, weighted: of each token the word before it. The first token finds "
        "only itself.",
        F.scaled_dot_product_attention(*(t[:1] for t in (queries, keys, values)), is_causal=True),
        "causal_attention",
        lambda own: loaded(own.CausalAttention(D_MODEL, D_HEAD, N_TOKENS, 0.0), one_head)(normed),
        rows=TOKENS,
        columns=(*WORDS, "", "", ""),
    )
    attended = stage(
        "Both heads together",
        "The output projection writes head 0 into the last part, the word before, and adds head 1 "
        "to the first.",
        layer.self_attn(normed, normed, normed, attn_mask=future)[0],
        "multi_head_attention",
        lambda own: loaded(
            own.MultiHeadAttention(D_MODEL, D_MODEL, N_TOKENS, 0.0, HEADS), attention
        )(normed),
        **vectors,
    )
    x = x + attended
    whole = layer(tokens().unsqueeze(0), src_mask=future)  # (1, N_TOKENS, D_MODEL)
    again = layer.norm2(x)
    stage(
        "The network knows what follows",
        "There is a hidden unit for each pair of words, such as “cat sat”, and it writes the word "
        "that follows: “on”.",
        whole - x,
        "feed_forward",
        lambda own: loaded(own.FeedForward(D_MODEL, D_FF), feed_forward)(again),
        **vectors,
    )
    state = {
        **{f"attention.{name}": value for name, value in attention.items()},
        **{f"feed_forward.{name}": value for name, value in feed_forward.items()},
    }
    whole = stage(
        "The whole block",
        "What came in, plus what attention added, plus what the network added.",
        whole,
        "transformer_block",
        lambda own: loaded(own.TransformerBlock(D_MODEL, HEADS, D_FF, N_TOKENS), state)(
            tokens().unsqueeze(0)
        ),
        **vectors,
    )
    scores = whole[0, :, :N_WORDS]  # (N_TOKENS, N_WORDS)
    stage(
        "The next word",
        "A softmax over the first part. Each row says what comes next; nothing follows “mat”, and "
        "the model only repeats it.",
        torch.softmax(scores, dim=-1),
        "softmax_temperature",
        lambda own: own.tempered_softmax(scores, 1.0),
        rows=TOKENS,
        columns=WORDS,
    )
