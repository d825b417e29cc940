# mistake: no_rescale_of_output

import torch
from torch import Tensor


def _safe(m: Tensor) -> Tensor:
    return m.masked_fill(m == -torch.inf, 0.0)


def online_softmax(
    chunks: list[Tensor], state: tuple[Tensor, Tensor] | None = None
) -> tuple[Tensor, Tensor]:
    dtype = chunks[0].dtype
    wide = torch.promote_types(dtype, torch.float32)
    if state is None:
        m = torch.full(chunks[0].shape[:-1], -torch.inf, dtype=wide, device=chunks[0].device)
        total = torch.zeros_like(m)
    else:
        m, total = state[0].detach().to(wide), state[1].to(wide)
    for chunk in chunks:
        chunk = chunk.to(wide)
        m_new = torch.maximum(m, chunk.detach().amax(-1))
        shift = _safe(m_new)
        total = total * torch.exp(m - shift) + torch.exp(chunk - shift[..., None]).sum(-1)
        m = m_new
    return m.to(dtype), total.to(dtype)


def tiled_attention(Q: Tensor, K: Tensor, V: Tensor, tile: int, causal: bool = False) -> Tensor:
    if tile < 1:
        raise ValueError("tile must be at least 1")
    n_queries, n_keys = Q.shape[-2], K.shape[-2]
    wide = torch.promote_types(Q.dtype, torch.float32)
    state = None
    output = 0.0
    rows = torch.arange(n_queries, device=Q.device)[:, None]
    for start in range(0, n_keys, tile):
        stop = min(start + tile, n_keys)
        scores = (Q @ K[..., start:stop, :].mT).to(wide) / Q.shape[-1] ** 0.5
        if causal:
            columns = torch.arange(start, stop, device=Q.device)
            scores = scores.masked_fill(columns > rows, -torch.inf)
        state = online_softmax([scores], state)
        powers = torch.exp(scores - _safe(state[0])[..., None])
        output = output + powers @ V[..., start:stop, :].to(wide)
    return (output / state[1][..., None]).to(Q.dtype)
