# mistake: minus_inf_is_nan
import torch


def online_softmax(chunks, state=None):
    for chunk in chunks:
        biggest, _ = chunk.max(dim=-1)
        if state is None:
            m = biggest
            s = (chunk - m.unsqueeze(-1)).exp().sum(dim=-1)
        else:
            m = torch.maximum(biggest, state[0])
            s = state[1] * (state[0] - m).exp() + (chunk - m.unsqueeze(-1)).exp().sum(dim=-1)
        state = (m, s)
    return state


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
