# right: sums of products instead of matmul in batched_product, halves computed in float32, functional dropout
import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn
from torch.nn import functional as F


def batched_product(a: Tensor, b: Tensor) -> Tensor:
    """Return the matrix product of each item of a with the same item of b."""
    if not (a.ndim == b.ndim == 3):
        raise ValueError("three axes are needed")
    (batch_a, _, m_a), (batch_b, m_b, _) = a.shape, b.shape
    if (batch_a, m_a) != (batch_b, m_b):
        raise ValueError("batch or m do not fit")
    return (a.unsqueeze(3) * b.unsqueeze(1)).sum(dim=2)


class DotProductAttention(nn.Module):
    """Attention whose scores are scaled dot products."""

    attention_weights: Tensor

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.p = float(dropout)

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        dtype = values.dtype
        wide = torch.promote_types(dtype, torch.float32)
        q, k, v = queries.to(wide), keys.to(wide), values.to(wide)
        scores = torch.matmul(q, k.transpose(-1, -2)).div(k.shape[-1] ** 0.5)
        weights = masked_softmax(scores, valid_lens)
        self.attention_weights = weights.to(dtype)
        if valid_lens is not None:
            most = valid_lens.reshape(valid_lens.shape[0], -1).max(dim=1, keepdim=True).values
            beyond = torch.arange(v.shape[1], device=v.device).expand(v.shape[:2]) >= most
            v = v.masked_fill(beyond.unsqueeze(-1), 0)
        dropped = F.dropout(weights, self.p, self.training)
        return torch.matmul(dropped, v).to(dtype)
