# right: the total is one more column of the values (ones); states are merged two at a time with functools.reduce

from functools import reduce

import torch
from torch import Tensor

State = tuple[Tensor, Tensor]


def _wide(t: Tensor) -> Tensor:
    return t if t.dtype == torch.float64 else t.float()


def _finite(maximum: Tensor) -> Tensor:
    return torch.where(torch.isneginf(maximum), 0.0, maximum)


def _read(scores: Tensor, columns: Tensor) -> State:
    """Return the maximum (..., 1) and exp(scores - maximum) @ columns, of one chunk."""
    maximum = scores.detach().amax(dim=-1, keepdim=True)
    return maximum, torch.exp(scores - _finite(maximum)) @ columns


def _merge(a: State, b: State) -> State:
    maximum = torch.maximum(a[0], b[0])
    base = _finite(maximum)
    return maximum, a[1] * torch.exp(a[0] - base) + b[1] * torch.exp(b[0] - base)


def online_softmax(
    chunks: list[Tensor], state: tuple[Tensor, Tensor] | None = None
) -> tuple[Tensor, Tensor]:
    def states():
        if state is not None:
            yield _wide(state[0].detach()).unsqueeze(-1), _wide(state[1]).unsqueeze(-1)
        for chunk in chunks:
            scores = _wide(chunk)
            yield _read(scores, scores.new_ones(scores.shape[-1], 1))

    maximum, total = reduce(_merge, states())
    dtype = chunks[0].dtype
    return maximum.squeeze(-1).to(dtype), total.squeeze(-1).to(dtype)


def tiled_attention(Q: Tensor, K: Tensor, V: Tensor, tile: int, causal: bool = False) -> Tensor:
    if tile < 1:
        raise ValueError(f"a tile of {tile} keys")
    queries = _wide(Q) * Q.shape[-1] ** -0.5
    i = torch.arange(Q.shape[-2], device=Q.device).unsqueeze(-1)

    def states():
        for start in range(0, K.shape[-2], tile):
            keys = _wide(K[..., start : start + tile, :])
            values = _wide(V[..., start : start + tile, :])
            scores = queries @ keys.mT
            if causal:
                j = torch.arange(start, start + keys.shape[-2], device=Q.device)
                scores = scores.masked_fill(j > i, -torch.inf)
            ones = values.new_ones(*values.shape[:-1], 1)
            yield _read(scores, torch.cat((values, ones), dim=-1))

    _, sums = reduce(_merge, states())
    return (sums[..., :-1] / sums[..., -1:]).to(Q.dtype)
