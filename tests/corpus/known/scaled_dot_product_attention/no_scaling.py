# mistake: no_scale
import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


def batched_product(a: Tensor, b: Tensor) -> Tensor:
    fits = a.ndim == b.ndim == 3 and a.size(0) == b.size(0) and a.size(-1) == b.size(-2)
    if not fits:
        raise ValueError("shapes do not fit")
    return a @ b


class DotProductAttention(nn.Module):
    """Scaled dot-product attention."""

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.attention_weights = None

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        scores = batched_product(queries, keys.transpose(1, 2))
        self.attention_weights = masked_softmax(scores, valid_lens)
        if valid_lens is not None:
            longest = valid_lens if valid_lens.dim() == 1 else valid_lens.amax(dim=1)
            padded = torch.arange(keys.shape[1], device=keys.device) >= longest[:, None]
            values = values.masked_fill(padded[:, :, None], 0)
        return batched_product(self.dropout(self.attention_weights), values)
