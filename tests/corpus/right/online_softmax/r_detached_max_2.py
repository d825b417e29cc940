import torch
from torch import Tensor


def _finite(m: Tensor) -> Tensor:
    """The number to subtract: 0 for rows in which all is hidden so far."""
    return torch.where(m.isinf(), torch.zeros_like(m), m)


def online_softmax(
    chunks: list[Tensor], state: tuple[Tensor, Tensor] | None = None
) -> tuple[Tensor, Tensor]:
    dtype = chunks[0].dtype
    wide = torch.promote_types(dtype, torch.float32)
    if state is None:
        m = torch.full(chunks[0].shape[:-1], float("-inf"), dtype=wide, device=chunks[0].device)
        total = torch.zeros_like(m)
    else:
        m, total = state[0].detach().to(wide), state[1].to(wide)
    for chunk in chunks:
        c = chunk.to(wide)
        m_new = torch.maximum(m, c.detach().amax(dim=-1))
        base = _finite(m_new)
        total = total * (m - base).exp() + (c - base.unsqueeze(-1)).exp().sum(dim=-1)
        m = m_new
    # the maximum is a number of the chunks, so it is exact in their dtype
    return m.to(dtype), total.to(dtype)


def tiled_attention(Q: Tensor, K: Tensor, V: Tensor, tile: int, causal: bool = False) -> Tensor:
    if tile < 1:
        raise ValueError(f"a tile of {tile} keys")
    wide = torch.promote_types(Q.dtype, torch.float32)
    n_q, n_k = Q.shape[-2], K.shape[-2]
    q = Q.to(wide) / Q.shape[-1] ** 0.5
    m = q.new_full(q.shape[:-1], float("-inf")).unsqueeze(-1)
    total = torch.zeros_like(m)
    acc = q.new_zeros(*q.shape[:-1], V.shape[-1])
    who = torch.arange(n_q, device=Q.device).unsqueeze(1)
    for start in range(0, n_k, tile):
        k = K[..., start : start + tile, :].to(wide)
        v = V[..., start : start + tile, :].to(wide)
        s = q @ k.mT
        if causal:
            which = torch.arange(start, start + k.shape[-2], device=Q.device)
            s = s.masked_fill(which > who, float("-inf"))
        m_new = torch.maximum(m, s.detach().amax(dim=-1, keepdim=True))
        base = _finite(m_new)
        shrink = (m - base).exp()
        e = (s - base).exp()
        total = total * shrink + e.sum(dim=-1, keepdim=True)
        acc = acc * shrink + e @ v
        m = m_new
    return (acc / total).to(Q.dtype)
