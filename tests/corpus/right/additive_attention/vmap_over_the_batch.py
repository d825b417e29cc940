# right: torch.func.vmap over the batch for the scores, scores of a single item in a method
import torch
from torch import Tensor, nn

from masked_softmax import masked_softmax


def _tanh_of_sum(a: Tensor, b: Tensor) -> Tensor:
    """tanh(a_i + b_j) for all i, j; the sum is formed by broadcasting."""
    return (a[:, None] + b[None]).tanh()


class AdditiveAttention(nn.Module):
    def __init__(self, d_query: int, d_key: int, num_hiddens: int, dropout: float):
        super().__init__()
        self.W_q = nn.Linear(d_query, num_hiddens, bias=False)
        self.W_k = nn.Linear(d_key, num_hiddens, bias=False)
        self.w_v = nn.Linear(num_hiddens, 1, bias=False)
        self.dropout = nn.Dropout(dropout)

    def scores(self, queries: Tensor, keys: Tensor) -> Tensor:
        """For a single item: (n_queries, n_keys)."""
        return _tanh_of_sum(self.W_q(queries), self.W_k(keys)) @ self.w_v.weight[0]

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        scores = torch.func.vmap(self.scores)(queries, keys)
        self.attention_weights = masked_softmax(scores, valid_lens)
        return self.dropout(self.attention_weights) @ values
