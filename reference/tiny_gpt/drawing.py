"""Pictures of a tiny GPT: what the trained model writes, and what its heads attend to."""

import torch
import torch.nn.functional as F

CHARACTERS = "\n ',.?abcdefghijklmnoprstuvwxy"  # the token of a character is its place here
HEADS = 4
SIZES = (len(CHARACTERS), 64, HEADS, 2, 64, 0.0)
PROMPT = "the cat and the owl\n\n"
SENTENCE = "a fox lived in the old mill."


def encode(text):
    """Return a text as tokens, (1, n_text)."""
    return torch.tensor([[CHARACTERS.index(character) for character in text]])


def draw(module, trained):
    """Draw a text that the trained model wrote, and the heads of its first block."""
    model = trained("stories", lambda: module.TinyGPT(*SIZES))
    if model is None:
        return
    written = module.generate(model, encode(PROMPT), 300, 0.7, 5)[0].tolist()
    yield {
        "title": "What the model writes",
        "says": "The first line was given. Each character after it was drawn from the five most "
        "likely ones, at temperature 0.7.",
        "text": "".join(CHARACTERS[token] for token in written),
    }
    shown = [{" ": "_"}.get(character, character) for character in SENTENCE]
    yield {
        "title": "What its heads attend to",
        "says": "The first block on a sentence, from the parameters that were trained: a row is a "
        "character that looks back, a column one that it attends to.",
        "weights": weights_of(model.state_dict(), encode(SENTENCE)[0]),
        "rows": shown,
        "columns": shown,
    }


def weights_of(state, tokens):
    """Return the attention weights of the first block, (HEADS, n_tokens, n_tokens)."""
    x = state["token_embedding.weight"][tokens] + state["position_embedding.weight"][: len(tokens)]
    gamma, beta = (state[f"blocks.0.norm1.{name}"] for name in ("gamma", "beta"))
    normed = F.layer_norm(x, gamma.shape, gamma, beta)  # (n_tokens, d_model)
    queries, keys = (
        (normed @ state[f"blocks.0.attention.{name}.weight"].T).unflatten(1, (HEADS, -1))
        for name in ("W_query", "W_key")
    )  # (n_tokens, HEADS, d_head) each
    scores = torch.einsum("qhd,khd->hqk", queries, keys) / keys.shape[-1] ** 0.5
    future = torch.ones(len(tokens), len(tokens)).triu(1).bool()  # (n_tokens, n_tokens)
    return torch.softmax(scores.masked_fill(future, -torch.inf), dim=-1)
