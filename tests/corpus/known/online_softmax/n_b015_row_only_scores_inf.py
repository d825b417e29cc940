# mistake: minus_inf_is_nan
import math

import torch
from torch import Tensor


def online_softmax(
    chunks: list[Tensor], state: tuple[Tensor, Tensor] | None = None
) -> tuple[Tensor, Tensor]:
    """Return the maximum and the total of each row of scores, which come in chunks.

    chunks   at least one, (..., n) each, where n may differ
    state    what an earlier call returned, to go on from; None for a fresh start
    returns  maximum and total, (...) each
    """
    dtype = chunks[0].dtype
    work = torch.float64 if dtype == torch.float64 else torch.float32
    chunks = list(chunks)
    if state is None:
        first = chunks.pop(0).to(work)
        maximum = first.amax(dim=-1)
        total = torch.exp(first - maximum.unsqueeze(-1)).sum(dim=-1)
    else:
        maximum, total = state[0].to(work), state[1].to(work)
    for chunk in chunks:
        chunk = chunk.to(work)
        larger = torch.maximum(maximum, chunk.amax(dim=-1))
        total = total * torch.exp(maximum - larger)
        total = total + torch.exp(chunk - larger.unsqueeze(-1)).sum(dim=-1)
        maximum = larger
    return maximum.to(dtype), total.to(dtype)


def tiled_attention(Q: Tensor, K: Tensor, V: Tensor, tile: int, causal: bool = False) -> Tensor:
    """Return softmax(Q Kᵀ / sqrt(d_key)) V, computed for `tile` keys at a time."""
    if tile < 1:
        raise ValueError("tile must be positive")
    work = torch.float64 if Q.dtype == torch.float64 else torch.float32
    n_queries, n_keys = Q.size(-2), K.size(-2)
    scaled = Q.to(work) / math.sqrt(Q.size(-1))
    place = torch.arange(n_queries, device=Q.device).unsqueeze(1)
    # key 0 is seen by every query, so the first tile gives a finite maximum
    maximum = total = output = None
    for start in range(0, n_keys, tile):
        end = min(start + tile, n_keys)
        scores = scaled @ K[..., start:end, :].to(work).transpose(-2, -1)
        if causal:
            hidden = torch.arange(start, end, device=Q.device) > place
            scores = scores.masked_fill(hidden, -torch.inf)
        top = scores.amax(dim=-1, keepdim=True)
        larger = top if maximum is None else torch.maximum(maximum, top)
        e = torch.exp(scores - larger)
        part = e @ V[..., start:end, :].to(work)
        if maximum is None:
            total, output = e.sum(dim=-1, keepdim=True), part
        else:
            rescale = torch.exp(maximum - larger)
            total = total * rescale + e.sum(dim=-1, keepdim=True)
            output = output * rescale + part
        maximum = larger
    return (output / total).to(Q.dtype)
