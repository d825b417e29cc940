# broken: "If a key is padded for every query of its batch item, its value has no effect": not with one length per query, where a padded nan makes the output nan.
import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


def batched_product(a: Tensor, b: Tensor) -> Tensor:
    if a.dim() != 3 or b.dim() != 3:
        raise ValueError("both tensors must have three axes")
    if a.shape[0] != b.shape[0] or a.shape[-1] != b.shape[-2]:
        raise ValueError("the shapes do not fit")
    return a @ b


class DotProductAttention(nn.Module):
    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.attention_weights = None

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        root = queries.shape[-1] ** 0.5
        scores = batched_product(queries / root, keys.transpose(1, 2))
        weights = masked_softmax(scores, valid_lens)
        self.attention_weights = weights.detach().clone()
        if valid_lens is not None and valid_lens.dim() == 1:
            longest = valid_lens
            padded = torch.arange(keys.shape[1], device=keys.device) >= longest[:, None]
            values = values.masked_fill(padded[:, :, None], 0.0)
        return batched_product(self.dropout(weights), values)
