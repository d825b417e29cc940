# broken: While a row has only scores of -inf, its maximum is -inf and its total 0, also in a later call: if the state's row has only -inf and the first chunk too, the total is nan
import math

import torch
from torch import Tensor


def _wide(dtype: torch.dtype) -> torch.dtype:
    return dtype if dtype == torch.float64 else torch.float32


def _finite(maximum: Tensor) -> Tensor:
    """What is subtracted: the maximum, or 0 in a row with only -inf."""
    return maximum.masked_fill(maximum == -torch.inf, 0.0)


def online_softmax(
    chunks: list[Tensor], state: tuple[Tensor, Tensor] | None = None
) -> tuple[Tensor, Tensor]:
    """Return the maximum and the total of each row of scores, which come in chunks."""
    dtype, wide = chunks[0].dtype, _wide(chunks[0].dtype)
    if state is None:
        maximum = chunks[0].new_full(chunks[0].shape[:-1], -torch.inf, dtype=wide)
        total = torch.zeros_like(maximum)
    else:
        maximum, total = state[0].detach().to(wide), state[1].to(wide)
        # join the state and the first chunk
        joined = torch.maximum(maximum, chunks[0].detach().amax(-1).to(wide))
        total = total * (maximum - joined).exp()
        maximum = joined
    for chunk in chunks:
        chunk = chunk.to(wide)
        new = torch.maximum(maximum, chunk.detach().amax(-1))
        shift = _finite(new)
        total = total * (maximum - shift).exp() + (chunk - shift.unsqueeze(-1)).exp().sum(-1)
        maximum = new
    return maximum.to(dtype), total.to(dtype)


def tiled_attention(Q: Tensor, K: Tensor, V: Tensor, tile: int, causal: bool = False) -> Tensor:
    """Return softmax(Q K^T / sqrt(d_key)) V, computed for `tile` keys at a time."""
    if tile < 1:
        raise ValueError(f"a tile has at least one key, not {tile}")
    return _attend(Q, K, V, tile, causal, 0)


def _attend(Q: Tensor, K: Tensor, V: Tensor, tile: int, causal: bool, first: int) -> Tensor:
    """Attention of the queries with the numbers first, first + 1, ..."""
    dtype, wide = Q.dtype, _wide(Q.dtype)
    n_queries, n_keys = Q.shape[-2], K.shape[-2]
    Q = Q.to(wide) / math.sqrt(Q.shape[-1])
    rows = torch.arange(first, first + n_queries, device=Q.device).unsqueeze(-1)
    maximum = Q.new_full(Q.shape[:-1] + (1,), -torch.inf)
    total = torch.zeros_like(maximum)
    output = Q.new_zeros(Q.shape[:-1] + (V.shape[-1],))
    for start in range(0, n_keys, tile):
        stop = min(start + tile, n_keys)
        scores = Q @ K[..., start:stop, :].to(wide).mT
        if causal:
            columns = torch.arange(start, stop, device=Q.device)
            scores = scores.masked_fill(columns > rows, -torch.inf)
        new = torch.maximum(maximum, scores.detach().amax(-1, keepdim=True))
        shift = _finite(new)
        factor, powers = (maximum - shift).exp(), (scores - shift).exp()
        total = total * factor + powers.sum(-1, keepdim=True)
        output = output * factor + powers @ V[..., start:stop, :].to(wide)
        maximum = new
    return (output / total).to(dtype)
