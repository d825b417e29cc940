"""Each tile is finished by itself: states of single tiles are merged, two at a time."""

import torch


def seen(scores):
    """The state of one chunk alone."""
    m = scores.max(dim=-1).values
    finite = m.masked_fill(m.isneginf(), 0.0)
    return m, (scores - finite.unsqueeze(-1)).exp().sum(-1)


def factors(one, other):
    """The maximum of two, and the factors for what was summed with each."""
    both = torch.maximum(one, other)
    finite = both.masked_fill(both.isneginf(), 0.0)
    return both, (one - finite).exp(), (other - finite).exp()


def online_softmax(chunks, state=None):
    for chunk in chunks:
        new = seen(chunk)
        if state is None:
            state = new
        else:
            m, left, right = factors(state[0], new[0])
            state = m, state[1] * left + new[1] * right
    return state


def tiled_attention(Q, K, V, tile, causal=False):
    if tile < 1:
        raise ValueError("tile must be positive")
    queries = torch.arange(Q.shape[-2]).unsqueeze(1)
    best = total = output = None
    start = 0
    while start < K.shape[-2]:
        stop = min(start + tile, K.shape[-2])
        scores = Q @ K[..., start:stop, :].transpose(-1, -2) / K.shape[-1] ** 0.5
        if causal:
            scores = scores.masked_fill(torch.arange(start, stop) > queries, -torch.inf)
        m, part = seen(scores)
        finite = m.masked_fill(m.isneginf(), 0.0).unsqueeze(-1)
        mixed = (scores - finite).exp() @ V[..., start:stop, :]
        if best is None:
            best, total, output = m, part, mixed
        else:
            best, left, right = factors(best, m)
            total = total * left + part * right
            output = output * left.unsqueeze(-1) + mixed * right.unsqueeze(-1)
        start = stop
    return output / total.unsqueeze(-1)
