# mistake: scaled_by_root_of_d_value
import math

import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


def batched_product(a: Tensor, b: Tensor) -> Tensor:
    """Return the matrix product of each item of a with the same item of b."""
    if a.dim() != 3 or b.dim() != 3:
        raise ValueError("both tensors need three axes")
    if a.shape[0] != b.shape[0] or a.shape[2] != b.shape[1]:
        raise ValueError(f"{tuple(a.shape)} and {tuple(b.shape)} do not fit")
    return torch.bmm(a, b)


def used_keys(valid_lens: Tensor, n_keys: int) -> Tensor:
    """Tell which keys at least one query of the batch item may attend to, (batch, n_keys, 1)."""
    longest = valid_lens if valid_lens.dim() == 1 else valid_lens.amax(dim=1)
    used = torch.arange(n_keys, device=valid_lens.device) < longest.to(torch.float64)[:, None]
    return used[:, :, None]


class DotProductAttention(nn.Module):
    """Attention whose scores are scaled dot products."""

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.attention_weights: Tensor | None = None

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        root = math.sqrt(values.shape[-1])
        scores = batched_product(queries / root, keys.transpose(1, 2))
        weights = masked_softmax(scores, valid_lens)
        self.attention_weights = weights.detach()
        if valid_lens is not None:
            values = values.masked_fill(~used_keys(valid_lens, keys.shape[1]), 0.0)
        return batched_product(self.dropout(weights), values)
