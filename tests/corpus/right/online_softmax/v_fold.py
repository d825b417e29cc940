# right: both functions fold a pure update over chunks and tiles with functools.reduce, sums are kept in float32 or float64
from functools import reduce

import torch
from torch import Tensor


def _wide(t: Tensor) -> Tensor:
    return t if t.dtype == torch.float64 else t.float()


def _finite(m: Tensor) -> Tensor:
    return torch.where(m == float("-inf"), 0.0, m)


def _update(state, scores):
    """One chunk more: returns the new maximum, the old sums' factor and the chunk's exponentials."""
    old, _ = state
    new = torch.maximum(old, scores.detach().amax(-1, keepdim=True))
    shift = _finite(new)
    return new, (old - shift).exp(), (scores - shift).exp()


def online_softmax(
    chunks: list[Tensor], state: tuple[Tensor, Tensor] | None = None
) -> tuple[Tensor, Tensor]:
    dtype = chunks[0].dtype
    if state is None:
        empty = _wide(chunks[0][..., :1].detach())
        start = (torch.full_like(empty, float("-inf")), torch.zeros_like(empty))
    else:
        start = (_wide(state[0].detach())[..., None], _wide(state[1])[..., None])

    def more(before, chunk):
        new, factor, parts = _update(before, _wide(chunk))
        return new, before[1] * factor + parts.sum(-1, keepdim=True)

    maximum, total = reduce(more, chunks, start)
    return maximum[..., 0].to(dtype), total[..., 0].to(dtype)


def tiled_attention(Q: Tensor, K: Tensor, V: Tensor, tile: int, causal: bool = False) -> Tensor:
    if tile < 1:
        raise ValueError(f"a tile of {tile} keys")
    n_queries, n_keys = Q.shape[-2], K.shape[-2]
    scaled = _wide(Q) * Q.shape[-1] ** -0.5
    rows = torch.arange(n_queries, device=Q.device)[:, None]

    def more(before, begin):
        end = min(begin + tile, n_keys)
        scores = scaled @ _wide(K[..., begin:end, :]).mT
        if causal:
            later = torch.arange(begin, end, device=Q.device) > rows
            scores = scores.masked_fill(later, float("-inf"))
        new, factor, parts = _update(before[:2], scores)
        total = before[1] * factor + parts.sum(-1, keepdim=True)
        return new, total, before[2] * factor + parts @ _wide(V[..., begin:end, :])

    empty = scaled[..., :1].detach()
    start = (torch.full_like(empty, float("-inf")), torch.zeros_like(empty), torch.zeros_like(empty))
    _, total, mixed = reduce(more, range(0, n_keys, tile), start)
    return (mixed / total).to(V.dtype)

