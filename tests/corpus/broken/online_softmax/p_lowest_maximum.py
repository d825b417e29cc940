# promise: The running maximum of online_softmax starts at -1e30, so rows whose scores are finite but lower count as hidden.
import torch
from torch import Tensor

LOWEST = -1e30


def online_softmax(
    chunks: list[Tensor], state: tuple[Tensor, Tensor] | None = None
) -> tuple[Tensor, Tensor]:
    dtype = chunks[0].dtype
    wide = torch.promote_types(dtype, torch.float32)
    if state is None:
        total = torch.zeros(chunks[0].shape[:-1], dtype=wide, device=chunks[0].device)
        maximum = torch.full_like(total, LOWEST)
    else:
        total = state[1].to(wide)
        maximum = state[0].to(wide).clamp_min(LOWEST)
    for chunk in chunks:
        chunk = chunk.to(wide)
        new = torch.maximum(maximum, chunk.amax(dim=-1))
        total = total * torch.exp(maximum - new) + torch.exp(chunk - new.unsqueeze(-1)).sum(dim=-1)
        maximum = new
    maximum = maximum.masked_fill(total == 0, float("-inf"))
    return maximum.to(dtype), total.to(dtype)


def tiled_attention(Q: Tensor, K: Tensor, V: Tensor, tile: int, causal: bool = False) -> Tensor:
    if tile < 1:
        raise ValueError("tile must be at least 1")
    wide = torch.promote_types(Q.dtype, torch.float32)
    q, scale = Q.to(wide), Q.shape[-1] ** -0.5
    n_queries, n_keys = Q.shape[-2], K.shape[-2]
    maximum = q.new_full((*q.shape[:-1], 1), float("-inf"))
    total = torch.zeros_like(maximum)
    output = torch.zeros(*q.shape[:-1], V.shape[-1], dtype=wide, device=Q.device)
    for start in range(0, n_keys, tile):
        stop = min(n_keys, start + tile)
        scores = q @ K[..., start:stop, :].to(wide).mT * scale
        if causal:
            late = torch.ones(n_queries, stop - start, dtype=torch.bool, device=Q.device).triu(1 - start)
            scores = scores.masked_fill(late, float("-inf"))
        # key 0 is in the first tile and seen by all: the maximum is finite
        new = torch.maximum(maximum, scores.amax(-1, keepdim=True))
        factor, power = torch.exp(maximum - new), torch.exp(scores - new)
        total = total * factor + power.sum(-1, keepdim=True)
        output = output * factor + power @ V[..., start:stop, :].to(wide)
        maximum = new
    return (output / total).to(Q.dtype)
