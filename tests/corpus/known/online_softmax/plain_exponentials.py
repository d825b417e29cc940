# mistake: no_maximum_in_tiles
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
    if tile < 1:
        raise ValueError("tile must be at least 1")
    Q = Q / K.shape[-1] ** 0.5
    numerator, denominator = 0, 0
    positions = torch.arange(K.shape[-2])
    queries = torch.arange(Q.shape[-2])
    for keys, values, where in zip(*(x.split(tile, -2) for x in (K, V, positions.view(-1, 1)))):
        e = (Q @ keys.mT).exp()
        if causal:
            e = e * (where.T <= queries[:, None])
        numerator, denominator = numerator + e @ values, denominator + e.sum(-1, keepdim=True)
    return numerator / denominator
