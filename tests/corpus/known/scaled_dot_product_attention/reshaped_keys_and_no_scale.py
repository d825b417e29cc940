# mistake: keys_reshaped + no_scale
import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


def batched_product(a: Tensor, b: Tensor) -> Tensor:
    fits = a.ndim == b.ndim == 3 and a.size(0) == b.size(0) and a.size(-1) == b.size(-2)
    if not fits:
        raise ValueError("shapes do not fit")
    return a @ b


class DotProductAttention(nn.Module):
    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        batch, n_keys, d_key = keys.shape
        scores = batched_product(queries, keys.reshape(batch, d_key, n_keys))
        weights = masked_softmax(scores, valid_lens)
        self.attention_weights = weights
        if valid_lens is not None:
            visible = valid_lens if valid_lens.dim() == 1 else valid_lens.max(dim=1).values
            mask = torch.arange(n_keys).unsqueeze(0) < visible.unsqueeze(1)
            values = values.masked_fill(~mask.unsqueeze(-1), 0.0)
        return batched_product(self.dropout(weights), values)
