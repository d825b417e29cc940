# broken: "If you detach the maximum, detach it wherever it is used": it is detached in the total but returned with its graph, so the gradient of maximum + log(total) is wrong
import math

import torch
from torch import Tensor


def _finite(maximum: Tensor) -> Tensor:
    return maximum.masked_fill(maximum == float("-inf"), 0.0)


def online_softmax(
    chunks: list[Tensor], state: tuple[Tensor, Tensor] | None = None
) -> tuple[Tensor, Tensor]:
    """Return the maximum and the total of each row of scores, which come in chunks."""
    dtype = chunks[0].dtype
    wide = torch.promote_types(dtype, torch.float32)
    if state is None:
        shape = chunks[0].shape[:-1]
        maximum = chunks[0].new_full(shape, float("-inf"), dtype=wide)
        total = chunks[0].new_zeros(shape, dtype=wide)
    else:
        maximum, total = state
        maximum = maximum.to(wide)
        total = total.to(wide)
    for chunk in chunks:
        chunk = chunk.to(wide)
        largest = torch.maximum(maximum, chunk.amax(dim=-1))
        shift = _finite(largest.detach())
        factor = torch.exp(maximum.detach() - shift)
        total = total * factor + torch.exp(chunk - shift.unsqueeze(-1)).sum(dim=-1)
        maximum = largest
    return maximum.to(dtype), total.to(dtype)


def tiled_attention(Q: Tensor, K: Tensor, V: Tensor, tile: int, causal: bool = False) -> Tensor:
    """Return softmax(Q K^T / sqrt(d_key)) V, computed for `tile` keys at a time."""
    if tile < 1:
        raise ValueError("a tile has at least one key")
    n_queries, n_keys = Q.shape[-2], K.shape[-2]
    scale = math.sqrt(Q.shape[-1])
    wide = torch.promote_types(Q.dtype, torch.float32)
    maximum = torch.full(Q.shape[:-1], float("-inf"), dtype=wide, device=Q.device)
    total = torch.zeros(Q.shape[:-1], dtype=wide, device=Q.device)
    output = torch.zeros(*Q.shape[:-1], V.shape[-1], dtype=wide, device=Q.device)
    rows = torch.arange(n_queries, device=Q.device).unsqueeze(1)
    for start in range(0, n_keys, tile):
        keys = K[..., start : start + tile, :]
        values = V[..., start : start + tile, :].to(wide)
        scores = (Q.to(wide) @ keys.to(wide).transpose(-2, -1)) / scale
        if causal:
            columns = torch.arange(start, start + keys.shape[-2], device=Q.device)
            scores = scores.masked_fill(columns > rows, float("-inf"))
        largest = torch.maximum(maximum, scores.detach().amax(dim=-1))
        shift = _finite(largest)
        factor = torch.exp(maximum - shift)
        weights = torch.exp(scores - shift.unsqueeze(-1))
        total = total * factor + weights.sum(dim=-1)
        output = output * factor.unsqueeze(-1) + weights @ values
        maximum = largest
    return (output / total.unsqueeze(-1)).to(Q.dtype)
