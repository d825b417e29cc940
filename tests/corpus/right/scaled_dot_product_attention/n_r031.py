# style: unusual
import torch
import torch.nn.functional as F
from masked_softmax import masked_softmax
from torch import Tensor, nn


def batched_product(a: Tensor, b: Tensor) -> Tensor:
    """Return the matrix product of each item of a with the same item of b."""
    if not (a.ndim == b.ndim == 3 and a.size(0) == b.size(0) and a.size(2) == b.size(1)):
        raise ValueError(f"shapes {list(a.shape)} and {list(b.shape)} do not fit")
    return torch.bmm(a, b)


class DotProductAttention(nn.Module):
    """Attention whose scores are dot products of queries and keys, scaled by their size."""

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.dropout = dropout

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        """Return each query's weighted sum of the values, (batch, n_queries, d_value)."""
        root = queries.size(2) ** 0.5
        scores = batched_product(queries / root, keys.permute(0, 2, 1))
        w = masked_softmax(scores, valid_lens)
        self.attention_weights = w
        if valid_lens is not None:
            lens = valid_lens.reshape(len(valid_lens), -1).max(dim=1, keepdim=True).values
            alive = torch.arange(keys.size(1), device=keys.device) < lens
            values = torch.where(alive[..., None], values, torch.zeros_like(values))
        return batched_product(F.dropout(w, self.dropout, self.training), values)
