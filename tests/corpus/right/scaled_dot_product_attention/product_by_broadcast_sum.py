# right: batched_product as a broadcast multiplication and sum; own Bernoulli dropout; helpers
import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


def batched_product(a: Tensor, b: Tensor) -> Tensor:
    """Sum over m of a[i, n, m] * b[i, m, p], by broadcasting."""
    if (a.dim(), b.dim()) != (3, 3):
        raise ValueError(f"three axes each, please: {a.dim()}, {b.dim()}")
    if a.shape[::2] != b.shape[:2]:
        raise ValueError(f"batch and m are {tuple(a.shape[::2])} and {tuple(b.shape[:2])}")
    return (a.unsqueeze(3) * b.unsqueeze(1)).sum(dim=2)


def _visible(valid_lens: Tensor, n_keys: int) -> Tensor:
    """(batch, n_keys): True where at least one query may look."""
    lens = valid_lens.unsqueeze(-1)
    table = torch.ones(n_keys, dtype=torch.long, device=lens.device).cumsum(0) <= lens
    return table if table.dim() == 2 else table.any(1)


def _drop(weights: Tensor, rate: float) -> Tensor:
    if rate >= 1:
        return weights * 0
    kept = torch.bernoulli(torch.full_like(weights, 1 - rate, dtype=torch.float64)).bool()
    return (weights / (1 - rate)).masked_fill(~kept, 0)


class DotProductAttention(nn.Module):
    def __init__(self, dropout: float) -> None:
        super().__init__()
        if not 0 <= dropout <= 1:
            raise ValueError(f"dropout is a rate, not {dropout}")
        self.dropout = dropout

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        products = batched_product(queries, keys.transpose(2, 1))
        self.attention_weights = masked_softmax(products * queries.shape[-1] ** -0.5, valid_lens)
        weights = self.attention_weights
        if self.training:
            weights = _drop(weights, self.dropout)
        if valid_lens is not None:
            seen = _visible(valid_lens, keys.shape[1])
            values = values.where(seen[:, :, None], values.new_zeros(()))
        return batched_product(weights, values)
