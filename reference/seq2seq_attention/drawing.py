"""The alignment of the trained decoder: which token of the source each step looks at."""

import torch
import torch.nn.functional as F

DIGITS = (3, 1, 4, 9, 5, 2)  # the source; the decoder was trained to write it backwards
SIZES = (11, 8, 32, 19, 32)  # vocab, d_embed, d_decoder, d_encoder, d_hidden


def draw(module, trained):
    """Draw the weights of each step, while the decoder writes on its own."""
    decoder = trained("reversing", lambda: module.AttentionDecoder(*SIZES))
    if decoder is None:
        return
    source = torch.tensor([DIGITS])  # (1, n_source)
    targets, state = torch.zeros_like(source), torch.zeros(1, SIZES[2])
    with torch.no_grad():
        logits, alignment = decoder(targets, state, encode(source), None, False)
    yield {
        "title": "The alignment",
        "says": "A row is a token that the trained decoder writes, a column a token of the source. "
        "To write it backwards, it has to look at the last one first.",
        "weights": alignment[0],  # (n_target, n_source)
        "rows": logits[0].argmax(dim=-1).tolist(),
        "columns": DIGITS,
    }


def encode(tokens):
    """Return one-hot tokens (batch, 6), each joined with sines and cosines of its place."""
    turns = torch.arange(6)[:, None] * 10000.0 ** (-torch.arange(0, 8, 2) / 8)  # (6, 4)
    waves = torch.cat([turns.sin(), turns.cos()], dim=-1)  # (6, 8)
    return torch.cat([F.one_hot(tokens, 11), waves.expand(len(tokens), 6, 8)], dim=-1)
