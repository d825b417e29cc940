# mistake: no_scale
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
        raise ValueError("tile")
    n_queries, n_keys = Q.size(-2), K.size(-2)
    maximum = torch.full(Q.shape[:-1] + (1,), float("-inf"), dtype=Q.dtype, device=Q.device)
    total = torch.zeros_like(maximum)
    result = total * V[..., :1, :]
    for j in range(0, n_keys, tile):
        scores = torch.matmul(Q, K[..., j : j + tile, :].transpose(-2, -1))
        if causal:
            visible = torch.arange(j, min(j + tile, n_keys)) <= torch.arange(n_queries).view(-1, 1)
            scores = torch.where(visible, scores, float("-inf"))
        bigger = torch.maximum(maximum, scores.max(-1, keepdim=True).values)
        e = torch.exp(scores - bigger)
        f = torch.exp(maximum - bigger)
        total = f * total + e.sum(-1, keepdim=True)
        result = f * result + torch.matmul(e, V[..., j : j + tile, :])
        maximum = bigger
    return result / total
