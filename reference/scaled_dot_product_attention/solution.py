"""Reference solution: scaled dot-product attention for a batch of padded sequences."""

import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


def batched_product(a: Tensor, b: Tensor) -> Tensor:
    """Return the matrix product of each item of a with the same item of b.

    a is (batch, n, m), b is (batch, m, p), the product is (batch, n, p). Raises ValueError for
    any other shapes.
    """
    # --- solution
    if a.dim() != 3 or b.dim() != 3 or a.shape[0] != b.shape[0] or a.shape[2] != b.shape[1]:
        raise ValueError(f"{tuple(a.shape)} and {tuple(b.shape)} cannot be multiplied")
    return a @ b  # (batch, n, p)
    # --- end


class DotProductAttention(nn.Module):
    """Attention whose scores are dot products of queries and keys, scaled by their size.

    dropout is the rate at which weights are dropped in training. After a call, attention_weights
    holds its weights as they were before dropout.
    """

    def __init__(self, dropout: float) -> None:
        super().__init__()
        # --- solution
        self.dropout = nn.Dropout(dropout)
        # --- end

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        """Return each query's weighted sum of the values, (batch, n_queries, d_value).

        queries is (batch, n_queries, d_key), keys is (batch, n_keys, d_key), values is (batch,
        n_keys, d_value); valid_lens is None, (batch,) or (batch, n_queries).
        """
        # --- solution
        d_key = queries.shape[-1]
        products = batched_product(queries, keys.transpose(1, 2))  # (batch, n_queries, n_keys)
        scores = products / d_key**0.5  # (batch, n_queries, n_keys)
        weights = masked_softmax(scores, valid_lens)  # (batch, n_queries, n_keys)
        self.attention_weights = weights  # (batch, n_queries, n_keys)
        # 0 times nan is nan, so a weight of 0 is not enough to keep padding out of the sum.
        if valid_lens is not None:
            longest = valid_lens.reshape(len(keys), -1).amax(dim=1, keepdim=True)  # (batch, 1)
            places = torch.arange(keys.shape[1], device=longest.device)  # (n_keys,)
            unused = (places >= longest).unsqueeze(-1)  # (batch, n_keys, 1)
            values = values.masked_fill(unused, 0.0)  # (batch, n_keys, d_value)
        return batched_product(self.dropout(weights), values)  # (batch, n_queries, d_value)
        # --- end
