# mistake: padded_values_leak
import math

from masked_softmax import masked_softmax
from torch import Tensor, nn


def batched_product(a: Tensor, b: Tensor) -> Tensor:
    fits = a.ndim == b.ndim == 3 and a.size(0) == b.size(0) and a.size(-1) == b.size(-2)
    if not fits:
        raise ValueError("shapes do not fit")
    return a @ b


class DotProductAttention(nn.Module):
    """Attention with dot products; keeps its weights for plots."""

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.drop = nn.Dropout(dropout)

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        d = queries.shape[2]
        scores = batched_product(queries, keys.permute(0, 2, 1)) / math.sqrt(d)
        self.attention_weights = masked_softmax(scores, valid_lens)
        return batched_product(self.drop(self.attention_weights), values)
