# right: the twin of one with a mistake, infminusinf
# seen: flashinfer pull 4401 and burn pull 4697: while a row has only scores of -inf, -inf - (-inf) is computed, which is nan and stays in the total.
import math

import torch
from torch import Tensor


def online_softmax(
    chunks: list[Tensor], state: tuple[Tensor, Tensor] | None = None
) -> tuple[Tensor, Tensor]:
    dtype = chunks[0].dtype
    acc = torch.promote_types(dtype, torch.float32)
    if state is None:
        maximum = chunks[0].new_full(chunks[0].shape[:-1], -math.inf, dtype=acc)
        total = torch.zeros_like(maximum)
    else:
        maximum, total = state[0].detach().to(acc), state[1].to(acc)
    for chunk in chunks:
        maximum, total = _merge(maximum, total, chunk.to(acc))[:2]
    return maximum.to(dtype), total.to(dtype)


def _merge(maximum: Tensor, total: Tensor, scores: Tensor) -> tuple[Tensor, ...]:
    """Maximum and total with these scores, the factor for older sums, and the exponentials."""
    new = torch.maximum(maximum, scores.detach().amax(dim=-1))
    shift = new.masked_fill(new == -math.inf, 0.0)
    factor = torch.exp(maximum - shift)
    parts = torch.exp(scores - shift.unsqueeze(-1))
    return new, total * factor + parts.sum(dim=-1), factor, parts


def tiled_attention(Q: Tensor, K: Tensor, V: Tensor, tile: int, causal: bool = False) -> Tensor:
    if tile < 1:
        raise ValueError("a tile has at least one key")
    acc = torch.promote_types(Q.dtype, torch.float32)
    q = Q.to(acc) / math.sqrt(Q.size(-1))
    n_queries, n_keys = Q.size(-2), K.size(-2)
    maximum = q.new_full(q.shape[:-1], -math.inf)
    total = torch.zeros_like(maximum)
    out = q.new_zeros(*q.shape[:-1], V.size(-1))
    for start in range(0, n_keys, tile):
        stop = min(start + tile, n_keys)
        scores = q @ K[..., start:stop, :].to(acc).transpose(-2, -1)
        if causal:
            keys = torch.arange(start, stop, device=q.device)
            queries = torch.arange(n_queries, device=q.device)
            scores = scores.masked_fill(keys > queries[:, None], -math.inf)
        maximum, total, factor, parts = _merge(maximum, total, scores)
        out = out * factor.unsqueeze(-1) + parts @ V[..., start:stop, :].to(acc)
    return (out / total.unsqueeze(-1)).to(Q.dtype)
