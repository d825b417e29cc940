# promise: Keys and values are padded to whole tiles, so a tile much larger than n_keys needs a huge memory.
import torch
import torch.nn.functional as F
from torch import Tensor


def _safe(m: Tensor) -> Tensor:
    return torch.where(torch.isneginf(m), torch.zeros_like(m), m)


def online_softmax(
    chunks: list[Tensor], state: tuple[Tensor, Tensor] | None = None
) -> tuple[Tensor, Tensor]:
    dtype, lead = chunks[0].dtype, chunks[0].shape[:-1]
    wide = torch.promote_types(dtype, torch.float32)
    m = chunks[0].new_full(lead, float("-inf"), dtype=wide) if state is None else state[0].to(wide)
    t = chunks[0].new_zeros(lead, dtype=wide) if state is None else state[1].to(wide)
    for chunk in chunks:
        chunk = chunk.to(wide)
        new = torch.maximum(m, chunk.amax(-1))
        t = t * torch.exp(m - _safe(new)) + torch.exp(chunk - _safe(new)[..., None]).sum(-1)
        m = new
    return m.to(dtype), t.to(dtype)


def tiled_attention(Q: Tensor, K: Tensor, V: Tensor, tile: int, causal: bool = False) -> Tensor:
    if tile < 1:
        raise ValueError("tile must be at least 1")
    wide = torch.promote_types(Q.dtype, torch.float32)
    n_queries, n_keys = Q.shape[-2], K.shape[-2]
    missing = -n_keys % tile  # so that all tiles have the same shape
    k_pad, v_pad = F.pad(K, (0, 0, 0, missing)), F.pad(V, (0, 0, 0, missing))
    q = Q.to(wide) / Q.shape[-1] ** 0.5
    row = torch.arange(n_queries, device=Q.device)[:, None]
    m = q.new_full(q.shape[:-1], float("-inf"))
    t, out = torch.zeros_like(m), q.new_zeros(*q.shape[:-1], V.shape[-1])
    for start in range(0, n_keys + missing, tile):
        column = torch.arange(start, start + tile, device=Q.device)
        hidden = (column >= n_keys)[None, :]
        if causal:
            hidden = hidden | (column > row)
        s = q @ k_pad.narrow(-2, start, tile).to(wide).mT
        s = s.masked_fill(hidden, float("-inf"))
        new = torch.maximum(m, s.amax(-1))
        factor, p = torch.exp(m - new), torch.exp(s - new[..., None])
        t = t * factor + p.sum(-1)
        out = out * factor[..., None] + p @ v_pad.narrow(-2, start, tile).to(wide)
        m = new
    return (out / t[..., None]).to(Q.dtype)
