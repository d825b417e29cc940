# mistake: starts_at_zero
import torch


def online_softmax(chunks, state=None):
    if state is None:
        m = torch.zeros(chunks[0].shape[:-1], dtype=chunks[0].dtype, device=chunks[0].device)
        d = torch.zeros_like(m)
    else:
        m, d = state
    for x in chunks:
        m_new = torch.maximum(m, x.max(dim=-1)[0])
        d = d * torch.exp(m - m_new) + torch.exp(x - m_new[..., None]).sum(dim=-1)
        m = m_new
    return m, d


def tiled_attention(Q, K, V, tile, causal=False):
    if tile < 1:
        raise ValueError("tile")
    scale = Q.shape[-1] ** -0.5
    m = torch.zeros(Q.shape[:-1] + (1,), dtype=Q.dtype, device=Q.device)
    l = torch.zeros_like(m)
    O = torch.zeros(Q.shape[:-1] + (V.shape[-1],), dtype=Q.dtype, device=Q.device)
    i = torch.arange(Q.shape[-2], device=Q.device).view(-1, 1)
    for start in range(0, K.shape[-2], tile):
        Kj = K[..., start:start + tile, :]
        Vj = V[..., start:start + tile, :]
        S = (Q @ Kj.transpose(-2, -1)) * scale
        if causal:
            j = torch.arange(start, start + Kj.shape[-2], device=Q.device).view(1, -1)
            S = S.masked_fill(j > i, float("-inf"))
        m_new = torch.maximum(m, S.max(dim=-1, keepdim=True)[0])
        P = torch.exp(S - m_new)
        alpha = torch.exp(m - m_new)
        l = alpha * l + P.sum(dim=-1, keepdim=True)
        O = alpha * O + P @ Vj
        m = m_new
    return O / l
