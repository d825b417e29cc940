# right: the maximum keeps its gradient everywhere, and queries are split into tiles of the same size as the keys

import torch
from torch import Tensor


def _calm(maximum: Tensor) -> Tensor:
    """The maximum, or 0 where there is nothing but -inf."""
    return maximum.masked_fill(maximum == -torch.inf, 0.0)


def online_softmax(
    chunks: list[Tensor], state: tuple[Tensor, Tensor] | None = None
) -> tuple[Tensor, Tensor]:
    dtype = chunks[0].dtype
    exact = torch.promote_types(dtype, torch.float32)
    if state is None:
        shape, device = chunks[0].shape[:-1], chunks[0].device
        maximum = torch.full(shape, -torch.inf, dtype=exact, device=device)
        total = torch.zeros(shape, dtype=exact, device=device)
    else:
        maximum, total = state[0].to(exact), state[1].to(exact)
    for chunk in chunks:
        scores = chunk.to(exact)
        larger = torch.maximum(maximum, scores.amax(-1))
        calm = _calm(larger)
        total = total * torch.exp(maximum - calm) + torch.exp(scores - calm.unsqueeze(-1)).sum(-1)
        maximum = larger
    return maximum.to(dtype), total.to(dtype)


def _rows(Q: Tensor, K: Tensor, V: Tensor, tile: int, first_row: int | None) -> Tensor:
    """Attention of some queries; first_row is the place of the first one, or None if not causal."""
    exact = torch.promote_types(Q.dtype, torch.float32)
    n_keys = K.shape[-2]
    if first_row is not None:
        n_keys = min(n_keys, first_row + Q.shape[-2])  # no later key is seen by any of them
    state, context = None, None
    for start in range(0, n_keys, tile):
        stop = min(start + tile, n_keys)
        scores = Q.to(exact) @ K[..., start:stop, :].to(exact).mT / Q.shape[-1] ** 0.5
        if first_row is not None:
            row = torch.arange(first_row, first_row + Q.shape[-2], device=Q.device)
            column = torch.arange(start, stop, device=Q.device)
            scores = scores.masked_fill(column[None, :] > row[:, None], -torch.inf)
        new = online_softmax([scores], state)
        calm = _calm(new[0]).unsqueeze(-1)
        part = torch.exp(scores - calm) @ V[..., start:stop, :].to(exact)
        if state is not None:
            part = part + context * torch.exp(state[0].unsqueeze(-1) - calm)
        state, context = new, part
    return (context / state[1].unsqueeze(-1)).to(Q.dtype)


def tiled_attention(Q: Tensor, K: Tensor, V: Tensor, tile: int, causal: bool = False) -> Tensor:
    if tile < 1:
        raise ValueError("tile has to be at least 1")
    parts = [
        _rows(Q[..., start : start + tile, :], K, V, tile, start if causal else None)
        for start in range(0, Q.shape[-2], tile)
    ]
    return torch.cat(parts, dim=-2)
