# mistake: values of a tile are taken one row too early from the second tile on
import torch


def online_softmax(chunks, state=None):
    if state is None:
        shape = chunks[0].shape[:-1]
        state = chunks[0].new_full(shape, float("-inf")), chunks[0].new_zeros(shape)
    m, l = state
    for c in chunks:
        m_new = torch.maximum(m, c.max(dim=-1).values)
        safe = torch.where(m_new == float("-inf"), torch.zeros_like(m_new), m_new)
        l = l * torch.exp(m - safe) + torch.exp(c - safe[..., None]).sum(-1)
        m = m_new
    return m, l


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
        k, v = (
            K[..., start : start + tile, :],
            V.roll(1 if start else 0, -2)[..., start : start + tile, :],
        )
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
