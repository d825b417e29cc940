# mistake: weak_filler
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
    if state is None:  # nothing read yet: no score, and a sum of nothing
        row = chunks[0][..., 0].detach()  # (...)
        state = torch.full_like(row, -torch.inf), torch.zeros_like(row)  # (...) each
    maximum, total = state  # (...) each
    for scores in chunks:  # (..., n)
        highest = torch.maximum(maximum, scores.amax(dim=-1))  # (...)
        # A row of -inf alone has no anchor to subtract: -inf - -inf is nan.
        anchor = highest.masked_fill(highest == -torch.inf, 0.0)  # (...)
        added = (scores - anchor.unsqueeze(-1)).exp().sum(dim=-1)  # (...)
        total = total * (maximum - anchor).exp() + added  # (...)
        maximum = highest  # (...)
    return maximum, total


def tiled_attention(Q: Tensor, K: Tensor, V: Tensor, tile: int, causal: bool = False) -> Tensor:
    """Return softmax(Q Kᵀ / sqrt(d_key)) V, computed for `tile` keys at a time.

    Q        (..., n_queries, d_key)
    K        (..., n_keys, d_key)
    V        (..., n_keys, d_value)
    returns  (..., n_queries, d_value)
    """
    if tile < 1:
        raise ValueError(f"a tile has at least one key, not {tile}")
    n_queries, n_keys, d_key = Q.shape[-2], K.shape[-2], K.shape[-1]
    query = torch.arange(n_queries, device=Q.device).unsqueeze(-1)  # (n_queries, 1)
    maximum = Q.new_full((*Q.shape[:-1], 1), -torch.inf)  # (..., n_queries, 1)
    total = Q.new_zeros(*Q.shape[:-1], 1)  # (..., n_queries, 1)
    output = Q.new_zeros(*Q.shape[:-1], V.shape[-1])  # (..., n_queries, d_value)
    for first in range(0, n_keys, tile):
        keys = K[..., first : first + tile, :]  # (..., n, d_key), the last may have n < tile
        values = V[..., first : first + tile, :]  # (..., n, d_value)
        scores = Q @ keys.transpose(-2, -1) / d_key**0.5  # (..., n_queries, n)
        if causal:
            key = torch.arange(first, first + keys.shape[-2], device=Q.device)  # (n,)
            scores = scores.masked_fill(key > query, -1e4)  # (..., n_queries, n)
        # Key 0 is hidden from no query, so the maximum is finite from the first tile on.
        highest = torch.maximum(maximum, scores.amax(dim=-1, keepdim=True))  # (..., n_queries, 1)
        weights = (scores - highest).exp()  # (..., n_queries, n), not yet divided
        rescale = (maximum - highest).exp()  # (..., n_queries, 1), 0 for the first tile
        total = total * rescale + weights.sum(dim=-1, keepdim=True)  # (..., n_queries, 1)
        output = output * rescale + weights @ values  # (..., n_queries, d_value)
        maximum = highest  # (..., n_queries, 1)
    return output / total  # (..., n_queries, d_value)
