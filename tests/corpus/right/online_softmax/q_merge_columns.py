from functools import reduce

import torch

# Two parts of a row are merged by one rule, whoever came first. In `tiled_attention` a query is a
# column: scores are (..., tile, n_queries), the output is (..., d_value, n_queries) until the end.

NEG = float("-inf")


def _wide(t):
    return t.float() if t.dtype in (torch.bfloat16, torch.float16) else t


def _shift(maximum):
    return maximum.masked_fill(maximum.eq(NEG), 0.0)


def _part(scores, dim):
    maximum = scores.detach().max(dim=dim, keepdim=True).values
    exponentials = scores.sub(_shift(maximum)).exp()
    return maximum, exponentials


def _merge(a, b):
    maximum = torch.max(a[0], b[0])
    shift = _shift(maximum)
    fa, fb = a[0].sub(shift).exp(), b[0].sub(shift).exp()
    return (maximum, *(fa * x + fb * y for x, y in zip(a[1:], b[1:])))


def online_softmax(chunks, state=None):
    dtype = chunks[0].dtype

    def summary(chunk):
        maximum, exponentials = _part(_wide(chunk), -1)
        return maximum.squeeze(-1), exponentials.sum(-1)

    parts = map(summary, chunks)
    start = next(parts) if state is None else (_wide(state[0].detach()), _wide(state[1]))
    maximum, total = reduce(_merge, parts, start)
    return maximum.to(dtype), total.to(dtype)


def tiled_attention(Q, K, V, tile, causal=False):
    if not tile >= 1:
        raise ValueError("tile must be at least 1")
    n_queries, d_key = Q.shape[-2:]
    columns = _wide(Q).transpose(-2, -1) * d_key**-0.5

    def summary(start):
        keys = _wide(K[..., start : start + tile, :])
        values = _wide(V[..., start : start + tile, :])
        scores = keys.matmul(columns)
        if causal:
            key = torch.arange(start, start + keys.size(-2), device=Q.device)[:, None]
            query = torch.arange(n_queries, device=Q.device)[None, :]
            scores = scores.where(key <= query, NEG)
        maximum, exponentials = _part(scores, -2)
        return maximum, exponentials.sum(-2, keepdim=True), values.mT.matmul(exponentials)

    _, total, mixed = reduce(_merge, map(summary, range(0, K.size(-2), tile)))
    return (mixed / total).mT.to(Q.dtype)
