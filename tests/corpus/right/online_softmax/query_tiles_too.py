# right: queries in tiles as well, tiles of the future skipped, the maximum detached
import torch


def online_softmax(chunks, state=None):
    """One pass; nothing learns through the maximum."""
    maximum, total = state if state is not None else (None, None)
    for chunk in chunks:
        top = chunk.detach().amax(-1)
        if maximum is not None:
            top = torch.maximum(top, maximum)
        base = top.masked_fill(top == -torch.inf, 0)
        part = (chunk - base.unsqueeze(-1)).exp().sum(-1)
        total = part if total is None else part + total * (maximum - base).exp()
        maximum = top
    return maximum, total


def tiled_attention(Q, K, V, tile, causal=False):
    if tile < 1:
        raise ValueError("tile")
    rows = [
        _rows(Q[..., i : i + tile, :], K, V, tile, i if causal else None)
        for i in range(0, Q.shape[-2], tile)
    ]
    return torch.cat(rows, dim=-2)


def _rows(Q, K, V, tile, first):
    state = output = None
    for j in range(0, K.shape[-2], tile):
        if first is not None and j >= first + Q.shape[-2]:
            break
        k, v = K[..., j : j + tile, :], V[..., j : j + tile, :]
        s = Q @ k.transpose(-2, -1) * K.shape[-1] ** -0.5
        if first is not None:
            q_at = torch.arange(first, first + Q.shape[-2]).unsqueeze(1)
            s = s.masked_fill(torch.arange(j, j + k.shape[-2]) > q_at, -torch.inf)
        new = online_softmax([s], state)
        part = (s - new[0].unsqueeze(-1)).exp() @ v
        if output is None:
            output = part
        else:
            output = output * (state[0] - new[0]).exp().unsqueeze(-1) + part
        state = new
    return output / state[1].unsqueeze(-1)
