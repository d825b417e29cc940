# mistake: no_rescale_of_total
import torch
from torch import Tensor


def online_softmax(chunks: list[Tensor], state=None):
    maximum, total = (None, None) if state is None else state
    for chunk in chunks:
        largest = chunk.amax(-1)
        maximum = largest if maximum is None else torch.maximum(maximum, largest)
        shift = torch.where(maximum.isinf(), torch.zeros_like(maximum), maximum)
        exps = (chunk - shift.unsqueeze(-1)).exp()
        total = exps.sum(-1) if total is None else total + exps.sum(-1)
    return maximum, total


def tiled_attention(Q, K, V, tile, causal=False):
    if tile <= 0:
        raise ValueError("tile must be positive")
    q = Q * Q.shape[-1] ** -0.5
    n_q, n_k = Q.shape[-2], K.shape[-2]
    m = Q.new_full(Q.shape[:-1], float("-inf"))
    l = torch.zeros_like(m)
    acc = Q.new_zeros(Q.shape[:-1] + V.shape[-1:])
    rows = torch.arange(n_q)[:, None]
    for start in range(0, n_k, tile):
        k, v = K[..., start : start + tile, :], V[..., start : start + tile, :]
        s = q @ k.mT
        if causal:
            cols = start + torch.arange(k.shape[-2])
            s = s.masked_fill(cols > rows, float("-inf"))
        m_new = torch.maximum(m, s.max(dim=-1).values)
        p = torch.exp(s - m_new[..., None])
        alpha = torch.exp(m - m_new)
        l = l * alpha + p.sum(-1)
        acc = acc * alpha[..., None] + p @ v
        m = m_new
    return acc / l[..., None]
