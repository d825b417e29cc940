# mistake: softmax_of_each_tile
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
    """Sum up what each tile gives."""
    if tile < 1:
        raise ValueError("tile must be at least 1")
    output = 0
    q = torch.arange(Q.shape[-2])
    for start in range(0, K.shape[-2], tile):
        k, v = K[..., start : start + tile, :], V[..., start : start + tile, :]
        scores = Q @ k.mT / K.shape[-1] ** 0.5
        if causal:
            mask = torch.arange(start, start + k.shape[-2])[None] > q[:, None]
            scores = scores.masked_fill(mask, -1e30)
        e = torch.exp(scores - scores.amax(-1, keepdim=True))
        if causal:
            e = e.masked_fill(mask, 0)
        weights = e / e.sum(-1, keepdim=True).clamp(min=1e-30)
        output = output + weights @ v
    return output
