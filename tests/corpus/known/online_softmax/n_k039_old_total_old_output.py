# mistake: no_rescale_of_output + no_rescale_of_total
import math

import torch
from torch import Tensor


def _work_dtype(dtype: torch.dtype) -> torch.dtype:
    return dtype if dtype == torch.float64 else torch.float32


def _finite(maximum: Tensor) -> Tensor:
    """The maximum, or 0 in rows that have seen only hidden keys."""
    return torch.where(maximum == -torch.inf, torch.zeros_like(maximum), maximum)


def online_softmax(
    chunks: list[Tensor], state: tuple[Tensor, Tensor] | None = None
) -> tuple[Tensor, Tensor]:
    """Return the maximum and the total of each row of scores, which come in chunks."""
    dtype = chunks[0].dtype
    work = _work_dtype(dtype)
    if state is None:
        rows = chunks[0].shape[:-1]
        maximum = torch.full(rows, -torch.inf, dtype=work, device=chunks[0].device)
        total = torch.zeros(rows, dtype=work, device=chunks[0].device)
    else:
        maximum, total = state[0].to(work), state[1].to(work)

    for chunk in chunks:
        chunk = chunk.to(work)
        new = torch.maximum(maximum, chunk.amax(dim=-1))
        shift = _finite(new)
        added = torch.exp(chunk - shift.unsqueeze(-1)).sum(dim=-1)
        total = total + added
        maximum = new
    return maximum.to(dtype), total.to(dtype)


def tiled_attention(Q: Tensor, K: Tensor, V: Tensor, tile: int, causal: bool = False) -> Tensor:
    """Return softmax(Q Kᵀ / sqrt(d_key)) V, computed for `tile` keys at a time."""
    if tile < 1:
        raise ValueError(f"a tile has at least one key, not {tile}")
    dtype = Q.dtype
    work = _work_dtype(dtype)
    n_queries, n_keys = Q.shape[-2], K.shape[-2]
    queries = Q.to(work) / math.sqrt(Q.shape[-1])
    row = torch.arange(n_queries, device=Q.device).unsqueeze(-1)

    maximum = queries.new_full(Q.shape[:-1], -torch.inf)
    total = queries.new_zeros(Q.shape[:-1])
    output = queries.new_zeros(Q.shape[:-1] + V.shape[-1:])
    for start in range(0, n_keys, tile):
        if causal and start >= n_queries:
            break
        keys = K[..., start : start + tile, :].to(work)
        values = V[..., start : start + tile, :].to(work)
        scores = queries @ keys.transpose(-2, -1)
        if causal:
            column = torch.arange(start, start + keys.shape[-2], device=Q.device)
            scores = scores.masked_fill(column > row, -torch.inf)
        new = torch.maximum(maximum, scores.amax(dim=-1))
        shift = _finite(new)
        weights = torch.exp(scores - shift.unsqueeze(-1))
        total = total + weights.sum(dim=-1)
        output = output + weights @ values
        maximum = new
    return (output / total.unsqueeze(-1)).to(dtype)
