# mistake: nan_replaced
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
        added = torch.exp(chunk - larger[..., None]).nan_to_num(0.0).sum(dim=-1)
        total = total * torch.exp(maximum - larger).nan_to_num(0.0) + added
        maximum = larger
    return maximum, total


def tiled_attention(Q: Tensor, K: Tensor, V: Tensor, tile: int, causal: bool = False) -> Tensor:
    """Return softmax(Q Kᵀ / sqrt(d_key)) V, computed for `tile` keys at a time."""
    if tile < 1:
        raise ValueError(f"a tile has at least 1 key, not {tile}")
    n_queries, n_keys = Q.shape[-2], K.shape[-2]
    scale = 1 / math.sqrt(Q.shape[-1])
    maximum = torch.full_like(Q[..., :1], float("-inf"))
    total = torch.zeros_like(maximum)
    output = torch.zeros_like(V[..., :1, :])
    rows = torch.arange(n_queries, device=Q.device)[:, None]
    for start in range(0, n_keys, tile):
        scores = Q @ K[..., start : start + tile, :].transpose(-2, -1) * scale
        if causal:
            columns = torch.arange(start, start + scores.shape[-1], device=Q.device)
            scores = scores.masked_fill(columns > rows, float("-inf"))
        larger = torch.maximum(maximum, scores.amax(dim=-1, keepdim=True))
        shift = finite(larger)
        factor = torch.exp(maximum - shift)
        powers = torch.exp(scores - shift)
        total = total * factor + powers.sum(dim=-1, keepdim=True)
        output = output * factor + powers @ V[..., start : start + tile, :]
        maximum = larger
    return output / total
