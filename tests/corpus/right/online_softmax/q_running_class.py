import torch
from torch import Tensor


class _Running:
    """The largest score, the total and, if values are given, the weighted sum of each row so far."""

    def __init__(self, maximum: Tensor | None = None, total: Tensor | None = None) -> None:
        self.maximum, self.total, self.mixed = maximum, total, None

    def add(self, scores: Tensor, values: Tensor | None = None) -> None:
        top = scores.detach().amax(dim=-1)
        if self.maximum is not None:
            top = torch.maximum(self.maximum, top)
        base = torch.where(top == -torch.inf, 0.0, top)  # a row without any score: exp(-inf - 0)
        parts = torch.exp(scores - base.unsqueeze(-1))
        total = torch.einsum("...k->...", parts)
        mixed = None if values is None else parts @ values
        if self.maximum is not None:
            shrink = torch.exp(self.maximum - base)
            total = torch.addcmul(total, self.total, shrink)
            if mixed is not None:
                mixed = torch.addcmul(mixed, self.mixed, shrink.unsqueeze(-1))
        self.maximum, self.total, self.mixed = top, total, mixed


def _exact(dtype: torch.dtype) -> torch.dtype:
    return torch.promote_types(dtype, torch.float32)


def online_softmax(
    chunks: list[Tensor], state: tuple[Tensor, Tensor] | None = None
) -> tuple[Tensor, Tensor]:
    dtype = chunks[0].dtype
    running = _Running()
    if state is not None:
        running = _Running(state[0].detach().to(_exact(dtype)), state[1].to(_exact(dtype)))
    for chunk in chunks:
        running.add(chunk.to(_exact(dtype)))
    return running.maximum.to(dtype), running.total.to(dtype)


def tiled_attention(Q: Tensor, K: Tensor, V: Tensor, tile: int, causal: bool = False) -> Tensor:
    if tile < 1:
        raise ValueError(f"a tile needs at least one key, not {tile}")
    exact = _exact(Q.dtype)
    queries = Q.to(exact) / Q.shape[-1] ** 0.5
    running = _Running()
    first = 0
    for K_tile, V_tile in zip(K.split(tile, dim=-2), V.split(tile, dim=-2)):
        scores = torch.einsum("...qd,...kd->...qk", queries, K_tile.to(exact))
        if causal:
            rows = torch.arange(Q.shape[-2], device=Q.device).unsqueeze(-1)
            places = torch.arange(first, first + K_tile.shape[-2], device=Q.device)
            scores = scores.masked_fill(places > rows, -torch.inf)
        running.add(scores, V_tile.to(exact))
        first += K_tile.shape[-2]
    return (running.mixed / running.total.unsqueeze(-1)).to(Q.dtype)
