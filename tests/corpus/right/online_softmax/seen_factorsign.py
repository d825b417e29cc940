# right: the twin of one with a mistake, factorsign
# seen: deepseek-ai/FlashMLA pull 177: the factor for what was summed before is exp(m_new - m_old) instead of exp(m_old - m_new).
import math

import torch
from torch import Tensor


class _Running:
    """Maximum, total and, if there are values, the weighted sum of the scores read so far."""

    def __init__(self, maximum: Tensor, total: Tensor, mixed: Tensor | None = None) -> None:
        self.maximum, self.total, self.mixed = maximum, total, mixed

    def read(self, scores: Tensor, values: Tensor | None = None) -> None:
        new = torch.maximum(self.maximum, scores.detach().amax(dim=-1))
        zero = torch.zeros_like(new)
        gap = torch.where(self.maximum == -math.inf, zero - math.inf, self.maximum - new)
        factor = torch.exp(gap)
        exps = torch.exp(scores - torch.where(new == -math.inf, zero, new)[..., None])
        self.total = self.total * factor + exps.sum(dim=-1)
        if values is not None:
            self.mixed = self.mixed * factor[..., None] + exps @ values
        self.maximum = new


def online_softmax(
    chunks: list[Tensor], state: tuple[Tensor, Tensor] | None = None
) -> tuple[Tensor, Tensor]:
    dtype = chunks[0].dtype
    inner = torch.promote_types(dtype, torch.float32)
    if state is None:
        rows = torch.zeros(chunks[0].shape[:-1], dtype=inner, device=chunks[0].device)
        running = _Running(rows - math.inf, rows)
    else:
        running = _Running(state[0].detach().to(inner), state[1].to(inner))
    for chunk in chunks:
        running.read(chunk.to(inner))
    return running.maximum.to(dtype), running.total.to(dtype)


def tiled_attention(Q: Tensor, K: Tensor, V: Tensor, tile: int, causal: bool = False) -> Tensor:
    if tile < 1:
        raise ValueError("a tile needs a key")
    inner = torch.promote_types(Q.dtype, torch.float32)
    rows = torch.zeros(Q.shape[:-1], dtype=inner, device=Q.device)
    running = _Running(rows - math.inf, rows, rows[..., None].repeat_interleave(V.size(-1), -1))
    query_at = torch.arange(Q.size(-2), device=Q.device)[:, None]
    for start in range(0, K.size(-2), tile):
        k = K[..., start : start + tile, :].to(inner)
        scores = Q.to(inner) @ k.transpose(-1, -2) / math.sqrt(Q.size(-1))
        if causal:
            key_at = start + torch.arange(k.size(-2), device=Q.device)
            scores = scores.masked_fill(key_at > query_at, -math.inf)
        running.read(scores, V[..., start : start + tile, :].to(inner))
    return (running.mixed / running.total[..., None]).to(Q.dtype)
