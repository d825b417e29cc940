# broken: "the memory of tiled_attention grows no faster than n_queries and n_keys": a first pass keeps the maximum of each query in each tile, n_queries * n_keys / tile numbers at once
import math

import torch
from torch import Tensor


def finite(maximum: Tensor) -> Tensor:
    return torch.where(maximum == float("-inf"), torch.zeros_like(maximum), maximum)


def online_softmax(
    chunks: list[Tensor], state: tuple[Tensor, Tensor] | None = None
) -> tuple[Tensor, Tensor]:
    """Return the maximum and the total of each row of scores, which come in chunks."""
    if state is None:
        maximum = torch.full_like(chunks[0][..., 0], float("-inf"))
        total = torch.zeros_like(maximum)
    else:
        maximum, total = state
    for chunk in chunks:
        larger = torch.maximum(maximum, chunk.amax(dim=-1))
        shift = finite(larger)
        added = torch.exp(chunk - shift[..., None]).sum(dim=-1)
        total = total * torch.exp(maximum - shift) + added
        maximum = larger
    return maximum, total


def tiled_attention(Q: Tensor, K: Tensor, V: Tensor, tile: int, causal: bool = False) -> Tensor:
    """Return softmax(Q Kᵀ / sqrt(d_key)) V, computed for `tile` keys at a time."""
    if tile < 1:
        raise ValueError(f"a tile has at least 1 key, not {tile}")
    n_queries, n_keys = Q.shape[-2], K.shape[-2]
    scale = 1 / math.sqrt(Q.shape[-1])
    total = torch.zeros_like(Q[..., :1])
    output = torch.zeros_like(V[..., :1, :])
    rows = torch.arange(n_queries, device=Q.device)[:, None]

    def scores_of(start: int) -> Tensor:
        scores = Q @ K[..., start : start + tile, :].transpose(-2, -1) * scale
        if causal:
            columns = torch.arange(start, start + scores.shape[-1], device=Q.device)
            scores = scores.masked_fill(columns > rows, float("-inf"))
        return scores

    starts = range(0, n_keys, tile)
    maxima = [scores_of(start).amax(dim=-1, keepdim=True) for start in starts]
    maximum = torch.cat(maxima, dim=-1).amax(dim=-1, keepdim=True)
    for start in starts:
        powers = torch.exp(scores_of(start) - maximum)
        total = total + powers.sum(dim=-1, keepdim=True)
        output = output + powers @ V[..., start : start + tile, :]
    return output / total
