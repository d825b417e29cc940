# mistake: padded_values_leak
# the weights are simply multiplied with the values, so a nan or inf in a padded value makes the output nan
import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


def batched_product(a: Tensor, b: Tensor) -> Tensor:
    try:
        return torch.bmm(a, b)
    except RuntimeError as error:
        raise ValueError(str(error)) from error


class DotProductAttention(nn.Module):
    """Scaled dot product attention."""

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.attention_weights = None

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        d = queries.shape[-1]
        scores = batched_product(queries, keys.transpose(1, 2)) / d**0.5
        self.attention_weights = masked_softmax(scores, valid_lens)
        return batched_product(self.dropout(self.attention_weights), values)
