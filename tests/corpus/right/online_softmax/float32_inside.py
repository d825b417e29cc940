# right: float32 or better inside, cast back; normalised after every tile, as FlashAttention 1
import torch


def _wide(x):
    return x.double() if x.dtype == torch.float64 else x.float()


def online_softmax(chunks, state=None):
    dtype = chunks[0].dtype
    if state is None:
        m = torch.full(chunks[0].shape[:-1], -torch.inf, dtype=dtype)
        d = torch.zeros(chunks[0].shape[:-1], dtype=dtype)
    else:
        m, d = state
    m, d = _wide(m), _wide(d)
    for x in chunks:
        x = _wide(x)
        m_ = torch.max(m, x.amax(dim=-1))
        a = torch.nan_to_num(m_.detach(), neginf=0.0) * 0 + torch.where(m_ == -torch.inf, 0, m_)
        d = d * torch.exp(m - a) + torch.exp(x - a[..., None]).sum(dim=-1)
        m = m_
    return m.to(dtype), d.to(dtype)


def tiled_attention(Q, K, V, tile, causal=False):
    assert tile > 0, "tile must be positive"
    q, n = _wide(Q) / Q.shape[-1] ** 0.5, K.shape[-2]
    m = q.new_full(Q.shape[:-1] + (1,), -torch.inf)
    d = q.new_zeros(Q.shape[:-1] + (1,))
    o = q.new_zeros(Q.shape[:-1] + (V.shape[-1],))
    i = torch.arange(Q.shape[-2])[:, None]
    for j in range(0, n, tile):
        e = min(j + tile, n)
        x = q @ _wide(K[..., j:e, :]).mT
        if causal:
            x = torch.where(torch.arange(j, e)[None, :] <= i, x, -torch.inf)
        m_ = torch.max(m, x.amax(dim=-1, keepdim=True))
        p = torch.exp(x - m_)
        before = d * torch.exp(m - m_)
        d_ = before + p.sum(dim=-1, keepdim=True)
        o = o * (before / d_) + p @ _wide(V[..., j:e, :]) / d_
        m, d = m_, d_
    return o.to(Q.dtype)
