# mistake: padded_values_leak
from masked_softmax import masked_softmax
from torch import Tensor, nn


def batched_product(a: Tensor, b: Tensor) -> Tensor:
    """Return the matrix product of each item of a with the same item of b.

    a is (batch, n, m), b is (batch, m, p), the product is (batch, n, p). Raises ValueError for
    any other shapes.
    """
    if a.dim() != 3 or b.dim() != 3:
        raise ValueError("both tensors must have three axes")
    if a.shape[0] != b.shape[0]:
        raise ValueError(f"the batches differ: {a.shape[0]} and {b.shape[0]}")
    if a.shape[2] != b.shape[1]:
        raise ValueError(f"the inner sizes differ: {a.shape[2]} and {b.shape[1]}")
    return a.matmul(b)


class DotProductAttention(nn.Module):
    """Attention whose scores are dot products of queries and keys, scaled by their size.

    dropout is the rate at which weights are dropped in training. After a call, attention_weights
    holds its weights as they were before dropout.
    """

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        """Return each query's weighted sum of the values, (batch, n_queries, d_value)."""
        d_key = queries.shape[-1]
        scores = batched_product(queries, keys.transpose(1, 2)) / d_key**0.5
        self.attention_weights = masked_softmax(scores, valid_lens)
        return batched_product(self.dropout(self.attention_weights), values)
