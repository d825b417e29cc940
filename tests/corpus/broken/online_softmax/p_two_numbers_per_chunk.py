# promise: Online_softmax keeps the maximum and the total of each chunk in lists, and combines them at the end.
import torch
from torch import Tensor


def _no_inf(m: Tensor) -> Tensor:
    return m.masked_fill(m == float("-inf"), 0.0)


def online_softmax(
    chunks: list[Tensor], state: tuple[Tensor, Tensor] | None = None
) -> tuple[Tensor, Tensor]:
    dtype = chunks[0].dtype
    wide = torch.promote_types(dtype, torch.float32)
    maxima, totals = [], []
    if state is not None:
        maxima.append(state[0].to(wide))
        totals.append(state[1].to(wide))
    for chunk in chunks:
        chunk = chunk.to(wide)
        m = chunk.amax(-1)
        maxima.append(m)
        totals.append(torch.exp(chunk - _no_inf(m).unsqueeze(-1)).sum(-1))
    m_all, t_all = torch.stack(maxima, -1), torch.stack(totals, -1)
    m = m_all.amax(-1)
    total = (t_all * torch.exp(m_all - _no_inf(m).unsqueeze(-1))).sum(-1)
    return m.to(dtype), total.to(dtype)


def tiled_attention(Q: Tensor, K: Tensor, V: Tensor, tile: int, causal: bool = False) -> Tensor:
    if tile < 1:
        raise ValueError("tile must be at least 1")
    wide = torch.promote_types(Q.dtype, torch.float32)
    q = Q.to(wide) / Q.shape[-1] ** 0.5
    rows = torch.arange(Q.shape[-2], device=Q.device)[:, None]
    m = q.new_full(q.shape[:-1], float("-inf"))
    total, out = torch.zeros_like(m), q.new_zeros(*q.shape[:-1], V.shape[-1])
    for j in range(0, K.shape[-2], tile):
        k, v = K[..., j : j + tile, :].to(wide), V[..., j : j + tile, :].to(wide)
        s = q @ k.mT
        if causal:
            columns = torch.arange(j, j + k.shape[-2], device=Q.device)
            s = s.masked_fill(columns > rows, float("-inf"))
        m_new = torch.maximum(m, s.amax(-1))
        factor = torch.exp(m - _no_inf(m_new))
        p = torch.exp(s - _no_inf(m_new).unsqueeze(-1))
        total = total * factor + p.sum(-1)
        out = out * factor.unsqueeze(-1) + p @ v
        m = m_new
    return (out / total.unsqueeze(-1)).to(Q.dtype)
