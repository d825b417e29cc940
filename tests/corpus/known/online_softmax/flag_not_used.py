# mistake: causal_ignored
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
    """Flash attention."""
    if tile < 1:
        raise ValueError("tile")
    m, l, o = None, 0, 0
    for k, v in zip(K.split(tile, dim=-2), V.split(tile, dim=-2)):
        s = torch.einsum("...qd,...kd->...qk", Q, k) / K.shape[-1] ** 0.5
        new = s.amax(-1, keepdim=True)
        if m is not None:
            new = torch.maximum(new, m)
            correction = torch.exp(m - new)
            l, o = l * correction, o * correction
        w = torch.exp(s - new)
        l, o, m = l + w.sum(-1, keepdim=True), o + w @ v, new
    return o / l
