# right: a column of ones beside the values keeps the total
import torch


def fold(state, s, v):
    """One more chunk of scores (..., q, n) and values (..., n, d)."""
    m, acc = state
    m_new = torch.maximum(m, s.amax(-1, keepdim=True))
    ref = torch.where(m_new == float("-inf"), 0.0, m_new).to(s.dtype)
    return m_new, acc * (m - ref).exp() + (s - ref).exp() @ v


def online_softmax(chunks, state=None):
    head = chunks[0]
    if state is None:
        m = torch.full_like(head[..., :1], float("-inf"))
        acc = torch.zeros_like(head[..., :1])
    else:
        m, acc = (each.unsqueeze(-1) for each in state)
    now = (m.unsqueeze(-1), acc.unsqueeze(-1))
    for chunk in chunks:
        now = fold(now, chunk.unsqueeze(-2), chunk.new_ones(chunk.shape[-1], 1))
    return now[0].squeeze(-1).squeeze(-1), now[1].squeeze(-1).squeeze(-1)


def tiled_attention(Q, K, V, tile, causal=False):
    if not tile > 0:
        raise ValueError("a tile needs keys")
    V1 = torch.cat([V, torch.ones_like(V[..., :1])], -1)
    state = (Q.new_full((), float("-inf")), Q.new_zeros(()))
    for j, (k, v) in enumerate(zip(K.split(tile, -2), V1.split(tile, -2))):
        s = Q @ (k / k.shape[-1] ** 0.5).mT
        if causal:
            ok = torch.ones(s.shape[-2:], dtype=torch.bool).tril(-j * tile)
            s = s.where(ok, float("-inf"))
        state = fold(state, s, v)
    return state[1][..., :-1] / state[1][..., -1:]
